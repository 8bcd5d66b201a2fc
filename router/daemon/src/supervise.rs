//! Supervision: when a task or thread of the router panics or ends unexpectedly, the whole router ends. The reason is
//! in the log, and the exit code is not 0, so that a service manager can restart the router. A router without one of
//! its parts would be worse than none.
//!
//! The panic hook handles panics in all tasks and threads of the process. [`Supervisor::watch`] runs tasks that must
//! not end. Tasks that may end (creating a face, a connection, loading a file) are not watched.
//!
//! This module also handles signals. SIGTERM, SIGINT and SIGHUP end the router cleanly at any time; a second SIGTERM or
//! SIGINT ends the process at once.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io, process, thread};

use namehop_worker::fault_point;
use nix::sys::signal::{SigSet, Signal};
use tokio::sync::watch;
use tracing::{error, info};

use crate::logging;

/// Longest duration of a clean end; then the process is aborted.
const ENDING_PATIENCE: Duration = Duration::from_secs(20);
/// The same after a fault, when a thread may be stuck.
const FAULT_PATIENCE: Duration = Duration::from_secs(5);

/// The reason why the router ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// A signal requested it.
    Asked,
    /// A fault, described by the text.
    Fault(String),
}

/// Records whether the router must end, and why. Clones share one state.
#[derive(Clone)]
pub struct Supervisor {
    shared: Arc<SupervisorState>,
}

struct SupervisorState {
    end: watch::Sender<Option<EndReason>>,
    /// Tasks are expected to end from now on.
    is_ending: AtomicBool,
    /// The first fault, even one that occurs while the router is ending.
    fault: Mutex<Option<String>>,
    /// Whether the process is aborted when ending takes too long.
    ends_process: bool,
}

impl Supervisor {
    /// Starts handling signals and panics of this process. Must be called before any other thread is started: the
    /// thread that waits for signals gets them only if all other threads block them, and threads inherit this from the
    /// first one.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start() -> io::Result<Self> {
        let supervisor = Supervisor::new(true);
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGTERM);
        signals.add(Signal::SIGINT);
        // nohup ignores SIGHUP so that the router outlives the terminal.
        if !is_ignored(Signal::SIGHUP) {
            signals.add(Signal::SIGHUP);
        }
        signals.thread_block()?;
        let waiting = supervisor.clone();
        thread::Builder::new().name("signals".to_owned()).spawn(move || waiting.await_signals(&signals))?;
        let hooked = supervisor.clone();
        panic::set_hook(Box::new(move |panic| hooked.panicked(panic)));
        Ok(supervisor)
    }

    fn new(ends_process: bool) -> Self {
        let (end, _) = watch::channel(None);
        let (is_ending, fault) = (AtomicBool::new(false), Mutex::new(None));
        Supervisor { shared: Arc::new(SupervisorState { end, is_ending, fault, ends_process }) }
    }

    fn await_signals(&self, signals: &SigSet) {
        let mut is_first = true;
        loop {
            let Ok(signal) = signals.wait() else { continue };
            match (is_first, signal) {
                (true, _) => {
                    is_first = false;
                    info!(%signal, "received a signal to stop");
                    self.end(EndReason::Asked);
                    self.end_process_after(ENDING_PATIENCE);
                }
                // A closing terminal may cause two SIGHUPs, from the kernel and from the shell.
                (false, Signal::SIGHUP) => {}
                // The user does not want to wait for the state file or for peers.
                (false, _) => process::exit(128 + signal as i32),
            }
        }
    }

    /// The panic hook. It must not wait for anything, because the panicking thread may hold any lock.
    fn panicked(&self, panic: &PanicHookInfo<'_>) {
        let thread = thread::current();
        let text = panic.payload_as_str().unwrap_or("no message");
        let location =
            panic.location().map(|location| format!(" at {}:{}", location.file(), location.line())).unwrap_or_default();
        let reason = format!("thread `{}` panicked{location}: {text}", thread.name().unwrap_or("unnamed"));
        let backtrace = std::backtrace::Backtrace::capture();
        match backtrace.status() {
            std::backtrace::BacktraceStatus::Captured => error!("{reason}\n{backtrace}"),
            _ => error!("{reason}"),
        }
        self.fault(reason);
    }

    /// Reports that an essential part of the router has failed, and ends the router.
    pub fn fault(&self, reason: String) {
        let mut first = self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = first.is_none();
        first.get_or_insert_with(|| reason.clone());
        drop(first);
        self.end(EndReason::Fault(reason));
        if is_first {
            self.end_process_after(FAULT_PATIENCE);
        }
    }

    fn end(&self, end: EndReason) {
        self.shared.end.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(end);
            is_first
        });
    }

    /// Aborts the process after `timeout` if it has not ended by then, because a thread is stuck.
    fn end_process_after(&self, timeout: Duration) {
        if !self.shared.ends_process {
            return;
        }
        // Without this thread, ending may take longer; nothing else changes.
        let _ = thread::Builder::new().name("end".to_owned()).spawn(move || {
            thread::sleep(timeout);
            error!("the router did not end in time; aborting the process");
            logging::flush();
            // Not `exit`, which may wait for the stuck thread.
            process::abort();
        });
    }

    /// Returns whether the router must end; for work that polls this.
    pub fn is_ending(&self) -> bool {
        self.shared.end.borrow().is_some()
    }

    /// Waits until the router must end, and returns the reason.
    pub async fn ended(&self) -> EndReason {
        let mut end = self.shared.end.subscribe();
        loop {
            if let Some(end) = &*end.borrow_and_update() {
                return end.clone();
            }
            // The sender lives as long as `self`, so this cannot fail.
            let _ = end.changed().await;
        }
    }

    /// Makes the end of watched tasks expected from now on.
    pub fn expect_ends(&self) {
        self.shared.is_ending.store(true, Ordering::Release);
    }

    /// Returns the first fault, if any.
    pub fn first_fault(&self) -> Option<String> {
        self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs a task that must not end before the router does; `name` identifies it in messages.
    pub async fn watch<E: Display>(self, name: &'static str, task: impl Future<Output = Result<(), E>>) {
        fault_point(name);
        let result = task.await;
        if self.shared.is_ending.load(Ordering::Acquire) {
            return;
        }
        let reason = match result {
            Ok(()) => format!("the {name} ended unexpectedly"),
            Err(error) => format!("the {name} ended: {error}"),
        };
        error!("{reason}");
        self.fault(reason);
    }

    /// Like [`watch`](Self::watch), for a task without an error.
    pub async fn watch_endless(self, name: &'static str, task: impl Future<Output = ()>) {
        let task = async {
            task.await;
            Ok::<(), Infallible>(())
        };
        self.watch(name, task).await;
    }
}

/// Returns whether this process has ignored a signal since its start (proc(5), `SigIgn`).
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & 1 << (signal as u32 - 1) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime").block_on(test);
    }

    #[test]
    fn a_task_that_ends_ends_the_router_and_one_that_may_does_not() {
        run(async {
            let supervisor = Supervisor::new(false);
            supervisor.clone().watch("first task", async { Err("no more") }).await;
            assert_eq!(supervisor.ended().await, EndReason::Fault("the first task ended: no more".to_owned()));
            supervisor.clone().watch_endless("second task", async {}).await;
            assert_eq!(supervisor.first_fault().as_deref(), Some("the first task ended: no more"));

            let supervisor = Supervisor::new(false);
            supervisor.expect_ends();
            supervisor.clone().watch("task", async { Err("no more") }).await;
            assert!(!supervisor.is_ending());
            assert_eq!(supervisor.first_fault(), None);
        });
    }

    #[test]
    fn the_first_end_counts_and_a_later_fault_is_known() {
        run(async {
            let supervisor = Supervisor::new(false);
            supervisor.end(EndReason::Asked);
            supervisor.fault("late".to_owned());
            assert_eq!(supervisor.ended().await, EndReason::Asked);
            assert_eq!(supervisor.first_fault().as_deref(), Some("late"));
        });
    }
}
