//! A fast keyed hash of short byte strings, which assigns packets to workers.
//!
//! It is independent of the name hash that keys the tables, so that the names of one worker spread over all home
//! buckets of its tables. It takes a few nanoseconds where SipHash takes twenty: every packet is hashed with it
//! before its owner is known. It need not resist an attacker who learns hashes of chosen names, because the hashes
//! are not observable, and a single prefix already suffices to load one worker alone.

use std::hash::{BuildHasher, RandomState};

/// Bytes hashed at a time.
const CHUNK_BYTES: usize = 16;

/// The secret key of dispatch hashes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DispatchKey {
    start: u64,
    multiplier: u64,
}

impl DispatchKey {
    /// Makes a key from two numbers.
    pub const fn new(start: u64, multiplier: u64) -> Self {
        // With a multiplier of zero the hash would not depend on the bytes.
        DispatchKey { start, multiplier: multiplier | 1 << 63 | 1 }
    }

    /// Makes a key from the operating system's randomness.
    pub fn random() -> Self {
        let random = RandomState::new();
        DispatchKey::new(random.hash_one(0_u8), random.hash_one(1_u8))
    }

    /// Returns the hash of `bytes`.
    #[inline]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        let mut state = self.start ^ bytes.len() as u64;
        let (chunks, rest) = bytes.as_chunks::<CHUNK_BYTES>();
        for chunk in chunks {
            state = self.mix(state, chunk);
        }
        if !rest.is_empty() {
            state = match bytes.last_chunk() {
                // Some of these bytes were mixed in already; the length makes this unambiguous.
                Some(last) => self.mix(state, last),
                None => {
                    let mut last = [0; CHUNK_BYTES];
                    last[..rest.len()].copy_from_slice(rest);
                    self.mix(state, &last)
                }
            };
        }
        folded_product(state ^ self.start, self.multiplier)
    }

    #[inline(always)]
    fn mix(&self, state: u64, chunk: &[u8; CHUNK_BYTES]) -> u64 {
        let number = u128::from_le_bytes(*chunk);
        folded_product(state ^ number as u64, self.multiplier ^ (number >> 64) as u64)
    }
}

/// Returns the XOR of both halves of a product.
#[inline(always)]
fn folded_product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const KEY: DispatchKey = DispatchKey::new(0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210);

    #[test]
    fn similar_strings_are_spread_evenly() {
        // By the lower and by the upper bits.
        let (mut low, mut high) = ([0_u32; 64], [0_u32; 64]);
        for number in 0..64_000_u32 {
            let hash = KEY.hash(format!("\x08\x03ndn\x08\x08user{number:04}").as_bytes());
            low[(hash & 63) as usize] += 1;
            high[(hash >> 58) as usize] += 1;
        }
        for counts in [low, high] {
            assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn length_key_and_every_byte_count() {
        let text = [0_u8; 40];
        let of_lengths: HashSet<u64> = (0..=40).map(|length| KEY.hash(&text[..length])).collect();
        assert_eq!(of_lengths.len(), 41);
        for index in 0..40 {
            let mut changed = text;
            changed[index] = 1;
            assert_ne!(KEY.hash(&changed), KEY.hash(&text), "the hash must depend on byte {index}");
        }
        assert_ne!(DispatchKey::new(1, 2).hash(&text), KEY.hash(&text));
        assert_ne!(DispatchKey::random().hash(&text), DispatchKey::random().hash(&text));
    }
}
