//! How all bucket tables divide a hash between bucket and slot.
//!
//! The low bits of a hash choose the bucket; the high 32 bits are the tag in the slot. Two tag values are reserved,
//! so hashes that map to them get a neighbouring tag.

/// Slots of a bucket.
pub(crate) const SLOTS: usize = 8;
/// Slot that holds the number of the next bucket of the chain instead of an entry, when the bucket overflows.
pub(crate) const LINK_SLOT: usize = SLOTS - 1;
/// Tag of a free slot.
pub(crate) const EMPTY: u32 = 0;
/// Tag of the link slot when it holds a link.
pub(crate) const LINK: u32 = u32::MAX;
/// Entries per bucket that a table is sized for. With a Poisson mean of 5 entries, about 7 % of buckets overflow.
const FULL_LOAD: usize = 5;

/// Returns the tag of a hash: never [`EMPTY`], never [`LINK`].
#[inline]
pub(crate) const fn tag_of(hash: u64) -> u32 {
    match (hash >> 32) as u32 {
        EMPTY => EMPTY + 1,
        LINK => LINK - 1,
        tag => tag,
    }
}

/// Returns the number of home buckets for `capacity` entries: a power of two.
pub(crate) fn home_buckets(capacity: usize) -> usize {
    capacity.div_ceil(FULL_LOAD).max(1).next_power_of_two()
}

/// Returns the bytes of the home buckets of a table for `capacity` entries. Overflow buckets are not included: few of
/// them are ever touched.
pub fn bucket_bytes(capacity: usize) -> usize {
    home_buckets(capacity) * SLOTS * size_of::<u64>()
}

/// Returns the maximum bytes of a table for `capacity` entries, including all overflow buckets.
pub fn all_bucket_bytes(capacity: usize) -> usize {
    (home_buckets(capacity) + overflow_buckets(capacity)) * SLOTS * size_of::<u64>()
}

/// Returns the number of overflow buckets that suffice for `capacity` entries, however they are distributed: a chain
/// with `m` overflow buckets holds at least `7 m + 2` entries, because a link is made only when a bucket is full.
pub(crate) fn overflow_buckets(capacity: usize) -> usize {
    capacity / (SLOTS - 1)
}

/// Returns a mask: bit `i` is set if `tags[i] == tag`.
#[inline(always)]
pub(crate) fn matching(tags: &[u32; SLOTS], tag: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            __m128i, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32,
            _mm_set1_epi32, _mm_setzero_si128,
        };
        let (low, high) = tags.split_at(SLOTS / 2);
        // SAFETY: needs SSE2, which every x86-64 CPU has; both halves are 16 readable bytes, loaded unaligned.
        unsafe {
            let wanted = _mm_set1_epi32(tag as i32);
            let low = _mm_cmpeq_epi32(_mm_loadu_si128(low.as_ptr().cast::<__m128i>()), wanted);
            let high = _mm_cmpeq_epi32(_mm_loadu_si128(high.as_ptr().cast::<__m128i>()), wanted);
            let words = _mm_packs_epi32(low, high);
            _mm_movemask_epi8(_mm_packs_epi16(words, _mm_setzero_si128())) as u32
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    matching_portable(tags, tag)
}

/// Does the same without special instructions.
#[cfg(any(all(test, not(loom)), not(target_arch = "x86_64")))]
fn matching_portable(tags: &[u32; SLOTS], tag: u32) -> u32 {
    tags.iter().enumerate().fold(0, |mask, (slot, &other)| mask | u32::from(other == tag) << slot)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reserved_tags_are_never_given() {
        for high in [0, 1, u64::from(u32::MAX) - 1, u64::from(u32::MAX)] {
            let tag = tag_of(high << 32 | 5);
            assert!(tag != EMPTY && tag != LINK);
        }
        assert_eq!(tag_of(7 << 32), 7);
    }

    proptest! {
        #[test]
        fn instructions_agree_with_plain_code(tags: [u32; SLOTS], few: [bool; SLOTS], tag: u32) {
            let mut tags = tags;
            for (slot, hit) in few.into_iter().enumerate() {
                if hit {
                    tags[slot] = tag;
                }
            }
            prop_assert_eq!(matching(&tags, tag), matching_portable(&tags, tag));
        }
    }
}
