//! Run-time and constant values, and arithmetic on integers of fixed width.

use std::borrow::Cow;
use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};

use crate::syntax::ast::Binary;
use crate::syntax::number::MAX_WIDTH;

/// A value. Its type is known from the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// Integers of all types, and serializable enums.
    Int(BigInt),
    /// The first `bits` bits, as an unsigned number.
    Varbit {
        /// Number of bits.
        bits: u32,
        /// The bits as a number.
        value: BigInt,
    },
    /// A member of an enum, an error or a match kind, by its number.
    Member(u32),
    /// A text.
    Text(Arc<str>),
    /// A header.
    Header {
        /// False if it is invalid.
        valid: bool,
        /// Its fields.
        fields: Vec<Value>,
    },
    /// Structs, tuples, lists and header unions.
    Struct(Vec<Value>),
    /// A header stack.
    Stack {
        /// Index of its next element.
        next: usize,
        /// Its elements.
        elements: Vec<Value>,
    },
    /// An instance of an extern, a parser or a control.
    Object(usize),
    /// For packets, and for everything without a value.
    None,
}

impl Value {
    /// The integer, or 0 for other values.
    pub fn int(&self) -> BigInt {
        match self {
            Value::Int(value) | Value::Varbit { value, .. } => value.clone(),
            Value::Bool(value) => BigInt::from(u8::from(*value)),
            Value::Member(number) => BigInt::from(*number),
            _ => BigInt::zero(),
        }
    }

    /// Like `int`, without a copy if possible.
    pub fn as_int(&self) -> Cow<'_, BigInt> {
        match self {
            Value::Int(value) | Value::Varbit { value, .. } => Cow::Borrowed(value),
            other => Cow::Owned(other.int()),
        }
    }

    /// The integer as a machine word; a larger one becomes the largest word.
    pub fn number(&self) -> u64 {
        self.int().to_u64().unwrap_or(u64::MAX)
    }

    /// Returns the truth value; false for other values.
    pub fn truth(&self) -> bool {
        matches!(self, Value::Bool(true))
    }
}

/// 2 to the power of `width`, less one.
pub fn mask(width: u32) -> BigInt {
    match width {
        0 => BigInt::zero(),
        // Fast path: tables are filled with millions of keys of such widths.
        1..=128 => BigInt::from(u128::MAX >> (128 - width)),
        _ => (BigInt::one() << width) - 1,
    }
}

/// True if a number fits into `width` bits; a negative one in two's complement.
pub fn fits(number: &BigInt, width: u32) -> bool {
    if number.is_negative() {
        -number <= BigInt::one() << width.saturating_sub(1)
    } else {
        number.bits() <= u64::from(width)
    }
}

/// The value of an integer type that has the same low bits.
pub fn wrap(value: &BigInt, width: u32, signed: bool) -> BigInt {
    let low = value & mask(width);
    if signed && width > 0 && low.bit(u64::from(width) - 1) { low - (BigInt::one() << width) } else { low }
}

/// The smallest and the largest value of an integer type.
pub fn limits(width: u32, signed: bool) -> (BigInt, BigInt) {
    if signed && width > 0 {
        let half = BigInt::one() << (width - 1);
        (-half.clone(), half - 1)
    } else {
        (BigInt::zero(), mask(width))
    }
}

/// Applies an operator to two integers of the same type; `ty` is width and sign, `None` for integers of arbitrary size.
/// In shifts, the right operand has its own type. The error says why there is no result.
pub fn arithmetic(
    operator: Binary,
    left: &BigInt,
    right: &BigInt,
    ty: Option<(u32, bool)>,
) -> Result<BigInt, &'static str> {
    let fits = |bits: u64| if bits <= u64::from(MAX_WIDTH) { Ok(()) } else { Err("the result is too large") };
    let raw = match operator {
        Binary::Add | Binary::SaturatingAdd => left + right,
        Binary::Sub | Binary::SaturatingSub => left - right,
        Binary::Mul => {
            if ty.is_none() {
                fits(left.bits() + right.bits())?;
            }
            left * right
        }
        Binary::Div if right.is_zero() => return Err("division by zero"),
        Binary::Mod if right.is_zero() => return Err("remainder of a division by zero"),
        Binary::Div | Binary::Mod if ty.is_none() && (left.is_negative() || right.is_negative()) => {
            return Err("division of negative numbers is not defined");
        }
        Binary::Div => left / right,
        Binary::Mod => left % right,
        Binary::Shl => {
            let shift = right.to_u64().unwrap_or(u64::MAX);
            match ty {
                Some((width, _)) if shift >= u64::from(width) => BigInt::zero(),
                _ => {
                    fits(left.bits().saturating_add(shift))?;
                    left << shift
                }
            }
        }
        Binary::Shr => left >> right.to_u64().unwrap_or(u64::MAX).min(u64::from(MAX_WIDTH) * 2),
        Binary::BitAnd => left & right,
        Binary::BitOr => left | right,
        Binary::BitXor => left ^ right,
        _ => return Err("this operator is not arithmetic"),
    };
    let Some((width, signed)) = ty else { return Ok(raw) };
    if matches!(operator, Binary::SaturatingAdd | Binary::SaturatingSub) {
        let (low, high) = limits(width, signed);
        return Ok(raw.clamp(low, high));
    }
    Ok(wrap(&raw, width, signed))
}

/// Comparison of two integers.
pub fn compare(operator: Binary, left: &BigInt, right: &BigInt) -> bool {
    match operator {
        Binary::Less => left < right,
        Binary::LessEqual => left <= right,
        Binary::Greater => left > right,
        Binary::GreaterEqual => left >= right,
        Binary::NotEqual => left != right,
        _ => left == right,
    }
}

/// Bits `high` to `low` of a value, as an unsigned number.
pub fn slice(value: &BigInt, high: u32, low: u32) -> BigInt {
    (value >> low) & mask(high - low + 1)
}
