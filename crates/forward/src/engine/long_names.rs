//! What long and deep names may cost all others.
//!
//! A packet's cost grows with its name: every byte is hashed and kept, and every prefix has a hash. Names of usual size are
//! free. What others have beyond that is taken from an allowance that grows with time, so that a flood of them takes a
//! few per cent of a worker's time and no more, while some thousands a second pass that applications may want. Once it is used
//! up, all names that cost something are refused until it has grown by some more: in a flood most need not even be decoded.

use namehop_wire::NameRef;

use crate::time::Timestamp;

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

/// The allowance of one worker, in bytes.
#[derive(Debug, Clone)]
pub(crate) struct LongNames {
    left: u64,
    /// It was used up, and has not grown enough since.
    is_used_up: bool,
    per_second: u64,
    /// Until when `left` has grown.
    grown_until: Timestamp,
}

impl LongNames {
    /// An allowance of so many bytes a second.
    pub(crate) fn new(per_second: u64) -> Self {
        let mut new = LongNames { left: 0, is_used_up: false, per_second, grown_until: Timestamp::default() };
        new.left = new.in_ns(SAVED_UP_NS);
        new
    }

    fn in_ns(&self, ns: u64) -> u64 {
        u64::try_from(u128::from(self.per_second) * u128::from(ns) / SECOND_NS).unwrap_or(u64::MAX)
    }

    /// Adds what the time since the last call allows.
    pub(crate) fn grow(&mut self, now: Timestamp) {
        let more = self.in_ns(now.since_ns(self.grown_until).min(SAVED_UP_NS));
        // Times too short for a single byte go on.
        if more > 0 {
            self.grown_until = now;
            self.left = self.left.saturating_add(more).min(self.in_ns(SAVED_UP_NS));
            self.is_used_up &= self.left < self.in_ns(TO_GO_ON_NS);
        }
    }

    /// Takes the cost of a name; `false` when there is not enough left for it.
    #[inline]
    pub(crate) fn take(&mut self, name: NameRef<'_>) -> bool {
        let bytes = name.value().len();
        bytes <= SHORT_BYTES || self.take_cost(bytes, name.len())
    }

    fn take_cost(&mut self, bytes: usize, components: usize) -> bool {
        let deep = COMPONENT_BYTES * components.saturating_sub(FREE_COMPONENTS);
        let cost = (bytes + deep).saturating_sub(FREE_BYTES) as u64;
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

#[cfg(test)]
mod tests {
    use namehop_wire::Name;

    use super::*;

    fn name(components: usize, bytes: usize) -> Name {
        (0..components).fold(Name::new(), |name, _| name.append_generic(vec![b'x'; bytes]))
    }

    #[test]
    fn usual_names_are_free_and_others_cost_what_they_have_beyond() {
        let mut names = LongNames::new(10_000);
        assert_eq!(names.left, 1_000);
        for (components, bytes, cost) in [(7, 9, 0), (64, 0, 0), (16, 14, 0), (16, 15, 16), (17, 14, 24), (40, 4, 176)]
        {
            let before = names.left;
            assert!(names.take(name(components, bytes).as_ref()));
            assert_eq!(before - names.left, cost, "{components} components of {bytes} bytes");
        }
        let (long, left) = (name(8, 200), names.left);
        assert!(!names.take(long.as_ref()) && names.left == left);
        assert!(names.take(name(7, 9).as_ref()));
    }

    #[test]
    fn the_allowance_grows_with_time_up_to_what_is_saved_up() {
        let mut names = LongNames::new(10_000);
        names.left = 0;
        // 10 bytes in a millisecond; single nanoseconds add up.
        for ns in (0..=1_000_000).step_by(1_000) {
            names.grow(Timestamp(ns));
        }
        assert_eq!(names.left, 10);
        names.grow(Timestamp(60 * 1_000_000_000));
        assert_eq!(names.left, 1_000);
        assert!(!LongNames::new(0).take(name(2, 200).as_ref()));
    }

    #[test]
    fn after_a_refusal_some_has_to_grow_first() {
        let mut names = LongNames::new(10_000);
        assert!(names.take(name(12, 98).as_ref()) && names.left == 56);
        let (cheap, free) = (name(16, 15), name(7, 9));
        assert!(!names.take(name(10, 98).as_ref()));
        for (ms, passes) in [(1, false), (3, false), (5, true)] {
            names.grow(Timestamp(ms * 1_000_000));
            assert_eq!(names.may_take(cheap.value().len()), passes, "after {ms} ms");
            assert_eq!(names.take(cheap.as_ref()), passes, "after {ms} ms");
            assert!(names.take(free.as_ref()) && names.may_take(free.value().len()));
        }
        assert_eq!(names.left, 56 + 50 - 16);
    }

    #[test]
    fn what_may_not_be_taken_is_not_taken() {
        let mut names = LongNames::new(10_000);
        for (components, bytes) in [(9, 98), (5, 98), (12, 20), (60, 2), (7, 9), (1, 250), (9, 98), (17, 12), (7, 9)] {
            let name = name(components, bytes);
            let may_take = names.may_take(name.value().len());
            let taken = names.take(name.as_ref());
            assert!(may_take || !taken, "{components} components of {bytes} bytes");
            assert!(components > FREE_COMPONENTS || may_take == taken, "{components} components of {bytes} bytes");
        }
        assert!(names.is_used_up);
    }
}
