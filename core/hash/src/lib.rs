//! Keyed prefix hashing of names.
//!
//! All tables of the forwarder are keyed by the SipHash-2-4 value of a Name VALUE (the bytes inside the Name
//! element). A name's prefixes are byte prefixes of its VALUE, so one pass over the name gives the hashes of all of
//! them: at every component boundary, a copy of the running state is finished. The key is drawn at start, so peers
//! cannot choose names that collide.
//!
//! The pass is made for one name ([`hash_prefixes`]) or for a burst of names side by side in vector registers
//! ([`hash_group`]), with identical results.
//!
//! A faster, independent hash assigns packets to workers: [`DispatchKey`].
//!
//! This crate knows nothing of packets. It expects VALUEs that were validated before; for any other bytes it returns
//! some hash and never fails.
//!
//! ```
//! use namehop_hash::{HashKey, PrefixHashes, hash_name, hash_prefixes};
//!
//! // The VALUEs of the names /a/b and /a.
//! let (name, parent) = (b"\x08\x01a\x08\x01b", b"\x08\x01a");
//! let key = HashKey::random();
//! let mut hashes = PrefixHashes::new();
//! hash_prefixes(&key, name, &mut hashes)?;
//! assert_eq!((hashes.depth(), hashes.value_bytes(1)), (2, 3));
//! assert_eq!(hashes.get(1), hash_name(&key, parent));
//! assert_eq!(hashes.full(), hash_name(&key, name));
//! # Ok::<(), namehop_hash::TooDeep>(())
//! ```

mod components;
mod dispatch;
mod lanes;
mod prefixes;
mod siphash;

#[cfg(test)]
mod tests;

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

pub use dispatch::DispatchKey;
pub use lanes::{Lanes, hash_group};
use prefixes::{Prefix, Prefixes};
use siphash::{State, partial_word};

/// Maximum number of components of a name that can be hashed with all its prefixes.
pub const MAX_DEPTH: usize = 64;

/// The secret key of all name hashes of one process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey {
    k0: u64,
    k1: u64,
    /// Hash of the empty name, which is the first prefix of every name.
    empty: u64,
}

impl HashKey {
    /// Makes the key with bytes 0..8 in `k0` and bytes 8..16 in `k1`, little-endian.
    pub const fn new(k0: u64, k1: u64) -> Self {
        let mut key = HashKey { k0, k1, empty: 0 };
        key.empty = State::new(&key).finish(0);
        key
    }

    /// Makes a key from the operating system's randomness.
    pub fn random() -> Self {
        // Each `RandomState` is itself a keyed hash seeded by the system; its output on fixed input is unpredictable.
        let draw = |salt: u64| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u64(salt);
            hasher.finish()
        };
        HashKey::new(draw(0x6e61_6d65), draw(0x686f_7021))
    }
}

impl fmt::Debug for HashKey {
    /// Does not show the key, because knowing it allows to make names collide.
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

/// Number of entries: the empty prefix, the prefixes of the deepest name, and one for deeper prefixes.
const PLACES: usize = MAX_DEPTH + 2;
/// Depth value that marks a name as too deep. The depth is stored in the empty prefix's entry in place of its length,
/// which is always 0.
const TOO_DEEP: u64 = 1 << 32;

/// Hashes and byte lengths of all prefixes of one name, from the empty prefix to the full name.
///
/// Made to be reused: filling it again touches only the cache lines that the name needs, one for every four prefixes.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct PrefixHashes {
    /// Hash and length of the prefixes with 0, 1, … components; see [`TOO_DEEP`] for the first length.
    entries: [[u64; 2]; PLACES],
}

impl PrefixHashes {
    /// Makes space for the hashes of one name. Until it is filled, its depth is 0 and its only hash is 0.
    pub const fn new() -> Self {
        PrefixHashes { entries: [[0; 2]; PLACES] }
    }

    /// Returns the number of components of the full name.
    #[inline]
    pub fn depth(&self) -> usize {
        // The lower half is zero for a name that is too deep.
        self.entries[0][1] as u32 as usize
    }

    /// Returns the hash of the prefix with `depth` components.
    ///
    /// # Panics
    /// If `depth` is larger than [`depth()`](Self::depth).
    #[inline]
    pub fn get(&self, depth: usize) -> u64 {
        self.entries[..=self.depth()][depth][0]
    }

    /// Returns the hash of the full name.
    #[inline]
    pub fn full(&self) -> u64 {
        self.entries[self.depth()][0]
    }

    /// Returns the length in bytes of the prefix with `depth` components, so that it is
    /// `name_value[..value_bytes(depth)]`.
    ///
    /// # Panics
    /// If `depth` is larger than [`depth()`](Self::depth).
    #[inline]
    pub fn value_bytes(&self, depth: usize) -> usize {
        if depth == 0 { 0 } else { self.entries[..=self.depth()][depth][1] as usize }
    }

    /// Returns an error if the name is too deep; then its only prefix is the empty one.
    #[inline]
    pub fn result(&self) -> Result<(), TooDeep> {
        if self.entries[0][1] == TOO_DEEP { Err(TooDeep) } else { Ok(()) }
    }

    /// Iterates over the hashes of the prefixes with 0, 1, … components.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.entries[..=self.depth()].iter().map(|&[hash, _]| hash)
    }
}

impl Default for PrefixHashes {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PrefixHashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Hashes all prefixes of the name with this VALUE into `out`.
///
/// The hash of each prefix equals [`hash_name`] of that prefix's VALUE. When the name is too deep, `out` holds the
/// empty prefix only.
pub fn hash_prefixes(key: &HashKey, name_value: &[u8], out: &mut PrefixHashes) -> Result<(), TooDeep> {
    out.entries[0] = [key.empty, TOO_DEEP];
    let mut depth = 0;
    for Prefix { end, state, last_word } in Prefixes::new(key, name_value) {
        if depth == MAX_DEPTH {
            return Err(TooDeep);
        }
        depth += 1;
        out.entries[depth] = [state.finish(last_word), end as u64];
    }
    out.entries[0][1] = depth as u64;
    Ok(())
}

/// Returns the hash of the name (or prefix) with this VALUE.
pub fn hash_name(key: &HashKey, name_value: &[u8]) -> u64 {
    let (words, rest) = name_value.as_chunks();
    let mut state = State::new(key);
    for word in words {
        state.compress(u64::from_le_bytes(*word));
    }
    state.finish(partial_word(rest) | (name_value.len() as u64) << 56)
}

/// Mixes a Nonce into the hash of a name: what the dead nonce list stores.
///
/// For one name, different Nonces give different results. Not a keyed hash by itself; the key is in `name_hash`.
pub fn hash_with_nonce(name_hash: u64, nonce: u32) -> u64 {
    // Odd multipliers and xor-shifts are bijections, so no information is lost; two rounds spread every input bit.
    let mut x = name_hash ^ u64::from(nonce).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}
