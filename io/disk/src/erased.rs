//! Prefixes with erased Data, each with the log position at the time of the erasure: records of the prefix below that
//! position are erased.
//!
//! The index does not hold names, so an erasure cannot find its records. It is remembered instead, and the name of
//! each Data that is read is compared with it. The log holds a record of the erasure, too, for the time after a
//! restart; it may be overwritten there once it is the oldest.

use crate::index::Extent;

/// Maximum number of remembered erasures. One more erases the whole disk.
const MAX_ERASURES: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Erasure {
    /// VALUE of a name prefix.
    prefix: Box<[u8]>,
    before: u64,
}

/// The remembered erasures; see the module's description.
#[derive(Debug, Clone, Default)]
pub(crate) struct Erased(Vec<Erasure>);

impl Erased {
    /// Erases the Data under this prefix below a position. Returns the prefix to write into the log, which may be
    /// shorter.
    pub(crate) fn add<'a>(&mut self, prefix: &'a [u8], before: u64, extent: Extent) -> &'a [u8] {
        // An erasure older than the oldest record has no more effect.
        self.0.retain(|erasure| extent.cursor.saturating_sub(extent.slots) < erasure.before);
        // A later erasure of the same or a shorter prefix replaces an earlier one.
        self.0.retain(|erasure| erasure.before > before || !erasure.prefix.starts_with(prefix));
        let prefix = if self.0.len() < MAX_ERASURES { prefix } else { &prefix[..0] };
        if prefix.is_empty() {
            self.0.retain(|erasure| erasure.before > before);
        }
        self.0.push(Erasure { prefix: prefix.into(), before });
        prefix
    }

    /// Iterates over all prefixes.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = Box<[u8]>> + '_ {
        self.0.iter().map(|erasure| erasure.prefix.clone())
    }

    /// Returns true if the Data with this name VALUE at this position is erased.
    pub(crate) fn covers(&self, name: &[u8], position: u64) -> bool {
        self.0.iter().any(|erasure| position < erasure.before && name.starts_with(&erasure.prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent = Extent { cursor: 1_000, slots: 500 };

    #[test]
    fn what_is_older_is_erased_and_what_is_newer_stays() {
        let mut erased = Erased::default();
        erased.add(b"\x08\x01a", 900, EXTENT);
        assert!(erased.covers(b"\x08\x01a\x08\x01b", 899));
        assert!(!erased.covers(b"\x08\x01a\x08\x01b", 900));
        assert!(!erased.covers(b"\x08\x01b", 899));
    }

    #[test]
    fn reads_are_limited_and_none_is_lost() {
        let mut erased = Erased::default();
        let mut names: Vec<Vec<u8>> = Vec::new();
        for number in 0..200_u8 {
            names.push(vec![8, 1, number]);
            erased.add(&[8, 1, number], 600 + u64::from(number), EXTENT);
            assert!(erased.0.len() <= MAX_ERASURES);
            for (number, name) in names.iter().enumerate() {
                assert!(erased.covers(name, 599 + number as u64), "erasure {number} must be kept");
            }
        }
        erased.add(b"", 500, EXTENT);
        erased.add(b"\x08\x01z", 990, Extent { cursor: 2_000, slots: 500 });
        assert_eq!(erased.0.len(), 1, "erasures of overwritten records must be dropped");
    }

    #[test]
    fn the_same_prefix_is_remembered_once() {
        let mut erased = Erased::default();
        for before in 600..700 {
            assert_eq!(erased.add(b"\x08\x01a", before, EXTENT), b"\x08\x01a");
        }
        assert_eq!(erased.0.len(), 1);
        assert!(erased.covers(b"\x08\x01a", 698));
    }
}
