//! Reasons for dropping packets, and their counters.
//!
//! Counters are plain integers with one writer, the worker that drops the packet; readers get copies.

use std::fmt;
use std::ops::{AddAssign, Index, IndexMut};

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)+) => {
        /// Why the engine dropped a packet. The names are stable: they are metric labels.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DropReason {
            $($(#[$doc])* $variant,)+
        }

        impl DropReason {
            /// All reasons, in the order of [`DropReason::index`].
            pub const ALL: &'static [DropReason] = &[$(DropReason::$variant,)+];

            /// Stable name in kebab case.
            pub const fn name(self) -> &'static str {
                match self {
                    $(DropReason::$variant => $name,)+
                }
            }
        }
    };
}

drop_reasons! {
    /// The packet does not decode by the NDN packet specification.
    Malformed => "malformed",
    /// The name has more than `namehop_wire::MAX_NAME_COMPONENTS` components.
    NameTooDeep => "name-too-deep",
    /// The name is longer than the engine's setting `max_name_bytes`.
    NameTooLong => "name-too-long",
    /// Too many long names arrived recently; see the engine's setting `long_name_bytes_per_s`.
    TooManyLongNames => "too-many-long-names",
    /// The packet arrived on a face that the engine does not know or has removed.
    UnknownFace => "unknown-face",
    /// An Interest arrived with HopLimit 0.
    HopLimitZero => "hop-limit-zero",
    /// An Interest was not sent to a non-local face because its HopLimit was decremented to 0.
    HopLimitExhausted => "hop-limit-exhausted",
    /// `/localhost` from or to a face that is not local.
    ScopeViolation => "scope-violation",
    /// The Dead Nonce List holds the Interest's name and nonce.
    DeadNonce => "dead-nonce",
    /// The PIT entry already holds the Interest's nonce.
    DuplicateNonce => "duplicate-nonce",
    /// A pending Interest was evicted because too many others with its name had forwarding hints. Counted for its
    /// downstream.
    TooManyHints => "too-many-hints",
    /// A pending Interest was evicted before it expired to make room for another one. Counted for the face that held
    /// it.
    PitEvicted => "pit-evicted",
    /// No memory for another PIT entry, even after evictions.
    PitFull => "pit-full",
    /// The PIT entry has no room for another downstream.
    TooManyDownstreams => "too-many-downstreams",
    /// The PIT entry has no room for another upstream.
    TooManyUpstreams => "too-many-upstreams",
    /// The pool had no buffer for a copy or a rewritten packet.
    NoBuffer => "no-buffer",
    /// NextHopFaceId names a face that does not exist.
    NoSuchNextHop => "no-such-next-hop",
    /// Data that matches no PIT entry.
    UnsolicitedData => "unsolicited-data",
    /// Data that matches PIT entries without a downstream to send it to: the downstreams were removed, satisfied or
    /// expired, or are only the face that the Data came from. It may have been cached.
    NoDownstream => "no-downstream",
    /// Data that matches PIT entries, but none with an out-record for this face. It is treated as unsolicited.
    UnaskedData => "unasked-data",
    /// A Nack on a face that is not point-to-point.
    NackNotPointToPoint => "nack-not-point-to-point",
    /// A Nack for which no PIT entry has an out-record with this face and nonce.
    UnmatchedNack => "unmatched-nack",
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the setting of section `[forwarding]` that sets the limit behind this reason, if there is one.
    pub const fn setting(self) -> Option<&'static str> {
        match self {
            DropReason::NameTooLong => Some("max_name_bytes"),
            DropReason::TooManyLongNames => Some("long_name_bytes_per_s"),
            DropReason::PitFull => Some("pit_capacity"),
            DropReason::NoBuffer => Some("small_buffers or large_buffers"),
            _ => None,
        }
    }

    /// Position in [`DropReason::ALL`] and in [`DropCounters`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Number of dropped packets by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropCounters([u64; DropReason::COUNT]);

impl DropCounters {
    /// Sum over all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Iterates over all reasons with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|&reason| (reason, self[reason]))
    }
}

impl AddAssign for DropCounters {
    fn add_assign(&mut self, other: DropCounters) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }
}

impl Default for DropCounters {
    fn default() -> Self {
        DropCounters([0; DropReason::COUNT])
    }
}

impl Index<DropReason> for DropCounters {
    type Output = u64;
    fn index(&self, reason: DropReason) -> &u64 {
        &self.0[reason.index()]
    }
}

impl IndexMut<DropReason> for DropCounters {
    fn index_mut(&mut self, reason: DropReason) -> &mut u64 {
        &mut self.0[reason.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_kebab_case_and_in_index_order() {
        for (position, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), position);
            assert!(reason.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
            assert_eq!(DropReason::ALL.iter().filter(|other| other.name() == reason.name()).count(), 1);
        }
    }

    #[test]
    fn total_is_the_sum_over_reasons() {
        let mut drops = DropCounters::default();
        drops[DropReason::Malformed] += 2;
        drops[DropReason::UnmatchedNack] += 3;
        assert_eq!(drops.total(), 5);
        let mut both = drops;
        both += drops;
        assert_eq!((both[DropReason::Malformed], both.total()), (4, 10));
        assert_eq!(drops.iter().filter(|(_, count)| *count > 0).count(), 2);
    }
}
