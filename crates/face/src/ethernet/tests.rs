//! Frames between a set of ports and a link that the test holds the other end of.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use namehop_forward::buffer::{BufferPool, HEADROOM_BYTES, HeapBuffer, HeapPool, PacketBuffer};
use namehop_forward::face::LinkType;
use proptest::prelude::*;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::counters::LinkDrop;
use crate::registry::{Face, FaceFlags, FaceTable, FaceUpdate};
use crate::ring::Frame;
use crate::socket::FaceEvent;
use crate::wake::Waker;

const HERE: MacAddress = [0x02, 0, 0, 0, 0, 0x01];
const PEER: MacAddress = [0x02, 0, 0, 0, 0, 0x02];
const STRANGER: MacAddress = [0x02, 0, 0, 0, 0, 0x03];
/// Interest `/A`.
const INTEREST: [u8; 13] = [0x05, 0x0B, 0x07, 0x03, 0x08, 0x01, 0x41, 0x0A, 0x04, 1, 2, 3, 4];

/// Both directions of a link; `room` frames can be sent before it is emptied.
#[derive(Default)]
struct Wire {
    incoming: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    room: usize,
}

struct TestPort(Arc<Mutex<Wire>>, HeapPool);

impl FramePort<HeapBuffer> for TestPort {
    fn receive(&mut self, frames: &mut Vec<HeapBuffer>) {
        let incoming = std::mem::take(&mut self.0.lock().expect("wire").incoming);
        frames.extend(incoming.iter().map(|frame| self.1.copy_of(frame).expect("buffer")));
    }

    fn transmit(&mut self, frames: &mut Vec<HeapBuffer>) {
        let mut wire = self.0.lock().expect("wire");
        let count = frames.len().min(wire.room);
        wire.room -= count;
        wire.sent.extend(frames.drain(..count).map(|frame| frame.bytes().to_vec()));
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

const IDLE: Duration = Duration::from_secs(600);

struct Bench {
    set: PortSet<HeapBuffer>,
    control: Arc<PortControl<HeapBuffer>>,
    table: Arc<FaceTable>,
    events: UnboundedReceiver<FaceEvent>,
    pool: HeapPool,
    wire: Arc<Mutex<Wire>>,
}

impl Bench {
    fn new(framing: Framing, max_on_demand_faces: usize) -> Bench {
        let (table, (sender, events)) = (Arc::new(FaceTable::new()), unbounded_channel());
        let waker = Arc::new(Waker::new());
        let (set, control) = PortSet::new(Arc::clone(&table), sender, waker, FaceFlags::CONGESTION_MARKING, true, IDLE);
        let pool = HeapPool::new(8192, 64);
        let wire = Arc::new(Mutex::new(Wire { room: usize::MAX, ..Wire::default() }));
        let mut bench = Bench { set, control: Arc::new(control), table, events, pool, wire };
        let params = PortParams {
            link: Some(Box::new(TestPort(Arc::clone(&bench.wire), bench.pool.clone()))),
            framing,
            address: HERE,
            local_uri: "dev://test0".parse().expect("URI"),
            mtu_bytes: 1500,
            max_on_demand_faces,
            is_up: true,
        };
        bench.ask(move |control| control.add(PortId(0), params).expect("added"));
        bench
    }

    /// Lets the control side ask on a thread of its own while this one is the worker.
    fn ask<T: Send + 'static>(&mut self, question: impl FnOnce(&PortControl<HeapBuffer>) -> T + Send + 'static) -> T {
        let control = Arc::clone(&self.control);
        let asking = thread::spawn(move || question(&control));
        while !asking.is_finished() {
            self.set.obey();
            thread::yield_now();
        }
        asking.join().expect("asked")
    }

    fn face(&mut self, remote: MacAddress) -> Arc<Face> {
        let params = face_params(remote, "dev://test0".parse().expect("URI"), 1500);
        let face = self.table.insert(params).expect("room");
        let attached = Arc::clone(&face);
        self.ask(move |control| control.add_face(PortId(0), attached, remote).expect("attached"));
        face
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().expect("wire")
    }

    fn receive(&mut self, frame: Vec<u8>) -> Vec<Frame<HeapBuffer>> {
        self.wire().incoming.push(frame);
        let mut frames = Vec::new();
        assert!(self.set.receive(&mut frames));
        frames
    }

    fn send(&mut self, face: &Face, packet: &[u8]) {
        let mut frames = vec![self.pool.copy_of(packet).expect("buffer")];
        assert!(self.set.send(face, &mut frames, &self.pool.clone()));
        assert!(frames.is_empty());
    }

    fn dropped(&self, reason: LinkDrop) -> u64 {
        self.table.link_drops().get(reason)
    }
}

fn frame(destination: MacAddress, source: MacAddress, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [destination, source].concat();
    frame.extend_from_slice(&ethertype.to_be_bytes());
    frame.extend_from_slice(payload);
    frame.resize(frame.len().max(MIN_FRAME_BYTES), 0);
    frame
}

#[test]
fn a_frame_reaches_the_face_of_its_sender_without_header_and_padding() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let face = bench.face(PEER);
    let frames = bench.receive(frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST));
    assert_eq!(frames.len(), 1);
    assert_eq!((frames[0].face, frames[0].endpoint), (face.id(), 0));
    assert_eq!(frames[0].buffer.bytes(), INTEREST);
    assert_eq!(face.link_type(), LinkType::PointToPoint);
}

#[test]
fn group_frames_reach_the_multicast_face_with_a_number_for_each_sender() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let (unicast, group) = (bench.face(PEER), bench.face(NDN_GROUP));
    let mut endpoints = Vec::new();
    for sender in [PEER, STRANGER, PEER] {
        let frames = bench.receive(frame(NDN_GROUP, sender, ETHERTYPE_NDN, &INTEREST));
        assert_eq!(frames[0].face, group.id());
        endpoints.push(frames[0].endpoint);
    }
    assert_eq!(endpoints[0], endpoints[2]);
    assert_ne!(endpoints[0], endpoints[1]);
    assert_eq!(bench.receive(frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST))[0].face, unicast.id());
    assert_eq!(group.link_type(), LinkType::MultiAccess);
}

#[test]
fn senders_that_take_turns_in_one_burst_are_told_apart() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let [peer, other, group] = [PEER, STRANGER, NDN_GROUP].map(|address| bench.face(address).id());
    let elsewhere = [0x02, 0, 0, 0, 0, 0x09];
    let burst = [(HERE, PEER), (HERE, PEER), (NDN_GROUP, PEER), (elsewhere, PEER), (HERE, STRANGER), (HERE, PEER)];
    let cut_off = frame(HERE, PEER, ETHERTYPE_NDN, &[5, 200]);
    let incoming = burst.map(|(destination, source)| frame(destination, source, ETHERTYPE_NDN, &INTEREST));
    bench.wire().incoming.extend(incoming.into_iter().chain([cut_off]));
    let mut frames = Vec::new();
    assert!(bench.set.receive(&mut frames));
    let owners: Vec<_> = frames.iter().map(|frame| (frame.face, frame.endpoint != 0)).collect();
    assert_eq!(owners, [(peer, false), (peer, false), (group, true), (other, false), (peer, false)]);
    assert!(frames.iter().all(|frame| frame.buffer.bytes() == INTEREST));
    assert_eq!((bench.dropped(LinkDrop::ForeignFrame), bench.dropped(LinkDrop::MalformedFrame)), (1, 1));
}

#[test]
fn frames_of_nobody_are_dropped_under_their_reason() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    bench.face(PEER);
    let other_group = [0x33, 0x33, 0, 0, 0, 1];
    let mut too_long = INTEREST;
    too_long[1] = 200;
    for (bytes, reason) in [
        (frame(HERE, PEER, 0x0800, &INTEREST), LinkDrop::NotNdnFrame),
        (frame([0xFF; 6], PEER, 0x0806, &[]), LinkDrop::NotNdnFrame),
        (vec![1, 2, 3], LinkDrop::NotNdnFrame),
        (frame(other_group, PEER, ETHERTYPE_NDN, &INTEREST), LinkDrop::UnknownGroup),
        (frame(STRANGER, PEER, ETHERTYPE_NDN, &INTEREST), LinkDrop::ForeignFrame),
        (frame(HERE, NDN_GROUP, ETHERTYPE_NDN, &INTEREST), LinkDrop::ForeignFrame),
        (frame(HERE, STRANGER, ETHERTYPE_NDN, &INTEREST), LinkDrop::UnknownSender),
        (frame(HERE, PEER, ETHERTYPE_NDN, &too_long), LinkDrop::MalformedFrame),
        (frame(HERE, PEER, ETHERTYPE_NDN, &[]), LinkDrop::MalformedFrame),
    ] {
        let before = bench.dropped(reason);
        assert!(bench.receive(bytes).is_empty(), "{reason:?}");
        assert_eq!(bench.dropped(reason), before + 1, "{reason:?}");
    }
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn strangers_make_faces_where_that_is_allowed_up_to_the_limit() {
    let mut bench = Bench::new(Framing::Ethernet, 1);
    let first = bench.receive(frame(HERE, STRANGER, ETHERTYPE_NDN, &INTEREST));
    let face = bench.table.get(first[0].face).expect("made");
    assert_eq!(face.remote_uri().to_string(), "ether://[02:00:00:00:00:03]");
    assert_eq!(face.local_uri().to_string(), "dev://test0");
    assert_eq!(face.persistency(), FacePersistency::OnDemand);
    assert!(face.flags().contains(FaceFlags::CONGESTION_MARKING) && face.self_learning());
    assert!(matches!(bench.events.try_recv(), Ok(FaceEvent::Created(created)) if created.id() == face.id()));
    assert_eq!(bench.receive(frame(HERE, STRANGER, ETHERTYPE_NDN, &INTEREST))[0].face, face.id());

    assert!(bench.receive(frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST)).is_empty());
    assert_eq!(bench.dropped(LinkDrop::TooManyFaces), 1);
    let id = face.id();
    bench.ask(move |control| control.remove_face(id).expect("removed"));
    assert_eq!(bench.receive(frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST)).len(), 1, "its place is free again");
    assert!(bench.receive(frame(HERE, STRANGER, ETHERTYPE_NDN, &[1])).is_empty(), "noise is not worth a face");
}

#[test]
fn the_limit_of_senders_holds_whatever_persistency_their_faces_get() {
    let update = |persistency| FaceUpdate { persistency: Some(persistency), ..FaceUpdate::default() };
    let mut bench = Bench::new(Framing::Ethernet, 1);
    for _ in 0..3 {
        let id = bench.receive(frame(HERE, STRANGER, ETHERTYPE_NDN, &INTEREST))[0].face;
        let face = bench.table.get(id).expect("made");
        assert!(face.expiration_period_ms().is_some());
        face.update(&update(FacePersistency::Persistent)).expect("allowed");
        assert_eq!(face.expiration_period_ms(), None, "it expires no more");
        bench.ask(move |control| control.remove_face(id).expect("removed"));
        bench.table.remove(id);
    }
    // A face made by command is none of a sender, even when it becomes on-demand.
    let made = bench.face(PEER);
    made.update(&update(FacePersistency::OnDemand)).expect("allowed");
    let id = made.id();
    bench.ask(move |control| control.remove_face(id).expect("removed"));
    let other = [2, 0, 0, 0, 0, 9];
    let answers = [STRANGER, other].map(|sender| bench.receive(frame(HERE, sender, ETHERTYPE_NDN, &INTEREST)).len());
    assert_eq!(answers, [1, 0], "one sender has a face, the other finds no place");
}

#[test]
fn what_is_sent_has_header_and_padding() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let (face, group) = (bench.face(PEER), bench.face(NDN_GROUP));
    bench.send(&face, &INTEREST);
    bench.send(&group, &[6; 100]);
    assert_eq!(bench.set.flush(), None);
    let expected = [frame(PEER, HERE, ETHERTYPE_NDN, &INTEREST), frame(NDN_GROUP, HERE, ETHERTYPE_NDN, &[6; 100])];
    assert_eq!(bench.wire().sent, expected);
    assert_eq!((expected[0].len(), expected[1].len()), (MIN_FRAME_BYTES, 114));
}

#[test]
fn a_buffer_without_headroom_is_copied() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let face = bench.face(PEER);
    let mut buffer = bench.pool.allocate(10).expect("buffer");
    buffer.prepend(HEADROOM_BYTES).expect("all of it").fill(6);
    let pool = bench.pool.clone();
    assert!(bench.set.send(&face, &mut vec![buffer], &pool));
    bench.set.flush();
    assert_eq!(bench.wire().sent, [frame(PEER, HERE, ETHERTYPE_NDN, &[6; HEADROOM_BYTES])]);
}

#[test]
fn a_slow_link_fills_a_bounded_queue_whose_length_the_faces_show() {
    const LIMIT: usize = 1000;
    let mut bench = Bench::new(Framing::Ethernet, 0);
    bench.set.limit_queues(LIMIT);
    let face = bench.face(PEER);
    bench.wire().room = 10;
    bench.send(&face, &INTEREST);
    for _ in 0..30 {
        bench.send(&face, &INTEREST);
    }
    assert_eq!(bench.set.flush(), Some(RETRY_PAUSE), "something is left");
    bench.send(&face, &INTEREST);
    let queued = || face.send_queue_bytes.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(queued(), 22 * MIN_FRAME_BYTES);
    // As many may wait as are left of all.
    for _ in 0..LIMIT {
        bench.send(&face, &INTEREST);
    }
    let waiting = LIMIT - 21;
    assert_eq!(face.counters.link_drop(LinkDrop::SendQueueFull), (22 + LIMIT - waiting) as u64);
    assert_eq!(bench.set.flush(), Some(RETRY_PAUSE));
    bench.send(&face, &INTEREST);
    assert_eq!(queued(), waiting * MIN_FRAME_BYTES, "no room beside those");
    bench.wire().room = usize::MAX;
    assert_eq!(bench.set.flush(), None);
    assert_eq!((queued(), bench.wire().sent.len()), (0, 10 + waiting));
}

#[test]
fn what_waits_on_a_port_that_is_closed_is_counted() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let face = bench.face(PEER);
    bench.wire().room = 0;
    for _ in 0..5 {
        bench.send(&face, &INTEREST);
    }
    bench.set.flush();
    bench.ask(|control| control.remove(PortId(0)).map(|_| ()).expect("removed"));
    assert_eq!((bench.dropped(LinkDrop::LinkDown), bench.pool.in_use()), (5, 0));
}

/// Frames for a second port that are never taken.
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
            let local: FaceUri = format!("dev://slow{number}").parse().expect("URI");
            let params = PortParams {
                link: Some(Box::new(TestPort(Arc::clone(wire), bench.pool.clone()))),
                framing: Framing::Ethernet,
                address: HERE,
                local_uri: local.clone(),
                mtu_bytes: 1500,
                max_on_demand_faces: 0,
                is_up: true,
            };
            bench.ask(move |control| control.add(PortId(number), params)).expect("added");
            let face = bench.table.insert(face_params(PEER, local, 1500)).expect("room");
            let attached = Arc::clone(&face);
            bench.ask(move |control| control.add_face(PortId(number), attached, PEER)).expect("attached");
            face
        })
        .collect();
    for _ in 0..300 {
        for face in slow.iter().chain([&fast]) {
            bench.send(face, &INTEREST);
            bench.send(face, &INTEREST);
        }
        assert_eq!(bench.set.flush(), Some(RETRY_PAUSE));
    }
    assert_eq!(bench.wire().sent.len(), 600, "the fast link sends all");
    assert_eq!(fast.counters.link_drop(LinkDrop::SendQueueFull), 0);
    let waiting: Vec<u64> = slow.iter().map(|face| 600 - face.counters.link_drop(LinkDrop::SendQueueFull)).collect();
    assert!(waiting.iter().all(|count| (140..=152).contains(count)), "a fair share of a quarter each: {waiting:?}");
    assert_eq!(bench.pool.in_use() as u64, waiting.iter().sum::<u64>());
}

#[test]
fn a_link_that_is_down_or_being_restarted_drops_and_counts() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let face = bench.face(PEER);
    bench.wire().room = 0;
    bench.send(&face, &INTEREST);
    assert_eq!(bench.set.flush(), Some(RETRY_PAUSE));
    bench.send(&face, &INTEREST);
    let queued = || face.send_queue_bytes.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(queued(), 2 * MIN_FRAME_BYTES);
    bench.control.set_state(PortId(0), false, 1500);
    assert!(bench.set.has_changes() && bench.set.obey());
    assert_eq!((bench.dropped(LinkDrop::LinkDown), queued()), (2, 0), "what waited");
    bench.send(&face, &INTEREST);
    assert_eq!(face.counters.link_drop(LinkDrop::LinkDown), 1);

    bench.control.set_state(PortId(0), true, 1500);
    let link = bench.ask(|control| control.take_link(PortId(0))).expect("answered").expect("there");
    bench.send(&face, &INTEREST);
    assert_eq!(face.counters.link_drop(LinkDrop::LinkDown), 2);
    bench.wire().room = 1;
    let elsewhere = [0x02, 0, 0, 0, 0, 0x09];
    bench.ask(move |control| control.give_link(PortId(0), link, elsewhere)).expect("given");
    bench.send(&face, &INTEREST);
    assert_eq!(bench.set.flush(), None);
    assert_eq!(bench.wire().sent, [frame(PEER, elsewhere, ETHERTYPE_NDN, &INTEREST)]);
    assert_eq!(bench.receive(frame(elsewhere, PEER, ETHERTYPE_NDN, &INTEREST)).len(), 1);
}

#[test]
fn a_face_that_was_removed_neither_sends_nor_receives() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let face = bench.face(PEER);
    let id = face.id();
    bench.ask(move |control| control.remove_face(id)).expect("removed");
    assert!(bench.receive(frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST)).is_empty());
    let mut frames = vec![bench.pool.copy_of(&INTEREST).expect("buffer")];
    let pool = bench.pool.clone();
    assert!(!bench.set.send(&face, &mut frames, &pool), "it is no face of a port");
    assert_eq!(frames.len(), 1);
    bench.ask(|control| control.remove(PortId(0))).expect("answered").expect("the link comes back");
    assert!(bench.set.is_empty());
}

#[test]
fn a_bare_link_has_one_face_and_no_headers() {
    let mut bench = Bench::new(Framing::Bare, 0);
    let mut padded = INTEREST.to_vec();
    padded.resize(60, 0);
    assert!(bench.receive(padded.clone()).is_empty(), "no face yet");
    assert_eq!(bench.dropped(LinkDrop::LinkDown), 1);
    let face = bench.table.insert(bare_face_params("memif:///a?id=1".parse().expect("URI"), 2048)).expect("room");
    let attached = Arc::clone(&face);
    bench.ask(move |control| control.add_face(PortId(0), attached, [0; 6])).expect("attached");
    let frames = bench.receive(padded);
    assert_eq!((frames[0].face, frames[0].buffer.bytes()), (face.id(), &INTEREST[..]));
    bench.send(&face, &INTEREST);
    bench.set.flush();
    assert_eq!(bench.wire().sent, [INTEREST]);
}

#[test]
fn a_worker_that_has_ended_is_found_out_soon() {
    let Bench { set, control, .. } = Bench::new(Framing::Ethernet, 0);
    drop(set);
    let before = Instant::now();
    for _ in 0..1000 {
        assert_eq!(control.take_link(PortId(0)).err(), Some(WorkerSilent));
    }
    assert!(before.elapsed() < Duration::from_secs(5), "however many ask");
}

/// A worker that hangs for long gives its link to nobody: the control side has given it up.
#[test]
fn a_link_that_nobody_waits_for_any_more_is_closed_by_the_control_side() {
    let Bench { mut set, control, wire, table, .. } = Bench::new(Framing::Ethernet, 0);
    let control = Arc::into_inner(control).expect("not shared").with_patience(Duration::ZERO);
    assert_eq!(control.take_link(PortId(0)).err(), Some(WorkerSilent));
    let face = table.insert(face_params(PEER, "dev://test0".parse().expect("URI"), 1500)).expect("room");
    assert_eq!(control.add_face(PortId(0), Arc::clone(&face), PEER), Err(WorkerSilent));
    table.remove(face.id());
    assert!(set.obey());
    assert_eq!(Arc::strong_count(&wire), 2, "the worker takes no time for closing the link");
    control.set_state(PortId(0), true, 1500);
    assert_eq!(Arc::strong_count(&wire), 1, "the control side does");
    let pool = HeapPool::new(1, 1);
    assert!(!set.send(&face, &mut vec![pool.copy_of(&INTEREST).expect("buffer")], &pool), "the face was given up");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever arrives is a packet of a face or a counted drop.
    #[test]
    fn arbitrary_frames_are_packets_or_counted(
        is_bare in any::<bool>(),
        payloads in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..120)), 1..20),
    ) {
        let framing = if is_bare { Framing::Bare } else { Framing::Ethernet };
        let mut bench = Bench::new(framing, 2);
        bench.face(PEER);
        let count = payloads.len() as u64;
        for (has_header, payload) in payloads {
            let bytes = if has_header { frame(HERE, PEER, ETHERTYPE_NDN, &payload) } else { payload };
            bench.wire().incoming.push(bytes);
        }
        let mut frames = Vec::new();
        prop_assert!(bench.set.receive(&mut frames));
        let dropped: u64 = LinkDrop::ALL.iter().map(|&reason| bench.dropped(reason)).sum();
        prop_assert_eq!(frames.len() as u64 + dropped, count);
        for frame in frames {
            prop_assert!(namehop_wire::tlv::read_single_element(frame.buffer.bytes()).is_ok());
        }
    }
}
