//! Time as the engine sees it: monotonic nanoseconds that the caller passes in.
//!
//! The engine never reads a clock. Its caller passes `now`, so that tests and simulations control time and a burst of
//! packets shares one reading.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in monotonic time, in nanoseconds since an arbitrary start. `0` is a valid time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The far future: a deadline that never comes.
    pub const NEVER: Timestamp = Timestamp(u64::MAX);

    /// This time plus `milliseconds`, saturating at [`Timestamp::NEVER`].
    pub const fn plus_ms(self, milliseconds: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(milliseconds.saturating_mul(1_000_000)))
    }

    /// Nanoseconds from `earlier` to this time; 0 if `earlier` is later.
    pub const fn since_ns(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;
    fn add(self, duration: Duration) -> Timestamp {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Timestamp(self.0.saturating_add(nanoseconds))
    }
}

impl Sub for Timestamp {
    type Output = Duration;
    fn sub(self, earlier: Timestamp) -> Duration {
        Duration::from_nanos(self.since_ns(earlier))
    }
}
