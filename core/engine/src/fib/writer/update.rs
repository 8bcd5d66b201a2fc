//! The steps of changes to the FIB: finding entries, publishing them, and maintaining inheritance.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use arrayvec::ArrayVec;
use namehop_hash::{HashKey, PrefixHashes, hash_name, hash_prefixes};
use namehop_packet::FaceId;

use super::FibWriter;
use crate::fib::entry::{Entry, EntryParts, NONE};
use crate::fib::shared::{Choice, Retired};
use crate::fib::{FibError, MAX_NEXTHOPS, MAX_PREFIX_COMPONENTS, NextHop, NextHops};

/// Next hops of an entry that is being changed.
pub(super) type NextHopList = ArrayVec<NextHop, MAX_NEXTHOPS>;

/// A prefix to change: its VALUE and the hashes of all its prefixes.
pub(super) struct Prefix<'n> {
    pub(super) value: &'n [u8],
    pub(super) depth: usize,
    pub(super) hashes: &'n PrefixHashes,
}

impl<'n> Prefix<'n> {
    /// Hashes a prefix into `hashes`. Returns `None` if it is too long for the table.
    pub(super) fn hash_into(key: &HashKey, value: &'n [u8], hashes: &'n mut PrefixHashes) -> Option<Self> {
        hash_prefixes(key, value, hashes).ok()?;
        Self::of_hashed(value, hashes)
    }

    /// Returns the prefix with this VALUE and these hashes; `None` if it is too long for the table.
    pub(super) fn of_hashed(value: &'n [u8], hashes: &'n PrefixHashes) -> Option<Self> {
        let depth = hashes.depth();
        // The engine's name limit keeps VALUEs far below 64 KiB.
        (depth <= MAX_PREFIX_COMPONENTS && value.len() <= usize::from(u16::MAX)).then_some(Prefix {
            value,
            depth,
            hashes,
        })
    }

    pub(super) fn hash(&self) -> u64 {
        self.hashes.get(self.depth)
    }

    pub(super) fn is_root(&self) -> bool {
        self.depth == 0
    }
}

impl<S: Send + Sync> FibWriter<S> {
    /// Hashes a prefix that is to be changed. Must be called when no change is in progress.
    pub(super) fn prefix<'n>(&mut self, value: &'n [u8], hashes: &'n mut PrefixHashes) -> Result<Prefix<'n>, FibError> {
        self.reclaim_if_much();
        Prefix::hash_into(&self.key, value, hashes).ok_or(FibError::PrefixTooLong)
    }

    /// Must be called when no change is in progress.
    pub(super) fn reclaim_if_much(&mut self) {
        if self.retired.pending() >= self.reclaim_at {
            self.reclaim();
        }
    }

    pub(super) fn entry(&self, index: u32) -> &Entry {
        // SAFETY: indexes come from the table or from entries in it, and entries are freed by `reclaim` only, which
        // needs `&mut self`.
        unsafe { self.entries.get(index) }
    }

    pub(super) fn choice(&self, choice: u32) -> &Choice<S> {
        // SAFETY: choices come from `strategies` or from entries in the table, and are freed by `reclaim` only, which
        // needs `&mut self`.
        unsafe { self.choices.get(choice) }
    }

    pub(super) fn strategy(&self, choice: u32) -> &S {
        // SAFETY: the pointer comes from `Arc::into_raw`, and the choice owns a count of it until it is changed or
        // released, which needs `&mut self`.
        unsafe { &*self.choice(choice).load(Ordering::Acquire) }
    }

    fn root(&self) -> u32 {
        self.shared.root.load(Ordering::Relaxed)
    }

    /// Returns every published entry.
    pub(super) fn live_entries(&self) -> impl Iterator<Item = &Entry> {
        std::iter::once(self.root()).chain(self.table.iter()).map(|index| self.entry(index))
    }

    /// Returns the entry of exactly this prefix.
    pub(super) fn find(&self, prefix: &Prefix<'_>) -> Option<u32> {
        self.find_at(prefix, prefix.depth)
    }

    /// Returns the entry of the prefix's first `depth` components.
    fn find_at(&self, prefix: &Prefix<'_>, depth: usize) -> Option<u32> {
        if depth == 0 {
            return Some(self.root());
        }
        let value = &prefix.value[..prefix.hashes.value_bytes(depth)];
        self.find_value(value, prefix.hashes.get(depth))
    }

    fn find_value(&self, value: &[u8], hash: u64) -> Option<u32> {
        self.table.candidates(hash).find(|&index| self.entry(index).value() == value)
    }

    /// Returns the own next hops of an entry, if it exists.
    pub(super) fn nexthops_of(&self, entry: Option<u32>) -> NextHops<'_> {
        entry.map_or(NextHops::default(), |index| self.entry(index).own_nexthops())
    }

    /// Returns the entry that the prefix inherits next hops from if it has none of its own, or [`NONE`].
    pub(super) fn nexthops_above(&self, prefix: &Prefix<'_>) -> u32 {
        (0..prefix.depth)
            .rev()
            .filter(|&depth| self.depth_counts[depth] > 0)
            .filter_map(|depth| self.find_at(prefix, depth))
            .find(|&index| self.entry(index).has_own_nexthops())
            .unwrap_or(NONE)
    }

    pub(super) fn drop_face(&mut self, prefix: &Prefix<'_>, face: FaceId) -> Result<bool, FibError> {
        let old = self.find(prefix);
        let before = self.nexthops_of(old);
        let mut nexthops: NextHopList = before.iter().filter(|nexthop| nexthop.face != face).collect();
        let found = nexthops.len() < before.len();
        if found {
            self.put_nexthops(prefix, old, &mut nexthops)?;
        }
        Ok(found)
    }

    /// Replaces the own next hops of the prefix; `old` is its entry.
    pub(super) fn put_nexthops(
        &mut self,
        prefix: &Prefix<'_>,
        old: Option<u32>,
        nexthops: &mut [NextHop],
    ) -> Result<(), FibError> {
        if self.is_value_dedicated(prefix.value) {
            return Err(FibError::Dedicated);
        }
        // Stable: of two with the same cost the first is preferred.
        nexthops.sort_by_key(|nexthop| nexthop.cost);
        let had_nexthops = old.is_some_and(|index| self.entry(index).has_own_nexthops());
        // The old entry's choice may be out of date.
        let choice = self.choice_for(prefix.value);
        if nexthops.is_empty() {
            let Some(index) = old.filter(|_| had_nexthops) else {
                return Ok(());
            };
            let above = self.nexthops_above(prefix);
            if self.strategies.contains_key(prefix.value) {
                self.write_entry(prefix, old, &[], choice, above)?;
            } else {
                self.remove_entry(prefix, index);
            }
            self.pass_on_nexthops(prefix, above, |_, source| source == index);
            self.nexthop_entries -= 1;
        } else {
            let new = self.write_entry(prefix, old, nexthops, choice, NONE)?;
            if had_nexthops {
                self.pass_on_nexthops(prefix, new, |_, source| Some(source) == old);
            } else {
                self.nexthop_entries += 1;
                let depth = prefix.depth;
                self.pass_on_nexthops(prefix, new, |fib, source| source == NONE || fib.entry(source).depth() < depth);
            }
        }
        Ok(())
    }

    /// Makes entries below the prefix that have no own next hops inherit from `new`, if `replaces` returns `true` for
    /// their source.
    fn pass_on_nexthops(&self, prefix: &Prefix<'_>, new: u32, replaces: impl Fn(&Self, u32) -> bool) {
        if self.strategies.len() == 1 {
            // Only the root has a strategy, and nothing is above it.
            return;
        }
        // Only entries with their own strategy can lack next hops, and the VALUEs below a prefix sort right behind it.
        let below = (Bound::Excluded(prefix.value), Bound::Unbounded);
        let names = self.strategies.range::<[u8], _>(below).map(|(value, _)| value);
        for value in names.take_while(|value| value.starts_with(prefix.value)) {
            if let Some(index) = self.find_value(value, hash_name(&self.key, value)) {
                let entry = self.entry(index);
                if !entry.has_own_nexthops() && replaces(self, entry.nexthop_source()) {
                    entry.set_nexthop_source(new);
                }
            }
        }
    }

    /// Publishes a new entry for the prefix, in place of `old` if there is one.
    pub(super) fn write_entry(
        &mut self,
        prefix: &Prefix<'_>,
        old: Option<u32>,
        nexthops: &[NextHop],
        choice: u32,
        nexthop_source: u32,
    ) -> Result<u32, FibError> {
        let hash = prefix.hash();
        let (value, depth) = (prefix.value, prefix.depth);
        if old.is_none() {
            self.make_room(1)?;
        }
        let parts = EntryParts { value, depth, hash, nexthops, choice, nexthop_source };
        let index = if parts.needs_pair() {
            // SAFETY: the first slot gets the entry. The two slots belong to it alone.
            unsafe { self.entries.allocate_pair(Entry::vacant, |first| Entry::write_pair(first, &parts)) }?
        } else {
            self.entries.allocate(Entry::new(&parts))?
        };
        self.extension_bytes += self.entry(index).extension_bytes();
        match old {
            Some(_) if prefix.is_root() => self.shared.root.store(index, Ordering::Release),
            Some(old) => {
                let replaced = self.table.replace(hash, old, index);
                debug_assert!(replaced);
            }
            None => {
                if let Err(error) = self.insert(hash, index) {
                    // The entry was never published, so it may be reclaimed at any time.
                    self.retired.retire(Retired::Entry(index));
                    return Err(error);
                }
                self.depth_counts[depth] += 1;
                self.shared.depths.fetch_or(1 << depth, Ordering::Release);
            }
        }
        if let Some(old) = old {
            self.retired.retire(Retired::Entry(old));
        }
        Ok(index)
    }

    /// Unpublishes an entry other than the root.
    pub(super) fn remove_entry(&mut self, prefix: &Prefix<'_>, index: u32) {
        let removed = self.table.remove(prefix.hash(), index);
        debug_assert!(removed);
        self.depth_counts[prefix.depth] -= 1;
        if self.depth_counts[prefix.depth] == 0 {
            self.shared.depths.fetch_and(!(1 << prefix.depth), Ordering::Release);
        }
        self.retired.retire(Retired::Entry(index));
    }
}
