//! The interface between programs and the router: context, memory, helpers.

use std::ops::Range;

/// A helper function: five arguments from registers 1 to 5, the result for register 0.
pub type HelperFunction = unsafe extern "C" fn(u64, u64, u64, u64, u64) -> u64;

/// What a helper expects in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// The start of the context, as the program got it.
    Context,
    /// Any number.
    Number,
}

/// Memory that a program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Its size.
    pub bytes: u32,
    /// May the program change it?
    pub is_writable: bool,
}

/// What a helper gives back.
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
    /// Most arguments of a helper.
    pub const MAX_ARGUMENTS: usize = 5;

    /// Describes a function.
    ///
    /// # Safety
    /// Called with `arguments`, whatever the numbers, the function must behave well, and give back what `returned` says.
    #[expect(unsafe_code, reason = "nothing here checks what the caller promises")]
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

    /// What it expects.
    pub fn arguments(&self) -> &'static [Argument] {
        self.arguments
    }

    /// What it gives back.
    pub fn returned(&self) -> Returned {
        self.returned
    }

    /// The function.
    pub fn function(&self) -> HelperFunction {
        self.function
    }
}

/// What programs of one kind may use.
#[derive(Debug)]
pub struct Interface {
    /// Size of the context that the program gets.
    pub context_bytes: u32,
    /// The part of the context that the program may change.
    pub writable: Range<u32>,
    /// Functions that it may call.
    pub helpers: &'static [Helper],
}
