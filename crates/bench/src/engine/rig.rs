//! A worker of the router between two Ethernet ports in memory, and the far ends of those. On the downstream's link there is
//! a second peer, from which floods come.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use namehop_dpdk::memory::MemoryPort;
use namehop_dpdk::{Eal, Mbuf, MbufPool};
use namehop_face::ethernet::{FramePort, Framing, MacAddress, PortControl, PortId, PortParams, PortSet, face_params};
use namehop_face::registry::{Face, FaceFlags, FaceTable};
use namehop_face::ring::FrameRing;
use namehop_face::wake::Waker;
use namehop_forward::buffer::BufferPool;
use namehop_forward::engine::{CsConfig, Engine, EngineConfig};
use namehop_forward::face::FaceId;
use namehop_forward::fib::FibWriter;
use namehop_forward::schedule::Schedule;
use namehop_forward::strategy::StrategyInstance;
use namehop_forward::time::Timestamp;
use namehop_hash::HashKey;
use namehop_router::worker::{Worker, WorkerHandle, WorkerRings};
use namehop_table::clock::cycles;
use tokio::sync::mpsc::unbounded_channel;

use super::{EngineBenchError, uri};
use crate::schedule::EngineParameters;

/// Addresses of the router's ports and of the two peers.
pub(super) const DOWNSTREAM_PORT: MacAddress = [0x02, 0, 0, 0, 1, 1];
pub(super) const DOWNSTREAM_PEER: MacAddress = [0x02, 0, 0, 0, 1, 2];
/// Another peer on the downstream's link.
pub(super) const FLOOD_PEER: MacAddress = [0x02, 0, 0, 0, 1, 3];
pub(super) const UPSTREAM_PORT: MacAddress = [0x02, 0, 0, 0, 2, 1];
pub(super) const UPSTREAM_PEER: MacAddress = [0x02, 0, 0, 0, 2, 2];

const MTU_BYTES: usize = 9_000;
/// Frames that a link in memory holds.
const LINK_FRAMES: u32 = 1_024;
const SMALL_MBUFS: usize = 4_096;
const LARGE_MBUFS: usize = 64;
/// Memory of the Content Store for each packet it may hold, above the packet itself.
const CONTENT_OVERHEAD_BYTES: usize = 1_024;

/// Numbers of the two faces, downstream and upstream, which every new table gives out in this order.
pub(super) fn face_numbers() -> (FaceId, FaceId) {
    let table = FaceTable::new();
    let insert = |address: MacAddress| {
        let local = "dev://bench".parse().ok()?;
        Some(table.insert(face_params(address, local, MTU_BYTES)).ok()?.id())
    };
    (insert(DOWNSTREAM_PEER).unwrap_or(FaceId::INVALID), insert(UPSTREAM_PEER).unwrap_or(FaceId::INVALID))
}

fn port_params(link: MemoryPort, address: MacAddress, face: &Face) -> PortParams<Mbuf> {
    PortParams {
        link: Some(Box::new(Link(link))),
        framing: Framing::Ethernet,
        address,
        local_uri: face.local_uri().clone(),
        mtu_bytes: MTU_BYTES,
        max_on_demand_faces: 0,
        is_up: true,
    }
}

/// A port to be added, and its faces with the address of their peer.
type PortWithFaces = (PortParams<Mbuf>, Vec<(Arc<Face>, MacAddress)>);

/// One end of a link in memory as the router's port.
struct Link(MemoryPort);

impl FramePort<Mbuf> for Link {
    fn receive(&mut self, frames: &mut Vec<Mbuf>) {
        self.0.receive(frames);
    }

    fn transmit(&mut self, frames: &mut Vec<Mbuf>) {
        self.0.transmit(frames);
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// One pool of mbufs for each worker. They last as long as the process.
pub(super) fn pools(workers: usize) -> Result<Vec<MbufPool>, EngineBenchError> {
    let environment = Eal::start(workers * MbufPool::mempool_bytes(SMALL_MBUFS, LARGE_MBUFS))?;
    (0..workers)
        .map(|_| {
            let pool = MbufPool::new(SMALL_MBUFS, LARGE_MBUFS);
            pool.use_mempools(environment)?;
            Ok(pool)
        })
        .collect()
}

/// See the module's description.
pub(super) struct Rig<S: Schedule> {
    worker: Worker<MbufPool, S>,
    /// Keeps the worker's mailbox alive.
    _handle: WorkerHandle,
    pub(super) downstream: MemoryPort,
    pub(super) upstream: MemoryPort,
    pub(super) pool: MbufPool,
}

impl<S: Schedule> Rig<S> {
    /// Puts it together.
    pub(super) fn new(
        fib: &FibWriter<StrategyInstance>,
        key: HashKey,
        pool: MbufPool,
        parameters: &EngineParameters,
    ) -> Result<Self, EngineBenchError> {
        let environment = Eal::start(0)?;
        let config = EngineConfig {
            pit_capacity: (2 * parameters.in_flight).max(EngineConfig::default().pit_capacity),
            cs: CsConfig {
                capacity_packets: parameters.cs_capacity,
                capacity_bytes: parameters.cs_capacity
                    * (super::frames::data_bytes(parameters) + CONTENT_OVERHEAD_BYTES),
                policy: parameters.cs_policy,
                ..CsConfig::default()
            },
            dead_nonce_capacity: parameters.dead_nonce_capacity,
            lookahead: parameters.lookahead.unwrap_or(EngineConfig::default().lookahead),
            ..EngineConfig::default()
        };
        let engine = Engine::<_, S>::new(config, fib.reader(), pool.clone(), key)
            .map_err(|error| EngineBenchError::Rig(error.to_string()))?;
        let faces = Arc::new(FaceTable::new());
        let insert = |local: &str, peer: MacAddress| {
            let face = faces.insert(face_params(peer, uri(local)?, MTU_BYTES));
            face.map_err(|error| EngineBenchError::Rig(error.to_string()))
        };
        // A worker knows the faces that there are when it is made.
        let downstream_face = insert("dev://downstream", DOWNSTREAM_PEER)?;
        let upstream_face = insert("dev://upstream", UPSTREAM_PEER)?;
        let flood_face = insert("dev://downstream", FLOOD_PEER)?;
        let waker = Arc::new(Waker::new());
        // No sockets take part; their rings stay empty.
        let ring = || Arc::new(FrameRing::new(1, Arc::clone(&waker)));
        let rings = WorkerRings {
            from_sockets: ring(),
            to_sockets: ring(),
            from_control: ring(),
            to_control: ring(),
            to_control_from_neighbours: ring(),
        };
        let (events, _ignored) = unbounded_channel();
        let (ports, control) = PortSet::new(
            Arc::clone(&faces),
            events,
            Arc::clone(&waker),
            FaceFlags::default(),
            false,
            Duration::from_secs(600),
        );
        let (worker, handle) = Worker::new(engine, pool.clone(), Arc::clone(&faces), rings, ports, waker);
        let (downstream, router_downstream) = MemoryPort::pair(environment, LINK_FRAMES)?;
        let (upstream, router_upstream) = MemoryPort::pair(environment, LINK_FRAMES)?;
        let mut rig = Rig { worker, _handle: handle, downstream, upstream, pool };
        rig.attach(
            control,
            vec![
                (
                    port_params(router_downstream, DOWNSTREAM_PORT, &downstream_face),
                    vec![(downstream_face, DOWNSTREAM_PEER), (flood_face, FLOOD_PEER)],
                ),
                (port_params(router_upstream, UPSTREAM_PORT, &upstream_face), vec![(upstream_face, UPSTREAM_PEER)]),
            ],
        )?;
        Ok(rig)
    }

    /// Adds ports with their faces. The control side waits for the worker, so it gets a thread meanwhile.
    fn attach(&mut self, control: PortControl<Mbuf>, ports: Vec<PortWithFaces>) -> Result<(), EngineBenchError> {
        let attached = thread::scope(|scope| {
            let asking = scope.spawn(move || {
                (0..).map(PortId).zip(ports).try_for_each(|(id, (params, faces))| {
                    control.add(id, params)?;
                    faces.into_iter().try_for_each(|(face, peer)| control.add_face(id, face, peer))
                })
            });
            while !asking.is_finished() {
                self.worker.turn(Timestamp(1));
                thread::yield_now();
            }
            asking.join()
        });
        match attached {
            Ok(Ok(())) => Ok(()),
            _ => Err(EngineBenchError::Rig("the worker did not take its ports".to_owned())),
        }
    }

    /// One turn of the worker; the ticks it took.
    #[inline]
    pub(super) fn turn(&mut self, now: Timestamp) -> u64 {
        let before = cycles();
        self.worker.turn(now);
        cycles().wrapping_sub(before)
    }

    /// Mbufs handed out.
    pub(super) fn buffers_in_use(&self) -> usize {
        self.pool.in_use()
    }
}
