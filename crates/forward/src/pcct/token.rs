//! The PIT token that this router puts on the Interests it sends: 8 bytes that lead back to the PCCT entry.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | worker |
//! | 1–4 | entry index, big-endian |
//! | 5–7 | low 24 bits of the entry's generation, big-endian |
//!
//! A peer may return anything; the index, the generation and then the name are checked. A token is no proof that the peer has
//! seen the Interest: indices and generations are easily guessed. It only saves the lookup.

use namehop_wire::lp::PitToken;

/// Length of a token.
const TOKEN_BYTES: usize = 8;
/// Bits of the generation that the token carries.
const GENERATION_MASK: u32 = 0x00FF_FFFF;

/// The token for an entry of this generation.
#[inline(always)]
pub(crate) fn encode(worker: u8, entry: u32, generation: u32) -> PitToken {
    let number = u64::from(worker) << 56 | u64::from(entry) << 24 | u64::from(generation & GENERATION_MASK);
    PitToken::short(number.to_be_bytes(), TOKEN_BYTES).unwrap_or_default()
}

/// Entry index and low bits of the generation; `None` when the token is not one of this worker's.
#[inline]
pub(crate) fn decode(worker: u8, token: &PitToken) -> Option<(u32, u32)> {
    let number = u64::from_be_bytes(token.first_bytes());
    let is_own = token.len() == TOKEN_BYTES && (number >> 56) as u8 == worker;
    is_own.then_some(((number >> 24) as u32, number as u32 & GENERATION_MASK))
}

/// The worker that a token names, if it has the form of this router's tokens.
#[inline]
pub(crate) fn worker(token: &PitToken) -> Option<u8> {
    let [worker] = token.first_bytes();
    (token.len() == TOKEN_BYTES).then_some(worker)
}

/// Does the generation agree with the bits from a token?
pub(crate) fn generation_agrees(generation: u32, bits: u32) -> bool {
    generation & GENERATION_MASK == bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_its_entry() {
        let token = encode(3, 0x0102_0304, 0xAABB_CCDD);
        assert_eq!(token.as_slice(), [3, 1, 2, 3, 4, 0xBB, 0xCC, 0xDD]);
        let (entry, bits) = decode(3, &token).expect("own token");
        assert_eq!(entry, 0x0102_0304);
        assert_eq!(worker(&token), Some(3));
        assert!(generation_agrees(0xAABB_CCDD, bits));
        assert!(!generation_agrees(0xAABB_CCDE, bits));
    }

    #[test]
    fn foreign_tokens_are_not_decoded() {
        assert_eq!(decode(3, &encode(4, 1, 1)), None);
        assert_eq!(decode(3, &PitToken::from_slice(&[3, 1, 2]).expect("short")), None);
        assert_eq!(decode(3, &PitToken::empty()), None);
        assert_eq!(worker(&PitToken::from_slice(&[3, 1, 2]).expect("short")), None);
    }
}
