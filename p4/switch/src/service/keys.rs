//! Matches on keys of tables and fields of value sets, in P4Runtime's encoding.

use namehop_p4_lang::interpret::table::Match;
use namehop_p4_lang::value::{self, Value};
use namehop_p4runtime::Status;
use namehop_p4runtime::info::{self, match_field::MatchType};
use namehop_p4runtime::message::FieldMatch;
use namehop_p4runtime::message::field_match::FieldMatchType as FieldKind;
use num_bigint::BigInt;

use super::bits;

/// Decodes the match on a key of `of`, a table or value set.
pub(super) fn key_match(
    of: &dyn Fn() -> String,
    field: &info::MatchField,
    is_signed: bool,
    given: Option<&FieldMatch>,
) -> Result<Match, Status> {
    let width = field.bitwidth as u32;
    let what = || format!("{}, key {}", of(), field.name);
    let bad = |reason: &str| Status::invalid_argument(format!("{}: {reason}", what()));
    let read = |bytes: &[u8]| bits::read(&what, bytes, width);
    let Some(given) = given else {
        return match field.match_type() {
            MatchType::Exact => Err(bad("an exact key needs a value")),
            MatchType::Lpm => Ok(Match::Prefix(0.into(), 0.into(), 0)),
            _ => Ok(Match::Any),
        };
    };
    match (field.match_type(), &given.field_match_type) {
        (MatchType::Exact, Some(FieldKind::Exact(exact))) => Ok(Match::Exact(Value::Int(read(&exact.value)?))),
        (MatchType::Optional, Some(FieldKind::Optional(exact))) => {
            Ok(Match::Masked(read(&exact.value)?, value::mask(width)))
        }
        (MatchType::Lpm, Some(FieldKind::Lpm(prefix))) => {
            let length = u32::try_from(prefix.prefix_len).ok().filter(|length| (1..=width).contains(length));
            let length = length.ok_or_else(|| bad("a prefix must have at least one bit, and not more than the key"))?;
            let (number, mask) = (read(&prefix.value)?, value::mask(length) << (width - length));
            if &number & &mask != number {
                return Err(bad("bits after the prefix are set"));
            }
            Ok(Match::Prefix(number, mask, length))
        }
        (MatchType::Ternary, Some(FieldKind::Ternary(ternary))) => {
            let (number, mask) = (read(&ternary.value)?, read(&ternary.mask)?);
            if mask == BigInt::from(0) {
                return Err(bad("the mask is zero: omit the key"));
            }
            if &number & &mask != number {
                return Err(bad("bits are set that the mask excludes"));
            }
            Ok(Match::Masked(number, mask))
        }
        (MatchType::Range, Some(FieldKind::Range(range))) => {
            let bound = |bytes: &[u8]| Ok::<_, Status>(value::wrap(&read(bytes)?, width, is_signed));
            let (low, high) = (bound(&range.low)?, bound(&range.high)?);
            if low > high {
                return Err(bad("the range is empty"));
            }
            if (&low, &high) == (&value::limits(width, is_signed).0, &value::limits(width, is_signed).1) {
                return Err(bad("the range covers all values: omit the key"));
            }
            Ok(Match::Range(low, high))
        }
        _ => Err(bad("the value does not have the key's match kind")),
    }
}
