//! Prefixes whose Data was erased, each with the position that the log had come to: what lies before that under the prefix is
//! not there any more.
//!
//! The index knows no names, so an erasure cannot look for what it means. It is remembered instead, and each Data that is read
//! is held against it. It stands in the log as well, for the time after a restart; there it is written over when nothing older
//! is left.

use crate::index::Extent;

/// Erasures that are remembered. One more, and everything on the disk is erased.
const MAX_ERASURES: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Erasure {
    /// VALUE of a name.
    prefix: Box<[u8]>,
    before: u64,
}

/// See the module's description.
#[derive(Debug, Clone, Default)]
pub(crate) struct Erased(Vec<Erasure>);

impl Erased {
    /// The Data under this prefix that lies before a position is erased. Returns the prefix that is to be written into the log,
    /// which may be a shorter one.
    pub(crate) fn add<'a>(&mut self, prefix: &'a [u8], before: u64, extent: Extent) -> &'a [u8] {
        // What is older than the oldest record has nothing left to erase.
        self.0.retain(|erasure| extent.cursor.saturating_sub(extent.slots) < erasure.before);
        // A later erasure of the same, or of more, stands for an earlier one.
        self.0.retain(|erasure| erasure.before > before || !erasure.prefix.starts_with(prefix));
        let prefix = if self.0.len() < MAX_ERASURES { prefix } else { &prefix[..0] };
        if prefix.is_empty() {
            self.0.retain(|erasure| erasure.before > before);
        }
        self.0.push(Erasure { prefix: prefix.into(), before });
        prefix
    }

    /// All prefixes.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = Box<[u8]>> + '_ {
        self.0.iter().map(|erasure| erasure.prefix.clone())
    }

    /// Is the Data with this name VALUE, which lies at a position, erased?
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
    fn there_are_never_too_many_and_none_is_lost() {
        let mut erased = Erased::default();
        let mut names: Vec<Vec<u8>> = Vec::new();
        for number in 0..200_u8 {
            names.push(vec![8, 1, number]);
            erased.add(&[8, 1, number], 600 + u64::from(number), EXTENT);
            assert!(erased.0.len() <= MAX_ERASURES);
            for (number, name) in names.iter().enumerate() {
                assert!(erased.covers(name, 599 + number as u64), "erasure {number} is forgotten");
            }
        }
        erased.add(b"", 500, EXTENT);
        erased.add(b"\x08\x01z", 990, Extent { cursor: 2_000, slots: 500 });
        assert_eq!(erased.0.len(), 1, "what is written over needs no erasure");
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
