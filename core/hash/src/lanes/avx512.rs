//! Eight names at a time with AVX-512 (F and BW).

use std::arch::x86_64::*;
use std::ptr::null;

use super::group;
use super::vector::{Vector, Words};
use crate::{HashKey, PrefixHashes};

/// See [`group::hash_names`].
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
pub(super) fn hash_names(key: &HashKey, names: &[&[u8]], out: &mut [PrefixHashes]) {
    // SAFETY: this function is compiled and called only for CPUs with these instructions.
    unsafe { group::hash_names::<Avx512>(key, names, out) }
}

#[derive(Clone, Copy)]
struct Avx512(__m512i);

/// Functions of two vectors that take one instruction.
macro_rules! binary {
    ($($name:ident = $instruction:ident,)*) => {$(
        #[inline(always)]
        unsafe fn $name(self, other: Self) -> Self {
            // SAFETY: the caller guarantees the CPU features.
            Avx512(unsafe { $instruction(self.0, other.0) })
        }
    )*};
}

impl Vector for Avx512 {
    const LANES: usize = 8;
    type Mask = __mmask8;

    binary! {
        add = _mm512_add_epi64,
        subtract = _mm512_sub_epi64,
        xor = _mm512_xor_si512,
        or = _mm512_or_si512,
        and = _mm512_and_si512,
        shift_left_by = _mm512_sllv_epi64,
        shift_right_by = _mm512_srlv_epi64,
        // For 32-bit integers, because there is no fast one for 64 bits.
        minimum = _mm512_min_epu32,
    }

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        Avx512(unsafe { _mm512_set1_epi64(word.cast_signed()) })
    }

    #[inline(always)]
    unsafe fn load(words: &Words) -> Self {
        // SAFETY: eight aligned words; the caller guarantees the CPU features.
        Avx512(unsafe { _mm512_load_si512(words.0.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, words: &mut Words) {
        // SAFETY: eight aligned words; the caller guarantees the CPU features.
        unsafe { _mm512_store_si512(words.0.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn load_unaligned(words: *const u64) -> Self {
        // SAFETY: the caller guarantees the words and the CPU features.
        Avx512(unsafe { _mm512_loadu_si512(words.cast()) })
    }

    #[inline(always)]
    unsafe fn store_unaligned(self, words: *mut u64) {
        // SAFETY: the caller guarantees the words and the CPU features.
        unsafe { _mm512_storeu_si512(words.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn gather(addresses: Self) -> Self {
        // SAFETY: the caller guarantees the addresses and the CPU features.
        Avx512(unsafe { _mm512_i64gather_epi64::<1>(addresses.0, null()) })
    }

    #[inline(always)]
    unsafe fn scatter_pairs(self, second: Self, start: *mut u64, offsets: Self, bits: u32) {
        // SAFETY: the caller guarantees the places and the CPU features.
        unsafe {
            _mm512_mask_i64scatter_epi64::<8>(start.cast(), bits as __mmask8, offsets.0, self.0);
            _mm512_mask_i64scatter_epi64::<8>(start.add(1).cast(), bits as __mmask8, offsets.0, second.0);
        }
    }

    #[inline(always)]
    unsafe fn without(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        Avx512(unsafe { _mm512_andnot_si512(other.0, self.0) })
    }

    #[inline(always)]
    unsafe fn rotate_left<const BITS: i32>(self) -> Self {
        // Rotations keep one of the two vector ports busy; a shuffle uses the other.
        // SAFETY: the caller guarantees the CPU features.
        Avx512(unsafe {
            if BITS == 32 { _mm512_shuffle_epi32::<_MM_PERM_CDAB>(self.0) } else { _mm512_rol_epi64::<BITS>(self.0) }
        })
    }

    #[inline(always)]
    unsafe fn shift_left<const BITS: i32>(self) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        Avx512(unsafe { _mm512_sll_epi64(self.0, _mm_cvtsi32_si128(BITS)) })
    }

    #[inline(always)]
    unsafe fn shift_right<const BITS: i32>(self) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        Avx512(unsafe { _mm512_srl_epi64(self.0, _mm_cvtsi32_si128(BITS)) })
    }

    #[inline(always)]
    unsafe fn second_byte(self) -> Self {
        // Bytes 1 and 9 of each 128-bit piece; an index with the highest bit set gives zero.
        const LOW: i64 = 0x8080_8080_8080_8001_u64.cast_signed();
        const HIGH: i64 = 0x8080_8080_8080_8009_u64.cast_signed();
        // SAFETY: the caller guarantees the CPU features.
        Avx512(unsafe { _mm512_shuffle_epi8(self.0, _mm512_set4_epi64(HIGH, LOW, HIGH, LOW)) })
    }

    #[inline(always)]
    unsafe fn any_byte_above(self, limits: Self) -> bool {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { _mm512_cmpgt_epu8_mask(self.0, limits.0) != 0 }
    }

    #[inline(always)]
    unsafe fn below(self, other: Self) -> __mmask8 {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { _mm512_cmplt_epu64_mask(self.0, other.0) }
    }

    #[inline(always)]
    unsafe fn equal(self, other: Self) -> __mmask8 {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { _mm512_cmpeq_epu64_mask(self.0, other.0) }
    }

    #[inline(always)]
    unsafe fn bits(mask: __mmask8) -> u32 {
        u32::from(mask)
    }

    #[inline(always)]
    unsafe fn replace(self, mask: __mmask8, other: Self) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        Avx512(unsafe { _mm512_mask_mov_epi64(self.0, mask, other.0) })
    }

    #[inline(always)]
    unsafe fn only(self, mask: __mmask8) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        Avx512(unsafe { _mm512_maskz_mov_epi64(mask, self.0) })
    }

    #[inline(always)]
    unsafe fn compress(self, bits: u32, words: *mut u64) {
        // Compressing in a register and storing all of it is faster than storing the chosen ones.
        // SAFETY: the caller guarantees the words and the CPU features.
        unsafe {
            let compressed = _mm512_maskz_compress_epi64(bits as __mmask8, self.0);
            _mm512_storeu_si512(words.cast(), compressed);
        }
    }

    #[inline(always)]
    unsafe fn expand(self, bits: u32, next: *const u64) -> Self {
        // SAFETY: the caller guarantees the words and the CPU features.
        Avx512(unsafe { _mm512_mask_expand_epi64(self.0, bits as __mmask8, _mm512_loadu_si512(next.cast())) })
    }
}
