//! Converts entries between the form of the compiler and the form of compiled programs.

use namehop_p4_compile::layout;
use namehop_p4_lang::interpret::table::RuntimeEntry;
use namehop_p4_lang::value;
use num_bigint::BigInt;

use crate::program::Entry;

/// Converts an entry to the form of compiled programs.
pub fn packed(table: &layout::Table, entry: &RuntimeEntry) -> Entry {
    let layout::Packed { action, key, mask, ranges, priority, prefix, data } = layout::pack(table, entry);
    Entry { priority, prefix, action: action as u32, key, mask, ranges, data }
}

/// The argument values in an entry's action data.
pub fn values(table: &layout::Table, action: usize, data: &[u8]) -> Vec<BigInt> {
    let Some(listed) = table.actions.get(action) else { return Vec::new() };
    let bits = table.bits_of(action);
    let mut left = bits - table.cell_bits();
    let all = BigInt::from_bytes_be(num_bigint::Sign::Plus, data) >> (data.len() as u32 * 8).saturating_sub(bits);
    let value = |width: &u32| {
        left -= width;
        (&all >> left) & value::mask(*width)
    };
    listed.arguments.iter().map(value).collect()
}

/// One key of an entry: its index in the table's list, its value and mask, and the bounds of a range.
pub struct KeyOf {
    pub place: usize,
    pub value: BigInt,
    pub mask: BigInt,
    pub range: Option<(BigInt, BigInt)>,
}

/// The keys of an entry that are compared.
pub fn keys(shape: &layout::Table, entry: &Entry) -> Vec<KeyOf> {
    let (key, mask) = (number(&entry.key) >> shape.key_shift(), number(&entry.mask) >> shape.key_shift());
    let mut left = shape.key_bits();
    let mut ranges = entry.ranges.chunks(2);
    let key_of = |place: usize| {
        let described = &shape.keys[place];
        left -= described.width;
        let all = value::mask(described.width);
        let range = match (described.kind, ranges.len()) {
            (layout::Match::Range, 1..) => ranges.next().and_then(|bounds| {
                let lowest = value::limits(described.width, described.signed).0;
                let bits = |place: &u64| value::wrap(&(BigInt::from(*place) + &lowest), described.width, false);
                Some((bits(bounds.first()?), bits(bounds.last()?)))
            }),
            _ => None,
        };
        KeyOf { place, value: (&key >> left) & &all, mask: (&mask >> left) & &all, range }
    };
    shape.packed().map(key_of).collect()
}

fn number(words: &[u64]) -> BigInt {
    words.iter().rev().fold(BigInt::from(0), |number, word| (number << 64) | BigInt::from(*word))
}
