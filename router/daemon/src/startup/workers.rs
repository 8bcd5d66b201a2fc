//! The settings of workers: their number, their CPUs, their rings, and their shares of limited resources.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::info;

use namehop_disk::{DiskCache, OpenError, Worker as DiskWorker};
use namehop_engine::dispatch::NameDispatch;
use namehop_engine::engine::EngineConfig;
use namehop_engine::schedule::lookahead_for;
use namehop_face::port::{PortControl, PortSet};
use namehop_face::registry::FaceTable;
use namehop_face::ring::{FrameInlet, FrameRing};
use namehop_face::socket::FaceEvent;
use namehop_face::wake::Waker;
use namehop_hash::HashKey;
use namehop_packet::FaceId;
use namehop_table::MemorySpeed;
use namehop_wire::Name;
use namehop_wire::lp::UsualFrame;

use crate::config::{AutoNumber, Config, ContentStoreDisk, Processor};
use crate::memory_budget::Bounds;
use crate::worker::{Worker, WorkerRings, share, usable_processors};

/// Most workers with `workers = "auto"`: the memory for tables is divided among them.
const MAX_AUTO_WORKERS: usize = 8;
/// Minimum PIT capacity of one worker.
const MIN_PIT_CAPACITY: usize = 64;
/// Capacity of the rings between sockets and worker, in frames: some milliseconds of traffic at full speed.
const SOCKET_RING_FRAMES: usize = 8192;
/// Capacity of the rings between worker and control thread, in frames.
const CONTROL_RING_FRAMES: usize = 4096;

/// Returns the number of workers. With `"auto"` and without ports it is one, which suffices for the traffic of sockets
/// and costs least.
pub fn worker_count(config: &Config) -> usize {
    match config.forwarding.workers {
        AutoNumber::Number(count) => count,
        AutoNumber::Auto if config.has_ports() => {
            let usable = usable_processors().map_or(1, |processors| processors.len());
            (usable.saturating_sub(1)).clamp(1, MAX_AUTO_WORKERS)
        }
        AutoNumber::Auto => 1,
    }
}

/// Returns the CPU of each worker: first the configured ones, then the last usable ones. CPUs are shared only if there
/// are too few.
pub fn processors(config: &Config, workers: usize) -> Vec<Processor> {
    let listed = &config.forwarding.processors;
    if listed.is_empty() && workers == 1 {
        return vec![config.ports.worker_processor];
    }
    // The first CPUs serve interrupts and everything else.
    let usable = usable_processors().unwrap_or_default();
    let mut others: Vec<usize> = usable.into_iter().rev().filter(|number| !listed.contains(number)).collect();
    if others.is_empty() {
        others.clone_from(listed);
    }
    listed.iter().copied().chain(others.into_iter().cycle()).map(Processor::Number).take(workers).collect()
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

pub(super) fn port_set(
    config: &Config,
    faces: &Arc<FaceTable>,
    events: &mpsc::UnboundedSender<FaceEvent>,
    waker: &Arc<Waker>,
) -> (PortSet, PortControl) {
    PortSet::new(
        Arc::clone(faces),
        events.clone(),
        Arc::clone(waker),
        config.faces.port_flags(),
        config.faces.self_learning,
        Duration::from_secs(config.ports.idle_timeout_s),
    )
}

/// Returns the settings of one of `workers` engines, which share the limits.
pub fn engine_settings(config: &Config, bounds: &Bounds, worker: usize, workers: usize) -> EngineConfig {
    let (forwarding, store) = (&config.forwarding, &config.content_store);
    let part = |total| share(total, worker, workers);
    let cs = store.cs_config(part(bounds.capacity_packets), part(bounds.capacity_bytes));
    EngineConfig {
        worker: worker as u8,
        pit_capacity: part(bounds.pit_capacity).max(MIN_PIT_CAPACITY),
        pit_memory_bytes: part(bounds.pit_memory_bytes),
        new_timers: bounds.new_timers,
        cs,
        reserved_packets: part(bounds.reserved_packets),
        dead_nonce_capacity: part(bounds.dead_nonce_capacity),
        unsolicited: store.unsolicited,
        accept_unasked_data: forwarding.accept_unasked_data,
        dead_nonce_lifetime_ms: forwarding.dead_nonce_list_lifetime_ms,
        default_hop_limit: forwarding.default_hop_limit,
        producer_regions: forwarding.producer_regions.iter().map(|region| region.0.clone()).collect(),
        max_name_bytes: forwarding.max_name_bytes,
        long_name_bytes_per_s: forwarding.long_name_bytes_per_s / workers as u64,
        max_lifetime_ms: forwarding.max_interest_lifetime_ms,
        measurement_capacity: part(bounds.measurement_capacity).max(1),
        ..EngineConfig::default()
    }
}

/// Starts the second tier of the Content Store, and gives each worker its part. Erases the prefixes in `erased` again,
/// because the disk may not have recorded their erasure.
pub(super) fn start_disk(
    disk: &ContentStoreDisk,
    key: HashKey,
    workers: &mut [Worker],
    wakers: &[Arc<Waker>],
    (dispatch, erased): (&Arc<NameDispatch>, &[Name]),
) -> Result<DiskCache, OpenError> {
    let known = workers.iter().zip(wakers).map(|(worker, waker)| {
        let waker = Arc::clone(waker);
        DiskWorker { wake: Box::new(move || waker.wake()), started: worker.started() }
    });
    let dispatch = Arc::clone(dispatch);
    let owner_of = move |name: &[u8]| dispatch.entry_of(name).map_or(0, |(_, owner)| owner.into());
    let (cache, tiers) = DiskCache::start(disk.settings(), key, known.collect(), owner_of)?;
    for (worker, mut tier) in workers.iter_mut().zip(tiers) {
        erased.iter().for_each(|prefix| tier.erase(prefix.value()));
        worker.use_disk(tier);
    }
    Ok(cache)
}

/// Returns the number of packets to prefetch together: the configured number, or one that suits the host's memory.
pub(super) fn lookahead(configured: AutoNumber) -> usize {
    if let AutoNumber::Number(packets) = configured {
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
