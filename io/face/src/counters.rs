//! Counters of one face: packets, bytes, frames, and drops by reason.
//!
//! Each counter has a single writing thread, so an addition is a relaxed load and a relaxed store, without a locked
//! instruction. Each worker has its own counters for each face, and [`FaceCounters::transport`] belongs to the thread
//! that serves the link. Any thread may read; values read together need not be from the same instant.

mod link_drops;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use namehop_packet::{DropReason, PacketKind};

pub use link_drops::{LinkDrop, LinkDropCounters, LinkDropTotals};

/// A counter with one writing thread.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`. Only for the thread that owns this counter: concurrent additions from two threads would be lost.
    #[inline]
    pub fn add(&self, count: u64) {
        let value = self.0.load(Ordering::Relaxed).wrapping_add(count);
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns the present value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Drops by the engine's reason number ([`DropReason::index`]), readable by every thread.
#[derive(Debug)]
pub struct EngineDropCounters([Counter; DropReason::COUNT]);

impl EngineDropCounters {
    /// Sets the total for this reason number; ignores an unknown number. The engine has its own counts, and the worker
    /// publishes them from time to time. Worker only.
    pub fn set(&self, reason: u8, total: u64) {
        if let Some(counter) = self.0.get(usize::from(reason)) {
            counter.0.store(total, Ordering::Relaxed);
        }
    }

    /// Returns the drops for this reason number; 0 for an unknown number.
    pub fn get(&self, reason: u8) -> u64 {
        self.0.get(usize::from(reason)).map_or(0, Counter::get)
    }
}

impl Default for EngineDropCounters {
    fn default() -> Self {
        EngineDropCounters(std::array::from_fn(|_| Counter::default()))
    }
}

/// Packets of one kind in one direction.
#[derive(Debug, Default)]
pub struct KindCounters {
    /// Network-layer packets.
    pub packets: Counter,
    /// Their bytes, without link-layer headers.
    pub bytes: Counter,
}

/// One direction of a face.
#[derive(Debug, Default)]
pub struct DirectionCounters {
    /// Link-layer packets, fragments and retransmissions included.
    pub frames: Counter,
    /// Bytes of those frames (NFD management: NInBytes, NOutBytes).
    pub bytes: Counter,
    /// Interests.
    pub interests: KindCounters,
    /// Data.
    pub data: KindCounters,
    /// Nacks.
    pub nacks: KindCounters,
}

impl DirectionCounters {
    /// Returns the counters of one packet kind.
    pub fn kind(&self, kind: PacketKind) -> &KindCounters {
        match kind {
            PacketKind::Interest => &self.interests,
            PacketKind::Data => &self.data,
            PacketKind::Nack => &self.nacks,
        }
    }

    /// Counts one network-layer packet.
    pub fn count_packet(&self, kind: PacketKind, bytes: usize) {
        let counters = self.kind(kind);
        counters.packets.add(1);
        counters.bytes.add(bytes as u64);
    }

    /// Counts one link-layer packet.
    pub fn count_frame(&self, bytes: usize) {
        self.frames.add(1);
        self.bytes.add(bytes as u64);
    }
}

/// Counters written by a worker. They are on their own cache lines, apart from the counters of the link's thread.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct WorkerCounters {
    /// Received.
    pub received: DirectionCounters,
    /// Sent.
    pub sent: DirectionCounters,
    /// Packets that this face marked as congested.
    pub congestion_marks: Counter,
    /// Link reliability: frames retransmitted.
    pub retransmissions: Counter,
    /// Link reliability: frames acknowledged by the peer.
    pub acknowledged: Counter,
    /// Link reliability: frames sent without protection because the window or the buffer pool was full.
    pub unprotected: Counter,
    /// Drops by the link service.
    pub link_drops: LinkDropCounters,
    /// Drops by the engine, counted on the face on which the packet arrived or was to be sent.
    pub engine_drops: EngineDropCounters,
}

/// Counters written by the thread that serves the link.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct TransportCounters {
    /// Drops below the link service.
    pub drops: LinkDropCounters,
}

/// All counters of one face.
#[derive(Debug)]
pub struct FaceCounters {
    /// One for each worker, and written only by it.
    workers: Box<[Arc<WorkerCounters>]>,
    /// Written by the thread that serves the link.
    pub transport: TransportCounters,
}

impl FaceCounters {
    /// Creates counters at zero for `workers` workers, at least one. Link drops are also counted in `totals`.
    pub fn new(totals: &Arc<LinkDropTotals>, workers: usize) -> Self {
        let of_worker = || WorkerCounters { link_drops: LinkDropCounters::new(totals), ..WorkerCounters::default() };
        FaceCounters {
            workers: (0..workers.max(1)).map(|_| Arc::new(of_worker())).collect(),
            transport: TransportCounters { drops: LinkDropCounters::new(totals) },
        }
    }

    /// Returns the counters of the worker with this number.
    ///
    /// # Panics
    /// If there is no worker with this number.
    pub fn worker(&self, number: usize) -> &Arc<WorkerCounters> {
        &self.workers[number]
    }

    /// Returns the sum of a count over all workers.
    pub fn sum(&self, count: impl Fn(&WorkerCounters) -> u64) -> u64 {
        self.workers.iter().map(|worker| count(worker)).sum()
    }

    /// Returns the drops by the engines for this reason.
    pub fn engine_drop(&self, reason: DropReason) -> u64 {
        self.sum(|worker| worker.engine_drops.get(reason.index() as u8))
    }

    /// Counts a drop on the link's thread (not on a worker).
    pub fn count_transport_drop(&self, reason: LinkDrop) {
        self.transport.drops.add(reason, 1);
    }

    /// Returns the drops on the link side for this reason, of all threads.
    pub fn link_drop(&self, reason: LinkDrop) -> u64 {
        self.sum(|worker| worker.link_drops.get(reason)) + self.transport.drops.get(reason)
    }

    /// Returns name and count of every reason that occurred: link reasons first, then the engine's.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let link = LinkDrop::ALL.iter().map(|&reason| (reason.name(), self.link_drop(reason)));
        let engine = DropReason::ALL.iter().map(|&reason| (reason.name(), self.engine_drop(reason)));
        link.chain(engine).filter(|&(_, count)| count > 0)
    }
}

impl Default for FaceCounters {
    fn default() -> Self {
        FaceCounters::new(&Arc::default(), 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_listed_by_name_from_all_threads_and_the_engines() {
        let counters = FaceCounters::new(&Arc::default(), 2);
        counters.worker(0).link_drops.add(LinkDrop::NoBuffer, 1);
        counters.worker(1).link_drops.add(LinkDrop::NoBuffer, 1);
        counters.count_transport_drop(LinkDrop::NoBuffer);
        let dead_nonce = DropReason::DeadNonce.index() as u8;
        counters.worker(0).engine_drops.set(dead_nonce, 4);
        counters.worker(1).engine_drops.set(dead_nonce, 1);
        counters.worker(1).engine_drops.set(255, 7);
        let listed: Vec<_> = counters.drops().collect();
        assert_eq!(listed, [("no-buffer", 3), ("dead-nonce", 5)]);
        assert_eq!(counters.engine_drop(DropReason::DeadNonce), 5);
        assert_eq!(counters.worker(1).engine_drops.get(255), 0);
    }

    #[test]
    fn totals_outlive_the_face() {
        let totals = Arc::default();
        let counters = [FaceCounters::new(&totals, 1), FaceCounters::new(&totals, 1)];
        counters[0].worker(0).link_drops.add(LinkDrop::NoBuffer, 2);
        counters[1].count_transport_drop(LinkDrop::NoBuffer);
        drop(counters);
        assert_eq!(totals.get(LinkDrop::NoBuffer), 3);
    }

    #[test]
    fn packets_are_counted_by_kind() {
        let direction = DirectionCounters::default();
        direction.count_packet(PacketKind::Nack, 13);
        direction.count_packet(PacketKind::Nack, 7);
        direction.count_frame(40);
        assert_eq!(direction.nacks.packets.get(), 2);
        assert_eq!(direction.kind(PacketKind::Nack).bytes.get(), 20);
        assert_eq!((direction.frames.get(), direction.bytes.get()), (1, 40));
        assert_eq!(direction.data.packets.get(), 0);
    }
}
