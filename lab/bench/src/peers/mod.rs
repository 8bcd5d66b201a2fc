//! Compares forwarders that speak the NFD management protocol under the same load over sockets: cost of an exchange to
//! each.
//!
//! ```text
//!   consumer ── Unix, TCP or UDP socket ── forwarder ── socket of the same kind ── producer
//! ```
//!
//! Forwarders are processes, started by a command or found at a socket. In each case (kind of socket, Interests in
//! flight, size of Data, state of the cache, routes) the forwarders take turns, several times, because a host's speed
//! varies over time. The load is that of [`namehop_traffic::loadgen`], on separate CPUs. The forwarder's CPU time is
//! read from the operating system, not from the forwarder.

mod cases;
mod figures;
mod forwarder;
mod management;
mod processors;
mod spec;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

pub use cases::{Axes, CacheCase, Case, SocketKind};
pub use figures::{CaseFigures, Limit, PeerFigures, PeersFigures};
use figures::{Turn, of_case};
use forwarder::Forwarder;
pub use processors::Processors;
pub use spec::{ForwarderSpec, SpecError};

use crate::fault::ForwarderFault;
use crate::progress::{OnProgress, Progress};

/// Parameters of the measurement.
#[derive(Debug, Clone)]
pub struct PeersParameters {
    /// Forwarders that take turns. The first one is the baseline.
    pub forwarders: Vec<ForwarderSpec>,
    /// Parameters of the cases.
    pub axes: Axes,
    /// Capacity of the caches, in packets.
    pub cache_packets: u64,
    /// Time before each turn that is not measured.
    pub warm_up: Duration,
    /// Length of a turn.
    pub turn: Duration,
    /// Number of turns of each forwarder in each case.
    pub turns: usize,
    /// The program of the forwarder `namehop`.
    pub program: PathBuf,
    /// CPUs of the forwarders; `None` for all except the CPUs of the load.
    pub processors: Option<Vec<usize>>,
}

/// Why the measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// There is only one CPU, or no CPU is left for the load.
    #[error("{0}")]
    Processors(String),
    /// A forwarder did not start, or does not meet the requirements.
    #[error("{name} {fault}{}", said(.log))]
    Forwarder {
        /// Name of the forwarder.
        name: String,
        /// What is wrong with it.
        fault: Box<ForwarderFault>,
        /// Last lines of its log; empty if there is none.
        log: String,
    },
    /// Two forwarders have the same name.
    #[error("two forwarders have the name {0}: give them names, as in --forwarder 'old={0} …'")]
    SameName(String),
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn said(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("; its log ends with:\n{log}") }
}

/// Measures all cases. Setting `stop` ends the measurement early with the results so far. A failure in a case is part
/// of its figures.
///
/// # Errors
/// Fails for errors before the first case; see [`PeersError`].
pub fn measure(
    parameters: &PeersParameters,
    stop: &Arc<AtomicBool>,
    on_progress: &OnProgress<'_>,
) -> Result<PeersFigures, PeersError> {
    let names: Vec<&str> = parameters.forwarders.iter().map(|spec| spec.name.as_str()).collect();
    if let Some(twice) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
        return Err(PeersError::SameName((*twice.1).to_owned()));
    }
    let processors = Processors::choose(parameters.processors.as_deref())?;
    let measure = || {
        // Threads started by this one inherit its CPUs.
        processors::stay_on(&processors.generator)?;
        measure_here(parameters, &processors, stop, on_progress)
    };
    thread::scope(|scope| scope.spawn(measure).join())
        .unwrap_or_else(|_| Err(io::Error::other("the measuring thread panicked").into()))
}

fn measure_here(
    parameters: &PeersParameters,
    processors: &Processors,
    stop: &Arc<AtomicBool>,
    on_progress: &OnProgress<'_>,
) -> Result<PeersFigures, PeersError> {
    let mut forwarders = Vec::new();
    for spec in &parameters.forwarders {
        on_progress(Progress::of(format!("starting {}", spec.name)));
        let forwarder = Forwarder::start(spec, &parameters.program, &processors.forwarders)?;
        forwarder.check_listeners(&parameters.axes.sockets)?;
        forwarders.push(forwarder);
    }
    let cases = parameters.axes.cases();
    let total = (cases.len() * parameters.turns * forwarders.len()) as u64;
    let mut done = 0;
    let mut all = Vec::new();
    for case in &cases {
        let mut of_forwarders: Vec<Result<Vec<Turn>, ForwarderFault>> = Vec::new();
        for forwarder in &mut forwarders {
            let show = |what: String| on_progress(Progress { what, done, total });
            let prepared = forwarder.prepare(case, parameters.cache_packets, stop, &show);
            of_forwarders.push(prepared.map(|()| Vec::new()));
        }
        for _ in 0..parameters.turns {
            for (forwarder, turns) in forwarders.iter_mut().zip(&mut of_forwarders) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                on_progress(Progress { what: format!("{}: {case}", forwarder.name()), done, total });
                done += 1;
                let Ok(so_far) = turns else { continue };
                match forwarder.turn(case, parameters, stop) {
                    // An interrupted turn is ignored.
                    Ok(_) if stop.load(Ordering::Relaxed) => {}
                    Ok(turn) => so_far.push(turn),
                    Err(fault) => *turns = Err(fault),
                }
            }
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let named = parameters.forwarders.iter().map(|spec| spec.name.clone()).zip(of_forwarders);
        all.push(of_case(*case, named.collect(), processors));
    }
    let failed =
        |name: &str| all.iter().flat_map(|case| &case.forwarders).any(|one| one.name == name && one.failure.is_some());
    let logs = forwarders.iter().filter(|forwarder| failed(forwarder.name()));
    let logs = logs.map(|forwarder| (forwarder.name().to_owned(), forwarder.log())).collect();
    Ok(PeersFigures { processors: processors.clone(), cases: all, logs })
}
