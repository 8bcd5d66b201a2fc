//! The Internet checksum (RFC 1071) of IPv4, UDP, ICMP and ICMPv6.
//!
//! It is a ones' complement sum of 16-bit words, which does not depend on the byte order within the words. So memory
//! is added up in native byte order, four bytes at a time, and only the result is converted to bytes.

/// A checksum in progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checksum(u64);

impl Checksum {
    /// The checksum of no bytes.
    pub const fn new() -> Checksum {
        Checksum(0)
    }

    /// Adds bytes that start at an even offset. Only the last piece may have an odd length.
    #[inline]
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Checksum {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        // A sum of 32-bit words of a packet of 64 KiB does not overflow 64 bits.
        let sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
        Checksum(self.0 + sum + u64::from(u32::from_ne_bytes(last)))
    }

    /// Adds a 16-bit integer.
    #[inline]
    #[must_use]
    pub fn number(self, number: u16) -> Checksum {
        Checksum(self.0 + u64::from(u16::from_ne_bytes(number.to_be_bytes())))
    }

    /// Returns the sum in 16 bits, in native byte order.
    fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xFFFF {
            sum = (sum >> 16) + (sum & 0xFFFF);
        }
        sum as u16
    }

    /// Returns the value for the checksum field, which must be zero in the sum.
    #[inline]
    pub fn finish(self) -> [u8; 2] {
        (!self.folded()).to_ne_bytes()
    }

    /// Returns the value for UDP's checksum field. Zero there means that there is no checksum, so it is replaced by
    /// 0xFFFF, the other form of zero.
    #[inline]
    pub fn finish_udp(self) -> [u8; 2] {
        match self.finish() {
            [0, 0] => [0xFF, 0xFF],
            checksum => checksum,
        }
    }

    /// Returns true if the added bytes, including the checksum field, have a correct checksum.
    #[inline]
    pub fn is_whole(self) -> bool {
        self.folded() == 0xFFFF
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes the checksum word by word, as in RFC 1071.
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
        assert!(!Checksum::new().is_whole(), "zero bytes must not count as a valid checksum");
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
