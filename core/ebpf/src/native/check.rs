//! Checks translated code against the program before it may run.
//!
//! The check decodes the code from its first byte to its last and compares each CPU instruction with the program's
//! instruction that it belongs to. Code that passes has these properties, even if the translator has a fault:
//! * each jump of the program leads to the start of the code of its target, and all other jumps stay inside the code
//!   of their own instruction;
//! * memory is accessed only by the program's loads and stores: one access each, with its base register, offset and
//!   width;
//! * calls go to the helper that the program names;
//! * the stack pointer changes only in the prologue and the epilogues, and these restore what the caller expects.

use super::decode::{Decoded, Effect, Number, decode};
use super::fault::{CheckError, CodeFault};
use super::translate::{Translation, mapped};
use crate::Verified;
use crate::instruction::{FRAME_POINTER, Operation};

const RAX: Number = 0;
const RDX: Number = 2;
const RSP: Number = 4;
const RBP: Number = 5;
/// Registers that a function preserves besides RSP and RBP: RBX, R12 to R15.
const PRESERVED: [Number; 5] = [3, 12, 13, 14, 15];
/// Number of registers.
const REGISTERS: usize = 16;
/// Registers for intermediate values: R9 to R11.
const SCRATCH: std::ops::RangeInclusive<Number> = 9..=11;

/// Checks the code of a program.
///
/// # Errors
/// Returns the first fault found.
pub fn check(program: &Verified, translation: &Translation) -> Result<(), CheckError> {
    let Translation { bytes: code, starts } = translation;
    let operations = program.operations();
    if starts.len() != operations.len() + 1 || starts.last() != Some(&code.len()) {
        return Err(CheckError::Length);
    }
    let prologue = decoded(code, 0..starts[0]).map_err(CheckError::Prologue)?;
    let frame = Frame::of(program, &prologue).map_err(CheckError::Prologue)?;
    for (at, operation) in operations.iter().enumerate() {
        let span = starts[at]..starts[at + 1];
        let checked = decoded(code, span.clone()).and_then(|instructions| {
            let checker = Checker { program, starts, frame: &frame, instructions: &instructions };
            match operation {
                Some(operation) => checker.operation(operation),
                None => checker.unreached(),
            }
        });
        checked.map_err(|fault| CheckError::Instruction { instruction: at, code: span, fault })?;
    }
    Ok(())
}

/// Decodes a part of the code, which must end at the end of an instruction.
fn decoded(code: &[u8], span: std::ops::Range<usize>) -> Result<Vec<Decoded>, CodeFault> {
    let mut instructions = Vec::new();
    let mut at = span.start;
    while at < span.end {
        let instruction = decode(code, at).ok_or(CodeFault::Unknown(at))?;
        at = instruction.end;
        instructions.push(instruction);
    }
    if at == span.end { Ok(instructions) } else { Err(CodeFault::Extends(span.end)) }
}

/// The frame that the prologue set up.
struct Frame {
    /// The caller's registers on the stack, in the order in which they were pushed.
    pushed: Vec<Number>,
}

impl Frame {
    fn of(program: &Verified, prologue: &[Decoded]) -> Result<Self, CodeFault> {
        let mut effects = prologue.iter().map(|instruction| instruction.effect).peekable();
        for expected in [Effect::EntryMark, Effect::Pushes(RBP), Effect::Frames] {
            if effects.next() != Some(expected) {
                return Err(CodeFault::Lacks(expected));
            }
        }
        let reserved = match effects.peek() {
            Some(&Effect::Reserves(bytes)) => {
                effects.next();
                bytes
            }
            _ => 0,
        };
        if reserved < i32::from(program.stack_bytes()) {
            return Err(CodeFault::Stack { reserved, expected: program.stack_bytes() });
        }
        let mut pushed = Vec::new();
        for effect in effects {
            match effect {
                Effect::Pushes(register) if PRESERVED.contains(&register) => pushed.push(register),
                other => return Err(CodeFault::Unexpected(other)),
            }
        }
        // The return address and RBP take 16 bytes.
        if !(reserved as usize + 8 * pushed.len()).is_multiple_of(16) {
            return Err(CodeFault::Unaligned);
        }
        Ok(Frame { pushed })
    }

    /// Returns true if the instructions are the end of a function with this frame.
    fn is_left_by(&self, instructions: &[Decoded]) -> bool {
        let pops = self.pushed.iter().rev().map(|&register| Effect::Pops(register));
        let expected = pops.chain([Effect::Leaves, Effect::Returns]);
        instructions.iter().map(|instruction| instruction.effect).eq(expected)
    }
}

/// The code of one instruction of the program.
struct Checker<'a> {
    program: &'a Verified,
    starts: &'a [usize],
    frame: &'a Frame,
    instructions: &'a [Decoded],
}

impl Checker<'_> {
    fn operation(&self, operation: &Operation) -> Result<(), CodeFault> {
        let effects: Vec<Effect> = self.instructions.iter().map(|instruction| instruction.effect).collect();
        match (*operation, effects.as_slice()) {
            (Operation::Load { destination, base, offset, bytes }, effects) => {
                let (to, base, offset) = (mapped(destination) as u8, mapped(base) as u8, i32::from(offset));
                self.expect(effects, &[Effect::Loads { bytes, to, base, offset }])?;
                self.may_write(to)
            }
            (Operation::Store { base, offset, bytes, .. }, effects) => {
                let (base, offset) = (mapped(base) as u8, i32::from(offset));
                self.expect(effects, &[Effect::Stores { bytes, base, offset }])
            }
            (Operation::Jump { target }, effects) => {
                self.expect(effects, &[Effect::Jumps { target: self.starts[target] }])
            }
            (Operation::Branch { target, .. }, effects) => {
                self.expect(effects, &[Effect::Compares, Effect::Branches { target: self.starts[target] }])
            }
            (Operation::Call { helper }, effects) => {
                let helper = self.program.interface().helpers.get(helper).ok_or(CodeFault::NoSuchHelper)?;
                let value = helper.function() as usize as u64;
                self.expect(effects, &[Effect::Constant { register: RAX, value }, Effect::CallsRax])
            }
            (Operation::Exit, _) => match self.frame.is_left_by(self.instructions) {
                true => Ok(()),
                false => Err(CodeFault::NoEpilogue),
            },
            (Operation::Arithmetic { destination, .. }, _)
            | (Operation::Negate { destination, .. }, _)
            | (Operation::ByteOrder { destination, .. }, _)
            | (Operation::LoadConstant { destination, .. }, _) => self.computes(mapped(destination) as u8),
        }
    }

    fn expect(&self, found: &[Effect], expected: &[Effect]) -> Result<(), CodeFault> {
        if found == expected {
            return Ok(());
        }
        Err(CodeFault::Differs { found: found.to_vec(), expected: expected.to_vec() })
    }

    /// Checks that unreachable code sets a result and ends the program. The second half of an instruction has no
    /// code.
    fn unreached(&self) -> Result<(), CodeFault> {
        match self.instructions {
            [] => Ok(()),
            [first, rest @ ..] if first.effect == Effect::Writes(RAX) && self.frame.is_left_by(rest) => Ok(()),
            _ => Err(CodeFault::UnreachedContinues),
        }
    }

    /// Checks arithmetic: it uses registers only, and its jumps stay inside its code. It preserves every register
    /// except its destination and the scratch registers: a division and a shift restore the registers that they
    /// borrow.
    fn computes(&self, destination: Number) -> Result<(), CodeFault> {
        self.may_write(destination)?;
        let mut held = [0; REGISTERS];
        held.iter_mut().zip(0..).for_each(|(held, register)| *held = register);
        self.follow(0, held.map(Some), destination)
    }

    /// Follows the code from an instruction on. For each register, `held` names the register that had its value at
    /// the start, if any.
    fn follow(
        &self,
        mut next: usize,
        mut held: [Option<Number>; REGISTERS],
        destination: Number,
    ) -> Result<(), CodeFault> {
        while let Some(instruction) = self.instructions.get(next) {
            next += 1;
            match instruction.effect {
                Effect::Writes(register) | Effect::Constant { register, .. } => held[usize::from(register)] = None,
                Effect::Copies { to, from } => held[usize::from(to)] = held[usize::from(from)],
                Effect::Divides => (held[usize::from(RAX)], held[usize::from(RDX)]) = (None, None),
                Effect::Compares => {}
                Effect::Branches { target } => self.follow(self.ahead(next, target)?, held, destination)?,
                Effect::Jumps { target } => next = self.ahead(next, target)?,
                other => return Err(CodeFault::Unexpected(other)),
            }
        }
        let is_kept = |&register: &Number| held[usize::from(register)] == Some(register);
        let may_change = |register: &Number| *register == destination || SCRATCH.contains(register);
        match (0..REGISTERS as Number).find(|register| !is_kept(register) && !may_change(register)) {
            Some(register) => Err(CodeFault::Changes { destination, register }),
            None => Ok(()),
        }
    }

    /// Returns the index of the instruction that a forward jump leads to; the number of instructions for the end of
    /// the code.
    fn ahead(&self, next: usize, target: usize) -> Result<usize, CodeFault> {
        let is_before = |index: &usize| self.instructions[*index - 1].end == target;
        (next..=self.instructions.len()).find(is_before).ok_or(CodeFault::Jump(target))
    }

    /// Checks that the program may write this register.
    fn may_write(&self, register: Number) -> Result<(), CodeFault> {
        let is_frame = register == mapped(FRAME_POINTER) as u8 || register == RSP || register == RBP;
        if is_frame || PRESERVED.contains(&register) && !self.frame.pushed.contains(&register) {
            return Err(CodeFault::Callers(register));
        }
        Ok(())
    }
}
