//! A worker of the router between two Ethernet ports in memory, and the far ends of the ports. Each link has some
//! peers; the first link has one more peer, the source of floods.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use namehop_engine::engine::{CsConfig, Engine, EngineConfig};
use namehop_engine::fib::FibWriter;
use namehop_engine::second_tier::SecondTier;
use namehop_engine::strategy::StrategyInstance;
use namehop_face::address::MacAddress;
use namehop_face::registry::{Face, FaceFlags, FaceParams, FaceTable};
use namehop_face::ring::FrameRing;
use namehop_face::wake::Waker;
use namehop_hash::HashKey;
use namehop_orders::{Order, ScheduleKind};
use namehop_packet::{BufferPool, PacketBuffer, PortQueue, Timestamp};
use namehop_port::encapsulation::{Framing, Peer};
use namehop_port::faces::{PortControl, PortId, PortParams, PortSet, face_params};
use namehop_port::memory::MemoryPort;
use namehop_port::{Devices, Eal, mempool_bytes, use_mempools};
use namehop_table::clock::cycles;
use namehop_worker::{Worker, WorkerHandle, WorkerRings};
use tokio::sync::mpsc::unbounded_channel;

use super::peers::{FLOOD_PEER, LINKS, Peers, port_address};
use super::stock::{KINDS, Stock};
use super::{EngineBenchError, uri};
use crate::schedule::EngineParameters;

const MTU_BYTES: usize = 9_000;
/// Capacity of a link in memory, in frames.
const LINK_FRAMES: u32 = 1_024;
/// Buffers of a pool in use by the worker and the links, in addition to waiting packets.
const SMALL_MBUFS: usize = 4_096;
const LARGE_MBUFS: usize = 64;
/// Maximum size of a packet in a small buffer, with its headers, in bytes.
const SMALL_PACKET_BYTES: usize = 2_000;
/// Memory of the Content Store per packet of its capacity, besides the packet itself, in bytes.
const CONTENT_OVERHEAD_BYTES: usize = 1_024;

/// Creates the face of a peer that returns PIT tokens.
pub(super) fn insert_face(table: &FaceTable, link: usize, peer: MacAddress) -> Result<Arc<Face>, EngineBenchError> {
    let params = face_params(Peer::Ethernet(peer), &uri(&format!("dev://link{link}"))?, MTU_BYTES);
    let face = table.insert(FaceParams { flags: FaceFlags::PIT_TOKENS_ON, ..params });
    face.map_err(|error| EngineBenchError::Rig(error.to_string()))
}

fn port_params(port: MemoryPort, link: usize) -> Result<PortParams, EngineBenchError> {
    Ok(PortParams {
        queue: Some(Box::new(Link(port))),
        framing: Framing::Ethernet,
        address: port_address(link),
        networks: Vec::new(),
        uri: uri(&format!("dev://link{link}"))?,
        mtu_bytes: MTU_BYTES,
        max_on_demand_faces: 0,
        max_unsolicited_per_address: 1,
        is_up: true,
    })
}

/// A port to be added, and its faces with the address of each peer.
type PortWithFaces = (PortParams, Vec<(Arc<Face>, MacAddress)>);

/// One end of a link in memory, as the router's port.
struct Link(MemoryPort);

impl PortQueue for Link {
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        self.0.receive(frames);
    }

    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        self.0.transmit(frames);
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Creates one pool of mbufs per worker. Pools last as long as the process.
pub(super) fn pools(parameters: &EngineParameters) -> Result<Vec<BufferPool>, EngineBenchError> {
    let data_bytes = super::frames::data_bytes(parameters);
    let far = match super::stock::waiting(parameters, data_bytes) {
        0 => 0,
        waiting => waiting + super::stock::HELD,
    };
    let is_large = data_bytes > SMALL_PACKET_BYTES;
    let (small, large) = (SMALL_MBUFS + far, if is_large { SMALL_MBUFS + far } else { LARGE_MBUFS });
    let environment = Eal::start(parameters.workers * mempool_bytes(small, large), Devices::None)?;
    (0..parameters.workers)
        .map(|_| {
            let pool = BufferPool::new(small, large);
            use_mempools(&pool, environment)?;
            Ok(pool)
        })
        .collect()
}

/// A worker between two links; see the module documentation.
pub(super) struct Rig {
    worker: Worker,
    /// How the worker's engine handles bursts.
    order: Order,
    /// Keeps the worker's mailbox alive.
    _handle: WorkerHandle,
    /// The far ends of the worker's links.
    pub(super) links: [MemoryPort; LINKS],
    pub(super) pool: BufferPool,
}

impl Rig {
    /// Creates the worker, its links and its faces.
    pub(super) fn new(
        fib: &FibWriter<StrategyInstance>,
        key: HashKey,
        pool: BufferPool,
        parameters: &EngineParameters,
        order: Order,
    ) -> Result<Self, EngineBenchError> {
        let environment = Eal::start(0, Devices::None)?;
        let peers = Peers::of(parameters);
        let config = EngineConfig {
            pit_capacity: (2 * parameters.in_flight).max(EngineConfig::default().pit_capacity),
            cs: CsConfig {
                capacity_packets: parameters.cs_capacity,
                capacity_bytes: parameters.cs_capacity
                    * (super::frames::data_bytes(parameters) + CONTENT_OVERHEAD_BYTES),
                policy: parameters.cs_policy.into(),
                ..CsConfig::default()
            },
            dead_nonce_capacity: parameters.dead_nonce_capacity,
            lookahead: parameters.lookahead.unwrap_or(EngineConfig::default().lookahead),
            ..EngineConfig::default()
        };
        let engine = Engine::new(config, fib.reader(), pool.clone(), key)
            .map_err(|error| EngineBenchError::Rig(error.to_string()))?;
        let faces = Arc::new(FaceTable::new());
        let mut faces_of: [Vec<(Arc<Face>, MacAddress)>; LINKS] = Default::default();
        for peer in peers.all() {
            faces_of[peer.link].push((insert_face(&faces, peer.link, peer.address())?, peer.address()));
        }
        faces_of[0].push((insert_face(&faces, 0, FLOOD_PEER)?, FLOOD_PEER));
        let waker = Arc::new(Waker::new());
        // The rings of sockets are unused and stay empty.
        let ring = || Arc::new(FrameRing::new(1, Arc::clone(&waker)));
        let rings = WorkerRings {
            from_streams: ring(),
            from_datagrams: ring(),
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
        let (worker, handle) = Worker::new(engine, pool.clone(), Arc::clone(&faces), rings, ports, None);
        let (first, router_first) = MemoryPort::pair(environment, LINK_FRAMES)?;
        let (second, router_second) = MemoryPort::pair(environment, LINK_FRAMES)?;
        let ports = [router_first, router_second].into_iter().zip(faces_of).enumerate();
        let ports = ports.map(|(link, (port, faces))| Ok((port_params(port, link)?, faces)));
        let ports = ports.collect::<Result<Vec<_>, EngineBenchError>>()?;
        let mut rig = Rig { worker, order, _handle: handle, links: [first, second], pool };
        rig.attach(control, ports)?;
        Ok(rig)
    }

    /// Adds a second tier to the worker's Content Store.
    pub(super) fn use_second_tier(&mut self, tier: Box<dyn SecondTier>) {
        self.worker.use_second_tier(tier);
    }

    /// Changes the order on the same path.
    pub(super) fn change_order(&mut self, kind: ScheduleKind) {
        self.order.change(kind);
    }

    /// Returns how the worker's engine handles bursts.
    pub(super) fn order(&self) -> &Order {
        &self.order
    }

    /// Adds ports with their faces. The control side waits for the worker, so it runs in its own thread.
    fn attach(&mut self, control: PortControl, ports: Vec<PortWithFaces>) -> Result<(), EngineBenchError> {
        let attached = thread::scope(|scope| {
            let asking = scope.spawn(move || {
                (0..).map(PortId).zip(ports).try_for_each(|(id, (params, faces))| {
                    control.add(id, params)?;
                    faces.into_iter().try_for_each(|(face, peer)| control.add_face(id, face, Peer::Ethernet(peer)))
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
            _ => Err(EngineBenchError::Rig("the worker did not accept its ports".to_owned())),
        }
    }

    /// Runs one poll iteration that receives these numbers of packets, with the buffer handling of drivers. Returns the
    /// ticks it took.
    #[inline]
    pub(super) fn turn(&mut self, now: Timestamp, stock: &mut Stock, received: [usize; KINDS]) -> u64 {
        let before = cycles();
        stock.refill(received);
        self.worker.turn_with(now, |engine, now, burst, out| self.order.process(engine, now, burst, out));
        stock.give_back();
        cycles().wrapping_sub(before)
    }

    /// Returns the worker's engine.
    pub(super) fn engine(&self) -> &Engine {
        self.worker.engine()
    }

    /// Number of mbufs in use.
    pub(super) fn buffers_in_use(&self) -> usize {
        self.pool.in_use()
    }
}
