//! Coalescing wake-ups between threads: the consumer of some queues sleeps, and a producer that adds to a queue wakes
//! it.
//!
//! While the consumer is awake, [`Waker::wake`] costs one memory fence and one load and sends nothing. Only the first
//! producer that finds it asleep pays for waking it. The consumer may be a tokio task ([`Waker::wait`]) or an ordinary
//! thread ([`Waker::park`], [`Waker::poll`]); there is one consumer at a time.
//!
//! # Why no wake-up is lost
//!
//! The consumer (1) stores `ASLEEP`, (2) executes a sequentially consistent fence, (3) checks its queues once more and
//! sleeps only if they are empty. A producer (a) adds to a queue, (b) executes a sequentially consistent fence, (c)
//! loads the state. All such fences have one total order. If (2) comes before (b), the load (c) sees the store (1) or a
//! later one: the producer finds `ASLEEP`, or finds `AWAKE` because another producer is already waking the consumer. If
//! (b) comes before (2), the check (3) sees the addition (a) and the consumer does not sleep. There is no third case.
//!
//! A notification sent between the decision to sleep and the sleep itself is kept: [`tokio::sync::Notify`] and
//! [`std::thread::Thread::unpark`] both store one permit, which makes the next sleep return at once, and so does the
//! counter of an eventfd. A permit left over from an abandoned sleep causes one unnecessary check of the queues and no
//! more.

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use tokio::sync::Notify;

const AWAKE: u8 = 0;
const ASLEEP_TASK: u8 = 1;
const ASLEEP_THREAD: u8 = 2;
const ASLEEP_POLL: u8 = 3;

/// Wakes one consumer; see the module documentation.
#[derive(Debug, Default)]
pub struct Waker {
    state: AtomicU8,
    notify: Notify,
    /// The parked thread. Accessed only when falling asleep and when waking it.
    thread: Mutex<Option<Thread>>,
    /// Wakes a thread that sleeps in poll(2); created at its first such sleep.
    event: OnceLock<EventFd>,
}

/// Marks the consumer awake again on every exit from its sleep, also when the waiting future is dropped.
struct AwakeAgain<'a>(&'a AtomicU8);

impl Drop for AwakeAgain<'_> {
    fn drop(&mut self) {
        self.0.store(AWAKE, Ordering::Relaxed);
    }
}

impl Waker {
    /// Creates a waker with an awake consumer.
    pub fn new() -> Self {
        Waker::default()
    }

    /// Wakes the consumer if it sleeps. Call it after adding to its queues; once per burst is enough.
    #[inline]
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::Relaxed) != AWAKE {
            self.wake_sleeper();
        }
    }

    #[cold]
    fn wake_sleeper(&self) {
        // The thread that sets the state back to awake sends the notification.
        match self.state.swap(AWAKE, Ordering::AcqRel) {
            ASLEEP_TASK => self.notify.notify_one(),
            ASLEEP_THREAD => {
                let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(thread) = thread.as_ref() {
                    thread.unpark();
                }
            }
            ASLEEP_POLL => {
                if let Some(event) = self.event.get() {
                    // Fails only if the counter is full; then the sleeper is already being woken.
                    let _ = event.write(1);
                }
            }
            _ => {}
        }
    }

    fn fall_asleep(&self, kind: u8) -> AwakeAgain<'_> {
        self.state.store(kind, Ordering::Release);
        fence(Ordering::SeqCst);
        AwakeAgain(&self.state)
    }

    /// Waits, as a task, until `is_ready` is true. `is_ready` must check every queue of this consumer. Dropping the
    /// future is safe at any time, so it can be one arm of a `select!` beside a timer.
    pub async fn wait(&self, is_ready: impl Fn() -> bool) {
        while !is_ready() {
            let guard = self.fall_asleep(ASLEEP_TASK);
            if is_ready() {
                return;
            }
            self.notify.notified().await;
            drop(guard);
        }
    }

    /// Waits, as a thread, until `is_ready` is true or `timeout` has passed. Returns whether it is ready.
    pub fn park(&self, timeout: Option<Duration>, is_ready: impl Fn() -> bool) -> bool {
        if is_ready() {
            return true;
        }
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let _guard = self.fall_asleep(ASLEEP_THREAD);
            if is_ready() {
                return true;
            }
            match deadline {
                None => thread::park(),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    thread::park_timeout(left);
                }
            }
        }
    }
}

impl Waker {
    /// Waits, as a thread, until `is_ready` is true, one of `descriptors` is readable or has failed, or `timeout` has
    /// passed; the timeout is exact to about a microsecond. May return spuriously.
    ///
    /// # Errors
    /// If the kernel has no file descriptor or memory for it.
    pub fn poll(
        &self,
        descriptors: &[BorrowedFd<'_>],
        timeout: Option<Duration>,
        is_ready: impl Fn() -> bool,
    ) -> io::Result<()> {
        let event = match self.event.get() {
            Some(event) => event,
            None => {
                let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
                self.event.get_or_init(|| event)
            }
        };
        let readable = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
        let mut polled: Vec<PollFd<'_>> = descriptors.iter().map(|&descriptor| readable(descriptor)).collect();
        polled.push(readable(event.as_fd()));
        let _guard = self.fall_asleep(ASLEEP_POLL);
        if is_ready() {
            return Ok(());
        }
        match ppoll(&mut polled, timeout.map(TimeSpec::from), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Empties the counter; an error means that it is empty.
        let _ = event.read();
        Ok(())
    }
}
