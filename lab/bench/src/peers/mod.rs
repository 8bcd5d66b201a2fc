//! The same load for several forwarders that speak the NFD management protocol: what an exchange costs each of them over sockets.
//!
//! ```text
//!   consumer ── Unix, TCP or UDP socket ── forwarder ── socket of the same kind ── producer
//! ```
//!
//! Forwarders are processes: started here by a command, or found at a socket. Each case (kind of socket, Interests in flight, size of Data,
//! what the cache does, routes) is measured with each of them in turns, several times, because machines are faster at one time than at
//! another. The load is that of [`namehop_traffic::loadgen`], on processors of its own; the forwarder's CPU time is read from the system, so
//! it does not matter what a forwarder says of itself.

mod cases;
mod figures;
mod forwarder;
mod management;
mod processors;
mod spec;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use namehop_traffic::loadgen::LoadError;

pub use cases::{Axes, CacheCase, Case, SocketKind};
pub use figures::{CaseFigures, Limit, PeerFigures, PeersFigures};
use figures::{Turn, of_case};
use forwarder::Forwarder;
pub use processors::Processors;
pub use spec::{ForwarderSpec, SpecError};

use crate::progress::{OnProgress, Progress};

/// What to measure.
#[derive(Debug, Clone)]
pub struct PeersParameters {
    /// Forwarders that take turns. The first one is what the others are compared with.
    pub forwarders: Vec<ForwarderSpec>,
    /// Cases.
    pub axes: Axes,
    /// Data that caches hold at most.
    pub cache_packets: u64,
    /// Time before each turn is measured.
    pub warm_up: Duration,
    /// Length of a turn.
    pub turn: Duration,
    /// Turns of each forwarder in each case.
    pub turns: usize,
    /// Processors of the forwarders; `None` = all but those of the load.
    pub processors: Option<Vec<usize>>,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// There is one processor only, or none is left for the load.
    #[error("{0}")]
    Processors(String),
    /// A forwarder did not start, or is not what it should be.
    #[error("{name} {what}{}", said(.log))]
    Forwarder {
        /// What it is called.
        name: String,
        /// What is wrong.
        what: String,
        /// The end of its log; empty when it has none.
        log: String,
    },
    /// Two forwarders have one name.
    #[error("two forwarders are called {0}: give them names, as in --forwarder 'old={0} …'")]
    SameName(String),
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn said(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("; it said:\n{log}") }
}

/// Measures all cases. `stop` ends it early, with what was measured until then. What fails in one case is in its figures.
///
/// # Errors
/// See [`PeersError`]: everything that goes wrong before the first case.
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
        // Threads that this one starts stay where it is.
        processors::stay_on(&processors.generator)?;
        measure_here(parameters, &processors, stop, on_progress)
    };
    thread::scope(|scope| scope.spawn(measure).join())
        .unwrap_or_else(|_| Err(io::Error::other("the thread that measures panicked").into()))
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
        let forwarder = Forwarder::start(spec, &processors.forwarders)?;
        forwarder.check_listeners(&parameters.axes.sockets)?;
        forwarders.push(forwarder);
    }
    let cases = parameters.axes.cases();
    let total = (cases.len() * parameters.turns * forwarders.len()) as u64;
    let mut done = 0;
    let mut all = Vec::new();
    for case in &cases {
        let mut of_forwarders: Vec<Result<Vec<Turn>, String>> = Vec::new();
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
                    // A turn that was cut short says too little.
                    Ok(_) if stop.load(Ordering::Relaxed) => {}
                    Ok(turn) => so_far.push(turn),
                    Err(failure) => *turns = Err(failure),
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

/// What happened, when the load could not run.
fn failure_of(error: LoadError) -> String {
    match error {
        LoadError::Connect { uri, source } => format!("is not reachable at {uri}: {source}"),
        LoadError::Register { prefix, source } => format!("did not take the prefix {prefix}: {source}"),
        LoadError::CreateFace(source) => format!("did not make the face of the producer: {source}"),
        error => error.to_string(),
    }
}
