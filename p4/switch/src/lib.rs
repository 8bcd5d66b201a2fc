//! Compiled P4 programs on ports.
//!
//! * [`program`]: a program that `namehop p4 compile` made, loaded into this process as a table of C functions.
//! * [`ports`]: where packets come from and go to.
//! * `worker`: threads that move packets from ports through the program to ports.
//! * [`batch_model`]: the size of a batch that costs least, by the equations of a paper.
//! * [`Switch`]: all of these together, with their counters.
//! * `objects`: tables, cells and groups of a running program, and [`Running`]: their control by P4Runtime.
//!
//! Only [`program`] and [`cells`] contain `unsafe` code: they call C.
//!
//! ```
//! use namehop_switch::batch_model::{Processing, cheapest};
//!
//! // Large batches hide the latency of memory.
//! let processing = Processing { necessary: 100.0, fetch: 300.0, others: 4.0, ..Processing::default() };
//! let cycles = |batch| processing.cycles(batch);
//! assert!(cycles(16) < cycles(1));
//! assert_eq!(cheapest(&[1, 16], cycles), Some(16));
//! ```

pub mod batch_model;
mod batches;
pub mod cells;
mod control_socket;
pub mod controller;
pub mod digests;
mod ffi;
mod objects;
pub mod ports;
pub mod program;
mod service;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
mod worker;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crossbeam_queue::ArrayQueue;
use namehop_face::wake::Waker;
use namehop_packet::BufferPool;
use serde::Serialize;
use thiserror::Error;

pub use batches::{BatchReport, Measured};
use cells::Standstill;
pub use control_socket::ControlSocket;
use controller::Controller;
use ports::{Opener, Port, PortError, PortSpec};
use program::{Engine, Program, TooManyEngines};
pub use service::Running;
use worker::{HANDED_OVER, HandOver, PortCounters, Worker, WorkerCounters, WorkerPort};

/// Maximum number of workers of a switch.
pub const MAX_WORKERS: usize = 32;
/// Maximum number of packets in memory: packets of usual size, further ones for each port and worker, and long packets.
const SMALL_PACKETS: usize = 16_384;
const SMALL_EACH: usize = 4_096;
const LARGE_PACKETS: usize = 1_024;
/// Number of port numbers: v1model has 9 bits.
const PORT_NUMBERS: usize = 512;

/// Counters of a port.
#[derive(Debug, Clone, Serialize)]
pub struct PortReport {
    /// The program's number of the port.
    pub port: u32,
    /// URI of the device.
    pub uri: String,
    /// True if the link is up.
    pub up: bool,
    /// Number of receive queues; each is served by its own worker.
    pub queues: usize,
    /// How packets are spread over the queues.
    pub spread: String,
    /// Received packets.
    pub received_packets: u64,
    /// Received packets of each worker.
    pub received_packets_by_worker: Vec<u64>,
    /// Bytes of the received packets, with Ethernet headers.
    pub received_bytes: u64,
    /// Packets that the device accepted for sending.
    pub sent_packets: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Packets dropped because too many waited for the port.
    pub output_full: u64,
    /// Frames dropped because the receive ring was full.
    pub receive_ring_full: u64,
    /// Frames dropped because no buffer was free.
    pub no_buffer: u64,
    /// Received data that is not a frame.
    pub malformed: u64,
    /// Frames that the device refused to send.
    pub send_failed: u64,
}

/// Counters of a switch.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Name of the program.
    pub program: String,
    /// Number of threads that process packets.
    pub workers: usize,
    /// Bursts that the program processed.
    pub bursts: u64,
    /// Packets that the program dropped, if known: programs that copy packets do not report it.
    pub dropped: u64,
    /// Packets dropped because the program took too many steps or rounds for them.
    pub lost: u64,
    /// Packets dropped because there was no memory for a copy.
    pub no_buffer: u64,
    /// Packets dropped because there was no room for their headers.
    pub oversized: u64,
    /// Packets to port numbers that the switch does not have.
    pub no_port: u64,
    /// How each worker chose its batch size; empty if the size was given.
    pub batches: Vec<BatchReport>,
    /// The ports, in the order in which they were given.
    pub ports: Vec<PortReport>,
}

/// Access to the engines of a running switch.
pub struct Control {
    program: Arc<Program>,
    engines: Vec<Arc<Mutex<Engine>>>,
    is_held: Arc<AtomicBool>,
}

/// While this exists, workers process no packets.
pub struct Hold<'c>(&'c AtomicBool);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Control {
    /// Calls `work` while no worker processes packets. Keep it short: packets wait in their queues meanwhile.
    pub fn between_bursts<R>(&self, work: impl FnOnce(&mut Standstill<'_>) -> R) -> R {
        // Lock always in the same order, so that two callers cannot deadlock.
        let engines = self.engines.iter();
        let _held: Vec<_> = engines.map(|engine| engine.lock().unwrap_or_else(PoisonError::into_inner)).collect();
        work(&mut Standstill::new(&self.program))
    }

    /// Stops all workers from processing packets until the result is dropped, so that packets see all changes made
    /// meanwhile as one step. Packets wait in their queues. Only one caller at a time may do this.
    pub fn hold(&self) -> Hold<'_> {
        self.is_held.store(true, Ordering::Release);
        let hold = Hold(&self.is_held);
        // A worker checks the flag once it has locked its engine. So after this, each worker is between bursts and
        // starts no burst.
        self.each_engine(|_| ());
        hold
    }

    /// Calls `work` with the engine of each worker, between two of its bursts.
    pub fn each_engine(&self, mut work: impl FnMut(&mut Engine)) {
        for engine in &self.engines {
            work(&mut engine.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// A program that runs on ports. It stops on drop.
pub struct Switch {
    /// The program; its tables can be changed while it runs.
    pub program: Arc<Program>,
    ports: Vec<Port>,
    counters: Vec<Arc<WorkerCounters>>,
    wakers: Vec<Arc<Waker>>,
    threads: Vec<JoinHandle<()>>,
    engines: Vec<Arc<Mutex<Engine>>>,
    is_stopping: Arc<AtomicBool>,
    is_held: Arc<AtomicBool>,
    /// The controller's end of the controller port, if there is one.
    pub controller: Option<Arc<Controller>>,
    /// Memif ports work as long as it exists.
    _opener: Opener,
}

/// Why a switch cannot be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// The program keeps state about packets.
    #[error("{0} uses registers or depends on packet order, which needs a single worker: omit --workers")]
    OneWorker(String),
    /// Two ports have the same number, or there is no such number.
    #[error("port {0} is given twice, or its number is too large")]
    PortNumber(u32),
    /// A port cannot be opened.
    #[error("port {}={}: {}", .0.number, .0.uri, .1)]
    Port(Box<PortSpec>, PortError),
    /// The program refuses an engine.
    #[error(transparent)]
    Engine(#[from] TooManyEngines),
    /// The system refuses a thread.
    #[error("cannot start a worker: {0}")]
    Thread(io::Error),
}

impl Switch {
    /// Opens the ports and starts the workers. `batch` is the batch size; 0 selects the program's own.
    ///
    /// # Errors
    /// Returns what is wrong and what to do.
    pub fn start(program: Program, specs: &[PortSpec], workers: usize, batch: u32) -> Result<Switch, StartError> {
        let workers = workers.clamp(1, MAX_WORKERS);
        if workers > 1 && program.needs_one_worker() {
            return Err(StartError::OneWorker(program.name));
        }
        let pool = BufferPool::new(SMALL_PACKETS + SMALL_EACH * (specs.len() + workers), LARGE_PACKETS);
        let mut place_of = vec![None; PORT_NUMBERS];
        let mut opener = Opener::new(&pool, workers);
        let (mut ports, mut queues) = (Vec::new(), Vec::new());
        for (place, spec) in specs.iter().enumerate() {
            let number = place_of.get_mut(spec.number as usize).filter(|number| number.is_none());
            *number.ok_or(StartError::PortNumber(spec.number))? = Some(place as u16);
            let unopened = |error| StartError::Port(Box::new(spec.clone()), error);
            let (port, queues_of_port) = opener.open(spec).map_err(unopened)?;
            ports.push(port);
            queues.push(queues_of_port);
        }
        let wakers: Vec<_> = (0..workers).map(|_| Arc::new(Waker::new())).collect();
        let is_stopping = Arc::new(AtomicBool::new(false));
        // Distribute ports with one queue over the workers.
        let first_of = |place: usize, queues: usize| if queues == 1 { place % workers } else { 0 };
        let others: Vec<_> = queues
            .iter()
            .enumerate()
            .map(|(place, list)| HandOver {
                packets: ArrayQueue::new(HANDED_OVER),
                waker: Arc::clone(&wakers[first_of(place, list.len())]),
            })
            .map(Arc::new)
            .collect();
        let mut all: Vec<Vec<WorkerPort>> = (0..workers).map(|_| Vec::new()).collect();
        for (place, list) in queues.into_iter().enumerate() {
            let first = first_of(place, list.len());
            let mut list = list.into_iter();
            for step in 0..workers {
                let worker = (first + step) % workers;
                all[worker].push(WorkerPort {
                    number: specs[place].number,
                    queue: list.next(),
                    is_first: step == 0,
                    others: Arc::clone(&others[place]),
                    waiting: Vec::with_capacity(64),
                });
            }
        }
        let mut switch = Switch {
            program: Arc::new(program),
            ports,
            counters: Vec::new(),
            wakers,
            threads: Vec::new(),
            engines: Vec::new(),
            is_stopping,
            is_held: Arc::default(),
            controller: opener.controller.take(),
            _opener: opener,
        };
        for (number, ports) in all.into_iter().enumerate() {
            let counters = WorkerCounters {
                ports: specs.iter().map(|_| PortCounters::default()).collect(),
                ..WorkerCounters::default()
            };
            let worker = Worker {
                engine: Arc::new(Mutex::new(switch.program.engine(batch, &pool)?)),
                ports,
                place_of: place_of.clone(),
                counters: Arc::new(counters),
                waker: Arc::clone(&switch.wakers[number]),
                is_stopping: Arc::clone(&switch.is_stopping),
                is_held: Arc::clone(&switch.is_held),
            };
            switch.engines.push(Arc::clone(&worker.engine));
            switch.counters.push(Arc::clone(&worker.counters));
            let thread = thread::Builder::new().name(format!("worker{number}")).spawn(move || worker.run());
            switch.threads.push(thread.map_err(StartError::Thread)?);
        }
        switch.ports.iter().for_each(Port::start);
        Ok(switch)
    }

    /// Access to the engines, for changes beyond tables, from any thread.
    pub fn control(&self) -> Control {
        let (program, is_held) = (Arc::clone(&self.program), Arc::clone(&self.is_held));
        Control { program, engines: self.engines.clone(), is_held }
    }

    /// True if all ports are captures that were read to their end and written.
    pub fn is_done(&self) -> bool {
        self.ports.iter().all(Port::is_done)
    }

    /// A port with a device that is permanently gone, if there is one.
    pub fn gone(&self) -> Option<&PortSpec> {
        self.ports.iter().find(|port| port.is_gone()).map(|port| &port.spec)
    }

    /// True if a worker has ended by itself, which is a bug.
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// The current counters.
    pub fn report(&self) -> Report {
        let sum = |of: &dyn Fn(&WorkerCounters) -> u64| self.counters.iter().map(|counters| of(counters)).sum();
        let port = |(place, port): (usize, &Port)| {
            let losses = port.losses();
            PortReport {
                port: port.spec.number,
                uri: port.spec.uri.to_string(),
                up: port.is_up(),
                queues: port.queues,
                spread: port.spread.to_string(),
                received_packets_by_worker: self
                    .counters
                    .iter()
                    .map(|counters| counters.ports[place].received_packets.get())
                    .collect(),
                received_packets: sum(&|counters| counters.ports[place].received_packets.get()),
                received_bytes: sum(&|counters| counters.ports[place].received_bytes.get()),
                sent_packets: sum(&|counters| counters.ports[place].sent_packets.get()),
                sent_bytes: sum(&|counters| counters.ports[place].sent_bytes.get()),
                output_full: sum(&|counters| counters.ports[place].output_full.get()),
                receive_ring_full: losses.receive_ring_full,
                no_buffer: losses.no_buffer,
                malformed: losses.malformed,
                send_failed: losses.send_failed,
            }
        };
        Report {
            program: self.program.name.clone(),
            workers: self.counters.len(),
            bursts: sum(&|counters| counters.bursts.get()),
            dropped: sum(&|counters| counters.dropped.get()),
            lost: sum(&|counters| counters.lost.get()),
            no_buffer: sum(&|counters| counters.no_buffer.get()),
            oversized: sum(&|counters| counters.oversized.get()),
            no_port: sum(&|counters| counters.no_port.get()),
            batches: self
                .engines
                .iter()
                .filter_map(|engine| engine.lock().unwrap_or_else(PoisonError::into_inner).tuned())
                .collect(),
            ports: self.ports.iter().enumerate().map(port).collect(),
        }
    }

    /// Stops the workers; packets that are being sent are still sent. The counters remain readable.
    pub fn stop(&mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.wakers.iter().for_each(|waker| waker.wake());
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a worker panicked");
            }
        }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.stop();
    }
}
