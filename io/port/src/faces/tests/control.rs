//! Tests of adding and removing faces and links, and of a worker that has ended.

use std::time::Instant;

use super::*;

#[test]
fn a_face_that_was_removed_neither_sends_nor_receives() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let face = bench.face(PEER);
    let id = face.id();
    bench.ask(move |control| control.remove_face(id)).expect("removed");
    assert!(bench.receive(frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST)).is_empty());
    assert!(bench.records.get(id).is_none(), "the worker must have removed the face");
    bench.ask(|control| control.remove(PortId(0))).expect("answered").expect("the link is returned");
    assert!(bench.set.is_empty());
}

#[test]
fn a_bare_link_has_one_face_and_no_headers() {
    let mut bench = Bench::new(Framing::Bare, 0);
    let mut padded = INTEREST.to_vec();
    padded.resize(60, 0);
    assert!(bench.receive(padded.clone()).is_empty(), "no face exists yet");
    assert_eq!(bench.dropped(LinkDrop::LinkDown), 1);
    let face = bench.face_on(0, "memif:///a?id=1", Peer::Bare);
    assert_eq!(*face.remote_uri(), *face.local_uri());
    let frames = bench.receive(padded);
    assert_eq!((frames[0].face, frames[0].buffer.bytes()), (face.id(), &INTEREST[..]));
    bench.send(&face, &INTEREST);
    bench.flush();
    assert_eq!(bench.wire().sent, [INTEREST]);
}

#[test]
fn a_worker_that_has_ended_is_found_out_soon() {
    let Bench { set, control, .. } = Bench::new(Framing::Ethernet, 0);
    drop(set);
    let before = Instant::now();
    for _ in 0..1000 {
        assert_eq!(control.take_queue(PortId(0)).err(), Some(WorkerSilent));
    }
    assert!(before.elapsed() < Duration::from_secs(5), "every command must fail quickly");
}

/// If a worker answers too late, the queue is returned, and the control side closes it later.
#[test]
fn the_control_side_closes_a_link_without_a_waiting_request() {
    let Bench { mut set, mut records, control, wire, table, .. } = Bench::new(Framing::Ethernet, 0);
    let control = Arc::into_inner(control).expect("the handle is not shared").with_timeout(Duration::ZERO);
    assert_eq!(control.take_queue(PortId(0)).err(), Some(WorkerSilent));
    let peer = Peer::Ethernet(PEER);
    let face = table.insert(face_params(peer, &parse_uri("dev://test0").expect("URI"), 1500)).expect("room");
    assert_eq!(control.add_face(PortId(0), Arc::clone(&face), peer), Err(WorkerSilent));
    table.remove(face.id());
    assert!(set.apply_changes(&mut records));
    assert_eq!(Arc::strong_count(&wire), 2, "the worker must not close the link");
    control.set_state(PortId(0), true);
    assert_eq!(Arc::strong_count(&wire), 1, "the control side must close the link");
    assert!(records.get(face.id()).is_none(), "the face must be removed");
}
