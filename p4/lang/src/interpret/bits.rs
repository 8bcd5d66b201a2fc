//! Sequences of bits: packets, and data to be hashed.

use num_bigint::{BigInt, BigUint, Sign};

use crate::syntax::ast::StructKind;
use crate::types::{Ty, Type, Types};
use crate::value::{self, Value};

/// Bits in network order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    bytes: Vec<u8>,
    length: usize,
}

impl Bits {
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Bits { bytes: bytes.to_vec(), length: bytes.len() * 8 }
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.length
    }

    /// The bytes; the last one is padded with zeros.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// An unsigned number from `count` bits. Bits behind the end are zero.
    pub fn read(&self, start: usize, count: usize) -> BigInt {
        if count == 0 {
            return BigInt::from(0);
        }
        let first = start / 8;
        let last = (start + count).div_ceil(8);
        let bytes: Vec<u8> = (first..last).map(|place| self.bytes.get(place).copied().unwrap_or(0)).collect();
        let number = BigUint::from_bytes_be(&bytes) >> (last * 8 - start - count);
        BigInt::from_biguint(Sign::Plus, number) & value::mask(count as u32)
    }

    /// Appends the lowest `count` bits of a number.
    pub fn push(&mut self, number: &BigInt, count: usize) {
        if count == 0 {
            return;
        }
        let free = self.bytes.len() * 8 - self.length;
        let number = value::wrap(number, count as u32, false);
        // Aligned so that the last bit ends a byte.
        let total = count.saturating_sub(free).div_ceil(8) * 8 + free;
        let (_, bytes) = (number << (total - count)).to_bytes_be();
        let length = total.div_ceil(8);
        let mut padded = vec![0; length.saturating_sub(bytes.len())];
        padded.extend_from_slice(&bytes[bytes.len().saturating_sub(length)..]);
        let mut padded = padded.into_iter();
        if free > 0
            && let (Some(last), Some(first)) = (self.bytes.last_mut(), padded.next())
        {
            *last |= first;
        }
        self.bytes.extend(padded);
        self.length += count;
    }

    /// Appends the bits of `other` from `start` on.
    pub fn append(&mut self, other: &Bits, start: usize) {
        if start >= other.length {
            return;
        }
        if start.is_multiple_of(8) && self.length.is_multiple_of(8) {
            self.bytes.extend_from_slice(&other.bytes[start / 8..]);
            self.length += other.length - start;
            return;
        }
        for place in (start..other.length).step_by(1024) {
            let count = 1024.min(other.length - place);
            self.push(&other.read(place, count), count);
        }
    }

    /// Appends a value; headers only if they are valid.
    pub fn push_value(&mut self, types: &Types, value: &Value, ty: Ty) {
        match (value, types.get(types.stripped(ty))) {
            (Value::Varbit { bits, value }, _) => self.push(value, *bits as usize),
            (Value::Bool(value), _) => self.push(&BigInt::from(u8::from(*value)), 1),
            (Value::Header { valid, fields }, Type::Struct(number)) => {
                if *valid {
                    let info = &types.structs[*number];
                    for (field, (_, ty)) in fields.iter().zip(&info.fields) {
                        self.push_value(types, field, *ty);
                    }
                }
            }
            (Value::Struct(fields), _) => {
                let components = types.components(ty).unwrap_or_default();
                for (field, ty) in fields.iter().zip(components) {
                    self.push_value(types, field, ty);
                }
            }
            (Value::Stack { elements, .. }, Type::Stack(element, _)) => {
                for value in elements {
                    self.push_value(types, value, *element);
                }
            }
            _ => {
                let width = types.representation(ty).map_or(0, |(width, _)| width);
                self.push(&value.int(), width as usize);
            }
        }
    }

    /// Reads a value of a type without varbits. Headers become valid.
    pub fn read_value(&self, types: &Types, ty: Ty, position: &mut usize) -> Value {
        let mut number = |count: u32| {
            let number = self.read(*position, count as usize);
            *position += count as usize;
            number
        };
        match types.get(types.stripped(ty)) {
            Type::Bool => Value::Bool(number(1) == BigInt::from(1)),
            Type::Struct(place) => {
                let info = &types.structs[*place];
                let fields = info.fields.iter().map(|(_, ty)| self.read_value(types, *ty, position)).collect();
                if info.kind == StructKind::Header {
                    Value::Header { valid: true, fields }
                } else {
                    Value::Struct(fields)
                }
            }
            Type::Tuple(elements) => {
                Value::Struct(elements.iter().map(|ty| self.read_value(types, *ty, position)).collect())
            }
            Type::Stack(element, count) => {
                let elements: Vec<Value> = (0..*count).map(|_| self.read_value(types, *element, position)).collect();
                Value::Stack { next: elements.len(), elements }
            }
            _ => match types.representation(ty) {
                Some((width, signed)) => Value::Int(value::wrap(&number(width), width, signed)),
                None => types.zero(ty),
            },
        }
    }

    /// Truncates to a number of bytes.
    pub fn truncate(&mut self, bytes: usize) {
        self.bytes.truncate(bytes);
        self.length = self.length.min(bytes.saturating_mul(8));
    }
}
