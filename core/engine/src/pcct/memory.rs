//! What pending Interests and cached Data take of memory, from the sizes of the types that hold them.

use namehop_table::{all_bucket_bytes, bucket_bytes, byte_arena_bytes};

use super::blocks::{BlockStore, OwnedBlocks};
use super::digest_names::DigestNames;
use super::entry::{Entry, PitSlot, SHORT_KEY_BYTES};
use super::extension_capacity;
use super::pit_queue::PitQueue;
use super::prefix_index::PrefixIndex;
use super::record::{InRecord, RecordBlock, TokenBlock};
use super::slots::SPARE_ENTRIES;

/// What the cache policy with the most notes keeps for each entry of the table, and besides.
const POLICY_ENTRY_BYTES: usize = 256;
const POLICY_BYTES: usize = 1 << 19;
/// A slot of an arena is in the list of free slots besides.
const FREE_SLOT_BYTES: usize = size_of::<u32>();

/// Most entries of the table, by what they are for.
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

/// Most bytes of the table of names with its buckets.
pub(crate) fn entry_table_bytes(entries: TableEntries) -> usize {
    let of_entries = entries.all().saturating_mul(size_of::<Entry>() + FREE_SLOT_BYTES);
    of_entries.saturating_add(all_bucket_bytes(entries.all()))
}

/// Most bytes of what is kept of `capacity` pending Interests besides their names in the table; `memory_bytes` are those for long names.
pub(crate) fn pending_bytes(capacity: usize, memory_bytes: usize) -> usize {
    let records =
        extension_capacity(capacity).saturating_mul(2 * (size_of::<RecordBlock<InRecord>>() + FREE_SLOT_BYTES));
    // Blocks of in-records and of out-records are of the same size.
    let slot = size_of::<PitSlot>() + size_of::<TokenBlock>() + 2 * FREE_SLOT_BYTES;
    [records, PitQueue::bytes_for(capacity), DigestNames::bytes_for(capacity), byte_arena_bytes(memory_bytes)]
        .into_iter()
        .fold(capacity.saturating_mul(slot), usize::saturating_add)
}

/// Most bytes of cached Data, whose packets have `capacity_bytes`, besides their names in the table.
pub(crate) fn content_bytes(entries: TableEntries, capacity_bytes: usize) -> usize {
    [PrefixIndex::bytes_for(entries.cached), byte_arena_bytes(capacity_bytes)]
        .into_iter()
        .fold(entries.all().saturating_mul(POLICY_ENTRY_BYTES).saturating_add(POLICY_BYTES), usize::saturating_add)
}

/// Bytes of an entry, with the block of a name that does not fit into it.
fn entry_bytes(name_bytes: usize) -> usize {
    let long_name = if name_bytes > SHORT_KEY_BYTES { OwnedBlocks::taken(name_bytes) } else { 0 };
    size_of::<Entry>() + long_name
}

/// Bytes that so many pending Interests take, each with a Name VALUE of this length and few downstreams.
pub fn pit_bytes(entries: usize, name_bytes: usize) -> usize {
    entries * (entry_bytes(name_bytes) + size_of::<PitSlot>()) + bucket_bytes(entries)
}

/// Bytes that so many cached Data packets take, each of this length and with a Name VALUE of that one. What the policy notes about them,
/// some bytes each, is not in it.
pub fn content_store_bytes(packets: usize, packet_bytes: usize, name_bytes: usize) -> usize {
    packets * (entry_bytes(name_bytes) + BlockStore::room(packet_bytes)) + bucket_bytes(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_grow_with_what_is_stored() {
        // Two lines of an entry, two of what is pending, and a slot of eight bytes in buckets that are between half and full of five.
        let of_million = pit_bytes(1_000_000, 30) as f64 / 1e6;
        assert!((256.0 + 12.8..=256.0 + 25.7).contains(&of_million), "{of_million}");
        let small = content_store_bytes(1_000_000, 200, 30);
        let large = content_store_bytes(1_000_000, 1_200, 30);
        assert!((950_000_000..1_200_000_000).contains(&(large - small)), "{small} {large}");
        assert!(pit_bytes(1_000, SHORT_KEY_BYTES + 1) >= pit_bytes(1_000, SHORT_KEY_BYTES) + 64_000);
        assert_eq!(content_store_bytes(0, 1_000, 30), bucket_bytes(0));
    }
}
