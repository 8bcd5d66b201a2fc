//! Capacity planning: the limiting resource for a given traffic, and the number of hosts and workers needed.
//!
//! All rates count Interests, each of which brings one Data back: from the cache, or from upstream. Cores and memory
//! bandwidth bound the rate as in [`throughput`](crate::throughput): λ ≤ min(N·F/C, B/M). Links bound it too, and the
//! tables must fit into memory. Load is the used share of cores, of memory bandwidth, or of links in their busier
//! direction.

use serde::Serialize;

use crate::throughput::{Cost, Host, PacketCosts};

/// Ethernet overhead per frame in bytes: preamble, header, check sequence, gap.
pub const ETHERNET_BYTES: f64 = 38.0;
/// Bytes of an NDNLPv2 header with a PIT token, as between routers that return tokens.
pub const LINK_HEADER_BYTES: f64 = 20.0;

/// Traffic to be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Demand {
    /// Interests received from all downstreams together.
    pub interests_per_second: f64,
    /// Size of an Interest, without link headers.
    pub interest_bytes: f64,
    /// Size of a Data packet, without link headers.
    pub data_bytes: f64,
    /// Share of the Interests that the cache answers, 0 to 1.
    pub hit_rate: f64,
    /// Share of the forwarded Interests that get no Data, 0 to 1.
    pub unanswered: f64,
    /// Time from forwarding an Interest to its Data.
    pub round_trip_seconds: f64,
    /// Time for which an unanswered Interest is pending.
    pub lifetime_seconds: f64,
}

/// Resources of one host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Machine {
    /// Forwarding cores and memory bandwidth.
    #[serde(flatten)]
    pub computer: Host,
    /// Memory for all tables.
    pub memory_bytes: f64,
    /// Bandwidth of all links together, in each direction.
    pub link_bits_per_second: f64,
    /// Cost of packets on one core.
    pub costs: PacketCosts,
}

/// Size of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tables {
    /// FIB, shared by all workers.
    pub fib_bytes: f64,
    /// Pending Interests.
    pub pit_bytes: f64,
    /// Cached Data.
    pub cache_bytes: f64,
}

impl Tables {
    /// Sum of all tables.
    pub fn total(&self) -> f64 {
        self.fib_bytes + self.pit_bytes + self.cache_bytes
    }
}

/// The limiting resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Cycles of cores.
    Computation,
    /// Memory bandwidth, in bytes per second.
    MemoryRate,
    /// Link bandwidth, in bits per second.
    Links,
    /// Memory size, in bytes.
    MemorySize,
}

/// Upper bounds of the rate, in Interests per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// N·F/C.
    pub by_computation: f64,
    /// B/M.
    pub by_memory_rate: f64,
    /// Bandwidth of links in the busier direction.
    pub by_links: f64,
}

impl Bounds {
    /// The lowest bound.
    pub fn rate(&self) -> f64 {
        self.by_computation.min(self.by_memory_rate).min(self.by_links)
    }

    /// The resource of the lowest bound.
    pub fn limit(&self) -> Limit {
        if self.by_links < self.by_computation.min(self.by_memory_rate) {
            Limit::Links
        } else if self.by_memory_rate < self.by_computation {
            Limit::MemoryRate
        } else {
            Limit::Computation
        }
    }
}

impl Demand {
    /// Average cost of an Interest and its Data: (1−h)·(I-miss + (1−u)·Data) + h·I-hit, where u is the unanswered
    /// share.
    pub fn cost(&self, costs: &PacketCosts) -> Cost {
        let missed = 1.0 - self.hit_rate;
        let answered = missed * (1.0 - self.unanswered);
        let average = |of: fn(&Cost) -> f64| {
            missed * of(&costs.interest_miss) + answered * of(&costs.data) + self.hit_rate * of(&costs.interest_hit)
        };
        Cost { cycles: average(|cost| cost.cycles), bytes: average(|cost| cost.bytes) }
    }

    /// Bits received and sent per Interest, including link headers and Ethernet overhead.
    pub fn link_bits(&self) -> (f64, f64) {
        let on_link = |bytes: f64| 8.0 * (bytes + LINK_HEADER_BYTES + ETHERNET_BYTES);
        let (interest, data) = (on_link(self.interest_bytes), on_link(self.data_bytes));
        let missed = 1.0 - self.hit_rate;
        let answered = missed * (1.0 - self.unanswered);
        (interest + answered * data, missed * interest + (answered + self.hit_rate) * data)
    }

    /// Average number of pending Interests (Little's law).
    pub fn pending(&self) -> f64 {
        let sent_on = self.interests_per_second * (1.0 - self.hit_rate);
        sent_on * ((1.0 - self.unanswered) * self.round_trip_seconds + self.unanswered * self.lifetime_seconds)
    }

    /// Packets received per second, Interests and Data.
    pub fn packets_per_second(&self) -> f64 {
        self.interests_per_second * (1.0 + (1.0 - self.hit_rate) * (1.0 - self.unanswered))
    }

    /// Upper bounds of this traffic's rate on one host.
    pub fn bounds(&self, machine: &Machine) -> Bounds {
        let bound = machine.computer.bound(&self.cost(&machine.costs));
        let (received, sent) = self.link_bits();
        Bounds {
            by_computation: bound.by_computation,
            by_memory_rate: bound.by_memory,
            by_links: machine.link_bits_per_second / received.max(sent),
        }
    }
}

/// Hosts and workers that a demand needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Need {
    /// Number of hosts, among which names are divided.
    pub machines: f64,
    /// Forwarding cores of each host; at most as many as it has.
    pub workers: f64,
    /// The resource that determines `machines`, or that would be exhausted first.
    pub limit: Limit,
}

/// Computes the hosts and workers needed so that no resource is loaded above `most_load` (0 to 1); only memory size
/// may be full. Names are divided among hosts, and with them prefixes, pending Interests and cached Data.
pub fn need(demand: &Demand, machine: &Machine, tables: &Tables, most_load: f64) -> Need {
    let bounds = demand.bounds(machine);
    let by_rate = demand.interests_per_second / (bounds.rate() * most_load);
    let by_size = tables.total() / machine.memory_bytes;
    let limit = if by_size > by_rate { Limit::MemorySize } else { bounds.limit() };
    let machines = by_rate.max(by_size).ceil().max(1.0);
    let one_core = bounds.by_computation / f64::from(machine.computer.cores);
    let workers = (demand.interests_per_second / machines / (one_core * most_load)).ceil();
    Need { machines, workers: workers.clamp(1.0, f64::from(machine.computer.cores).max(1.0)), limit }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The costs of table 3.1 and the host of 3.2.3 of Takemasa's thesis (2019).
    const PUBLISHED: Machine = Machine {
        computer: Host { cores: 22, hz: 2.2e9, memory_bytes_per_second: 76.8e9 },
        memory_bytes: 256e9,
        link_bits_per_second: f64::INFINITY,
        costs: PacketCosts {
            interest_miss: Cost { cycles: 1470.0, bytes: 909.0 },
            interest_hit: Cost { cycles: 860.0, bytes: 511.0 },
            data: Cost { cycles: 565.0, bytes: 816.0 },
        },
    };
    const DEMAND: Demand = Demand {
        interests_per_second: 1e6,
        interest_bytes: 100.0,
        data_bytes: 1_100.0,
        hit_rate: 0.3,
        unanswered: 0.0,
        round_trip_seconds: 0.05,
        lifetime_seconds: 4.0,
    };
    const SMALL: Tables = Tables { fib_bytes: 1e9, pit_bytes: 1e6, cache_bytes: 1e9 };

    #[test]
    fn without_cache_the_bound_is_that_of_the_publication() {
        let demand = Demand { hit_rate: 0.0, ..DEMAND };
        let bounds = demand.bounds(&PUBLISHED);
        let packets = PUBLISHED.computer.bound(&PUBLISHED.costs.per_packet(0.0));
        // One exchange is two packets.
        assert!((2.0 * bounds.by_computation / packets.by_computation - 1.0).abs() < 1e-12);
        assert!((2.0 * bounds.by_memory_rate / packets.by_memory - 1.0).abs() < 1e-12);
        assert_eq!(bounds.limit(), Limit::Computation);
        assert!((bounds.rate() / 1e6 - 23.78).abs() < 0.01, "{bounds:?}");
    }

    #[test]
    fn links_and_memory_bound_it_too() {
        let slow = Machine { link_bits_per_second: 10e9, ..PUBLISHED };
        let bounds = DEMAND.bounds(&slow);
        assert_eq!(bounds.limit(), Limit::Links);
        // Sent per Interest: 0.7 Interests of 158 bytes and one Data of 1158.
        assert!((bounds.rate() - 10e9 / 8.0 / (0.7 * 158.0 + 1158.0)).abs() < 1.0);
        let narrow = Machine { computer: Host { memory_bytes_per_second: 1e9, ..PUBLISHED.computer }, ..PUBLISHED };
        assert_eq!(DEMAND.bounds(&narrow).limit(), Limit::MemoryRate);
        let large = Tables { fib_bytes: 1e12, ..SMALL };
        let need = need(&DEMAND, &PUBLISHED, &large, 0.8);
        assert_eq!((need.machines, need.limit), (4.0, Limit::MemorySize));
    }

    #[test]
    fn a_few_cores_are_enough_for_little_traffic() {
        let need = need(&DEMAND, &PUBLISHED, &SMALL, 0.5);
        // 0.7 · (1470 + 565) + 0.3 · 860 = 1682.5 cycles: 1.31 million a second on one core, half of that wanted.
        assert_eq!((need.machines, need.workers, need.limit), (1.0, 2.0, Limit::Computation));
        assert!((DEMAND.pending() - 35_000.0).abs() < 1e-6);
        let half = Demand { unanswered: 0.5, ..DEMAND }.pending();
        assert!((half - 0.7e6 * (0.025 + 2.0)).abs() < 1e-6, "{half}");
    }

    proptest! {
        #[test]
        fn the_planned_machines_meet_the_demand(
            rate in 1e3..1e10,
            hit_rate in 0.0..1.0,
            unanswered in 0.0..1.0,
            fib in 1e6..1e13,
            load in 0.1..1.0,
        ) {
            let demand = Demand { interests_per_second: rate, hit_rate, unanswered, ..DEMAND };
            let machine = Machine { link_bits_per_second: 100e9, ..PUBLISHED };
            let need = need(&demand, &machine, &Tables { fib_bytes: fib, ..SMALL }, load);
            prop_assert!(rate / need.machines <= demand.bounds(&machine).rate() * load * (1.0 + 1e-9));
            prop_assert!((fib + 1e9) / need.machines <= machine.memory_bytes);
            prop_assert!(need.workers >= 1.0 && need.workers <= 22.0);
        }
    }
}
