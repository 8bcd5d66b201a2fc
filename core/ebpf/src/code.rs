//! Executable form of a program.

use std::fmt;
use std::sync::Arc;

use crate::Verified;
use crate::blame::{self, Label};
use crate::interpret;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::native::NativeCode;

/// A verified program in executable form: native code if possible, else interpreted. Clones share it.
#[derive(Clone)]
pub struct Code {
    form: Form,
    label: Arc<Label>,
    reason: Option<Arc<str>>,
}

#[derive(Clone)]
enum Form {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    Native(NativeCode),
    Interpreted(Arc<Verified>),
}

impl Code {
    /// Translates a program, or prepares it for the interpreter if the CPU or the system does not allow native code.
    /// `label` identifies it if it ends the process: see [`blame`].
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub fn new(program: Verified, label: &str) -> Self {
        match NativeCode::new(&program) {
            Ok(native) => Code { form: Form::Native(native), label: Arc::new(Label::new(label)), reason: None },
            Err(error) => Code { reason: Some(error.to_string().into()), ..Code::interpreted(program, label) },
        }
    }

    /// Prepares a program for the interpreter. `label` identifies it if it ends the process: see [`blame`].
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    pub fn new(program: Verified, label: &str) -> Self {
        Code { reason: Some("native code is supported on x86-64 only".into()), ..Code::interpreted(program, label) }
    }

    /// Prepares a program for the interpreter.
    pub fn interpreted(program: Verified, label: &str) -> Self {
        Code { form: Form::Interpreted(Arc::new(program)), label: Arc::new(Label::new(label)), reason: None }
    }

    /// Returns the reason why there is no native code; `None` if there is.
    pub fn interpreted_because(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Length of the native code in bytes; 0 if the program is interpreted.
    pub fn native_bytes(&self) -> usize {
        match &self.form {
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            Form::Native(native) => native.bytes(),
            Form::Interpreted(_) => 0,
        }
    }

    /// Runs the program and returns its result.
    ///
    /// # Safety
    /// `context` points to as many bytes as the program's interface says, nothing else uses them until the program
    /// ends, and helpers may be called with it.
    #[inline]
    #[expect(unsafe_code, reason = "the contract is the caller's; nothing here checks it")]
    pub unsafe fn run(&self, context: *mut u8) -> u64 {
        let _running = blame::running(&self.label);
        // SAFETY: the program is verified, and the caller guarantees the rest.
        unsafe {
            match &self.form {
                #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
                Form::Native(native) => native.run(context),
                Form::Interpreted(program) => interpret::run(program, context),
            }
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("native_bytes", &self.native_bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "the tests run programs")]
mod tests;
