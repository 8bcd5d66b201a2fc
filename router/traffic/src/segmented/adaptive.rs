//! The adaptive congestion window: keeps a short queue on the path, paces Interests, and does not shrink for random
//! losses.
//!
//! The window grows until samples show a long queue, then shrinks by most of the Interests queued there. Growth is
//! proportional to the square root of the window, so fetches that share a path, and see the same queue, converge to the
//! same window. Growth accelerates every round trip, so free capacity is soon used. The window counts fractions of
//! Interests, and Interests are paced, so a path that holds fewer than two segments is also filled without a queue.
//! Every five seconds the fetch drains the path, so that all fetches on it can measure the round-trip time without a
//! queue.
//!
//! A fetch starts with one Interest, to measure the round-trip time, unless it is known to have several segments. It
//! then sends two at once: the gap between their Data is the transmission time of one Data on the bottleneck. The first
//! flight is somewhat smaller than what the path holds at that rate. From there the window grows by half per round trip
//! until a queue shows.

use std::mem;
use std::time::{Duration, Instant};

use super::path::{Loss, PathWatch};

/// Smallest window, in Interests: one Interest per two round trips.
const MIN_WINDOW: f64 = 0.5;
/// A queue is long if its delay exceeds 1/`LONG_QUEUE_SHARE` of the base round-trip time or `LONG_QUEUE_MIN`, whichever
/// is larger. Smaller delays come from scheduling or from single packets of other traffic.
const LONG_QUEUE_SHARE: u32 = 4;
const LONG_QUEUE_MIN: Duration = Duration::from_millis(8);
/// The threshold above is for a window of `USUAL_WINDOW` Interests. Larger windows use a lower threshold, smaller ones
/// a higher one. Of two fetches that see the same queue, the one with the larger window therefore shrinks first. The
/// threshold is never below `JITTER`.
const USUAL_WINDOW: f64 = 4.0;
const BIAS: f64 = 1.0 / 6.0;
const BIAS_BOUNDS: [f64; 2] = [0.6, 1.2];
const JITTER: Duration = Duration::from_millis(5);
/// On a long queue, the window shrinks by this share of the queued Interests, and by `CUT_MORE` of an Interest. A
/// reduction never multiplies the window by less than `LEAST_FACTOR`.
const CUT: f64 = 0.7;
const CUT_MORE: f64 = 0.3;
const LEAST_FACTOR: f64 = 0.5;
/// After a round trip without a long queue, the window grows by `GROWTH` times its square root. The factor is
/// multiplied by `ACCELERATION` every round trip until the queue reaches half of the long-queue threshold.
const GROWTH: f64 = 0.12;
const ACCELERATION: f64 = 1.2;
/// Upper bound of the growth per round trip, as a share of the window. The share is smaller for small windows, where
/// one more Interest is a large step.
const MOST_GROWTH: f64 = 0.25;
const MOST_GROWTH_OF_ONE: f64 = 1.0 / 30.0;
const LEAST_MOST_GROWTH: f64 = 0.1;
/// Factors applied to the window on congestion, and on a loss while the queue is long.
const CONGESTION_FACTOR: f64 = 0.7;
const QUEUE_LOSS_FACTOR: f64 = 0.85;
/// Below this window, in Interests, the queue holds few packets and overflows before its delay shows. All losses
/// therefore count as queue losses, and the window shrinks by everything in a long queue; it regrows within a few round
/// trips.
const SMALL_WINDOW: f64 = 4.0;
/// After more than this many consecutive reductions with a long queue, the queue may not be caused by this fetch.
const STANDING_REDUCTIONS: u32 = 2;
/// Smallest weight of a sample in the smoothed round-trip time.
const MIN_SMOOTHING: f64 = 0.125;
/// Share of the path's capacity used for the first flight; other fetches may use the same path.
const FIRST_SHARE: f64 = 0.65;
/// Number of samples that decide whether there is a queue: the minimum, the maximum at the start, and the number from
/// which half a round trip of samples is enough.
const LEAST_SAMPLES: f64 = 3.0;
const START_SAMPLES: f64 = 8.0;
const ENOUGH_SAMPLES: f64 = 16.0;
/// Window growth per Data at the start, in Interests. A queue shows one round trip after it began, when the window is
/// already larger by half. The window therefore doubles only while it is less than 1/`FAR` of the estimated capacity of
/// the path.
const START_GROWTH: f64 = 0.5;
const FAR: f64 = 2.0;
/// At the start, Interests are paced faster than the window by this factor, so that the window fills. A late Interest
/// may catch up by at most 1/`CATCH_UP_SHARE` of a round trip.
const PACE_AT_START: f64 = 1.25;
const CATCH_UP_SHARE: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// One Interest is sent; its Data has not arrived.
    First,
    /// Two Interests are sent at once; holds the arrival time of the first of their Data.
    Pair(Option<Instant>),
    /// The window grows by half per round trip.
    Start,
    /// The window follows the queue length.
    Steady,
}

/// State of a drain, which empties the path of this fetch's packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drain {
    /// Nothing is sent until every Interest is answered, or until this time.
    Until(Instant),
    /// The first Interest after the drain was sent at this time; its Data has not arrived.
    Sent(Instant),
}

/// A congestion window, in Interests, with pacing.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    size: f64,
    /// Upper bound of the first flight, in Interests.
    first_flight: f64,
    /// Capacity of the path in Interests, estimated from the gap between the first two Data.
    held: f64,
    max: f64,
    largest: f64,
    decreases: u64,
    phase: Phase,
    path: PathWatch,
    smoothed: Option<Duration>,
    drain: Option<Drain>,
    /// This drain tests whether the standing queue is caused by other traffic.
    is_suspicious: bool,
    /// Number of consecutive reductions after which the queue was still long.
    standing: u32,
    /// Time of the last reduction, and the queue samples collected since then.
    reduced_at: Option<Instant>,
    queue: QueueSamples,
    /// The last full set of samples showed a queue above half of the long-queue threshold.
    is_half_full: bool,
    /// Next growth, as a factor of the square root of the window.
    growth: f64,
    /// Pacing: nothing is sent before this time.
    next_send: Option<Instant>,
    /// In this round the window or the pacing held back an Interest, so a larger window would have been used.
    is_limited: bool,
}

impl Adaptive {
    pub(super) fn new(initial: f64, max: f64) -> Self {
        let max = max.max(1.0);
        Self {
            size: 1.0,
            first_flight: initial.clamp(1.0, max),
            held: 0.0,
            max,
            largest: 1.0,
            decreases: 0,
            phase: Phase::First,
            path: PathWatch::default(),
            smoothed: None,
            drain: None,
            is_suspicious: false,
            standing: 0,
            reduced_at: None,
            queue: QueueSamples::default(),
            is_half_full: false,
            growth: GROWTH,
            next_send: None,
            is_limited: false,
        }
    }

    /// Starts the fetch with two Interests. The first Data gives the round-trip time, both together give the rate.
    pub(super) fn skip_first(&mut self) {
        self.begin_pair();
    }

    fn begin_pair(&mut self) {
        (self.phase, self.size) = (Phase::Pair(None), 2.0);
        self.bound();
    }

    /// Returns the number of Interests that may be in flight.
    pub(super) fn size(&self) -> usize {
        self.size.ceil() as usize
    }

    pub(super) fn largest(&self) -> usize {
        self.largest.ceil() as usize
    }

    pub(super) fn decreases(&self) -> u64 {
        self.decreases
    }

    /// Returns true if an Interest may be sent now, with `in_flight` Interests outstanding.
    pub(super) fn may_send(&mut self, now: Instant, in_flight: usize) -> bool {
        if let Some(Drain::Until(until)) = self.drain {
            if in_flight > 0 && now < until {
                return false;
            }
            // Packets that have not arrived may still be in the queue.
            self.is_suspicious &= in_flight == 0;
            self.drain = Some(Drain::Sent(now));
            self.path.restart_round();
        }
        let may = in_flight < self.size() && self.next_send.is_none_or(|at| at <= now);
        self.is_limited |= !may;
        may
    }

    /// Returns when an Interest may be sent if no Data arrives before, with `in_flight` Interests outstanding.
    pub(super) fn next_send(&self, in_flight: usize) -> Option<Instant> {
        match self.drain {
            Some(Drain::Until(until)) => Some(until),
            _ => self.next_send.filter(|_| in_flight < self.size()),
        }
    }

    /// Records that an Interest was sent at `now`.
    pub(super) fn on_send(&mut self, now: Instant) {
        let Some(smoothed) = self.smoothed else { return };
        let pace = match self.phase {
            Phase::First | Phase::Pair(_) => return,
            Phase::Start => PACE_AT_START,
            Phase::Steady => 1.0,
        };
        let due = self.next_send.map_or(now, |at| at.max(now - smoothed / CATCH_UP_SHARE));
        self.next_send = Some(due + smoothed.div_f64(self.size * pace));
    }

    /// Records the arrival of a Data. `sent_at` is when its Interest was sent, if known; `rtt` is its round-trip time,
    /// `None` if the Interest was retransmitted.
    pub(super) fn on_data(&mut self, now: Instant, sent_at: Option<Instant>, rtt: Option<Duration>) {
        let sample = sent_at.zip(rtt);
        let mut is_round_over = false;
        if let Some((sent_at, rtt)) = sample {
            self.smooth(rtt);
            is_round_over = self.path.on_data(now, sent_at, rtt);
            self.end_drain(sent_at, rtt);
        }
        match self.phase {
            Phase::First => self.begin_pair(),
            Phase::Pair(None) => self.phase = Phase::Pair(Some(now)),
            Phase::Pair(Some(first)) => self.begin_flight(now.saturating_duration_since(first)),
            Phase::Start => self.size += if self.size < self.held / FAR { 1.0 } else { START_GROWTH },
            Phase::Steady if is_round_over => self.grow(),
            Phase::Steady => {}
        }
        if let Some((sent_at, rtt)) = sample {
            self.watch_queue(now, sent_at, rtt);
        }
        if self.path.has_period_ended(now) && self.phase == Phase::Steady {
            self.begin_drain(now, false);
        }
        self.bound();
    }

    /// Smooths round-trip times over half a round trip, so that pacing follows the queue.
    fn smooth(&mut self, rtt: Duration) {
        let share = (2.0 / self.size).clamp(MIN_SMOOTHING, 1.0);
        self.smoothed = Some(self.smoothed.map_or(rtt, |smoothed| smoothed.mul_f64(1.0 - share) + rtt.mul_f64(share)));
    }

    fn bound(&mut self) {
        self.size = self.size.clamp(MIN_WINDOW, self.max);
        self.largest = self.largest.max(self.size);
    }

    /// Starts the first flight. `apart` is the gap between the first two Data, an upper bound of the bottleneck's
    /// transmission time for one.
    fn begin_flight(&mut self, apart: Duration) {
        self.phase = Phase::Start;
        // A gap above the base round-trip time means that one of the two was retransmitted.
        let Some(base) = self.path.base().filter(|base| apart <= *base) else { return };
        self.held = base.as_secs_f64() / apart.as_secs_f64().max(1e-6);
        let share = FIRST_SHARE * self.held;
        self.size = share.clamp(1.0, self.first_flight);
        if share < self.first_flight {
            self.phase = Phase::Steady;
        }
    }

    /// Adds a queue sample, and shrinks the window when most of enough consecutive samples show a long queue. Samples
    /// of Interests sent before the last reduction are ignored: they show the queue of that time.
    fn watch_queue(&mut self, now: Instant, sent_at: Instant, rtt: Duration) {
        let is_before = self.reduced_at.is_some_and(|at| sent_at <= at);
        let Some(base) = self.path.base().filter(|_| !is_before && self.drain.is_none()) else { return };
        let enough = match self.phase {
            Phase::First | Phase::Pair(_) => return,
            Phase::Start => (self.size / 4.0).min(START_SAMPLES),
            // Half a round trip of samples, or a whole one for small windows, which get few samples.
            Phase::Steady => self.size.min((self.size / 2.0).max(ENOUGH_SAMPLES)),
        };
        self.queue.add(rtt.saturating_sub(base), self.long_queue(base));
        if f64::from(self.queue.samples) < enough.max(LEAST_SAMPLES) {
            return;
        }
        let queue = mem::take(&mut self.queue);
        self.is_half_full = queue.is_mostly(queue.half);
        if !queue.is_mostly(queue.long) {
            self.standing = 0;
            return;
        }
        let path_share = base.as_secs_f64() / (base + queue.shortest_long).as_secs_f64();
        let factor = match self.phase {
            Phase::Start => path_share / (1.0 + START_GROWTH),
            _ if self.size < SMALL_WINDOW => path_share - CUT_MORE / self.size,
            _ => 1.0 - CUT * (1.0 - path_share) - CUT_MORE / self.size,
        };
        self.reduce(now, factor);
        self.standing += 1;
        if self.standing > STANDING_REDUCTIONS {
            self.standing = 0;
            self.begin_drain(now, true);
        }
    }

    /// Grows the window after a round trip without a reduction.
    fn grow(&mut self) {
        let shows_queue = self.queue.samples > 0 && self.queue.is_mostly(self.queue.long);
        if !mem::take(&mut self.is_limited) || shows_queue {
            return;
        }
        self.growth = if self.is_half_full { GROWTH } else { self.growth * ACCELERATION };
        let most = (MOST_GROWTH_OF_ONE * self.size).clamp(LEAST_MOST_GROWTH, MOST_GROWTH);
        self.size += (self.growth * self.size.sqrt()).min(most * self.size);
    }

    /// Starts a drain: nothing is sent until the path holds no packet of this fetch. The next round trip then shows all
    /// fetches on the path its round-trip time without a queue.
    fn begin_drain(&mut self, now: Instant, is_suspicious: bool) {
        let Some(smoothed) = self.smoothed else { return };
        self.drain = Some(Drain::Until(now + smoothed * 3 / 2));
        self.is_suspicious = is_suspicious;
    }

    /// Ends the drain at the first Data that answers an Interest sent after the path was empty.
    fn end_drain(&mut self, sent_at: Instant, rtt: Duration) {
        if let Some(Drain::Sent(since)) = self.drain
            && sent_at >= since
        {
            self.drain = None;
            self.path.restart_round();
            if self.is_suspicious && self.path.base().is_some_and(|base| rtt > base + long_queue(base)) {
                self.path.raise(rtt);
            }
        }
    }

    /// Multiplies the window by `factor`.
    fn reduce(&mut self, now: Instant, factor: f64) {
        self.decreases += 1;
        self.size *= factor.max(LEAST_FACTOR);
        self.growth = GROWTH;
        self.reduced_at = Some(now);
        self.queue = QueueSamples::default();
        self.path.restart_round();
        self.phase = Phase::Steady;
        self.bound();
    }

    /// Reduces the window for congestion seen on the Interest sent at `sent_at`. One overfull queue shows in many
    /// packets, so only Interests sent after the last reduction count.
    pub(super) fn on_congestion(&mut self, now: Instant, sent_at: Instant) {
        self.reduce_once(now, sent_at, CONGESTION_FACTOR);
    }

    /// Reduces the window for the loss of the Interest sent at `sent_at` while the queue is long.
    pub(super) fn on_queue_loss(&mut self, now: Instant, sent_at: Instant) {
        self.reduce_once(now, sent_at, QUEUE_LOSS_FACTOR);
    }

    fn reduce_once(&mut self, now: Instant, sent_at: Instant, factor: f64) {
        let has_begun = matches!(self.phase, Phase::Start | Phase::Steady);
        if has_begun && self.reduced_at.is_none_or(|last| sent_at > last) {
            self.reduce(now, factor);
        }
    }

    /// Counts a loss and classifies its cause.
    pub(super) fn judge_loss(&mut self) -> Loss {
        let long_queue = self.path.base().map_or(Duration::ZERO, long_queue);
        match self.path.on_loss(2 * long_queue) {
            Loss::BadLine if self.size < SMALL_WINDOW => Loss::Queue,
            loss => loss,
        }
    }

    /// Returns the queueing delay above which a queue is long for the current window.
    fn long_queue(&self, base: Duration) -> Duration {
        let [least, most] = BIAS_BOUNDS;
        let bias = (USUAL_WINDOW / self.size).powf(BIAS).clamp(least, most);
        long_queue(base).mul_f64(bias).max(JITTER)
    }
}

/// Consecutive samples of the queueing delay.
#[derive(Clone, Copy, Debug, Default)]
struct QueueSamples {
    samples: u32,
    /// Number of samples above half of the long-queue threshold, number above the threshold, and the smallest delay
    /// above it.
    half: u32,
    long: u32,
    shortest_long: Duration,
}

impl QueueSamples {
    fn add(&mut self, queue: Duration, long: Duration) {
        self.samples += 1;
        self.half += u32::from(queue > long / 2);
        if queue > long {
            self.shortest_long = if self.long == 0 { queue } else { self.shortest_long.min(queue) };
            self.long += 1;
        }
    }

    /// Returns true if `count` is at least three quarters of the samples; a smaller share may be late for another
    /// reason. Unlike the smallest sample, a share does not depend on the number of samples, so small and large windows
    /// see the same.
    fn is_mostly(&self, count: u32) -> bool {
        count * 4 >= self.samples * 3
    }
}

/// Returns the queueing delay of a long queue on a path with this base round-trip time.
fn long_queue(base: Duration) -> Duration {
    (base / LONG_QUEUE_SHARE).max(LONG_QUEUE_MIN)
}

#[cfg(test)]
mod tests;
