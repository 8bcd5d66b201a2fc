//! Implicit digests of cached Data: computed when an Interest first names one, and stored behind the packet.
//!
//! Few Data packets are ever requested by digest, so no memory is reserved for it. The digest goes into the unused rest
//! of the packet's block; if that is too small, the packet moves to a larger block. If there is no larger block, the
//! digest is computed again for each Interest that names one: no other Data is evicted for it.

use namehop_wire::data::implicit_digest;

use super::{ContentStore, DIGEST_BYTES};
use crate::pcct::blocks::BlockStore;
use crate::pcct::entry::EntryFlags;
use crate::pcct::names::NameTable;

impl ContentStore {
    /// Returns the implicit digest of an entry's cached Data.
    pub(super) fn digest(&mut self, names: &mut NameTable, index: u32) -> [u8; DIGEST_BYTES] {
        let entry = names.entry(index);
        let length = usize::from(entry.data_bytes);
        if entry.flags.has(EntryFlags::DIGEST_KNOWN) {
            let mut known = [0; DIGEST_BYTES];
            known.copy_from_slice(&self.blocks.bytes(entry.data, length + DIGEST_BYTES)[length..]);
            return known;
        }
        let computed = implicit_digest(self.data(names, index));
        if self.make_room_for_digest(names, index) {
            let block = names.entry(index).data;
            self.blocks.bytes_mut(block, length + DIGEST_BYTES)[length..].copy_from_slice(&computed);
            names.entry_mut(index).flags.set(EntryFlags::DIGEST_KNOWN, true);
        }
        computed
    }

    /// Makes room for the digest behind an entry's Data. Returns `false` if there is no memory for it.
    fn make_room_for_digest(&mut self, names: &mut NameTable, index: u32) -> bool {
        let (old, length) = (names.entry(index).data, usize::from(names.entry(index).data_bytes));
        if BlockStore::room(length) >= length + DIGEST_BYTES {
            return true;
        }
        let Some(larger) = self.blocks.allocate(length + DIGEST_BYTES) else { return false };
        self.blocks.copy(old, larger, length);
        self.blocks.release(old);
        names.entry_mut(index).data = larger;
        true
    }
}
