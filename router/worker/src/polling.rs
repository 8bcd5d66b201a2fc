//! A worker on its own thread: polls ports and rings alike and sleeps when all are idle. Several workers run this way,
//! and a single one once there is a port.
//!
//! An idle worker first polls for a while ([`Idling`]), because the next packet often follows at once, and then sleeps.
//! Its rings and timers wake it, and a congested port does when it is time to retry sending. Ports with a bell (network
//! interfaces, and memif ports without traffic) end the sleep when a frame arrives. Other ports (network cards without
//! the kernel) are polled after a pause that grows with the time without traffic, up to a limit. So a frame waits at
//! most that limit for a worker that was idle for long, and an idle router uses next to no CPU time.

use std::io;
use std::pin::Pin;
use std::thread;
use std::time::Duration;

use namehop_packet::Timestamp;
use nix::sys::prctl::set_timerslack;
use tokio::sync::oneshot;
use tracing::{info, warn};

use super::idle::Idling;
use super::{Worker, pin_to_processor, usable_processors};
use crate::fault::fault_point;

/// Pauses between two polls of ports without a bell: idle time below which the pause applies, and the pause. With more
/// idle time, the pause is the longest allowed.
const PAUSES: [(Duration, Duration); 3] = [
    (Duration::from_millis(1), Duration::from_micros(20)),
    (Duration::from_millis(50), Duration::from_micros(100)),
    (Duration::from_secs(1), Duration::from_millis(1)),
];
/// Pause of a worker after an attempt to sleep failed.
const FAULT_PAUSE: Duration = Duration::from_millis(1);
/// The shortest sleep.
const SHORT_PAUSE: Duration = Duration::from_micros(50);
/// How late sleeps may end, in nanoseconds. With the kernel's default, short sleeps would last twice as long.
const TIMER_SLACK_NS: u64 = 1_000;

/// Runs the workers until they are told to shut down. A single worker runs as a task until there is a port, and on its
/// own thread from then on. Several workers have their own threads from the start, and so has a worker that never
/// sleeps. Each thread runs on the CPU at the worker's index in `processors`; `None` is the last one that this process
/// may use.
///
/// # Errors
/// A thread cannot be started, or ended by itself.
// Boxed, so that this crate compiles the workers, with its own optimisation, and not the crate that awaits them.
pub fn serve(
    workers: Vec<Worker>,
    processors: Vec<Option<usize>>,
    idling: Idling,
) -> Pin<Box<dyn Future<Output = io::Result<()>>>> {
    Box::pin(run_all(workers, processors, idling))
}

async fn run_all(workers: Vec<Worker>, processors: Vec<Option<usize>>, idling: Idling) -> io::Result<()> {
    let mut workers = workers.into_iter().zip(processors);
    let threads = match (workers.next(), workers.len()) {
        (None, _) => Vec::new(),
        (Some((only, processor)), 0) if !idling.always_polls => match only.run().await {
            Some(worker) => vec![start(worker, processor, idling)?],
            None => Vec::new(),
        },
        (Some(first), _) => {
            let all = std::iter::once(first).chain(workers);
            all.map(|(worker, processor)| start(worker, processor, idling)).collect::<io::Result<_>>()?
        }
    };
    for ended in threads {
        ended.await.map_err(|_| io::Error::other("the thread of a worker ended unexpectedly"))?;
    }
    Ok(())
}

/// Starts the thread of a worker and returns a receiver that is notified when the thread ends.
fn start(worker: Worker, processor: Option<usize>, idling: Idling) -> io::Result<oneshot::Receiver<()>> {
    let (sender, ended) = oneshot::channel();
    let name = if worker.others.is_some() { format!("worker {}", worker.number()) } else { "worker".to_owned() };
    thread::Builder::new().name(name).spawn(move || {
        worker.poll(processor, idling);
        // The receiver is gone if the router shuts down in a hurry.
        let _ = sender.send(());
    })?;
    Ok(ended)
}

impl Worker {
    fn poll(mut self, processor: Option<usize>, idling: Idling) {
        self.activity.processor = pin(self.number(), processor);
        fault_point("worker thread");
        if let Err(error) = set_timerslack(TIMER_SLACK_NS) {
            warn!(%error, "cannot set the timer slack: the worker may sleep longer than intended");
        }
        let poll_ns = u64::try_from(idling.poll_for.as_nanos()).unwrap_or(u64::MAX);
        let mut idle_since = None;
        let mut now = self.activity.now();
        loop {
            let worked = self.turn(now);
            if self.commands.is_stopping {
                return;
            }
            let before = std::mem::replace(&mut now, self.activity.now());
            if worked {
                self.activity.busy += now - before;
                idle_since = None;
                continue;
            }
            let idle_ns = now.since_ns(*idle_since.get_or_insert(now));
            if idling.always_polls || idle_ns < poll_ns {
                std::hint::spin_loop();
            } else {
                self.sleep_beside_ports(now, Duration::from_nanos(idle_ns), idling.longest_pause);
                now = self.activity.now();
            }
        }
    }

    /// Sleeps until there may be work.
    fn sleep_beside_ports(&mut self, now: Timestamp, idle: Duration, longest_pause: Duration) {
        self.prepare_to_sleep();
        let deadline = self.next_deadline();
        let mut limit =
            (deadline != Timestamp::NEVER).then(|| Duration::from_nanos(deadline.since_ns(now)).max(SHORT_PAUSE));
        let mut at_most = |pause: Duration| limit = Some(limit.map_or(pause, |limit| limit.min(pause)));
        if let Some(pause) = self.links.port_retry {
            at_most(pause.max(SHORT_PAUSE));
        }
        // The ports now choose what can wake them.
        self.links.ports.prepare_to_sleep();
        if let Some(limit) = self.links.ports.longest_sleep() {
            at_most(limit);
        }
        if self.links.ports.must_be_polled() {
            let pause = PAUSES.iter().find(|(until, _)| idle < *until).map_or(longest_pause, |(_, pause)| *pause);
            at_most(pause.min(longest_pause));
        }
        let bells = self.links.ports.bells();
        if let Err(error) = self.waker().poll(&bells, limit, || self.has_work()) {
            warn!(%error, "the worker cannot wait for events");
            thread::sleep(FAULT_PAUSE);
        }
    }
}

/// Pins this thread to a CPU and returns its number. On failure logs a warning and returns `None`; the worker runs all
/// the same.
fn pin(worker: usize, processor: Option<usize>) -> Option<usize> {
    let number = match processor {
        Some(number) => Ok(number),
        // The first CPUs serve interrupts and everything else.
        None => usable_processors().map(|usable| usable.last().copied().unwrap_or(0)),
    };
    match number.and_then(|number| pin_to_processor(number).map(|()| number)) {
        Ok(processor) => {
            info!(worker, processor, "the worker runs on its own thread");
            Some(processor)
        }
        Err(error) => {
            warn!(worker, %error, ?processor, "cannot pin the worker to a CPU");
            None
        }
    }
}
