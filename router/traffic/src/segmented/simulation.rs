//! Fetches over a simulated link, in simulated time: tests congestion control on a path with a bottleneck, loss and
//! other fetches.
//!
//! ```text
//!   fetches ── way there ── producer ── queue ── line ── way back
//! ```
//!
//! The line is the relay's, and marks are set as by a router. Packets keep their order, and some are up to a few
//! milliseconds late, as on a busy host.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::{Duration, Instant};

use namehop_face::link_service::CongestionMarker;
use namehop_packet::Timestamp;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::congestion::WindowKind;
use super::control::CongestionControl;
use super::rtt::{RtoBounds, RttEstimator};
use super::state::Transfer;
use crate::relay::{Fate, Impairments, Line};

/// Bytes of name, signature and link header of a segment.
const OVERHEAD_BYTES: usize = 115;
const INTEREST_BYTES: usize = 60;
/// Maximum lateness in seconds; most packets are much less late.
const LATENESS_S: f64 = 0.004;
/// Congestion marking of routers: the queue size in bytes from which they mark, and how long it must last at first.
const MARK_THRESHOLD_BYTES: u64 = 65_536;
const MARK_INTERVAL_NS: u64 = 100_000_000;

/// A path and the fetches on it.
#[derive(Clone)]
struct Scene {
    bits_per_second: u64,
    segment_bytes: usize,
    round_trip: Duration,
    /// Loss rate in each direction.
    loss: f64,
    queue_bytes: u64,
    has_marks: bool,
    law: WindowKind,
    /// Start of each fetch, in seconds.
    starts_s: Vec<f64>,
    segments: u64,
    /// End of the simulation, in seconds, if segments are still missing.
    limit_s: f64,
    seed: u64,
}

impl Scene {
    fn of(round_trip_ms: u64, loss: f64) -> Self {
        Scene {
            bits_per_second: 100_000_000,
            segment_bytes: 8000,
            round_trip: Duration::from_millis(round_trip_ms),
            loss,
            queue_bytes: 256 << 10,
            has_marks: false,
            law: WindowKind::Adaptive,
            starts_s: vec![0.0],
            // 100 MB.
            segments: 12_500,
            limit_s: 100.0,
            seed: 1,
        }
    }
}

/// Result of a fetch.
struct Fetched {
    segment_bytes: usize,
    arrivals: Vec<Duration>,
    transfer: Transfer,
}

impl Fetched {
    /// Returns the goodput between two times in Mbit/s.
    fn goodput(&self, from: Duration, to: Duration) -> f64 {
        let segments = self.arrivals.iter().filter(|at| (from..=to).contains(at)).count();
        (segments * self.segment_bytes * 8) as f64 / 1e6 / (to - from).as_secs_f64()
    }

    fn whole_goodput(&self) -> f64 {
        self.goodput(Duration::ZERO, self.arrivals.last().copied().unwrap_or(Duration::from_secs(1)))
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A fetch starts, or may send.
    Wake,
    Interest {
        segment: u64,
        number: u64,
    },
    Data {
        segment: u64,
        number: u64,
        is_marked: bool,
    },
    Timeout {
        segment: u64,
        number: u64,
    },
}

struct Simulation {
    events: BinaryHeap<Reverse<(Duration, u64, usize, Event)>>,
    numbered: u64,
    there: Line,
    back: Line,
    delay: Duration,
    bits_per_second: u64,
    data_bytes: usize,
    marker: Option<CongestionMarker>,
    chance: SmallRng,
    last_arrival: Duration,
    lost_in_queue: u64,
}

impl Simulation {
    fn at(&mut self, time: Duration, fetch: usize, event: Event) {
        self.numbered += 1;
        self.events.push(Reverse((time, self.numbered, fetch, event)));
    }

    /// Handles an Interest at the producer: its Data enters the line.
    fn answer(&mut self, now: Duration, fetch: usize, segment: u64, number: u64) {
        let at = match self.back.pass(now, self.data_bytes) {
            Fate::Arrives { at, .. } => at,
            Fate::QueueFull => {
                self.lost_in_queue += 1;
                return;
            }
            Fate::Lost => return,
        };
        let waits = (at - now).saturating_sub(self.delay);
        let queue_bytes = (waits.as_secs_f64() * self.bits_per_second as f64 / 8.0) as u64;
        let stamp = Timestamp(now.as_nanos() as u64 + 1);
        let is_marked = self
            .marker
            .as_mut()
            .is_some_and(|marker| marker.should_mark(stamp, queue_bytes, MARK_THRESHOLD_BYTES, MARK_INTERVAL_NS));
        let lateness = Duration::from_secs_f64(LATENESS_S * self.chance.random::<f64>().powi(4));
        self.last_arrival = self.last_arrival.max(at + lateness);
        self.at(self.last_arrival, fetch, Event::Data { segment, number, is_marked });
    }
}

/// Runs the scene. Returns all fetches and the number of Data dropped by the full queue.
fn run(scene: &Scene) -> (Vec<Fetched>, u64) {
    let began = Instant::now();
    let delay = scene.round_trip / 2;
    let line = Impairments { delay, loss: scene.loss, queue_bytes: scene.queue_bytes, ..Impairments::default() };
    let mut simulation = Simulation {
        events: BinaryHeap::new(),
        numbered: 0,
        there: Line::new(line, scene.seed),
        back: Line::new(Impairments { bits_per_second: Some(scene.bits_per_second), ..line }, scene.seed + 1000),
        delay,
        bits_per_second: scene.bits_per_second,
        data_bytes: scene.segment_bytes + OVERHEAD_BYTES,
        marker: scene.has_marks.then(CongestionMarker::default),
        chance: SmallRng::seed_from_u64(scene.seed + 2000),
        last_arrival: Duration::ZERO,
        lost_in_queue: 0,
    };
    let new = || {
        let control = CongestionControl::new(scene.law, scene.law.default_initial(), 4096.0);
        let reorder_limit = 64_000_000 / scene.segment_bytes as u64;
        let mut transfer = Transfer::new(control, RttEstimator::new(RtoBounds::default()), reorder_limit);
        // As the metadata of the object says.
        transfer.expect_last(Some(scene.segments - 1));
        transfer
    };
    let mut fetches: Vec<Fetched> = scene
        .starts_s
        .iter()
        .map(|_| Fetched { segment_bytes: scene.segment_bytes, arrivals: Vec::new(), transfer: new() })
        .collect();
    // For each fetch, by segment: the number of the pending Interest and when it was sent.
    let mut waits: Vec<HashMap<u64, (u64, Duration)>> = vec![HashMap::new(); fetches.len()];
    // For each fetch, the time of its next wake event.
    let mut woken = vec![None; fetches.len()];
    for (fetch, start_s) in scene.starts_s.iter().enumerate() {
        simulation.at(Duration::from_secs_f64(*start_s), fetch, Event::Wake);
    }
    while let Some(Reverse((now, _, fetch, event))) = simulation.events.pop() {
        if now.as_secs_f64() > scene.limit_s || fetches.iter().all(|fetch| fetch.transfer.is_complete()) {
            break;
        }
        let (transfer, waits) = (&mut fetches[fetch].transfer, &mut waits[fetch]);
        match event {
            Event::Wake => {}
            Event::Interest { segment, number } => {
                simulation.answer(now, fetch, segment, number);
                continue;
            }
            Event::Data { segment, number, is_marked } => {
                // Data of an abandoned Interest is ignored, unless its segment was requested again.
                let Some((requested, sent_at)) = waits.remove(&segment) else { continue };
                let rtt = if requested == number { now - sent_at } else { Duration::ZERO };
                let arrived = transfer.on_data(began + now, segment, Some(scene.segments - 1), rtt, is_marked);
                let arrived = arrived.expect("every Data names the same last segment");
                for lost in &arrived.lost {
                    waits.remove(lost);
                }
                if arrived.is_new {
                    fetches[fetch].arrivals.push(now);
                }
            }
            Event::Timeout { segment, number } => {
                if waits.get(&segment).is_none_or(|(waiting, _)| *waiting != number) {
                    continue;
                }
                waits.remove(&segment);
                transfer.on_timeout(began + now, segment);
            }
        }
        while let Some(request) = fetches[fetch].transfer.next_request(began + now) {
            let number = simulation.numbered;
            let segment = request.segment;
            waits.insert(segment, (number, now));
            let rto = fetches[fetch].transfer.rtt.rto_after(request.attempt.saturating_sub(1));
            simulation.at(now + rto, fetch, Event::Timeout { segment, number });
            if let Fate::Arrives { at, .. } = simulation.there.pass(now, INTEREST_BYTES) {
                simulation.at(at, fetch, Event::Interest { segment, number });
            }
        }
        if let Some(at) = fetches[fetch].transfer.next_send().filter(|at| woken[fetch] != Some(*at)) {
            woken[fetch] = Some(at);
            simulation.at(at.saturating_duration_since(began).max(now), fetch, Event::Wake);
        }
    }
    (fetches, simulation.lost_in_queue)
}

/// Returns the mean round-trip time relative to that of the path without a queue.
fn mean_delay(fetched: &Fetched, scene: &Scene) -> f64 {
    fetched.transfer.rtt.mean().unwrap_or_default().as_secs_f64() / scene.round_trip.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs per kind of path. A single run may lose its first Interests and then wait for seconds.
const SEEDS: u64 = 5;

fn seeds(scene: &Scene) -> impl Iterator<Item = Scene> {
    (1..=11).map(|seed| Scene { seed, ..scene.clone() })
}

/// Results of one or two fetches on a path with a queue as large as the path's capacity.
struct Shown {
    /// Share of the line's capacity used by content and its overhead.
    share: f64,
    /// Median round-trip time relative to that of a single segment.
    delay: f64,
    /// Share of the Data dropped by the full queue.
    lost: f64,
}

fn show(scene: &Scene) -> Shown {
    let (fetched, lost) = run(scene);
    let data_bytes = (scene.segment_bytes + OVERHEAD_BYTES) as f64;
    let arrived: usize = fetched.iter().map(|fetched| fetched.arrivals.len()).sum();
    let alone_s = scene.round_trip.as_secs_f64() + data_bytes * 8.0 / scene.bits_per_second as f64;
    let medians = fetched.iter().map(|fetched| fetched.transfer.rtt_ns.value_at_quantile(0.5) as f64 / 1e9);
    Shown {
        share: arrived as f64 * data_bytes * 8.0 / scene.bits_per_second as f64 / scene.limit_s,
        delay: medians.fold(0.0, f64::max) / alone_s,
        lost: lost as f64 / (arrived as f64 + lost as f64),
    }
}

/// Checks fast and slow, short and long paths, small and large segments, one and two fetches, with and without losses;
/// each by the median of [`SEEDS`] runs. Queues for fewer than two segments are skipped: a segment that is slightly
/// early is lost in them.
///
/// Fetches end after `limit_s`, and their shares include one round trip more, for discovery. `least` are the least
/// shares of the line without and with losses.
fn assert_filled_without_long_queues(rates_mbit: &[u64], limit_s: f64, least: [f64; 2]) {
    let mut wrong = Vec::new();
    for &mbit in rates_mbit {
        for (ms, segment_bytes) in [20, 60, 100].into_iter().flat_map(|ms| [(ms, 1300), (ms, 8000)]) {
            let bits_per_second = mbit * 1_000_000;
            let queue_bytes = bits_per_second * ms / 8000;
            let is_short = queue_bytes < 2 * (segment_bytes + OVERHEAD_BYTES) as u64;
            // At 1 Gbit/s, small segments with individual delays are more than a host has, and longer paths take longer
            // to fill.
            if is_short || mbit == 1000 && (segment_bytes, ms) != (8000, 20) {
                continue;
            }
            for (starts_s, loss) in [(vec![0.0], 0.0), (vec![0.0, 0.3], 0.0), (vec![0.0], 0.01), (vec![0.0, 0.3], 0.01)]
            {
                let what =
                    format!("{mbit} Mbit/s, {ms} ms, {segment_bytes} bytes, {} fetches, loss {loss}", starts_s.len());
                let scene = Scene {
                    bits_per_second,
                    segment_bytes,
                    queue_bytes,
                    starts_s,
                    segments: 1 << 32,
                    limit_s,
                    ..Scene::of(ms, loss)
                };
                let shown: Vec<Shown> = (1..=SEEDS).map(|seed| show(&Scene { seed, ..scene.clone() })).collect();
                let of = |what: fn(&Shown) -> f64| median(shown.iter().map(what).collect());
                let share = of(|it| it.share) * limit_s / (limit_s + ms as f64 / 1e3);
                let (delay, lost) = (of(|it| it.delay), of(|it| it.lost));
                let least = least[usize::from(loss > 0.0)];
                if share < least || delay > 1.5 || lost > 0.01 {
                    wrong.push(format!("{what}: share {share:.3}, delay {delay:.2}, lost {lost:.4}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "slow"]
fn slow_paths_are_filled_without_long_queues() {
    assert_filled_without_long_queues(&[2, 5, 20], 20.0, [0.9, 0.85]);
}

#[test]
#[ignore = "slow"]
fn fast_paths_are_filled_without_long_queues() {
    assert_filled_without_long_queues(&[100], 20.0, [0.9, 0.85]);
}

#[test]
fn very_fast_paths_are_filled_without_long_queues() {
    assert_filled_without_long_queues(&[1000], 8.0, [0.9, 0.85]);
}

#[test]
fn short_fetches_fill_their_paths_too() {
    assert_filled_without_long_queues(&[5, 20], 5.0, [0.88, 0.85]);
}

#[test]
fn a_fetch_fills_the_line_and_keeps_its_queue_short() {
    for (round_trip_ms, loss, least) in [(20, 0.0, 95.0), (50, 0.0, 93.0), (20, 0.01, 93.0), (50, 0.01, 90.0)] {
        let scene = Scene::of(round_trip_ms, loss);
        let fetched: Vec<Fetched> = seeds(&scene).flat_map(|scene| run(&scene).0).collect();
        let goodput = median(fetched.iter().map(Fetched::whole_goodput).collect());
        let delay = median(fetched.iter().map(|fetched| mean_delay(fetched, &scene)).collect());
        assert!(goodput > least, "{round_trip_ms} ms, loss {loss}: {goodput:.1} Mbit/s");
        assert!(delay < 1.5, "{round_trip_ms} ms, loss {loss}: mean round trip {delay:.2} times the path's");
    }
}

#[test]
fn two_fetches_have_equal_shares_and_a_short_queue_in_both_orders() {
    // Fairness takes a few hundred round trips.
    for (round_trip_ms, loss, later_s, least) in
        [(20, 0.0, 0.0, 0.8), (20, 0.0, 3.0, 0.8), (20, 0.01, 3.0, 0.8), (50, 0.01, 0.0, 0.6), (50, 0.01, 3.0, 0.6)]
    {
        let end_s = later_s + 12.0;
        let (starts_s, segments) = (vec![0.0, later_s], 1 << 32);
        let scene = Scene { starts_s, segments, limit_s: end_s, ..Scene::of(round_trip_ms, loss) };
        let [from, to] = [later_s, end_s].map(Duration::from_secs_f64);
        let what = format!("{round_trip_ms} ms, loss {loss}, {later_s} s later");
        let (shares, delays): (Vec<f64>, Vec<f64>) = seeds(&scene)
            .map(|scene| {
                let (fetched, _) = run(&scene);
                let rates: Vec<f64> = fetched.iter().map(|fetched| fetched.goodput(from, to)).collect();
                assert!(rates.iter().sum::<f64>() > 90.0, "{what}: {rates:.1?}");
                let delay = fetched.iter().map(|fetched| mean_delay(fetched, &scene)).fold(0.0, f64::max);
                (rates[0].min(rates[1]) / rates[0].max(rates[1]), delay)
            })
            .unzip();
        assert!(median(shares.clone()) > least, "{what}: {shares:.2?}");
        assert!(median(delays.clone()) < 1.5, "{what}: mean round trips {delays:.2?} times the path's");
    }
}

/// CUBIC fills every queue; a router's marks reduce its window before the queue is full.
#[test]
fn marks_keep_the_queue_from_overflowing() {
    let unmarked = Scene { law: WindowKind::Cubic, starts_s: vec![0.0, 2.0], segments: 10_000, ..Scene::of(20, 0.0) };
    let marked = Scene { has_marks: true, ..unmarked.clone() };
    let [without, with] = [unmarked, marked].map(|scene| {
        let (fetched, lost) = run(&scene);
        let marks = fetched.iter().map(|fetched| fetched.transfer.counts.congestion_marks);
        let end = fetched.iter().filter_map(|fetched| fetched.arrivals.last()).max();
        (lost, marks.sum::<u64>(), end.copied().unwrap_or_default())
    });
    assert_eq!(without.1, 0);
    assert!(without.0 > 10 && with.0 * 3 < without.0 && with.1 > 5, "without {without:?}, with {with:?}");
    assert!(with.2 < without.2.mul_f64(1.1), "marks must not delay completion: without {without:?}, with {with:?}");
}
