//! An interpreter that trusts nothing and checks every access.

use super::{ADD, CONTEXT_BYTES, MEMORY, MEMORY_BYTES, MIX, WRITABLE};
use crate::instruction::{Arithmetic, Condition, FRAME_POINTER, Operand, Operation, REGISTERS};

/// Simulated start addresses: far apart, and at addresses that programs cannot guess.
const CONTEXT_START: u64 = 0x7151_0000_0000;
const STACK_START: u64 = 0x7252_0000_0000;
const STACK_BYTES: usize = 512;

/// Outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The program ended with this result.
    Ended(u64),
    /// The program did something that no verified program does.
    Fault {
        /// The instruction, counted from 0.
        instruction: usize,
        /// What it did.
        fault: RunFault,
    },
}

/// What no verified program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RunFault {
    /// A jump leads elsewhere than to an instruction.
    #[error("no instruction here")]
    NoInstruction,
    /// An instruction runs twice.
    #[error("loop")]
    Loop,
    /// A register is read that was not written.
    #[error("register {0} is not set")]
    Unset(u8),
    /// Stack is read that was not written.
    #[error("the stack was not written there")]
    UnwrittenStack,
    /// A part of the context is written that is read-only.
    #[error("this part of the context is read-only")]
    ReadOnly,
    /// An access lies outside all memory.
    #[error("no memory at {0:#x}")]
    NoMemory(u64),
    /// A call of no helper, or with wrong arguments.
    #[error("invalid call")]
    Call,
}

/// A program being interpreted.
#[derive(Debug)]
pub struct Interpreter {
    /// The context, followed by the helper's memory.
    pub memory: Vec<u8>,
    stack: [Option<u8>; STACK_BYTES],
    registers: [Option<u64>; REGISTERS],
}

impl Interpreter {
    /// Makes an interpreter with this context and helper's memory.
    pub fn new(memory: Vec<u8>) -> Self {
        assert_eq!(memory.len(), (CONTEXT_BYTES + MEMORY_BYTES) as usize);
        let mut registers = [None; REGISTERS];
        registers[1] = Some(CONTEXT_START);
        registers[usize::from(FRAME_POINTER)] = Some(STACK_START + STACK_BYTES as u64);
        Interpreter { memory, stack: [None; STACK_BYTES], registers }
    }

    /// Returns the value of a register, with simulated addresses.
    pub fn register(&self, register: usize) -> Option<u64> {
        self.registers[register]
    }

    /// Simulated start addresses of the context, the stack and the helper's memory.
    pub fn starts() -> [u64; 3] {
        [CONTEXT_START, STACK_START, CONTEXT_START + u64::from(CONTEXT_BYTES)]
    }

    /// Runs a program. `before` is called with the index of each instruction and may read the registers.
    pub fn run(&mut self, operations: &[Option<Operation>], mut before: impl FnMut(&Self, usize)) -> Outcome {
        let mut at = 0;
        // Without loops, no instruction runs twice.
        for _ in 0..=operations.len() {
            before(self, at);
            let Some(Some(operation)) = operations.get(at) else {
                return Outcome::Fault { instruction: at, fault: RunFault::NoInstruction };
            };
            match self.step(operation) {
                Err(fault) => return Outcome::Fault { instruction: at, fault },
                Ok(Next::End(result)) => return Outcome::Ended(result),
                Ok(Next::Jump(target)) => at = target,
                Ok(Next::Following) => {
                    at += if matches!(operation, Operation::LoadConstant { .. }) { 2 } else { 1 };
                }
            }
        }
        Outcome::Fault { instruction: at, fault: RunFault::Loop }
    }

    fn get(&self, register: u8) -> Result<u64, RunFault> {
        self.registers[usize::from(register)].ok_or(RunFault::Unset(register))
    }

    fn operand(&self, operand: Operand) -> Result<u64, RunFault> {
        match operand {
            Operand::Register(register) => self.get(register),
            Operand::Constant(value) => Ok(value),
        }
    }

    fn set(&mut self, register: u8, value: u64) {
        self.registers[usize::from(register)] = Some(value);
    }

    fn step(&mut self, operation: &Operation) -> Result<Next, RunFault> {
        match *operation {
            Operation::Arithmetic { kind, is_wide, destination, operand } => {
                let right = self.operand(operand)?;
                let left = if kind == Arithmetic::Move { 0 } else { self.get(destination)? };
                self.set(destination, calculate(kind, is_wide, left, right));
            }
            Operation::Negate { is_wide, destination } => {
                let value = self.get(destination)?;
                let negated = if is_wide { value.wrapping_neg() } else { u64::from((value as u32).wrapping_neg()) };
                self.set(destination, negated);
            }
            Operation::ByteOrder { is_swapped, bits, destination } => {
                let value = self.get(destination)?;
                let kept = value & u64::MAX >> (64 - bits);
                self.set(destination, if is_swapped { value.swap_bytes() >> (64 - bits) } else { kept });
            }
            Operation::LoadConstant { destination, value } => self.set(destination, value),
            Operation::Load { destination, base, offset, bytes } => {
                let address = self.get(base)?.wrapping_add_signed(i64::from(offset));
                let mut value = [0; 8];
                for index in 0..bytes {
                    let address = address.wrapping_add(u64::from(index));
                    value[usize::from(index)] = match self.locate(address)? {
                        Region::Stack(locate) => self.stack[locate].ok_or(RunFault::UnwrittenStack)?,
                        Region::Memory(locate) => self.memory[locate],
                    };
                }
                self.set(destination, u64::from_le_bytes(value));
            }
            Operation::Store { base, offset, bytes, operand } => {
                let address = self.get(base)?.wrapping_add_signed(i64::from(offset));
                let value = self.operand(operand)?.to_le_bytes();
                for index in 0..bytes {
                    let byte = value[usize::from(index)];
                    match self.locate(address.wrapping_add(u64::from(index)))? {
                        Region::Stack(locate) => self.stack[locate] = Some(byte),
                        Region::Memory(locate) if locate < WRITABLE.start as usize => {
                            return Err(RunFault::ReadOnly);
                        }
                        Region::Memory(locate) => self.memory[locate] = byte,
                    }
                }
            }
            Operation::Jump { target } => return Ok(Next::Jump(target)),
            Operation::Branch { condition, is_wide, left, right, target } => {
                let (left, right) = (self.get(left)?, self.operand(right)?);
                // Shifted to the upper half of 64 bits, 32-bit values compare as in their own width.
                let shift = if is_wide { 0 } else { 32 };
                if holds(condition, left << shift, right << shift) {
                    return Ok(Next::Jump(target));
                }
            }
            Operation::Call { helper } => self.call(helper)?,
            Operation::Exit => return Ok(Next::End(self.get(0)?)),
        }
        Ok(Next::Following)
    }

    fn call(&mut self, helper: usize) -> Result<(), RunFault> {
        let result = match helper {
            ADD if self.get(1)? == CONTEXT_START => self.get(2)?.wrapping_mul(31).wrapping_add(self.get(3)?),
            MEMORY if self.get(1)? == CONTEXT_START => CONTEXT_START + u64::from(CONTEXT_BYTES),
            MIX => {
                let mut mixed = 1_u64;
                for register in 1..=5 {
                    mixed = mixed.rotate_left(7) ^ self.get(register)?;
                }
                mixed
            }
            _ => return Err(RunFault::Call),
        };
        self.registers[1..=5].fill(None);
        self.set(0, result);
        Ok(())
    }

    fn locate(&self, address: u64) -> Result<Region, RunFault> {
        let inside = |start: u64, len: usize| {
            usize::try_from(address.wrapping_sub(start)).ok().filter(|&distance| distance < len)
        };
        inside(STACK_START, STACK_BYTES)
            .map(Region::Stack)
            .or_else(|| inside(CONTEXT_START, self.memory.len()).map(Region::Memory))
            .ok_or(RunFault::NoMemory(address))
    }
}

enum Next {
    Following,
    Jump(usize),
    End(u64),
}

enum Region {
    Stack(usize),
    Memory(usize),
}

fn calculate(kind: Arithmetic, is_wide: bool, left: u64, right: u64) -> u64 {
    if !is_wide {
        let (left, right) = (left as u32, right as u32);
        let result = match kind {
            Arithmetic::Add => left.wrapping_add(right),
            Arithmetic::Subtract => left.wrapping_sub(right),
            Arithmetic::Multiply => left.wrapping_mul(right),
            Arithmetic::Divide => left.checked_div(right).unwrap_or(0),
            Arithmetic::Or => left | right,
            Arithmetic::And => left & right,
            Arithmetic::ShiftLeft => left.wrapping_shl(right),
            Arithmetic::ShiftRight => left.wrapping_shr(right),
            Arithmetic::Modulo => left.checked_rem(right).unwrap_or(left),
            Arithmetic::ExclusiveOr => left ^ right,
            Arithmetic::Move => right,
            Arithmetic::ShiftRightSigned => (left as i32).wrapping_shr(right) as u32,
        };
        return u64::from(result);
    }
    match kind {
        Arithmetic::Add => left.wrapping_add(right),
        Arithmetic::Subtract => left.wrapping_sub(right),
        Arithmetic::Multiply => left.wrapping_mul(right),
        Arithmetic::Divide => left.checked_div(right).unwrap_or(0),
        Arithmetic::Or => left | right,
        Arithmetic::And => left & right,
        Arithmetic::ShiftLeft => left.wrapping_shl(right as u32),
        Arithmetic::ShiftRight => left.wrapping_shr(right as u32),
        Arithmetic::Modulo => left.checked_rem(right).unwrap_or(left),
        Arithmetic::ExclusiveOr => left ^ right,
        Arithmetic::Move => right,
        Arithmetic::ShiftRightSigned => (left as i64).wrapping_shr(right as u32) as u64,
    }
}

fn holds(condition: Condition, left: u64, right: u64) -> bool {
    let signed = (left as i64).cmp(&(right as i64));
    match condition {
        Condition::Equal => left == right,
        Condition::NotEqual => left != right,
        Condition::Greater => left > right,
        Condition::GreaterOrEqual => left >= right,
        Condition::Less => left < right,
        Condition::LessOrEqual => left <= right,
        Condition::GreaterSigned => signed.is_gt(),
        Condition::GreaterOrEqualSigned => signed.is_ge(),
        Condition::LessSigned => signed.is_lt(),
        Condition::LessOrEqualSigned => signed.is_le(),
        Condition::CommonBits => left & right != 0,
    }
}
