//! Numbers in P4Runtime's encoding, and values of cells and digests with their parts.

use namehop_p4_lang::entry_text::integer;
use namehop_p4_lang::value;
use namehop_p4runtime::info::p4_bitstring_like_type_spec::TypeSpec as BitstringKind;
use namehop_p4runtime::info::p4_data_type_spec::TypeSpec;
use namehop_p4runtime::info::{P4DataTypeSpec, P4Info};
use namehop_p4runtime::message::p4_data::Data;
use namehop_p4runtime::message::{P4Data, P4StructLike};
use num_bigint::{BigInt, Sign};
use serde_json::{Map, Value};

/// Encodes a number that is not negative: big-endian bytes without leading zeros.
pub(crate) fn encoded(number: &BigInt) -> Vec<u8> {
    number.magnitude().to_bytes_be()
}

/// Decodes a number.
pub(crate) fn decoded(bytes: &[u8]) -> BigInt {
    BigInt::from_bytes_be(Sign::Plus, bytes)
}

/// The type of a cell or a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Bool,
    /// An integer of this width in bits.
    Bits(u32),
    /// Names and types of its members; a member of a tuple is named by its index.
    Struct(Vec<(String, Shape)>),
    /// As a struct.
    Tuple(Vec<(String, Shape)>),
}

impl Shape {
    /// The type that p4info describes; `None` if it is not known.
    pub(crate) fn of(info: &P4Info, spec: Option<&P4DataTypeSpec>) -> Option<Shape> {
        Some(match spec?.type_spec.as_ref()? {
            TypeSpec::Bool(_) => Shape::Bool,
            TypeSpec::Bitstring(bits) => Shape::Bits(match bits.type_spec.as_ref()? {
                BitstringKind::Bit(bit) => bit.bitwidth as u32,
                BitstringKind::Int(int) => int.bitwidth as u32,
            }),
            TypeSpec::Tuple(tuple) => {
                let member = |(place, spec): (usize, _)| Some((place.to_string(), Shape::of(info, Some(spec))?));
                Shape::Tuple(tuple.members.iter().enumerate().map(member).collect::<Option<_>>()?)
            }
            TypeSpec::Struct(named) => {
                let members = &info.type_info.as_ref()?.structs.get(&named.name)?.members;
                let member = |member: &namehop_p4runtime::info::p4_struct_type_spec::Member| {
                    Some((member.name.clone(), Shape::of(info, member.type_spec.as_ref())?))
                };
                Shape::Struct(members.iter().map(member).collect::<Option<_>>()?)
            }
        })
    }

    /// The scalar parts of a value: names such as `struct.member`, and widths in bits. The name of a scalar is empty.
    pub(crate) fn leaves(&self) -> Vec<(String, u32)> {
        match self {
            Shape::Bool => vec![(String::new(), 1)],
            Shape::Bits(width) => vec![(String::new(), *width)],
            Shape::Struct(members) | Shape::Tuple(members) => {
                let of = |(name, shape): &(String, Shape)| {
                    let join = |inner: String| if inner.is_empty() { name.clone() } else { format!("{name}.{inner}") };
                    shape.leaves().into_iter().map(|(inner, width)| (join(inner), width)).collect::<Vec<_>>()
                };
                members.iter().flat_map(of).collect()
            }
        }
    }

    /// Makes a value of its scalar parts. Parts that are `None` have no data, so a write leaves them unchanged.
    pub(crate) fn data(&self, parts: &mut impl Iterator<Item = Option<BigInt>>) -> P4Data {
        let data = match self {
            Shape::Bool => parts.next().flatten().map(|number| Data::Bool(number != BigInt::from(0))),
            Shape::Bits(_) => parts.next().flatten().map(|number| Data::Bitstring(encoded(&number))),
            Shape::Struct(members) => Some(Data::Struct(all(members, parts))),
            Shape::Tuple(members) => Some(Data::Tuple(all(members, parts))),
        };
        P4Data { data }
    }

    /// The value as JSON: a number as text, or an object with one member for each scalar part.
    pub(crate) fn json(&self, data: &P4Data) -> Value {
        let mut numbers = Vec::new();
        collect(data, &mut numbers);
        let text = |number: &BigInt| Value::from(format!("{number:#x}"));
        let leaves = self.leaves();
        match (&leaves[..], &numbers[..]) {
            ([(name, _)], [number]) if name.is_empty() => text(number),
            _ => {
                let parts = leaves.into_iter().zip(&numbers).map(|((name, _), number)| (name, text(number)));
                parts.collect::<Map<_, _>>().into()
            }
        }
    }
}

fn all(members: &[(String, Shape)], parts: &mut impl Iterator<Item = Option<BigInt>>) -> P4StructLike {
    let mut made = Vec::new();
    for (_, member) in members {
        // The type of the iterator must not grow with each level.
        let mut parts: &mut dyn Iterator<Item = Option<BigInt>> = parts;
        made.push(member.data(&mut parts));
    }
    P4StructLike { members: made }
}

/// Appends the scalar parts of a value.
fn collect(data: &P4Data, into: &mut Vec<BigInt>) {
    match &data.data {
        Some(Data::Bitstring(bytes)) => into.push(decoded(bytes)),
        Some(Data::Bool(truth)) => into.push(BigInt::from(u8::from(*truth))),
        Some(Data::Tuple(list) | Data::Struct(list)) => list.members.iter().for_each(|member| collect(member, into)),
        None => into.push(BigInt::from(0)),
    }
}

/// True if all scalar parts are zero.
pub(crate) fn is_zero(data: &P4Data) -> bool {
    let mut numbers = Vec::new();
    collect(data, &mut numbers);
    numbers.iter().all(|number| *number == BigInt::from(0))
}

/// Parses values written as `VALUE` or `PART:VALUE …` for a cell of a register. Parts that are not named keep their
/// values.
///
/// # Errors
/// Returns what is wrong with a value.
pub(crate) fn written(path: &str, shape: &Shape, values: &[String]) -> Result<P4Data, String> {
    let leaves = shape.leaves();
    let mut parts: Vec<Option<BigInt>> = vec![None; leaves.len()];
    for text in values {
        let (place, number) = match &leaves[..] {
            [(name, _)] if name.is_empty() => (0, text.as_str()),
            _ => {
                let named = text
                    .split_once(':')
                    .and_then(|(name, number)| Some((leaves.iter().position(|(leaf, _)| leaf == name)?, number)));
                named.ok_or_else(|| {
                    let names: Vec<&str> = leaves.iter().map(|(name, _)| &**name).collect();
                    let names = names.join(", ");
                    format!("register {path}: '{text}' must be PART:VALUE with one of the parts {names}")
                })?
            }
        };
        let number = integer(number).map_err(|reason| format!("register {path}: {reason}"))?;
        let width = leaves[place].1;
        if number.sign() == Sign::Minus || number > value::mask(width) {
            return Err(format!("register {path}: {number} does not fit into {width} bits"));
        }
        if parts[place].replace(number).is_some() {
            return Err(format!("register {path}: a part has more than one value"));
        }
    }
    if parts.iter().all(Option::is_none) {
        return Err(format!("register {path}: a value is missing"));
    }
    Ok(shape.data(&mut parts.into_iter()))
}
