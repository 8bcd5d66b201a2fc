//! The Content Store's use of its second tier: evicted Data is offered to the disk, and newer Data invalidates the
//! older one on disk.
//!
//! Data under a forwarding hint is never stored on disk, because a hint separates Data from other requests for the same
//! name. Data under `/localhost` is not stored either, because it is valid only for the current run of this host.

use super::Pcct;
use super::content::NewData;
use crate::scope::NameScope;

impl Pcct {
    /// Offers the evicted Data of an entry to the disk.
    #[cold]
    pub(super) fn offer_to_disk(&mut self, victim: u32) {
        // The Data is not read while the disk accepts none.
        if let Some(disk) = self.content.disk.as_mut().filter(|disk| !disk.takes_data()) {
            return disk.note_not_stored();
        }
        let Some(mut disk) = self.content.disk.take() else { return };
        if self.may_be_on_disk(victim) {
            let entry = self.entry(victim);
            disk.offer(entry.name_hash, entry.fresh_until, self.data(victim));
        }
        self.content.disk = Some(disk);
    }

    /// Offers Data that the policy rejected to the disk: it counts as evicted on arrival.
    pub(super) fn offer_refused_to_disk(&mut self, index: u32, data: &NewData<'_>) {
        let name_hash = self.entry(index).name_hash;
        if self.may_be_on_disk(index)
            && let Some(disk) = &mut self.content.disk
        {
            disk.offer(name_hash, data.fresh_until, data.packet);
        }
    }

    fn may_be_on_disk(&self, index: u32) -> bool {
        self.entry(index).delegation_bytes == 0 && NameScope::of(self.name(index)) != NameScope::Localhost
    }

    /// Invalidates the Data on disk under the name of an entry.
    pub(super) fn forget_on_disk(&mut self, index: u32) {
        let (name_hash, has_hint) = (self.entry(index).name_hash, self.entry(index).delegation_bytes > 0);
        if let Some(disk) = &mut self.content.disk
            && !has_hint
        {
            disk.forget(name_hash);
        }
    }

    /// Prefetches the disk index entry of a name that is requested, or may lose its Data.
    #[inline]
    pub(crate) fn prefetch_on_disk(&self, name_hash: u64) {
        if let Some(disk) = &self.content.disk {
            disk.prefetch_lookup(name_hash);
        }
    }

    /// Prefetches the disk index entry of the name of arriving Data.
    #[inline]
    pub(super) fn prefetch_forgetting(&self, name_hash: u64) {
        if let Some(disk) = &self.content.disk {
            disk.prefetch_forget(name_hash);
        }
    }
}
