//! Records which program ended the process.
//!
//! A verified program can do harm only if the verifier, the translator or a helper has a fault. In that case the
//! process ends by a signal, and the next start would load the same program again. Therefore each thread stores the
//! label of its running program, and a handler of fatal signals appends that label as a line to a file opened in
//! advance. The next start reads the file and does not load these programs.

#![expect(unsafe_code, reason = "installs signal handlers, which run in a process that may be corrupted")]

use std::cell::Cell;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::libc;

/// Signals that a faulty program can cause. SIGABRT comes from a helper that panics.
const SIGNALS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGABRT];

thread_local! {
    /// Label of this thread's running program.
    static RUNNING: Cell<*const Label> = const { Cell::new(null()) };
}

/// Label under which a program is recorded: one line.
#[derive(Debug)]
pub struct Label(Box<[u8]>);

impl Label {
    /// Makes a label; line ends become spaces.
    pub(crate) fn new(text: &str) -> Self {
        Label(text.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }).chain([b'\n']).collect())
    }
}

/// While this guard lives, this thread runs the program with the given label.
pub(crate) struct Running<'a>(std::marker::PhantomData<&'a Label>);

#[inline]
pub(crate) fn running(label: &Label) -> Running<'_> {
    RUNNING.set(label);
    Running(std::marker::PhantomData)
}

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        RUNNING.set(null());
    }
}

/// Data of the signal handler, set before the handler is installed.
struct Record {
    file: OwnedFd,
    /// The previous actions, in the order of [`SIGNALS`].
    previous: [libc::sigaction; SIGNALS.len()],
}

static RECORD: OnceLock<Record> = OnceLock::new();

/// Appends the labels of programs that end the process to `file` from now on. Only the first call has an effect.
///
/// # Errors
/// If the handlers cannot be set.
pub fn record_in(file: OwnedFd) -> io::Result<()> {
    // SAFETY: a zeroed `sigaction` is valid: the default action.
    let mut previous: [libc::sigaction; SIGNALS.len()] = unsafe { zeroed() };
    for (signal, previous) in SIGNALS.iter().zip(&mut previous) {
        // SAFETY: without a new action, the call only reads the current one.
        Errno::result(unsafe { libc::sigaction(*signal, null(), previous) })?;
    }
    if RECORD.set(Record { file, previous }).is_ok() {
        // SAFETY: a zeroed `sigaction` is valid, as above; the fields that matter are set below.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = on_fault as *const () as usize;
        // Use the alternative stack that the Rust runtime gives each thread, because the thread's own may be
        // exhausted.
        action.sa_flags = libc::SA_ONSTACK;
        for signal in SIGNALS {
            // SAFETY: the handler calls only functions that are allowed in signal handlers.
            Errno::result(unsafe { libc::sigaction(signal, &action, null_mut()) })?;
        }
    }
    Ok(())
}

/// Appends the label of the running program, and restores the previous action: the faulting instruction runs again
/// when this function returns.
extern "C" fn on_fault(signal: libc::c_int) {
    let Some(record) = RECORD.get() else { return };
    let label = RUNNING.get();
    if !label.is_null() {
        // SAFETY: the running program owns its label.
        let text = unsafe { &(*label).0 };
        // SAFETY: the descriptor is never closed, and the text is alive. An error cannot be handled here.
        let _ = unsafe { libc::write(record.file.as_raw_fd(), text.as_ptr().cast(), text.len()) };
    }
    for (of, previous) in SIGNALS.iter().zip(&record.previous) {
        if *of == signal {
            // SAFETY: this is the previous action.
            unsafe { libc::sigaction(signal, previous, null_mut()) };
        }
    }
}
