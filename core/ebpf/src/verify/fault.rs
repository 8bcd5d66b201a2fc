//! The rules of the verifier that an instruction can break.

use std::fmt;
use std::ops::Range;

use super::value::Region;

/// The reason why an instruction is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A value is read that was not written on every path.
    #[error("the {0} is not set on every path to this instruction")]
    Unset(Part),
    /// An address stands where a number is needed.
    #[error("the {0} is an address where a number is needed")]
    NotNumber(Part),
    /// An argument of a helper is not the context.
    #[error("{0} must be the context")]
    NotContext(Part),
    /// Arithmetic on addresses that could leave their region unnoticed.
    #[error("addresses allow only addition and subtraction of numbers")]
    AddressArithmetic,
    /// A comparison that would reveal an address.
    #[error("an address can only be compared with zero, for equality, in 64 bits")]
    AddressCompared,
    /// An address is stored where it could be changed or revealed.
    #[error("addresses can be stored only on the stack, whole and aligned")]
    AddressStored,
    /// An address may be too far from its region.
    #[error("the address may leave {0}: limit the index first, with `if` or `&`")]
    MayLeave(Region),
    /// Memory is accessed through a number.
    #[error("a number is not an address: access memory through the context or a pointer that a helper returns")]
    NotAddress,
    /// An access may lie outside its region.
    #[error("access to bytes {} to {} of {region}, which has {size}", .bytes.start, .bytes.end - 1)]
    OutOfBounds {
        /// The bytes that the access can touch.
        bytes: Range<i64>,
        /// The region.
        region: Region,
        /// The number of bytes of the region.
        size: i64,
    },
    /// The position of a stack access is not a constant.
    #[error("the stack cannot be indexed by a variable")]
    VariableStackIndex,
    /// A stack access reads what was not written.
    #[error("stack read of bytes that were not written before, or of part of an address")]
    UnwrittenStack,
    /// A part of the context is written that programs may only read.
    #[error("bytes {} to {} of the context cannot be changed", .0.start, .0.end - 1)]
    ReadOnlyContext(Range<i64>),
    /// Memory of a helper is written that programs may only read.
    #[error("the memory that this helper returns cannot be changed")]
    ReadOnlyMemory,
    /// The interface has no helper with this number.
    #[error("no such helper")]
    NoSuchHelper,
}

/// A value of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The operand.
    Source,
    /// The register that is changed.
    Destination,
    /// The address of an access.
    Address,
    /// The left side of a comparison.
    Left,
    /// The right side of a comparison.
    Right,
    /// The result of the program.
    Result,
    /// An argument of a helper.
    Argument {
        /// The register that holds it.
        register: u8,
        /// Name of the helper.
        helper: &'static str,
    },
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Source => f.write_str("source"),
            Part::Destination => f.write_str("destination"),
            Part::Address => f.write_str("address"),
            Part::Left => f.write_str("left side"),
            Part::Right => f.write_str("right side"),
            Part::Result => f.write_str("result in register 0"),
            Part::Argument { register, helper } => write!(f, "argument {register} of {helper}"),
        }
    }
}
