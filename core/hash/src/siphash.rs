//! SipHash-2-4 (Aumasson and Bernstein, 2012) over contiguous bytes.
//!
//! The whole input stays readable, so the state needs no buffer for partial words: `compress` takes whole words only,
//! and `finish` takes the rest on a copy of the state.

use crate::HashKey;

/// Bytes compressed at a time.
pub(crate) const WORD_BYTES: usize = 8;

/// The four words of SipHash state.
#[derive(Clone, Copy)]
pub(crate) struct State {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl State {
    #[inline(always)]
    pub(crate) const fn new(key: &HashKey) -> Self {
        State {
            v0: key.k0 ^ 0x736f_6d65_7073_6575,
            v1: key.k1 ^ 0x646f_7261_6e64_6f6d,
            v2: key.k0 ^ 0x6c79_6765_6e65_7261,
            v3: key.k1 ^ 0x7465_6462_7974_6573,
        }
    }

    /// The words v0, v1, v2 and v3.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const fn words(&self) -> [u64; 4] {
        [self.v0, self.v1, self.v2, self.v3]
    }

    /// Returns the hash; `last` is the last word: the remaining bytes, with the length in the top byte.
    #[inline(always)]
    pub(crate) const fn finish(mut self, last: u64) -> u64 {
        self.compress(last);
        self.v2 ^= 0xff;
        self.round();
        self.round();
        self.round();
        self.round();
        self.v0 ^ self.v1 ^ self.v2 ^ self.v3
    }

    #[inline(always)]
    pub(crate) const fn compress(&mut self, word: u64) {
        self.v3 ^= word;
        self.round();
        self.round();
        self.v0 ^= word;
    }

    #[inline(always)]
    const fn round(&mut self) {
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

/// Returns the bytes of a partial word, in its lower part.
#[inline]
pub(crate) fn partial_word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}
