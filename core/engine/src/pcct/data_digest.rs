//! Implicit digests of cached Data: computed when an Interest first asks for one, and kept behind the packet.
//!
//! Few Data are ever asked for by their digest, so no room is set aside for it. It goes into what the packet leaves of its
//! block; where that is too little, the packet moves to a larger block. When there is none, the digest is computed again for
//! each Interest that names one: other Data does not have to leave for it.

use namehop_wire::data::implicit_digest;

use super::Pcct;
use super::blocks::BlockStore;
use super::content::DIGEST_BYTES;
use super::entry::EntryFlags;

impl Pcct {
    /// The implicit digest of an entry's cached Data.
    pub(super) fn data_digest(&mut self, index: u32) -> [u8; DIGEST_BYTES] {
        let entry = self.entry(index);
        let length = usize::from(entry.data_bytes);
        if entry.flags.has(EntryFlags::DIGEST_KNOWN) {
            let mut known = [0; DIGEST_BYTES];
            known.copy_from_slice(&self.content.blocks.bytes(entry.data, length + DIGEST_BYTES)[length..]);
            return known;
        }
        let computed = implicit_digest(self.data(index));
        if self.make_room_for_digest(index) {
            let block = self.entry(index).data;
            self.content.blocks.bytes_mut(block, length + DIGEST_BYTES)[length..].copy_from_slice(&computed);
            self.entry_mut(index).flags.set(EntryFlags::DIGEST_KNOWN, true);
        }
        computed
    }

    /// Sees to it that the digest of an entry's Data fits behind the packet. `false` when there is no memory for that.
    fn make_room_for_digest(&mut self, index: u32) -> bool {
        let (old, length) = (self.entry(index).data, usize::from(self.entry(index).data_bytes));
        if BlockStore::room(length) >= length + DIGEST_BYTES {
            return true;
        }
        let Some(larger) = self.content.blocks.allocate(length + DIGEST_BYTES) else { return false };
        self.content.blocks.copy(old, larger, length);
        self.content.blocks.release(old);
        self.entry_mut(index).data = larger;
        true
    }
}
