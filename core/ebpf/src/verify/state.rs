//! The verifier's knowledge before an instruction: all registers and the stack.

use super::value::{Range, Region, Value};
use crate::instruction::{FRAME_POINTER, Operand, REGISTERS};

/// Size of the stack of a program.
pub const STACK_BYTES: i64 = 512;
const SLOT_BYTES: i64 = 8;
const SLOTS: usize = (STACK_BYTES / SLOT_BYTES) as usize;
const ALL_BYTES: u8 = 0xFF;

/// Eight bytes of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// All bytes were written at once.
    Whole(Value),
    /// A mask of bytes that hold parts of numbers; the others must not be read.
    Bytes(u8),
}

impl Slot {
    /// Returns a mask of the bytes that can be read as numbers.
    fn readable(self) -> u8 {
        match self {
            Slot::Whole(Value::Number(_)) => ALL_BYTES,
            Slot::Whole(_) => 0,
            Slot::Bytes(bytes) => bytes,
        }
    }

    fn hull(self, other: Slot) -> Slot {
        match (self, other) {
            (Slot::Whole(first), Slot::Whole(second)) => Slot::Whole(first.hull(second)),
            _ => Slot::Bytes(self.readable() & other.readable()),
        }
    }
}

/// The verifier's knowledge before an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    registers: [Value; REGISTERS],
    stack: [Slot; SLOTS],
}

impl State {
    /// The state at the start of a program: the context in register 1, the end of the stack in register 10.
    pub fn at_start() -> Self {
        let mut registers = [Value::Unusable; REGISTERS];
        registers[1] = Value::start_of(Region::Context);
        registers[usize::from(FRAME_POINTER)] =
            Value::Address { region: Region::Stack, min: STACK_BYTES, max: STACK_BYTES };
        State { registers, stack: [Slot::Bytes(0); SLOTS] }
    }

    /// Keeps only what also holds in the other state.
    pub fn merge(&mut self, other: &State) {
        for (mine, theirs) in self.registers.iter_mut().zip(&other.registers) {
            *mine = mine.hull(*theirs);
        }
        for (mine, theirs) in self.stack.iter_mut().zip(&other.stack) {
            *mine = mine.hull(*theirs);
        }
    }

    /// Returns the value of a register.
    pub fn value(&self, register: u8) -> Value {
        self.registers[usize::from(register)]
    }

    /// Returns the value of an operand.
    pub fn operand(&self, operand: Operand) -> Value {
        match operand {
            Operand::Register(register) => self.value(register),
            Operand::Constant(value) => Value::Number(Range::only(value)),
        }
    }

    /// Sets the value of a register.
    pub fn set(&mut self, register: u8, value: Value) {
        self.registers[usize::from(register)] = value;
    }

    /// Returns the value at an offset of the stack; the access must be inside the stack.
    pub fn load_from_stack(&self, at: i64, bytes: u8) -> Value {
        let (slot, first) = slot_of(at);
        if let Slot::Whole(value) = self.stack[slot]
            && bytes == 8
            && first == 0
        {
            return value;
        }
        match self.are_readable(at, bytes) {
            true => Value::Number(Range::of_bytes(bytes)),
            false => Value::Unusable,
        }
    }

    /// Returns how many bytes below its end the stack was written.
    pub fn stack_bytes(&self) -> u16 {
        let unused = self.stack.iter().take_while(|&&slot| slot == Slot::Bytes(0)).count();
        ((SLOTS - unused) * SLOT_BYTES as usize) as u16
    }

    /// Stores a value at an offset of the stack; the access must be inside the stack.
    pub fn store_to_stack(&mut self, at: i64, bytes: u8, value: Value) {
        let (slot, first) = slot_of(at);
        if bytes == 8 && first == 0 {
            self.stack[slot] = Slot::Whole(value);
            return;
        }
        for at in at..at + i64::from(bytes) {
            let (slot, byte) = slot_of(at);
            self.stack[slot] = Slot::Bytes(self.stack[slot].readable() | 1 << byte);
        }
    }

    fn are_readable(&self, at: i64, bytes: u8) -> bool {
        (at..at + i64::from(bytes)).map(slot_of).all(|(slot, byte)| self.stack[slot].readable() & 1 << byte != 0)
    }
}

/// Returns the slot of a byte of the stack, and the byte's index in the slot.
fn slot_of(at: i64) -> (usize, u32) {
    ((at / SLOT_BYTES) as usize, (at % SLOT_BYTES) as u32)
}
