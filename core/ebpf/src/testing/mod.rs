//! Support for tests: an interface, random programs, an interpreter that checks every access, and the SDK's programs.

mod clang;
mod compare;
mod interpreter;
mod long_programs;
mod programs;

pub use clang::{compile_c, sdk};
pub use compare::{BYTES, FormsError, compare_forms, run};
pub use interpreter::{Interpreter, Outcome, RunFault};
pub use long_programs::{Random, Shape, long_program};
pub use programs::program_from;

use crate::{Argument, Helper, Interface, Memory, Returned};

/// Bytes of the context of programs in tests.
pub const CONTEXT_BYTES: u32 = 64;
/// Bytes of the memory that a helper returns.
pub const MEMORY_BYTES: u32 = 32;
/// Range of the context that test programs may change.
pub const WRITABLE: std::ops::Range<u32> = 16..64;

extern "C" fn add(_context: u64, first: u64, second: u64, _: u64, _: u64) -> u64 {
    first.wrapping_mul(31).wrapping_add(second)
}

extern "C" fn memory(context: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    // After the context, where the tests put it.
    context + u64::from(CONTEXT_BYTES)
}

extern "C" fn mix(first: u64, second: u64, third: u64, fourth: u64, fifth: u64) -> u64 {
    [first, second, third, fourth, fifth].into_iter().fold(1, |mixed, number| mixed.rotate_left(7) ^ number)
}

// SAFETY: the functions accept all numbers, and tests put the memory after the context.
#[expect(unsafe_code, reason = "the functions accept all numbers, and tests put the memory where the context says")]
static HELPERS: [Helper; 3] = unsafe {
    [
        Helper::new("add", &[Argument::Context, Argument::Number, Argument::Number], Returned::Number, add),
        Helper::new(
            "memory",
            &[Argument::Context],
            Returned::Memory(Memory { bytes: MEMORY_BYTES, is_writable: true }),
            memory,
        ),
        Helper::new("mix", &[Argument::Number; 5], Returned::Number, mix),
    ]
};

/// Index of `add` among the helpers.
pub const ADD: usize = 0;
/// Index of `memory`.
pub const MEMORY: usize = 1;
/// Index of `mix`.
pub const MIX: usize = 2;

/// The interface of test programs. The context must be followed by [`MEMORY_BYTES`] more bytes.
pub static INTERFACE: Interface = Interface { context_bytes: CONTEXT_BYTES, writable: WRITABLE, helpers: &HELPERS };
