//! What the strangers of one share, or of one origin, have together.

use std::time::Duration;

use crate::list::List;

/// Kinds of lists: by share, and by origin.
pub(super) const BY_USE: usize = 0;
pub(super) const BY_ORIGIN: usize = 1;

/// One in so many places is for new strangers, and one in so many can be taken over in a second.
pub(super) const FRESH_FRACTION: usize = 4;

const NANOS_PER_S: usize = 1_000_000_000;
/// A second has so many slices, over which what is allowed in it is spread. Were all of it allowed at once, a flood would use it
/// up at the start of each second, and who is new would wait for the next one.
const SLICES: usize = 16;

/// How many places were taken over in the present second.
#[derive(Debug, Default)]
pub(super) struct Rate {
    second: u64,
    count: usize,
}

impl Rate {
    /// Counts one, unless there were as many as `limit` a second allows, so long after the start.
    pub(super) fn allows(&mut self, since_start: Duration, limit: usize) -> bool {
        let second = since_start.as_secs();
        if self.second != second {
            *self = Rate { second, count: 0 };
        }
        let slices = since_start.subsec_nanos() as usize * SLICES / NANOS_PER_S + 1;
        let allowed = self.count < limit.saturating_mul(slices).div_ceil(SLICES);
        self.count += usize::from(allowed);
        allowed
    }
}

/// Strangers of one share.
#[derive(Debug, Default)]
pub(super) struct Share {
    pub(super) limit: usize,
    /// Nothing more has come from them since they were made, as far as was looked.
    pub(super) fresh: List<BY_USE>,
    /// Packets came from them later.
    pub(super) proven: List<BY_USE>,
    pub(super) taken_over: Rate,
}

impl Share {
    pub(super) fn len(&self) -> usize {
        self.fresh.len() + self.proven.len()
    }

    /// Places for new strangers, and how many can be taken over in a second.
    pub(super) fn quarter(&self) -> usize {
        (self.limit / FRESH_FRACTION).max(1)
    }

    pub(super) fn list(&mut self, is_proven: bool) -> &mut List<BY_USE> {
        if is_proven { &mut self.proven } else { &mut self.fresh }
    }
}

/// Strangers of one origin.
#[derive(Debug, Default)]
pub(super) struct OriginShare {
    pub(super) all: List<BY_ORIGIN>,
    pub(super) taken_over: Rate,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_second_allows_is_spread_over_it() {
        let mut rate = Rate::default();
        let mut longest_wait = 0;
        let mut waited = 0;
        let mut allowed = 0;
        // A flood of ten packets a millisecond for three seconds.
        for tenth_ms in 0..30_000 {
            let is_allowed = rate.allows(Duration::from_micros(tenth_ms * 100), 1536);
            waited = if is_allowed { 0 } else { waited + 1 };
            longest_wait = longest_wait.max(waited);
            allowed += usize::from(is_allowed);
        }
        assert_eq!(allowed, 3 * 1536);
        assert!(longest_wait < 10_000 / SLICES, "{longest_wait} tenths of a millisecond");
    }

    #[test]
    fn few_are_allowed_one_by_one_and_none_is_lost() {
        let mut rate = Rate::default();
        let allowed: Vec<u64> =
            (0..2000).filter(|&ms| rate.allows(Duration::from_millis(ms), 3)).map(|ms| ms % 1000).collect();
        assert_eq!(allowed, [0, 313, 625, 0, 313, 625]);
        // Who comes late finds what nobody has used.
        let mut late = Rate::default();
        assert!((0..3).all(|_| late.allows(Duration::from_millis(990), 3)));
        assert!(!late.allows(Duration::from_millis(999), 3));
    }
}
