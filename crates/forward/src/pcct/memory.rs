//! What pending Interests and cached Data take of memory, from the sizes of the types that hold them.

use namehop_table::bucket_bytes;

use super::blocks::{BlockStore, OwnedBlocks};
use super::entry::{Entry, PitSlot, SHORT_KEY_BYTES};

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
