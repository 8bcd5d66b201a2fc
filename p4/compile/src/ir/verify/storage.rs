//! How values are stored, as far as the intermediate representation depends on it.

use std::fmt;

use namehop_p4_lang::types::{Ty, Type, Types};
use namehop_p4_lang::value::{self, Value};

/// The storage of values of a type. Values can be assigned and compared only between types with equal storage; all else
/// takes a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    Bool,
    /// An integer, a member of an enum, or an error.
    Bits {
        width: u32,
        signed: bool,
    },
    /// Up to this many bits.
    Varbit(u32),
    /// A struct, tuple, header, union or stack: this type, without newtypes around it.
    Parts(Ty),
    /// No value, such as text.
    None,
}

/// The width of members of enums without a representation, and of errors, in bits.
const MEMBER_BITS: u32 = 32;

impl Storage {
    pub fn of(types: &Types, ty: Ty) -> Self {
        let ty = types.stripped(ty);
        match types.get(ty) {
            Type::Bool => Storage::Bool,
            Type::Bits { width, signed } => Storage::Bits { width: *width, signed: *signed },
            Type::Enum(_) | Type::Error | Type::MatchKind => {
                let (width, signed) = types.representation(ty).unwrap_or((MEMBER_BITS, false));
                Storage::Bits { width, signed }
            }
            Type::Varbit(most) => Storage::Varbit(*most),
            Type::Struct(_) | Type::Tuple(_) | Type::Stack(..) | Type::Record(_) => Storage::Parts(ty),
            _ => Storage::None,
        }
    }

    /// The number of bits of a value with a fixed width; `None` for values without bits or with parts.
    pub fn width(self) -> Option<u32> {
        match self {
            Storage::Bool => Some(1),
            Storage::Bits { width, .. } => Some(width),
            Storage::Varbit(_) | Storage::Parts(_) | Storage::None => None,
        }
    }

    /// True if a constant can be stored so.
    pub fn holds(self, types: &Types, value: &Value) -> bool {
        let each = |types_of: &[Ty], values: &[Value]| {
            types_of.len() == values.len()
                && types_of.iter().zip(values).all(|(ty, value)| Storage::of(types, *ty).holds(types, value))
        };
        match (self, value) {
            (Storage::Bool, Value::Bool(_)) | (Storage::None, _) => true,
            (Storage::Bits { width, signed }, Value::Int(number)) => {
                let (least, most) = value::limits(width, signed);
                (least..=most).contains(number)
            }
            (Storage::Bits { width: MEMBER_BITS, signed: false }, Value::Member(_)) => true,
            (Storage::Varbit(most), Value::Varbit { bits, .. }) => *bits <= most,
            (Storage::Parts(ty), Value::Header { fields, .. } | Value::Struct(fields)) => {
                types.components(ty).is_some_and(|components| each(&components, fields))
            }
            (Storage::Parts(ty), Value::Stack { elements, .. }) => match types.get(ty) {
                Type::Stack(element, count) => {
                    elements.len() == *count as usize
                        && elements.iter().all(|value| Storage::of(types, *element).holds(types, value))
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// For messages.
    pub fn show(self, types: &Types) -> String {
        match self {
            Storage::Parts(ty) => types.show(ty),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Storage::Bool => write!(f, "bool"),
            Storage::Bits { width, signed: false } => write!(f, "bit<{width}>"),
            Storage::Bits { width, signed: true } => write!(f, "int<{width}>"),
            Storage::Varbit(most) => write!(f, "varbit<{most}>"),
            Storage::Parts(_) => write!(f, "parts"),
            Storage::None => write!(f, "no value"),
        }
    }
}
