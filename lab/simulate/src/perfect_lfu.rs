//! Perfect LFU: evicts the packet with the fewest requests for its name since the start; among equals, the one that was
//! requested least recently.
//!
//! The counts outlive the packets (Breslau et al., "Web Caching and Zipf-like Distributions", INFOCOM 1999). With
//! independent requests the store converges to the most popular packets. The memory grows with the number of names.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use namehop_store::{Ahead, Arrival, EvictionPolicy, Parameters};
use namehop_table::TableError;

/// Position of a packet in the order of evictions; the least is evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Requests for the name since the start.
    requests: u32,
    /// Number of the last of them among all requests.
    last: u64,
}

/// A packet in the store.
#[derive(Debug, Clone, Copy)]
struct Packet {
    name: u64,
    rank: Rank,
}

/// Evicts by the counts of all names.
pub(crate) struct PerfectLfu {
    /// Requests for each name since the start, up to the last eviction of its packet.
    evicted: HashMap<u64, u32>,
    /// Packets by slot.
    packets: Vec<Option<Packet>>,
    /// One entry for each packet: its slot, and its rank when the entry was last at the top. A rank only increases, so
    /// the top is the victim if its entry is up to date.
    order: BinaryHeap<Reverse<(Rank, u32)>>,
    /// Number of requests so far.
    now: u64,
}

impl EvictionPolicy for PerfectLfu {
    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let packets = vec![None; parameters.slots];
        Ok(PerfectLfu { evicted: HashMap::new(), packets, order: BinaryHeap::new(), now: 0 })
    }

    fn admitted(&mut self, id: u32, arrival: &Arrival) {
        self.now += 1;
        let earlier = self.evicted.get(&arrival.name_hash).copied().unwrap_or(0);
        let rank = Rank { requests: earlier.saturating_add(1), last: self.now };
        self.packets[id as usize] = Some(Packet { name: arrival.name_hash, rank });
        self.order.push(Reverse((rank, id)));
    }

    fn hit(&mut self, id: u32) {
        let Some(packet) = &mut self.packets[id as usize] else { return };
        self.now += 1;
        packet.rank = Rank { requests: packet.rank.requests.saturating_add(1), last: self.now };
    }

    fn removed(&mut self, id: u32) {
        let Some(packet) = self.packets[id as usize].take() else { return };
        self.evicted.insert(packet.name, packet.rank.requests);
        if self.order.peek().is_some_and(|Reverse((_, top))| *top == id) {
            self.order.pop();
        } else {
            self.order.retain(|Reverse((_, other))| *other != id);
        }
    }

    fn victim(&mut self) -> Option<u32> {
        loop {
            let mut top = self.order.peek_mut()?;
            let Reverse((rank, id)) = *top;
            let now = self.packets[id as usize].map_or(rank, |packet| packet.rank);
            if now == rank {
                return Some(id);
            }
            // The entry moves to its place in the order when `top` is dropped.
            *top = Reverse((now, id));
        }
    }

    fn upcoming(&self, _: &mut Ahead) -> Option<u32> {
        None
    }

    fn prefetch(&self, _: u32) {}

    fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::SimulatedPolicy;
    use crate::store::store;

    /// A store under perfect LFU that searches all requests so far.
    #[derive(Default)]
    struct Model {
        requests: Vec<u64>,
        stored: Vec<u64>,
    }

    impl Model {
        fn rank(&self, name: u64) -> (usize, Option<usize>) {
            let requests = self.requests.iter().filter(|&&other| other == name).count();
            (requests, self.requests.iter().rposition(|&other| other == name))
        }

        fn victim(&self) -> Option<u64> {
            self.stored.iter().copied().min_by_key(|&name| self.rank(name))
        }

        fn request(&mut self, name: u64, capacity: usize) -> bool {
            let is_hit = self.stored.contains(&name);
            if !is_hit && capacity > 0 {
                if self.stored.len() >= capacity {
                    let victim = self.victim();
                    self.stored.retain(|&other| Some(other) != victim);
                }
                self.stored.push(name);
            }
            self.requests.push(name);
            is_hit
        }
    }

    proptest! {
        #[test]
        fn hits_are_those_of_the_model(names in prop::collection::vec(0..12_u64, 0..200), capacity in 0..6_usize) {
            let mut model = Model::default();
            let expected: Vec<bool> = names.iter().map(|&name| model.request(name, capacity)).collect();
            let mut hits = Vec::new();
            let mut store = store(SimulatedPolicy::PerfectLfu, capacity).expect("memory");
            store.request(&names, &mut |hit| hits.push(hit));
            prop_assert_eq!(hits, expected);
        }
    }

    #[test]
    fn counts_outlive_packets() {
        let mut lfu = PerfectLfu::new(&Parameters::new(2, 2)).expect("memory");
        lfu.admitted(0, &Arrival::fresh(100));
        lfu.hit(0);
        lfu.admitted(1, &Arrival::fresh(101));
        assert_eq!((lfu.victim(), lfu.len()), (Some(1), 2));
        // Not the victim: its entry is inside the order.
        lfu.removed(0);
        lfu.removed(0);
        assert_eq!((lfu.victim(), lfu.len()), (Some(1), 1));
        lfu.hit(1);
        lfu.admitted(0, &Arrival::fresh(100));
        assert_eq!(lfu.victim(), Some(1), "three requests for 100 and two for 101");
    }
}
