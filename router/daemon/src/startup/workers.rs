//! The parts of workers: their rings, their ports, and their shares of the second tier.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::info;

use namehop_config::{Auto, Config, ContentStoreDisk};
use namehop_disk::{DiskCache, OpenError, Worker as DiskWorker};
use namehop_engine::dispatch::NameDispatch;
use namehop_engine::engine::{Engine, EngineConfig};
use namehop_engine::fib::FibWriter;
use namehop_engine::schedule::lookahead_for;
use namehop_engine::second_tier::SecondTier;
use namehop_engine::strategy::StrategyInstance;
use namehop_face::registry::FaceTable;
use namehop_face::ring::{FrameInlet, FrameRing};
use namehop_face::socket::FaceEvent;
use namehop_face::wake::Waker;
use namehop_hash::HashKey;
use namehop_packet::{BufferPool, FaceId};
use namehop_port::faces::{PortControl, PortSet};
use namehop_table::MemorySpeed;
use namehop_wire::Name;
use namehop_wire::lp::UsualFrame;

use crate::memory_budget::Bounds;
use crate::state::SavedState;
use namehop_worker::{Handover, Worker, WorkerHandles, WorkerRings};

use super::StartError;

/// Capacity of the rings between sockets and worker, in frames: some milliseconds of traffic at full speed.
const SOCKET_RING_FRAMES: usize = 8192;
/// Capacity of the rings between worker and control thread, in frames.
const CONTROL_RING_FRAMES: usize = 4096;

/// One in this many small buffers may be queued on congested ports, so that the others stay available.
const QUEUED_SHARE: usize = 8;

/// Parts that all workers use.
pub(super) struct SharedParts<'a> {
    pub(super) pool: &'a BufferPool,
    pub(super) faces: &'a Arc<FaceTable>,
    pub(super) rings: &'a [WorkerRings],
    pub(super) dispatch: &'a Arc<NameDispatch>,
    pub(super) events: &'a mpsc::UnboundedSender<FaceEvent>,
}

/// Creates the workers with their engines, handles to them, and controls of their ports. `check` is called after each
/// worker, because its tables take a while.
pub(super) fn create_workers(
    config: &Config,
    bounds: &Bounds,
    shared: &SharedParts<'_>,
    fib: &FibWriter<StrategyInstance>,
    key: HashKey,
    check: impl Fn() -> Result<(), StartError>,
) -> Result<(Vec<Worker>, WorkerHandles, Vec<PortControl>), StartError> {
    let SharedParts { pool, faces, rings, dispatch, .. } = shared;
    let count = rings.len();
    let wakers: Vec<_> = rings.iter().map(WorkerRings::waker).collect();
    // A single worker transfers nothing.
    let handovers = if count > 1 { Handover::connect(dispatch, &wakers) } else { Vec::new() };
    let mut handovers = handovers.into_iter();
    let lookahead = lookahead(config.forwarding.lookahead);
    let (mut workers, mut handles, mut port_controls) = (Vec::new(), Vec::new(), Vec::new());
    for (number, rings) in rings.iter().enumerate() {
        let settings = EngineConfig { lookahead, ..bounds.of_engine(config, number, count) };
        let engine = Engine::new(settings, fib.reader(), (*pool).clone(), key)?;
        let (mut ports, port_control) = port_set(config, shared, &wakers[number]);
        ports.limit_queues(bounds.small_buffers / QUEUED_SHARE / count);
        let (worker, handle) =
            Worker::new(engine, (*pool).clone(), Arc::clone(faces), rings.clone(), ports, handovers.next());
        workers.push(worker);
        handles.push(handle);
        port_controls.push(port_control);
        check()?;
    }
    Ok((workers, WorkerHandles::new(handles), port_controls))
}

/// Creates the rings of each worker.
pub(super) fn rings(workers: usize) -> Vec<WorkerRings> {
    let (sockets_waker, control_waker) = (Arc::new(Waker::new()), Arc::new(Waker::new()));
    // Has room for the answers to the packets queued for all workers.
    let to_sockets = Arc::new(FrameRing::new(workers * SOCKET_RING_FRAMES, sockets_waker));
    let to_control = Arc::new(FrameRing::new(CONTROL_RING_FRAMES, Arc::clone(&control_waker)));
    let to_control_from_neighbours = Arc::new(FrameRing::new(CONTROL_RING_FRAMES, control_waker));
    let of_worker = |_| {
        let waker = Arc::new(Waker::new());
        WorkerRings {
            from_streams: Arc::new(FrameRing::new(SOCKET_RING_FRAMES, Arc::clone(&waker))),
            from_datagrams: Arc::new(FrameRing::new(SOCKET_RING_FRAMES, Arc::clone(&waker))),
            to_sockets: Arc::clone(&to_sockets),
            from_control: Arc::new(FrameRing::new(CONTROL_RING_FRAMES, waker)),
            to_control: Arc::clone(&to_control),
            to_control_from_neighbours: Arc::clone(&to_control_from_neighbours),
        }
    };
    (0..workers).map(of_worker).collect()
}

/// Combines these rings into one inlet. Packets in frames of usual form go to the worker that seems to own them; all
/// other frames go to the home worker of their face, which has the state of the link.
pub(super) fn inlet(dispatch: &Arc<NameDispatch>, rings: Vec<Arc<FrameRing>>) -> FrameInlet {
    if let [only] = &rings[..] {
        return FrameInlet::new(Arc::clone(only));
    }
    let dispatch = Arc::clone(dispatch);
    let choose = move |face: FaceId, frame: &[u8]| {
        let owners = UsualFrame::decode(frame)
            .and_then(|usual| dispatch.owners_by_token(frame.get(usual.header_len..)?, &usual.pit_token, false));
        owners.map_or(face.slot(), |owners| owners.owner.into())
    };
    FrameInlet::divided(rings, Arc::new(choose))
}

fn port_set(config: &Config, shared: &SharedParts<'_>, waker: &Arc<Waker>) -> (PortSet, PortControl) {
    PortSet::new(
        Arc::clone(shared.faces),
        shared.events.clone(),
        Arc::clone(waker),
        config.faces.port_flags(),
        config.faces.self_learning,
        Duration::from_secs(config.ports.idle_timeout_s),
    )
}

/// Starts the second tier of the Content Store, and gives each worker its part. Erases the prefixes in the saved state
/// again, because the disk may not have recorded their erasure.
pub(super) fn start_disk(
    disk: &ContentStoreDisk,
    key: HashKey,
    workers: &mut [Worker],
    rings: &[WorkerRings],
    dispatch: &Arc<NameDispatch>,
    saved: &SavedState,
) -> Result<DiskCache, OpenError> {
    let known = workers.iter().zip(rings).map(|(worker, rings)| {
        let waker = rings.waker();
        DiskWorker { wake: Box::new(move || waker.wake()), started: worker.started() }
    });
    let dispatch = Arc::clone(dispatch);
    let owner_of = move |name: &[u8]| dispatch.entry_of(name).map_or(0, |(_, owner)| owner.into());
    let (cache, tiers) = DiskCache::start(disk.settings(), key, known.collect(), owner_of)?;
    let erased: Vec<Name> = saved.disk_erasures.iter().filter_map(|prefix| prefix.parse().ok()).collect();
    for (worker, mut tier) in workers.iter_mut().zip(tiers) {
        erased.iter().for_each(|prefix| tier.erase(prefix.value()));
        worker.use_second_tier(Box::new(tier));
    }
    Ok(cache)
}

/// Returns the number of packets to prefetch together: the configured number, or one that suits the host's memory.
fn lookahead(configured: Auto<usize>) -> usize {
    if let Auto::Value(packets) = configured {
        info!("prefetching memory for {packets} packets at a time, as configured");
        return packets;
    }
    let Some(memory) = MemorySpeed::measure() else {
        let packets = EngineConfig::default().lookahead;
        info!("prefetching memory for {packets} packets at a time; the memory's speed could not be measured");
        return packets;
    };
    let packets = lookahead_for(&memory);
    info!(
        "prefetching memory for {packets} packets at a time: a cache line takes {:.0} ns, with {:.0} lines in flight",
        memory.latency_ns,
        memory.lines_in_flight()
    );
    packets
}
