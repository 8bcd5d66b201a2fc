//! Lower bound of the cost of a hand-over on this host: as many cache lines move between two CPUs, without any
//! processing.
//!
//! Two threads on the CPUs of the first two workers exchange packets through a ring like that of workers. In the timed
//! part the sender writes as many bytes into the ring, and the receiver prefetches and reads the header and first bytes
//! of each packet of a burst. The cost of reading packets made by the same thread is subtracted, as in a hand-over.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;

use namehop_packet::{BufferPool, PacketBuffer};
use namehop_table::clock::{cycles, cycles_per_second};
use namehop_table::{HandoverReceiver, HandoverSender, handover_ring};
use namehop_worker::{BURST, Handover};

use super::turns::Turns;

/// Size of an Interest in bytes; a worker reads two cache lines of it.
const PACKET_BYTES: usize = 100;
const RING_PACKETS: usize = 1024;

/// An element as large as an element of the workers' rings.
#[repr(align(64))]
struct Slot {
    packet: PacketBuffer,
    rest: [u64; Handover::PARCEL_BYTES / size_of::<u64>() - 1],
}

const _: () = assert!(size_of::<Slot>() == Handover::PARCEL_BYTES);

/// Measurements of one thread in one turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FloorCost {
    packets: u64,
    cycles: u64,
    own_packets: u64,
    own_cycles: u64,
}

impl FloorCost {
    /// Extra cost of a packet that moves from one thread to the other, over both threads, in nanoseconds; `None` if no
    /// packet moved.
    pub(super) fn of_both(threads: &[Vec<FloorCost>], turn: usize) -> Option<f64> {
        let sum =
            |part: fn(&FloorCost) -> u64| threads.iter().map(|turns| turns.get(turn).map_or(0, part)).sum::<u64>();
        let (packets, own_packets) = (sum(|cost| cost.packets), sum(|cost| cost.own_packets));
        let each = |cycles: u64, packets: u64| 1e9 * cycles as f64 / cycles_per_second() as f64 / packets as f64;
        (packets > 0 && own_packets > 0)
            .then(|| each(sum(|cost| cost.cycles), packets) - each(sum(|cost| cost.own_cycles), own_packets))
    }
}

/// One thread, which sends to the other thread and receives from it.
pub(super) struct Floor {
    pool: BufferPool,
    to: HandoverSender<Slot>,
    from: HandoverReceiver<Slot>,
    burst: Vec<PacketBuffer>,
}

impl Floor {
    /// Creates both threads' states, connected by two rings.
    pub(super) fn pair(pool: &BufferPool) -> [Floor; 2] {
        let (to_second, from_first) = handover_ring(RING_PACKETS);
        let (to_first, from_second) = handover_ring(RING_PACKETS);
        let floor = |to, from| Floor { pool: pool.clone(), to, from, burst: Vec::with_capacity(BURST) };
        [floor(to_second, from_second), floor(to_first, from_first)]
    }

    /// Runs in the turns of this case.
    pub(super) fn run(mut self, turns: &Arc<Turns>, case: usize) -> Vec<FloorCost> {
        let (mut costs, mut number) = (Vec::new(), 0);
        while let Some((next, ())) = turns.next(|turn| (turn == case).then_some(()), number) {
            number = next;
            let mut cost = FloorCost::default();
            while turns.is(number) {
                self.send(&mut cost);
                self.receive(&mut cost);
                self.read_own(&mut cost);
            }
            if turns.counts(number) {
                costs.push(cost);
            }
        }
        costs
    }

    /// Makes a burst of packets in this CPU's cache.
    fn make(&mut self) {
        let made = std::iter::from_fn(|| self.pool.copy_of(&[5; PACKET_BYTES])).take(BURST);
        self.burst.extend(made);
    }

    fn send(&mut self, cost: &mut FloorCost) {
        self.make();
        let begin = cycles();
        for packet in self.burst.drain(..) {
            // If the ring is full, the packet returns to the pool.
            let _ = self.to.push_with(0, || Slot { packet, rest: [0; _] });
        }
        self.to.publish();
        cost.cycles += cycles().wrapping_sub(begin);
    }

    fn receive(&mut self, cost: &mut FloorCost) {
        let begin = cycles();
        let burst = &mut self.burst;
        let count = self.from.receive(BURST, |Slot { packet, rest }| {
            black_box(rest);
            packet.prefetch_to_change();
            burst.push(packet);
        });
        if count == 0 {
            thread::yield_now();
            return;
        }
        read(&self.burst);
        cost.cycles += cycles().wrapping_sub(begin);
        cost.packets += count as u64;
        self.burst.clear();
    }

    fn read_own(&mut self, cost: &mut FloorCost) {
        self.make();
        let begin = cycles();
        read(&self.burst);
        cost.own_cycles += cycles().wrapping_sub(begin);
        cost.own_packets += self.burst.len() as u64;
        self.burst.clear();
    }
}

/// Reads the header and the first lines of all packets.
fn read(packets: &[PacketBuffer]) {
    for packet in packets {
        let bytes = packet.bytes();
        black_box((bytes[0], bytes[PACKET_BYTES - 1]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_own_packets_cost_is_subtracted() {
        let second = cycles_per_second();
        let cost = FloorCost { packets: 10, cycles: second, own_packets: 20, own_cycles: second };
        assert_eq!(FloorCost::of_both(&[vec![cost], vec![cost]], 0), Some(5e7));
        assert_eq!(FloorCost::of_both(&[vec![cost], vec![cost]], 1), None);
    }

    #[test]
    fn packets_come_back_to_the_pool() {
        let pool = BufferPool::new(8_192, 1);
        let [mut first, mut second] = Floor::pair(&pool);
        let mut cost = FloorCost::default();
        for _ in 0..3 {
            first.send(&mut cost);
            second.receive(&mut cost);
            second.read_own(&mut cost);
        }
        assert_eq!((cost.packets, cost.own_packets), (3 * BURST as u64, 3 * BURST as u64));
        drop((first, second));
        assert_eq!(pool.in_use(), 0);
    }
}
