//! Number of cache lines that the decisions of policies touch.
//!
//! Release builds do not count accesses, because even a disabled counter would cost something at each access. So the
//! values that the tests count are recorded here, and the tests fail if they differ.

use crate::PolicyKind;

/// Average number of lines that an operation touches, in a full store of 100,000 packets, of which a quarter were
/// used since they entered. Heads of lists, and other state in the policy itself, do not count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lines {
    /// A hit: a packet satisfies an Interest.
    pub hit: f64,
    /// The decision whether Data may enter a full store.
    pub decision: f64,
    /// The eviction of a packet and the insertion of another one.
    pub eviction: f64,
}

/// Returns the number of lines for a policy.
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
