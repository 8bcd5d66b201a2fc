//! The Internet checksum (RFC 1071) of IPv4, UDP, ICMP and ICMPv6.
//!
//! It is a sum of 16-bit words in ones' complement, which does not depend on the order of bytes within the words: so memory is
//! added up as it lies there, four bytes at a time, and only the result is turned into bytes.

/// A checksum under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checksum(u64);

impl Checksum {
    /// Of no bytes.
    pub const fn new() -> Checksum {
        Checksum(0)
    }

    /// Adds bytes, the first of which stands at an even place. An odd number of them can only be the last ones.
    #[inline]
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Checksum {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        // 32-bit words of a packet of 64 KiB do not overflow 64 bits.
        let sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
        Checksum(self.0 + sum + u64::from(u32::from_ne_bytes(last)))
    }

    /// Adds a number of 16 bits.
    #[inline]
    #[must_use]
    pub fn number(self, number: u16) -> Checksum {
        Checksum(self.0 + u64::from(u16::from_ne_bytes(number.to_be_bytes())))
    }

    /// The sum in 16 bits, in the order that memory has.
    fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xFFFF {
            sum = (sum >> 16) + (sum & 0xFFFF);
        }
        sum as u16
    }

    /// What belongs into the field of the checksum, which counted as zero.
    #[inline]
    pub fn finish(self) -> [u8; 2] {
        (!self.folded()).to_ne_bytes()
    }

    /// The same for UDP, where zero means that there is no checksum: the other form of zero stands for it.
    #[inline]
    pub fn finish_udp(self) -> [u8; 2] {
        match self.finish() {
            [0, 0] => [0xFF, 0xFF],
            checksum => checksum,
        }
    }

    /// Whether what was added, the field of the checksum included, is whole.
    #[inline]
    pub fn is_whole(self) -> bool {
        self.folded() == 0xFFFF
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Word by word, as RFC 1071 says it.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
            sum = (sum >> 16) + (sum & 0xFFFF);
        }
        !(sum as u16)
    }

    #[test]
    fn the_example_of_the_specification_has_its_sum() {
        let bytes = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
        assert_eq!(Checksum::new().bytes(&bytes).finish(), (!0xDDF2_u16).to_be_bytes());
        assert_eq!(
            Checksum::new().number(0x0001).number(0xF203).bytes(&bytes[4..]).finish(),
            (!0xDDF2_u16).to_be_bytes()
        );
        assert_eq!(Checksum::new().bytes(&[0xFF, 0xFF]).finish(), [0, 0]);
        assert_eq!(Checksum::new().bytes(&[0xFF, 0xFF]).finish_udp(), [0xFF, 0xFF]);
        assert!(!Checksum::new().is_whole(), "zeros have no checksum");
    }

    proptest! {
        #[test]
        fn it_is_the_plain_sum_in_parts_of_any_even_length(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cut in 0_usize..100,
        ) {
            let (front, back) = bytes.split_at((cut * 2).min(bytes.len() / 2 * 2));
            let checksum = Checksum::new().bytes(front).bytes(back).finish();
            prop_assert_eq!(u16::from_be_bytes(checksum), plain(&bytes));
            if bytes.len().is_multiple_of(2) {
                prop_assert!(Checksum::new().bytes(&bytes).bytes(&checksum).is_whole());
            }
        }
    }
}
