//! Runs programs in all their forms and compares the results.

use super::{CONTEXT_BYTES, Interpreter, MEMORY_BYTES, Outcome};
use crate::instruction::{Instruction, decode};
use crate::{Code, Verified};

/// Bytes of the context and of the helper's memory after it.
pub const BYTES: usize = (CONTEXT_BYTES + MEMORY_BYTES) as usize;

/// Runs a program of [`INTERFACE`](super::INTERFACE) on a context followed by the helper's memory; returns its
/// result.
///
/// # Panics
/// If `memory` does not have [`BYTES`] bytes.
#[expect(unsafe_code, reason = "runs a program")]
pub fn run(code: &Code, memory: &mut [u8]) -> u64 {
    assert_eq!(memory.len(), BYTES);
    // SAFETY: the memory is as large as the interface says, followed by the helper's memory.
    unsafe { code.run(memory.as_mut_ptr()) }
}

/// Runs a program as native code, interpreted, and in the [`Interpreter`], which shares no code with either.
///
/// # Errors
/// Describes the difference in results or memory.
///
/// # Panics
/// If `memory` does not have [`BYTES`] bytes.
pub fn compare_forms(instructions: &[Instruction], program: &Verified, memory: &[u8]) -> Result<(), String> {
    let operations = decode(instructions).map_err(|refusal| refusal.to_string())?;
    let mut interpreter = Interpreter::new(memory.to_vec());
    let expected = interpreter.run(&operations, |_, _| {});
    let (best, interpreted) = (Code::new(program.clone(), "test"), Code::interpreted(program.clone(), "test"));
    if cfg!(all(target_arch = "x86_64", target_os = "linux"))
        && let Some(reason) = best.interpreted_because()
    {
        return Err(format!("no native code: {reason}"));
    }
    for (form, code) in [("native", best), ("interpreted", interpreted)] {
        let mut memory = memory.to_vec();
        let result = run(&code, &mut memory);
        if Outcome::Ended(result) != expected || memory != interpreter.memory {
            return Err(format!("{form}: result {result:#x}, expected {expected:?}, of {instructions:?}"));
        }
    }
    Ok(())
}
