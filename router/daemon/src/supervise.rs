//! Supervision: when a task or a thread of the router panics, or ends before its time, the whole router ends, with
//! the reason in the log and an exit code other than 0, so that whoever started it can start it again. A router that
//! runs without one of its parts would be worse than none.
//!
//! Panics anywhere in the process are noticed by the panic hook, whichever task or thread they end; tasks that must not end
//! are run by [`Supervisor::watch`]. Tasks that may end (a face that is made, a connection that closes, the loading of a
//! file) are not watched.
//!
//! Signals belong here, too: SIGTERM, SIGINT and SIGHUP end the router cleanly, whatever it is doing; a second SIGTERM or SIGINT
//! ends the process at once.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io, process, thread};

use nix::sys::signal::{SigSet, Signal};
use tokio::sync::watch;
use tracing::{error, info};

use crate::logging;

/// How long ending may take; then the process is ended as it is.
const ENDING_PATIENCE: Duration = Duration::from_secs(20);
/// The same after a fault, when something may be stuck.
const FAULT_PATIENCE: Duration = Duration::from_secs(5);

/// Why the router is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// A signal asked for it.
    Asked,
    /// A fault; the text names it.
    Fault(String),
}

/// Knows whether the router is to end, and why.
#[derive(Clone)]
pub struct Supervisor {
    shared: Arc<Shared>,
}

struct Shared {
    end: watch::Sender<Option<End>>,
    /// Tasks end by themselves from now on.
    is_ending: AtomicBool,
    /// The first fault, also of those that come while the router is ending.
    fault: Mutex<Option<String>>,
    /// Whether the process is ended when ending takes too long.
    ends_process: bool,
}

impl Supervisor {
    /// Watches for signals and panics of this process from now on. To be called before any thread is started: signals go
    /// to the thread that waits for them only if all others have them blocked, as they inherit it from the first.
    ///
    /// # Errors
    /// The system refuses the thread.
    pub fn start() -> io::Result<Self> {
        let supervisor = Supervisor::new(true);
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGTERM);
        signals.add(Signal::SIGINT);
        // Whoever starts the router with nohup wants it to outlive the terminal.
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
        Supervisor { shared: Arc::new(Shared { end, is_ending, fault, ends_process }) }
    }

    fn await_signals(&self, signals: &SigSet) {
        let mut is_first = true;
        loop {
            let Ok(signal) = signals.wait() else { continue };
            match (is_first, signal) {
                (true, _) => {
                    is_first = false;
                    info!(%signal, "told to end");
                    self.end(End::Asked);
                    self.end_process_after(ENDING_PATIENCE);
                }
                // A terminal that closes may send it twice: by the kernel and by the shell.
                (false, Signal::SIGHUP) => {}
                // Whoever asks twice does not want to wait for a state file or for peers.
                (false, _) => process::exit(128 + signal as i32),
            }
        }
    }

    /// The panic hook. It must not wait for anything: the thread that panics may hold anything.
    fn panicked(&self, panic: &PanicHookInfo<'_>) {
        let thread = thread::current();
        let text = panic.payload_as_str().unwrap_or("no reason was given");
        let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
        let reason = format!("thread `{}` panicked{place}: {text}", thread.name().unwrap_or("without name"));
        let backtrace = std::backtrace::Backtrace::capture();
        match backtrace.status() {
            std::backtrace::BacktraceStatus::Captured => error!("{reason}\n{backtrace}"),
            _ => error!("{reason}"),
        }
        self.fault(reason);
    }

    /// An essential part of the router has failed.
    pub fn fault(&self, reason: String) {
        let mut first = self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = first.is_none();
        first.get_or_insert_with(|| reason.clone());
        drop(first);
        self.end(End::Fault(reason));
        if is_first {
            self.end_process_after(FAULT_PATIENCE);
        }
    }

    fn end(&self, end: End) {
        self.shared.end.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(end);
            is_first
        });
    }

    /// Ends the process if it has not ended by then, because a thread is stuck.
    fn end_process_after(&self, timeout: Duration) {
        if !self.shared.ends_process {
            return;
        }
        // Without the thread, ending may take longer, and nothing else.
        let _ = thread::Builder::new().name("end".to_owned()).spawn(move || {
            thread::sleep(timeout);
            error!("the router could not end in time; the process is ended as it is");
            logging::flush();
            // Not `exit`, which may wait for what is stuck.
            process::abort();
        });
    }

    /// Whether the router is to end; for work that looks from time to time.
    pub fn is_ending(&self) -> bool {
        self.shared.end.borrow().is_some()
    }

    /// Waits until the router is to end.
    pub async fn ended(&self) -> End {
        let mut end = self.shared.end.subscribe();
        loop {
            if let Some(end) = &*end.borrow_and_update() {
                return end.clone();
            }
            // The sender lives as long as `self`.
            let _ = end.changed().await;
        }
    }

    /// From now on tasks end because they were told to.
    pub fn expect_ends(&self) {
        self.shared.is_ending.store(true, Ordering::Release);
    }

    /// The first fault there was.
    pub fn first_fault(&self) -> Option<String> {
        self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs a task that must not end before the router does; `name` says what it is.
    pub async fn watch<E: Display>(self, name: &'static str, task: impl Future<Output = Result<(), E>>) {
        fault_point(name);
        let result = task.await;
        if self.shared.is_ending.load(Ordering::Acquire) {
            return;
        }
        let reason = match result {
            Ok(()) => format!("the {name} ended by itself"),
            Err(error) => format!("the {name} ended: {error}"),
        };
        error!("{reason}");
        self.fault(reason);
    }

    /// The same for a task that has no reason to end.
    pub async fn watch_endless(self, name: &'static str, task: impl Future<Output = ()>) {
        let task = async {
            task.await;
            Ok::<(), Infallible>(())
        };
        self.watch(name, task).await;
    }
}

/// Whether this process ignores a signal from its start on, as whoever started it wanted (proc(5), `SigIgn`).
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & 1 << (signal as u32 - 1) != 0
}

/// Panics here if the environment variable `NAMEHOP_FAULT` has this name: tests of what becomes of a router whose parts fail.
/// Programs built for use have no such thing.
#[inline]
pub fn fault_point(name: &str) {
    #[cfg(debug_assertions)]
    if std::env::var_os("NAMEHOP_FAULT").is_some_and(|wanted| wanted == name) {
        panic!("a fault was asked for in {name}");
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
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
            assert_eq!(supervisor.ended().await, End::Fault("the first task ended: no more".to_owned()));
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
            supervisor.end(End::Asked);
            supervisor.fault("late".to_owned());
            assert_eq!(supervisor.ended().await, End::Asked);
            assert_eq!(supervisor.first_fault().as_deref(), Some("late"));
        });
    }
}
