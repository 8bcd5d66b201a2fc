//! Values in cells of registers and in digests.

use namehop_p4_compile::layout::Leaf;
use namehop_p4_lang::value;
use num_bigint::{BigInt, Sign};

/// The value of a part of a cell; bits outside of the part are masked out.
pub fn read_leaf(leaf: &Leaf, cell: &[u8]) -> BigInt {
    let bytes = cell.get(leaf.offset..leaf.offset + leaf.size).unwrap_or_default();
    BigInt::from_bytes_le(Sign::Plus, bytes) & value::mask(leaf.width)
}

/// Writes a part of a cell; the number must fit.
pub fn write_leaf(leaf: &Leaf, cell: &mut [u8], number: &BigInt) {
    let extended = value::wrap(&value::wrap(number, leaf.width, leaf.signed), leaf.size as u32 * 8, false);
    let mut bytes = extended.magnitude().to_bytes_le();
    bytes.resize(leaf.size, 0);
    if let Some(to) = cell.get_mut(leaf.offset..leaf.offset + leaf.size) {
        to.copy_from_slice(&bytes);
    }
}

/// The parts of a digest, which are packed one behind the other.
pub fn unpack(leaves: &[Leaf], bytes: &[u8]) -> Vec<BigInt> {
    let mut left: u32 = leaves.iter().map(|leaf| leaf.width).sum();
    let all = BigInt::from_bytes_be(Sign::Plus, bytes) >> (bytes.len() as u32 * 8).saturating_sub(left);
    let number = |leaf: &Leaf| {
        left -= leaf.width;
        (&all >> left) & value::mask(leaf.width)
    };
    leaves.iter().map(number).collect()
}
