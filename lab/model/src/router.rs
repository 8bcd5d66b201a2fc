//! Cost of an Interest and its Data to a router: cycles, bytes of memory and IP packets. Takemasa (2019), 6.4,
//! equations 6.11 to 6.15.
//!
//! The naive router has neither prefetching nor Filter, and inserts all Data into its Content Store; the optimised one
//! has both. The thesis prints their costs by block only in figures 6.7 and 6.8, and the numbers are missing from its
//! text. This module uses other parts of the thesis, as each function states.

use serde::Serialize;

use crate::cache::BlockCosts;
use crate::throughput::{Cost, PacketCosts};
use namehop_power::memory::BYTES_PER_PACKET;
use namehop_power::server::Load;

/// Cycles of the blocks B1 and B3 to B11. Table 5.1.
pub const TABLE_5_1: [f64; 10] = [571.0, 148.0, 72.0, 188.0, 413.0, 56.0, 188.0, 73.0, 329.0, 50.0];
/// Cycles of Filter's history update (B2) and of its decision (B13). Table 5.2. FIFO has neither.
pub const FILTER_CYCLES: [f64; 2] = [83.0, 28.0];
/// Share of the cycles that prefetching saves for an Interest that misses and for a Data packet, 0 to 1. Figure 4.5
/// (4.4.1).
pub const PREFETCHING_SAVES: [f64; 2] = [0.2885, 0.1198];
/// Cycles and bytes of memory per packet, for 128 bytes of content. Table 3.1.
pub const TABLE_3_1: PacketCosts = PacketCosts {
    interest_miss: Cost { cycles: 1470.0, bytes: BYTES_PER_PACKET[0] },
    interest_hit: Cost { cycles: 860.0, bytes: BYTES_PER_PACKET[1] },
    data: Cost { cycles: 565.0, bytes: BYTES_PER_PACKET[2] },
};
/// Bytes of buckets that the optimised router prefetches without need for each FIB lookup: three buckets of 64 bytes,
/// for names of 7 components and prefixes of 4. They raise M_b6 from 89 to 281 (6.4.4).
pub const VAIN_BUCKET_BYTES: f64 = (7.0 - 4.0) * 64.0;

/// Cost of an Interest, by block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Router {
    /// Cycles, C_b.
    pub cycles: BlockCosts,
    /// Bytes read from and written to memory, M_b.
    pub bytes: BlockCosts,
}

/// Traffic received by a router.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Traffic {
    /// Interests, λ_ndn, per second.
    pub interests_per_second: f64,
    /// Share of the Interests that the Content Store answers, π_hit, 0 to 1.
    pub hit_rate: f64,
    /// Share of the Data for the other Interests that the Content Store admits, π_insertion, 0 to 1; 1 in the naive
    /// router.
    pub insertion_rate: f64,
}

impl Router {
    /// Without prefetching and Filter. Cycles are from table 5.1. Bytes are from table 3.1: an answered Interest, and
    /// an unanswered Interest with its Data. The thesis does not print the insertion's (B10) part of the latter.
    pub fn naive() -> Self {
        let [b1, b3, b4, b5, b6, b7, b8, b9, b10, b11] = TABLE_5_1;
        let cycles = BlockCosts {
            always: b1 + b3 + b11,
            hit: b4,
            miss: b5 + b6 + b7 + b8 + b9,
            insertion: b10,
            ..BlockCosts::default()
        };
        let bytes = BlockCosts {
            always: TABLE_3_1.interest_hit.bytes,
            miss: TABLE_3_1.interest_miss.bytes + TABLE_3_1.data.bytes - TABLE_3_1.interest_hit.bytes,
            ..BlockCosts::default()
        };
        Router { cycles, bytes }
    }

    /// With Filter, without prefetching, by tables 5.1 and 5.2. Bytes as for the naive router.
    pub fn with_filter() -> Self {
        let Router { cycles, bytes } = Router::naive();
        let [history, admission] = FILTER_CYCLES;
        Router { cycles: BlockCosts { history, admission, ..cycles }, bytes }
    }

    /// With Filter and prefetching. Prefetching reduces the cycles of table 5.1: blocks of Interests (B1, B3, B5 to B7)
    /// by the share saved for an Interest, blocks of Data (B8 to B11) by the share saved for a Data packet. Bytes are
    /// as for the naive router, plus the buckets prefetched without need. The bytes that Filter saves are not printed,
    /// and are not subtracted.
    pub fn optimised() -> Self {
        let [b1, b3, b4, b5, b6, b7, b8, b9, b10, b11] = TABLE_5_1;
        let [interest, data] = PREFETCHING_SAVES.map(|saved| 1.0 - saved);
        let Router { cycles: with_filter, bytes } = Router::with_filter();
        let cycles = BlockCosts {
            always: (b1 + b3) * interest + b11 * data,
            hit: b4,
            miss: (b5 + b6 + b7) * interest + (b8 + b9) * data,
            insertion: b10 * data,
            ..with_filter
        };
        Router { cycles, bytes: BlockCosts { miss: bytes.miss + VAIN_BUCKET_BYTES, ..bytes } }
    }

    /// Load that traffic causes: cycles by equations 6.11 and 6.14, bytes by 6.12 and 6.15, IP packets by 6.13.
    pub fn load(&self, traffic: &Traffic) -> Load {
        let Traffic { interests_per_second, hit_rate, insertion_rate } = *traffic;
        Load {
            cycles_per_second: interests_per_second * self.cycles.average(hit_rate, insertion_rate),
            memory_bytes_per_second: interests_per_second * self.bytes.average(hit_rate, insertion_rate),
            packets_per_second: packets_per_second(interests_per_second, hit_rate),
        }
    }
}

/// Equation 6.13: IP packets forwarded, λ_ip, per second. Each Interest causes one Data packet, and is itself forwarded
/// unless the Content Store answers it.
pub fn packets_per_second(interests_per_second: f64, hit_rate: f64) -> f64 {
    interests_per_second * (2.0 - hit_rate)
}

/// Interests per second that return `bits_per_second` of Data packets to the consumers: the "data retrieval rate" of
/// 6.5.3.
pub fn interests_per_second(bits_per_second: f64, data_bytes: f64) -> f64 {
    bits_per_second / (8.0 * data_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use namehop_power::server::Server;
    use namehop_power::servers;

    /// 6.5.2: hit rates, insertion rates; `gigabits` (58 in the thesis) Gbit/s of Data packets of 1024 bytes.
    fn traffic(gigabits: f64) -> [Traffic; 2] {
        let interests_per_second = interests_per_second(gigabits * 1e9, 1024.0);
        [(0.238, 1.0), (0.341, 0.03)].map(|(hit_rate, insertion_rate)| Traffic {
            interests_per_second,
            hit_rate,
            insertion_rate,
        })
    }

    fn case_study() -> Server {
        servers::published("e3-1220-xl710").expect("published")
    }

    /// Power that the given router saves against the naive one at 58 Gbit/s, in per cent.
    fn reduction_percent(server: &Server, router: &Router) -> f64 {
        let [of_naive, of_router] = traffic(58.0);
        let watts = |router: &Router, traffic| server.power(&router.load(traffic)).expect("possible").total_watts();
        100.0 * (1.0 - watts(router, &of_router) / watts(&Router::naive(), &of_naive))
    }

    #[test]
    fn flows_have_the_cycles_of_figure_3_3() {
        let naive = Router::naive().cycles;
        // 3.3.2: a miss with its Data takes 2016 cycles, without the block of a hit.
        assert_eq!(naive.average(0.0, 1.0), 2016.0);
        assert_eq!(naive.average(1.0, 1.0), 791.0 + 50.0);
    }

    #[test]
    fn fetched_buckets_take_block_6_from_89_to_281_bytes() {
        assert_eq!((VAIN_BUCKET_BYTES, 89.0 + VAIN_BUCKET_BYTES), (192.0, 281.0));
        let (naive, optimised) = (Router::naive().bytes, Router::optimised().bytes);
        assert_eq!(optimised.average(0.0, 1.0) - naive.average(0.0, 1.0), 192.0);
        assert_eq!(optimised.average(1.0, 1.0), naive.average(1.0, 1.0));
        assert_eq!((naive.average(1.0, 1.0), naive.average(0.0, 1.0)), (511.0, 909.0 + 816.0));
    }

    #[test]
    fn all_cores_of_the_case_study_are_busy_at_its_highest_rate() {
        // Figure 6.9 ends at "about 58 Gbps". With the 329 cycles of table 5.1 for B10 the naive router's CPU is
        // saturated there; with the 188 of the text of 5.1.2 it would be at 62.
        let most = case_study().cpu.capacity_hz() / Router::naive().cycles.average(0.238, 1.0) * 8.0 * 1024.0;
        assert!((58.0e9..59.0e9).contains(&most), "{most}");
    }

    #[test]
    fn the_reduction_of_6_5_3_is_near_with_prefetching_and_far_without() {
        let with_prefetching = reduction_percent(&case_study(), &Router::optimised());
        assert!((with_prefetching - 11.3).abs() < 1.3, "{with_prefetching}");
        let without = reduction_percent(&case_study(), &Router::with_filter());
        assert!(without < 4.0, "{without}");
        // With the chassis that 6.3.2 chose for server 2, which is that of server 1.
        let swapped = Server { chassis_watts: 68.90, ..case_study() };
        assert!(reduction_percent(&swapped, &Router::optimised()) < 7.5);
    }

    #[test]
    fn cpus_dominate_the_load_dependent_power() {
        for (router, traffic) in [Router::naive(), Router::optimised()].iter().zip(traffic(58.0)) {
            let power = case_study().power(&router.load(&traffic)).expect("possible");
            assert!(power.cpu_watts > 2.0 * (power.memory_watts + power.nic_watts), "{power:?}");
        }
    }

    #[test]
    fn packets_of_6_4_2() {
        assert_eq!(packets_per_second(100.0, 0.0), 200.0);
        assert_eq!(packets_per_second(100.0, 1.0), 100.0);
        assert!((interests_per_second(8192e6, 1024.0) - 1e6).abs() < 1e-6);
    }

    proptest! {
        /// Counts packet by packet, as 6.4.2 describes in words.
        #[test]
        fn packets_are_counted_one_by_one(interests in 0..2000_u32, hits in 0..2000_u32) {
            let hits = hits.min(interests);
            let mut forwarded = 0;
            for number in 0..interests {
                forwarded += 1;
                if number >= hits {
                    forwarded += 1;
                }
            }
            let hit_rate = if interests == 0 { 0.0 } else { f64::from(hits) / f64::from(interests) };
            prop_assert!((packets_per_second(f64::from(interests), hit_rate) - f64::from(forwarded)).abs() < 1e-6);
        }

        #[test]
        fn loads_grow_with_the_rate(rate in 0.0..1e9_f64, hit_rate in 0.0..=1.0_f64, insertion_rate in 0.0..=1.0_f64) {
            for router in [Router::naive(), Router::with_filter(), Router::optimised()] {
                let load = |interests_per_second: f64| {
                    router.load(&Traffic { interests_per_second, hit_rate, insertion_rate })
                };
                let (once, twice) = (load(rate), load(2.0 * rate));
                let difference = twice.cycles_per_second - 2.0 * once.cycles_per_second;
                prop_assert!(difference.abs() <= 1e-9 * twice.cycles_per_second);
                prop_assert!(twice.memory_bytes_per_second >= once.memory_bytes_per_second);
            }
        }
    }
}
