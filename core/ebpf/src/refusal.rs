//! The reason why a program is refused, wherever the fault is found: in its object file, in an instruction, or in what
//! the program does.

use std::fmt;

/// Reason why a program is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// The instruction, counted from 0; `None` for the program as a whole.
    pub instruction: Option<usize>,
    /// Description of the fault.
    pub reason: String,
}

impl Refusal {
    pub(crate) fn at(instruction: usize, reason: impl Into<String>) -> Self {
        Refusal { instruction: Some(instruction), reason: reason.into() }
    }

    pub(crate) fn whole(reason: impl Into<String>) -> Self {
        Refusal { instruction: None, reason: reason.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.instruction {
            Some(instruction) => write!(f, "instruction {instruction}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}
