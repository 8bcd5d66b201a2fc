//! The worker as a task on the socket thread: how it shares the thread, and when it sleeps.
//!
//! [`Worker::turn`] does the work; this module only schedules it. Once there is a port, `polling` takes over.

use std::time::{Duration, Instant};

use namehop_packet::Timestamp;
use tokio::task::yield_now;

use super::Worker;
use super::idle::BusyPoll;
use crate::fault::fault_point;

/// Most poll iterations before the sockets run.
const TURNS: usize = 16;

impl Worker {
    /// Runs until told to shut down (returns `None`), or until there is a port: then returns the worker, so that it can
    /// go on as a thread. Sleeps when idle; yields to the other tasks of the thread in between.
    pub(super) async fn run(mut self) -> Option<Self> {
        let mut busy_poll = BusyPoll::default();
        fault_point("worker task");
        loop {
            self.work();
            if self.commands.is_stopping {
                return None;
            }
            if !self.links.ports.is_empty() {
                return Some(self);
            }
            if self.has_work() {
                yield_now().await;
                continue;
            }
            let idle_since = Instant::now();
            let window = busy_poll.window(idle_since);
            let (mut found, mut before) = (false, idle_since);
            while !found && before.duration_since(idle_since) < window {
                yield_now().await;
                found = self.has_work();
                let now = Instant::now();
                busy_poll.polled(before, now);
                before = now;
            }
            if !found {
                self.sleep().await;
            }
            busy_poll.ended(idle_since.elapsed());
        }
    }

    /// Runs several poll iterations, so that frames which the sockets received in one round are finished before the
    /// next round. Stops early if output piles up.
    fn work(&mut self) {
        for _ in 0..TURNS {
            let now = self.activity.now();
            if self.turn(now) {
                self.activity.busy += self.activity.now() - now;
            }
            if self.commands.is_stopping || !self.has_work() || self.links.is_output_behind() {
                break;
            }
        }
    }

    /// Sleeps until there is work or a deadline is reached.
    async fn sleep(&mut self) {
        self.prepare_to_sleep();
        let wait = self.waker().wait(|| self.has_work());
        match self.next_deadline() {
            Timestamp::NEVER => wait.await,
            deadline => {
                // Timers are exact to a millisecond, as in the tokio runtime.
                let pause = Duration::from_nanos(deadline.since_ns(self.activity.now())).max(Duration::from_millis(1));
                tokio::select! {
                    biased;
                    () = wait => {}
                    () = tokio::time::sleep(pause) => {}
                }
            }
        }
    }
}
