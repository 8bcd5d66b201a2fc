//! The verifier's knowledge of a value: the range of a number, or the memory that an address points into.

use std::fmt;

use crate::instruction::{Arithmetic, Condition};

/// All numbers from `min` to `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Least number.
    pub min: u64,
    /// Greatest number.
    pub max: u64,
}

impl Range {
    /// All 64-bit numbers.
    pub const ALL: Range = Range { min: 0, max: u64::MAX };

    /// The range of one number.
    pub const fn only(value: u64) -> Self {
        Range { min: value, max: value }
    }

    /// All numbers of `bytes` bytes.
    pub const fn of_bytes(bytes: u8) -> Self {
        Range { min: 0, max: u64::MAX >> (64 - 8 * bytes as u32) }
    }

    /// Returns the number, if there is just one.
    pub fn single(self) -> Option<u64> {
        (self.min == self.max).then_some(self.min)
    }

    /// Returns the smallest range that contains both.
    pub fn hull(self, other: Range) -> Range {
        Range { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    fn and(self, other: Range) -> Option<Range> {
        let both = Range { min: self.min.max(other.min), max: self.max.min(other.max) };
        (both.min <= both.max).then_some(both)
    }

    /// Returns true if all numbers are non-negative as signed numbers.
    fn is_positive(self) -> bool {
        self.max <= i64::MAX as u64
    }

    /// Returns the range of the lower 32 bits.
    pub fn low_half(self) -> Range {
        if self.max <= u64::from(u32::MAX) { self } else { Range::of_bytes(4) }
    }

    /// Returns the range of all results of a 64-bit operation.
    fn wide(self, kind: Arithmetic, other: Range) -> Range {
        let range = |min: Option<u64>, max: Option<u64>| match (min, max) {
            (Some(min), Some(max)) => Range { min, max },
            _ => Range::ALL,
        };
        // All bits up to the highest of both.
        let bits_of_both = || u64::MAX.checked_shr((self.max | other.max).leading_zeros()).unwrap_or(0);
        let distance = other.single().and_then(|distance| u32::try_from(distance).ok()).filter(|&bits| bits < 64);
        match kind {
            Arithmetic::Add => range(self.min.checked_add(other.min), self.max.checked_add(other.max)),
            Arithmetic::Subtract => range(self.min.checked_sub(other.max), self.max.checked_sub(other.min)),
            Arithmetic::Multiply => range(self.min.checked_mul(other.min), self.max.checked_mul(other.max)),
            // A division by zero gives 0, and its remainder is the dividend.
            Arithmetic::Divide if other.min == 0 => Range { min: 0, max: self.max },
            Arithmetic::Divide => Range { min: self.min / other.max, max: self.max / other.min },
            Arithmetic::Modulo if other.min == 0 => Range { min: 0, max: self.max },
            Arithmetic::Modulo => Range { min: 0, max: self.max.min(other.max - 1) },
            Arithmetic::And => Range { min: 0, max: self.max.min(other.max) },
            Arithmetic::Or => Range { min: self.min.max(other.min), max: bits_of_both() },
            Arithmetic::ExclusiveOr => Range { min: 0, max: bits_of_both() },
            Arithmetic::Move => other,
            Arithmetic::ShiftLeft => match distance {
                Some(distance) if self.max.leading_zeros() >= distance => {
                    Range { min: self.min << distance, max: self.max << distance }
                }
                _ => Range::ALL,
            },
            Arithmetic::ShiftRight => match distance {
                Some(distance) => Range { min: self.min >> distance, max: self.max >> distance },
                None => Range { min: 0, max: self.max },
            },
            Arithmetic::ShiftRightSigned if self.is_positive() => self.wide(Arithmetic::ShiftRight, other),
            Arithmetic::ShiftRightSigned => Range::ALL,
        }
    }

    /// Returns the range of all results of an operation.
    pub fn calculate(self, kind: Arithmetic, other: Range, is_wide: bool) -> Range {
        if is_wide {
            return self.wide(kind, other);
        }
        // Shifts use the distance modulo the width.
        let is_shift = matches!(kind, Arithmetic::ShiftLeft | Arithmetic::ShiftRight | Arithmetic::ShiftRightSigned);
        let other = if is_shift && other.max >= 32 { Range::of_bytes(4) } else { other.low_half() };
        let left = self.low_half();
        if kind == Arithmetic::ShiftRightSigned && left.max > i32::MAX as u64 {
            return Range::of_bytes(4);
        }
        left.wide(kind, other).low_half()
    }

    /// Returns the range of all results of a negation.
    pub fn negate(self, is_wide: bool) -> Range {
        let negated =
            |value: u64| if is_wide { value.wrapping_neg() } else { u64::from((value as u32).wrapping_neg()) };
        match self.single() {
            Some(value) => Range::only(negated(value)),
            None => Range::of_bytes(if is_wide { 8 } else { 4 }),
        }
    }

    /// Returns the ranges of both sides if a comparison of the lower halves holds; `None` if it never holds. Ranges
    /// with more than a lower half, or with the sign bit of 32 bits in a signed comparison, are returned unchanged.
    pub fn when_32(self, condition: Condition, other: Range) -> Option<(Range, Range)> {
        let limit = if is_signed(condition) { i32::MAX as u64 } else { u64::from(u32::MAX) };
        match self.max <= limit && other.max <= limit {
            true => self.when(condition, other),
            false => Some((self, other)),
        }
    }

    /// Returns the ranges of both sides if a comparison holds; `None` if it never holds.
    pub fn when(self, condition: Condition, other: Range) -> Option<(Range, Range)> {
        let (left, right) = (self, other);
        match condition {
            Condition::Equal => left.and(right).map(|both| (both, both)),
            Condition::NotEqual => {
                let without = |range: Range, excluded: Range| match excluded.single() {
                    Some(value) if range == Range::only(value) => None,
                    Some(value) if value == range.min => Some(Range { min: range.min + 1, ..range }),
                    Some(value) if value == range.max => Some(Range { max: range.max - 1, ..range }),
                    _ => Some(range),
                };
                Some((without(left, right)?, without(right, left)?))
            }
            Condition::Less => {
                let below = Range { min: 0, max: right.max.checked_sub(1)? };
                let above = Range { min: left.min.checked_add(1)?, max: u64::MAX };
                Some((left.and(below)?, right.and(above)?))
            }
            Condition::LessOrEqual => {
                let (below, above) = (Range { min: 0, max: right.max }, Range { min: left.min, max: u64::MAX });
                Some((left.and(below)?, right.and(above)?))
            }
            Condition::Greater => right.when(Condition::Less, left).map(swap),
            Condition::GreaterOrEqual => right.when(Condition::LessOrEqual, left).map(swap),
            Condition::CommonBits => Some((left, right)),
            // For non-negative numbers a signed comparison is the same as an unsigned one; other ranges are returned
            // unchanged.
            signed if left.is_positive() && right.is_positive() => left.when(unsigned(signed), right),
            _ => Some((left, right)),
        }
    }
}

fn swap((first, second): (Range, Range)) -> (Range, Range) {
    (second, first)
}

fn is_signed(condition: Condition) -> bool {
    unsigned(condition) != condition
}

fn unsigned(condition: Condition) -> Condition {
    match condition {
        Condition::GreaterSigned => Condition::Greater,
        Condition::GreaterOrEqualSigned => Condition::GreaterOrEqual,
        Condition::LessSigned => Condition::Less,
        Condition::LessOrEqualSigned => Condition::LessOrEqual,
        other => other,
    }
}

/// Returns the opposite comparison; `None` for common bits, because their opposite is not a comparison.
pub fn opposite(condition: Condition) -> Option<Condition> {
    Some(match condition {
        Condition::CommonBits => return None,
        Condition::Equal => Condition::NotEqual,
        Condition::NotEqual => Condition::Equal,
        Condition::Greater => Condition::LessOrEqual,
        Condition::GreaterOrEqual => Condition::Less,
        Condition::Less => Condition::GreaterOrEqual,
        Condition::LessOrEqual => Condition::Greater,
        Condition::GreaterSigned => Condition::LessOrEqualSigned,
        Condition::GreaterOrEqualSigned => Condition::LessSigned,
        Condition::LessSigned => Condition::GreaterOrEqualSigned,
        Condition::LessOrEqualSigned => Condition::GreaterSigned,
    })
}

/// The memory that an address points into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// The context of the program.
    Context,
    /// The stack of the program; offsets count from its start.
    Stack,
    /// Memory that a helper returned.
    Memory(crate::Memory),
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Region::Context => "the context",
            Region::Stack => "the stack",
            Region::Memory(_) => "the memory of a helper",
        })
    }
}

/// Value of a register or a stack slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Not written on every path to here, or different kinds of values: it must not be used.
    Unusable,
    /// A number.
    Number(Range),
    /// An address.
    Address {
        /// The memory that it points into.
        region: Region,
        /// Minimum offset from the start.
        min: i64,
        /// Maximum offset from the start.
        max: i64,
    },
}

impl Value {
    /// Address of the start of a region.
    pub const fn start_of(region: Region) -> Self {
        Value::Address { region, min: 0, max: 0 }
    }

    /// Returns what holds for both values.
    pub fn hull(self, other: Value) -> Value {
        match (self, other) {
            (Value::Number(first), Value::Number(second)) => Value::Number(first.hull(second)),
            (
                Value::Address { region, min, max },
                Value::Address { region: second, min: second_min, max: second_max },
            ) if region == second => Value::Address { region, min: min.min(second_min), max: max.max(second_max) },
            _ => Value::Unusable,
        }
    }
}
