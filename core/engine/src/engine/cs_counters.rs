//! What the Content Store did under each policy.

use std::ops::{AddAssign, Sub};

use namehop_store::PolicyKind;

/// What the Content Store did, in Interests and Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CsCounters {
    /// Interests answered.
    pub hits: u64,
    /// Interests that found nothing.
    pub misses: u64,
    /// Data that entered under a name of which none was there.
    pub insertions: u64,
    /// Data that left to make room.
    pub evictions: u64,
    /// Data that the policy did not let in.
    pub rejections: u64,
}

impl AddAssign for CsCounters {
    fn add_assign(&mut self, other: CsCounters) {
        let CsCounters { hits, misses, insertions, evictions, rejections } = other;
        self.hits += hits;
        self.misses += misses;
        self.insertions += insertions;
        self.evictions += evictions;
        self.rejections += rejections;
    }
}

impl Sub for CsCounters {
    type Output = CsCounters;

    /// What came after `earlier`.
    fn sub(self, earlier: CsCounters) -> CsCounters {
        CsCounters {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            insertions: self.insertions - earlier.insertions,
            evictions: self.evictions - earlier.evictions,
            rejections: self.rejections - earlier.rejections,
        }
    }
}

/// For each policy, what the Content Store did as long as that policy was in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsCountersByPolicy([CsCounters; PolicyKind::ALL.len()]);

impl Default for CsCountersByPolicy {
    fn default() -> Self {
        CsCountersByPolicy([CsCounters::default(); PolicyKind::ALL.len()])
    }
}

impl CsCountersByPolicy {
    /// Adds what was done under a policy.
    pub fn add(&mut self, policy: PolicyKind, counters: CsCounters) {
        self.0[policy as usize] += counters;
    }

    /// Policies under which anything was done.
    pub fn used(&self) -> impl Iterator<Item = (PolicyKind, CsCounters)> {
        let all = PolicyKind::ALL.iter().map(|&policy| (policy, self.0[policy as usize]));
        all.filter(|(_, counters)| *counters != CsCounters::default())
    }

    /// All policies together.
    pub fn total(&self) -> CsCounters {
        let mut total = CsCounters::default();
        self.0.iter().for_each(|&counters| total += counters);
        total
    }
}

impl AddAssign for CsCountersByPolicy {
    /// Adds those of another engine.
    fn add_assign(&mut self, other: CsCountersByPolicy) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// Divides the totals of an engine among the policies that it had.
#[derive(Debug, Default)]
pub(crate) struct PolicyPeriods {
    /// Of periods that have ended.
    ended: CsCountersByPolicy,
    /// Totals when the period began that is under way.
    begin: CsCounters,
}

impl PolicyPeriods {
    /// Another policy than `policy` is in use from now on.
    pub(crate) fn end(&mut self, policy: PolicyKind, totals: CsCounters) {
        self.ended.add(policy, totals - self.begin);
        self.begin = totals;
    }

    /// What was done until now; `policy` is in use.
    pub(crate) fn until_now(&self, policy: PolicyKind, totals: CsCounters) -> CsCountersByPolicy {
        let mut all = self.ended;
        all.add(policy, totals - self.begin);
        all
    }
}
