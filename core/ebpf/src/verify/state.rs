//! What the verifier knows before an instruction: all registers and the stack.

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
    /// These bytes hold parts of numbers; the others must not be read.
    Bytes(u8),
}

impl Slot {
    /// Bytes that can be read as numbers.
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

/// What is known before an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    registers: [Value; REGISTERS],
    stack: [Slot; SLOTS],
}

impl State {
    /// At the start of a program: its context in register 1, the end of the stack in register 10.
    pub fn at_start() -> Self {
        let mut registers = [Value::Unusable; REGISTERS];
        registers[1] = Value::start_of(Region::Context);
        registers[usize::from(FRAME_POINTER)] =
            Value::Address { region: Region::Stack, min: STACK_BYTES, max: STACK_BYTES };
        State { registers, stack: [Slot::Bytes(0); SLOTS] }
    }

    /// Keeps what holds in the other state as well.
    pub fn merge(&mut self, other: &State) {
        for (mine, theirs) in self.registers.iter_mut().zip(&other.registers) {
            *mine = mine.hull(*theirs);
        }
        for (mine, theirs) in self.stack.iter_mut().zip(&other.stack) {
            *mine = mine.hull(*theirs);
        }
    }

    /// What a register holds.
    pub fn value(&self, register: u8) -> Value {
        self.registers[usize::from(register)]
    }

    /// What an operand is.
    pub fn operand(&self, operand: Operand) -> Value {
        match operand {
            Operand::Register(register) => self.value(register),
            Operand::Constant(value) => Value::Number(Range::only(value)),
        }
    }

    /// A register gets a value.
    pub fn set(&mut self, register: u8, value: Value) {
        self.registers[usize::from(register)] = value;
    }

    /// What lies at a place of the stack; the access is inside it.
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

    /// How far below its end the stack was written.
    pub fn stack_bytes(&self) -> u16 {
        let unused = self.stack.iter().take_while(|&&slot| slot == Slot::Bytes(0)).count();
        ((SLOTS - unused) * SLOT_BYTES as usize) as u16
    }

    /// Stores at a place of the stack; the access is inside it.
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

/// The slot of a byte of the stack, and its position there.
fn slot_of(at: i64) -> (usize, u32) {
    ((at / SLOT_BYTES) as usize, (at % SLOT_BYTES) as u32)
}
