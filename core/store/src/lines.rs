//! Number of cache lines that the decisions of policies touch.
//!
//! Release builds do not count accesses, because even a disabled counter would cost something at each access. So the
//! values that the tests count are recorded in the list of policies, and the tests fail if they differ.

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
