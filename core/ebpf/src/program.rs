//! The interface between programs and the router: context, memory, helpers.

use std::ops::Range;

/// A helper function: five arguments from registers 1 to 5, the result for register 0.
pub type HelperFunction = unsafe extern "C" fn(u64, u64, u64, u64, u64) -> u64;

/// Expected kind of an argument of a helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// The start of the context, as passed to the program.
    Context,
    /// Any number.
    Number,
}

/// Memory that a program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Size in bytes.
    pub bytes: u32,
    /// True if the program may change it.
    pub is_writable: bool,
}

/// Kind of a helper's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returned {
    /// Any number.
    Number,
    /// The start of memory that lives until the program ends.
    Memory(Memory),
}

/// A function of the router that programs may call.
#[derive(Debug, Clone, Copy)]
pub struct Helper {
    name: &'static str,
    arguments: &'static [Argument],
    returned: Returned,
    function: HelperFunction,
}

impl Helper {
    /// Maximum number of arguments of a helper.
    pub const MAX_ARGUMENTS: usize = 5;

    /// Describes a function.
    ///
    /// # Safety
    /// Called with `arguments` of any value, the function must be sound, and return what `returned` says.
    #[expect(unsafe_code, reason = "the contract is the caller's; nothing here checks it")]
    pub const unsafe fn new(
        name: &'static str,
        arguments: &'static [Argument],
        returned: Returned,
        function: HelperFunction,
    ) -> Self {
        assert!(arguments.len() <= Self::MAX_ARGUMENTS);
        Helper { name, arguments, returned, function }
    }

    /// Name of the function in C.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Expected arguments.
    pub fn arguments(&self) -> &'static [Argument] {
        self.arguments
    }

    /// Kind of the result.
    pub fn returned(&self) -> Returned {
        self.returned
    }

    /// The function.
    pub fn function(&self) -> HelperFunction {
        self.function
    }
}

/// The context, memory and helpers that programs of one kind may use.
#[derive(Debug)]
pub struct Interface {
    /// Size of the program's context in bytes.
    pub context_bytes: u32,
    /// Range of the context that the program may change.
    pub writable: Range<u32>,
    /// Functions that the program may call.
    pub helpers: &'static [Helper],
}
