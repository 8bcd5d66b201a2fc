//! A worker: processes the packets from its receive queues with the program, and sends the packets that the program
//! outputs.
//!
//! Each queue belongs to one worker. Packets of one flow come through one queue, so they stay in order. A worker sends
//! on its own queue of a port. If it has none, the worker with the port's first queue sends for it. A worker never
//! waits for a batch to fill: a batch is the packets that have arrived.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use namehop_face::wake::Waker;
use namehop_packet::{PacketBuffer, PortQueue};
use namehop_port::BURST;

use crate::program::{Engine, Fates};

/// Maximum number of packets that wait for a full port; further ones are dropped.
const MOST_WAITING: usize = 1024;
/// Maximum number of packets that wait for another worker to send them.
pub(crate) const HANDED_OVER: usize = 1024;
/// Poll iterations without a packet before a worker sleeps.
const IDLE_TURNS: u32 = 200;
/// Longest sleep of a worker if some queue cannot wake it.
const POLL_PAUSE: Duration = Duration::from_micros(50);
/// Polling interval of a worker that is held.
const HELD_PAUSE: Duration = Duration::from_micros(20);
/// Longest sleep of a worker otherwise.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// A counter with one writing thread.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    fn add(&self, count: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of one worker for one port.
#[derive(Debug, Default)]
pub(crate) struct PortCounters {
    pub(crate) received_packets: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) sent_packets: Counter,
    pub(crate) sent_bytes: Counter,
    pub(crate) output_full: Counter,
}

/// Counters of one worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerCounters {
    pub(crate) ports: Vec<PortCounters>,
    pub(crate) bursts: Counter,
    pub(crate) dropped: Counter,
    pub(crate) lost: Counter,
    pub(crate) no_buffer: Counter,
    pub(crate) oversized: Counter,
    pub(crate) no_port: Counter,
}

/// Packets for a port from workers without a queue of it.
pub(crate) struct HandOver {
    pub(crate) packets: ArrayQueue<PacketBuffer>,
    pub(crate) waker: Arc<Waker>,
}

/// A worker's view of a port.
pub(crate) struct WorkerPort {
    pub(crate) number: u32,
    pub(crate) queue: Option<Box<dyn PortQueue>>,
    /// True if this worker sends for the workers without a queue.
    pub(crate) is_first: bool,
    pub(crate) others: Arc<HandOver>,
    pub(crate) waiting: Vec<PacketBuffer>,
}

/// State of a worker.
pub(crate) struct Worker {
    pub(crate) engine: Arc<Mutex<Engine>>,
    pub(crate) ports: Vec<WorkerPort>,
    /// Index in `ports`, by port number.
    pub(crate) place_of: Vec<Option<u16>>,
    pub(crate) counters: Arc<WorkerCounters>,
    pub(crate) waker: Arc<Waker>,
    pub(crate) is_stopping: Arc<AtomicBool>,
    /// True while packets have to wait for several changes that are made as one step.
    pub(crate) is_held: Arc<AtomicBool>,
}

impl Worker {
    /// Runs until it is told to stop.
    pub(crate) fn run(mut self) {
        let (mut received, mut leaving, mut frames) = (Vec::new(), Vec::new(), Vec::with_capacity(BURST));
        let mut idle = 0;
        while !self.is_stopping.load(Ordering::Relaxed) {
            self.receive(&mut frames, &mut received);
            idle = if received.is_empty() { idle + 1 } else { 0 };
            if !received.is_empty() {
                let fates = self.engine().process(&mut received, &mut leaving);
                self.count(fates);
            }
            self.hand_out(&mut leaving);
            if self.send() {
                idle = 0;
            }
            if idle > IDLE_TURNS {
                self.sleep();
            }
        }
        // Send the packets that were already processed.
        self.send();
    }

    /// Locks the engine, once workers are not held.
    fn engine(&self) -> MutexGuard<'_, Engine> {
        loop {
            let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.is_held.load(Ordering::Acquire) {
                return engine;
            }
            drop(engine);
            std::thread::sleep(HELD_PAUSE);
        }
    }

    fn receive(&mut self, frames: &mut Vec<PacketBuffer>, received: &mut Vec<(u32, PacketBuffer)>) {
        for (port, counters) in self.ports.iter_mut().zip(&self.counters.ports) {
            let Some(queue) = &mut port.queue else { continue };
            queue.receive(frames);
            if frames.is_empty() {
                continue;
            }
            counters.received_packets.add(frames.len() as u64);
            counters.received_bytes.add(frames.iter().map(|frame| frame.bytes().len() as u64).sum());
            let number = port.number;
            received.extend(frames.drain(..).map(|frame| (number, frame)));
        }
    }

    fn count(&self, fates: Fates) {
        let counters = &self.counters;
        counters.bursts.add(1);
        for (counter, count) in [
            (&counters.dropped, fates.dropped),
            (&counters.lost, fates.lost),
            (&counters.no_buffer, fates.no_buffer),
            (&counters.oversized, fates.oversized),
        ] {
            if count > 0 {
                counter.add(count);
            }
        }
    }

    /// Distributes packets to the queues of their ports; counts packets for unknown or full ports.
    fn hand_out(&mut self, leaving: &mut Vec<(u32, PacketBuffer)>) {
        for (number, packet) in leaving.drain(..) {
            let place = self.place_of.get(number as usize).copied().flatten();
            let Some(place) = place.map(usize::from) else {
                self.counters.no_port.add(1);
                continue;
            };
            let port = &mut self.ports[place];
            let is_full = if port.queue.is_some() {
                let is_full = port.waiting.len() >= MOST_WAITING;
                if !is_full {
                    port.waiting.push(packet);
                }
                is_full
            } else {
                let refused = port.others.packets.push(packet).is_err();
                port.others.waker.wake();
                refused
            };
            if is_full {
                self.counters.ports[place].output_full.add(1);
            }
        }
    }

    /// Sends waiting packets. Returns true if any packet was sent.
    fn send(&mut self) -> bool {
        let mut any = false;
        for (port, counters) in self.ports.iter_mut().zip(&self.counters.ports) {
            let Some(queue) = &mut port.queue else { continue };
            if port.is_first {
                while port.waiting.len() < MOST_WAITING
                    && let Some(packet) = port.others.packets.pop()
                {
                    port.waiting.push(packet);
                }
            }
            if port.waiting.is_empty() {
                continue;
            }
            let (before, bytes) = (port.waiting.len(), bytes_of(&port.waiting));
            queue.transmit(&mut port.waiting);
            let sent = before - port.waiting.len();
            if sent > 0 {
                any = true;
                counters.sent_packets.add(sent as u64);
                counters.sent_bytes.add(bytes - bytes_of(&port.waiting));
            }
        }
        any
    }

    /// Sleeps until a packet arrives, or for a short time if some queue cannot wake the worker.
    fn sleep(&mut self) {
        for port in &mut self.ports {
            if let Some(queue) = &mut port.queue {
                queue.prepare_to_sleep();
            }
        }
        let Worker { ports, waker, is_stopping, .. } = self;
        let queues = || ports.iter().filter_map(|port| port.queue.as_ref());
        let bells: Vec<BorrowedFd<'_>> = queues().filter_map(|queue| queue.bell()).collect();
        let has_all = bells.len() == queues().count() && ports.iter().all(|port| port.waiting.is_empty());
        let timeout = if has_all { LONGEST_SLEEP } else { POLL_PAUSE };
        let is_ready = || {
            is_stopping.load(Ordering::Relaxed)
                || ports.iter().any(|port| port.is_first && !port.others.packets.is_empty())
        };
        if waker.poll(&bells, Some(timeout), is_ready).is_err() {
            std::thread::sleep(POLL_PAUSE);
        }
    }
}

fn bytes_of(packets: &[PacketBuffer]) -> u64 {
    packets.iter().map(|packet| packet.bytes().len() as u64).sum()
}
