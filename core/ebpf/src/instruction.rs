//! Instructions of eBPF: their encoding, and which of them programs may use (RFC 9669).
//!
//! Programs may use 64-bit and 32-bit arithmetic, loads, stores, 64-bit and 32-bit jumps, and calls of helpers:
//! everything that compilers emit for the CPU versions `v1` to `v3`, except atomic operations. Packet loads, calls of
//! other eBPF functions, maps and global variables are refused.
//!
//! Division by zero gives 0, the remainder of a division by zero is the dividend, and shifts use the distance modulo
//! the width (RFC 9669, section 4.1).

use crate::refusal::Refusal;

/// Length of an encoded instruction in bytes.
pub const INSTRUCTION_BYTES: usize = 8;
/// Number of registers. The last one points to the end of the stack and is read-only.
pub const REGISTERS: usize = 11;
/// The register that points to the end of the stack.
pub const FRAME_POINTER: u8 = 10;

/// Source register of a call that is relocated, or of a call of another eBPF function.
pub(crate) const PSEUDO_CALL: u8 = 1;

/// An encoded instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Operation code.
    pub code: u8,
    /// Destination register.
    pub destination: u8,
    /// Source register.
    pub source: u8,
    /// Offset of an address or a jump.
    pub offset: i16,
    /// Immediate operand.
    pub immediate: i32,
}

impl Instruction {
    /// Decodes an instruction of a little-endian program.
    pub fn from_bytes(bytes: [u8; INSTRUCTION_BYTES]) -> Self {
        let [code, registers, offset_low, offset_high, immediate @ ..] = bytes;
        Instruction {
            code,
            destination: registers & 0x0F,
            source: registers >> 4,
            offset: i16::from_le_bytes([offset_low, offset_high]),
            immediate: i32::from_le_bytes(immediate),
        }
    }

    /// Encodes the instruction.
    pub fn to_bytes(self) -> [u8; INSTRUCTION_BYTES] {
        let [low, high] = self.offset.to_le_bytes();
        let [a, b, c, d] = self.immediate.to_le_bytes();
        [self.code, self.destination & 0x0F | self.source << 4, low, high, a, b, c, d]
    }
}

/// An operand other than the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// The value of a register.
    Register(u8),
    /// A constant.
    Constant(u64),
}

/// Arithmetic with two operands.
#[expect(missing_docs, reason = "the names say what the variants do")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Or,
    And,
    ShiftLeft,
    ShiftRight,
    Modulo,
    ExclusiveOr,
    Move,
    ShiftRightSigned,
}

/// Comparisons of a register with an operand.
#[expect(missing_docs, reason = "the names say what the variants do")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    GreaterSigned,
    GreaterOrEqualSigned,
    LessSigned,
    LessOrEqualSigned,
    CommonBits,
}

/// A decoded instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `destination = destination <kind> operand`; in 32 bits, with the upper half cleared, unless `is_wide`.
    Arithmetic {
        /// The operation.
        kind: Arithmetic,
        /// True for 64 bits, false for 32 bits.
        is_wide: bool,
        /// First operand and result.
        destination: u8,
        /// Second operand.
        operand: Operand,
    },
    /// `destination = -destination`.
    Negate {
        /// True for 64 bits, false for 32 bits.
        is_wide: bool,
        /// The register.
        destination: u8,
    },
    /// Keeps the lowest bits of a register, in network byte order if `is_swapped`.
    ByteOrder {
        /// True if the bytes are reversed.
        is_swapped: bool,
        /// 16, 32 or 64.
        bits: u32,
        /// The register.
        destination: u8,
    },
    /// `destination = value`. Encoded as two instructions.
    LoadConstant {
        /// The register.
        destination: u8,
        /// The value.
        value: u64,
    },
    /// `destination = *(base + offset)`, with the upper bits cleared.
    Load {
        /// The register.
        destination: u8,
        /// Register that holds the address.
        base: u8,
        /// Offset added to the address.
        offset: i16,
        /// Width of the access: 1, 2, 4 or 8 bytes.
        bytes: u8,
    },
    /// `*(base + offset) = operand`.
    Store {
        /// Register that holds the address.
        base: u8,
        /// Offset added to the address.
        offset: i16,
        /// Width of the access: 1, 2, 4 or 8 bytes.
        bytes: u8,
        /// The value to store, truncated to its lowest bytes.
        operand: Operand,
    },
    /// Continues at another instruction.
    Jump {
        /// Index of the instruction.
        target: usize,
    },
    /// Continues at another instruction if the comparison holds.
    Branch {
        /// The comparison.
        condition: Condition,
        /// True to compare 64 bits, false to compare the lower halves.
        is_wide: bool,
        /// Left side.
        left: u8,
        /// Right side.
        right: Operand,
        /// Index of the instruction.
        target: usize,
    },
    /// Calls a helper.
    Call {
        /// Index in the list of helpers.
        helper: usize,
    },
    /// Ends the program.
    Exit,
}

impl Operation {
    /// Number of encoded instructions: 2 for [`Operation::LoadConstant`], else 1.
    pub fn slots(&self) -> usize {
        if matches!(self, Operation::LoadConstant { .. }) { 2 } else { 1 }
    }
}

/// Decodes a program. `None` stands for the second half of [`Operation::LoadConstant`].
///
/// # Errors
/// Returns the first instruction that programs may not use.
pub fn decode(program: &[Instruction]) -> Result<Vec<Option<Operation>>, Refusal> {
    let mut operations = Vec::with_capacity(program.len());
    while operations.len() < program.len() {
        let at = operations.len();
        let refuse = |reason: &str| Refusal::at(at, reason);
        let operation = decode_one(program, at).map_err(refuse)?;
        operations.push(Some(operation));
        if matches!(operation, Operation::LoadConstant { .. }) {
            operations.push(None);
        }
    }
    Ok(operations)
}

/// Instruction classes, in the lowest three bits of a code.
const LOAD_CONSTANT: u8 = 0x18;
const CLASS_LOAD: u8 = 1;
const CLASS_STORE_CONSTANT: u8 = 2;
const CLASS_STORE: u8 = 3;
const CLASS_ARITHMETIC_32: u8 = 4;
const CLASS_JUMP: u8 = 5;
const CLASS_JUMP_32: u8 = 6;
const CLASS_ARITHMETIC_64: u8 = 7;
/// Flag in a code: the operand is a register.
const FROM_REGISTER: u8 = 0x08;
/// Bits of the access mode in the codes of loads and stores, and the value for a plain access.
const MODE: u8 = 0xE0;
const MODE_MEMORY: u8 = 0x60;

fn decode_one(program: &[Instruction], at: usize) -> Result<Operation, &'static str> {
    let instruction = &program[at];
    let Instruction { code, destination, source, offset, immediate } = *instruction;
    if destination > FRAME_POINTER || source > FRAME_POINTER {
        return Err("no such register");
    }
    let constant = Operand::Constant(i64::from(immediate) as u64);
    let operand = if code & FROM_REGISTER == 0 { constant } else { Operand::Register(source) };
    let class = code & 0x07;
    match class {
        _ if code == LOAD_CONSTANT => {
            let second = program.get(at + 1).ok_or("the second half of the instruction is missing")?;
            if source != 0 {
                return Err("global variables and maps are not available to programs: use the scratch memory");
            }
            if (second.code, second.destination, second.source, second.offset, offset) != (0, 0, 0, 0, 0) {
                return Err("malformed instruction");
            }
            writable(destination)?;
            let value = u64::from(immediate as u32) | u64::from(second.immediate as u32) << 32;
            Ok(Operation::LoadConstant { destination, value })
        }
        CLASS_LOAD if code & MODE == MODE_MEMORY => {
            writable(destination)?;
            Ok(Operation::Load { destination, base: source, offset, bytes: access_bytes(code) })
        }
        CLASS_STORE_CONSTANT if code & MODE == MODE_MEMORY => {
            Ok(Operation::Store { base: destination, offset, bytes: access_bytes(code), operand: constant })
        }
        CLASS_STORE if code & MODE == MODE_MEMORY => {
            let operand = Operand::Register(source);
            Ok(Operation::Store { base: destination, offset, bytes: access_bytes(code), operand })
        }
        CLASS_STORE => Err("atomic operations are not available to programs"),
        CLASS_ARITHMETIC_32 | CLASS_ARITHMETIC_64 => {
            writable(destination)?;
            if offset != 0 {
                return Err("signed division and sign extension are not available: compile with -mcpu=v3");
            }
            arithmetic(code, class == CLASS_ARITHMETIC_64, destination, operand, immediate)
        }
        CLASS_JUMP => jump(instruction, at, operand),
        CLASS_JUMP_32 => branch_32(instruction, at),
        _ => Err("no such instruction"),
    }
}

fn writable(register: u8) -> Result<(), &'static str> {
    if register == FRAME_POINTER { Err("register 10 cannot be changed") } else { Ok(()) }
}

fn access_bytes(code: u8) -> u8 {
    match code & 0x18 {
        0x00 => 4,
        0x08 => 2,
        0x10 => 1,
        _ => 8,
    }
}

fn arithmetic(
    code: u8,
    is_wide: bool,
    destination: u8,
    operand: Operand,
    immediate: i32,
) -> Result<Operation, &'static str> {
    let kind = match code & 0xF0 {
        0x00 => Arithmetic::Add,
        0x10 => Arithmetic::Subtract,
        0x20 => Arithmetic::Multiply,
        0x30 => Arithmetic::Divide,
        0x40 => Arithmetic::Or,
        0x50 => Arithmetic::And,
        0x60 => Arithmetic::ShiftLeft,
        0x70 => Arithmetic::ShiftRight,
        0x80 => {
            return if code & FROM_REGISTER == 0 {
                Ok(Operation::Negate { is_wide, destination })
            } else {
                Err("no such instruction")
            };
        }
        0x90 => Arithmetic::Modulo,
        0xA0 => Arithmetic::ExclusiveOr,
        0xB0 => Arithmetic::Move,
        0xC0 => Arithmetic::ShiftRightSigned,
        0xD0 if !is_wide => {
            let bits = u32::try_from(immediate).ok().filter(|bits| matches!(bits, 16 | 32 | 64));
            let is_swapped = code & FROM_REGISTER != 0;
            return Ok(Operation::ByteOrder { is_swapped, bits: bits.ok_or("malformed instruction")?, destination });
        }
        _ => return Err("no such instruction"),
    };
    let bits = if is_wide { 64 } else { 32 };
    match (kind, operand) {
        (Arithmetic::Divide | Arithmetic::Modulo, Operand::Constant(0)) => Err("division by zero"),
        (
            Arithmetic::ShiftLeft | Arithmetic::ShiftRight | Arithmetic::ShiftRightSigned,
            Operand::Constant(distance),
        ) if distance >= bits => Err("shift by more bits than the operand has"),
        _ => Ok(Operation::Arithmetic { kind, is_wide, destination, operand }),
    }
}

fn jump(instruction: &Instruction, at: usize, right: Operand) -> Result<Operation, &'static str> {
    let Instruction { code, destination: left, source, immediate, .. } = *instruction;
    let target = target(instruction, at)?;
    match code {
        0x05 => Ok(Operation::Jump { target }),
        0x85 => match source {
            0 => usize::try_from(immediate).map(|helper| Operation::Call { helper }).map_err(|_| "no such helper"),
            PSEUDO_CALL => Err("calls of other functions are not available: mark them `static inline` with \
                     `__attribute__((always_inline))`"),
            _ => Err("no such instruction"),
        },
        0x95 => Ok(Operation::Exit),
        _ => Ok(Operation::Branch { condition: condition(code)?, is_wide: true, left, right, target }),
    }
}

fn branch_32(instruction: &Instruction, at: usize) -> Result<Operation, &'static str> {
    let Instruction { code, destination: left, source, immediate, .. } = *instruction;
    let right = match code & FROM_REGISTER {
        0 => Operand::Constant(u64::from(immediate as u32)),
        _ => Operand::Register(source),
    };
    let (condition, target) = (condition(code)?, target(instruction, at)?);
    Ok(Operation::Branch { condition, is_wide: false, left, right, target })
}

fn target(instruction: &Instruction, at: usize) -> Result<usize, &'static str> {
    at.checked_add_signed(isize::from(instruction.offset) + 1).ok_or("jump out of the program")
}

fn condition(code: u8) -> Result<Condition, &'static str> {
    Ok(match code & 0xF0 {
        0x10 => Condition::Equal,
        0x20 => Condition::Greater,
        0x30 => Condition::GreaterOrEqual,
        0x40 => Condition::CommonBits,
        0x50 => Condition::NotEqual,
        0x60 => Condition::GreaterSigned,
        0x70 => Condition::GreaterOrEqualSigned,
        0xA0 => Condition::Less,
        0xB0 => Condition::LessOrEqual,
        0xC0 => Condition::LessSigned,
        0xD0 => Condition::LessOrEqualSigned,
        _ => return Err("no such instruction"),
    })
}
