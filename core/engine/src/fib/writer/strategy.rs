//! Strategy choices: the strategy of each name, and how entries learn of changes.
//!
//! Each entry contains its effective choice, its own or that of the nearest shorter prefix with one, so that a packet
//! pays nothing for inheritance. The inherited choice of a prefix is looked up among the choices, of which there are
//! few.
//!
//! When a choice is added or removed, the entries below must be updated. They can be found only by a pass over all
//! entries in order of memory, a *round*. A round is done in portions, so that no thread waits long. Meanwhile entries
//! below have the former strategy or the new one, and entries that are written get the new one at once. Changes during
//! a round share the next one, so two rounds settle any number of changes.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use namehop_hash::PrefixHashes;
use namehop_wire::NameRef;

use super::FibWriter;
use super::update::Prefix;
use crate::fib::FibError;
use crate::fib::entry::Entry;
use crate::fib::shared::Retired;

/// The first choice, which the root keeps.
pub(super) const ROOT_CHOICE: u32 = 0;
/// Number of entries that a change examines by itself, which takes some ten microseconds: all of them in a small table.
const FIRST_PORTION: usize = 4096;
/// How many entries ahead a round prefetches.
const AHEAD: u32 = 16;

/// A pass over all entries that updates their choices.
#[derive(Debug)]
pub(super) struct Round {
    /// Common start of the VALUEs of all prefixes that may need an update.
    start: Vec<u8>,
    /// The entry to examine next.
    next: u32,
    /// Removed choices, to which no entry refers when the round ends.
    removed: Vec<u32>,
}

impl Round {
    /// Returns the choices that will be freed.
    pub(super) fn removed(&self) -> &[u32] {
        &self.removed
    }
}

/// Returns the length of the common start of two VALUEs, in bytes.
fn common_bytes(first: &[u8], second: &[u8]) -> usize {
    first.iter().zip(second).take_while(|(first, second)| first == second).count()
}

impl<S: Send + Sync> FibWriter<S> {
    /// Returns whether a strategy was chosen for exactly this prefix.
    pub fn has_strategy(&self, prefix: NameRef<'_>) -> bool {
        self.strategies.contains_key(prefix.value())
    }

    /// Chooses the strategy for a prefix and for everything below it without its own choice.
    ///
    /// If the prefix had a choice already, the new one is in effect at once. Otherwise prefixes below may keep their
    /// former strategy until [`settle_strategies`](Self::settle_strategies) returns `true`.
    pub fn set_strategy(&mut self, prefix: NameRef<'_>, strategy: S) -> Result<(), FibError> {
        let mut hashes = PrefixHashes::new();
        let prefix = self.prefix(prefix.value(), &mut hashes)?;
        let strategy = Arc::into_raw(Arc::new(strategy)).cast_mut();
        if let Some(&choice) = self.strategies.get(prefix.value) {
            let old = self.choice(choice).swap(strategy, Ordering::AcqRel);
            // SAFETY: the pointer comes from `Arc::into_raw`, and its count is transferred from the choice to this.
            self.retired.retire(Retired::Strategy(unsafe { Arc::from_raw(old) }));
            self.note_strategies_changed();
            return Ok(());
        }
        let choice = self.choices.allocate(AtomicPtr::new(strategy)).inspect_err(|_| {
            // SAFETY: the pointer was made above, and is stored nowhere.
            drop(unsafe { Arc::from_raw(strategy) });
        })?;
        match self.find(&prefix) {
            Some(index) => self.entry(index).set_choice(choice),
            None => {
                let source = self.nexthops_above(&prefix);
                if let Err(error) = self.write_entry(&prefix, None, &[], choice, source) {
                    // SAFETY: no entry refers to the choice, so no reader sees it.
                    unsafe {
                        self.shared.release(&Retired::Choice(choice));
                        self.choices.free(choice);
                    }
                    return Err(error);
                }
            }
        }
        self.strategies.insert(prefix.value.into(), choice);
        self.note_strategies_changed();
        self.tell_entries_below(&prefix, None);
        Ok(())
    }

    /// Removes the strategy choice of a prefix, which then inherits that of the next shorter prefix with a choice.
    /// Prefixes below follow as in [`set_strategy`](Self::set_strategy). Returns `true` if there was a choice.
    pub fn unset_strategy(&mut self, prefix: NameRef<'_>) -> Result<bool, FibError> {
        let mut hashes = PrefixHashes::new();
        let prefix = self.prefix(prefix.value(), &mut hashes)?;
        if prefix.is_root() {
            return Err(FibError::RootStrategy);
        }
        let Some(choice) = self.strategies.remove(prefix.value) else {
            return Ok(false);
        };
        if let Some(index) = self.find(&prefix) {
            if self.entry(index).has_own_nexthops() {
                self.entry(index).set_choice(self.choice_for(prefix.value));
            } else {
                self.remove_entry(&prefix, index);
            }
        }
        self.note_strategies_changed();
        self.tell_entries_below(&prefix, Some(choice));
        Ok(true)
    }

    /// Examines up to `entries` more entries that may need a new strategy. Returns `true` if none is left: then all
    /// changes are in effect. Must be called, with pauses, until it returns `true`.
    pub fn settle_strategies(&mut self, entries: usize) -> bool {
        let Some(mut round) = self.round.take() else {
            return true;
        };
        let made = self.entries.slots_made();
        let portion = u32::try_from(entries).unwrap_or(u32::MAX);
        let end = made.min(round.next.saturating_add(portion));
        let mut is_changed = false;
        // In order of memory, which is many times faster than in order of the table. Entries that are unpublished and
        // not yet reclaimed are updated too, because readers may hold them until the round ends.
        for index in round.next..end {
            self.entries.prefetch_line(index.saturating_add(AHEAD).min(made - 1), 0);
            let Some(entry) = self.entry_in_slot(index) else { continue };
            if entry.value().starts_with(&round.start) {
                let choice = self.choice_for(entry.value());
                if choice != entry.choice() {
                    entry.set_choice(choice);
                    is_changed = true;
                }
            }
        }
        if is_changed {
            self.note_strategies_changed();
        }
        round.next = end;
        if end < made {
            self.round = Some(round);
        } else {
            self.retire_choices(round.removed);
            self.round = self.next_round.take();
        }
        self.round.is_none()
    }

    /// Returns the entry that begins in a slot that has been allocated at some time.
    fn entry_in_slot(&self, index: u32) -> Option<&Entry> {
        let entry_in = |index| Some(self.entry(index)).filter(|entry| !entry.is_vacant());
        // Pairs begin at even slots.
        let is_second = !index.is_multiple_of(2) && entry_in(index - 1).is_some_and(Entry::is_pair);
        if is_second { None } else { entry_in(index) }
    }

    /// Begins a round for a change at a prefix, or adds the change to the next round if one is in progress. `removed`
    /// is the prefix's former choice.
    fn tell_entries_below(&mut self, prefix: &Prefix<'_>, removed: Option<u32>) {
        if self.depth_counts[prefix.depth + 1..].iter().all(|&count| count == 0) {
            return self.retire_choices(removed);
        }
        let round = if self.round.is_some() { &mut self.next_round } else { &mut self.round };
        match round {
            Some(round) => {
                round.start.truncate(common_bytes(&round.start, prefix.value));
                round.removed.extend(removed);
            }
            None => {
                *round = Some(Round { start: prefix.value.into(), next: 0, removed: removed.into_iter().collect() });
            }
        }
        self.settle_strategies(FIRST_PORTION);
    }

    fn retire_choices(&mut self, removed: impl IntoIterator<Item = u32>) {
        for choice in removed {
            self.retired.retire(Retired::Choice(choice));
        }
    }

    /// Must be called when a change is published, so that no worker takes an old strategy for a new one.
    fn note_strategies_changed(&self) {
        self.shared.strategies_version.fetch_add(1, Ordering::Release);
    }

    /// Returns the effective choice of a name: that of the longest prefix with one.
    pub(super) fn choice_for(&self, value: &[u8]) -> u32 {
        if self.strategies.len() == 1 {
            return ROOT_CHOICE;
        }
        let mut longest = value;
        // Prefixes of a name sort before it, but other VALUEs may lie between. Bytes in which such a VALUE differs from
        // the name cannot belong to the prefix either.
        while let Some((prefix, &choice)) = self.choices_up_to(longest).next_back() {
            let common = common_bytes(prefix, longest);
            if common == prefix.len() {
                return choice;
            }
            longest = &longest[..common];
        }
        // Not reached, because the root's VALUE is a prefix of every other.
        ROOT_CHOICE
    }

    fn choices_up_to(&self, value: &[u8]) -> impl DoubleEndedIterator<Item = (&Box<[u8]>, &u32)> {
        self.strategies.range::<[u8], _>((Bound::Unbounded, Bound::Included(value)))
    }

    /// Returns the effective strategy of a name.
    pub fn effective_strategy(&self, name: NameRef<'_>) -> &S {
        self.strategy(self.choice_for(name.value()))
    }

    /// Returns all prefixes with their own strategy, in canonical order.
    pub fn strategies(&self) -> impl Iterator<Item = (NameRef<'_>, &S)> {
        self.strategies.iter().filter_map(|(value, &choice)| {
            let name = NameRef::from_value(value).ok()?;
            Some((name, self.strategy(choice)))
        })
    }
}
