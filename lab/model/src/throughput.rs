//! Upper bound of the packets per second that a host can forward, limited by its cores or its memory.
//!
//! λ ≤ min(N·F/C, B/M), equation 1 of Taniguchi et al., "A Method for Designing High-speed Software NDN Routers" (ICN
//! 2016), and equation 3.1 of Takemasa's thesis (2019). The rate is in the unit that the cost is given for: packets,
//! or Interest-Data pairs.

use serde::Serialize;

/// The two resources of a host that forwarding uses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Host {
    /// Cores that forward: N.
    pub cores: u32,
    /// Cycles per second of one core: F.
    pub hz: f64,
    /// Memory bandwidth in bytes per second: B.
    pub memory_bytes_per_second: f64,
}

/// Cost to forward one packet, or one pair; the rate is in the same unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Cycles of one core: C.
    pub cycles: f64,
    /// Bytes read from and written to memory: M.
    pub bytes: f64,
}

/// The limiting resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// N·F/C is the smaller.
    Computation,
    /// B/M is the smaller.
    Memory,
}

/// Upper bounds of the forwarding rate, per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bound {
    /// N·F/C.
    pub by_computation: f64,
    /// B/M.
    pub by_memory: f64,
}

impl Host {
    /// N·F/C and B/M.
    pub fn bound(&self, cost: &Cost) -> Bound {
        Bound {
            by_computation: f64::from(self.cores) * self.hz / cost.cycles,
            by_memory: self.memory_bytes_per_second / cost.bytes,
        }
    }
}

impl Bound {
    /// min(N·F/C, B/M).
    pub fn rate(&self) -> f64 {
        self.by_computation.min(self.by_memory)
    }

    /// The resource with the lower bound.
    pub fn bottleneck(&self) -> Bottleneck {
        if self.by_computation <= self.by_memory { Bottleneck::Computation } else { Bottleneck::Memory }
    }
}

/// Costs of the three packet paths, as in table 3.1 of Takemasa (2019).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PacketCosts {
    /// An Interest that the Content Store does not answer.
    pub interest_miss: Cost,
    /// An Interest that the Content Store answers.
    pub interest_hit: Cost,
    /// A Data packet.
    pub data: Cost,
}

impl PacketCosts {
    /// Average cost of one packet if `hit_ratio` of the Interests are answered by the Content Store and each Interest
    /// has one Data, from any source: ((1−h)·I-miss + h·I-hit + Data) / 2.
    ///
    /// The thesis does not print how its C and M (3.2.3) follow from its table 3.1. This weighting gives C 926.0 for
    /// 925.4 and M 802.8 for 800.7. Rounding does not explain the difference: a table rounded to whole numbers leaves
    /// its averages uncertain by 0.5. Another share of Interests among all packets does not explain it either: at 30
    /// % hits C needs a share of 0.50, M of 0.58. Counting packets received, without Data for Interests that the
    /// Content Store answers, gives M (800.5), but C 989.7. So the publication does not determine how C and M were
    /// computed.
    pub fn per_packet(&self, hit_ratio: f64) -> Cost {
        let average = |of: fn(&Cost) -> f64| {
            ((1.0 - hit_ratio) * of(&self.interest_miss) + hit_ratio * of(&self.interest_hit) + of(&self.data)) / 2.0
        };
        Cost { cycles: average(|cost| cost.cycles), bytes: average(|cost| cost.bytes) }
    }
}

/// Number of threads at which memory becomes the limit: B/M divided by the rate of one core, F/C. Linear speed-up
/// ends there (Takemasa 2019, 4.4.3).
pub fn threads_at_memory_bound(host: &Host, cost: &Cost) -> f64 {
    let bound = Host { cores: 1, ..*host }.bound(cost);
    bound.by_memory / bound.by_computation
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(cores: u32, ghz: f64) -> Host {
        Host { cores, hz: ghz * 1e9, memory_bytes_per_second: 76.8e9 }
    }

    #[track_caller]
    fn close(value: f64, published: f64, tolerance: f64) {
        assert!((value - published).abs() <= tolerance, "{value} against {published}");
    }

    #[test]
    fn poster_of_2016() {
        let cost = Cost { cycles: 2794.2, bytes: 4484.1 };
        let large = host(22, 2.2).bound(&cost);
        close(large.by_computation / 1e6, 17.3, 0.05);
        close(large.by_memory / 1e6, 17.1, 0.05);
        assert_eq!(large.bottleneck(), Bottleneck::Memory);
        let small = host(4, 2.6).bound(&cost);
        close(small.by_computation / 1e6, 3.7, 0.05);
        assert_eq!(small.bottleneck(), Bottleneck::Computation);
        assert_eq!(small.rate(), small.by_computation);
    }

    #[test]
    fn thesis_of_2019() {
        let cost = Cost { cycles: 925.4, bytes: 800.7 };
        close(host(22, 2.2).bound(&cost).by_computation / 1e6, 52.3, 0.05);
        close(host(4, 2.6).bound(&cost).by_computation / 1e6, 11.2, 0.05);
        close(host(4, 2.6).bound(&cost).by_memory / 1e6, 95.9, 0.05);
        // 4.4.3: "when the number of threads is 40" memory is used up.
        close(threads_at_memory_bound(&host(22, 2.2), &cost), 40.0, 0.5);
    }

    const TABLE: PacketCosts = PacketCosts {
        interest_miss: Cost { cycles: 1470.0, bytes: 909.0 },
        interest_hit: Cost { cycles: 860.0, bytes: 511.0 },
        data: Cost { cycles: 565.0, bytes: 816.0 },
    };
    /// Rounding error of the numbers in the table.
    const ROUNDING: f64 = 0.5;

    #[test]
    fn the_weighting_is_near_the_costs_of_the_thesis_and_rounding_does_not_explain_the_rest() {
        let average = TABLE.per_packet(0.3);
        close(average.cycles, 926.0, 1e-9);
        close(average.bytes, 802.8, 1e-9);
        // The weights add up to one, so numbers that are off by up to 0.5 give an average that is off by up to 0.5.
        // The printed value was rounded, too.
        for (average, printed) in [(average.cycles, 925.4), (average.bytes, 800.7)] {
            assert!((average - printed).abs() > ROUNDING + 0.05, "{average} against {printed}");
            assert!((average - printed).abs() < 0.003 * printed);
        }
    }

    /// Range of the shares of Interests among all packets that give the printed average of a column, within rounding
    /// errors.
    fn shares(of: fn(&Cost) -> f64, printed: f64) -> (f64, f64) {
        let interest = 0.7 * of(&TABLE.interest_miss) + 0.3 * of(&TABLE.interest_hit);
        let data = of(&TABLE.data);
        let errors = [-ROUNDING, ROUNDING];
        let all = errors.into_iter().flat_map(|interest_error| {
            errors.into_iter().flat_map(move |data_error| {
                [-0.05, 0.05].map(|printed_error| {
                    let (interest, data) = (interest + interest_error, data + data_error);
                    (printed + printed_error - data) / (interest - data)
                })
            })
        });
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), share| (least.min(share), most.max(share)))
    }

    #[test]
    fn no_share_of_interests_gives_both_costs_of_the_thesis() {
        let (cycles, bytes) = (shares(|cost| cost.cycles, 925.4), shares(|cost| cost.bytes, 800.7));
        assert!((0.49..0.51).contains(&cycles.0) && (0.49..0.51).contains(&cycles.1), "{cycles:?}");
        assert!(bytes.0 > 0.53 && bytes.0 < 0.58 && bytes.1 > 0.58, "{bytes:?}");
    }

    #[test]
    fn packets_received_give_the_bytes_of_the_thesis_and_not_its_cycles() {
        // Of 10 Interests the Content Store answers 3, so that 7 Data follow.
        let average = |of: fn(&Cost) -> f64| {
            (7.0 * of(&TABLE.interest_miss) + 3.0 * of(&TABLE.interest_hit) + 7.0 * of(&TABLE.data)) / 17.0
        };
        close(average(|cost| cost.bytes), 800.7, ROUNDING);
        close(average(|cost| cost.cycles), 989.7, 0.05);
    }

    proptest! {
        #[test]
        fn the_rate_is_the_smaller_bound(
            cores in 1u32..1000,
            hz in 1e8..1e10,
            b in 1e9..1e12,
            c in 1.0..1e5,
            m in 1.0..1e5,
        ) {
            let host = Host { cores, hz, memory_bytes_per_second: b };
            let bound = host.bound(&Cost { cycles: c, bytes: m });
            prop_assert!(bound.rate() <= bound.by_computation && bound.rate() <= bound.by_memory);
            let threads = threads_at_memory_bound(&host, &Cost { cycles: c, bytes: m });
            prop_assert_eq!(bound.bottleneck() == Bottleneck::Computation, f64::from(cores) <= threads * (1.0 + 1e-12));
        }

        #[test]
        fn averages_lie_between_the_extremes(
            hit_ratio in 0.0..=1.0,
            miss in 0.0..1e4,
            hit in 0.0..1e4,
            data in 0.0..1e4,
        ) {
            let cost = |cycles| Cost { cycles, bytes: cycles };
            let costs = PacketCosts { interest_miss: cost(miss), interest_hit: cost(hit), data: cost(data) };
            let average = costs.per_packet(hit_ratio);
            let low = miss.min(hit).min(data);
            let high = miss.max(hit).max(data);
            prop_assert!(average.cycles >= low - 1e-9 && average.cycles <= high + 1e-9);
            prop_assert_eq!(average.cycles, average.bytes);
        }
    }
}
