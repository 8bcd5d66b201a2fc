//! Options of the form `key=value`, and pacing.

use std::collections::HashMap;
use std::error::Error;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

/// Any error that ends an attack early.
pub type Failure = Box<dyn Error>;

/// The options of one run.
pub struct Options(HashMap<String, String>);

impl Options {
    /// Parses `key=value` arguments.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
        let pairs = arguments.map(|argument| match argument.split_once('=') {
            Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
            None => Err(Failure::from(format!("'{argument}' is not of the form key=value"))),
        });
        pairs.collect::<Result<_, _>>().map(Options)
    }

    /// Returns a required text.
    pub fn text(&self, key: &str) -> Result<&str, Failure> {
        self.0.get(key).map(String::as_str).ok_or_else(|| format!("{key}= is missing").into())
    }

    /// Returns an optional text.
    pub fn optional(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Returns a required number or address.
    pub fn get<T: FromStr>(&self, key: &str) -> Result<T, Failure> {
        let text = self.text(key)?;
        text.parse().map_err(|_| format!("{key}={text} is not valid").into())
    }

    /// Returns a number, or `default` if it is absent.
    pub fn get_or<T: FromStr>(&self, key: &str, default: T) -> Result<T, Failure> {
        if self.0.contains_key(key) { self.get(key) } else { Ok(default) }
    }

    /// Returns the pacing by `rate` (packets or connections per second) and `seconds` (duration).
    pub fn pace(&self) -> Result<Pace, Failure> {
        Ok(Pace::new(self.get("rate")?, Duration::from_secs_f64(self.get("seconds")?)))
    }
}

/// Tells how many packets are due. Late packets are skipped, so that no burst covers more than [`LONGEST_BURST`].
pub struct Pace {
    rate: f64,
    end: Instant,
    /// Time up to which packets have been handed out.
    paid: Instant,
}

/// Longest delay that a burst catches up with.
const LONGEST_BURST: Duration = Duration::from_millis(20);
/// Interval between checks of the clock.
const TICK: Duration = Duration::from_millis(2);

impl Pace {
    /// Creates a pacing of `rate` packets per second, starting now.
    pub fn new(rate: f64, duration: Duration) -> Pace {
        let now = Instant::now();
        Pace { rate, end: now + duration, paid: now }
    }

    /// Sleeps until packets are due and returns their number; `None` at the end.
    pub fn next(&mut self) -> Option<usize> {
        loop {
            // Sleep first, so that many packets share few system calls.
            thread::sleep(TICK);
            let now = Instant::now();
            if now >= self.end {
                return None;
            }
            self.paid = self.paid.max(now - LONGEST_BURST.max(Duration::from_secs_f64(1.0 / self.rate)));
            let due = ((now - self.paid).as_secs_f64() * self.rate) as usize;
            if due > 0 {
                self.paid += Duration::from_secs_f64(due as f64 / self.rate);
                return Some(due);
            }
        }
    }

    /// Returns the remaining time.
    pub fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}
