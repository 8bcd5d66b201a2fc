//! The model's strategies: best-route and multicast.

use super::packets::Name;
use super::{FaceNumber, Model, NextHop, Nonce};

/// A forwarding strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    BestRoute,
    Multicast,
}

/// First suppression interval.
const SUPPRESSION_INITIAL_MS: u64 = 10;
/// Longest suppression interval.
const SUPPRESSION_MAX_MS: u64 = 250;

/// The Interest that made the model call a strategy.
#[derive(Debug, Clone)]
pub struct Arrived {
    pub face: FaceNumber,
    pub nonce: Nonce,
    pub hop_limit: Option<u8>,
    pub hints: Vec<Name>,
    pub mark: u64,
    pub lifetime_ms: u64,
}

fn grown(interval_ms: u64) -> u64 {
    (interval_ms * 2).min(SUPPRESSION_MAX_MS)
}

impl Model {
    pub(super) fn after_receive_interest(&mut self, entry: usize, arrived: Arrived) {
        match self.strategy_of(&self.pit[entry].name) {
            Strategy::BestRoute => self.best_route(entry, arrived),
            Strategy::Multicast => self.multicast(entry, arrived),
        }
    }

    fn eligible(&self, entry: usize, arrived: &Arrived) -> Vec<NextHop> {
        let mut nexthops = self.nexthops_of(entry);
        nexthops.retain(|nexthop| self.may_go(&self.pit[entry].name, arrived.face, arrived.hop_limit, nexthop.face));
        nexthops
    }

    fn best_route(&mut self, entry: usize, arrived: Arrived) {
        let now_ms = self.now_ms;
        let eligible = self.eligible(entry, &arrived);
        let records = &self.pit[entry].out_records;
        if !records.iter().any(|record| record.is_pending(now_ms)) {
            match eligible.first() {
                Some(cheapest) => self.send_interest(entry, cheapest.face, &arrived),
                None => self.no_route(entry, arrived.face),
            }
            return;
        }
        let last_sent_ms = records.iter().map(|record| record.sent_ms).max().unwrap_or(0);
        let interval_ms = self.pit[entry].suppression_ms.unwrap_or(SUPPRESSION_INITIAL_MS);
        if now_ms - last_sent_ms < interval_ms {
            return;
        }
        let unused = eligible
            .iter()
            .find(|nexthop| !records.iter().any(|record| record.face == nexthop.face && record.is_pending(now_ms)));
        let used_longest_ago = eligible
            .iter()
            .filter_map(|nexthop| records.iter().find(|record| record.face == nexthop.face))
            .min_by_key(|record| record.sent_ms);
        let chosen = unused.map(|nexthop| nexthop.face).or(used_longest_ago.map(|record| record.face));
        self.pit[entry].suppression_ms = Some(grown(interval_ms));
        if let Some(face) = chosen {
            self.send_interest(entry, face, &arrived);
        }
    }

    fn no_route(&mut self, entry: usize, downstream: FaceNumber) {
        self.send_nack(entry, downstream, super::NO_ROUTE, 0);
        let now_ms = self.now_ms;
        let others_wait = |record: &super::InRecord| record.face != downstream && record.expiry_ms > now_ms;
        if !self.pit[entry].in_records.iter().any(others_wait) {
            self.pit[entry].expiry_ms = now_ms;
        }
    }

    fn multicast(&mut self, entry: usize, arrived: Arrived) {
        for nexthop in self.eligible(entry, &arrived) {
            let now_ms = self.now_ms;
            let pending = self.pit[entry].out_records.iter().find(|r| r.face == nexthop.face && r.is_pending(now_ms));
            let Some(record) = pending else {
                self.send_interest(entry, nexthop.face, &arrived);
                continue;
            };
            let interval_ms = record.suppression_ms.unwrap_or(SUPPRESSION_INITIAL_MS);
            if now_ms - record.sent_ms < interval_ms {
                continue;
            }
            self.send_interest(entry, nexthop.face, &arrived);
            if let Some(record) = self.pit[entry].out_records.iter_mut().find(|record| record.face == nexthop.face) {
                record.suppression_ms = Some(grown(interval_ms));
            }
        }
    }

    /// Wait for all upstreams; then tell all downstreams the least severe reason. If one upstream is left that is also a
    /// downstream, tell it alone.
    pub(super) fn after_receive_nack(&mut self, entry: usize, mark: u64) {
        let now_ms = self.now_ms;
        let records = &self.pit[entry].out_records;
        let severity = |reason: &u64| if *reason == 0 { u64::MAX } else { *reason };
        let nacks = records.iter().filter_map(|record| record.nacked);
        let least_severe = nacks.min_by_key(severity).unwrap_or(0);
        let pending: Vec<FaceNumber> =
            records.iter().filter(|record| record.is_pending(now_ms)).map(|record| record.face).collect();
        match pending[..] {
            [] => {
                let downstreams: Vec<FaceNumber> =
                    self.pit[entry].in_records.iter().map(|record| record.face).collect();
                for downstream in downstreams {
                    self.send_nack(entry, downstream, least_severe, mark);
                }
                self.pit[entry].expiry_ms = now_ms;
            }
            [only] => self.send_nack(entry, only, least_severe, mark),
            _ => {}
        }
    }

    pub(super) fn after_new_nexthop(&mut self, entry: usize, nexthop: NextHop) {
        if self.strategy_of(&self.pit[entry].name) != Strategy::Multicast {
            return;
        }
        let now_ms = self.now_ms;
        if self.pit[entry].out_records.iter().any(|r| r.face == nexthop.face && r.is_pending(now_ms)) {
            return;
        }
        let name = &self.pit[entry].name;
        // The one with most hops left.
        let may_go = |record: &&super::InRecord| {
            record.expiry_ms > now_ms && self.may_go(name, record.face, record.hop_limit, nexthop.face)
        };
        let hops_left = |record: &&super::InRecord| record.hop_limit.map_or(256, u32::from);
        let asking = self.pit[entry].in_records.iter().filter(may_go).max_by_key(hops_left);
        if let Some(record) = asking {
            let arrived = Arrived {
                face: record.face,
                nonce: record.nonce,
                hop_limit: record.hop_limit,
                hints: self.pit[entry].hints.clone(),
                mark: record.mark,
                lifetime_ms: self.pit[entry].lifetime_ms,
            };
            self.send_interest(entry, nexthop.face, &arrived);
        }
    }
}
