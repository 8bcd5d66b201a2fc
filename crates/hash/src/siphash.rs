//! SipHash-2-4 (Aumasson and Bernstein, 2012) over bytes that lie in one piece of memory.
//!
//! Because the whole input stays readable, the state needs no buffer for half-filled words: `absorb` takes whole words
//! only, and `finish` reads the tail again on a copy of the state.

use crate::HashKey;

/// Bytes compressed at a time.
const WORD_BYTES: usize = 8;

/// The four words of SipHash state.
#[derive(Clone, Copy)]
pub(crate) struct State {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl State {
    pub(crate) fn new(key: &HashKey) -> Self {
        State {
            v0: key.k0 ^ 0x736f_6d65_7073_6575,
            v1: key.k1 ^ 0x646f_7261_6e64_6f6d,
            v2: key.k0 ^ 0x6c79_6765_6e65_7261,
            v3: key.k1 ^ 0x7465_6462_7974_6573,
        }
    }

    /// Compresses the whole words of `bytes[hashed..end]` and returns where the rest starts. `hashed` is what the
    /// previous call returned, at first 0.
    #[inline]
    pub(crate) fn absorb(&mut self, bytes: &[u8], hashed: usize, end: usize) -> usize {
        let mut position = hashed;
        for word in bytes[hashed..end].chunks_exact(WORD_BYTES) {
            let mut little_endian = [0; WORD_BYTES];
            little_endian.copy_from_slice(word);
            self.compress(u64::from_le_bytes(little_endian));
            position += WORD_BYTES;
        }
        position
    }

    /// Hash of `bytes[..end]`, of which `bytes[..hashed]` is absorbed and less than a word is not.
    #[inline]
    pub(crate) fn finish(mut self, bytes: &[u8], hashed: usize, end: usize) -> u64 {
        let tail_bytes = end - hashed;
        let tail = match bytes[hashed..].first_chunk::<WORD_BYTES>() {
            // One load and a mask instead of a byte loop; the bytes behind the tail belong to the next components.
            Some(word) => u64::from_le_bytes(*word) & ((1 << (8 * tail_bytes)) - 1),
            None => bytes[hashed..end].iter().rev().fold(0, |tail, &byte| tail << 8 | u64::from(byte)),
        };
        self.compress(tail | (end as u64) << 56);
        self.v2 ^= 0xff;
        for _ in 0..4 {
            self.round();
        }
        self.v0 ^ self.v1 ^ self.v2 ^ self.v3
    }

    #[inline]
    fn compress(&mut self, word: u64) {
        self.v3 ^= word;
        self.round();
        self.round();
        self.v0 ^= word;
    }

    #[inline]
    fn round(&mut self) {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.rotate_left(32);
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v0 = self.v0.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v2 = self.v2.rotate_left(32);
    }
}
