//! Congestion windows of a segment fetcher: CUBIC (RFC 9438), AIMD (RFC 5681) and fixed.
//!
//! The window counts Interests in flight. The caller reports every Data, and at most one congestion event per round
//! trip, because one overfull queue usually shows in many packets.

use std::str::FromStr;
use std::time::{Duration, Instant};

/// Law of the congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// Keeps queues short, paces Interests, and ignores random losses (`adaptive.rs`).
    Adaptive,
    /// CUBIC (RFC 9438).
    Cubic,
    /// Additive increase, multiplicative decrease (RFC 5681).
    Aimd,
    /// Never changes.
    Fixed,
}

impl WindowKind {
    /// The default number of Interests in flight at the start: of the first flight, at most, with the adaptive window,
    /// which paces it; of a burst otherwise (RFC 6928).
    pub fn default_initial(self) -> f64 {
        match self {
            Self::Adaptive => 32.0,
            Self::Cubic | Self::Aimd | Self::Fixed => 10.0,
        }
    }
}

impl FromStr for WindowKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "adaptive" => Ok(Self::Adaptive),
            "cubic" => Ok(Self::Cubic),
            "aimd" => Ok(Self::Aimd),
            "fixed" => Ok(Self::Fixed),
            _ => Err(format!("unknown congestion control '{text}' (adaptive, cubic, aimd, fixed)")),
        }
    }
}

const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
const AIMD_BETA: f64 = 0.5;
const MIN_WINDOW: f64 = 2.0;
/// Slow start ends when the round-trip time exceeds the smallest one by an eighth of it, but at least `HYSTART_MIN` and
/// at most `HYSTART_MAX` (HyStart++, RFC 9406).
const HYSTART_MIN: Duration = Duration::from_millis(4);
const HYSTART_MAX: Duration = Duration::from_millis(16);
const HYSTART_SAMPLES: u32 = 8;

/// A congestion window, in Interests.
#[derive(Clone, Debug)]
pub struct Window {
    kind: WindowKind,
    size: f64,
    max: f64,
    slow_start_threshold: f64,
    largest: f64,
    decreases: u64,
    // CUBIC: the window before the last reduction; when growth restarted; the time from then to that window; and the
    // window of an AIMD flow for comparison (RFC 9438 sections 4.2, 4.3).
    w_max: f64,
    epoch: Option<Instant>,
    plateau_s: f64,
    w_estimate: f64,
    // HyStart: smallest round-trip time among the samples of this round.
    round_min: Duration,
    round_samples: u32,
}

impl Window {
    /// Creates a window that starts at `initial` Interests and never exceeds `max`.
    pub fn new(kind: WindowKind, initial: f64, max: f64) -> Self {
        let max = max.max(MIN_WINDOW);
        let size = match kind {
            WindowKind::Fixed => initial.clamp(1.0, max),
            _ => initial.clamp(MIN_WINDOW, max),
        };
        Self {
            kind,
            size,
            max,
            slow_start_threshold: f64::INFINITY,
            largest: size,
            decreases: 0,
            w_max: 0.0,
            epoch: None,
            plateau_s: 0.0,
            w_estimate: 0.0,
            round_min: Duration::MAX,
            round_samples: 0,
        }
    }

    /// Returns the number of Interests that may be in flight.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// Returns the largest size so far, in Interests.
    pub fn largest(&self) -> usize {
        self.largest as usize
    }

    /// Returns the number of reductions.
    pub fn decreases(&self) -> u64 {
        self.decreases
    }

    /// Records a Data without a CongestionMark. `rtt` is its round-trip time (`None` if the Interest was
    /// retransmitted), `min_rtt` the smallest of the transfer.
    pub fn on_data(&mut self, now: Instant, rtt: Option<Duration>, min_rtt: Option<Duration>) {
        if self.kind == WindowKind::Fixed {
            return;
        }
        if self.size < self.slow_start_threshold {
            self.size += 1.0;
            if let (Some(rtt), Some(min_rtt)) = (rtt, min_rtt) {
                self.watch_slow_start(rtt, min_rtt);
            }
        } else if self.kind == WindowKind::Aimd {
            self.size += 1.0 / self.size;
        } else {
            self.grow_cubic(now, min_rtt.unwrap_or(Duration::ZERO));
        }
        self.size = self.size.min(self.max);
        self.largest = self.largest.max(self.size);
    }

    /// Ends slow start when delay grows, which happens before the queue overflows.
    fn watch_slow_start(&mut self, rtt: Duration, min_rtt: Duration) {
        self.round_min = self.round_min.min(rtt);
        self.round_samples += 1;
        if self.round_samples < HYSTART_SAMPLES {
            return;
        }
        if self.round_min > min_rtt + (min_rtt / 8).clamp(HYSTART_MIN, HYSTART_MAX) {
            self.slow_start_threshold = self.size;
        }
        self.round_min = Duration::MAX;
        self.round_samples = 0;
    }

    fn grow_cubic(&mut self, now: Instant, rtt: Duration) {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                self.w_estimate = self.size;
                self.w_max = self.w_max.max(self.size);
                self.plateau_s = ((self.w_max - self.size) / CUBIC_C).cbrt();
                self.epoch = Some(now);
                now
            }
        };
        let elapsed_s = (now.saturating_duration_since(epoch) + rtt).as_secs_f64();
        let target = CUBIC_C * (elapsed_s - self.plateau_s).powi(3) + self.w_max;
        // RFC 9438 section 4.3: grow at least as fast as an AIMD flow with the same decrease.
        let alpha = 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA);
        self.w_estimate += alpha / self.size;
        if target < self.w_estimate {
            self.size = self.size.max(self.w_estimate);
        } else {
            // RFC 9438 section 4.2: at most one and a half windows per round trip.
            let target = target.clamp(self.size, self.size * 1.5);
            self.size += (target - self.size) / self.size;
        }
    }

    /// Reduces the window for congestion; call at most once per round trip.
    pub fn on_congestion(&mut self) {
        self.decreases += 1;
        match self.kind {
            WindowKind::Fixed => {}
            WindowKind::Aimd => self.size = (self.size * AIMD_BETA).max(MIN_WINDOW),
            _ => {
                // Fast convergence (RFC 9438 section 4.7): a flow with a shrinking share releases more.
                self.w_max = if self.size < self.w_max { self.size * (1.0 + CUBIC_BETA) / 2.0 } else { self.size };
                self.size = (self.size * CUBIC_BETA).max(MIN_WINDOW);
                self.epoch = None;
            }
        }
        self.slow_start_threshold = self.size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn round_trip(window: &mut Window, now: Instant) {
        for _ in 0..window.size() {
            window.on_data(now, Some(MS * 10), Some(MS * 10));
        }
    }

    #[test]
    fn slow_start_doubles_and_aimd_adds_one_per_round_trip() {
        let now = Instant::now();
        let mut window = Window::new(WindowKind::Aimd, 4.0, 1000.0);
        round_trip(&mut window, now);
        assert_eq!(window.size(), 8);
        window.on_congestion();
        assert_eq!(window.size(), 4);
        round_trip(&mut window, now);
        assert!((4..=5).contains(&window.size()));
        round_trip(&mut window, now);
        round_trip(&mut window, now);
        assert!((6..=7).contains(&window.size()), "{}", window.size());
    }

    #[test]
    fn cubic_returns_to_its_plateau_and_then_probes() {
        let start = Instant::now();
        let mut window = Window::new(WindowKind::Cubic, 100.0, 10_000.0);
        window.on_congestion();
        assert_eq!(window.size(), 70);
        // Time to the plateau: cbrt(100 * 0.3 / 0.4) = 4.2 s. An AIMD flow is slower with round trips of 100 ms.
        let mut now = start;
        for _ in 0..42 {
            now += MS * 100;
            round_trip(&mut window, now);
        }
        let plateau = window.size();
        assert!((90..=105).contains(&plateau), "{plateau}");
        for _ in 0..60 {
            now += MS * 100;
            round_trip(&mut window, now);
        }
        assert!(window.size() > plateau + 40, "{}", window.size());
    }

    #[test]
    fn cubic_leaves_slow_start_when_delay_grows() {
        let now = Instant::now();
        let mut window = Window::new(WindowKind::Cubic, 10.0, 10_000.0);
        for _ in 0..16 {
            window.on_data(now, Some(MS * 40), Some(MS * 10));
        }
        assert!(window.size() <= 20, "{}", window.size());
    }

    #[test]
    fn bounds_hold_and_fixed_stays() {
        let now = Instant::now();
        let mut window = Window::new(WindowKind::Cubic, 4.0, 16.0);
        for _ in 0..10 {
            round_trip(&mut window, now);
        }
        assert_eq!((window.size(), window.largest()), (16, 16));
        for _ in 0..20 {
            window.on_congestion();
        }
        assert_eq!(window.size(), 2);
        assert_eq!(window.decreases(), 20);
        let mut fixed = Window::new(WindowKind::Fixed, 12.0, 100.0);
        round_trip(&mut fixed, now);
        fixed.on_congestion();
        assert_eq!(fixed.size(), 12);
    }
}
