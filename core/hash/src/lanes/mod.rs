//! Hashes all prefixes of many names at once, one name per lane of a vector.
//!
//! SipHash is a chain of operations, each of which depends on the previous one, so hashing one name alone leaves most
//! of a CPU idle. A vector register holds the states of four or eight names, which proceed through their bytes in
//! step. At the end of a prefix the lane's state is set aside; when there are enough of them to fill a vector, they
//! are finished together, across names and depths.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod group;
#[cfg(target_arch = "x86_64")]
mod pending;
#[cfg(target_arch = "x86_64")]
mod queue;
#[cfg(target_arch = "x86_64")]
mod states;
#[cfg(target_arch = "x86_64")]
mod vector;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::OnceLock;

use crate::{HashKey, PrefixHashes, hash_prefixes};

/// The instructions that hash a group of names. Values exist only for instructions that this CPU has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Lanes(Width);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Lanes {
    /// One name at a time, with instructions that every CPU has.
    pub const SCALAR: Lanes = Lanes(Width::Scalar);

    /// Returns the widest lanes that this CPU has. The features are detected once.
    pub fn best() -> Lanes {
        static BEST: OnceLock<Lanes> = OnceLock::new();
        *BEST.get_or_init(|| Lanes::available().last().unwrap_or(Lanes::SCALAR))
    }

    /// Returns all widths that this CPU has, narrowest first.
    pub fn available() -> impl Iterator<Item = Lanes> {
        #[cfg(target_arch = "x86_64")]
        let wide = {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("popcnt");
            let avx512 = has!("avx512f") && has!("avx512bw") && has!("popcnt");
            [avx2.then_some(Lanes(Width::Avx2)), avx512.then_some(Lanes(Width::Avx512))]
        };
        #[cfg(not(target_arch = "x86_64"))]
        let wide: [Option<Lanes>; 0] = [];
        [Lanes::SCALAR].into_iter().chain(wide.into_iter().flatten())
    }

    /// Number of names in one register.
    pub const fn count(self) -> usize {
        match self.0 {
            Width::Scalar => 1,
            #[cfg(target_arch = "x86_64")]
            Width::Avx2 => 4,
            #[cfg(target_arch = "x86_64")]
            Width::Avx512 => 8,
        }
    }
}

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self.0 {
            Width::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Width::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Width::Avx512 => "AVX-512",
        })
    }
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Maximum number of names that the vector code hashes in one call.
#[cfg(target_arch = "x86_64")]
const GROUP_NAMES: usize = 64;

/// Hashes all prefixes of every name, given by its VALUE, into the element of `out` with the same index. The result
/// is the same as that of [`hash_prefixes`]; [`PrefixHashes::result`] tells whether the name could be hashed.
///
/// Names may have any lengths and depths, but names of similar length are fastest.
///
/// # Panics
/// If `out` is shorter than `names`.
#[inline]
pub fn hash_group(key: &HashKey, lanes: Lanes, names: &[&[u8]], out: &mut [PrefixHashes]) {
    let out = &mut out[..names.len()];
    match lanes.0 {
        Width::Scalar => {
            for (name, out) in names.iter().zip(out) {
                // The result is kept in `out`.
                let _ = hash_prefixes(key, name, out);
            }
        }
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => {
            for (names, out) in names.chunks(GROUP_NAMES).zip(out.chunks_mut(GROUP_NAMES)) {
                // SAFETY: such a value exists only if the CPU has these instructions.
                unsafe { avx2::hash_names(key, names, out) }
            }
        }
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 => {
            for (names, out) in names.chunks(GROUP_NAMES).zip(out.chunks_mut(GROUP_NAMES)) {
                // SAFETY: such a value exists only if the CPU has these instructions.
                unsafe { avx512::hash_names(key, names, out) }
            }
        }
    }
}
