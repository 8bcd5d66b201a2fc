//! Finding the PIT slots that Data satisfies, and the counts that tell which lookups this takes.

use std::sync::Arc;

use namehop_hash::{HashKey, PrefixHashes, hash_name};
use namehop_wire::MAX_NAME_COMPONENTS;

use super::digest_names::DigestNames;
use super::{Pit, is_inexact};
use crate::dispatch::NameDispatch;
use crate::pcct::content::DIGEST_BYTES;
use crate::pcct::entry::PitSlot;
use crate::pcct::names::NameTable;
use crate::pcct::{InvariantError, PitRef, agree};

/// TYPE, LENGTH and VALUE of an implicit digest at the end of a name.
const DIGEST_COMPONENT_BYTES: usize = 2 + DIGEST_BYTES;

/// Counts of pending Interests that Data of another name may satisfy: Interests with CanBePrefix, and Interests that
/// name an implicit digest.
pub(super) struct InexactInterests {
    /// Number of CanBePrefix slots by number of components: Data without a token probes only prefixes of these lengths.
    prefixes: [u32; MAX_NAME_COMPONENTS + 1],
    /// Number of slots with an implicit digest in the name, by number of components.
    digests: [u32; MAX_NAME_COMPONENTS + 1],
    /// The sum of both numbers.
    total: u32,
    /// Names of the Data that the slots with a digest request.
    digest_names: DigestNames,
    key: HashKey,
    /// Counts pending Interests that Data of other workers may satisfy; `None` if there is only one worker.
    dispatch: Option<Arc<NameDispatch>>,
}

impl InexactInterests {
    /// Creates the counts of a PIT for at most `capacity` slots.
    pub(super) fn new(capacity: usize, key: HashKey) -> Self {
        InexactInterests {
            prefixes: [0; MAX_NAME_COMPONENTS + 1],
            digests: [0; MAX_NAME_COMPONENTS + 1],
            total: 0,
            digest_names: DigestNames::new(capacity),
            key,
            dispatch: None,
        }
    }

    /// See [`Pit::share_dispatch`].
    pub(super) fn share_dispatch(&mut self, dispatch: Arc<NameDispatch>) {
        self.dispatch = Some(dispatch);
    }

    /// Counts a slot of an entry that was opened.
    #[cold]
    pub(super) fn add(&mut self, names: &NameTable, entry: u32, slot: &mut PitSlot) {
        self.count(names, entry, slot, 1);
        if let Some(dispatch) = self.dispatch.as_ref().filter(|_| slot.selectors().can_be_prefix) {
            slot.set_awaits_other_workers(dispatch.count_pending(names.name(entry)));
        }
        if names.entry(entry).names_digest() {
            self.digest_names.add(self.hash_without_digest(names, entry));
        }
    }

    /// Counts a slot of an entry that is closed.
    #[cold]
    pub(super) fn remove(&mut self, names: &NameTable, entry: u32, slot: &PitSlot) {
        self.count(names, entry, slot, -1);
        if let Some(dispatch) = self.dispatch.as_ref().filter(|_| slot.awaits_other_workers()) {
            dispatch.uncount_pending(names.name(entry));
        }
        if names.entry(entry).names_digest() {
            self.digest_names.remove(self.hash_without_digest(names, entry));
        }
    }

    fn count(&mut self, names: &NameTable, entry: u32, slot: &PitSlot, step: i32) {
        let entry = names.entry(entry);
        let depth = usize::from(entry.depth);
        let prefixes = step * i32::from(slot.selectors().can_be_prefix);
        let digests = step * i32::from(entry.names_digest());
        self.prefixes[depth] = self.prefixes[depth].wrapping_add_signed(prefixes);
        self.digests[depth] = self.digests[depth].wrapping_add_signed(digests);
        self.total = self.total.wrapping_add_signed(prefixes + digests);
    }

    /// Returns the hash of an entry's name without the implicit digest at its end.
    fn hash_without_digest(&self, names: &NameTable, entry: u32) -> u64 {
        let full_name = names.name(entry);
        hash_name(&self.key, &full_name[..full_name.len().saturating_sub(DIGEST_COMPONENT_BYTES)])
    }
}

impl Pit {
    /// Collects the slots that Data with this name satisfies: slots of its exact name, and of prefixes with
    /// CanBePrefix. Returns an entry with its exact name, if there is one.
    ///
    /// `known` is an entry that is known to have the exact name. Then `hashes` may be `None` unless the PIT [has
    /// inexact Interests](Self::has_inexact), and only that name is looked up.
    pub(crate) fn find_satisfied(
        &self,
        names: &NameTable,
        name: &[u8],
        hashes: Option<&PrefixHashes>,
        known: Option<u32>,
        matches: &mut Vec<PitRef>,
    ) -> Option<u32> {
        let exact = known.or_else(|| names.find_name(hashes?.full(), name));
        if let Some(exact) = exact {
            if names.entry(exact).next_variant == exact {
                matches.extend(self.slots_of(names, exact));
            } else {
                matches.extend(names.variants(exact).flat_map(|entry| self.slots_of(names, entry)));
            }
        }
        let Some(hashes) = hashes else { return exact };
        for depth in 1..hashes.depth() {
            if self.inexact.prefixes[depth] > 0
                && let Some(found) = names.find_name(hashes.get(depth), &name[..hashes.value_bytes(depth)])
            {
                let slots = names.variants(found).flat_map(|entry| self.slots_of(names, entry));
                matches.extend(slots.filter(|&pit| self.slot(pit).selectors().can_be_prefix));
            }
        }
        exact
    }

    /// Collects the slots with this name.
    pub(crate) fn collect(&self, names: &NameTable, name_hash: u64, name: &[u8], matches: &mut Vec<PitRef>) {
        if let Some(found) = names.find_name(name_hash, name) {
            matches.extend(names.variants(found).flat_map(|entry| self.slots_of(names, entry)));
        }
    }

    /// Returns whether Data of another name may satisfy a pending Interest.
    #[inline(always)]
    pub(crate) fn has_inexact(&self) -> bool {
        self.inexact.total > 0
    }

    /// Returns whether all of these request Data by its exact name, and none by a prefix or a digest.
    #[inline]
    pub(crate) fn are_exact(&self, names: &NameTable, pending: &[PitRef]) -> bool {
        !pending.iter().any(|&pit| is_inexact(names, pit.entry, self.slot(pit).selectors()))
    }

    /// Returns whether a pending Interest requests Data with this name by its implicit digest.
    #[inline]
    pub(crate) fn requests_digest(&self, name: &PrefixHashes) -> bool {
        self.inexact.digests.get(name.depth() + 1).is_some_and(|&pending| pending > 0)
            && self.inexact.digest_names.contains(name.full())
    }

    /// Prefetches the buckets that Data without a usable token probes for Interests it satisfies.
    #[inline]
    pub(crate) fn prefetch_satisfied(&self, names: &NameTable, hashes: &PrefixHashes) {
        names.prefetch_bucket(hashes.full());
        for depth in 1..hashes.depth() {
            if self.inexact.prefixes[depth] > 0 {
                names.prefetch_bucket(hashes.get(depth));
            }
        }
    }

    /// Compares the counts of inexact Interests with the slots.
    pub(super) fn check_inexact(&self, names: &NameTable) -> Result<(), InvariantError> {
        let mut prefixes = [0u32; MAX_NAME_COMPONENTS + 1];
        let mut digests = [0u32; MAX_NAME_COMPONENTS + 1];
        for pit in names.used_entries().flat_map(|entry| self.slots_of(names, entry)) {
            let entry = names.entry(pit.entry);
            prefixes[usize::from(entry.depth)] += u32::from(self.slot(pit).selectors().can_be_prefix);
            digests[usize::from(entry.depth)] += u32::from(entry.names_digest());
        }
        let sum = |counts: &[u32]| counts.iter().sum::<u32>() as usize;
        agree("names of Interests with digests", self.inexact.digest_names.len(), sum(&digests))?;
        let total = self.inexact.total as usize;
        agree("Interests with CanBePrefix or a digest", total, sum(&prefixes) + sum(&digests))?;
        for depth in 0..=MAX_NAME_COMPONENTS {
            agree(
                "Interests with CanBePrefix of one length",
                self.inexact.prefixes[depth] as usize,
                prefixes[depth] as usize,
            )?;
            agree(
                "Interests with a digest of one length",
                self.inexact.digests[depth] as usize,
                digests[depth] as usize,
            )?;
        }
        Ok(())
    }
}
