//! Keyed prefix hashing of names.
//!
//! Every table of the forwarder is keyed by the SipHash-2-4 value of a Name VALUE (the bytes inside the Name element).
//! A name's prefixes are byte prefixes of its VALUE, so one pass over the name gives the hashes of all of them: the
//! running state is finished on a copy at every component boundary. The key is drawn at start, so nobody outside can
//! choose names that collide.
//!
//! This crate knows nothing of packets. It expects VALUEs that were validated before; on anything else it returns some
//! hash and never fails.

mod siphash;

#[cfg(test)]
mod tests;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use siphash::State;

/// Components of the longest name that can be hashed with all its prefixes.
pub const MAX_DEPTH: usize = 64;

/// The secret key of all name hashes of one process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey {
    /// First half, little-endian bytes 0..8 of the SipHash key.
    pub k0: u64,
    /// Second half, little-endian bytes 8..16 of the SipHash key.
    pub k1: u64,
}

impl HashKey {
    /// A key from the operating system's randomness.
    pub fn random() -> Self {
        // Each `RandomState` is itself a keyed hash seeded by the system; its output on fixed input is unpredictable.
        let draw = |salt: u64| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u64(salt);
            hasher.finish()
        };
        HashKey { k0: draw(0x6e61_6d65), k1: draw(0x686f_7021) }
    }
}

impl fmt::Debug for HashKey {
    /// Does not show the key: whoever knows it can make names collide.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(..)")
    }
}

/// A name has more than [`MAX_DEPTH`] components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooDeep;

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "name has more than {MAX_DEPTH} components")
    }
}

impl std::error::Error for TooDeep {}

/// Hashes and byte lengths of all prefixes of one name, from the empty prefix to the full name.
///
/// Made to be reused: filling it again touches only as many cache lines as the name is deep.
#[derive(Clone)]
pub struct PrefixHashes {
    depth: usize,
    hashes: [u64; MAX_DEPTH + 1],
    value_bytes: [u32; MAX_DEPTH + 1],
}

impl PrefixHashes {
    /// Space for the hashes of one name. Until it is filled, its depth is 0 and its only hash is 0.
    pub const fn new() -> Self {
        PrefixHashes { depth: 0, hashes: [0; MAX_DEPTH + 1], value_bytes: [0; MAX_DEPTH + 1] }
    }

    /// Number of components of the full name.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Hash of the prefix with `depth` components.
    ///
    /// # Panics
    /// If `depth` is larger than [`depth()`](Self::depth).
    pub fn get(&self, depth: usize) -> u64 {
        self.hashes[..=self.depth][depth]
    }

    /// Hash of the full name.
    pub fn full(&self) -> u64 {
        self.hashes[self.depth]
    }

    /// Length in bytes of the prefix with `depth` components, so that it is `name_value[..value_bytes(depth)]`.
    ///
    /// # Panics
    /// If `depth` is larger than [`depth()`](Self::depth).
    pub fn value_bytes(&self, depth: usize) -> usize {
        self.value_bytes[..=self.depth][depth] as usize
    }

    /// Hashes of the prefixes with 0, 1, … components.
    pub fn as_slice(&self) -> &[u64] {
        &self.hashes[..=self.depth]
    }
}

impl Default for PrefixHashes {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PrefixHashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// Hashes all prefixes of the name with this VALUE into `out`.
///
/// The hash of each prefix equals [`hash_name`] of that prefix's VALUE. When the name is too deep, `out` holds the
/// empty prefix only.
pub fn hash_prefixes(key: &HashKey, name_value: &[u8], out: &mut PrefixHashes) -> Result<(), TooDeep> {
    let mut state = State::new(key);
    let mut hashed = 0;
    let mut end = 0;
    let mut depth = 0;
    out.depth = 0;
    out.hashes[0] = state.finish(name_value, 0, 0);
    out.value_bytes[0] = 0;
    while end < name_value.len() {
        if depth == MAX_DEPTH {
            return Err(TooDeep);
        }
        end = component_end(name_value, end);
        depth += 1;
        hashed = state.absorb(name_value, hashed, end);
        out.hashes[depth] = state.finish(name_value, hashed, end);
        out.value_bytes[depth] = u32::try_from(end).unwrap_or(u32::MAX);
    }
    out.depth = depth;
    Ok(())
}

/// Hash of the name (or prefix) with this VALUE.
pub fn hash_name(key: &HashKey, name_value: &[u8]) -> u64 {
    let mut state = State::new(key);
    let hashed = state.absorb(name_value, 0, name_value.len());
    state.finish(name_value, hashed, name_value.len())
}

/// Mixes a Nonce into the hash of a name: what the dead nonce list stores.
///
/// For one name, different Nonces give different results. Not a keyed hash by itself; the key is in `name_hash`.
pub fn hash_with_nonce(name_hash: u64, nonce: u32) -> u64 {
    // Odd multiplier and xor-shifts are bijections, so nothing is lost; two rounds spread every input bit.
    let mut x = name_hash ^ u64::from(nonce).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

/// End of the component that starts at `start`; the end of the name if the component is cut off.
fn component_end(name_value: &[u8], start: usize) -> usize {
    let rest = &name_value[start..];
    let Some((_, type_bytes)) = var_number(rest) else {
        return name_value.len();
    };
    let Some((length, length_bytes)) = var_number(&rest[type_bytes..]) else {
        return name_value.len();
    };
    let available = rest.len() - type_bytes - length_bytes;
    match usize::try_from(length) {
        Ok(length) if length <= available => start + type_bytes + length_bytes + length,
        _ => name_value.len(),
    }
}

/// Reads a TLV variable-size number: its value and its size in bytes.
#[inline]
fn var_number(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let size = match first {
        0..=252 => return Some((u64::from(first), 1)),
        253 => 2,
        254 => 4,
        255 => 8,
    };
    let digits = bytes.get(1..=size)?;
    let value = digits.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
    Some((value, size + 1))
}
