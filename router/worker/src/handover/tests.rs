//! Workers without threads: packets that arrive at one worker and belong to another, and packets that find a ring full.

mod moved;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use namehop_engine::dispatch::NameDispatch;
use namehop_engine::engine::{CsConfig, Engine, EngineConfig};
use namehop_engine::fib::{FibWriter, NextHop};
use namehop_engine::strategy::StrategyInstance;
use namehop_face::counters::LinkDrop;
use namehop_face::registry::{Face, FaceFlags, FaceParams, FaceTable, FaceUpdate};
use namehop_face::ring::{Frame, FrameRing};
use namehop_face::wake::Waker;
use namehop_hash::{DispatchKey, HashKey};
use namehop_packet::{BufferPool, FaceId, Timestamp};
use namehop_port::faces::PortSet;
use namehop_wire::lp::{LpHeader, LpPacket, PitToken, encode_packet};
use namehop_wire::security::DigestSigner;
use namehop_wire::{DataBuilder, InterestBuilder, Name};
use tokio::sync::mpsc::unbounded_channel;

use super::super::command::WorkerCommand;
use super::super::{Worker, WorkerHandle, WorkerRings};
use super::*;

const WORKERS: usize = 4;

struct Bench {
    workers: Vec<Worker>,
    handles: Vec<WorkerHandle>,
    rings: Vec<WorkerRings>,
    table: Arc<FaceTable>,
    pool: BufferPool,
    dispatch: Arc<NameDispatch>,
    fib: FibWriter<StrategyInstance>,
    now: Timestamp,
}

impl Bench {
    fn new() -> Bench {
        let (key, pool) = (HashKey::new(1, 2), BufferPool::new(16_384, 16));
        let fib = FibWriter::new(key, StrategyInstance::default()).expect("memory");
        let dispatch = Arc::new(NameDispatch::new(WORKERS, 2, DispatchKey::new(3, 4)));
        let table = Arc::new(FaceTable::new());
        table.set_workers(WORKERS);
        let wakers: Vec<_> = (0..WORKERS).map(|_| Arc::new(Waker::new())).collect();
        let ring = |waker: &Arc<Waker>| Arc::new(FrameRing::new(4_096, Arc::clone(waker)));
        let (to_sockets, to_control) = (ring(&wakers[0]), ring(&wakers[0]));
        let (mut workers, mut handles, mut rings) = (Vec::new(), Vec::new(), Vec::new());
        for handover in Handover::connect(&dispatch, &wakers) {
            let worker = handover.worker();
            let cs = CsConfig { capacity_packets: 64, capacity_bytes: 1 << 18, ..CsConfig::default() };
            let config = EngineConfig {
                worker: worker as u8,
                pit_capacity: 4_096,
                cs,
                dead_nonce_capacity: 16,
                ..EngineConfig::default()
            };
            let engine = Engine::new(config, fib.reader(), pool.clone(), key).expect("memory");
            let waker = Arc::clone(&wakers[worker]);
            let of_worker = WorkerRings {
                from_streams: ring(&waker),
                from_datagrams: ring(&waker),
                to_sockets: Arc::clone(&to_sockets),
                from_control: ring(&waker),
                to_control: Arc::clone(&to_control),
                to_control_from_neighbours: Arc::clone(&to_control),
            };
            let (ports, _) = PortSet::new(
                Arc::clone(&table),
                unbounded_channel().0,
                Arc::clone(&waker),
                FaceFlags::default(),
                false,
                Duration::from_secs(600),
            );
            let table = Arc::clone(&table);
            let (worker, handle) = Worker::new(engine, pool.clone(), table, of_worker.clone(), ports, Some(handover));
            workers.push(worker);
            handles.push(handle);
            rings.push(of_worker);
        }
        Bench { workers, handles, rings, table, pool, dispatch, fib, now: Timestamp(1) }
    }

    /// Creates a face that all workers know.
    fn face(&self, home: usize) -> Arc<Face> {
        let face = self.unknown_face(home);
        self.handles.iter().for_each(|handle| handle.send(WorkerCommand::AddFace(Arc::clone(&face), None)));
        face
    }

    /// Creates a face to a peer that returns PIT tokens, which no worker knows yet.
    fn unknown_face(&self, home: usize) -> Arc<Face> {
        let params = FaceParams::new("udp4://192.0.2.1:6363".parse().expect("URI"), "fd://5".parse().expect("URI"));
        let flags = FaceFlags::PIT_TOKENS_ON;
        self.table.insert(FaceParams { home_worker: Some(home), flags, ..params }).expect("room")
    }

    fn route(&mut self, prefix: &str, face: &Face) {
        let prefix: Name = prefix.parse().expect("a name");
        self.fib.set_nexthops(prefix.as_ref(), &[NextHop { face: face.id(), cost: 1 }]).expect("memory");
    }

    /// Returns a name under `/a` that belongs to this worker.
    fn name_of(&self, worker: usize) -> Name {
        let mut names = (0..).map(|number| format!("/a/n{number}/x").parse::<Name>().expect("a name"));
        names
            .find(|name| self.dispatch.entry_of(name.value()).is_some_and(|(_, owner)| usize::from(owner) == worker))
            .expect("a name of this worker")
    }

    fn give(&self, worker: usize, face: &Face, frame: &[u8]) {
        let buffer = self.pool.copy_of(frame).expect("buffer");
        assert!(self.rings[worker].from_datagrams.push(Frame::new(face.id(), 0, buffer)).is_ok());
    }

    /// Runs poll iterations of all workers until none has work.
    fn run(&mut self) {
        while self.workers.iter().any(Worker::has_work) {
            for worker in &mut self.workers {
                worker.turn(self.now);
            }
        }
    }

    /// Returns the frames that were sent: the face, the PIT token, the packet.
    fn sent(&self) -> Vec<(FaceId, PitToken, Vec<u8>)> {
        let mut frames = Vec::new();
        self.rings[0].to_sockets.pop_burst(&mut frames, usize::MAX);
        let frames = frames.into_iter().map(|frame| {
            let packet = LpPacket::decode(frame.buffer.bytes()).expect("a frame");
            (frame.face, packet.pit_token, packet.fragment.expect("a packet").to_vec())
        });
        frames.collect()
    }

    fn sum(&self, count: impl Fn(&HandoverCounters) -> u64) -> u64 {
        self.workers.iter().map(|worker| count(&worker.others.as_ref().expect("several").handover.counters)).sum()
    }
}

fn interest(name: &Name, nonce: u32) -> Vec<u8> {
    InterestBuilder::new(name).nonce(nonce).build().expect("fits")
}

fn data(name: &Name) -> Vec<u8> {
    DataBuilder::new(name).sign(&DigestSigner).expect("fits")
}

fn with_token(pit_token: PitToken, packet: &[u8]) -> Vec<u8> {
    encode_packet(&LpHeader { pit_token, ..LpHeader::default() }, Some(packet))
}

#[test]
fn an_exchange_takes_place_at_the_owner_of_its_name_whoever_receives_it() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.face(0), bench.face(1));
    bench.route("/a", &producer);
    for (receives_interest, owner, receives_data) in [(0, 0, 0), (0, 1, 2), (3, 2, 2), (1, 3, 0)] {
        let name = bench.name_of(owner);
        let token = PitToken::from_slice(b"consumer").expect("short");
        bench.give(receives_interest, &consumer, &with_token(token, &interest(&name, 7 + owner as u32)));
        bench.run();
        let [(face, pit_token, asked)] = &bench.sent()[..] else { panic!("one Interest") };
        assert_eq!((*face, pit_token.as_slice()[0] as usize), (producer.id(), owner));
        assert_eq!(name_of_packet(asked), name.value());
        bench.give(receives_data, &producer, &with_token(*pit_token, &data(&name)));
        bench.run();
        assert_eq!(bench.sent(), [(consumer.id(), token, data(&name))]);
        // The same Interest again is answered from the cache of the owner, whichever worker receives it.
        bench.give(receives_data, &consumer, &interest(&name, 100));
        bench.run();
        assert_eq!(bench.sent(), [(consumer.id(), PitToken::empty(), data(&name))]);
    }
    assert_eq!(bench.sum(|counters| counters.handed_out), bench.sum(|counters| counters.handed_in));
    assert_eq!(bench.sum(|counters| counters.handed_out), 7);
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn all_workers_know_a_face_whose_first_frame_has_come_to_one() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.face(0), bench.unknown_face(1));
    bench.route("/a", &producer);
    let from_producer = interest(&"/elsewhere".parse().expect("a name"), 1);
    bench.give(0, &producer, &from_producer);
    bench.run();
    assert_eq!(bench.sent().len(), 1, "a Nack for the producer");
    for owner in 0..WORKERS {
        bench.give(owner, &consumer, &interest(&bench.name_of(owner), 2));
        bench.run();
        assert!(matches!(bench.sent()[..], [(face, ..)] if face == producer.id()), "worker {owner}");
    }
    let handed = bench.sum(|counters| counters.handed_in);
    assert_eq!(handed, bench.sum(|counters| counters.handed_out), "only packets are counted");
}

fn name_of_packet(packet: &[u8]) -> &[u8] {
    namehop_wire::peek::name_value(packet).expect("a name")
}

#[test]
fn data_with_a_token_that_leads_nowhere_finds_its_interest_by_name() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.face(0), bench.face(1));
    bench.route("/a", &producer);
    let name = bench.name_of(2);
    bench.give(2, &consumer, &interest(&name, 7));
    bench.run();
    assert_eq!(bench.sent().len(), 1);
    // The token names worker 1.
    let token = PitToken::from_slice(&[1, 0, 0, 0, 9, 0, 0, 9]).expect("short");
    bench.give(3, &producer, &with_token(token, &data(&name)));
    bench.run();
    assert_eq!(bench.sent(), [(consumer.id(), PitToken::empty(), data(&name))]);
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn a_short_interest_with_can_be_prefix_is_answered_by_data_without_token() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.face(0), bench.face(1));
    bench.route("/a", &producer);
    let prefix: Name = "/a".parse().expect("a name");
    let short = InterestBuilder::new(&prefix).can_be_prefix(true).nonce(1).build().expect("fits");
    let owner = usize::from(bench.dispatch.entry_of(prefix.value()).expect("a name").1);
    let name = bench.name_of((owner + 1) % WORKERS);
    bench.give(0, &consumer, &short);
    bench.give(0, &consumer, &with_token(PitToken::from_slice(b"x").expect("short"), &interest(&name, 2)));
    bench.run();
    assert_eq!(bench.sent().len(), 2);
    bench.give(0, &producer, &data(&name));
    bench.run();
    let mut sent = bench.sent();
    sent.sort_by_key(|(_, token, _)| token.len());
    let with = PitToken::from_slice(b"x").expect("short");
    assert_eq!(sent, [(consumer.id(), PitToken::empty(), data(&name)), (consumer.id(), with, data(&name))]);
    let drops = |worker: &Worker| worker.engine.counters().drops.total();
    assert_eq!(bench.workers.iter().map(drops).sum::<u64>(), 0);
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn what_finds_no_room_is_counted_and_data_has_more_room_than_interests() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.face(0), bench.face(1));
    bench.route("/a", &producer);
    let name = bench.name_of(1);
    for nonce in 0..RING_PACKETS as u32 {
        bench.give(0, &consumer, &interest(&name, nonce));
    }
    let room_for_interests = RING_PACKETS - RING_PACKETS / RESERVED_SHARE;
    while bench.workers[0].has_work() {
        bench.workers[0].turn(bench.now);
    }
    let lost = (RING_PACKETS - room_for_interests) as u64;
    assert_eq!(bench.sum(|counters| counters.dropped_interests), lost);
    for _ in 0..RING_PACKETS / RESERVED_SHARE + 3 {
        bench.give(0, &producer, &data(&name));
    }
    while bench.workers[0].has_work() {
        bench.workers[0].turn(bench.now);
    }
    assert_eq!(bench.sum(|counters| counters.dropped_data), 3);
    assert_eq!(bench.table.link_drops().get(LinkDrop::HandoverFull), lost + 3);
    assert_eq!(bench.sum(|counters| counters.handed_out), RING_PACKETS as u64);
    bench.run();
    assert_eq!(bench.sum(|counters| counters.handed_in), RING_PACKETS as u64);
    bench.sent();
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn frames_of_further_queues_leave_room_for_packets() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.face(0), bench.face(1));
    bench.route("/a", &producer);
    let name = bench.name_of(1);
    let room_for_frames = RING_OTHERS - RING_OTHERS / FRAMES_SHARE;
    let drops = Arc::clone(&bench.table);
    let handover = &mut bench.workers[0].others.as_mut().expect("several workers").handover;
    for _ in 0..RING_OTHERS {
        let frame = bench.pool.copy_of(b"an arbitrary frame").expect("buffer");
        handover.hand_over(bench.now, 1, Handed::Frame(PortId(3), frame), drops.link_drops());
    }
    let lost = (RING_OTHERS - room_for_frames) as u64;
    assert_eq!(bench.table.link_drops().get(LinkDrop::HandoverFull), lost);
    bench.give(0, &consumer, &interest(&name, 1));
    bench.workers[0].turn(bench.now);
    assert_eq!(bench.table.link_drops().get(LinkDrop::HandoverFull), lost, "the ring has room for the Interest");
    bench.run();
    assert_eq!(bench.sent().len(), 1);
    // The port of the frames was removed meanwhile.
    assert_eq!(bench.table.link_drops().get(LinkDrop::LinkDown), room_for_frames as u64);
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn packets_that_wait_for_too_long_are_marked() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.face(0), bench.face(1));
    bench.route("/a", &producer);
    let mut marks = Vec::new();
    for turn in 0..40_u32 {
        let name = bench.name_of(1).append_segment(turn.into());
        bench.give(0, &consumer, &interest(&name, turn));
        bench.workers[0].turn(bench.now);
        // The other worker receives it 6 ms later.
        bench.now = Timestamp(bench.now.0 + TARGET_NS + 1_000_000);
        bench.run();
        bench.sent();
        marks.push(bench.sum(|counters| counters.congestion_marks));
    }
    let first = marks.iter().position(|&count| count > 0).expect("marked");
    assert!((16..=18).contains(&first), "marking starts after 100 ms: {marks:?}");
    assert!(marks[39] >= 2, "{marks:?}");
    // A queue that drains in time is not marked.
    let before = bench.sum(|counters| counters.congestion_marks);
    for turn in 40..80_u32 {
        let name = bench.name_of(1).append_segment(turn.into());
        bench.give(0, &consumer, &interest(&name, turn));
        bench.now = Timestamp(bench.now.0 + 4_000_000);
        bench.run();
        bench.sent();
    }
    assert_eq!(bench.sum(|counters| counters.congestion_marks), before);
}

#[test]
fn a_face_with_reliability_is_served_by_its_home_worker() {
    let mut bench = Bench::new();
    let (consumer, producer) = (bench.face(0), bench.face(2));
    bench.route("/a", &producer);
    let reliability = FaceFlags::RELIABILITY;
    let update = FaceUpdate { flags: reliability, flags_mask: reliability.0, ..FaceUpdate::default() };
    producer.update(&update).expect("allowed");
    for owner in 0..WORKERS {
        bench.give(owner, &consumer, &interest(&bench.name_of(owner), 5));
    }
    bench.run();
    let mut frames = Vec::new();
    bench.rings[0].to_sockets.pop_burst(&mut frames, usize::MAX);
    let sequences = frames.iter().map(|frame| LpPacket::decode(frame.buffer.bytes()).expect("a frame").tx_sequence);
    let mut sequences: Vec<u64> = sequences.map(|sequence| sequence.expect("protected")).collect();
    sequences.sort_unstable();
    assert!(
        sequences.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "all sequence numbers must be of one window: {sequences:?}"
    );
    assert_eq!(sequences.len(), WORKERS);
    let sent = |worker| producer.counters.worker(worker).sent.interests.packets.get();
    assert_eq!((0..WORKERS).map(sent).collect::<Vec<_>>(), [0, 0, WORKERS as u64, 0]);
}
