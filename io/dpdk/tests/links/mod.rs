//! What tests of ports over interfaces of the kernel share: a veth pair in a network namespace of the test's own, and frames on it.

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::{Duration, Instant};

use namehop_dpdk::wanted::Wanted;
use namehop_packet::{BufferPool, PacketBuffer, PortQueue};

/// Nothing arrives any more when so long nothing has arrived.
const PATIENCE: Duration = Duration::from_secs(2);

pub fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("the program ip");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Moves this thread to a network namespace of its own with a veth pair, `near` and `far`, that has so many queues at each end. `false`
/// without permission.
pub fn has_link(mtu: usize, queues: usize) -> bool {
    // SAFETY: gives this thread a network of its own, nothing else.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return false;
    }
    let end = format!("mtu {mtu} numrxqueues {queues} numtxqueues {queues}");
    ip(&format!("link add near {end} type veth peer name far {end}"));
    // Nothing but the frames of the test: no address, so no discovery of neighbours either.
    for end in ["near", "far"] {
        ip(&format!("link set {end} addrgenmode none"));
        ip(&format!("link set {end} up"));
    }
    true
}

pub fn frame(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&[0xFF; 12][..], &ethertype.to_be_bytes(), payload].concat()
}

/// NDN frames of these VLANs, and packets without a tag for these addresses.
pub fn wanted(vlans: &[u16], addresses: &[IpAddr]) -> Wanted {
    let addresses: Vec<_> = addresses.iter().map(|address| (None, *address)).collect();
    Wanted::new(vlans, &addresses).expect("few")
}

/// Sends frames; gives those that did not fit.
pub fn send(queue: &mut impl PortQueue, pool: &BufferPool, frames: &[Vec<u8>]) -> Vec<PacketBuffer> {
    let mut waiting: Vec<PacketBuffer> = frames.iter().map(|frame| pool.copy_of(frame).expect("buffer")).collect();
    queue.transmit(&mut waiting);
    waiting
}

/// What arrives until there are so many frames, or nothing for a while.
pub fn receive(queue: &mut impl PortQueue, count: usize) -> Vec<Vec<u8>> {
    let (mut received, mut end) = (Vec::new(), Instant::now() + PATIENCE);
    while received.len() < count && Instant::now() < end {
        let new = receive_now(queue);
        if !new.is_empty() {
            end = Instant::now() + PATIENCE;
        }
        received.extend(new);
    }
    received
}

/// What has arrived.
pub fn receive_now(queue: &mut impl PortQueue) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    queue.receive(&mut frames);
    frames.iter().map(|frame| frame.bytes().to_vec()).collect()
}

/// Whether the bell of a queue rings within this time.
pub fn rings(queue: &impl PortQueue, within_ms: i32) -> bool {
    let mut polled = libc::pollfd { fd: queue.bell().expect("a bell").as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, which is open.
    unsafe { libc::poll(&mut polled, 1, within_ms) == 1 }
}
