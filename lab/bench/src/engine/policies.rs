//! Cache policies take turns: each policy has a worker with its own tables, and all get the same requests.
//!
//! After the warm-up of all workers they take turns of some milliseconds, so that changes of the host's speed affect
//! all policies alike. Figures are medians over turns, and over ratios of adjacent turns.

use namehop_engine::counters::EngineCounters;
use namehop_orders::{BlockTicks, Order, PathKind, ScheduleKind};
use namehop_store::PolicyKind;
use namehop_traffic::workload::Workload as Requested;

use super::requests::{Requests, Work};
use super::rig::Rig;
use super::rotation::PIECE;
use super::{EngineBench, EngineBenchError};
use crate::median::{median, quartiles};
use crate::policy::{BlockFigures, PolicyFigures, PolicyParameters};
use crate::progress::{OnProgress, Progress};
use crate::schedule::{Buffers, EngineParameters};

/// Returns the load of the measurements: packets in the core's private cache, and one worker.
fn load_of(parameters: &EngineParameters) -> EngineParameters {
    EngineParameters { buffers: Buffers::Near, workers: 1, ..parameters.clone() }
}

/// Work of all policies in one turn each.
type Round = Vec<Work>;

impl EngineBench {
    /// Measures the router's engine with each policy. Returns a list of figures per run.
    ///
    /// # Errors
    /// Fails if a router cannot be set up or loses packets, or if a cache is not full after the warm-up.
    pub fn run_policies(
        &self,
        parameters: &EngineParameters,
        of: &PolicyParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<Vec<PolicyFigures>>, EngineBenchError> {
        let load = load_of(parameters);
        let per_policy = of.policies.iter().map(|&policy| EngineParameters { cs_policy: policy, ..load.clone() });
        let per_policy: Vec<EngineParameters> = per_policy.collect();
        let mut workers = self.warm(&per_policy, of, (ScheduleKind::Burst, PathKind::Whole), on_progress)?;
        let mut runs = Vec::new();
        for _ in 0..of.runs.max(1) {
            let before: Vec<_> = workers.iter().map(|worker| *worker.counters()).collect();
            let rounds = take_turns(&mut workers, of, on_progress)?;
            let policies = of.policies.iter().zip(workers.iter().zip(&before)).enumerate();
            let figures = policies.map(|(place, (&policy, (worker, before)))| {
                figures_of(policy, (before, worker.counters()), &rounds, place)
            });
            runs.push(figures.collect());
        }
        workers.into_iter().try_for_each(Requests::finish)?;
        Ok(runs)
    }

    /// Times the blocks of packet flow with each policy on the published path: with the schedule `Naive`, which hides
    /// no latency, and with `Burst`, the router's schedule. Returns a list of figures per run.
    ///
    /// # Errors
    /// As [`run_policies`](Self::run_policies).
    pub fn run_blocks(
        &self,
        parameters: &EngineParameters,
        of: &PolicyParameters,
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<Vec<BlockFigures>>, EngineBenchError> {
        let mut runs = vec![Vec::new(); of.runs.max(1)];
        for schedule in [ScheduleKind::Naive, ScheduleKind::Burst] {
            self.add_blocks(schedule, parameters, of, on_progress, &mut runs)?;
        }
        Ok(runs)
    }

    fn add_blocks(
        &self,
        schedule: ScheduleKind,
        parameters: &EngineParameters,
        of: &PolicyParameters,
        on_progress: &OnProgress<'_>,
        runs: &mut [Vec<BlockFigures>],
    ) -> Result<(), EngineBenchError> {
        let load = load_of(parameters);
        let empty_lap = BlockTicks::of_empty_lap();
        // One policy after the other: the blocks of one worker are compared, and there may be many policies.
        for &policy in &of.policies {
            let load = [EngineParameters { cs_policy: policy, ..load.clone() }];
            let mut workers = self.warm(&load, of, (schedule, PathKind::Timed), on_progress)?;
            for figures in runs.iter_mut() {
                let before: Vec<BlockTicks> = workers.iter().map(Requests::block_ticks).collect();
                take_turns(&mut workers, of, on_progress)?;
                let ticks = workers.iter().zip(&before).map(|(worker, before)| worker.block_ticks().since(before));
                figures.extend(ticks.map(|ticks| BlockFigures::new(policy, schedule, &ticks, empty_lap)));
            }
            workers.into_iter().try_for_each(Requests::finish)?;
        }
        Ok(())
    }

    /// Creates a warm worker with this order for each of the parameters.
    fn warm<'a>(
        &'a self,
        parameters: &'a [EngineParameters],
        of: &PolicyParameters,
        (schedule, path): (ScheduleKind, PathKind),
        on_progress: &OnProgress<'_>,
    ) -> Result<Vec<Requests<'a>>, EngineBenchError> {
        let pool =
            || self.pools.first().cloned().ok_or_else(|| EngineBenchError::Rig("no worker is configured".to_owned()));
        let mut workers = Vec::new();
        for parameters in parameters {
            let order = Order::new(schedule, path);
            let rig = Rig::new(&self.prefixes.fib, self.key, pool()?, parameters, order)?;
            let mut requested = Requested::new(of.shape);
            let next_name = Box::new(move || requested.next_number());
            let doing = match path {
                PathKind::Timed => format!("{}, blocks, {schedule}", parameters.cs_policy),
                PathKind::Whole | PathKind::Stripped => parameters.cs_policy.to_string(),
            };
            let mut worker = Requests::new(rig, &self.prefixes, parameters, next_name);
            let capacity = parameters.cs_capacity;
            let is_warm =
                |done: u64, cached: usize| done >= of.warm_up && cached >= capacity || done >= of.longest_warm_up;
            worker.warm_up(&is_warm, &|done| {
                on_progress(Progress { what: format!("{doing}: warming up"), done, total: of.longest_warm_up });
            })?;
            let got = worker.cached();
            if got < capacity {
                return Err(EngineBenchError::Cold { policy: parameters.cs_policy, got, capacity });
            }
            workers.push(worker);
        }
        Ok(workers)
    }
}

/// Gives all workers turns until each has had its time.
fn take_turns(
    workers: &mut [Requests<'_>],
    of: &PolicyParameters,
    on_progress: &OnProgress<'_>,
) -> Result<Vec<Round>, EngineBenchError> {
    let piece = of.time.min(PIECE);
    let count = of.time.as_nanos().div_ceil(piece.as_nanos().max(1));
    let mut rounds = Vec::new();
    for number in 0..count {
        let what = format!("{} policies in turns", workers.len());
        on_progress(Progress { what, done: number as u64, total: count as u64 });
        rounds.push(workers.iter_mut().map(|worker| worker.measure(piece)).collect::<Result<Round, _>>()?);
    }
    Ok(rounds)
}

/// Computes the figures of the worker at index `place` over all rounds, from two readings of its counters.
fn figures_of(
    policy: PolicyKind,
    (before, now): (&EngineCounters, &EngineCounters),
    rounds: &[Round],
    place: usize,
) -> PolicyFigures {
    let interests = now.in_interests - before.in_interests;
    let data = now.in_data - before.in_data;
    let refused = now.cs_rejected - before.cs_rejected;
    let mut ns: Vec<f64> = rounds.iter().map(|round| request_ns(&round[place])).collect();
    let ratio = |round: &Round| request_ns(&round[0]) / request_ns(&round[place]);
    let mut ratios: Vec<f64> = rounds.iter().map(ratio).collect();
    let request_ns = median(&mut ns);
    let bytes: u64 = rounds.iter().map(|round| round[place].sent_bytes).sum();
    let requests: u64 = rounds.iter().map(|round| round[place].requests).sum();
    PolicyFigures {
        policy,
        hit_rate: (now.cs_hits - before.cs_hits) as f64 / interests.max(1) as f64,
        insertion_rate: (data - refused) as f64 / data.max(1) as f64,
        request_ns,
        request_ns_quartiles: quartiles(&mut ns),
        speed: median(&mut ratios),
        speed_quartiles: quartiles(&mut ratios),
        gigabits_per_s: 8.0 * bytes as f64 / requests.max(1) as f64 / request_ns,
        requests,
    }
}

/// Nanoseconds per request in one turn.
fn request_ns(work: &Work) -> f64 {
    work.ticks as f64 / work.requests.max(1) as f64 * 1e9 / namehop_table::clock::cycles_per_second() as f64
}
