//! The PIT token: bytes that an upstream returns to the downstream with the Data or Nack (NDNLPv2 "PIT token").

use std::fmt;

/// A PIT token of up to 32 bytes, stored inline. An empty token means "absent" and is never sent.
// The first eight bytes, which hold most tokens completely, are in one aligned word that is read and written at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(C, align(8))]
pub struct PitToken {
    /// Zero after `len`, so that derived comparisons are correct.
    bytes: [u8; PitToken::MAX_LEN],
    len: u8,
}

impl PitToken {
    /// Maximum length of a token in bytes.
    pub const MAX_LEN: usize = 32;

    /// Returns no token.
    #[inline]
    pub const fn empty() -> Self {
        PitToken { bytes: [0; Self::MAX_LEN], len: 0 }
    }

    /// Makes a token of these bytes; `None` when there are more than 32.
    #[inline]
    pub fn from_slice(token: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX_LEN];
        bytes.get_mut(..token.len())?.copy_from_slice(token);
        Some(PitToken { bytes, len: token.len() as u8 })
    }

    /// Makes a token of the first `length` of these bytes; `None` when `length` is more than 8. Cheaper than
    /// [`from_slice`](Self::from_slice).
    #[inline(always)]
    pub fn short(first: [u8; 8], length: usize) -> Option<Self> {
        // The bytes after the token must be zero.
        let mask = match length {
            0 => 0,
            1..=8 => u64::MAX >> (64 - 8 * length),
            _ => return None,
        };
        let mut bytes = [0; Self::MAX_LEN];
        bytes[..8].copy_from_slice(&(u64::from_le_bytes(first) & mask).to_le_bytes());
        Some(PitToken { bytes, len: length as u8 })
    }

    /// Returns the first `COUNT` bytes, with zeros after a shorter token.
    #[inline]
    pub fn first_bytes<const COUNT: usize>(&self) -> [u8; COUNT] {
        const { assert!(COUNT <= Self::MAX_LEN) };
        let mut first = [0; COUNT];
        first.copy_from_slice(&self.bytes[..COUNT]);
        first
    }

    /// The token.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Length in bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns true if there is no token.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for PitToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PitToken(")?;
        for byte in self.as_slice() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_tokens_are_like_others() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        for length in 0..=8 {
            let token = PitToken::short(bytes, length);
            assert_eq!(token, PitToken::from_slice(&bytes[..length]));
            let first = token.expect("short").first_bytes::<8>();
            assert_eq!((&first[..length], &first[length..]), (&bytes[..length], &[0; 8][length..]));
        }
        assert_eq!(PitToken::short(bytes, 9), None);
    }

    #[test]
    fn tokens_hold_up_to_32_bytes() {
        assert!(PitToken::empty().is_empty());
        assert_eq!(PitToken::from_slice(&[]), Some(PitToken::empty()));
        let token = PitToken::from_slice(&[7; 32]).expect("a token of 32 bytes is valid");
        assert_eq!((token.len(), token.as_slice()), (32, &[7; 32][..]));
        assert_eq!(PitToken::from_slice(&[7; 33]), None);
        assert_eq!(format!("{:?}", PitToken::from_slice(&[0xAA, 1]).expect("short")), "PitToken(aa01)");
    }
}
