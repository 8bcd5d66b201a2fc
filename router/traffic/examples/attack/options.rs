//! Options of the form `key=value`, and the pace at which to send.

use std::collections::HashMap;
use std::error::Error;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

/// Whatever ends an attack early.
pub type Failure = Box<dyn Error>;

/// The options of one run.
pub struct Options(HashMap<String, String>);

impl Options {
    /// From `key=value` arguments.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
        let pairs = arguments.map(|argument| match argument.split_once('=') {
            Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
            None => Err(Failure::from(format!("'{argument}' is not of the form key=value"))),
        });
        pairs.collect::<Result<_, _>>().map(Options)
    }

    /// A text that must be there.
    pub fn text(&self, key: &str) -> Result<&str, Failure> {
        self.0.get(key).map(String::as_str).ok_or_else(|| format!("{key}= is missing").into())
    }

    /// A text that may be absent.
    pub fn optional(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// A number or an address that must be there.
    pub fn get<T: FromStr>(&self, key: &str) -> Result<T, Failure> {
        let text = self.text(key)?;
        text.parse().map_err(|_| format!("{key}={text} is not understood").into())
    }

    /// A number, or `default` without it.
    pub fn get_or<T: FromStr>(&self, key: &str, default: T) -> Result<T, Failure> {
        if self.0.contains_key(key) { self.get(key) } else { Ok(default) }
    }

    /// How long it runs and how many packets or connections a second it makes.
    pub fn pace(&self) -> Result<Pace, Failure> {
        Ok(Pace::new(self.get("rate")?, Duration::from_secs_f64(self.get("seconds")?)))
    }
}

/// Says how many packets are due. What could not be sent in time is not made up for, so that no burst is longer than
/// [`LONGEST_BURST`].
pub struct Pace {
    rate: f64,
    end: Instant,
    /// Time up to which packets were given out.
    paid: Instant,
}

/// Longest time that is made up for.
const LONGEST_BURST: Duration = Duration::from_millis(20);
/// Time between looks at the clock.
const TICK: Duration = Duration::from_millis(2);

impl Pace {
    /// So many packets a second, from now on.
    pub fn new(rate: f64, duration: Duration) -> Pace {
        let now = Instant::now();
        Pace { rate, end: now + duration, paid: now }
    }

    /// Sleeps until packets are due and gives their number, `None` at the end.
    pub fn next(&mut self) -> Option<usize> {
        loop {
            // Many packets in few system calls.
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

    /// Time that is left.
    pub fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}
