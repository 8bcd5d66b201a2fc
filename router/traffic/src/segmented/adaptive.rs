//! The adaptive window: it keeps a short queue on the path, paces Interests, and does not shrink for the losses of a bad line.
//!
//! The window grows until a long queue shows, and then shrinks by most of what stands in it. Growth is in proportion to the square root of
//! the window, so that fetches on one path, which see the same queue, come to the same window, and faster in each round trip, so that
//! room is soon taken. Windows are fractions of Interests, and Interests are paced, so that paths that hold less than two segments are
//! filled without a queue as well. Once in five seconds the path is emptied, so that all fetches see how long it is without a queue.
//!
//! A fetch begins with one Interest, unless it is known to have more, then two at once, whose Data come as far apart as the line takes for
//! one, and then somewhat fewer than the path holds by that rate. From there the window grows by half in a round trip until a queue shows.

use std::mem;
use std::time::{Duration, Instant};

use super::path::{Loss, PathWatch};

/// The smallest window: an Interest in two round trips.
const MIN_WINDOW: f64 = 0.5;
/// A queue is long when it adds more than this share of the round-trip time, or this much if that is more: less is scheduling, or single
/// packets of other traffic.
const LONG_QUEUE_SHARE: u32 = 4;
const LONG_QUEUE_MIN: Duration = Duration::from_millis(8);
/// For a window of `USUAL_WINDOW`. For larger ones a shorter queue is long: of two fetches that see the same queue, the larger one shrinks
/// first. Queues below `JITTER` are long for no window.
const USUAL_WINDOW: f64 = 4.0;
const BIAS: f64 = 1.0 / 6.0;
const BIAS_BOUNDS: [f64; 2] = [0.6, 1.2];
const JITTER: Duration = Duration::from_millis(5);
/// Of what stands in a long queue, the window shrinks by this share, and by this part of an Interest more.
const CUT: f64 = 0.7;
const CUT_MORE: f64 = 0.3;
const LEAST_FACTOR: f64 = 0.5;
/// In a round trip without a long queue the window grows by this times its square root, and in each one after by so much more until
/// the queue is half as long.
const GROWTH: f64 = 0.12;
const ACCELERATION: f64 = 1.2;
/// The most that it grows by in a round trip: a share of it, which is smaller for small windows, where an Interest more is much.
const MOST_GROWTH: f64 = 0.25;
const MOST_GROWTH_OF_ONE: f64 = 1.0 / 30.0;
const LEAST_MOST_GROWTH: f64 = 0.1;
/// What congestion leaves of the window, and a loss where a long queue stands.
const CONGESTION_FACTOR: f64 = 0.7;
const QUEUE_LOSS_FACTOR: f64 = 0.85;
/// Queues of smaller windows consist of few packets and are full before they show. So all losses count as those of a full queue, and the
/// window shrinks by all that stands in a long one; it grows back in a few round trips.
const SMALL_WINDOW: f64 = 4.0;
/// A queue that is long again after so many reductions may be none of this fetch.
const STANDING_REDUCTIONS: u32 = 2;
/// The least share of a sample in the smoothed round-trip time.
const MIN_SMOOTHING: f64 = 0.125;
/// The first flight is this share of what the path holds: other fetches may be on it.
const FIRST_SHARE: f64 = 0.6;
/// Samples that show a queue: at least, at the start at most, and so many that half a round trip of them is enough.
const LEAST_SAMPLES: f64 = 3.0;
const START_SAMPLES: f64 = 8.0;
const ENOUGH_SAMPLES: f64 = 16.0;
/// What a Data adds to the window at the start. A queue shows a round trip after it began, when the window is by half larger still. So the
/// window doubles only while it is smaller by this factor than what the path seems to hold.
const START_GROWTH: f64 = 0.5;
const FAR: f64 = 4.0;
/// At the start Interests leave somewhat faster than the window asks for, so that it fills. They catch up with this part of a round trip.
const PACE_AT_START: f64 = 1.25;
const CATCH_UP_SHARE: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// One Interest, until its Data has come.
    First,
    /// Two at once; when the Data of one came.
    Pair(Option<Instant>),
    /// The window grows by half in a round trip.
    Start,
    /// The window follows the queue.
    Steady,
}

/// What empties the path of all that this fetch has on it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drain {
    /// Nothing is sent until all has come, or should have come.
    Until(Instant),
    /// The first Interest since then is on its way.
    Sent(Instant),
}

/// A window, in Interests, with the pace at which it is sent.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    size: f64,
    /// Interests of the first flight, at most.
    first_flight: f64,
    /// What the path holds by the rate of the first Data.
    held: f64,
    max: f64,
    largest: f64,
    decreases: u64,
    phase: Phase,
    path: PathWatch,
    smoothed: Option<Duration>,
    drain: Option<Drain>,
    /// The drain is to tell whether a queue is of this fetch.
    is_suspicious: bool,
    /// Reductions in succession after which the queue was still long.
    standing: u32,
    /// When the window was last reduced, and what samples have shown since then.
    reduced_at: Option<Instant>,
    queue: QueueSamples,
    /// The last samples that were enough have shown a queue of half the length that is long.
    is_half_full: bool,
    /// The next growth, by the square root of the window.
    growth: f64,
    /// Before this nothing is sent.
    next_send: Option<Instant>,
    /// In this round the window or the pace held an Interest back: with a larger one more would have been sent.
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

    /// Begins with two Interests. The Data of the first tells the round-trip time then, and that of both the rate.
    pub(super) fn skip_first(&mut self) {
        self.begin_pair();
    }

    fn begin_pair(&mut self) {
        (self.phase, self.size) = (Phase::Pair(None), 2.0);
        self.bound();
    }

    /// Interests that may be in flight.
    pub(super) fn size(&self) -> usize {
        self.size.ceil() as usize
    }

    pub(super) fn largest(&self) -> usize {
        self.largest.ceil() as usize
    }

    pub(super) fn decreases(&self) -> u64 {
        self.decreases
    }

    /// Whether an Interest may leave now, when so many are in flight.
    pub(super) fn may_send(&mut self, now: Instant, in_flight: usize) -> bool {
        if let Some(Drain::Until(until)) = self.drain {
            if in_flight > 0 && now < until {
                return false;
            }
            // What has not come may still stand in the queue.
            self.is_suspicious &= in_flight == 0;
            self.drain = Some(Drain::Sent(now));
            self.path.restart_round();
        }
        let may = in_flight < self.size() && self.next_send.is_none_or(|at| at <= now);
        self.is_limited |= !may;
        may
    }

    /// When an Interest may leave although nothing comes before, if so many are in flight.
    pub(super) fn next_send(&self, in_flight: usize) -> Option<Instant> {
        match self.drain {
            Some(Drain::Until(until)) => Some(until),
            _ => self.next_send.filter(|_| in_flight < self.size()),
        }
    }

    /// An Interest leaves.
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

    /// A Data came. `sent_at` is when its Interest was sent, if that is known, and `rtt` its round-trip time unless it was sent more than
    /// once.
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

    /// Smooths round-trip times over half a round trip, so that the pace follows the queue.
    fn smooth(&mut self, rtt: Duration) {
        let share = (2.0 / self.size).clamp(MIN_SMOOTHING, 1.0);
        self.smoothed = Some(self.smoothed.map_or(rtt, |smoothed| smoothed.mul_f64(1.0 - share) + rtt.mul_f64(share)));
    }

    fn bound(&mut self) {
        self.size = self.size.clamp(MIN_WINDOW, self.max);
        self.largest = self.largest.max(self.size);
    }

    /// The line took so long for a Data, or less.
    fn begin_flight(&mut self, apart: Duration) {
        self.phase = Phase::Start;
        // Otherwise one of the two was sent again.
        let Some(base) = self.path.base().filter(|base| apart <= *base) else { return };
        self.held = base.as_secs_f64() / apart.as_secs_f64().max(1e-6);
        let share = FIRST_SHARE * self.held;
        self.size = share.clamp(1.0, self.first_flight);
        if share < self.first_flight {
            self.phase = Phase::Steady;
        }
    }

    /// Shrinks the window when most of some samples in succession show a long queue. Samples of what was sent before the window shrank show
    /// the queue of then.
    fn watch_queue(&mut self, now: Instant, sent_at: Instant, rtt: Duration) {
        let is_before = self.reduced_at.is_some_and(|at| sent_at <= at);
        let Some(base) = self.path.base().filter(|_| !is_before && self.drain.is_none()) else { return };
        let enough = match self.phase {
            Phase::First | Phase::Pair(_) => return,
            Phase::Start => (self.size / 4.0).min(START_SAMPLES),
            // Half a round trip, but a whole one for small windows, whose samples are few.
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

    /// A round trip is over in which the window has not shrunk.
    fn grow(&mut self) {
        let shows_queue = self.queue.samples > 0 && self.queue.is_mostly(self.queue.long);
        if !mem::take(&mut self.is_limited) || shows_queue {
            return;
        }
        self.growth = if self.is_half_full { GROWTH } else { self.growth * ACCELERATION };
        let most = (MOST_GROWTH_OF_ONE * self.size).clamp(LEAST_MOST_GROWTH, MOST_GROWTH);
        self.size += (self.growth * self.size.sqrt()).min(most * self.size);
    }

    /// Sends nothing until the path is empty of this fetch, so that the next round trip shows how long the path is, to all fetches on it.
    fn begin_drain(&mut self, now: Instant, is_suspicious: bool) {
        let Some(smoothed) = self.smoothed else { return };
        self.drain = Some(Drain::Until(now + smoothed * 3 / 2));
        self.is_suspicious = is_suspicious;
    }

    /// Looks for the first Data of what was sent when the path was empty.
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

    /// Takes this share of the window.
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

    /// Congestion was seen on an Interest that was sent at `sent_at`. One overfull queue shows in many packets, so only those that were sent
    /// after the last reduction count.
    pub(super) fn on_congestion(&mut self, now: Instant, sent_at: Instant) {
        self.reduce_once(now, sent_at, CONGESTION_FACTOR);
    }

    /// The Interest that was sent at `sent_at` was lost where a long queue stands.
    pub(super) fn on_queue_loss(&mut self, now: Instant, sent_at: Instant) {
        self.reduce_once(now, sent_at, QUEUE_LOSS_FACTOR);
    }

    fn reduce_once(&mut self, now: Instant, sent_at: Instant, factor: f64) {
        let has_begun = matches!(self.phase, Phase::Start | Phase::Steady);
        if has_begun && self.reduced_at.is_none_or(|last| sent_at > last) {
            self.reduce(now, factor);
        }
    }

    /// Says what a loss is one of.
    pub(super) fn judge_loss(&mut self) -> Loss {
        let long_queue = self.path.base().map_or(Duration::ZERO, long_queue);
        match self.path.on_loss(2 * long_queue) {
            Loss::BadLine if self.size < SMALL_WINDOW => Loss::Queue,
            loss => loss,
        }
    }

    /// The delay of a queue that is long for this window.
    fn long_queue(&self, base: Duration) -> Duration {
        let [least, most] = BIAS_BOUNDS;
        let bias = (USUAL_WINDOW / self.size).powf(BIAS).clamp(least, most);
        long_queue(base).mul_f64(bias).max(JITTER)
    }
}

/// What some round-trip times in succession show of the queue.
#[derive(Clone, Copy, Debug, Default)]
struct QueueSamples {
    samples: u32,
    /// Those with a queue of half the length that is long, those with a long one, and the shortest of these.
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

    /// Whether so many are three quarters of all: fewer may be late for another reason, and a share, unlike the shortest of all, does not
    /// depend on how many there are, so that small windows and large ones see the same.
    fn is_mostly(&self, count: u32) -> bool {
        count * 4 >= self.samples * 3
    }
}

/// The delay of a long queue, on a path of this round-trip time.
fn long_queue(base: Duration) -> Duration {
    (base / LONG_QUEUE_SHARE).max(LONG_QUEUE_MIN)
}

#[cfg(test)]
mod tests;
