//! The reasons why a program has no native code.

use std::io;
use std::ops::Range;

use super::decode::{Effect, Number};

/// The reason why a program has no native code.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// The translator found no target for a jump, which does not occur in a verified program.
    #[error("{0}")]
    Translation(&'static str),
    /// The translator has a fault.
    #[error("the translated code fails its check: {0}")]
    Check(#[from] CheckError),
    /// The system forbids the process to execute what it has written, or is out of memory.
    #[error("the kernel does not allow the router to execute translated code: {0}")]
    Pages(#[from] io::Error),
}

/// A difference between translated code and its program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The code has another length than the program requires.
    #[error("the code does not end where the program ends")]
    Length,
    /// The code before that of the first instruction is wrong.
    #[error("prologue: {0}")]
    Prologue(CodeFault),
    /// The code of an instruction is wrong.
    #[error("instruction {instruction}, code {code:?}: {fault}")]
    Instruction {
        /// The instruction, counted from 0.
        instruction: usize,
        /// The range of its code.
        code: Range<usize>,
        /// What is wrong.
        fault: CodeFault,
    },
}

/// A fault in a part of the code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeFault {
    /// The decoder does not know this code.
    #[error("unknown code at {0}")]
    Unknown(usize),
    /// A CPU instruction does not end with its part.
    #[error("an instruction extends past {0}")]
    Extends(usize),
    /// The prologue lacks a step.
    #[error("the prologue lacks {0:?}")]
    Lacks(Effect),
    /// The prologue reserves too little stack.
    #[error("{reserved} bytes of stack are reserved, expected {expected}")]
    Stack {
        /// The bytes that are reserved.
        reserved: i32,
        /// The bytes that the program uses.
        expected: u16,
    },
    /// The stack is not aligned to 16 bytes.
    #[error("the stack is not aligned")]
    Unaligned,
    /// A CPU instruction does not belong here.
    #[error("unexpected {0:?}")]
    Unexpected(Effect),
    /// The code does something else than its instruction.
    #[error("found {found:?}, expected {expected:?}")]
    Differs {
        /// What the code does.
        found: Vec<Effect>,
        /// What the instruction requires.
        expected: Vec<Effect>,
    },
    /// The interface has no helper with this number.
    #[error("no such helper")]
    NoSuchHelper,
    /// The end of the program does not restore what the caller expects.
    #[error("not an epilogue")]
    NoEpilogue,
    /// Unreachable code does not end the program.
    #[error("unreachable code does not end the program")]
    UnreachedContinues,
    /// Arithmetic changes a register that is not its own.
    #[error("arithmetic on {destination} changes register {register}")]
    Changes {
        /// The register that the instruction changes.
        destination: Number,
        /// The other register.
        register: Number,
    },
    /// A jump inside arithmetic leads elsewhere than forward to a CPU instruction of its own part.
    #[error("jump to {0} inside arithmetic")]
    Jump(usize),
    /// A register is written that belongs to the caller.
    #[error("register {0} belongs to the caller")]
    Callers(Number),
}
