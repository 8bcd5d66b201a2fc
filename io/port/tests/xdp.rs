//! Ports over AF_XDP sockets on the two ends of a veth pair. The tests need root's capabilities and create their own
//! network namespace; without permission they test nothing.

mod links;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use links::{frame, has_link, ip, receive, rings, send, wanted};
use namehop_packet::{BufferPool, PacketBuffer, PortQueue};
use namehop_port::drivers::packet_socket::{MAX_FRAME_BYTES, PacketPort};
use namehop_port::drivers::xdp::{MAX_MTU_BYTES, XdpPort, XdpQueue};
use namehop_port::wanted::{MAX_ADDRESSES, MAX_VLANS, Wanted};

const NDN: u16 = 0x8624;
const IPV4: u16 = 0x0800;
const MTU: usize = 1500;
/// Slots of the send ring.
const SEND_PLACES: usize = 1024;

/// A port with one queue.
fn open(interface: &str, mtu: usize, pool: &BufferPool) -> (XdpPort, XdpQueue) {
    let (port, mut queues) = XdpPort::open(interface, mtu, 1, pool).expect("opened");
    (port, queues.remove(0))
}

/// An IPv4 packet to this address.
fn packet(to: [u8; 4]) -> Vec<u8> {
    frame(IPV4, &[&[0x45; 16][..], &to, &[0; 20]].concat())
}

#[test]
fn frames_of_all_sizes_go_both_ways_in_order() {
    for mtu in [MTU, 3400] {
        if !has_link(mtu, 1) {
            return;
        }
        let pool = BufferPool::new(4096, 512);
        let (near, mut near_queue) = open("near", mtu, &pool);
        let (far, mut far_queue) = open("far", mtu, &pool);
        // More frames than the rings have slots, so that all slots are used again.
        for round in 0..80 {
            let burst: Vec<_> =
                (0..64).map(|n| frame(NDN, &vec![n as u8; 46 + (n * 777 + round * 37) % (mtu - 45)])).collect();
            let priority = frame(0x8100, &[&[0xE0, 0x00, 0x86, 0x24], &[7; 50][..]].concat());
            let (from, to) =
                if round % 2 == 0 { (&mut near_queue, &mut far_queue) } else { (&mut far_queue, &mut near_queue) };
            assert!(send(from, &pool, &burst).is_empty() && send(from, &pool, &[priority]).is_empty());
            assert!(rings(to, 1000));
            let mut expected = burst;
            expected.push(frame(NDN, &[7; 50]));
            assert_eq!(receive(to, expected.len()), expected);
        }
        assert_eq!((near.losses(), far.losses()), Default::default());
        drop((near, near_queue, far, far_queue));
        assert_eq!(pool.in_use(), 0);
    }
}

#[test]
fn what_is_not_wanted_stays_with_the_kernel() {
    if !has_link(MTU, 1) {
        return;
    }
    let pool = BufferPool::new(4096, 512);
    let (_near, mut near_queue) = open("near", MTU, &pool);
    let (far, mut far_queue) = open("far", MTU, &pool);
    // Receives the traffic that is passed to the kernel.
    let (kernel, mut queues) = PacketPort::open("far", MAX_FRAME_BYTES, 1, &pool).expect("opened");
    let mut kernel_queue = queues.remove(0);
    let addresses: [IpAddr; 2] = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
    kernel.receive_only(&wanted(&[], &addresses)).expect("few enough VLANs and addresses");
    let ndn = frame(NDN, &[1; 60]);
    let tagged = frame(0x8100, &[&[0, 7, 0x86, 0x24][..], &[1; 60]].concat());
    let all = [packet([192, 0, 2, 1]), packet([192, 0, 2, 2]), tagged.clone(), ndn.clone()];

    assert!(send(&mut near_queue, &pool, &all).is_empty());
    assert_eq!(receive(&mut far_queue, 2), std::slice::from_ref(&ndn));
    assert_eq!(receive(&mut kernel_queue, 3), all[..2]);

    far.receive_only(&wanted(&[7], &addresses[..1])).expect("few enough VLANs and addresses");
    assert!(send(&mut near_queue, &pool, &all).is_empty());
    assert_eq!(receive(&mut far_queue, 4), [all[0].clone(), tagged, ndn.clone()]);
    assert_eq!(receive(&mut kernel_queue, 2), all[1..2]);

    // The largest number of VLANs and addresses, which makes the longest program.
    let many = (0..MAX_ADDRESSES as u16).map(|n| (Some(n + 1), [0x2001, 0xdb8, 0, 0, 0, 0, 0, n].into()));
    let vlans: Vec<u16> = (1..=MAX_VLANS as u16).collect();
    let most = Wanted::new(&vlans, &many.collect::<Vec<_>>()).expect("the largest possible numbers");
    far.receive_only(&most).expect("the largest possible numbers");
    assert!(send(&mut near_queue, &pool, &all).is_empty());
    assert_eq!(receive(&mut far_queue, 2).len(), 2);
    // The program is detached when the port is closed.
    drop((far, far_queue));
    kernel.receive_only(&Wanted::default()).expect("no VLANs or addresses");
    assert!(send(&mut near_queue, &pool, std::slice::from_ref(&ndn)).is_empty());
    assert_eq!(receive(&mut kernel_queue, 1).last(), Some(&ndn));
}

#[test]
fn nobody_waits_for_a_link_that_is_down_or_for_memory() {
    if !has_link(MTU, 1) {
        return;
    }
    let pool = BufferPool::new(2048, 1);
    let few = BufferPool::new(8, 1);
    let (near, mut near_queue) = open("near", MTU, &pool);
    let (far, mut far_queue) = open("far", MTU, &few);
    ip("link set near down");
    let mut waiting: Vec<PacketBuffer> =
        (0..SEND_PLACES + 64).map(|n| pool.copy_of(&frame(NDN, &[n as u8; 60])).expect("buffer")).collect();
    let end = Instant::now() + Duration::from_millis(200);
    while Instant::now() < end {
        near_queue.transmit(&mut waiting);
    }
    assert_eq!(waiting.len(), 64, "all slots are in use");
    assert!(near_queue.bell().is_none() && near_queue.retry_pause() <= Duration::from_millis(1));

    ip("link set near up");
    let (end, mut own) = (Instant::now() + Duration::from_secs(5), Vec::new());
    while near_queue.bell().is_none() || !waiting.is_empty() {
        assert!(Instant::now() < end, "{} frames are left", waiting.len());
        near_queue.receive(&mut own);
        near_queue.transmit(&mut waiting);
    }
    // Frames for which the other end has no memory are dropped and counted, and their chunks are used again.
    let mut kept = Vec::new();
    let end = Instant::now() + Duration::from_millis(300);
    while Instant::now() < end {
        far_queue.receive(&mut kept);
    }
    assert_eq!(kept.len(), 9, "one frame for each buffer");
    let lost = far.losses();
    assert_eq!(lost.no_buffer + lost.receive_ring_full + kept.len() as u64, (SEND_PLACES + 64) as u64);
    kept.clear();
    let last = frame(NDN, &[0xAB; 60]);
    assert!(send(&mut near_queue, &pool, std::slice::from_ref(&last)).is_empty());
    assert_eq!(receive(&mut far_queue, 1), [last]);

    // Longer than the kernel accepts.
    let long = pool.allocate(9000).and_then(|mut long| long.append(9000).map(|_| ()).map(|()| long)).expect("buffer");
    near_queue.transmit(&mut vec![long]);
    assert_eq!(near.losses().send_failed, 1);
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    if !has_link(MTU, 1) {
        return;
    }
    let pool = BufferPool::new(8, 1);
    let refused =
        |interface: &str, mtu: usize| XdpPort::open(interface, mtu, 1, &pool).expect_err("refused").to_string();
    assert!(refused("absent", MTU).contains("No such device"));
    assert!(refused("near", MAX_MTU_BYTES + 1).contains("dev://near"));
    let _open = open("near", MTU, &pool);
    let error = refused("near", MTU);
    assert!(error.contains("near") && error.contains("busy"), "{error}");
}

#[test]
fn each_queue_of_an_interface_can_have_a_socket() {
    if !has_link(MTU, 2) {
        return;
    }
    let pool = BufferPool::new(8192, 16);
    // More queues than the interfaces have.
    let (near, mut near_queues) = XdpPort::open("near", MTU, 3, &pool).expect("opened");
    let (far, mut far_queues) = XdpPort::open("far", MTU, 2, &pool).expect("opened");
    assert_eq!((near_queues.len(), far_queues.len()), (2, 2));
    // An end of a veth pair receives on the queue that the other end sends on.
    for (number, (near_queue, far_queue)) in near_queues.iter_mut().zip(&mut far_queues).enumerate() {
        let frames: Vec<_> = (0..100).map(|byte| frame(NDN, &[byte, number as u8, 7, 7])).collect();
        assert!(send(near_queue, &pool, &frames).is_empty());
        assert_eq!(receive(far_queue, frames.len()), frames);
        assert!(send(far_queue, &pool, &frames).is_empty());
        assert_eq!(receive(near_queue, frames.len()), frames);
    }
    assert_eq!((near.losses(), far.losses()), Default::default());
}
