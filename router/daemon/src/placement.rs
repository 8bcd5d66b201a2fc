//! The number of workers, their CPUs, and how long they poll while there is nothing to do.

use std::time::Duration;

use namehop_config::{Auto, Config, Forwarding};
use namehop_worker::{Idling, usable_processors};

/// Most workers with `workers = "auto"`: the memory for tables is divided among them.
const MAX_AUTO_WORKERS: usize = 8;

/// Returns the number of workers. With `"auto"` and without ports it is one, which suffices for the traffic of sockets
/// and costs least.
pub fn worker_count(config: &Config) -> usize {
    match config.forwarding.workers {
        Auto::Value(count) => count,
        Auto::Auto if config.has_ports() => {
            let usable = usable_processors().map_or(1, |cpus| cpus.len());
            (usable.saturating_sub(1)).clamp(1, MAX_AUTO_WORKERS)
        }
        Auto::Auto => 1,
    }
}

/// Returns the CPU of each worker: first the configured ones, then the last usable ones. CPUs are shared only if there
/// are too few. `None` leaves the choice to the worker.
pub fn worker_cpus(config: &Config, workers: usize) -> Vec<Option<usize>> {
    let listed = &config.forwarding.processors;
    if listed.is_empty() && workers == 1 {
        return vec![config.ports.worker_processor.value()];
    }
    // The first CPUs serve interrupts and everything else.
    let usable = usable_processors().unwrap_or_default();
    let mut others: Vec<usize> = usable.into_iter().rev().filter(|number| !listed.contains(number)).collect();
    if others.is_empty() {
        others.clone_from(listed);
    }
    listed.iter().copied().chain(others.into_iter().cycle()).map(Some).take(workers).collect()
}

/// Returns how workers with their own threads behave while there is nothing to do.
pub fn idling(forwarding: &Forwarding) -> Idling {
    Idling {
        always_polls: forwarding.always_poll,
        poll_for: Duration::from_micros(forwarding.poll_us),
        longest_pause: Duration::from_micros(forwarding.longest_pause_us),
    }
}
