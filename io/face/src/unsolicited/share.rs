//! State of the unsolicited peers of one share, or of one origin.

use std::time::Duration;

use crate::list::List;

/// Kinds of lists: by share, and by origin.
pub(super) const BY_USE: usize = 0;
pub(super) const BY_ORIGIN: usize = 1;

/// One in this many slots is reserved for new unsolicited peers, and one in this many can change owner in a second.
pub(super) const FRESH_FRACTION: usize = 4;

const NANOS_PER_S: usize = 1_000_000_000;
/// Number of slices of a second, over which the allowed evictions are spread. If all of them were allowed at once, a
/// flood would use them up at the start of each second. A new unsolicited peer would then wait for the next second.
const SLICES: usize = 16;

/// Number of slots that changed owner in the present second.
#[derive(Debug, Default)]
pub(super) struct Rate {
    second: u64,
    count: usize,
}

impl Rate {
    /// Counts one eviction and returns `true`, unless the limit for this part of the second is reached. `limit` is per
    /// second; `since_start` is the time since the start.
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

/// Unsolicited peers of one share.
#[derive(Debug, Default)]
pub(super) struct Share {
    pub(super) limit: usize,
    /// Unsolicited peers that had sent nothing since their face was created, when last checked.
    pub(super) fresh: List<BY_USE>,
    /// Unsolicited peers that have sent packets since then.
    pub(super) proven: List<BY_USE>,
    pub(super) taken_over: Rate,
}

impl Share {
    pub(super) fn len(&self) -> usize {
        self.fresh.len() + self.proven.len()
    }

    /// Returns the number of slots reserved for new unsolicited peers, which is also the number that can change owner
    /// in a second.
    pub(super) fn quarter(&self) -> usize {
        (self.limit / FRESH_FRACTION).max(1)
    }

    pub(super) fn list(&mut self, is_proven: bool) -> &mut List<BY_USE> {
        if is_proven { &mut self.proven } else { &mut self.fresh }
    }
}

/// Unsolicited peers of one origin.
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
    fn small_limits_are_spread_over_the_second() {
        let mut rate = Rate::default();
        let allowed: Vec<u64> =
            (0..2000).filter(|&ms| rate.allows(Duration::from_millis(ms), 3)).map(|ms| ms % 1000).collect();
        assert_eq!(allowed, [0, 313, 625, 0, 313, 625]);
        // A late request can use everything that is left.
        let mut late = Rate::default();
        assert!((0..3).all(|_| late.allows(Duration::from_millis(990), 3)));
        assert!(!late.allows(Duration::from_millis(999), 3));
    }
}
