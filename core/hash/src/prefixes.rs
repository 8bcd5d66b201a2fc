//! The SipHash states at the ends of all prefixes of a name.

use crate::HashKey;
use crate::components::after_component;
use crate::siphash::{State, WORD_BYTES, partial_word};

/// The hash of a prefix before its last step.
pub(crate) struct Prefix {
    /// Length in bytes.
    pub(crate) end: usize,
    /// State after all whole words.
    pub(crate) state: State,
    /// Argument of [`State::finish`].
    pub(crate) last_word: u64,
}

/// Iterator over the prefixes of a name, from the one with one component to the full name.
pub(crate) struct Prefixes<'a> {
    state: State,
    /// Number of bytes compressed into `state`.
    hashed: usize,
    /// The next word after these, and the whole words that follow it.
    word: u64,
    words: std::slice::Iter<'a, [u8; WORD_BYTES]>,
    /// The bytes after the last whole word.
    remainder: u64,
    /// The remaining components.
    rest: &'a [u8],
    length: usize,
}

impl<'a> Prefixes<'a> {
    #[inline(always)]
    pub(crate) fn new(key: &HashKey, name_value: &'a [u8]) -> Self {
        let (words, remainder) = name_value.as_chunks();
        let remainder = match name_value.last_chunk() {
            // One load and a shift instead of a loop over the bytes.
            Some(last) if !remainder.is_empty() => u64::from_le_bytes(*last) >> (8 * (WORD_BYTES - remainder.len())),
            _ => partial_word(remainder),
        };
        let mut words = words.iter();
        let word = words.next().map_or(remainder, |word| u64::from_le_bytes(*word));
        let state = State::new(key);
        Prefixes { state, hashed: 0, word, words, remainder, rest: name_value, length: name_value.len() }
    }
}

impl Iterator for Prefixes<'_> {
    type Item = Prefix;

    #[inline(always)]
    fn next(&mut self) -> Option<Prefix> {
        if self.rest.is_empty() {
            return None;
        }
        self.rest = after_component(self.rest);
        let end = self.length - self.rest.len();
        while end - self.hashed >= WORD_BYTES {
            self.state.compress(self.word);
            self.word = self.words.next().map_or(self.remainder, |word| u64::from_le_bytes(*word));
            self.hashed += WORD_BYTES;
        }
        let bits_before_end = 8 * (end % WORD_BYTES);
        let last_word = self.word & ((1 << bits_before_end) - 1) | (end as u64) << 56;
        Some(Prefix { end, state: self.state, last_word })
    }
}
