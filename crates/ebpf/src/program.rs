//! What a program may use of the router, and the program when it is compiled.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A helper function as compiled programs call it: up to five arguments in registers 1 to 5, the result in register 0.
pub type HelperFunction = unsafe extern "C" fn(u64, u64, u64, u64, u64) -> u64;

/// A compiled program. Its argument is the start of its context.
pub type Entry = unsafe extern "C" fn(*mut u8) -> u64;

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

/// A verified program, compiled for this processor. Its memory is freed with the last clone.
#[derive(Clone)]
pub struct Code {
    entry: Entry,
    bytes: usize,
    /// Owns the instructions.
    _memory: Arc<dyn Any + Send + Sync>,
}

impl Code {
    /// A compiled program of so many bytes that lives as long as `memory`.
    ///
    /// # Safety
    /// `entry` must be compiled from a [`Verified`](crate::Verified) program, and be there until `memory` is dropped.
    #[expect(unsafe_code, reason = "nothing here checks what the caller promises")]
    pub unsafe fn new(entry: Entry, bytes: usize, memory: Arc<dyn Any + Send + Sync>) -> Self {
        Code { entry, bytes, _memory: memory }
    }

    /// The function to call with the start of a context, which has as many bytes as the interface of the program says.
    #[inline]
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// Size of the instructions for the processor.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
