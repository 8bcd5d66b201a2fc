//! The Content Store's use of its second tier: evicted Data is offered to it, and newer Data invalidates the
//! older one there.
//!
//! Data under a forwarding hint is never stored there, because a hint separates Data from other requests for the same
//! name. Data under `/localhost` is not stored either, because it is valid only for the current run of this host.

use super::ContentStore;
use super::insertion::NewData;
use crate::pcct::names::NameTable;
use crate::scope::NameScope;
use crate::second_tier::SecondTier;

impl ContentStore {
    /// Gives the store a second tier.
    pub(crate) fn use_tier(&mut self, tier: Box<dyn SecondTier>) {
        self.second_tier = Some(tier);
    }

    /// Returns the second tier, if there is one.
    #[inline(always)]
    pub(crate) fn tier(&self) -> Option<&dyn SecondTier> {
        self.second_tier.as_deref()
    }

    /// Returns the second tier, mutable, if there is one.
    #[inline(always)]
    pub(crate) fn tier_mut(&mut self) -> Option<&mut (dyn SecondTier + 'static)> {
        self.second_tier.as_deref_mut()
    }

    /// Offers the evicted Data of an entry to the second tier.
    #[cold]
    pub(super) fn offer_to_tier(&mut self, names: &NameTable, victim: u32) {
        // The Data is not read while the tier accepts none.
        if let Some(tier) = self.second_tier.as_mut().filter(|tier| !tier.takes_data()) {
            return tier.note_not_stored();
        }
        let Some(mut tier) = self.second_tier.take() else { return };
        if may_be_in_tier(names, victim) {
            let entry = names.entry(victim);
            tier.offer(entry.name_hash, entry.fresh_until, self.data(names, victim));
        }
        self.second_tier = Some(tier);
    }

    /// Offers Data that the policy rejected to the second tier: it counts as evicted on arrival.
    pub(super) fn offer_rejected_to_tier(&mut self, names: &NameTable, index: u32, data: &NewData<'_>) {
        let name_hash = names.entry(index).name_hash;
        if may_be_in_tier(names, index)
            && let Some(tier) = &mut self.second_tier
        {
            tier.offer(name_hash, data.fresh_until, data.packet);
        }
    }

    /// Invalidates the Data in the second tier under the name of an entry.
    pub(super) fn forget_in_tier(&mut self, names: &NameTable, index: u32) {
        let (name_hash, has_hint) = (names.entry(index).name_hash, names.entry(index).delegation_bytes > 0);
        if let Some(tier) = &mut self.second_tier
            && !has_hint
        {
            tier.forget(name_hash);
        }
    }

    /// Prefetches the tier's index entry of a name that is requested, or may lose its Data.
    #[inline]
    pub(crate) fn prefetch_tier_lookup(&self, name_hash: u64) {
        if let Some(tier) = &self.second_tier {
            tier.prefetch_lookup(name_hash);
        }
    }

    /// Prefetches the tier's index entry of the name of arriving Data.
    #[inline]
    pub(in crate::pcct) fn prefetch_tier_forget(&self, name_hash: u64) {
        if let Some(tier) = &self.second_tier {
            tier.prefetch_forget(name_hash);
        }
    }
}

/// Returns whether the second tier may hold Data under the name of an entry.
fn may_be_in_tier(names: &NameTable, index: u32) -> bool {
    names.entry(index).delegation_bytes == 0 && NameScope::of(names.name(index)) != NameScope::Localhost
}
