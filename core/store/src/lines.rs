//! Cache lines that decisions of policies touch.
//!
//! Noting accesses is no part of a release build, because even asking whether to note one would cost something at each. So what the tests
//! count is written down here, and they fail when it is not what they count.

use crate::PolicyKind;

/// Lines that an operation touches on average, in a full store of 100,000 packets, a quarter of which was used since they entered.
/// Heads of lists, and what else lies in the policy itself, do not count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lines {
    /// A packet answers an Interest.
    pub hit: f64,
    /// Is Data to enter for which another packet has to leave?
    pub decision: f64,
    /// A packet leaves, and another one enters in its place.
    pub eviction: f64,
}

/// Those of a policy.
pub const fn of(kind: PolicyKind) -> Lines {
    let (hit, decision, eviction) = match kind {
        PolicyKind::Lru => (4.1, 0.0, 3.3),
        PolicyKind::Fifo => (0.0, 0.0, 3.3),
        PolicyKind::Random => (0.0, 0.0, 4.0),
        PolicyKind::Lfu => (5.2, 0.0, 2.7),
        PolicyKind::Arc => (2.9, 1.0, 3.9),
        PolicyKind::Clock => (1.0, 0.0, 4.4),
        PolicyKind::ClockPro => (1.0, 1.0, 14.1),
        PolicyKind::TinyLfu => (0.0, 6.3, 4.3),
        PolicyKind::TinyLfuRandom => (0.0, 4.0, 5.0),
        PolicyKind::TinyLfuClock => (1.0, 1.3, 5.4),
        PolicyKind::Filter => (0.0, 1.0, 3.3),
        PolicyKind::S3Fifo => (1.0, 1.0, 3.7),
        PolicyKind::Sieve => (1.0, 0.0, 2.1),
        PolicyKind::WTinyLfu => (3.5, 0.0, 5.5),
        PolicyKind::PriorityFifo => (0.0, 0.0, 2.5),
    };
    Lines { hit, decision, eviction }
}
