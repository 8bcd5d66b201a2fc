//! Cases take turns on the CPUs: the threads of one case run, while the threads of the other cases sleep.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum length of a turn.
const TURN: Duration = Duration::from_millis(100);
/// Divisor that gives the first part of a turn, which is not measured: in it the caches still hold data of the previous
/// case. Otherwise a case that follows other workers would be compared with one that follows itself.
const SETTLING_SHARE: u32 = 5;
/// Maximum number of warm-up turns, some minutes; more indicate an error.
const MOST_WARM_UP_TURNS: usize = 6_000;
/// Number that marks the end of all turns.
const OVER: usize = usize::MAX;

/// Length of a turn if each case has this measuring time.
fn turn_of(time: Duration) -> Duration {
    time.min(TURN)
}

/// Length of the part of a turn that is not measured.
pub(super) fn settling_of(time: Duration) -> Duration {
    turn_of(time) / SETTLING_SHARE
}

/// Schedules the turns of cases.
pub(super) struct Turns {
    cases: usize,
    /// Number of the current turn, from 1; 0 before the first.
    number: AtomicUsize,
    /// Number of the first measured turn.
    first_counted: AtomicUsize,
    /// Held while `number` changes.
    change: Mutex<()>,
    changed: Condvar,
}

impl Turns {
    pub(super) fn new(cases: usize) -> Self {
        Turns {
            cases,
            number: AtomicUsize::new(0),
            first_counted: AtomicUsize::new(OVER),
            change: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// Gives each case turns until all are warm, and then its measuring time. Calls `is_warm` before each round.
    /// Returns false if the cases do not become warm.
    pub(super) fn give(&self, time: Duration, mut is_warm: impl FnMut() -> bool) -> bool {
        let turn = turn_of(time);
        let mut number = 0;
        // All cases continue while one is not warm, so that none cools down.
        while !is_warm() {
            if number > MOST_WARM_UP_TURNS {
                self.begin(OVER);
                return false;
            }
            for _ in 0..self.cases {
                number += 1;
                self.begin(number);
                thread::sleep(turn);
            }
        }
        self.first_counted.store(number + 1, Ordering::Relaxed);
        for _ in 0..self.cases * time.as_nanos().div_ceil(turn.as_nanos().max(1)) as usize {
            number += 1;
            self.begin(number);
            thread::sleep(turn);
        }
        self.begin(OVER);
        true
    }

    /// True if the turn with this number is measured.
    pub(super) fn counts(&self, number: usize) -> bool {
        number >= self.first_counted.load(Ordering::Relaxed)
    }

    fn begin(&self, number: usize) {
        let change = self.locked();
        self.number.store(number, Ordering::Relaxed);
        drop(change);
        self.changed.notify_all();
    }

    fn locked(&self) -> MutexGuard<'_, ()> {
        // The mutex guards no data that a panic could leave inconsistent.
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until a turn after number `last` begins for which `place` returns a value. Returns the turn's number and
    /// that value, or `None` when all turns are over.
    pub(super) fn next<T>(&self, place: impl Fn(usize) -> Option<T>, last: usize) -> Option<(usize, T)> {
        let mut change = self.locked();
        loop {
            let number = self.number.load(Ordering::Relaxed);
            if number == OVER {
                return None;
            }
            if number > last
                && let Some(place) = place((number - 1) % self.cases)
            {
                return Some((number, place));
            }
            change = self.changed.wait(change).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// True while the turn with this number lasts.
    #[inline]
    pub(super) fn is(&self, number: usize) -> bool {
        self.number.load(Ordering::Relaxed) == number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_gets_its_turns() {
        let turns = Turns::new(3);
        let had: Vec<Vec<usize>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|case| {
                    let turns = &turns;
                    scope.spawn(move || {
                        let mut had = Vec::new();
                        let place = |turn| (turn == case).then_some(());
                        while let Some((number, ())) = turns.next(place, had.last().copied().unwrap_or(0)) {
                            had.push(number);
                            while turns.is(number) {
                                thread::yield_now();
                            }
                        }
                        had
                    })
                })
                .collect();
            let mut asked = 0;
            let is_warm = turns.give(Duration::from_millis(250), || {
                asked += 1;
                asked > 2
            });
            assert!(is_warm);
            threads.into_iter().map(|thread| thread.join().expect("the measurement ends")).collect()
        });
        assert!(!turns.counts(6) && turns.counts(7), "two rounds are warm-up");
        for (case, had) in had.iter().enumerate() {
            // A thread that the system wakes late may miss some turns.
            assert!((2..=5).contains(&had.len()) && had.iter().all(|number| number % 3 == (case + 1) % 3), "{had:?}");
        }
    }
}
