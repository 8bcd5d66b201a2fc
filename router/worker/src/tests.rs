//! Faces that are added and removed while their frames are on the way, with commands and frames in any order.

use std::sync::Arc;
use std::time::Duration;

use namehop_engine::engine::{CsConfig, Engine, EngineConfig};
use namehop_engine::fib::FibWriter;
use namehop_engine::strategy::StrategyInstance;
use namehop_face::counters::LinkDrop;
use namehop_face::registry::{Face, FaceFlags, FaceParams, FaceTable};
use namehop_face::ring::{Frame, FrameRing};
use namehop_face::wake::Waker;
use namehop_hash::HashKey;
use namehop_packet::{BufferPool, Timestamp};
use namehop_port::faces::PortSet;
use tokio::sync::mpsc::unbounded_channel;

use super::*;

/// Interest `/A`, for which there is no route.
const INTEREST: [u8; 13] = [0x05, 0x0B, 0x07, 0x03, 0x08, 0x01, 0x41, 0x0A, 0x04, 1, 2, 3, 4];

/// A worker without ports, and the other threads' ends of its rings and handles.
struct Bench {
    worker: Worker,
    handle: WorkerHandles,
    rings: WorkerRings,
    table: Arc<FaceTable>,
    pool: BufferPool,
    _fib: FibWriter<StrategyInstance>,
}

/// Creates an engine with small tables, and the writer of its FIB.
pub(super) fn small_engine(pool: BufferPool) -> (Engine, FibWriter<StrategyInstance>) {
    let key = HashKey::new(1, 2);
    let fib = FibWriter::new(key, StrategyInstance::default()).expect("memory");
    let cs = CsConfig { capacity_packets: 16, capacity_bytes: 1 << 16, ..CsConfig::default() };
    let config = EngineConfig { pit_capacity: 16, cs, dead_nonce_capacity: 16, ..EngineConfig::default() };
    let engine = Engine::new(config, fib.reader(), pool, key).expect("memory");
    (engine, fib)
}

impl Bench {
    fn new() -> Bench {
        let pool = BufferPool::new(1_024, 1);
        let (engine, fib) = small_engine(pool.clone());
        let (table, waker) = (Arc::new(FaceTable::new()), Arc::new(Waker::new()));
        let ring = || Arc::new(FrameRing::new(4 * BURST, Arc::clone(&waker)));
        let rings = WorkerRings {
            from_streams: ring(),
            from_datagrams: ring(),
            to_sockets: ring(),
            from_control: ring(),
            to_control: ring(),
            to_control_from_neighbours: ring(),
        };
        let (events, _) = unbounded_channel();
        let flags = FaceFlags::default();
        let (ports, _) =
            PortSet::new(Arc::clone(&table), events, Arc::clone(&waker), flags, false, Duration::from_secs(600));
        let (worker, handle) = Worker::new(engine, pool.clone(), Arc::clone(&table), rings.clone(), ports, None);
        let handle = WorkerHandles::new(vec![handle]);
        Bench { worker, handle, rings, table, pool, _fib: fib }
    }

    fn face(&self, uri: &str) -> Arc<Face> {
        let params = FaceParams::new(uri.parse().expect("URI"), "unix:///run/x.sock".parse().expect("URI"));
        self.table.insert(params).expect("room")
    }

    /// Runs a poll iteration in which an Interest arrives from this face. Returns the number of Interests received from
    /// the face so far, and of frames dropped for want of a face.
    fn receive(&mut self, face: &Face) -> (u64, u64) {
        let buffer = self.pool.copy_of(&INTEREST).expect("buffer");
        assert!(self.rings.from_datagrams.push(Frame::new(face.id(), 0, buffer)).is_ok());
        self.worker.turn(Timestamp(1));
        (
            face.counters.sum(|worker| worker.received.interests.packets.get()),
            self.table.link_drops().get(LinkDrop::LinkDown),
        )
    }
}

#[test]
fn the_first_frame_of_a_face_may_come_before_its_command() {
    let mut bench = Bench::new();
    let face = bench.face("fd://7");
    assert_eq!(bench.receive(&face), (1, 0));
    bench.handle.face_created(&face);
    assert_eq!(bench.receive(&face), (2, 0));

    // The last frames of a face may arrive after the command that removes it.
    bench.table.remove(face.id());
    bench.handle.face_destroyed(face.id());
    assert_eq!(bench.receive(&face), (2, 1));
    // An AddFace command that arrives after the removal changes nothing.
    bench.handle.face_created(&face);
    assert_eq!(bench.receive(&face), (2, 2));
    assert_eq!(bench.pool.in_use(), bench.rings.to_sockets.len());
}

#[test]
fn a_datagram_does_not_wait_behind_what_streams_keep_ready() {
    let mut bench = Bench::new();
    let (stream, datagram) = (bench.face("fd://7"), bench.face("udp4://127.0.0.1:9"));
    let frame = |face: &Face| Frame::new(face.id(), 0, bench.pool.copy_of(&INTEREST).expect("buffer"));
    while bench.rings.from_streams.push(frame(&stream)).is_ok() {}
    assert!(bench.rings.from_datagrams.push(frame(&datagram)).is_ok());
    bench.worker.turn(Timestamp(1));
    let received = |face: &Face| face.counters.sum(|worker| worker.received.interests.packets.get());
    assert_eq!((received(&stream), received(&datagram)), (BURST as u64, 1));
}

/// Returns the number of marks after `turns` poll iterations of `turn_ns` each, which leave two bursts in the ring from
/// the sockets.
fn marks_of(turns: u64, turn_ns: u64) -> u64 {
    let mut bench = Bench::new();
    let face = bench.face("fd://7");
    bench.handle.face_created(&face);
    for turn in 1..=turns {
        while bench.rings.from_datagrams.len() < 3 * BURST {
            let buffer = bench.pool.copy_of(&INTEREST).expect("buffer");
            assert!(bench.rings.from_datagrams.push(Frame::new(face.id(), 0, buffer)).is_ok());
        }
        bench.worker.turn(Timestamp(turn * turn_ns));
        bench.rings.to_sockets.pop_burst(&mut Vec::new(), usize::MAX);
    }
    bench.worker.status(Timestamp(turns * turn_ns)).handover.congestion_marks
}

#[test]
fn packets_are_marked_when_frames_wait_for_too_long_in_a_receive_queue() {
    // Each frame waits for two poll iterations.
    assert_eq!(marks_of(100, 2_000_000), 0);
    assert_eq!(marks_of(30, 3_000_000), 0, "queueing for less than 100 ms is not marked");
    assert!((2..=6).contains(&marks_of(100, 3_000_000)));
}

#[test]
fn a_face_of_a_port_is_not_taken_for_one_of_the_sockets() {
    let mut bench = Bench::new();
    let face = bench.face("ether://[08:00:27:01:01:01]");
    bench.handle.face_created(&face);
    assert_eq!(bench.receive(&face), (0, 1));
    assert!(bench.rings.to_sockets.is_empty());
}
