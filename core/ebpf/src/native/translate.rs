//! Translates verified programs to x86-64, one instruction after the other.
//!
//! Each register of a program has its own CPU register. Registers 1 to 5 are where the System V calling convention
//! passes arguments, and register 0 where it returns results, so that calling a helper moves nothing. R9 to R11 hold
//! intermediate values.

use super::assembler::{Assembler, Binary, Flag, Label, Register, Shift};
use crate::instruction::{Arithmetic, Condition, FRAME_POINTER, Operand, Operation, REGISTERS};
use crate::{Helper, Verified};

/// The CPU register of each register of a program.
pub const MAPPING: [Register; REGISTERS] = [
    Register::Rax,
    Register::Rdi,
    Register::Rsi,
    Register::Rdx,
    Register::Rcx,
    Register::R8,
    Register::Rbx,
    Register::R13,
    Register::R14,
    Register::R15,
    Register::Rbp,
];
/// First of the registers that a function must preserve; the last of them, the frame pointer, is always preserved.
const FIRST_PRESERVED: u8 = 6;
/// Alignment of the stack at calls, in bytes.
const STACK_ALIGNMENT: usize = 16;
/// Registers for intermediate values.
const SCRATCH: [Register; 3] = [Register::R9, Register::R10, Register::R11];

/// A translated program.
#[derive(Debug)]
pub struct Translation {
    /// The code.
    pub bytes: Vec<u8>,
    /// Offset of the code of each instruction of the program; for a second half, the offset of the following
    /// instruction's code. The last entry is the length of the code.
    pub starts: Vec<usize>,
}

/// Translates a program.
///
/// # Errors
/// If a jump has no valid target, which does not occur in a verified program.
pub fn translate(program: &Verified) -> Result<Translation, &'static str> {
    let mut translator = Translator::new(program);
    translator.prologue();
    let operations = program.operations();
    let mut starts = Vec::with_capacity(operations.len() + 1);
    while let Some(operation) = operations.get(starts.len()) {
        let at = starts.len();
        translator.assembler.bind(translator.labels[at]);
        let slots = operation.map_or(1, |operation| operation.slots());
        starts.push(translator.assembler.len());
        match operation {
            Some(operation) => translator.operation(operation),
            // Unreachable. If it is reached nevertheless, the program ends.
            None => translator.end_with(0),
        }
        // The label of a second half is never placed, so a jump to it ends in an error.
        starts.extend((1..slots).map(|_| translator.assembler.len()));
    }
    starts.push(translator.assembler.len());
    Ok(Translation { bytes: translator.assembler.finish()?, starts })
}

struct Translator {
    assembler: Assembler,
    /// Labels of the program's instructions.
    labels: Vec<Label>,
    helpers: &'static [Helper],
    /// The program's registers that the function preserves for its caller.
    preserved: Vec<Register>,
    /// Bytes between the frame pointer and the preserved registers.
    frame_bytes: i32,
}

impl Translator {
    fn new(program: &Verified) -> Self {
        let mut assembler = Assembler::default();
        let labels = program.operations().iter().map(|_| assembler.new_label()).collect();
        let preserved: Vec<Register> = (FIRST_PRESERVED..FRAME_POINTER)
            .filter(|&register| program.operations().iter().flatten().any(|operation| changes(operation, register)))
            .map(mapped)
            .collect();
        let below = usize::from(program.stack_bytes()) + size_of::<u64>() * preserved.len();
        let padding = below.next_multiple_of(STACK_ALIGNMENT) - below;
        let frame_bytes = (usize::from(program.stack_bytes()) + padding) as i32;
        Translator { assembler, labels, helpers: program.interface().helpers, preserved, frame_bytes }
    }

    fn prologue(&mut self) {
        let assembler = &mut self.assembler;
        assembler.entry_mark();
        assembler.push(Register::Rbp);
        assembler.move_register(true, Register::Rbp, Register::Rsp);
        if self.frame_bytes != 0 {
            assembler.binary_constant(Binary::Subtract, true, Register::Rsp, self.frame_bytes);
        }
        for &register in &self.preserved {
            assembler.push(register);
        }
    }

    fn epilogue(&mut self) {
        for &register in self.preserved.iter().rev() {
            self.assembler.pop(register);
        }
        self.assembler.leave();
        self.assembler.ret();
    }

    fn end_with(&mut self, result: u64) {
        self.assembler.move_constant(Register::Rax, result);
        self.epilogue();
    }

    fn operation(&mut self, operation: &Operation) {
        let assembler = &mut self.assembler;
        match *operation {
            Operation::Arithmetic { kind, is_wide, destination, operand } => {
                self.arithmetic(kind, is_wide, mapped(destination), operand);
            }
            Operation::Negate { is_wide, destination } => assembler.negate(is_wide, mapped(destination)),
            Operation::ByteOrder { is_swapped, bits, destination } => {
                self.byte_order(is_swapped, bits, mapped(destination))
            }
            Operation::LoadConstant { destination, value } => assembler.move_constant(mapped(destination), value),
            Operation::Load { destination, base, offset, bytes } => {
                assembler.load(bytes, mapped(destination), mapped(base), i32::from(offset));
            }
            Operation::Store { base, offset, bytes, operand } => {
                let (base, offset) = (mapped(base), i32::from(offset));
                match operand {
                    Operand::Register(from) => assembler.store(bytes, base, offset, mapped(from)),
                    Operand::Constant(value) => assembler.store_constant(bytes, base, offset, value as i32),
                }
            }
            Operation::Jump { target } => assembler.jump(self.labels[target]),
            Operation::Branch { condition, is_wide, left, right, target } => {
                let left = mapped(left);
                match (condition, right) {
                    (Condition::CommonBits, Operand::Register(right)) => assembler.test(is_wide, left, mapped(right)),
                    (Condition::CommonBits, Operand::Constant(value)) => {
                        assembler.test_constant(is_wide, left, value as i32);
                    }
                    (_, Operand::Register(right)) => {
                        assembler.binary(Binary::Compare, is_wide, left, mapped(right));
                    }
                    (_, Operand::Constant(value)) => {
                        assembler.binary_constant(Binary::Compare, is_wide, left, value as i32);
                    }
                }
                assembler.branch(flag_of(condition), self.labels[target]);
            }
            Operation::Call { helper } => {
                assembler.move_constant_64(Register::Rax, self.helpers[helper].function() as usize as u64);
                assembler.call_rax();
            }
            Operation::Exit => self.epilogue(),
        }
    }

    fn arithmetic(&mut self, kind: Arithmetic, is_wide: bool, destination: Register, operand: Operand) {
        let assembler = &mut self.assembler;
        let binary = match kind {
            Arithmetic::Add => Binary::Add,
            Arithmetic::Subtract => Binary::Subtract,
            Arithmetic::Or => Binary::Or,
            Arithmetic::And => Binary::And,
            Arithmetic::ExclusiveOr => Binary::ExclusiveOr,
            Arithmetic::Move => {
                return match operand {
                    Operand::Register(source) => assembler.move_register(is_wide, destination, mapped(source)),
                    Operand::Constant(value) if is_wide => assembler.move_constant(destination, value),
                    Operand::Constant(value) => assembler.move_constant(destination, u64::from(value as u32)),
                };
            }
            Arithmetic::Multiply => {
                return match operand {
                    Operand::Register(source) => assembler.multiply(is_wide, destination, mapped(source)),
                    Operand::Constant(value) => assembler.multiply_constant(is_wide, destination, value as i32),
                };
            }
            Arithmetic::Divide | Arithmetic::Modulo => {
                return self.divide(kind == Arithmetic::Modulo, is_wide, destination, operand);
            }
            Arithmetic::ShiftLeft => return self.shift(Shift::Left, is_wide, destination, operand),
            Arithmetic::ShiftRight => return self.shift(Shift::Right, is_wide, destination, operand),
            Arithmetic::ShiftRightSigned => return self.shift(Shift::RightSigned, is_wide, destination, operand),
        };
        match operand {
            Operand::Register(source) => assembler.binary(binary, is_wide, destination, mapped(source)),
            Operand::Constant(value) => assembler.binary_constant(binary, is_wide, destination, value as i32),
        }
    }

    fn byte_order(&mut self, is_swapped: bool, bits: u32, register: Register) {
        let assembler = &mut self.assembler;
        match (bits, is_swapped) {
            (16, true) => {
                // The swap moves the two lowest bytes to the top.
                assembler.swap_bytes(false, register);
                assembler.shift(Shift::Right, false, register, 16);
            }
            (16, false) => assembler.keep_16(register),
            (32, true) => assembler.swap_bytes(false, register),
            (32, false) => assembler.move_register(false, register, register),
            (_, true) => assembler.swap_bytes(true, register),
            (_, false) => {}
        }
    }

    /// The CPU takes shift distances from CL, which is the lowest byte of register 4 of the program.
    fn shift(&mut self, kind: Shift, is_wide: bool, register: Register, distance: Operand) {
        let assembler = &mut self.assembler;
        let distance = match distance {
            Operand::Constant(distance) => return assembler.shift(kind, is_wide, register, distance as u8),
            Operand::Register(distance) => mapped(distance),
        };
        if distance == Register::Rcx {
            return assembler.shift_by_cl(kind, is_wide, register);
        }
        let [kept, ..] = SCRATCH;
        assembler.move_register(true, kept, Register::Rcx);
        assembler.move_register(true, Register::Rcx, distance);
        if register == Register::Rcx {
            assembler.shift_by_cl(kind, is_wide, kept);
        } else {
            assembler.shift_by_cl(kind, is_wide, register);
        }
        assembler.move_register(true, Register::Rcx, kept);
    }

    /// The CPU divides RDX:RAX, which hold registers 3 and 0 of the program, and traps on a division by zero.
    fn divide(&mut self, is_remainder: bool, is_wide: bool, register: Register, divisor: Operand) {
        let assembler = &mut self.assembler;
        let [kept_rax, kept_rdx, by] = SCRATCH;
        let (by_zero, done) = (assembler.new_label(), assembler.new_label());
        match divisor {
            // The decoder refuses the constant 0.
            Operand::Constant(value) if is_wide => assembler.move_constant(by, value),
            Operand::Constant(value) => assembler.move_constant(by, u64::from(value as u32)),
            Operand::Register(divisor) => assembler.move_register(is_wide, by, mapped(divisor)),
        }
        assembler.test(is_wide, by, by);
        assembler.branch(Flag::Equal, by_zero);
        assembler.move_register(true, kept_rax, Register::Rax);
        assembler.move_register(true, kept_rdx, Register::Rdx);
        assembler.move_register(is_wide, Register::Rax, register);
        assembler.move_constant(Register::Rdx, 0);
        assembler.divide(is_wide, by);
        assembler.move_register(is_wide, by, if is_remainder { Register::Rdx } else { Register::Rax });
        assembler.move_register(true, Register::Rax, kept_rax);
        assembler.move_register(true, Register::Rdx, kept_rdx);
        assembler.move_register(true, register, by);
        assembler.jump(done);
        assembler.bind(by_zero);
        match is_remainder {
            true => assembler.move_register(is_wide, register, register),
            false => assembler.move_constant(register, 0),
        }
        assembler.bind(done);
    }
}

/// Returns the CPU register of a register of a program.
pub fn mapped(register: u8) -> Register {
    MAPPING[usize::from(register)]
}

/// Returns true if the operation can change this register.
fn changes(operation: &Operation, register: u8) -> bool {
    match *operation {
        Operation::Arithmetic { destination, .. }
        | Operation::Negate { destination, .. }
        | Operation::ByteOrder { destination, .. }
        | Operation::LoadConstant { destination, .. }
        | Operation::Load { destination, .. } => destination == register,
        Operation::Store { .. }
        | Operation::Jump { .. }
        | Operation::Branch { .. }
        | Operation::Call { .. }
        | Operation::Exit => false,
    }
}

fn flag_of(condition: Condition) -> Flag {
    match condition {
        Condition::Equal => Flag::Equal,
        Condition::NotEqual | Condition::CommonBits => Flag::NotEqual,
        Condition::Greater => Flag::Above,
        Condition::GreaterOrEqual => Flag::AboveOrEqual,
        Condition::Less => Flag::Below,
        Condition::LessOrEqual => Flag::BelowOrEqual,
        Condition::GreaterSigned => Flag::Greater,
        Condition::GreaterOrEqualSigned => Flag::GreaterOrEqual,
        Condition::LessSigned => Flag::Less,
        Condition::LessOrEqualSigned => Flag::LessOrEqual,
    }
}
