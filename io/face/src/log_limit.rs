//! Limits how often one kind of line is logged.
//!
//! Lines that other hosts can cause at will, such as one for each refused connection, must not fill a disk. Each kind
//! has its own [`LogLimit`]: a few lines are logged in each period, and the next line tells how many were left out.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Length of a period.
const PERIOD: Duration = Duration::from_secs(60);

/// Limits the lines of one kind per minute. Use it as a `static` next to the log statement.
#[derive(Debug)]
pub struct LogLimit {
    lines_per_minute: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    period_began: Option<Instant>,
    logged: u32,
    left_out: u64,
}

impl LogLimit {
    /// Creates a limit of `lines_per_minute`.
    pub const fn new(lines_per_minute: u32) -> LogLimit {
        let state = State { period_began: None, logged: 0, left_out: 0 };
        LogLimit { lines_per_minute, state: Mutex::new(state) }
    }

    /// Returns whether the line may be logged now: `Some` with the number of lines left out since the last one, or
    /// `None`. A refused line is counted.
    pub fn admit(&self) -> Option<u64> {
        self.admit_at(Instant::now())
    }

    fn admit_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.period_began.is_none_or(|began| now.saturating_duration_since(began) >= PERIOD) {
            state.period_began = Some(now);
            state.logged = 0;
        }
        if state.logged >= self.lines_per_minute {
            state.left_out += 1;
            return None;
        }
        state.logged += 1;
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_gives_a_few_lines_and_the_next_one_says_how_many_were_left_out() {
        let limit = LogLimit::new(3);
        let start = Instant::now();
        let admitted: Vec<_> = (0..1000).map(|_| limit.admit_at(start)).collect();
        assert_eq!(admitted[..3], [Some(0); 3]);
        assert!(admitted[3..].iter().all(Option::is_none));
        assert_eq!(limit.admit_at(start + PERIOD - Duration::from_millis(1)), None);
        assert_eq!(limit.admit_at(start + PERIOD), Some(998));
        assert_eq!(limit.admit_at(start + PERIOD), Some(0));
    }
}
