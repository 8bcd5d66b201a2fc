//! The model's strategies: best-route and multicast.

use super::packets::Name;
use super::{ADDED_NONCES, FaceNumber, InRecord, Model, NextHop, Nonce, PitEntry};

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

    /// Returns the next hops that an Interest may be sent to, regardless of the state of their links.
    fn allowed(&self, entry: usize, arrived: &Arrived) -> Vec<NextHop> {
        let mut nexthops = self.nexthops_of(entry);
        nexthops.retain(|nexthop| self.may_go(&self.pit[entry].name, arrived.face, arrived.hop_limit, nexthop.face));
        nexthops
    }

    fn eligible(&self, entry: usize, arrived: &Arrived) -> Vec<NextHop> {
        let mut nexthops = self.allowed(entry, arrived);
        nexthops.retain(|nexthop| self.is_up(nexthop.face));
        nexthops
    }

    fn is_up(&self, face: FaceNumber) -> bool {
        self.face(face).is_some_and(|face| face.is_up)
    }

    fn is_pending(&self, entry: usize) -> bool {
        self.pit[entry].out_records.iter().any(|record| record.is_pending(self.now_ms))
    }

    /// Returns the pending Interest to send to a face: of the allowed ones, the one with the largest HopLimit.
    fn best_pending(&self, entry: usize, face: FaceNumber) -> Option<Arrived> {
        let PitEntry { name, in_records, .. } = &self.pit[entry];
        let may_go = |record: &&InRecord| {
            record.expiry_ms > self.now_ms && self.may_go(name, record.face, record.hop_limit, face)
        };
        let hops_left = |record: &&InRecord| record.hop_limit.map_or(256, u32::from);
        let best = in_records.iter().filter(may_go).max_by_key(hops_left);
        best.map(|record| self.pit[entry].as_arrived(record))
    }

    /// Sends an Interest again if no upstream is expected to answer, with the lifetime of the last downstream.
    pub(super) fn retry_unless_pending(&mut self, entry: usize) {
        let now_ms = self.now_ms;
        if self.is_pending(entry) {
            return;
        }
        self.pit[entry].in_records.retain(|record| record.expiry_ms > now_ms);
        let last = self.pit[entry].in_records.iter().map(|record| record.expiry_ms).max();
        let Some(last) = last else { return };
        self.pit[entry].lifetime_ms = last - now_ms;
        let strategy = self.strategy_of(&self.pit[entry].name);
        let (mut is_sent, mut is_barred) = (false, false);
        for NextHop { face, .. } in self.nexthops_of(entry) {
            let Some(mut arrived) = self.best_pending(entry, face) else { continue };
            let records = &self.pit[entry].out_records;
            if !self.is_up(face) || records.iter().any(|record| record.face == face && record.nacked.is_some()) {
                is_barred = true;
                continue;
            }
            if is_sent && strategy == Strategy::BestRoute {
                break;
            }
            if records.iter().any(|record| record.nonce == arrived.nonce) {
                self.added_nonces += 1;
                arrived.nonce = ADDED_NONCES + self.added_nonces;
            }
            self.send_interest(entry, face, &arrived);
            is_sent = true;
        }
        if !is_sent && (is_barred || strategy == Strategy::BestRoute) {
            self.no_route_for_all(entry);
        }
    }

    /// Sends a Nack to all downstreams: NoRoute, or the least severe reason that an upstream gave.
    fn no_route_for_all(&mut self, entry: usize) {
        let PitEntry { in_records, out_records, .. } = &self.pit[entry];
        let nacks = out_records.iter().filter_map(|record| record.nacked).filter(|&reason| reason != 0);
        let reason = nacks.min().unwrap_or(super::NO_ROUTE);
        let downstreams: Vec<FaceNumber> = in_records.iter().map(|record| record.face).collect();
        for downstream in downstreams {
            self.send_nack(entry, downstream, reason, 0);
        }
        self.pit[entry].expiry_ms = self.now_ms;
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

    pub(super) fn no_route(&mut self, entry: usize, downstream: FaceNumber) {
        self.send_nack(entry, downstream, super::NO_ROUTE, 0);
        let now_ms = self.now_ms;
        let others_wait = |record: &super::InRecord| record.face != downstream && record.expiry_ms > now_ms;
        if !self.pit[entry].in_records.iter().any(others_wait) {
            self.pit[entry].expiry_ms = now_ms;
        }
    }

    fn multicast(&mut self, entry: usize, arrived: Arrived) {
        // Without a next hop the Interest waits for one; with next hops that are down it does not.
        if self.eligible(entry, &arrived).is_empty()
            && !self.allowed(entry, &arrived).is_empty()
            && !self.is_pending(entry)
        {
            return self.no_route(entry, arrived.face);
        }
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

    /// Waits for all upstreams, then sends Nacks with the least severe reason to all downstreams. If the only upstream
    /// left is also a downstream, only that face gets a Nack.
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
        let Some(arrived) = self.best_pending(entry, nexthop.face) else { return };
        if !self.is_up(nexthop.face) {
            let hops = self.nexthops_of(entry);
            let is_eligible = |hop: &NextHop| self.is_up(hop.face) && self.best_pending(entry, hop.face).is_some();
            if !self.is_pending(entry) && !hops.iter().any(is_eligible) {
                self.no_route_for_all(entry);
            }
            return;
        }
        let now_ms = self.now_ms;
        if !self.pit[entry].out_records.iter().any(|r| r.face == nexthop.face && r.is_pending(now_ms)) {
            self.send_interest(entry, nexthop.face, &arrived);
        }
    }
}
