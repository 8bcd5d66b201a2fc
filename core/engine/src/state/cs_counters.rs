//! Counters of the Content Store for each cache policy.

use std::ops::AddAssign;

use namehop_store::PolicyKind;

namehop_packet::counters! {
    /// Counters of the Content Store, in Interests and Data. Their metrics are values of the label "event".
    pub struct CsCounters {
        hits = "hit": "Interests answered from the Content Store";
        misses = "miss": "Interests that the Content Store could not answer";
        insertions = "insertion": "Data that was inserted under a name that was not cached";
        evictions = "eviction": "Data that was evicted";
        rejections = "rejection": "Data that the policy rejected";
    }
}

/// Counters of the Content Store for each policy, while that policy was in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsCountersByPolicy([CsCounters; PolicyKind::ALL.len()]);

impl Default for CsCountersByPolicy {
    fn default() -> Self {
        CsCountersByPolicy([CsCounters::default(); PolicyKind::ALL.len()])
    }
}

impl CsCountersByPolicy {
    /// Adds counters for a policy.
    pub fn add(&mut self, policy: PolicyKind, counters: CsCounters) {
        self.0[policy as usize] += counters;
    }

    /// Returns the policies with a counter above zero.
    pub fn used(&self) -> impl Iterator<Item = (PolicyKind, CsCounters)> {
        let all = PolicyKind::ALL.iter().map(|&policy| (policy, self.0[policy as usize]));
        all.filter(|(_, counters)| *counters != CsCounters::default())
    }

    /// Returns the sum over all policies.
    pub fn total(&self) -> CsCounters {
        let mut total = CsCounters::default();
        self.0.iter().for_each(|&counters| total += counters);
        total
    }
}

impl AddAssign for CsCountersByPolicy {
    /// Adds the counters of another engine.
    fn add_assign(&mut self, other: CsCountersByPolicy) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// Divides the totals of an engine among the policies it has used.
#[derive(Debug, Default)]
pub(crate) struct PolicyPeriods {
    /// Counters of periods that have ended.
    ended: CsCountersByPolicy,
    /// Totals at the beginning of the current period.
    begin: CsCounters,
}

impl PolicyPeriods {
    /// Ends the period of `policy`; another policy is in use from now on.
    pub(crate) fn end(&mut self, policy: PolicyKind, totals: CsCounters) {
        self.ended.add(policy, totals - self.begin);
        self.begin = totals;
    }

    /// Returns the counters up to now; `policy` is in use.
    pub(crate) fn until_now(&self, policy: PolicyKind, totals: CsCounters) -> CsCountersByPolicy {
        let mut all = self.ended;
        all.add(policy, totals - self.begin);
        all
    }
}
