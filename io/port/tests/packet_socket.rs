//! Ports over packet sockets on the two ends of a veth pair. The tests need root's capabilities and create their own
//! network namespace; without permission they test nothing.

mod links;

use std::process::Command;
use std::time::{Duration, Instant};

use links::{frame, has_link, ip, receive, receive_now, rings, send, wanted};
use namehop_packet::{BufferPool, PortQueue};
use namehop_port::drivers::packet_socket::{MAX_FRAME_BYTES, PacketPort, PacketQueue};
use namehop_port::wanted::{MAX_ADDRESSES, MAX_VLANS, Wanted};

const ETHERNET_BYTES: usize = 14;

fn open(interface: &str, pool: &BufferPool) -> (PacketPort, PacketQueue) {
    let (port, mut queues) = PacketPort::open(interface, MAX_FRAME_BYTES, 1, pool).expect("opened");
    (port, queues.remove(0))
}

#[test]
fn frames_of_all_sizes_arrive_in_order_and_none_of_other_protocols_or_vlans() {
    if !has_link(9000, 1) {
        return;
    }
    let pool = BufferPool::new(4096, 512);
    let ((near, mut near_queue), (far, mut far_queue)) = (open("near", &pool), open("far", &pool));
    let mut expected = Vec::new();
    // More frames than the ring has slots, so that it is passed twice.
    for round in 0..24 {
        let burst: Vec<_> =
            (0..64).map(|n| frame(0x8624, &vec![n as u8; 46 + (n * 777 + round * 37) % 8955])).collect();
        assert!(!rings(&far_queue, 0));
        let others = [0x0800, 0x0806, 0x8100].map(|other| frame(other, &[0, 5, 0x86, 0x24, 5, 0]));
        assert!(send(&mut near_queue, &pool, &others).is_empty());
        assert!(!rings(&far_queue, 0), "other frames must not wake the worker");
        let priority = frame(0x8100, &[&[0xE0, 0x00, 0x86, 0x24], &[7; 50][..]].concat());
        assert!(send(&mut near_queue, &pool, &burst).is_empty());
        assert!(send(&mut near_queue, &pool, &[priority]).is_empty());
        expected = burst;
        expected.push(frame(0x8624, &[7; 50]));
        assert!(rings(&far_queue, 0));
        assert_eq!(receive(&mut far_queue, expected.len()), expected);
    }
    let mut own = Vec::new();
    near_queue.receive(&mut own);
    assert!(own.is_empty(), "a port must not receive its own frames");
    assert!(send(&mut far_queue, &pool, &expected).is_empty());
    assert_eq!(receive(&mut near_queue, expected.len()), expected);
    assert_eq!((near.losses(), far.losses()), Default::default());
    drop((near, near_queue, far, far_queue, own));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_port_may_receive_every_frame_whoever_it_is_for() {
    if !has_link(1500, 1) {
        return;
    }
    let pool = BufferPool::new(256, 16);
    let ((_near, mut near_queue), (far, mut far_queue)) = (open("near", &pool), open("far", &pool));
    let foreign = |kind: u16| [&[0x02, 9, 9, 9, 9, 9][..], &[2; 6], &kind.to_be_bytes(), &[7; 46]].concat();
    let frames = [foreign(0x0800), foreign(0x0806), foreign(0x8624), foreign(0x9999)];
    assert!(send(&mut near_queue, &pool, &frames).is_empty());
    assert_eq!(receive(&mut far_queue, 1), &frames[2..3], "only NDN frames must be received");
    far.receive_everything().expect("promiscuous mode can be set");
    assert!(send(&mut near_queue, &pool, &frames).is_empty());
    assert_eq!(receive(&mut far_queue, frames.len()), frames);
}

#[test]
fn frames_of_wanted_vlans_arrive_with_their_tags() {
    const MTU: usize = 1500;
    if !has_link(MTU, 1) {
        return;
    }
    let pool = BufferPool::new(4096, 512);
    let ((_near, mut near_queue), (far, mut far_queue)) = (open("near", &pool), open("far", &pool));
    let tagged = |ethertype: u16, tag: u16, payload: &[u8]| {
        frame(ethertype, &[&tag.to_be_bytes()[..], &[0x86, 0x24], payload].concat())
    };
    // The longest frame for this MTU: the tag does not count.
    let full = vec![9; MTU];
    let burst = [
        tagged(0x8100, 7, &full),
        frame(0x8624, &full),
        tagged(0x8100, 8, &[1; 50]),
        tagged(0x8100, 4094, &[2; 50]),
        // With a provider tag.
        tagged(0x88A8, 7, &[3; 50]),
    ];
    let untagged = [burst[1].clone()];
    let mut expect = |vlans: &[u16], expected: &[Vec<u8>]| {
        far.receive_only(&wanted(vlans, &[])).expect("few enough VLANs and addresses");
        assert!(send(&mut near_queue, &pool, &burst).is_empty());
        assert_eq!(receive(&mut far_queue, expected.len()), expected, "{vlans:?}");
        assert!(!rings(&far_queue, 0), "{vlans:?}");
    };
    expect(&[], &untagged);
    expect(&[7], &burst[..2]);
    expect(&[7, 4094], &[burst[0].clone(), burst[1].clone(), burst[3].clone()]);
    let many: Vec<u16> = (4094 + 1 - MAX_VLANS as u16..=4094).collect();
    expect(&many, &[burst[1].clone(), burst[3].clone()]);
    assert!(Wanted::new(&(1..=many.len() as u16 + 1).collect::<Vec<_>>(), &[]).is_err());
    expect(&[], &untagged);
    assert_eq!(far.losses(), Default::default());
    drop(far_queue);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn what_is_lost_is_counted() {
    if !has_link(1500, 1) {
        return;
    }
    let (pool, none_left) = (BufferPool::new(4096, 512), BufferPool::new(8, 8));
    let ((near, mut near_queue), (far, mut far_queue)) = (open("near", &pool), open("far", &none_left));
    let burst = vec![frame(0x8624, &[1; 46]); 64];
    for _ in 0..40 {
        assert!(send(&mut near_queue, &pool, &burst).is_empty());
    }
    let mut received = Vec::new();
    for _ in 0..40 {
        far_queue.receive(&mut received);
    }
    let losses = far.losses();
    assert_eq!(received.len(), 16, "one frame for each buffer");
    assert!(losses.receive_ring_full >= 1000, "{losses:?}");
    assert_eq!(losses.no_buffer + losses.receive_ring_full + 16, 40 * 64);
    assert_eq!(far.losses(), losses, "no loss may be counted twice");

    let too_long = frame(0x8624, &[1; 1600]);
    assert!(send(&mut near_queue, &pool, &[burst[0].clone(), too_long, burst[0].clone()]).is_empty());
    assert_eq!(near.losses().send_failed, 1);
    ip("link set near down");
    assert!(send(&mut near_queue, &pool, &burst).is_empty());
    assert_eq!(near.losses().send_failed, 65);
    near_queue.prepare_to_sleep();
    assert!(!rings(&near_queue, 0), "the error of a down interface must not end every sleep");
    ip("link set near up");
    assert!(send(&mut near_queue, &pool, &burst).is_empty());
    received.clear();
    assert_eq!(receive(&mut far_queue, 16).len(), 16, "the port works again");
}

/// An interface that sends 60 frames of 1,500 bytes per second.
#[test]
fn a_congested_interface_keeps_nobody_waiting_and_loses_nothing() {
    if !has_link(1500, 1) {
        return;
    }
    let output = Command::new("tc")
        .args("qdisc add dev near root tbf rate 8mbit burst 10000 limit 30000".split(' '))
        .output()
        .expect("the program tc can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let pool = BufferPool::new(4096, 512);
    let ((near, mut near_queue), (_far, mut far_queue)) = (open("near", &pool), open("far", &pool));
    let frames: Vec<_> = (0..200).map(|n| frame(0x8624, &[n as u8; 1500])).collect();
    let mut waiting = send(&mut near_queue, &pool, &frames);
    assert!(waiting.len() > 100, "most frames must not fit: {}", waiting.len());
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    let (mut attempts, mut received) = (0, Vec::new());
    while received.len() < frames.len() {
        let before = Instant::now();
        near_queue.transmit(&mut waiting);
        longest = longest.max(before.elapsed());
        attempts += 1;
        far_queue.receive(&mut received);
        assert!(start.elapsed() < Duration::from_secs(5), "{} frames arrived, {} wait", received.len(), waiting.len());
        let pause = near_queue.retry_pause();
        assert!(pause <= Duration::from_millis(1), "{pause:?}");
        std::thread::sleep(pause.max(Duration::from_micros(100)));
    }
    // 300 kB at one megabyte per second.
    assert!(start.elapsed() < Duration::from_secs(2), "took {:?}, {attempts} attempts", start.elapsed());
    assert!(longest < Duration::from_millis(100), "{longest:?}");
    let received: Vec<_> = received.iter().map(|frame| frame.bytes()[ETHERNET_BYTES]).collect();
    assert_eq!(received, (0..200).collect::<Vec<u8>>(), "each frame must arrive once, in order");
    assert_eq!(near.losses().send_failed, 0);
}

#[test]
fn packets_for_the_addresses_of_a_port_arrive_and_others_do_not() {
    if !has_link(1500, 1) {
        return;
    }
    let pool = BufferPool::new(4096, 512);
    let ((_near, mut near_queue), (far, mut far_queue)) = (open("near", &pool), open("far", &pool));
    let at = |ethertype: u16, offset: usize, bytes: &[u8]| {
        let mut frame = frame(ethertype, &[0; 64]);
        frame[offset..offset + bytes.len()].copy_from_slice(bytes);
        frame
    };
    let v6 = |text: &str| text.parse::<std::net::Ipv6Addr>().expect("address").octets();
    let for_port = [
        at(0x0806, 38, &[192, 0, 2, 1]),
        at(0x0800, 30, &[198, 51, 100, 1]),
        at(0x86DD, 38, &v6("2001:db8::1:2:3")),
        at(0x86DD, 38, &v6("ff02::1:ff02:3")),
        at(0x86DD, 38, &v6("fe80::9")),
        frame(0x8624, &[5; 50]),
    ];
    let others = [
        at(0x0806, 38, &[192, 0, 2, 2]),
        at(0x0800, 30, &[192, 0, 2, 3]),
        at(0x86DD, 38, &v6("2001:db8::1:2:4")),
        at(0x86DD, 38, &v6("ff02::1:ff02:4")),
        at(0x86DD, 38, &v6("ff02::1")),
        at(0x88CC, 38, &[192, 0, 2, 1]),
        frame(0x0800, &[0; 4]),
    ];
    let addresses =
        ["192.0.2.1", "198.51.100.1", "2001:db8::1:2:3", "fe80::9"].map(|text| text.parse().expect("address"));
    let ndn = [for_port[5].clone()];
    let all: Vec<_> = others.iter().chain(&for_port).cloned().collect();
    let vlans: Vec<u16> = (1..=MAX_VLANS as u16).collect();
    for (addresses, expected) in [(&addresses[..], &for_port[..]), (&[], &ndn)] {
        far.receive_only(&wanted(&vlans, addresses)).expect("few enough VLANs and addresses");
        assert!(send(&mut near_queue, &pool, &all).is_empty());
        assert_eq!(receive(&mut far_queue, expected.len()), expected);
        assert!(!rings(&far_queue, 0));
    }
    let many = vec![(None, addresses[0]); MAX_ADDRESSES + 1];
    assert!(Wanted::new(&[], &many).is_err());
}

#[test]
fn each_address_is_wanted_in_its_vlan() {
    if !has_link(1500, 1) {
        return;
    }
    let pool = BufferPool::new(4096, 512);
    let ((_near, mut near_queue), (far, mut far_queue)) = (open("near", &pool), open("far", &pool));
    let in_vlan = |tag: u16, frame: Vec<u8>| [&frame[..12], &[0x81, 0x00], &tag.to_be_bytes(), &frame[12..]].concat();
    let to = |last: u8| {
        let mut frame = datagram(50_000);
        frame[33] = last;
        frame
    };
    let mut arp = frame(0x0806, &[0; 46]);
    arp[38..42].copy_from_slice(&[192, 0, 2, 7]);
    let (seven, eight) = ([192, 0, 2, 7].into(), [192, 0, 2, 8].into());
    let v6 = "2001:db8::1".parse().expect("an address");
    let addresses = [(None, [192, 0, 2, 1].into()), (Some(7), seven), (Some(7), v6), (Some(8), eight)];
    let for_port = [
        to(1),
        in_vlan(7, to(7)),
        in_vlan(7, arp.clone()),
        in_vlan(7, datagram_v6(50_000)),
        in_vlan(8, to(8)),
        in_vlan(9, frame(0x8624, &[5; 50])),
    ];
    let others = [
        to(7),
        in_vlan(7, to(1)),
        in_vlan(8, to(7)),
        in_vlan(9, to(7)),
        in_vlan(8, arp),
        datagram_v6(50_000),
        in_vlan(8, datagram_v6(50_000)),
        in_vlan(8, frame(0x8624, &[5; 50])),
    ];
    let all: Vec<_> = others.iter().chain(&for_port).cloned().collect();
    far.receive_only(&Wanted::new(&[9], &addresses).expect("few enough VLANs and addresses"))
        .expect("few enough VLANs and addresses");
    assert!(send(&mut near_queue, &pool, &all).is_empty());
    assert_eq!(receive(&mut far_queue, for_port.len()), for_port);
    assert!(!rings(&far_queue, 0));
    // The largest possible filter: the kernel accepts it.
    let many: Vec<_> = (1..=MAX_ADDRESSES as u16).map(|vlan| (Some(vlan), v6)).collect();
    let vlans: Vec<u16> = (1..=MAX_VLANS as u16).collect();
    far.receive_only(&Wanted::new(&vlans, &many).expect("the largest possible numbers"))
        .expect("the largest possible numbers");
    assert!(send(&mut near_queue, &pool, &[in_vlan(64, datagram_v6(50_000))]).is_empty());
    assert_eq!(receive(&mut far_queue, 1).len(), 1);
}

/// An IPv4 datagram from one sender to 192.0.2.1.
fn datagram(source_port: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 2, 192, 0, 2, 1];
    packet.extend(source_port.to_be_bytes());
    packet.extend([0x18, 0xDB, 0, 12, 0, 0, b'd', b'a', b't', b'a']);
    frame(0x0800, &packet)
}

/// The same over IPv6 to 2001:db8::1.
fn datagram_v6(source_port: u16) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 12, 17, 64];
    for last in [2, 1] {
        packet.extend([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(source_port.to_be_bytes());
    packet.extend([0x18, 0xDB, 0, 12, 0, 0, b'd', b'a', b't', b'a']);
    frame(0x86DD, &packet)
}

#[test]
fn several_queues_divide_datagrams_by_their_ports_and_the_first_has_the_rest() {
    if !has_link(1500, 1) {
        return;
    }
    let pool = BufferPool::new(4096, 16);
    let (near, mut queues) = PacketPort::open("near", MAX_FRAME_BYTES, 3, &pool).expect("opened");
    let (_far, mut far_queue) = open("far", &pool);
    let addresses = ["192.0.2.1", "2001:db8::1"].map(|text| text.parse().expect("an address"));
    near.receive_only(&wanted(&[], &addresses)).expect("allowed");
    for make in [datagram, datagram_v6] {
        let frames: Vec<_> = (0..60).map(|number| make(50_000 + number)).collect();
        assert!(send(&mut far_queue, &pool, &frames).is_empty());
        let end = Instant::now() + Duration::from_secs(5);
        let mut received = vec![Vec::new(); queues.len()];
        while received.iter().map(Vec::len).sum::<usize>() < frames.len() && Instant::now() < end {
            for (queue, received) in queues.iter_mut().zip(&mut received) {
                received.extend(receive_now(queue));
            }
        }
        assert!(
            received.iter().all(|of_queue| of_queue.len() >= 5),
            "{:?}",
            received.iter().map(Vec::len).collect::<Vec<_>>()
        );
        let mut all = received.concat();
        all.sort();
        assert_eq!(all, frames, "each frame must arrive once");
        // The frames of one sender stay together.
        assert!(send(&mut far_queue, &pool, &vec![frames[7].clone(); 20]).is_empty());
        let place = received.iter().position(|of_queue| of_queue.contains(&frames[7])).expect("a queue has the frame");
        assert_eq!(receive(&mut queues[place], 20).len(), 20);
    }
    let plain: Vec<_> = (0..40).map(|number| frame(0x8624, &[number; 50])).collect();
    assert!(send(&mut far_queue, &pool, &plain).is_empty());
    assert_eq!(receive(&mut queues[0], plain.len()), plain);
    // Each queue sends, and none receives what another queue sent.
    for queue in &mut queues {
        assert!(send(queue, &pool, &plain[..5]).is_empty());
        assert_eq!(receive(&mut far_queue, 5), plain[..5]);
    }
    std::thread::sleep(Duration::from_millis(20));
    assert!(queues.iter_mut().all(|queue| receive_now(queue).is_empty()));
    assert_eq!(near.losses(), Default::default());
}
