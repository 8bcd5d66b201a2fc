//! Test vectors of the SipHash authors, an independent implementation, and the prefix property.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// First 16 of the authors' 64-bit vectors: key bytes 00..0f, input bytes 00, 00 01, …
pub(crate) const VECTORS: [[u8; 8]; 16] = [
    [0x31, 0x0e, 0x0e, 0xdd, 0x47, 0xdb, 0x6f, 0x72],
    [0xfd, 0x67, 0xdc, 0x93, 0xc5, 0x39, 0xf8, 0x74],
    [0x5a, 0x4f, 0xa9, 0xd9, 0x09, 0x80, 0x6c, 0x0d],
    [0x2d, 0x7e, 0xfb, 0xd7, 0x96, 0x66, 0x67, 0x85],
    [0xb7, 0x87, 0x71, 0x27, 0xe0, 0x94, 0x27, 0xcf],
    [0x8d, 0xa6, 0x99, 0xcd, 0x64, 0x55, 0x76, 0x18],
    [0xce, 0xe3, 0xfe, 0x58, 0x6e, 0x46, 0xc9, 0xcb],
    [0x37, 0xd1, 0x01, 0x8b, 0xf5, 0x00, 0x02, 0xab],
    [0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93],
    [0xb0, 0xe4, 0xa9, 0x0b, 0xdf, 0x82, 0x00, 0x9e],
    [0xf3, 0xb9, 0xdd, 0x94, 0xc5, 0xbb, 0x5d, 0x7a],
    [0xa7, 0xad, 0x6b, 0x22, 0x46, 0x2f, 0xb3, 0xf4],
    [0xfb, 0xe5, 0x0e, 0x86, 0xbc, 0x8f, 0x1e, 0x75],
    [0x90, 0x3d, 0x84, 0xc0, 0x27, 0x56, 0xea, 0x14],
    [0xee, 0xf2, 0x7a, 0x8e, 0x90, 0xca, 0x23, 0xf7],
    [0xe5, 0x45, 0xbe, 0x49, 0x61, 0xca, 0x29, 0xa1],
];

pub(crate) const VECTOR_KEY: HashKey = HashKey::new(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);

#[allow(deprecated)]
fn reference(key: &HashKey, bytes: &[u8]) -> u64 {
    // The standard library's old `SipHasher` is SipHash-2-4.
    let mut hasher = std::hash::SipHasher::new_with_keys(key.k0, key.k1);
    hasher.write(bytes);
    hasher.finish()
}

pub(crate) fn name_value(components: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut value = Vec::new();
    for (typ, bytes) in components {
        for number in [u64::from(*typ), bytes.len() as u64] {
            match number {
                0..=252 => value.push(number as u8),
                253..=0xffff => {
                    value.push(253);
                    value.extend_from_slice(&(number as u16).to_be_bytes());
                }
                _ => {
                    value.push(254);
                    value.extend_from_slice(&(number as u32).to_be_bytes());
                }
            }
        }
        value.extend_from_slice(bytes);
    }
    value
}

#[test]
fn published_vectors() {
    let input: Vec<u8> = (0..16).collect();
    for (length, vector) in VECTORS.iter().enumerate() {
        assert_eq!(hash_name(&VECTOR_KEY, &input[..length]), u64::from_le_bytes(*vector), "length {length}");
    }
}

#[test]
fn depth_is_limited() {
    let deepest = name_value(&vec![(8, b"x".to_vec()); MAX_DEPTH]);
    let mut hashes = PrefixHashes::new();
    assert_eq!(hash_prefixes(&VECTOR_KEY, &deepest, &mut hashes), Ok(()));
    assert_eq!(hashes.depth(), MAX_DEPTH);
    assert_eq!(hashes.full(), hash_name(&VECTOR_KEY, &deepest));

    let too_deep = name_value(&vec![(8, b"x".to_vec()); MAX_DEPTH + 1]);
    assert_eq!(hash_prefixes(&VECTOR_KEY, &too_deep, &mut hashes), Err(TooDeep));
    assert_eq!(hashes.depth(), 0);
    assert_eq!(hashes.full(), hash_name(&VECTOR_KEY, b""));
}

#[test]
fn the_empty_name_has_one_prefix() {
    let mut hashes = PrefixHashes::new();
    assert_eq!(hash_prefixes(&VECTOR_KEY, b"", &mut hashes), Ok(()));
    assert_eq!(hashes.iter().collect::<Vec<_>>(), [hash_name(&VECTOR_KEY, b"")]);
    assert_eq!(hashes.value_bytes(0), 0);
}

#[test]
fn keys_differ_and_stay_secret() {
    let (one, other) = (HashKey::random(), HashKey::random());
    assert!(one != other);
    assert!(one.k0 != one.k1);
    assert_eq!(format!("{one:?}"), "HashKey(..)");
    assert_ne!(hash_name(&one, b"\x08\x01a"), hash_name(&other, b"\x08\x01a"));
}

#[test]
fn nonces_of_one_name_never_collide_and_spread() {
    let name = hash_name(&VECTOR_KEY, b"\x08\x01a");
    let mut seen = HashSet::new();
    let mut buckets = [0u32; 256];
    for nonce in 0..65_536 {
        let hash = hash_with_nonce(name, nonce);
        assert!(seen.insert(hash));
        buckets[(hash >> 56) as usize] += 1;
    }
    // 256 expected per bucket; 6 standard deviations are 96.
    assert!(buckets.iter().all(|&count| (160..352).contains(&count)));
}

proptest! {
    #[test]
    fn agrees_with_an_independent_implementation(
        k0: u64, k1: u64, bytes in prop::collection::vec(any::<u8>(), 0..300)
    ) {
        let key = HashKey::new(k0, k1);
        prop_assert_eq!(hash_name(&key, &bytes), reference(&key, &bytes));
    }

    #[test]
    fn every_prefix_hash_is_the_hash_of_that_prefix(
        components in prop::collection::vec(
            (1u16.., prop::collection::vec(any::<u8>(), 0..40)), 0..=MAX_DEPTH)
    ) {
        let value = name_value(&components);
        let mut hashes = PrefixHashes::new();
        prop_assert_eq!(hash_prefixes(&VECTOR_KEY, &value, &mut hashes), Ok(()));
        prop_assert_eq!(hashes.depth(), components.len());
        for depth in 0..=components.len() {
            let prefix = name_value(&components[..depth]);
            prop_assert_eq!(hashes.value_bytes(depth), prefix.len());
            prop_assert_eq!(hashes.get(depth), hash_name(&VECTOR_KEY, &prefix));
        }
        prop_assert_eq!(hashes.full(), hashes.get(components.len()));
    }

    #[test]
    fn components_longer_than_252_bytes(length in 250usize..70_000) {
        let value = name_value(&[(8, vec![7; length]), (300, vec![1])]);
        let mut hashes = PrefixHashes::new();
        prop_assert_eq!(hash_prefixes(&VECTOR_KEY, &value, &mut hashes), Ok(()));
        prop_assert_eq!(hashes.depth(), 2);
        prop_assert_eq!(hashes.get(1), hash_name(&VECTOR_KEY, &value[..hashes.value_bytes(1)]));
        prop_assert_eq!(value.len() - hashes.value_bytes(1), 5);
    }

    #[test]
    fn garbage_is_hashed_without_failing(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut hashes = PrefixHashes::new();
        if hash_prefixes(&VECTOR_KEY, &bytes, &mut hashes).is_ok() {
            prop_assert_eq!(hashes.full(), hash_name(&VECTOR_KEY, &bytes));
        }
    }
}
