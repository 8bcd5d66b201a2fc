//! Memory used by pending Interests and cached Data, computed from the sizes of their types.

use namehop_table::{all_bucket_bytes, bucket_bytes, byte_arena_bytes};

use super::blocks::{BlockStore, OwnedBlocks};
use super::entry::{Entry, PitSlot, SHORT_KEY_BYTES};
use super::{SPARE_ENTRIES, content, pit};

/// Bytes of the cache policy with the largest state, for each entry of the table and in addition.
const POLICY_ENTRY_BYTES: usize = 256;
const POLICY_BYTES: usize = 1 << 19;
/// Each slot of an arena also has a place in the list of free slots.
const FREE_SLOT_BYTES: usize = size_of::<u32>();

/// Maximum number of entries of the table, by purpose.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableEntries {
    /// Pending Interests.
    pub(crate) pending: usize,
    /// Cached Data.
    pub(crate) cached: usize,
}

impl TableEntries {
    fn all(self) -> usize {
        self.pending.saturating_add(self.cached).saturating_add(SPARE_ENTRIES)
    }
}

/// Returns the maximum size in bytes of the table of names with its buckets.
pub(crate) fn entry_table_bytes(entries: TableEntries) -> usize {
    let of_entries = entries.all().saturating_mul(size_of::<Entry>() + FREE_SLOT_BYTES);
    of_entries.saturating_add(all_bucket_bytes(entries.all()))
}

/// Returns the maximum memory in bytes of `capacity` pending Interests, without their names in the table.
/// `memory_bytes` is the limit for long names and Interest copies.
pub(crate) fn pending_bytes(capacity: usize, memory_bytes: usize) -> usize {
    pit::bytes_for(capacity, FREE_SLOT_BYTES).saturating_add(byte_arena_bytes(memory_bytes))
}

/// Returns the maximum memory in bytes of cached Data with `capacity_bytes` of packets, without their names in the
/// table.
pub(crate) fn content_bytes(entries: TableEntries, capacity_bytes: usize) -> usize {
    [content::index_bytes_for(entries.cached), byte_arena_bytes(capacity_bytes)]
        .into_iter()
        .fold(entries.all().saturating_mul(POLICY_ENTRY_BYTES).saturating_add(POLICY_BYTES), usize::saturating_add)
}

/// Returns the bytes of an entry, including the block of a name that does not fit into it.
fn entry_bytes(name_bytes: usize) -> usize {
    let long_name = if name_bytes > SHORT_KEY_BYTES { OwnedBlocks::taken(name_bytes) } else { 0 };
    size_of::<Entry>() + long_name
}

/// Returns the bytes of `entries` pending Interests, each with a Name VALUE of `name_bytes` and few downstreams.
pub fn pit_bytes(entries: usize, name_bytes: usize) -> usize {
    entries * (entry_bytes(name_bytes) + size_of::<PitSlot>()) + bucket_bytes(entries)
}

/// Returns the bytes of `packets` cached Data packets of `packet_bytes` each, with a Name VALUE of `name_bytes`. The
/// cache policy's state, some bytes each, is not included.
pub fn content_store_bytes(packets: usize, packet_bytes: usize, name_bytes: usize) -> usize {
    packets * (entry_bytes(name_bytes) + BlockStore::room(packet_bytes)) + bucket_bytes(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_grow_with_what_is_stored() {
        // Two lines of an entry, two of a PIT slot, and eight bytes of a bucket; buckets have between half and all of
        // five slots in use.
        let of_million = pit_bytes(1_000_000, 30) as f64 / 1e6;
        assert!((256.0 + 12.8..=256.0 + 25.7).contains(&of_million), "{of_million}");
        let small = content_store_bytes(1_000_000, 200, 30);
        let large = content_store_bytes(1_000_000, 1_200, 30);
        assert!((950_000_000..1_200_000_000).contains(&(large - small)), "small {small}, large {large}");
        assert!(pit_bytes(1_000, SHORT_KEY_BYTES + 1) >= pit_bytes(1_000, SHORT_KEY_BYTES) + 64_000);
        assert_eq!(content_store_bytes(0, 1_000, 30), bucket_bytes(0));
    }
}
