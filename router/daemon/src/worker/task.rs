//! The worker as a task on the thread of the sockets: how it shares the thread, and when it sleeps.
//!
//! What a worker does is in [`Worker::turn`]; this is only when. As soon as there is a port, `polling` takes over.

use std::time::{Duration, Instant};

use namehop_packet::Timestamp;
use tokio::task::yield_now;

use super::Worker;
use super::idle::BusyPoll;
use crate::supervise::fault_point;

/// Turns before the sockets get theirs.
const TURNS: usize = 16;

impl Worker {
    /// Works until told to shut down, or until there is a port: then the worker comes back, to go on as a thread. Sleeps
    /// when idle; other tasks of the thread get their turn in between.
    pub(super) async fn run(mut self) -> Option<Self> {
        let mut busy_poll = BusyPoll::default();
        fault_point("worker task");
        loop {
            self.work();
            if self.is_stopping() {
                return None;
            }
            if !self.ports.is_empty() {
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

    /// Some turns, so that what the sockets brought in one round is done before they bring more; fewer when what is to be
    /// sent piles up.
    fn work(&mut self) {
        for _ in 0..TURNS {
            let now = self.now();
            if self.turn(now) {
                self.busy += self.now() - now;
            }
            if self.is_stopping() || !self.has_work() || self.is_output_behind() {
                break;
            }
        }
    }

    /// Sleeps until there is work or a deadline has come.
    async fn sleep(&mut self) {
        self.prepare_to_sleep();
        let wait = self.waker().wait(|| self.has_work());
        match self.next_deadline() {
            Timestamp::NEVER => wait.await,
            deadline => {
                // Timers are exact to a millisecond, as those of the runtime.
                let pause = Duration::from_nanos(deadline.since_ns(self.now())).max(Duration::from_millis(1));
                tokio::select! {
                    biased;
                    () = wait => {}
                    () = tokio::time::sleep(pause) => {}
                }
            }
        }
    }
}
