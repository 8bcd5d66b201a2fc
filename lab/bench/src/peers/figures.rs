//! Computes figures of each forwarder from its turns, and ratios to the first forwarder.

use namehop_traffic::loadgen::LoadReport;
use serde::Serialize;

use super::cases::Case;
use super::processors::Processors;
use crate::fault::ForwarderFault;
use crate::median::{median, quartiles};

/// Busy share at which a thread, or all CPUs together, count as saturated.
const SATURATED: f64 = 0.9;

/// Results of one turn of one forwarder.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) report: LoadReport,
    pub(super) hit_share: f64,
    pub(super) resident_bytes: u64,
    pub(super) cached_packets: u64,
}

/// Results of all cases.
#[derive(Debug, Clone, Serialize)]
pub struct PeersFigures {
    /// CPUs used.
    pub processors: Processors,
    /// Cases in the order of measurement.
    pub cases: Vec<CaseFigures>,
    /// Names and last log lines of the forwarders that failed in any case.
    pub logs: Vec<(String, String)>,
}

/// Results of one case.
#[derive(Debug, Clone, Serialize)]
pub struct CaseFigures {
    /// The case.
    #[serde(flatten)]
    pub case: Case,
    /// Figures of the forwarders, in the order of the command line.
    pub forwarders: Vec<PeerFigures>,
}

/// What limits the rate of exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// One of the forwarder's threads, or all of its CPUs, were saturated.
    Forwarder,
    /// The load was saturated; the forwarder could do more.
    Generator,
    /// Both were saturated.
    Both,
    /// Neither: round-trip time and number of Interests in flight limit the rate.
    RoundTrip,
}

/// Figures of one forwarder in one case: medians over turns, except totals and round-trip times.
#[derive(Debug, Clone, Serialize)]
pub struct PeerFigures {
    /// Name of the forwarder.
    pub name: String,
    /// Why there are no figures, if so.
    pub failure: Option<String>,
    /// Number of turns.
    pub turns: usize,
    /// Total number of exchanges.
    pub exchanges: u64,
    /// Total number of Interests without an answer, or with a Nack.
    pub lost: u64,
    /// Exchanges per second.
    pub exchanges_per_s: f64,
    /// CPU time of the forwarder per exchange, in microseconds.
    pub cpu_us: f64,
    /// Lower and upper quartile of `cpu_us`.
    pub cpu_us_quartiles: (f64, f64),
    /// Share of that CPU time spent in the kernel, 0 to 1.
    pub kernel_share: f64,
    /// Ratio of `cpu_us` to that of the first forwarder, by adjacent turns; `None` if that one has no figures.
    pub cpu_ratio: Option<f64>,
    /// Ratio of `exchanges_per_s` to that of the first forwarder, by adjacent turns; `None` as above.
    pub rate_ratio: Option<f64>,
    /// Median round-trip time, in microseconds.
    pub rtt_p50_us: f64,
    /// 99th percentile of the round-trip time, in microseconds.
    pub rtt_p99_us: f64,
    /// 99.9th percentile of the round-trip time, in microseconds.
    pub rtt_p999_us: f64,
    /// Resident memory of the forwarder after the last turn, in bytes.
    pub resident_bytes: u64,
    /// Packets in the cache after the last turn, as the forwarder reports.
    pub cached_packets: u64,
    /// Share of the Interests that the cache answered, 0 to 1.
    pub hit_share: f64,
    /// CPU time of the forwarder per second: number of CPUs in use.
    pub forwarder_processors: f64,
    /// CPU time of the forwarder's busiest thread per second.
    pub forwarder_busiest_thread: f64,
    /// CPU time of the load per second: number of CPUs in use.
    pub generator_processors: f64,
    /// CPU time of the load's busiest thread per second.
    pub generator_busiest_thread: f64,
    /// What limits the rate of exchanges.
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

    /// CPUs in use: by the forwarder, its busiest thread, the load, and its busiest thread.
    fn in_use(&self) -> [f64; 4] {
        let (forwarder, generator) = (self.report.observed_cpu.unwrap_or_default(), self.report.own_cpu);
        [forwarder.total.total(), forwarder.busiest_thread, generator.total.total(), generator.busiest_thread]
            .map(|time| time.as_secs_f64() / self.report.elapsed_s.max(f64::MIN_POSITIVE))
    }
}

/// Computes the figures of a case from each forwarder's turns or failure.
pub(super) fn of_case(
    case: Case,
    forwarders: Vec<(String, Result<Vec<Turn>, ForwarderFault>)>,
    processors: &Processors,
) -> CaseFigures {
    let first: Vec<Turn> = forwarders.first().and_then(|(_, turns)| turns.as_ref().ok().cloned()).unwrap_or_default();
    let of_one = |(name, turns): (String, Result<Vec<Turn>, ForwarderFault>)| {
        let (turns, failure) = match turns {
            Ok(turns) => (turns, None),
            Err(fault) => (Vec::new(), Some(fault.to_string())),
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
            // All histograms have the same bounds.
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
