//! Names the program that ended the process.
//!
//! A program that passes the verifier cannot do harm unless the verifier, the translator or a helper has a fault. Should one have
//! such a fault, the process ends by a signal, and the next start would load the same program again. Therefore each thread keeps the
//! label of the program that it is running, and a handler of fatal signals appends that label, as a line, to a file that was opened
//! before. The next start reads the file and does not load these programs.

#![expect(unsafe_code, reason = "signal handlers are set and run in a process that may be damaged")]

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
    /// Label of the program that this thread is running.
    static RUNNING: Cell<*const Label> = const { Cell::new(null()) };
}

/// The name under which a program is blamed: one line.
#[derive(Debug)]
pub struct Label(Box<[u8]>);

impl Label {
    /// Of a text without line ends.
    pub(crate) fn new(text: &str) -> Self {
        Label(text.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }).chain([b'\n']).collect())
    }
}

/// While it lives, this thread runs the program with a label.
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

/// What the handler needs. It is there before the handler is.
struct Record {
    file: OwnedFd,
    /// The actions before, in the order of [`SIGNALS`].
    previous: [libc::sigaction; SIGNALS.len()],
}

static RECORD: OnceLock<Record> = OnceLock::new();

/// Has the labels of programs that end the process appended to `file` from now on. Only the first call has an effect.
///
/// # Errors
/// The handlers cannot be set.
pub fn record_in(file: OwnedFd) -> io::Result<()> {
    // SAFETY: all zeros are an action: the default one.
    let mut previous: [libc::sigaction; SIGNALS.len()] = unsafe { zeroed() };
    for (signal, previous) in SIGNALS.iter().zip(&mut previous) {
        // SAFETY: without a new action, the call only tells the one that is set.
        Errno::result(unsafe { libc::sigaction(*signal, null(), previous) })?;
    }
    if RECORD.set(Record { file, previous }).is_ok() {
        // SAFETY: as above; what matters is filled in.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = on_fault as *const () as usize;
        // On the alternative stack that the Rust runtime gives each thread, in case the program's own is exhausted.
        action.sa_flags = libc::SA_ONSTACK;
        for signal in SIGNALS {
            // SAFETY: the handler calls only what signal handlers may.
            Errno::result(unsafe { libc::sigaction(signal, &action, null_mut()) })?;
        }
    }
    Ok(())
}

/// Appends the label of the running program, and sets the action that was there before: the instruction that caused the fault runs
/// again when this returns.
extern "C" fn on_fault(signal: libc::c_int) {
    let Some(record) = RECORD.get() else { return };
    let label = RUNNING.get();
    if !label.is_null() {
        // SAFETY: the program that runs owns its label.
        let text = unsafe { &(*label).0 };
        // SAFETY: the descriptor is open for good, and the text lives. An error leaves nothing to be done.
        let _ = unsafe { libc::write(record.file.as_raw_fd(), text.as_ptr().cast(), text.len()) };
    }
    for (of, previous) in SIGNALS.iter().zip(&record.previous) {
        if *of == signal {
            // SAFETY: the action that was there before.
            unsafe { libc::sigaction(signal, previous, null_mut()) };
        }
    }
}
