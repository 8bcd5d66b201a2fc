//! From turns to figures of each forwarder, and to what they are beside those of the first one.

use namehop_traffic::loadgen::LoadReport;
use serde::Serialize;

use super::cases::Case;
use super::processors::Processors;
use crate::median::{median, quartiles};

/// A thread, or all processors, with less idle time than a tenth has no more to give.
const SATURATED: f64 = 0.9;

/// What was measured in one turn of one forwarder.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) report: LoadReport,
    pub(super) hit_share: f64,
    pub(super) resident_bytes: u64,
    pub(super) cached_packets: u64,
}

/// All cases.
#[derive(Debug, Clone, Serialize)]
pub struct PeersFigures {
    /// What ran where.
    pub processors: Processors,
    /// In the order in which they were measured.
    pub cases: Vec<CaseFigures>,
    /// Of each forwarder that failed in some case: its name, and the end of its log.
    pub logs: Vec<(String, String)>,
}

/// One case, with all forwarders.
#[derive(Debug, Clone, Serialize)]
pub struct CaseFigures {
    /// What was exchanged.
    #[serde(flatten)]
    pub case: Case,
    /// In the order of the command line.
    pub forwarders: Vec<PeerFigures>,
}

/// What keeps exchanges from being more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// One of the forwarder's threads, or all of its processors, were busy: the rate is its own.
    Forwarder,
    /// The load was: the forwarder could do more.
    Generator,
    /// Both were.
    Both,
    /// Neither: the time that packets take, with so many Interests in flight.
    RoundTrip,
}

/// One forwarder in one case. Figures are medians of turns, but for totals and round-trip times.
#[derive(Debug, Clone, Serialize)]
pub struct PeerFigures {
    /// What it is called.
    pub name: String,
    /// Why there are no figures.
    pub failure: Option<String>,
    /// Turns.
    pub turns: usize,
    /// Exchanges in all turns.
    pub exchanges: u64,
    /// Interests that nothing answered, or that were refused, in all turns.
    pub lost: u64,
    /// Exchanges per second.
    pub exchanges_per_s: f64,
    /// CPU time of the forwarder for each exchange, in microseconds.
    pub cpu_us: f64,
    /// A quarter of the turns had less, and a quarter more.
    pub cpu_us_quartiles: (f64, f64),
    /// Part of it in the kernel, from 0 to 1.
    pub kernel_share: f64,
    /// CPU time for each exchange by that of the first forwarder, turn by turn. `None` where that one has no figures.
    pub cpu_ratio: Option<f64>,
    /// Exchanges per second by those of the first forwarder.
    pub rate_ratio: Option<f64>,
    /// Round-trip time of half of all exchanges, in microseconds.
    pub rtt_p50_us: f64,
    /// Of 99 %.
    pub rtt_p99_us: f64,
    /// Of 99.9 %.
    pub rtt_p999_us: f64,
    /// Memory of the forwarder after the last turn, in bytes.
    pub resident_bytes: u64,
    /// Data in its cache after the last turn, as it says itself.
    pub cached_packets: u64,
    /// Share of the Interests that its cache answered, from 0 to 1.
    pub hit_share: f64,
    /// CPU time of the forwarder in a second.
    pub forwarder_processors: f64,
    /// Of its busiest thread.
    pub forwarder_busiest_thread: f64,
    /// CPU time of the load in a second.
    pub generator_processors: f64,
    /// Of its busiest thread.
    pub generator_busiest_thread: f64,
    /// What keeps exchanges from being more.
    pub limit: Limit,
}

impl Turn {
    fn cpu_us(&self) -> f64 {
        self.report.observed_cpu.and_then(|used| self.report.cpu_us_per_exchange(used)).unwrap_or_default()
    }

    fn kernel_share(&self) -> f64 {
        let used = self.report.observed_cpu.unwrap_or_default().total;
        used.system.as_secs_f64() / used.total().as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Processors that were in use: forwarder, its busiest thread, load, its busiest thread.
    fn in_use(&self) -> [f64; 4] {
        let (forwarder, generator) = (self.report.observed_cpu.unwrap_or_default(), self.report.own_cpu);
        [forwarder.total.total(), forwarder.busiest_thread, generator.total.total(), generator.busiest_thread]
            .map(|time| time.as_secs_f64() / self.report.elapsed_s.max(f64::MIN_POSITIVE))
    }
}

/// All forwarders of a case, each with its turns or with what went wrong.
pub(super) fn of_case(
    case: Case,
    forwarders: Vec<(String, Result<Vec<Turn>, String>)>,
    processors: &Processors,
) -> CaseFigures {
    let first: Vec<Turn> = forwarders.first().and_then(|(_, turns)| turns.clone().ok()).unwrap_or_default();
    let of_one = |(name, turns): (String, Result<Vec<Turn>, String>)| {
        let (turns, failure) = match turns {
            Ok(turns) => (turns, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        of_turns(name, failure, &turns, &first, processors)
    };
    CaseFigures { case, forwarders: forwarders.into_iter().map(of_one).collect() }
}

fn of_turns(
    name: String,
    failure: Option<String>,
    turns: &[Turn],
    first: &[Turn],
    processors: &Processors,
) -> PeerFigures {
    let each = |of: &dyn Fn(&Turn) -> f64| turns.iter().map(of).collect::<Vec<f64>>();
    let middle = |of: &dyn Fn(&Turn) -> f64| median(&mut each(of));
    let ratio = |of: &dyn Fn(&Turn) -> f64| {
        let pairs = turns.iter().zip(first).filter(|(_, first)| of(first) > 0.0);
        let mut ratios: Vec<f64> = pairs.map(|(turn, first)| of(turn) / of(first)).collect();
        (!ratios.is_empty()).then(|| median(&mut ratios))
    };
    let mut rtt_ns = turns.first().and_then(|turn| turn.report.rtt_ns.clone());
    for turn in turns.iter().skip(1) {
        if let (Some(all), Some(more)) = (&mut rtt_ns, &turn.report.rtt_ns) {
            // All have the same bounds.
            let _ = all.add(more);
        }
    }
    let rtt_us = |percentile| rtt_ns.as_ref().map_or(0.0, |rtt| rtt.value_at_percentile(percentile) as f64 / 1e3);
    let in_use: [f64; 4] = std::array::from_fn(|which| middle(&|turn| turn.in_use()[which]));
    let [forwarder_processors, forwarder_busiest_thread, generator_processors, generator_busiest_thread] = in_use;
    let rate = |turn: &Turn| turn.report.exchanges_per_second();
    PeerFigures {
        name,
        failure,
        turns: turns.len(),
        exchanges: turns.iter().map(|turn| turn.report.exchanges).sum(),
        lost: turns.iter().map(|turn| turn.report.timeouts + turn.report.nacks).sum(),
        exchanges_per_s: middle(&rate),
        cpu_us: middle(&Turn::cpu_us),
        cpu_us_quartiles: quartiles(&mut each(&Turn::cpu_us)),
        kernel_share: middle(&Turn::kernel_share),
        cpu_ratio: ratio(&Turn::cpu_us),
        rate_ratio: ratio(&rate),
        rtt_p50_us: rtt_us(50.0),
        rtt_p99_us: rtt_us(99.0),
        rtt_p999_us: rtt_us(99.9),
        resident_bytes: turns.last().map_or(0, |turn| turn.resident_bytes),
        cached_packets: turns.last().map_or(0, |turn| turn.cached_packets),
        hit_share: middle(&|turn| turn.hit_share),
        forwarder_processors,
        forwarder_busiest_thread,
        generator_processors,
        generator_busiest_thread,
        limit: limit(in_use, processors),
    }
}

fn limit(in_use: [f64; 4], processors: &Processors) -> Limit {
    let [forwarder, forwarder_thread, generator, generator_thread] = in_use;
    let is_saturated =
        |all: f64, thread: f64, processors: &[usize]| thread >= SATURATED || all >= SATURATED * processors.len() as f64;
    let forwarder = is_saturated(forwarder, forwarder_thread, &processors.forwarders);
    match (forwarder, is_saturated(generator, generator_thread, &processors.generator)) {
        (true, true) => Limit::Both,
        (true, false) => Limit::Forwarder,
        (false, true) => Limit::Generator,
        (false, false) => Limit::RoundTrip,
    }
}
