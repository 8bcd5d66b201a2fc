//! The CPU features that the group hasher needs: a vector of 64-bit words, one per lane.

/// Lanes of the widest vector.
pub(super) const MAX_LANES: usize = 8;

/// Bits of all lanes of a vector.
#[inline(always)]
pub(super) const fn all<V: Vector>() -> u32 {
    (1 << V::LANES) - 1
}

/// One word per lane in memory. A vector with fewer lanes uses the first words only.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Words(pub(super) [u64; MAX_LANES]);

/// A vector of 64-bit words, one per lane.
///
/// The functions are inlined into a function that is compiled for the instructions they use.
///
/// # Safety
/// Every function requires that the CPU has the vector's instructions; some require more.
pub(super) trait Vector: Copy {
    /// Words in the vector.
    const LANES: usize;
    /// A set of lanes.
    type Mask: Copy;

    /// The same word in every lane.
    unsafe fn splat(word: u64) -> Self;
    unsafe fn load(words: &Words) -> Self;
    unsafe fn store(self, words: &mut Words);
    /// # Safety
    /// A word for each lane can be read at `words`.
    unsafe fn load_unaligned(words: *const u64) -> Self;
    /// # Safety
    /// A word for each lane can be written at `words`.
    unsafe fn store_unaligned(self, words: *mut u64);
    /// Returns the eight bytes at each address, little-endian.
    ///
    /// # Safety
    /// They can be read.
    unsafe fn gather(addresses: Self) -> Self;
    /// For the lanes with a set bit, stores the word of `self` and then that of `second` at the lane's place, an
    /// offset from `start` in words.
    ///
    /// # Safety
    /// Two words at each place can be written.
    unsafe fn scatter_pairs(self, second: Self, start: *mut u64, offsets: Self, bits: u32);

    unsafe fn add(self, other: Self) -> Self;
    unsafe fn subtract(self, other: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn or(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    /// The bits of `self` that are not in `other`.
    unsafe fn without(self, other: Self) -> Self;
    unsafe fn rotate_left<const BITS: i32>(self) -> Self;
    unsafe fn shift_left<const BITS: i32>(self) -> Self;
    unsafe fn shift_right<const BITS: i32>(self) -> Self;
    /// Shifts each lane by its own number of bits; a shift by 64 or more gives 0.
    unsafe fn shift_left_by(self, bits: Self) -> Self;
    /// As [`shift_left_by`](Self::shift_left_by), to the right.
    unsafe fn shift_right_by(self, bits: Self) -> Self;
    /// Returns the minimum in each lane. All values are below 2^32.
    unsafe fn minimum(self, other: Self) -> Self;
    /// Returns the second-lowest byte of each word, as an integer.
    unsafe fn second_byte(self) -> Self;
    /// Returns true if any byte is larger than the one in `limits`.
    unsafe fn any_byte_above(self, limits: Self) -> bool;
    /// Returns the lanes in which `self` is smaller. All values are below 2^63.
    unsafe fn below(self, other: Self) -> Self::Mask;
    unsafe fn equal(self, other: Self) -> Self::Mask;
    /// Returns a mask: bit i is set if lane i is chosen.
    unsafe fn bits(mask: Self::Mask) -> u32;
    /// Returns `other` in the chosen lanes, `self` elsewhere.
    unsafe fn replace(self, mask: Self::Mask, other: Self) -> Self;
    /// Returns zero in the lanes that are not chosen, `self` elsewhere.
    unsafe fn only(self, mask: Self::Mask) -> Self;
    /// Stores the lanes with a set bit in consecutive words; the words after them become undefined.
    ///
    /// # Safety
    /// A word for each lane can be written.
    unsafe fn compress(self, bits: u32, words: *mut u64);
    /// Returns consecutive words from `next` in the lanes with a set bit, and `self` in the others.
    ///
    /// # Safety
    /// A word for each lane can be read.
    unsafe fn expand(self, bits: u32, next: *const u64) -> Self;
}
