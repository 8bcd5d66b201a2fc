//! Simulates many stores over the same requests in one pass, on several cores.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use namehop_table::TableError;

use crate::policy::SimulatedPolicy;
use crate::store::{Counts, SimulatedStore, store};
use crate::trace::{Trace, TraceError};
use namehop_traffic::workload::Workload;

/// Requests per chunk handed to the threads.
const CHUNK: usize = 1 << 16;
/// Chunks that may be queued for a thread.
const WAITING: usize = 4;

/// Source of requests.
#[expect(clippy::large_enum_variant, reason = "a simulation has one")]
pub enum Source {
    /// A workload, without end.
    Workload(Workload),
    /// A file, to its end.
    Trace(Trace),
    /// A list in memory, to its end.
    Memory(std::vec::IntoIter<u64>),
}

impl Source {
    /// Appends up to `count` requests to `names`; fewer at the end of the source.
    ///
    /// # Errors
    /// Fails if the trace cannot be read.
    pub fn read(&mut self, count: usize, names: &mut Vec<u64>) -> Result<(), TraceError> {
        match self {
            Source::Workload(workload) => names.extend((0..count).map(|_| workload.next_request())),
            Source::Trace(trace) => {
                for _ in 0..count {
                    let Some(name) = trace.next_request()? else { break };
                    names.push(name);
                }
            }
            Source::Memory(rest) => names.extend(rest.take(count)),
        }
        Ok(())
    }
}

/// Parameters of a simulation.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Policies and capacities of the stores.
    pub stores: Vec<(SimulatedPolicy, usize)>,
    /// Maximum number of requests.
    pub requests: u64,
    /// Number of requests at the start that fill the stores and are not counted.
    pub warm_up: u64,
    /// Number of threads that share the stores; at least 1.
    pub threads: usize,
}

/// Result of one store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Policy of the store.
    pub policy: SimulatedPolicy,
    /// Capacity in packets.
    pub capacity: usize,
    /// Counters after the warm-up.
    pub counts: Counts,
    /// Counters of all requests, warm-up included.
    pub since_start: Counts,
    /// Time per request after the warm-up, in nanoseconds.
    pub ns_per_request: f64,
}

/// Why a simulation failed.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// Memory for a store could not be allocated.
    #[error(transparent)]
    Memory(#[from] TableError),
    /// The trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A thread could not be started, or panicked.
    #[error("a simulation thread panicked")]
    Thread,
}

/// A store under simulation.
struct Job {
    index: usize,
    policy: SimulatedPolicy,
    capacity: usize,
    store: Box<dyn SimulatedStore>,
    /// Counters at the end of the warm-up.
    before: Counts,
    time: Duration,
}

impl Job {
    /// Runs requests, of which the first `warm_up` belong to the warm-up.
    fn request(&mut self, names: &[u64], warm_up: usize) {
        let (warming, counted) = names.split_at(warm_up.min(names.len()));
        if !warming.is_empty() {
            self.store.request_all(warming);
            self.before = self.store.counts();
        }
        let start = Instant::now();
        self.store.request_all(counted);
        self.time += start.elapsed();
    }

    fn outcome(self) -> (usize, Outcome) {
        let since_start = self.store.counts();
        let counts = since_start.since(&self.before);
        let ns_per_request = self.time.as_nanos() as f64 / counts.requests.max(1) as f64;
        (self.index, Outcome { policy: self.policy, capacity: self.capacity, counts, since_start, ns_per_request })
    }
}

/// Runs all stores over the requests. Calls `on_progress` with the number of requests done. Outcomes are in the order
/// of `plan.stores`.
///
/// # Errors
/// Fails if memory for a store cannot be allocated, or if a trace cannot be read.
pub fn run(source: &mut Source, plan: &Plan, on_progress: &dyn Fn(u64)) -> Result<Vec<Outcome>, SimulationError> {
    let threads = plan.threads.clamp(1, plan.stores.len().max(1));
    let mut shares: Vec<Vec<Job>> = (0..threads).map(|_| Vec::new()).collect();
    for (index, &(policy, capacity)) in plan.stores.iter().enumerate() {
        let store = store(policy, capacity)?;
        let job = Job { index, policy, capacity, store, before: Counts::default(), time: Duration::ZERO };
        shares[index % threads].push(job);
    }
    let outcomes = thread::scope(|scope| {
        let mut senders = Vec::new();
        let mut handles = Vec::new();
        for jobs in shares {
            let (sender, receiver) = sync_channel(WAITING);
            let warm_up = plan.warm_up;
            let builder = thread::Builder::new().name("simulation".to_owned());
            let handle = builder.spawn_scoped(scope, move || work(jobs, &receiver, warm_up));
            handles.push(handle.map_err(|_| SimulationError::Thread)?);
            senders.push(sender);
        }
        let read = hand_out(source, plan.requests, &senders, on_progress);
        drop(senders);
        let mut outcomes = Vec::new();
        for handle in handles {
            outcomes.extend(handle.join().map_err(|_| SimulationError::Thread)?);
        }
        read.map(|()| outcomes)
    });
    let mut outcomes = outcomes?;
    outcomes.sort_by_key(|(index, _)| *index);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

fn hand_out(
    source: &mut Source,
    requests: u64,
    senders: &[SyncSender<Arc<Vec<u64>>>],
    on_progress: &dyn Fn(u64),
) -> Result<(), SimulationError> {
    let mut done = 0;
    while done < requests {
        let mut names = Vec::with_capacity(CHUNK);
        source.read(CHUNK.min((requests - done) as usize), &mut names)?;
        if names.is_empty() {
            break;
        }
        done += names.len() as u64;
        let names = Arc::new(names);
        for sender in senders {
            sender.send(names.clone()).map_err(|_| SimulationError::Thread)?;
        }
        on_progress(done);
    }
    Ok(())
}

fn work(mut jobs: Vec<Job>, chunks: &Receiver<Arc<Vec<u64>>>, warm_up: u64) -> Vec<(usize, Outcome)> {
    let mut done = 0;
    for names in chunks {
        let warming = usize::try_from(warm_up.saturating_sub(done)).unwrap_or(usize::MAX);
        jobs.iter_mut().for_each(|job| job.request(&names, warming));
        done += names.len() as u64;
    }
    jobs.into_iter().map(Job::outcome).collect()
}

#[cfg(test)]
mod tests {
    use namehop_store::PolicyKind;

    use super::*;
    use namehop_traffic::workload::{WorkloadKind, WorkloadShape};

    fn outcomes(threads: usize) -> Vec<Outcome> {
        let shape = WorkloadShape { objects: 20_000, ..WorkloadShape::published(WorkloadKind::Web) };
        let stores = PolicyKind::ALL.iter().map(|&kind| (kind.into(), 500)).collect();
        let plan = Plan { stores, requests: 300_000, warm_up: 100_000, threads };
        run(&mut Source::Workload(Workload::new(shape)), &plan, &|_| ()).expect("outcomes")
    }

    #[test]
    fn outcomes_do_not_depend_on_threads() {
        let (one, three) = (outcomes(1), outcomes(3));
        for (one, three) in one.iter().zip(&three) {
            assert_eq!((one.policy, one.counts), (three.policy, three.counts));
            assert_eq!(one.counts.requests, 200_000);
        }
        let rate = |kind: PolicyKind| {
            one.iter().find(|outcome| outcome.policy == kind.into()).map_or(0.0, |o| o.counts.hit_rate())
        };
        for kind in [PolicyKind::Filter, PolicyKind::TinyLfu, PolicyKind::Lfu, PolicyKind::Arc, PolicyKind::Sieve] {
            assert!(rate(kind) > rate(PolicyKind::Fifo) + 0.02, "{kind}: {}", rate(kind));
        }
    }

    #[test]
    fn a_source_may_end_before_the_warm_up_does() {
        let plan = Plan {
            stores: vec![(PolicyKind::Lru.into(), 2), (PolicyKind::Lru.into(), 0)],
            requests: 10,
            warm_up: 4,
            threads: 9,
        };
        let outcomes = run(&mut Source::Memory(vec![1, 2, 1].into_iter()), &plan, &|_| ()).expect("outcomes");
        assert!(outcomes.iter().all(|outcome| outcome.counts == Counts::default()));
        let outcomes = run(&mut Source::Memory(vec![1, 2, 3, 3, 3, 1].into_iter()), &plan, &|_| ()).expect("outcomes");
        let expected = Counts { requests: 2, hits: 1, insertions: 1, evictions: 1 };
        assert_eq!(outcomes[0].counts, expected);
        assert_eq!(outcomes[0].since_start, Counts { requests: 6, hits: 2, insertions: 4, evictions: 2 });
        assert_eq!(outcomes[1].counts, Counts { requests: 2, ..Counts::default() });
    }
}
