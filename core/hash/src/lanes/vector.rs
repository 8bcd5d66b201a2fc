//! What the group hasher needs of a processor: a vector of 64-bit words, one per lane.

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
/// Every function requires that the processor has the vector's instructions; some require more.
pub(super) trait Vector: Copy {
    /// Words in the vector.
    const LANES: usize;
    /// A choice of lanes.
    type Mask: Copy;

    /// The same word in every lane.
    unsafe fn splat(word: u64) -> Self;
    unsafe fn load(words: &Words) -> Self;
    unsafe fn store(self, words: &mut Words);
    /// # Safety
    /// `words` can be read, for as many words as there are lanes.
    unsafe fn load_unaligned(words: *const u64) -> Self;
    /// # Safety
    /// `words` can be written, for as many words as there are lanes.
    unsafe fn store_unaligned(self, words: *mut u64);
    /// The eight bytes at each address, little-endian.
    ///
    /// # Safety
    /// They can be read.
    unsafe fn gather(addresses: Self) -> Self;
    /// Stores each word of `self`, and that of `second` behind it, at its place, counted in words from `start`, for the
    /// lanes whose bits are set.
    ///
    /// # Safety
    /// Two words at each place can be written.
    unsafe fn scatter_pairs(self, second: Self, start: *mut u64, places: Self, bits: u32);

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
    /// Shifts each lane by its own number of bits; by 64 and more all are lost.
    unsafe fn shift_left_by(self, bits: Self) -> Self;
    /// As [`shift_left_by`](Self::shift_left_by), to the right.
    unsafe fn shift_right_by(self, bits: Self) -> Self;
    /// The smaller one. All are below 2^32.
    unsafe fn minimum(self, other: Self) -> Self;
    /// The second-lowest byte of each word, as a number.
    unsafe fn second_byte(self) -> Self;
    /// Is any byte larger than the one in `limits`?
    unsafe fn any_byte_above(self, limits: Self) -> bool;
    /// Where `self` is smaller. All are below 2^63.
    unsafe fn below(self, other: Self) -> Self::Mask;
    unsafe fn equal(self, other: Self) -> Self::Mask;
    /// Bit i is set if lane i is chosen.
    unsafe fn bits(mask: Self::Mask) -> u32;
    /// `other` in the chosen lanes, `self` elsewhere.
    unsafe fn replace(self, mask: Self::Mask, other: Self) -> Self;
    /// Zero in the lanes that are not chosen.
    unsafe fn only(self, mask: Self::Mask) -> Self;
    /// Stores the lanes whose bits are set one behind the other, with rubbish behind them.
    ///
    /// # Safety
    /// As many words as there are lanes can be written.
    unsafe fn compress(self, bits: u32, words: *mut u64);
    /// The words at `next`, one after the other, in the lanes whose bits are set, and `self` in the others.
    ///
    /// # Safety
    /// As many words as there are lanes can be read.
    unsafe fn expand(self, bits: u32, next: *const u64) -> Self;
}
