//! One entry of the name dispatch table, in 16 bits.

use super::MAX_WORKERS;

const WORKER_BITS: u32 = 6;
const _: () = assert!(MAX_WORKERS == 1 << WORKER_BITS);
const WORKER_MASK: u16 = (1 << WORKER_BITS) - 1;
/// Position of the former owner's number plus 1; 0 if there is none.
const FORMER_SHIFT: u32 = 8;
const FORMER_MASK: u16 = 0x7F << FORMER_SHIFT;
/// Longer names have their own entries, by one more component.
const DIVIDED: u16 = 1 << 7;
/// The division is in its grace period.
const DIVIDED_LATELY: u16 = 1 << 6;

/// The owner of names that end at an entry, and whether longer names have their own entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(u16);

impl Entry {
    pub(super) fn new(owner: u8) -> Entry {
        Entry(u16::from(owner) & WORKER_MASK)
    }

    pub(super) fn from_bits(bits: u16) -> Entry {
        Entry(bits)
    }

    pub(super) fn bits(self) -> u16 {
        self.0
    }

    /// Returns the owner.
    #[inline]
    pub(super) fn owner(self) -> u8 {
        (self.0 & WORKER_MASK) as u8
    }

    /// Returns the former owner, during its grace period.
    pub(super) fn former_owner(self) -> Option<u8> {
        ((self.0 & FORMER_MASK) >> FORMER_SHIFT).checked_sub(1).map(|former| former as u8)
    }

    /// Returns whether longer names have their own entries, by one more component.
    #[inline]
    pub(super) fn is_divided(self) -> bool {
        self.0 & DIVIDED != 0
    }

    /// Returns whether Interests with longer names from before the division may still be pending at the owner.
    pub(super) fn is_divided_lately(self) -> bool {
        self.0 & DIVIDED_LATELY != 0
    }

    #[must_use]
    pub(super) fn moved_to(self, owner: u8) -> Entry {
        let former = (u16::from(self.owner()) + 1) << FORMER_SHIFT;
        Entry(self.0 & !(WORKER_MASK | FORMER_MASK) | former | u16::from(owner) & WORKER_MASK)
    }

    #[must_use]
    pub(super) fn without_former_owner(self) -> Entry {
        Entry(self.0 & !FORMER_MASK)
    }

    #[must_use]
    pub(super) fn divided(self) -> Entry {
        Entry(self.0 | DIVIDED | DIVIDED_LATELY)
    }

    #[must_use]
    pub(super) fn divided_for_long(self) -> Entry {
        Entry(self.0 & !DIVIDED_LATELY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_former_owner_and_division_do_not_disturb_each_other() {
        for owner in [0, 1, MAX_WORKERS as u8 - 1] {
            for next in [0, 7, MAX_WORKERS as u8 - 1] {
                let entry = Entry::new(owner);
                assert_eq!((entry.owner(), entry.former_owner(), entry.is_divided()), (owner, None, false));
                let moved = entry.divided().moved_to(next);
                assert_eq!((moved.owner(), moved.former_owner()), (next, Some(owner)));
                assert!(moved.is_divided() && moved.is_divided_lately());
                let later = moved.divided_for_long();
                assert!(later.is_divided() && !later.is_divided_lately());
                assert_eq!((later.owner(), later.former_owner()), (next, Some(owner)));
                assert_eq!(later.without_former_owner(), Entry::from_bits(Entry::new(next).bits() | DIVIDED));
            }
        }
    }
}
