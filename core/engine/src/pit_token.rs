//! The PIT token that this router attaches to the Interests it sends: 8 bytes that lead back to the PIT entry.
//!
//! The first byte is the worker. The other 56 bits are, big-endian and highest first: the index of the PCCT entry, the
//! index of its PIT slot, and the low bits of the entry's generation. Each index has as many bits as the tables of this
//! worker need. With both indices, the entry and the separate slot can be prefetched before either has been read. If
//! too few bits would be left for the generation, the slot index is omitted, and the slot is found through its entry.
//!
//! A peer may return any bytes; the index, the generation and then the name are checked. A token does not prove that
//! the peer has seen the Interest: indices and generations are easily guessed. It only saves the lookup.

use namehop_wire::lp::PitToken;

/// Length of a token.
const TOKEN_BYTES: usize = 8;
/// Bits of a token without the worker.
const BITS: u32 = 56;
/// Minimum number of bits for the generation.
const LEAST_GENERATION_BITS: u32 = 8;

/// The layout of a worker's tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenForm {
    worker: u8,
    /// 0 if tokens contain no slot index.
    slot_bits: u32,
    generation_bits: u32,
}

/// The content of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) entry: u32,
    pub(crate) slot: Option<u32>,
    /// Low bits of the entry's generation.
    generation: u32,
}

impl TokenForm {
    /// Creates the layout for tables with this many entries and PIT slots, each at most 2^32.
    pub(crate) fn new(worker: u8, entries: usize, slots: usize) -> Self {
        let bits = |count: usize| count.next_power_of_two().trailing_zeros().min(u32::BITS);
        let left = BITS - bits(entries);
        let slot_bits = if left >= bits(slots) + LEAST_GENERATION_BITS { bits(slots) } else { 0 };
        TokenForm { worker, slot_bits, generation_bits: (left - slot_bits).min(u32::BITS) }
    }

    /// Returns the token for a PIT slot of an entry with this generation.
    #[inline(always)]
    pub(crate) fn encode(&self, entry: u32, slot: u32, generation: u32) -> PitToken {
        let slot = u64::from(slot) & low_bits(self.slot_bits);
        let index = u64::from(entry) << self.slot_bits | slot;
        let number = index << self.generation_bits | u64::from(generation) & low_bits(self.generation_bits);
        PitToken::short((u64::from(self.worker) << BITS | number).to_be_bytes(), TOKEN_BYTES).unwrap_or_default()
    }

    /// Returns the content of a token; `None` if it is not one of this worker's.
    #[inline]
    pub(crate) fn decode(&self, token: &PitToken) -> Option<Named> {
        let number = u64::from_be_bytes(token.first_bytes());
        let is_own = token.len() == TOKEN_BYTES && (number >> BITS) as u8 == self.worker;
        let index = (number & low_bits(BITS)) >> self.generation_bits;
        is_own.then(|| Named {
            // Too large an index, in a token that the peer made up, may lose bits: it is a guess in any case.
            entry: (index >> self.slot_bits) as u32,
            slot: (self.slot_bits > 0).then_some((index & low_bits(self.slot_bits)) as u32),
            generation: (number & low_bits(self.generation_bits)) as u32,
        })
    }

    /// Returns whether a generation matches the low bits in a token.
    pub(crate) fn agrees(&self, named: &Named, generation: u32) -> bool {
        u64::from(generation) & low_bits(self.generation_bits) == u64::from(named.generation)
    }
}

/// Returns the worker in a token, if it has the form of this router's tokens.
#[inline]
pub(crate) fn worker(token: &PitToken) -> Option<u8> {
    let [worker] = token.first_bytes();
    (token.len() == TOKEN_BYTES).then_some(worker)
}

/// Returns a mask of the `count` low bits; `count` must be below 64.
#[inline(always)]
const fn low_bits(count: u32) -> u64 {
    (1 << count) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_its_slot() {
        let form = TokenForm::new(3, 0x1_0000, 0xFFF);
        let token = form.encode(0x0102, 0x345, 0xAABB_CCDD);
        assert_eq!(token.as_slice(), [3, 1, 2, 0x34, 0x5A, 0xBB, 0xCC, 0xDD]);
        assert_eq!(worker(&token), Some(3));
    }

    #[test]
    fn tables_of_any_size_have_tokens() {
        for (entries, slots, names_slots) in [
            (1, 1, false),
            (2, 2, true),
            (131_136, 131_072, true),
            (1 << 30, 1 << 18, true),
            (1 << 30, (1 << 18) + 1, false),
            (1 << 32, 1 << 16, true),
            (1 << 32, 1 << 24, false),
        ] {
            let form = TokenForm::new(0xFF, entries, slots);
            let (entry, slot) = ((entries - 1) as u32, (slots - 1) as u32);
            for generation in [0, 1, 0xFFFF_FFFF] {
                let named = form.decode(&form.encode(entry, slot, generation)).expect("a token of this form");
                assert_eq!(
                    (named.entry, named.slot),
                    (entry, names_slots.then_some(slot)),
                    "{entries} entries, {slots} slots"
                );
                assert!(
                    form.agrees(&named, generation) && !form.agrees(&named, generation ^ 1),
                    "{entries} entries, {slots} slots"
                );
            }
        }
    }

    #[test]
    fn foreign_tokens_are_not_decoded() {
        let form = |worker| TokenForm::new(worker, 100, 100);
        let token = form(4).encode(1, 1, 1);
        assert!(form(4).decode(&token).is_some());
        assert_eq!(form(3).decode(&token), None);
        assert_eq!(form(3).decode(&PitToken::from_slice(&[3, 1, 2]).expect("short")), None);
        assert_eq!(form(3).decode(&PitToken::empty()), None);
        assert_eq!(worker(&PitToken::from_slice(&[3, 1, 2]).expect("short")), None);
    }
}
