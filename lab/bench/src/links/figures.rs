//! Computes the cost of an exchange from the counters of turns.

use std::time::Duration;

use namehop_traffic::loadgen::ConsumerCounts;
use serde::Serialize;

use super::generator::Exchanged;
use super::port::LinkKind;
use super::{ForwarderStatus, Processors};
use crate::median::{median, quartiles};

/// Counters of one turn.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) before: ForwarderStatus,
    pub(super) after: ForwarderStatus,
    pub(super) load: Exchanged,
    pub(super) elapsed: Duration,
}

/// Figures of all links.
#[derive(Debug, Clone, Serialize)]
pub struct LinksFigures {
    /// CPUs used.
    pub processors: Processors,
    /// Policy of the routers' Content Stores.
    pub cs_policy: String,
    /// Figures by kind of link: the sink first, then the router with each strategy.
    pub links: Vec<LinkFigures>,
}

/// Cost of an exchange (an Interest and its Data, each received and sent) to the router or sink between two links of
/// one kind. Figures are medians over turns, except totals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkFigures {
    /// Kind of the links.
    pub link: LinkKind,
    /// Strategy of the router; `None` for the sink.
    pub strategy: Option<String>,
    /// Number of turns.
    pub turns: usize,
    /// Total number of exchanges.
    pub exchanges: u64,
    /// Total number of Interests without an answer.
    pub lost: u64,
    /// Exchanges per second.
    pub exchanges_per_s: f64,
    /// Busy share of the worker, or of the sink; summed over several workers.
    pub busy_share: f64,
    /// Busy nanoseconds per exchange.
    pub busy_ns: f64,
    /// Lower and upper quartile of `busy_ns`.
    pub busy_ns_quartiles: (f64, f64),
    /// CPU time of the whole router per exchange in nanoseconds, idle polling included; `None` for the sink.
    pub process_ns: Option<f64>,
    /// Part of `process_ns` spent in the kernel, in nanoseconds.
    pub process_kernel_ns: Option<f64>,
    /// Median round-trip time, in microseconds.
    pub rtt_p50_us: f64,
    /// 99th percentile of the round-trip time, in microseconds.
    pub rtt_p99_us: f64,
    /// Busy share of consumer and producer. Near 1 they limit the rate.
    pub generator_busy_share: f64,
}

pub(super) fn of_turns(link: LinkKind, strategy: Option<&String>, turns: Vec<Turn>) -> LinkFigures {
    let each = |of: &dyn Fn(&Turn) -> f64| turns.iter().map(of).collect::<Vec<f64>>();
    let middle = |of: &dyn Fn(&Turn) -> f64| median(&mut each(of));
    let sum = |of: fn(&ConsumerCounts) -> u64| turns.iter().map(|turn| of(&turn.load.counts)).sum::<u64>();
    let has_processes = !turns.is_empty() && turns.iter().all(|turn| turn.after.processor_time.is_some());
    let mut rtt_ns = turns.first().map(|turn| turn.load.counts.rtt_ns.clone());
    if let Some(rtt_ns) = &mut rtt_ns {
        for turn in &turns[1..] {
            // All histograms have the same bounds.
            let _ = rtt_ns.add(&turn.load.counts.rtt_ns);
        }
    }
    let rtt_us = |percentile| rtt_ns.as_ref().map_or(0.0, |rtt| rtt.value_at_percentile(percentile) as f64 / 1e3);
    LinkFigures {
        link,
        strategy: strategy.cloned(),
        turns: turns.len(),
        exchanges: sum(|counts| counts.exchanges),
        lost: sum(|counts| counts.timeouts),
        exchanges_per_s: middle(&Turn::exchanges_per_s),
        busy_share: middle(&Turn::busy_share),
        busy_ns: middle(&Turn::busy_ns),
        busy_ns_quartiles: quartiles(&mut each(&Turn::busy_ns)),
        process_ns: has_processes.then(|| middle(&|turn| turn.process_ns(|(user, kernel)| user + kernel))),
        process_kernel_ns: has_processes.then(|| middle(&|turn| turn.process_ns(|(_, kernel)| kernel))),
        rtt_p50_us: rtt_us(50.0),
        rtt_p99_us: rtt_us(99.0),
        generator_busy_share: middle(&Turn::generator_busy_share),
    }
}

impl Turn {
    pub(super) fn exchanges_per_s(&self) -> f64 {
        self.load.counts.exchanges as f64 / self.elapsed.as_secs_f64()
    }

    pub(super) fn generator_busy_share(&self) -> f64 {
        self.load.busy.as_secs_f64() / self.elapsed.as_secs_f64()
    }

    fn busy_share(&self) -> f64 {
        let running = self.after.running.saturating_sub(self.before.running).as_secs_f64();
        self.after.busy.saturating_sub(self.before.busy).as_secs_f64() / running.max(f64::MIN_POSITIVE)
    }

    /// The router's readings and the generator's are not simultaneous, so shares and rates are combined, not sums.
    pub(super) fn busy_ns(&self) -> f64 {
        1e9 * self.busy_share() / self.exchanges_per_s().max(f64::MIN_POSITIVE)
    }

    fn process_ns(&self, part: impl Fn((Duration, Duration)) -> Duration) -> f64 {
        1e9 * self.share_of(part) / self.exchanges_per_s().max(f64::MIN_POSITIVE)
    }

    /// CPU time of the process, as a share of one CPU.
    pub(super) fn processor_share(&self) -> f64 {
        self.share_of(|(user, kernel)| user + kernel)
    }

    fn share_of(&self, part: impl Fn((Duration, Duration)) -> Duration) -> f64 {
        let of = |status: &ForwarderStatus| status.processor_time.map(&part).unwrap_or_default();
        let running = self.after.running.saturating_sub(self.before.running).as_secs_f64();
        let used = of(&self.after).saturating_sub(of(&self.before)).as_secs_f64();
        used / running.max(f64::MIN_POSITIVE)
    }
}
