//! The parts of workers: their rings, their ports, and their shares of the second tier.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::info;

use namehop_disk::{DiskCache, OpenError, Worker as DiskWorker};
use namehop_engine::dispatch::NameDispatch;
use namehop_engine::engine::EngineConfig;
use namehop_engine::schedule::lookahead_for;
use namehop_engine::second_tier::SecondTier;
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

use crate::config::{AutoNumber, Config, ContentStoreDisk};
use crate::worker::{Worker, WorkerRings};

/// Capacity of the rings between sockets and worker, in frames: some milliseconds of traffic at full speed.
const SOCKET_RING_FRAMES: usize = 8192;
/// Capacity of the rings between worker and control thread, in frames.
const CONTROL_RING_FRAMES: usize = 4096;

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
        worker.use_second_tier(Box::new(tier));
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
