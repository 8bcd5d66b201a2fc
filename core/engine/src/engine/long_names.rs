//! What long and deep names may cost all others.
//!
//! A packet's cost grows with its name: every byte is hashed and kept, and every prefix has a hash. Names of usual size are
//! free. What others have beyond that is taken from an allowance that grows with time, so that a flood of them takes a
//! few per cent of a worker's time and no more, while some thousands a second pass that applications may want. Once it is used
//! up, all names that cost something are refused until it has grown by some more: in a flood most need not even be decoded.
//!
//! The allowance is shared evenly by the faces that lately asked for some of it, so that a flood from one takes nothing from
//! the others. A face that is alone has all of it. When another one comes, it finds a share of its own, less only what the
//! first one used up in the last tenth of a second. Faces are told apart by their number modulo [`SHARES`], which takes a few
//! kibibytes; two that fall together have one share. Names that are free touch none of this.

#[cfg(test)]
mod tests;

use namehop_packet::{FaceId, Timestamp};
use namehop_wire::NameRef;

/// Names of at most so many bytes are free whatever their depth; most are, so nothing is counted for them.
const SHORT_BYTES: usize = 128;
/// Bytes and components that are free.
const FREE_BYTES: usize = 256;
const FREE_COMPONENTS: usize = 16;
/// A component costs as much as so many bytes.
const COMPONENT_BYTES: usize = 8;
/// The allowance that is saved up, as part of that of a second.
const SAVED_UP_NS: u64 = 100_000_000;
/// What has to be there again after a refusal, likewise.
const TO_GO_ON_NS: u64 = SAVED_UP_NS / 10;
const SECOND_NS: u128 = 1_000_000_000;

/// A share saves up at least so much, so that it suffices for the longest name however many there are.
const LEAST_SAVED_UP: u64 = 10_000;
/// Shares there may be.
const SHARES: usize = 256;
/// Faces that asked for some of the allowance in this time, or in the same time before, share it: 2^30 ns.
const PERIOD_SHIFT: u32 = 30;

/// The allowance of one worker, and how its faces share it.
pub(crate) struct LongNames {
    total: Allowance,
    shares: Box<[Share]>,
    /// The period of the last use, and how many shares were used in it and in the one before.
    period: u64,
    used_shares: u64,
    used_before: u64,
    now: Timestamp,
}

/// What one face may use of the allowance.
#[derive(Debug, Clone, Copy)]
struct Share {
    allowance: Allowance,
    /// The period of its last use; `u64::MAX` before the first.
    period: u64,
}

impl LongNames {
    /// An allowance of so many bytes a second.
    pub(crate) fn new(per_second: u64) -> Self {
        let total = Allowance::new(per_second);
        let unused = Share { allowance: Allowance { least_saved_up: LEAST_SAVED_UP, ..total }, period: u64::MAX };
        let shares = vec![unused; SHARES].into_boxed_slice();
        LongNames { total, shares, period: 0, used_shares: 0, used_before: 0, now: Timestamp::default() }
    }

    /// Adds what the time since the last call allows.
    pub(crate) fn grow(&mut self, now: Timestamp) {
        self.now = now;
        self.total.grow(now);
    }

    /// What is left for all, as a copy from which can be taken to look ahead.
    pub(crate) fn total(&self) -> Allowance {
        self.total
    }

    fn number_of(face: FaceId) -> usize {
        face.slot() % SHARES
    }

    /// Faces that share the allowance, if the one with this share is among them.
    fn claimants(&self, share: &Share) -> u64 {
        let (used, before) = match (self.now.0 >> PERIOD_SHIFT).wrapping_sub(self.period) {
            0 => (self.used_shares, self.used_before),
            1 => (0, self.used_shares),
            _ => (0, 0),
        };
        let is_counted = share.period == self.now.0 >> PERIOD_SHIFT;
        (used + u64::from(!is_counted)).max(before).max(1)
    }

    /// The share of a face as it is now.
    fn share_now(&self, face: FaceId) -> Share {
        let mut share = self.shares[Self::number_of(face)];
        share.allowance.per_second = self.total.per_second / self.claimants(&share);
        share.allowance.grow(self.now);
        share.allowance.left = share.allowance.left.min(share.allowance.saved_up());
        share
    }

    /// Takes the cost of a name from the share of a face; `false` when there is not enough left for it.
    #[inline]
    pub(crate) fn take(&mut self, face: FaceId, name: NameRef<'_>) -> bool {
        let bytes = name.value().len();
        bytes <= SHORT_BYTES || self.take_cost(face, cost_of(bytes, name.len()))
    }

    /// Will [`take`](Self::take) take the cost of a name, if `total` is what is left for all then? Takes it from `total`.
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
            // What all together have used up is not charged to one of them.
            (share.allowance.left, is_taken) = (left, false);
        }
        self.shares[Self::number_of(face)] = share;
        is_taken
    }

    /// May there be enough left for a name of so many bytes from a face, whatever its depth? `total` is what is left for all.
    #[inline]
    pub(crate) fn may_take(&self, face: FaceId, bytes: usize, total: &Allowance) -> bool {
        bytes <= FREE_BYTES || total.may_take(bytes) && self.share_now(face).allowance.may_take(bytes)
    }
}

/// What a name costs beyond what is free.
fn cost_of(bytes: usize, components: usize) -> u64 {
    let deep = COMPONENT_BYTES * components.saturating_sub(FREE_COMPONENTS);
    (bytes + deep).saturating_sub(FREE_BYTES) as u64
}

/// An allowance in bytes that grows with time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    left: u64,
    /// It was used up, and has not grown enough since.
    is_used_up: bool,
    per_second: u64,
    /// Least of what is saved up; else a part of a second's growth.
    least_saved_up: u64,
    /// Until when `left` has grown.
    grown_until: Timestamp,
}

impl Allowance {
    /// An allowance of so many bytes a second.
    pub(crate) fn new(per_second: u64) -> Self {
        let mut new =
            Allowance { left: 0, is_used_up: false, per_second, least_saved_up: 0, grown_until: Timestamp::default() };
        new.left = new.saved_up();
        new
    }

    /// The most that is there at a time.
    fn saved_up(&self) -> u64 {
        self.in_ns(SAVED_UP_NS).max(self.least_saved_up)
    }

    fn in_ns(&self, ns: u64) -> u64 {
        u64::try_from(u128::from(self.per_second) * u128::from(ns) / SECOND_NS).unwrap_or(u64::MAX)
    }

    /// Adds what the time since the last call allows.
    pub(crate) fn grow(&mut self, now: Timestamp) {
        let more = self.in_ns(now.since_ns(self.grown_until));
        // Times too short for a single byte are left for later.
        if more > 0 {
            let grown_ns = u128::from(more) * SECOND_NS / u128::from(self.per_second);
            self.grown_until =
                Timestamp(self.grown_until.0.saturating_add(u64::try_from(grown_ns).unwrap_or(u64::MAX)));
            self.left = self.left.saturating_add(more).min(self.saved_up());
            self.is_used_up &= self.left < self.in_ns(TO_GO_ON_NS);
        }
    }

    /// Takes so much; `false` when there is not enough left.
    fn take_cost(&mut self, cost: u64) -> bool {
        self.is_used_up |= cost > self.left;
        let is_taken = cost == 0 || !self.is_used_up;
        self.left -= if is_taken { cost } else { 0 };
        is_taken
    }

    /// May there be enough left for a name of so many bytes, whatever its depth?
    #[inline]
    pub(crate) fn may_take(&self, bytes: usize) -> bool {
        let least_cost = bytes.saturating_sub(FREE_BYTES) as u64;
        least_cost == 0 || !self.is_used_up && least_cost <= self.left
    }
}
