//! Progress display of all fetches together.

use std::time::{Duration, Instant};

use namehop_traffic::segmented::FetchProgress;

use crate::progress::Progress;
use crate::units::show_bit_rate;

/// Interval of display updates.
const INTERVAL: Duration = Duration::from_millis(500);

/// Last progress of each fetch, and the totals.
pub struct Board {
    each: Vec<FetchProgress>,
    done: usize,
    bytes: u64,
    segments: u64,
    total_segments: u64,
    shown: Option<Progress>,
    last: (Instant, u64),
}

impl Board {
    pub fn new(objects: usize, is_shown: bool) -> Self {
        Self {
            each: vec![FetchProgress::default(); objects],
            done: 0,
            bytes: 0,
            segments: 0,
            total_segments: 0,
            shown: is_shown.then(|| Progress::new("{wide_bar} {percent:>3}% {msg} {elapsed}")),
            last: (Instant::now(), 0),
        }
    }

    /// Records and shows the progress of the fetch with this index.
    pub fn show(&mut self, index: usize, now: FetchProgress) {
        let before = std::mem::replace(&mut self.each[index], now);
        self.bytes += now.bytes - before.bytes;
        self.segments += now.segments - before.segments;
        let grown = now.total_segments.unwrap_or_default().saturating_sub(before.total_segments.unwrap_or_default());
        self.total_segments = self.total_segments.saturating_add(grown);
        self.show_all();
    }

    /// Records that a fetch has ended.
    pub fn done(&mut self) {
        self.done += 1;
    }

    fn show_all(&mut self) {
        let Some(shown) = &self.shown else { return };
        let passed = self.last.0.elapsed();
        if passed < INTERVAL {
            return;
        }
        let rate = (self.bytes - self.last.1) as f64 * 8.0 / passed.as_secs_f64();
        let lost: u64 = self.each.iter().map(|one| one.counts.overtaken + one.counts.timeouts + one.counts.nacks).sum();
        shown.set_length(self.total_segments);
        shown.set_position(self.segments);
        shown.set_message(format!(
            "{} of {} objects, {:.1} MB, {}, {lost} lost",
            self.done,
            self.each.len(),
            self.bytes as f64 / 1e6,
            show_bit_rate(rate)
        ));
        self.last = (Instant::now(), self.bytes);
    }

    /// Removes the display and returns the last progress of each fetch.
    pub fn end(self) -> Vec<FetchProgress> {
        self.each
    }
}
