//! Matches on keys of tables and fields of value sets, between text and P4Runtime's encoding.

use namehop_p4_lang::entry_text::Number;
use namehop_p4_lang::value;
use namehop_p4runtime::info::MatchField;
use namehop_p4runtime::info::match_field::MatchType;
use namehop_p4runtime::message::FieldMatch;
use namehop_p4runtime::message::field_match::FieldMatchType as FieldKind;
use namehop_p4runtime::message::field_match::{Exact, Lpm, Optional, Range, Ternary};
use num_bigint::BigInt;

use super::values::{decoded, encoded};

/// A match as it is compared: value and mask, and the bounds of a range.
pub(crate) struct Bounds {
    pub(crate) value: BigInt,
    pub(crate) mask: BigInt,
    pub(crate) range: Option<(BigInt, BigInt)>,
}

/// Encodes a match on a field of `what`, a table or value set; `None` if it matches any value, which P4Runtime omits.
///
/// # Errors
/// Returns what is wrong with the number.
pub(crate) fn encode(
    what: &dyn Fn() -> String,
    field: &MatchField,
    number: Option<&Number>,
) -> Result<Option<FieldMatch>, String> {
    let width = field.bitwidth as u32;
    let refused = |reason: String| Err(format!("{}, key {}: {reason}", what(), field.name));
    let disallowed = |form: &str| refused(format!("the match kind does not allow {form}"));
    let kind = field.match_type();
    let Some(number) = number else {
        return if kind == MatchType::Exact { refused("an exact key needs a value".to_owned()) } else { Ok(None) };
    };
    let Number { value, mask, prefix } = number;
    if !value::fits(value, width) || mask.as_ref().is_some_and(|mask| !value::fits(mask, width)) {
        return refused(format!("{value} does not fit into {width} bits"));
    }
    let low = |number: &BigInt| value::wrap(number, width, false);
    let all = value::mask(width);
    let kind = match kind {
        MatchType::Exact if mask.is_some() || prefix.is_some() => return disallowed("a mask or prefix"),
        MatchType::Exact | MatchType::Unspecified => FieldKind::Exact(Exact { value: encoded(&low(value)) }),
        MatchType::Lpm => {
            let length = prefix.unwrap_or(width);
            if length > width {
                return refused(format!("a prefix of {length} bits is longer than {width} bits"));
            }
            if length == 0 {
                return Ok(None);
            }
            let value = low(value) & (value::mask(length) << (width - length));
            FieldKind::Lpm(Lpm { value: encoded(&value), prefix_len: length as i32 })
        }
        MatchType::Range => {
            if prefix.is_some() {
                return disallowed("a prefix");
            }
            let (first, last) = (low(value), low(mask.as_ref().unwrap_or(value)));
            if first == BigInt::from(0) && last == all {
                return Ok(None);
            }
            FieldKind::Range(Range { low: encoded(&first), high: encoded(&last) })
        }
        MatchType::Ternary | MatchType::Optional => {
            let mask = match prefix {
                Some(length) if *length <= width => value::mask(*length) << (width - length),
                Some(_) => return refused(format!("a prefix is longer than {width} bits")),
                None => mask.as_ref().map_or_else(|| all.clone(), low),
            };
            if mask == BigInt::from(0) {
                return Ok(None);
            }
            let value = encoded(&(low(value) & &mask));
            match kind {
                MatchType::Optional if mask != all => return disallowed("a mask"),
                MatchType::Optional => FieldKind::Optional(Optional { value }),
                _ => FieldKind::Ternary(Ternary { value, mask: encoded(&mask) }),
            }
        }
    };
    Ok(Some(FieldMatch { field_id: field.id, field_match_type: Some(kind) }))
}

/// Decodes the match on a field among all matches of an entry or member.
pub(crate) fn bounds(field: &MatchField, all: &[FieldMatch]) -> Bounds {
    let width = field.bitwidth as u32;
    let given = all.iter().find(|given| given.field_id == field.id);
    let exactly = |value: &[u8]| Bounds { value: decoded(value), mask: value::mask(width), range: None };
    match given.and_then(|given| given.field_match_type.as_ref()) {
        Some(FieldKind::Exact(exact)) => exactly(&exact.value),
        Some(FieldKind::Optional(exact)) => exactly(&exact.value),
        Some(FieldKind::Ternary(Ternary { value, mask })) => {
            Bounds { value: decoded(value), mask: decoded(mask), range: None }
        }
        Some(FieldKind::Lpm(Lpm { value, prefix_len })) => {
            let length = u32::try_from(*prefix_len).unwrap_or_default().min(width);
            Bounds { value: decoded(value), mask: value::mask(length) << (width - length), range: None }
        }
        Some(FieldKind::Range(Range { low, high })) => Bounds { range: Some((decoded(low), decoded(high))), ..any() },
        None if field.match_type() == MatchType::Range => {
            Bounds { range: Some((BigInt::from(0), value::mask(width))), ..any() }
        }
        None => any(),
    }
}

fn any() -> Bounds {
    Bounds { value: BigInt::from(0), mask: BigInt::from(0), range: None }
}

/// Formats the match on a key of an entry, in the form that can be parsed.
pub(crate) fn show(field: &MatchField, bounds: &Bounds) -> String {
    let Bounds { value, mask, range } = bounds;
    match (field.match_type(), range) {
        (_, Some((first, last))) => format!("{first:#x}..{last:#x}"),
        (MatchType::Lpm, _) => format!("{value:#x}/{}", mask.magnitude().count_ones()),
        (MatchType::Ternary | MatchType::Optional, _) => format!("{value:#x}&&&{mask:#x}"),
        _ => format!("{value:#x}"),
    }
}

/// Formats the match on a field of a value set; `*` matches any value.
pub(crate) fn show_member(field: &MatchField, all: &[FieldMatch]) -> String {
    let is_given = all.iter().any(|given| given.field_id == field.id);
    if is_given || field.match_type() == MatchType::Lpm { show(field, &bounds(field, all)) } else { "*".to_owned() }
}
