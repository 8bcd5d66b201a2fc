//! Helpers of the tests of ports on kernel interfaces: a veth pair in a separate network namespace, and frames on it.

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::{Duration, Instant};

use namehop_packet::{BufferPool, PacketBuffer, PortQueue};
use namehop_port::wanted::Wanted;

/// Frames are no longer expected after this time without one.
const PATIENCE: Duration = Duration::from_secs(2);

pub fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("the program ip can be run");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Moves this thread to a new network namespace with a veth pair, `near` and `far`, that has `queues` queues at each
/// end. `false` without permission.
pub fn has_link(mtu: usize, queues: usize) -> bool {
    // SAFETY: only moves this thread to a new network namespace.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return false;
    }
    let end = format!("mtu {mtu} numrxqueues {queues} numtxqueues {queues}");
    ip(&format!("link add near {end} type veth peer name far {end}"));
    // No addresses and so no neighbour discovery: only the test's own frames.
    for end in ["near", "far"] {
        ip(&format!("link set {end} addrgenmode none"));
        ip(&format!("link set {end} up"));
    }
    true
}

pub fn frame(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&[0xFF; 12][..], &ethertype.to_be_bytes(), payload].concat()
}

/// Wants NDN frames of these VLANs, and untagged packets to these addresses.
pub fn wanted(vlans: &[u16], addresses: &[IpAddr]) -> Wanted {
    let addresses: Vec<_> = addresses.iter().map(|address| (None, *address)).collect();
    Wanted::new(vlans, &addresses).expect("few enough VLANs and addresses")
}

/// Sends frames; returns the frames that did not fit.
pub fn send(queue: &mut impl PortQueue, pool: &BufferPool, frames: &[Vec<u8>]) -> Vec<PacketBuffer> {
    let mut waiting: Vec<PacketBuffer> = frames.iter().map(|frame| pool.copy_of(frame).expect("buffer")).collect();
    queue.transmit(&mut waiting);
    waiting
}

/// Receives until `count` frames have arrived, or none for a while.
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

/// Receives the frames that have arrived.
pub fn receive_now(queue: &mut impl PortQueue) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    queue.receive(&mut frames);
    frames.iter().map(|frame| frame.bytes().to_vec()).collect()
}

/// True if the bell of a queue rings within this time.
pub fn rings(queue: &impl PortQueue, within_ms: i32) -> bool {
    let mut polled = libc::pollfd { fd: queue.bell().expect("a bell").as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: passes one descriptor, which is open.
    unsafe { libc::poll(&mut polled, 1, within_ms) == 1 }
}
