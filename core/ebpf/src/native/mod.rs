//! Native code of programs, for x86-64 under Linux.
//!
//! A program is translated ([`translate`]) with Namehop's own assembler ([`assembler`]). A decoder that shares
//! nothing with the assembler checks the code ([`check`], [`decode`]), and only then it is copied into executable
//! pages ([`pages`]).

mod assembler;
mod check;
mod decode;
mod fault;
mod pages;
#[cfg(test)]
mod tests;
mod translate;

use std::sync::Arc;

use crate::Verified;
use fault::NativeError;
use pages::Pages;

/// A translated program: its argument is the start of its context.
type Entry = unsafe extern "C" fn(*mut u8) -> u64;

/// Native code of a verified program. Dropping the last clone frees it.
#[derive(Debug, Clone)]
pub struct NativeCode {
    entry: Entry,
    bytes: usize,
    /// Owns the instructions.
    _pages: Arc<Pages>,
}

impl NativeCode {
    /// Translates and checks a program.
    ///
    /// # Errors
    /// If the translation fails its check, or the system does not allow executable pages.
    pub fn new(program: &Verified) -> Result<Self, NativeError> {
        let translation = translate::translate(program).map_err(NativeError::Translation)?;
        check::check(program, &translation)?;
        let pages = Pages::new(&translation.bytes)?;
        // SAFETY: the pages start with a function of this type.
        let entry = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Entry>(pages.start().as_ptr()) };
        Ok(NativeCode { entry, bytes: translation.bytes.len(), _pages: Arc::new(pages) })
    }

    /// Length of the code in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Runs the program and returns its result.
    ///
    /// # Safety
    /// As for [`Code::run`](crate::Code::run).
    #[inline]
    pub unsafe fn run(&self, context: *mut u8) -> u64 {
        // SAFETY: the caller guarantees what the program requires.
        unsafe { (self.entry)(context) }
    }
}
