//! The Content Store's use of its second tier: evicted Data is offered to it, and newer Data invalidates the
//! older one there.
//!
//! Data under a forwarding hint is never stored there, because a hint separates Data from other requests for the same
//! name. Data under `/localhost` is not stored either, because it is valid only for the current run of this host.

use super::Pcct;
use super::insertion::NewData;
use crate::scope::NameScope;

impl Pcct {
    /// Offers the evicted Data of an entry to the second tier.
    #[cold]
    pub(super) fn offer_to_tier(&mut self, victim: u32) {
        // The Data is not read while the tier accepts none.
        if let Some(tier) = self.content.second_tier.as_mut().filter(|tier| !tier.takes_data()) {
            return tier.note_not_stored();
        }
        let Some(mut tier) = self.content.second_tier.take() else { return };
        if self.may_be_in_tier(victim) {
            let entry = self.entry(victim);
            tier.offer(entry.name_hash, entry.fresh_until, self.data(victim));
        }
        self.content.second_tier = Some(tier);
    }

    /// Offers Data that the policy rejected to the second tier: it counts as evicted on arrival.
    pub(super) fn offer_rejected_to_tier(&mut self, index: u32, data: &NewData<'_>) {
        let name_hash = self.entry(index).name_hash;
        if self.may_be_in_tier(index)
            && let Some(tier) = &mut self.content.second_tier
        {
            tier.offer(name_hash, data.fresh_until, data.packet);
        }
    }

    fn may_be_in_tier(&self, index: u32) -> bool {
        self.entry(index).delegation_bytes == 0 && NameScope::of(self.name(index)) != NameScope::Localhost
    }

    /// Invalidates the Data in the second tier under the name of an entry.
    pub(super) fn forget_in_tier(&mut self, index: u32) {
        let (name_hash, has_hint) = (self.entry(index).name_hash, self.entry(index).delegation_bytes > 0);
        if let Some(tier) = &mut self.content.second_tier
            && !has_hint
        {
            tier.forget(name_hash);
        }
    }

    /// Prefetches the tier's index entry of a name that is requested, or may lose its Data.
    #[inline]
    pub(crate) fn prefetch_tier_lookup(&self, name_hash: u64) {
        if let Some(tier) = &self.content.second_tier {
            tier.prefetch_lookup(name_hash);
        }
    }

    /// Prefetches the tier's index entry of the name of arriving Data.
    #[inline]
    pub(super) fn prefetch_tier_forget(&self, name_hash: u64) {
        if let Some(tier) = &self.content.second_tier {
            tier.prefetch_forget(name_hash);
        }
    }
}
