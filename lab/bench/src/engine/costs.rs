//! Costs of packets from single bursts: medians and totals.
//!
//! A median omits work that not every burst has, such as timers, and disturbances by other load on the host. A total
//! includes both.

use super::load::Step;
use crate::median::median;
use crate::schedule::{ByPacket, PacketKind};

/// Ticks per packet, and per exchange of an Interest and its Data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Costs {
    /// Medians over bursts of one kind.
    pub(super) medians: ByPacket<f64>,
    /// Total ticks over total packets of such bursts.
    pub(super) totals: ByPacket<f64>,
    /// Total ticks over total Data of mixed bursts; without mixed bursts, the sum of the totals of Interest and Data.
    pub(super) exchange: f64,
}

/// Ticks of bursts.
#[derive(Default)]
pub(super) struct Samples {
    by_kind: ByPacket<Vec<f64>>,
    ticks: ByPacket<u64>,
    packets: ByPacket<usize>,
    mixed_ticks: u64,
    mixed_data: usize,
}

impl Samples {
    pub(super) fn add(&mut self, step: &Step) {
        let packets = step.interests + step.data;
        match step.kind {
            Some(kind) => {
                self.by_kind.get_mut(kind).push(step.per_packet());
                *self.ticks.get_mut(kind) += step.ticks;
                *self.packets.get_mut(kind) += packets;
            }
            None => {
                self.mixed_ticks += step.ticks;
                self.mixed_data += step.data;
            }
        }
    }

    pub(super) fn costs(&self) -> Costs {
        let mut totals = ByPacket::default();
        for kind in PacketKind::ALL {
            *totals.get_mut(kind) = *self.ticks.get(kind) as f64 / (*self.packets.get(kind)).max(1) as f64;
        }
        Costs {
            medians: self.by_kind.map(|samples| median(&mut samples.clone())),
            exchange: match self.mixed_data {
                0 => totals.interest_miss + totals.data,
                data => self.mixed_ticks as f64 / data as f64,
            },
            totals,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_have_what_medians_drop() {
        let mut samples = Samples::default();
        for ticks in [640, 640, 6_400] {
            samples.add(&Step { kind: Some(PacketKind::InterestMiss), ticks, interests: 64, data: 0 });
            samples.add(&Step { kind: Some(PacketKind::Data), ticks: 2 * ticks, interests: 0, data: 64 });
        }
        let costs = samples.costs();
        assert_eq!((costs.medians.interest_miss, costs.medians.data), (10.0, 20.0));
        assert_eq!((costs.totals.interest_miss, costs.totals.data, costs.exchange), (40.0, 80.0, 120.0));
        assert_eq!((costs.medians.interest_hit, costs.totals.interest_hit), (0.0, 0.0));
        // Only mixed bursts determine the cost of an exchange.
        samples.add(&Step { kind: None, ticks: 3_200, interests: 33, data: 31 });
        samples.add(&Step { kind: None, ticks: 3_300, interests: 31, data: 34 });
        assert_eq!(samples.costs().exchange, 100.0);
        assert_eq!(samples.costs().totals.data, 80.0);
    }
}
