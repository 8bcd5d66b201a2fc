//! Cases take turns on the processors: the threads of one run, those of the others sleep.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a turn is.
const TURN: Duration = Duration::from_millis(100);
/// One in so many parts of a turn, the first, does not count: in it the caches have what the case before left there. Without that, whoever
/// comes after other workers would be compared with whoever comes after itself.
const SETTLING_SHARE: u32 = 5;
/// After so many turns, some minutes, something must be wrong.
const MOST_WARM_UP_TURNS: usize = 6_000;
/// The number of the turn after which there is none.
const OVER: usize = usize::MAX;

/// How long turns are when each case has this time.
fn turn_of(time: Duration) -> Duration {
    time.min(TURN)
}

/// How long the part of a turn is that does not count.
pub(super) fn settling_of(time: Duration) -> Duration {
    turn_of(time) / SETTLING_SHARE
}

/// Whose turn it is.
pub(super) struct Turns {
    cases: usize,
    /// Number of the turn, from 1 on; 0 before the first.
    number: AtomicUsize,
    /// Number of the first turn that counts.
    first_counted: AtomicUsize,
    /// Held while the number changes.
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

    /// Gives each case turns until all are warm, and then each of them this time, which counts. `is_warm` is asked after each
    /// round. Returns whether they have become warm.
    pub(super) fn give(&self, time: Duration, mut is_warm: impl FnMut() -> bool) -> bool {
        let turn = turn_of(time);
        let mut number = 0;
        // All go on while one is not warm, so that none cools down.
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

    /// Does a turn with this number count?
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
        // There is nothing behind it that a panic could leave half done.
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until a turn begins that comes after the one with the number `last` and whose case is one of those that `place` knows; its
    /// number and what `place` says of the case, or `None` when all are over.
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

    /// Is it still the turn with this number?
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
            threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
        });
        assert!(!turns.counts(6) && turns.counts(7), "two rounds were for warming up");
        for (case, had) in had.iter().enumerate() {
            // A thread that the system does not wake in time may miss some.
            assert!((2..=5).contains(&had.len()) && had.iter().all(|number| number % 3 == (case + 1) % 3), "{had:?}");
        }
    }
}
