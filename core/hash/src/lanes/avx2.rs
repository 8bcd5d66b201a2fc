//! Four names per register with AVX2, and two registers side by side.
//!
//! Instructions that AVX2 lacks are composed of others: rotations of shifts, compression and expansion of
//! permutations from a table, gathers and scatters of plain loads and stores (which are also faster on CPUs with slow
//! gathers).

use std::arch::asm;
use std::arch::x86_64::*;
use std::ptr::{read_volatile, with_exposed_provenance};

use super::group;
use super::vector::{Vector, Words, all};
use crate::{HashKey, PrefixHashes};

const LANES: usize = 2 * HALF;
/// Bits of the lanes in the first register.
const LOW: u32 = (1 << HALF) - 1;

/// See [`group::hash_names`].
#[target_feature(enable = "avx2,popcnt")]
pub(super) fn hash_names(key: &HashKey, names: &[&[u8]], out: &mut [PrefixHashes]) {
    // SAFETY: this function is compiled and called only for CPUs with these instructions.
    unsafe { group::hash_names::<Avx2>(key, names, out) }
}

/// Two registers, because with one the rounds would spend half of the time waiting for each other's results.
#[derive(Clone, Copy)]
struct Avx2(__m256i, __m256i);

/// Words in a register.
const HALF: usize = 4;

/// Permutations of the words of a register, as indexes of half words, for every set of lanes.
#[repr(align(32))]
struct Permutations([[u32; 2 * HALF]; 1 << HALF]);

/// Moves the n-th chosen lane to index n.
static COMPRESS: Permutations = permutations(true);
/// Moves the word at index n to the n-th chosen lane.
static EXPAND: Permutations = permutations(false);

const fn permutations(compress: bool) -> Permutations {
    let mut table = [[0; 2 * HALF]; 1 << HALF];
    let mut bits = 0;
    while bits < 1 << HALF {
        let (mut lane, mut offset) = (0, 0);
        while lane < HALF {
            if bits >> lane & 1 == 1 {
                let (to, from) = if compress { (offset, lane) } else { (lane, offset) };
                table[bits][2 * to] = 2 * from as u32;
                table[bits][2 * to + 1] = 2 * from as u32 + 1;
                offset += 1;
            }
            lane += 1;
        }
        bits += 1;
    }
    Permutations(table)
}

/// Permutes a register by the permutation for these lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn permute(register: __m256i, table: &Permutations, bits: u32) -> __m256i {
    let permutation = &table.0[bits as usize % table.0.len()];
    // SAFETY: a permutation has 32 bytes.
    let permutation = unsafe { _mm256_loadu_si256(permutation.as_ptr().cast()) };
    _mm256_permutevar8x32_epi32(register, permutation)
}

/// Returns the same register, but hides its value from the compiler, which otherwise decomposes masks and known
/// permutations into more instructions.
#[inline]
#[target_feature(enable = "avx2")]
fn opaque(mut register: __m256i) -> __m256i {
    // SAFETY: the assembly contains no instructions.
    unsafe { asm!("/* {0} */", inout(ymm_reg) register, options(pure, nomem, nostack, preserves_flags)) };
    register
}

/// Returns all ones in the lanes with a set bit.
#[inline]
#[target_feature(enable = "avx2")]
fn mask(bits: u32) -> __m256i {
    let lanes = _mm256_setr_epi64x(1, 2, 4, 8);
    let chosen = _mm256_and_si256(_mm256_set1_epi64x(bits.into()), lanes);
    opaque(_mm256_cmpeq_epi64(chosen, lanes))
}

impl Avx2 {
    /// Stores the words to memory. Extracting them from the registers would occupy the ports that the rounds need.
    #[inline(always)]
    unsafe fn words(self) -> Words {
        let mut words = Words([0; LANES]);
        // SAFETY: the caller guarantees the CPU features.
        unsafe { self.store(&mut words) };
        words
    }
}

/// Returns one of the words, read from memory.
#[inline(always)]
fn word(words: &Words, lane: usize) -> u64 {
    // SAFETY: a volatile read through a valid reference; volatile keeps the compiler from replacing the load.
    unsafe { read_volatile(&words.0[lane]) }
}

/// Functions of two vectors that take one instruction for each register.
macro_rules! binary {
    ($($name:ident = $instruction:ident,)*) => {$(
        #[inline(always)]
        unsafe fn $name(self, other: Self) -> Self {
            // SAFETY: the caller guarantees the CPU features.
            unsafe { Avx2($instruction(self.0, other.0), $instruction(self.1, other.1)) }
        }
    )*};
}

impl Vector for Avx2 {
    const LANES: usize = LANES;
    type Mask = Avx2;

    binary! {
        add = _mm256_add_epi64,
        subtract = _mm256_sub_epi64,
        xor = _mm256_xor_si256,
        or = _mm256_or_si256,
        and = _mm256_and_si256,
        shift_right_by = _mm256_srlv_epi64,
        // For 32-bit integers, because AVX2 has none for 64 bits.
        minimum = _mm256_min_epu32,
    }

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        let register = unsafe { _mm256_set1_epi64x(word.cast_signed()) };
        Avx2(register, register)
    }

    #[inline(always)]
    unsafe fn load(words: &Words) -> Self {
        // SAFETY: eight words; the caller guarantees the CPU features.
        unsafe { Self::load_unaligned(words.0.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn store(self, words: &mut Words) {
        // SAFETY: eight words; the caller guarantees the CPU features.
        unsafe { self.store_unaligned(words.0.as_mut_ptr()) }
    }

    #[inline(always)]
    unsafe fn load_unaligned(words: *const u64) -> Self {
        // SAFETY: the caller guarantees the words and the CPU features.
        unsafe { Avx2(_mm256_loadu_si256(words.cast()), _mm256_loadu_si256(words.add(HALF).cast())) }
    }

    #[inline(always)]
    unsafe fn store_unaligned(self, words: *mut u64) {
        // SAFETY: the caller guarantees the words and the CPU features.
        unsafe {
            _mm256_storeu_si256(words.cast(), self.0);
            _mm256_storeu_si256(words.add(HALF).cast(), self.1);
        }
    }

    #[inline(always)]
    unsafe fn gather(addresses: Self) -> Self {
        // SAFETY: the caller guarantees the addresses and the CPU features.
        unsafe {
            let words = addresses.words();
            let read = |lane| with_exposed_provenance::<i64>(word(&words, lane) as usize).read_unaligned();
            let low = _mm256_setr_epi64x(read(0), read(1), read(2), read(3));
            let high = _mm256_setr_epi64x(read(4), read(5), read(6), read(7));
            Avx2(low, high)
        }
    }

    #[inline(always)]
    unsafe fn scatter_pairs(self, second: Self, start: *mut u64, offsets: Self, bits: u32) {
        // SAFETY: the caller guarantees the places and the CPU features.
        unsafe {
            let offsets = offsets.words();
            let store = |lane: usize, pair| {
                if bits == all::<Self>() || bits >> lane & 1 == 1 {
                    _mm_storeu_si128(start.add(word(&offsets, lane) as usize).cast(), pair);
                }
            };
            for (first_lane, words, seconds) in [(0, self.0, second.0), (HALF, self.1, second.1)] {
                let even = _mm256_unpacklo_epi64(words, seconds);
                let odd = _mm256_unpackhi_epi64(words, seconds);
                store(first_lane, _mm256_castsi256_si128(even));
                store(first_lane + 1, _mm256_castsi256_si128(odd));
                store(first_lane + 2, _mm256_extracti128_si256::<1>(even));
                store(first_lane + 3, _mm256_extracti128_si256::<1>(odd));
            }
        }
    }

    #[inline(always)]
    unsafe fn shift_left_by(self, bits: Self) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { Avx2(_mm256_sllv_epi64(self.0, opaque(bits.0)), _mm256_sllv_epi64(self.1, opaque(bits.1))) }
    }

    #[inline(always)]
    unsafe fn without(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { Avx2(_mm256_andnot_si256(other.0, self.0), _mm256_andnot_si256(other.1, self.1)) }
    }

    #[inline(always)]
    unsafe fn rotate_left<const BITS: i32>(self) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { Avx2(rotate_left::<BITS>(self.0), rotate_left::<BITS>(self.1)) }
    }

    #[inline(always)]
    unsafe fn shift_left<const BITS: i32>(self) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { Avx2(_mm256_slli_epi64::<BITS>(self.0), _mm256_slli_epi64::<BITS>(self.1)) }
    }

    #[inline(always)]
    unsafe fn shift_right<const BITS: i32>(self) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { Avx2(_mm256_srli_epi64::<BITS>(self.0), _mm256_srli_epi64::<BITS>(self.1)) }
    }

    #[inline(always)]
    unsafe fn second_byte(self) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { Avx2(_mm256_srli_epi64::<8>(self.0), _mm256_srli_epi64::<8>(self.1)).and(Self::splat(0xff)) }
    }

    #[inline(always)]
    unsafe fn any_byte_above(self, limits: Self) -> bool {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            let excess = Avx2(_mm256_subs_epu8(self.0, limits.0), _mm256_subs_epu8(self.1, limits.1));
            let either = _mm256_or_si256(excess.0, excess.1);
            _mm256_testz_si256(either, either) == 0
        }
    }

    #[inline(always)]
    unsafe fn below(self, other: Self) -> Avx2 {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { Avx2(opaque(_mm256_cmpgt_epi64(other.0, self.0)), opaque(_mm256_cmpgt_epi64(other.1, self.1))) }
    }

    #[inline(always)]
    unsafe fn equal(self, other: Self) -> Avx2 {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { Avx2(opaque(_mm256_cmpeq_epi64(self.0, other.0)), opaque(_mm256_cmpeq_epi64(self.1, other.1))) }
    }

    #[inline(always)]
    unsafe fn bits(mask: Avx2) -> u32 {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            let low = _mm256_movemask_pd(_mm256_castsi256_pd(mask.0));
            let high = _mm256_movemask_pd(_mm256_castsi256_pd(mask.1));
            (low | high << HALF).cast_unsigned()
        }
    }

    #[inline(always)]
    unsafe fn replace(self, mask: Avx2, other: Self) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { Avx2(_mm256_blendv_epi8(self.0, other.0, mask.0), _mm256_blendv_epi8(self.1, other.1, mask.1)) }
    }

    #[inline(always)]
    unsafe fn only(self, mask: Avx2) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { self.and(mask) }
    }

    #[inline(always)]
    unsafe fn compress(self, bits: u32, words: *mut u64) {
        let (low, high) = (bits & LOW, bits >> HALF);
        // SAFETY: the caller guarantees the words and the CPU features.
        unsafe {
            _mm256_storeu_si256(words.cast(), permute(self.0, &COMPRESS, low));
            let words = words.add(low.count_ones() as usize);
            _mm256_storeu_si256(words.cast(), permute(self.1, &COMPRESS, high));
        }
    }

    #[inline(always)]
    unsafe fn expand(self, bits: u32, next: *const u64) -> Self {
        let (low, high) = (bits & LOW, bits >> HALF);
        // SAFETY: the caller guarantees the words and the CPU features.
        unsafe {
            let first = permute(_mm256_loadu_si256(next.cast()), &EXPAND, low);
            let next = next.add(low.count_ones() as usize);
            let second = permute(_mm256_loadu_si256(next.cast()), &EXPAND, high);
            self.replace(Avx2(mask(low), mask(high)), Avx2(first, second))
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate_left<const BITS: i32>(register: __m256i) -> __m256i {
    /// Byte indexes that rotate each 64-bit word by 16.
    const BY_16: [i64; 2] = [0x0504_0302_0100_0706, 0x0d0c_0b0a_0908_0f0e];
    match BITS {
        16 => {
            let bytes = opaque(_mm256_setr_epi64x(BY_16[0], BY_16[1], BY_16[0], BY_16[1]));
            _mm256_shuffle_epi8(register, bytes)
        }
        32 => _mm256_shuffle_epi32::<0b10_11_00_01>(register),
        _ => {
            let left = _mm256_sllv_epi64(register, _mm256_set1_epi64x(BITS.into()));
            let right = _mm256_srlv_epi64(register, _mm256_set1_epi64x((64 - BITS).into()));
            _mm256_or_si256(left, right)
        }
    }
}
