//! Tests how ports resolve the hardware addresses of next hops, and what happens to waiting frames.

use super::*;
use crate::encapsulation::ip::Datagram;
use crate::encapsulation::{HEADER_BYTES, arp, udp};

#[test]
fn the_next_hop_is_asked_for_and_what_waits_goes_out_with_its_address() {
    for remote in [IpAddr::V4(OTHER), IpAddr::V6(OTHER_V6), IpAddr::V4(REMOTE)] {
        let mut bench = bench(0);
        let face = bench.face_on(0, "dev://test0", udp_peer(remote));
        assert_eq!(face.mtu_bytes(), if remote.is_ipv4() { 1472 } else { 1452 });
        assert!(bench.send_one(&face).is_empty(), "the frame must wait for address resolution");
        let questions = bench.poll_after(0);
        assert_eq!(questions.len(), 1);
        let next_hop = if remote == IpAddr::V4(REMOTE) { IpAddr::V4(GATEWAY) } else { remote };
        let (expected, answer) = match next_hop {
            IpAddr::V4(next_hop) => (arp::question((HERE, OWN), next_hop, None).to_vec(), arp_answer(PEER, next_hop)),
            IpAddr::V6(next_hop) => (
                neighbour_discovery::question((HERE, OWN_V6), next_hop, None).to_vec(),
                neighbour_discovery::answer(PEER, next_hop, (HERE, OWN_V6)).to_vec(),
            ),
        };
        assert_eq!(questions[0], expected);
        let sent = bench.receive_control(answer);
        assert_eq!(sent.len(), 1);
        assert_eq!((&sent[0][..6], &sent[0][6..12]), (&PEER[..], &HERE[..]));
        assert_eq!(bench.send_one(&face), sent, "the next frame must be sent at once");
        let read = if remote.is_ipv4() { Datagram::read_v4 } else { Datagram::read_v6 }(&sent[0], HEADER_BYTES);
        let read = read.expect("a complete datagram");
        assert_eq!(read.destination, remote);
        assert_eq!(sent[0][udp::read(&sent[0], &read).expect("a complete datagram").payload], INTEREST);
        assert_eq!(bench.total_drops(), 0);
    }
}

#[test]
fn a_silent_next_hop_is_dropped_and_resolved_again() {
    let mut bench = bench(0);
    let face = bench.face_on(0, "dev://test0", udp_peer(OTHER.into()));
    for _ in 0..20 {
        bench.send_one(&face);
    }
    let unresolved = |bench: &Bench| bench.dropped(LinkDrop::NextHopUnresolved);
    assert_eq!(unresolved(&bench), 4, "only sixteen frames may wait");
    let questions: usize = (0..100).map(|_| bench.poll_after(100).len()).sum();
    assert_eq!(questions, 6, "requests must be sent at 0, 1, 2, 3, 5 and 9 s");
    assert_eq!(unresolved(&bench), 20, "no frame may wait any longer");
    assert_eq!(face.counters.link_drop(LinkDrop::NextHopUnresolved), 20);
    assert!(bench.send_one(&face).is_empty());
    assert_eq!((unresolved(&bench), bench.pool.in_use()), (21, 0));
    let questions: usize = (0..1000).map(|_| bench.poll_after(100).len()).sum();
    assert!((6..=9).contains(&questions), "{questions} requests in 100 s");
    // The next hop comes back and sends a request itself.
    let question = Arp { is_reply: false, sender: PEER, sender_ip: OTHER, target: [0; 6], target_ip: OWN };
    assert_eq!(
        bench.receive_control(question.to_frame(&BROADCAST).to_vec()).len(),
        2,
        "a reply and a request must be sent"
    );
    assert!(bench.send_one(&face).is_empty(), "a request of the peer alone must not resolve its address");
    bench.poll_after(1_000);
    assert_eq!(bench.receive_control(arp_answer(PEER, OTHER)).len(), 1);
    assert_eq!(bench.send_one(&face).len(), 1);
}

#[test]
fn a_next_hop_is_probed_and_replaced_only_when_it_is_silent() {
    let mut bench = bench(0);
    let face = bench.face_on(0, "dev://test0", udp_peer(OTHER.into()));
    bench.resolve(OTHER, PEER);
    let goes_to = |bench: &mut Bench| bench.send_one(&face).pop().map(|frame| frame[..6].to_vec());
    assert_eq!(bench.poll_after(29_000), Vec::<Vec<u8>>::new());
    let questions = bench.poll_after(1_500);
    assert_eq!(
        questions,
        [arp::question((HERE, OWN), OTHER, Some(PEER)).to_vec()],
        "the request must go to the known address"
    );
    bench.receive_control(arp_answer(PEER, OTHER));

    // Another host claims to be the next hop, solicited or not: the known one is asked, and stays.
    bench.poll_after(2_000);
    for claim in [
        arp_answer(UNKNOWN, OTHER),
        Arp { is_reply: true, sender: UNKNOWN, sender_ip: OTHER, target: BROADCAST, target_ip: OTHER }
            .to_frame(&BROADCAST)
            .to_vec(),
        Arp { is_reply: false, sender: UNKNOWN, sender_ip: OTHER, target: [0; 6], target_ip: OWN }
            .to_frame(&BROADCAST)
            .to_vec(),
    ] {
        let before = bench.dropped(LinkDrop::NeighbourConflict);
        assert!(bench.receive(claim).is_empty());
        assert_eq!(bench.dropped(LinkDrop::NeighbourConflict), before + 1);
    }
    let sent = bench.poll_after(0);
    assert_eq!(sent, [arp::question((HERE, OWN), OTHER, Some(PEER)).to_vec()], "one request for any number of claims");
    assert!(bench.receive(arp_answer(UNKNOWN, OTHER)).is_empty(), "a reply from another address");
    assert_eq!(goes_to(&mut bench).as_deref(), Some(&PEER[..]));
    bench.receive_control(arp_answer(PEER, OTHER));
    assert_eq!(goes_to(&mut bench).as_deref(), Some(&PEER[..]));

    // It falls silent: another host replaces it only after three requests.
    bench.poll_after(2_000);
    assert!(bench.receive(arp_answer(UNKNOWN, OTHER)).is_empty());
    let asked: Vec<_> = (0..5).flat_map(|_| bench.poll_after(1_000)).map(|frame| frame[..6].to_vec()).collect();
    assert_eq!(asked, [PEER, PEER, PEER, BROADCAST, BROADCAST, BROADCAST].map(|address| address.to_vec()));
    bench.receive_control(arp_answer(UNKNOWN, OTHER));
    assert_eq!(goes_to(&mut bench).as_deref(), Some(&UNKNOWN[..]));
}

#[test]
fn a_configured_hardware_address_is_never_asked_for() {
    let mut bench = bench(0);
    let local = "dev://test0?ip=192.0.2.1&port=6363&mac=02:00:00:00:00:03";
    let face = bench.face_on(0, "dev://test0", peer("udp4://192.0.2.2:6363", local));
    assert!(bench.poll_after(60_000).is_empty());
    assert!(bench.receive_control(arp_answer(PEER, OTHER)).is_empty());
    assert_eq!(bench.send_one(&face)[0][..6], UNKNOWN);
    assert_eq!(bench.set.next_deadline(), Timestamp::NEVER);
}

#[test]
fn an_interrupted_link_and_another_hardware_address_are_resolved_anew() {
    let mut bench = bench(0);
    let face = bench.face_on(0, "dev://test0", udp_peer(OTHER.into()));
    bench.resolve(OTHER, PEER);
    assert_eq!(bench.send_one(&face).len(), 1);
    bench.ask(|control| {
        control.set_state(PortId(0), false);
        control.set_state(PortId(0), true);
    });
    bench.set.apply_changes(&mut bench.records);
    assert!(bench.send_one(&face).is_empty());
    bench.resolve(OTHER, UNKNOWN);
    assert_eq!(bench.send_one(&face)[0][..6], UNKNOWN);
    let queue = || Box::new(TestPort(Arc::clone(&bench.wire), bench.pool.clone()));
    let (same, queue) = (queue(), queue());
    bench
        .ask(move |control| control.give_queue(PortId(0), Some(same), HERE, 1400).expect("the worker takes the queue"));
    assert_eq!(bench.send_one(&face)[0][..6], UNKNOWN, "a link with other frames must count as the same link");
    let here = [2, 0, 0, 0, 0, 0x55];
    bench.ask(move |control| {
        control.give_queue(PortId(0), Some(queue), here, 1500).expect("the worker takes the queue")
    });
    assert!(bench.send_one(&face).is_empty());
    let question = bench.poll_after(1_000).remove(0);
    assert_eq!(question[6..12], here);
}

#[test]
fn what_waits_for_all_next_hops_is_bounded_and_goes_with_its_face() {
    let mut bench = bench(0);
    let faces: Vec<_> =
        (2..40).map(|last| bench.face_on(0, "dev://test0", udp_peer(Ipv4Addr::new(192, 0, 2, last).into()))).collect();
    for face in &faces {
        for _ in 0..16 {
            bench.send_one(face);
        }
    }
    assert_eq!(bench.pool.in_use(), 256);
    for face in faces {
        let id = face.id();
        bench.ask(move |control| control.remove_face(id).expect("removed"));
    }
    assert_eq!(bench.pool.in_use(), 0);
    assert_eq!(bench.total_drops(), 38 * 16);
    assert!(bench.poll_after(60_000).is_empty(), "no requests may be sent for unused next hops");
}
