//! The forwarding worker: moves packets between the rings, the ports and the engine.
//!
//! In one poll iteration a worker takes a burst of frames from its rings and ports and runs them through the link
//! services and the engine. It enqueues the resulting frames to the rings of the links, or sends them on its ports.
//! [`serve`] decides when a worker iterates and when it sleeps. It runs a single worker as a task (see `task`), and on
//! its own thread once there is a port (see `polling`). A single worker that never sleeps, and each of several workers,
//! has its own thread from the start. Several workers transfer packets to each other (see `handover`).
//!
//! A [`Worker`] consists of its engine and of owners: `Faces` (records of faces, reassembly, link timers), `Links`
//! (rings and ports), `Commands` (of the control thread), `OtherWorkers`, `Burst` (the packets of one poll iteration)
//! and `Activity` (its clock and figures).
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use namehop_engine::engine::{Engine, EngineConfig};
//! use namehop_engine::fib::FibWriter;
//! use namehop_engine::strategy::StrategyInstance;
//! use namehop_port::faces::PortSet;
//! use namehop_face::registry::{FaceFlags, FaceTable};
//! use namehop_face::ring::FrameRing;
//! use namehop_face::wake::Waker;
//! use namehop_hash::HashKey;
//! use namehop_packet::{BufferPool, Timestamp};
//! use namehop_worker::{Worker, WorkerRings};
//!
//! let (key, pool) = (HashKey::new(1, 2), BufferPool::new(64, 8));
//! let fib = FibWriter::new(key, StrategyInstance::default())?;
//! let engine = Engine::new(EngineConfig::default(), fib.reader(), pool.clone(), key)?;
//! let (table, waker) = (Arc::new(FaceTable::new()), Arc::new(Waker::new()));
//! let ring = || Arc::new(FrameRing::new(64, Arc::clone(&waker)));
//! let rings = WorkerRings {
//!     from_streams: ring(),
//!     from_datagrams: ring(),
//!     to_sockets: ring(),
//!     from_control: ring(),
//!     to_control: ring(),
//!     to_control_from_neighbours: ring(),
//! };
//! let (events, _) = tokio::sync::mpsc::unbounded_channel();
//! let idle_timeout = Duration::from_secs(600);
//! let (ports, _) =
//!     PortSet::new(Arc::clone(&table), events, Arc::clone(&waker), FaceFlags::default(), false, idle_timeout);
//! let (mut worker, _handle) = Worker::new(engine, pool, table, rings, ports, None);
//! assert!(!worker.turn(Timestamp(1)), "no packet, no command");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod activity;
mod burst;
mod command;
mod commands;
mod exchange;
mod execute;
mod faces;
mod fault;
mod handles;
mod handover;
mod idle;
#[cfg(test)]
mod interest_way;
mod latency;
mod links;
mod polling;
mod processors;
mod task;
#[cfg(test)]
mod tests;
mod turn;

use std::sync::Arc;
use std::time::Instant;

use namehop_engine::engine::Engine;
use namehop_engine::second_tier::SecondTier;
use namehop_face::registry::FaceTable;
use namehop_face::wake::Waker;
use namehop_packet::{BufferPool, Timestamp};
use namehop_port::faces::PortSet;

use activity::Activity;
use burst::Burst;
use command::Mailbox;
use commands::Commands;
use exchange::OtherWorkers;
use faces::{Faces, FacesOfEngine};
use links::Links;

pub use command::{WorkerGone, WorkerHandle};
pub use fault::fault_point;
pub use handles::{WorkerHandles, share};
pub use handover::Handover;
pub use idle::Idling;
pub use links::WorkerRings;
pub use polling::serve;
pub use processors::{pin_to_processor, usable_processors};

/// Most frames that one poll iteration takes from a ring.
pub const BURST: usize = 64;

/// One forwarding worker; see the description of the crate.
pub struct Worker {
    engine: Engine,
    pool: BufferPool,
    faces: Faces,
    links: Links,
    commands: Commands,
    /// `None` for a single worker.
    others: Option<OtherWorkers>,
    burst: Burst,
    activity: Activity,
}

impl Worker {
    /// Creates a worker around `engine`, with the faces that exist; faces on ports are added with their ports.
    /// `handover` is `None` for a single worker.
    pub fn new(
        mut engine: Engine,
        pool: BufferPool,
        table: Arc<FaceTable>,
        rings: WorkerRings,
        mut ports: PortSet,
        handover: Option<Handover>,
    ) -> (Self, WorkerHandle) {
        let mailbox = Arc::new(Mailbox::default());
        let handle = WorkerHandle::new(Arc::clone(&mailbox), rings.waker());
        let number = handover.as_ref().map_or(0, Handover::worker);
        let started = handover.as_ref().map_or_else(Instant::now, |handover| handover.started);
        if let Some(handover) = &handover {
            engine.share_dispatch(Arc::clone(handover.dispatch()));
            ports.set_worker(number);
        }
        let mut worker = Worker {
            engine,
            pool,
            faces: Faces::new(table, number),
            links: Links::new(rings, ports),
            commands: Commands::new(mailbox),
            others: handover.map(OtherWorkers::new),
            burst: Burst::new(),
            activity: Activity::new(started),
        };
        for face in worker.faces.table.snapshot() {
            worker.faces().add_without_port(&face);
        }
        (worker, handle)
    }

    /// Returns when the worker's clock started.
    pub fn started(&self) -> Instant {
        self.activity.started
    }

    /// Gives the Content Store a second tier. Must be called before the first poll iteration.
    pub fn use_second_tier(&mut self, tier: Box<dyn SecondTier>) {
        self.engine.use_second_tier(tier);
    }

    /// Returns the engine, for measurements.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the number of this worker.
    fn number(&self) -> usize {
        self.faces.worker
    }

    /// Returns whether a poll iteration would find packets, commands, disk completions or unfinished work.
    fn has_work(&self) -> bool {
        self.links.has_work()
            || self.commands.has_work()
            || self.engine.has_tier_completions()
            || self.others.as_ref().is_some_and(OtherWorkers::has_work)
    }

    /// Returns when a poll iteration is due even without work; [`Timestamp::NEVER`] when no timer runs.
    fn next_deadline(&self) -> Timestamp {
        let links = self.faces.next_deadline().min(self.links.ports.next_deadline());
        self.engine.next_deadline().unwrap_or(Timestamp::NEVER).min(links)
    }

    /// Announces that the worker is about to sleep, so that other threads do not wait for it. The next poll iteration
    /// ends this state.
    fn prepare_to_sleep(&mut self) {
        self.engine.prepare_to_sleep();
    }

    /// Returns the waker of the worker, which all rings to it and its command queue use.
    fn waker(&self) -> &Waker {
        self.links.rings.from_control.waker()
    }

    /// Borrows the faces together with the engine, which has a record of each, too.
    fn faces(&mut self) -> FacesOfEngine<'_> {
        FacesOfEngine { faces: &mut self.faces, engine: &mut self.engine }
    }
}
