//! Reasons of network-layer Nacks (NDNLPv2 "Network Nack").

use std::fmt;

/// Reason of a network-layer Nack. Unknown codes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NackReason(pub u64);

impl NackReason {
    /// No reason given.
    pub const NONE: NackReason = NackReason(0);
    /// Link congestion.
    pub const CONGESTION: NackReason = NackReason(50);
    /// Duplicate Nonce.
    pub const DUPLICATE: NackReason = NackReason(100);
    /// No route to the name.
    pub const NO_ROUTE: NackReason = NackReason(150);

    /// Number on the wire.
    pub const fn code(self) -> u64 {
        self.0
    }

    /// Returns true if this reason is less severe than `other`. A lower code is less severe; no reason, or an unknown
    /// one, is the most severe.
    pub const fn is_less_severe_than(self, other: NackReason) -> bool {
        self.severity() < other.severity()
    }

    const fn severity(self) -> u64 {
        match self {
            NackReason::CONGESTION | NackReason::DUPLICATE | NackReason::NO_ROUTE => self.0,
            _ => u64::MAX,
        }
    }
}

impl From<u64> for NackReason {
    fn from(code: u64) -> Self {
        NackReason(code)
    }
}

impl fmt::Display for NackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            NackReason::NONE => f.write_str("None"),
            NackReason::CONGESTION => f.write_str("Congestion"),
            NackReason::DUPLICATE => f.write_str("Duplicate"),
            NackReason::NO_ROUTE => f.write_str("NoRoute"),
            NackReason(code) => write!(f, "{code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_order() {
        assert!(NackReason::CONGESTION.is_less_severe_than(NackReason::DUPLICATE));
        assert!(NackReason::DUPLICATE.is_less_severe_than(NackReason::NO_ROUTE));
        assert!(NackReason::NO_ROUTE.is_less_severe_than(NackReason::NONE));
        assert!(NackReason::NO_ROUTE.is_less_severe_than(NackReason(1)));
        assert!(!NackReason::NONE.is_less_severe_than(NackReason::NONE));
        assert!(!NackReason::NONE.is_less_severe_than(NackReason::CONGESTION));
    }
}
