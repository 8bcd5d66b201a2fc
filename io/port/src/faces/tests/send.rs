//! Tests of sending: headers, and queues of links that are slow, down or being restarted.

use namehop_packet::HEADROOM_BYTES;

use super::*;

#[test]
fn what_is_sent_has_header_and_padding() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let (face, group) = (bench.face(PEER), bench.face(NDN_GROUP));
    bench.send(&face, &INTEREST);
    bench.send(&group, &[6; 100]);
    assert_eq!(bench.flush(), None);
    let expected = [frame(PEER, HERE, ETHERTYPE_NDN, &INTEREST), frame(NDN_GROUP, HERE, ETHERTYPE_NDN, &[6; 100])];
    assert_eq!(bench.wire().sent, expected);
    assert_eq!((expected[0].len(), expected[1].len()), (MIN_FRAME_BYTES, 114));
}

#[test]
fn what_is_sent_into_a_vlan_has_its_tag() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let face = bench.face_on(0, "dev://test0", Peer::Vlan(PEER, vlan(4094)));
    bench.send(&face, &INTEREST);
    bench.send(&face, &[6; 100]);
    assert_eq!(bench.flush(), None);
    let expected = [tagged(PEER, HERE, 4094, &INTEREST), tagged(PEER, HERE, 4094, &[6; 100])];
    assert_eq!(bench.wire().sent, expected);
    assert_eq!((expected[0].len(), expected[1].len()), (MIN_FRAME_BYTES + 4, 118));

    let queue =
        bench.ask(|control| control.take_queue(PortId(0))).expect("answered").expect("the worker has the queue");
    let elsewhere = [0x02, 0, 0, 0, 0, 0x09];
    bench
        .ask(move |control| control.give_queue(PortId(0), Some(queue), elsewhere, 1500))
        .expect("the worker takes the queue");
    bench.send(&face, &[6; 100]);
    bench.flush();
    assert_eq!(bench.wire().sent[2], tagged(PEER, elsewhere, 4094, &[6; 100]), "the VLAN must not change");
}

#[test]
fn a_buffer_without_headroom_is_copied() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let face = bench.face(PEER);
    let mut buffer = bench.pool.allocate(10).expect("buffer");
    buffer.prepend(HEADROOM_BYTES).expect("the whole headroom is available").fill(6);
    bench.send_frames(&face, &mut vec![buffer]);
    bench.flush();
    assert_eq!(bench.wire().sent, [frame(PEER, HERE, ETHERTYPE_NDN, &[6; HEADROOM_BYTES])]);
}

#[test]
fn a_slow_link_fills_a_bounded_queue_and_faces_report_its_length() {
    const LIMIT: usize = 1000;
    let mut bench = Bench::new(Framing::Ethernet, 0);
    bench.set.limit_queues(LIMIT);
    let face = bench.face(PEER);
    bench.wire().room = 10;
    bench.send(&face, &INTEREST);
    for _ in 0..30 {
        bench.send(&face, &INTEREST);
    }
    assert_eq!(bench.flush(), Some(RETRY_PAUSE), "frames must be left");
    bench.send(&face, &INTEREST);
    let queued = || face.send_queue_bytes.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(queued(), 22 * MIN_FRAME_BYTES);
    // At most as many frames may wait as the limit leaves free.
    for _ in 0..LIMIT {
        bench.send(&face, &INTEREST);
    }
    let waiting = LIMIT - 21;
    assert_eq!(face.counters.link_drop(LinkDrop::SendQueueFull), (22 + LIMIT - waiting) as u64);
    assert_eq!(bench.flush(), Some(RETRY_PAUSE));
    bench.send(&face, &INTEREST);
    assert_eq!(queued(), waiting * MIN_FRAME_BYTES, "the queue must be full");
    bench.wire().room = usize::MAX;
    assert_eq!(bench.flush(), None);
    assert_eq!((queued(), bench.wire().sent.len()), (0, 10 + waiting));
}

/// Three links take no frames; the fourth takes all.
#[test]
fn a_congested_link_leaves_others_room_in_their_queues_and_keeps_none_of_their_frames() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    bench.set.limit_queues(600);
    let fast = bench.face(PEER);
    let wires: Vec<Arc<Mutex<Wire>>> = (0..3).map(|_| Arc::default()).collect();
    let slow: Vec<Arc<Face>> = wires
        .iter()
        .zip(1_u16..)
        .map(|(wire, number)| {
            let uri = format!("dev://slow{number}");
            let params = PortParams {
                queue: Some(Box::new(TestPort(Arc::clone(wire), bench.pool.clone()))),
                uri: parse_uri(&uri).expect("URI"),
                ..bench.params(0, PortNetwork::default())
            };
            bench.ask(move |control| control.add(PortId(number), params)).expect("added");
            bench.face_on(number, &uri, Peer::Ethernet(PEER))
        })
        .collect();
    for _ in 0..300 {
        for face in slow.iter().chain([&fast]) {
            bench.send(face, &INTEREST);
            bench.send(face, &INTEREST);
        }
        assert_eq!(bench.flush(), Some(RETRY_PAUSE));
    }
    assert_eq!(bench.wire().sent.len(), 600, "the fast link must send all frames");
    assert_eq!(fast.counters.link_drop(LinkDrop::SendQueueFull), 0);
    let waiting: Vec<u64> = slow.iter().map(|face| 600 - face.counters.link_drop(LinkDrop::SendQueueFull)).collect();
    assert!(waiting.iter().all(|count| (140..=152).contains(count)), "each slow link must get a quarter: {waiting:?}");
    assert_eq!(bench.pool.in_use() as u64, waiting.iter().sum::<u64>());
}

#[test]
fn a_link_that_is_down_or_being_restarted_drops_and_counts() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let face = bench.face(PEER);
    bench.wire().room = 0;
    bench.send(&face, &INTEREST);
    assert_eq!(bench.flush(), Some(RETRY_PAUSE));
    bench.send(&face, &INTEREST);
    let queued = || face.send_queue_bytes.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(queued(), 2 * MIN_FRAME_BYTES);
    bench.control.set_state(PortId(0), false);
    assert!(bench.set.has_work() && bench.set.apply_changes(&mut bench.records));
    assert_eq!((bench.dropped(LinkDrop::LinkDown), queued()), (2, 0), "waiting frames must be dropped");
    bench.send(&face, &INTEREST);
    assert_eq!(face.counters.link_drop(LinkDrop::LinkDown), 1);

    bench.control.set_state(PortId(0), true);
    let queue =
        bench.ask(|control| control.take_queue(PortId(0))).expect("answered").expect("the worker has the queue");
    bench.send(&face, &INTEREST);
    assert_eq!(face.counters.link_drop(LinkDrop::LinkDown), 2);
    bench.wire().room = 1;
    let elsewhere = [0x02, 0, 0, 0, 0, 0x09];
    bench
        .ask(move |control| control.give_queue(PortId(0), Some(queue), elsewhere, 1500))
        .expect("the worker takes the queue");
    bench.send(&face, &INTEREST);
    assert_eq!(bench.flush(), None);
    assert_eq!(bench.wire().sent, [frame(PEER, elsewhere, ETHERTYPE_NDN, &INTEREST)]);
    assert_eq!(bench.receive(frame(elsewhere, PEER, ETHERTYPE_NDN, &INTEREST)).len(), 1);
}

/// When the peer of a memif comes back, it may send before the periodic check has noticed that the link is up.
#[test]
fn a_link_on_which_frames_come_is_up() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let face = bench.face(PEER);
    bench.control.set_state(PortId(0), false);
    bench.set.apply_changes(&mut bench.records);
    bench.send(&face, &INTEREST);
    assert_eq!(face.counters.link_drop(LinkDrop::LinkDown), 1);
    assert_eq!(bench.receive(frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST)).len(), 1);
    bench.send(&face, &INTEREST);
    bench.flush();
    assert_eq!((bench.wire().sent.len(), face.counters.link_drop(LinkDrop::LinkDown)), (1, 1));
}

#[test]
fn what_waits_on_a_port_that_is_closed_is_counted() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let face = bench.face(PEER);
    bench.wire().room = 0;
    for _ in 0..5 {
        bench.send(&face, &INTEREST);
    }
    bench.flush();
    bench.ask(|control| control.remove(PortId(0)).map(|_| ()).expect("removed"));
    assert_eq!((bench.dropped(LinkDrop::LinkDown), bench.pool.in_use()), (5, 0));
}
