//! What the Content Store does with its second tier: evicted Data goes to the disk, and newer Data makes what is there worthless.
//!
//! Only Data that is kept under no forwarding hint goes there, because a hint keeps Data apart from others who ask for the same
//! name; and none under `/localhost`, which means something to this run of this computer alone.

use super::Pcct;
use super::content::NewData;
use crate::scope::NameScope;

impl Pcct {
    /// The Data of an entry is evicted: the disk may have it.
    #[cold]
    pub(super) fn offer_to_disk(&mut self, victim: u32) {
        // Nothing of the Data is looked at while the disk takes none.
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

    /// Hands Data to the disk that the policy does not let into memory: it is evicted the moment it comes.
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

    /// What the disk has under the name of an entry is not to be found any more.
    pub(super) fn forget_on_disk(&mut self, index: u32) {
        let (name_hash, has_hint) = (self.entry(index).name_hash, self.entry(index).delegation_bytes > 0);
        if let Some(disk) = &mut self.content.disk
            && !has_hint
        {
            disk.forget(name_hash);
        }
    }

    /// The place in the index of what is on the disk of a name that is asked for, or whose Data may be evicted.
    #[inline]
    pub(crate) fn prefetch_on_disk(&self, name_hash: u64) {
        if let Some(disk) = &self.content.disk {
            disk.prefetch_use(name_hash);
        }
    }

    /// The same of a name whose Data comes in.
    #[inline]
    pub(super) fn prefetch_forgetting(&self, name_hash: u64) {
        if let Some(disk) = &self.content.disk {
            disk.prefetch(name_hash);
        }
    }
}
