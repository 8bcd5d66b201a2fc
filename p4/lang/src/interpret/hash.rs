//! Checksums and hash functions of v1model.

use num_bigint::BigInt;

use super::bits::Bits;

/// The algorithms, in the order of `HashAlgorithm`.
pub fn hash(algorithm: u32, data: &Bits) -> BigInt {
    match algorithm {
        0 | 1 => BigInt::from(crc32(data.bytes())),
        2 | 3 => BigInt::from(crc16(data.bytes())),
        5 => data.read(0, data.len()),
        6 => BigInt::from(checksum16(data.bytes())),
        7 => BigInt::from(xor16(data.bytes())),
        // `random` has no defined result.
        _ => BigInt::from(0),
    }
}

/// CRC-32 as in Ethernet (reflected polynomial 0xEDB88320).
fn crc32(bytes: &[u8]) -> u32 {
    let mut register = u32::MAX;
    for byte in bytes {
        register ^= u32::from(*byte);
        for _ in 0..8 {
            register = if register & 1 == 1 { (register >> 1) ^ 0xedb8_8320 } else { register >> 1 };
        }
    }
    !register
}

/// CRC-16/ARC (reflected polynomial 0xA001).
fn crc16(bytes: &[u8]) -> u16 {
    let mut register = 0u16;
    for byte in bytes {
        register ^= u16::from(*byte);
        for _ in 0..8 {
            register = if register & 1 == 1 { (register >> 1) ^ 0xa001 } else { register >> 1 };
        }
    }
    register
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
}

/// The Internet checksum (RFC 1071).
fn checksum16(bytes: &[u8]) -> u16 {
    let mut sum: u64 = words(bytes).map(u64::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn xor16(bytes: &[u8]) -> u16 {
    words(bytes).fold(0, |all, word| all ^ word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_values_of_the_algorithms_come_out() {
        let text = b"123456789";
        assert_eq!(crc32(text), 0xcbf4_3926);
        assert_eq!(crc16(text), 0xbb3d);
        assert_eq!(checksum16(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(xor16(&[0x12, 0x34, 0xff, 0xff, 0x01]), 0x1234 ^ 0xffff ^ 0x0100);
    }
}
