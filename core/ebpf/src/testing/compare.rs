//! Runs programs in all their forms and compares the results.

use super::{CONTEXT_BYTES, Interpreter, MEMORY_BYTES, Outcome};
use crate::instruction::{Instruction, decode};
use crate::{Code, Refusal, Verified};

/// Bytes of the context and of the helper's memory after it.
pub const BYTES: usize = (CONTEXT_BYTES + MEMORY_BYTES) as usize;

/// Runs a program of [`INTERFACE`](super::INTERFACE) on a context followed by the helper's memory; returns its
/// result.
#[expect(unsafe_code, reason = "runs a program")]
pub fn run(code: &Code, memory: &mut [u8; BYTES]) -> u64 {
    // SAFETY: the memory is as large as the interface says, followed by the helper's memory.
    unsafe { code.run(memory.as_mut_ptr()) }
}

/// A program does not run alike in all its forms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormsError {
    /// It is no program.
    #[error(transparent)]
    Instructions(#[from] Refusal),
    /// There is no native code where there should be.
    #[error("no native code: {0}")]
    NoNativeCode(String),
    /// Two forms have different results or change memory differently.
    #[error("{form}: result {result:#x}, expected {expected:?}, of {instructions:?}")]
    Differs {
        /// The form with the difference.
        form: &'static str,
        /// Its result.
        result: u64,
        /// The outcome in the [`Interpreter`].
        expected: Outcome,
        /// The program.
        instructions: Vec<Instruction>,
    },
}

/// Runs a program as native code, interpreted, and in the [`Interpreter`], which shares no code with either, on each of
/// `memories`.
///
/// # Errors
/// If results or memory differ.
pub fn compare_forms(
    instructions: &[Instruction],
    program: &Verified,
    memories: &[[u8; BYTES]],
) -> Result<(), FormsError> {
    let operations = decode(instructions)?;
    let (best, interpreted) = (Code::new(program.clone(), "test"), Code::interpreted(program.clone(), "test"));
    if cfg!(all(target_arch = "x86_64", target_os = "linux"))
        && let Some(reason) = best.interpreted_because()
    {
        return Err(FormsError::NoNativeCode(reason.to_owned()));
    }
    for memory in memories {
        let mut interpreter = Interpreter::new(memory.to_vec());
        let expected = interpreter.run(&operations, |_, _| {});
        for (form, code) in [("native", &best), ("interpreted", &interpreted)] {
            let mut memory = *memory;
            let result = run(code, &mut memory);
            if Outcome::Ended(result) != expected || memory[..] != interpreter.memory {
                let instructions = instructions.to_vec();
                return Err(FormsError::Differs { form, result, expected, instructions });
            }
        }
    }
    Ok(())
}
