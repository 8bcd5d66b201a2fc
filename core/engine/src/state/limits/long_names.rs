//! A limit on the cost of long and deep names.
//!
//! The cost of a packet grows with its name: every byte is hashed and stored, and every prefix is hashed. Names of
//! usual size are free. Bytes and components beyond that are taken from an allowance that grows with time. So a flood
//! of long names takes a few per cent of a worker's time, while an application may still send some thousands a second.
//! When the allowance is used up, all names that cost something are refused until it has grown again; in a flood, most
//! of them need not even be decoded.
//!
//! The allowance is shared evenly by the faces that used some of it lately, so that a flood from one face takes nothing
//! from the others. A face that is alone has all of it. When another one comes, it gets its own share, less only what
//! the first one used up in the last tenth of a second. Faces are identified by their number modulo [`SHARES`], which
//! takes a few kibibytes; two faces with the same remainder have one share. Free names touch none of this.

#[cfg(test)]
mod tests;

use namehop_packet::{FaceId, Timestamp};
use namehop_wire::NameRef;

/// Names of at most this many bytes are free at any depth. Most names are, so their cost is not computed.
const SHORT_BYTES: usize = 128;
/// Bytes and components of a name that are free.
const FREE_BYTES: usize = 256;
const FREE_COMPONENTS: usize = 16;
/// Cost of a component, in bytes.
const COMPONENT_BYTES: usize = 8;
/// Maximum of the allowance, as the time in which it grows.
const SAVED_UP_NS: u64 = 100_000_000;
/// The allowance that must be available again after a refusal, as the time in which it grows.
const TO_GO_ON_NS: u64 = SAVED_UP_NS / 10;
const SECOND_NS: u128 = 1_000_000_000;

/// Minimum of the cap of a share, so that it suffices for the longest name with any number of shares.
const LEAST_SAVED_UP: u64 = 10_000;
/// Number of shares.
const SHARES: usize = 256;
/// Faces that used some of the allowance in this period, or in the previous one, share it: 2^30 ns.
const PERIOD_SHIFT: u32 = 30;

/// The allowance of one worker, and how its faces share it.
pub(crate) struct LongNames {
    total: Allowance,
    shares: Box<[Share]>,
    /// The period of the last use, and the number of shares used in it and in the previous one.
    period: u64,
    used_shares: u64,
    used_before: u64,
    now: Timestamp,
}

/// The share of one face in the allowance.
#[derive(Debug, Clone, Copy)]
struct Share {
    allowance: Allowance,
    /// The period of its last use; `u64::MAX` before the first use.
    period: u64,
}

impl LongNames {
    /// Creates an allowance of `per_second` bytes per second.
    pub(crate) fn new(per_second: u64) -> Self {
        let total = Allowance::new(per_second);
        let unused = Share { allowance: Allowance { least_saved_up: LEAST_SAVED_UP, ..total }, period: u64::MAX };
        let shares = vec![unused; SHARES].into_boxed_slice();
        LongNames { total, shares, period: 0, used_shares: 0, used_before: 0, now: Timestamp::default() }
    }

    /// Adds the growth since the last call.
    pub(crate) fn grow(&mut self, now: Timestamp) {
        self.now = now;
        self.total.grow(now);
    }

    /// Returns a copy of the allowance of all faces, for looking ahead.
    pub(crate) fn total(&self) -> Allowance {
        self.total
    }

    fn number_of(face: FaceId) -> usize {
        face.slot() % SHARES
    }

    /// Returns the number of faces that share the allowance, counting the one with this share.
    fn claimants(&self, share: &Share) -> u64 {
        let (used, before) = match (self.now.0 >> PERIOD_SHIFT).wrapping_sub(self.period) {
            0 => (self.used_shares, self.used_before),
            1 => (0, self.used_shares),
            _ => (0, 0),
        };
        let is_counted = share.period == self.now.0 >> PERIOD_SHIFT;
        (used + u64::from(!is_counted)).max(before).max(1)
    }

    /// Returns the current share of a face.
    fn share_now(&self, face: FaceId) -> Share {
        let mut share = self.shares[Self::number_of(face)];
        share.allowance.per_second = self.total.per_second / self.claimants(&share);
        share.allowance.grow(self.now);
        share.allowance.left = share.allowance.left.min(share.allowance.saved_up());
        share
    }

    /// Takes the cost of a name from the share of a face. Returns `false` if too little is left.
    #[inline]
    pub(crate) fn take(&mut self, face: FaceId, name: NameRef<'_>) -> bool {
        let bytes = name.value().len();
        bytes <= SHORT_BYTES || self.take_cost(face, cost_of(bytes, name.len()))
    }

    /// Predicts whether [`take`](Self::take) will succeed if `total` is then left for all faces. Takes the cost from
    /// `total`.
    #[inline]
    pub(crate) fn foresee(&self, face: FaceId, name: NameRef<'_>, total: &mut Allowance) -> bool {
        let bytes = name.value().len();
        bytes <= SHORT_BYTES || {
            let cost = cost_of(bytes, name.len());
            cost == 0 || self.share_now(face).allowance.take_cost(cost) && total.take_cost(cost)
        }
    }

    fn take_cost(&mut self, face: FaceId, cost: u64) -> bool {
        if cost == 0 {
            return true;
        }
        let mut share = self.share_now(face);
        let period = self.now.0 >> PERIOD_SHIFT;
        if period != self.period {
            self.used_before = if period == self.period + 1 { self.used_shares } else { 0 };
            (self.used_shares, self.period) = (0, period);
        }
        if share.period != period {
            share.period = period;
            self.used_shares += 1;
        }
        let left = share.allowance.left;
        let mut is_taken = share.allowance.take_cost(cost);
        if is_taken && !self.total.take_cost(cost) {
            // If only the total is used up, the share is not charged.
            (share.allowance.left, is_taken) = (left, false);
        }
        self.shares[Self::number_of(face)] = share;
        is_taken
    }

    /// Returns whether a name of this many bytes from `face` may succeed, at any depth. `total` is the rest for all
    /// faces.
    #[inline]
    pub(crate) fn may_take(&self, face: FaceId, bytes: usize, total: &Allowance) -> bool {
        bytes <= FREE_BYTES || total.may_take(bytes) && self.share_now(face).allowance.may_take(bytes)
    }
}

/// Returns the cost of a name beyond what is free.
fn cost_of(bytes: usize, components: usize) -> u64 {
    let deep = COMPONENT_BYTES * components.saturating_sub(FREE_COMPONENTS);
    (bytes + deep).saturating_sub(FREE_BYTES) as u64
}

/// An allowance in bytes that grows with time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    left: u64,
    /// Whether it was used up and has not grown enough since.
    is_used_up: bool,
    per_second: u64,
    /// Minimum of the cap. The cap is otherwise a part of a second's growth.
    least_saved_up: u64,
    /// The time up to which `left` has grown.
    grown_until: Timestamp,
}

impl Allowance {
    /// Creates an allowance of `per_second` bytes per second.
    pub(crate) fn new(per_second: u64) -> Self {
        let mut new =
            Allowance { left: 0, is_used_up: false, per_second, least_saved_up: 0, grown_until: Timestamp::default() };
        new.left = new.saved_up();
        new
    }

    /// Returns the cap.
    fn saved_up(&self) -> u64 {
        self.in_ns(SAVED_UP_NS).max(self.least_saved_up)
    }

    fn in_ns(&self, ns: u64) -> u64 {
        u64::try_from(u128::from(self.per_second) * u128::from(ns) / SECOND_NS).unwrap_or(u64::MAX)
    }

    /// Adds the growth since the last call.
    pub(crate) fn grow(&mut self, now: Timestamp) {
        let more = self.in_ns(now.since_ns(self.grown_until));
        // Growth of less than one byte is left for a later call.
        if more > 0 {
            let grown_ns = u128::from(more) * SECOND_NS / u128::from(self.per_second);
            self.grown_until =
                Timestamp(self.grown_until.0.saturating_add(u64::try_from(grown_ns).unwrap_or(u64::MAX)));
            self.left = self.left.saturating_add(more).min(self.saved_up());
            self.is_used_up &= self.left < self.in_ns(TO_GO_ON_NS);
        }
    }

    /// Takes `cost`. Returns `false` if too little is left.
    fn take_cost(&mut self, cost: u64) -> bool {
        self.is_used_up |= cost > self.left;
        let is_taken = cost == 0 || !self.is_used_up;
        self.left -= if is_taken { cost } else { 0 };
        is_taken
    }

    /// Returns whether a name of this many bytes may succeed, at any depth.
    #[inline]
    pub(crate) fn may_take(&self, bytes: usize) -> bool {
        let least_cost = bytes.saturating_sub(FREE_BYTES) as u64;
        least_cost == 0 || !self.is_used_up && least_cost <= self.left
    }
}
