//! Cost of an exchange to a router, from frame to frame. The router is a separate process that forwards between two
//! ports, with a consumer on one side and a producer on the other.
//!
//! ```text
//!   consumer ── link ── port  router or sink  port ── link ── producer
//! ```
//!
//! The same links are measured with a sink in place of the router: a loop that moves frames from one port to the other
//! and knows nothing of NDN. Its cost is that of driver and kernel; the rest of the router's cost is NDN's.
//!
//! Router and sink run on one CPU, consumer and producer together on another ([`generator`]). They take turns, sink
//! first, then the router with each strategy, because a host's speed varies over time.

mod figures;
mod generator;
pub mod idle;
mod place;
mod port;
mod router;
mod sink;
pub mod sweep;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use namehop_packet::BufferPool;
use namehop_store::PolicyChoice;
use namehop_traffic::loadgen::{Load, LoadError};
use namehop_worker::usable_processors;
use serde::Serialize;

use crate::fault::ForwarderFault;
use crate::progress::{OnProgress, Progress};
pub use figures::{LinkFigures, LinksFigures};
use figures::{Turn, of_turns};
use generator::Generator;
use place::{Place, RouterSettings};
pub use port::LinkKind;
use router::RouterProcess;
use sink::Sink;

/// Number of small and of large packet buffers.
const BUFFERS: (usize, usize) = (16_384, 4_096);
/// Time limit for the first Data to arrive.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// Number of exchanges after which the load counts as started.
const FIRST_EXCHANGES: u64 = 1_000;
/// Time before each turn for the previous one to end.
const SETTLING: Duration = Duration::from_millis(300);
const TICK: Duration = Duration::from_millis(10);
/// Minimum length of a turn: longer than a router caches its workers' status.
pub const SHORTEST_TURN: Duration = Duration::from_millis(1_200);

/// Parameters of the measurement.
#[derive(Debug, Clone)]
pub struct LinksParameters {
    /// Kinds of links, measured one after the other.
    pub links: Vec<LinkKind>,
    /// Load on the links.
    pub load: Load,
    /// Strategies of the router that take turns: names, or paths of object files.
    pub strategies: Vec<String>,
    /// Policy of the router's Content Store.
    pub cs_policy: PolicyChoice,
    /// Time before the first turn of each router, in which its cache fills and it allocates memory.
    pub warm_up: Duration,
    /// Length of a turn.
    pub turn: Duration,
    /// Number of turns of the sink and of each strategy.
    pub turns: usize,
    /// Path of the program run as the router, this program.
    pub program: PathBuf,
}

/// CPUs used by the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Processors {
    /// CPU of the router's worker, or of the sink.
    pub forwarder: usize,
    /// CPU of consumer and producer.
    pub generator: usize,
}

impl Processors {
    /// Chooses the last CPU for the router, as routers do, and the one before it for the load.
    fn choose() -> Result<Processors, LinksError> {
        match usable_processors()?.as_slice() {
            [.., generator, forwarder] => Ok(Processors { forwarder: *forwarder, generator: *generator }),
            _ => Err(LinksError::TooFewProcessors),
        }
    }
}

/// Why links could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// The process may use only one CPU.
    #[error("the router and its load need two CPUs, but this process may use only one")]
    TooFewProcessors,
    /// Network interfaces could not be created.
    #[error("cannot create network interfaces for links of kind dev and xdp: {0}; run as root, or use --link memif")]
    Interfaces(String),
    /// A port did not open, or the load is invalid.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The router did not start, or has ended.
    #[error("the router {fault}; its log ends with:\n{log}")]
    Router {
        /// What is wrong with it.
        fault: ForwarderFault,
        /// Last lines of its log.
        log: String,
    },
    /// No Data returned.
    #[error(
        "no Data arrived over {link} within 15 s{}",
        if .log.is_empty() { String::new() } else { format!("; the router's log ends with:\n{}", .log) }
    )]
    Nothing {
        /// Kind of the link.
        link: LinkKind,
        /// Last lines of the router's log; empty for the sink.
        log: String,
    },
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Measures all links. Setting `stop` ends the measurement early with the results so far.
///
/// # Errors
/// See [`LinksError`].
pub fn measure(
    parameters: &LinksParameters,
    stop: &AtomicBool,
    on_progress: &OnProgress<'_>,
) -> Result<LinksFigures, LinksError> {
    let processors = Processors::choose()?;
    let measure = || {
        let mut links = Vec::new();
        for &link in &parameters.links {
            if !stop.load(Ordering::Relaxed) {
                links.extend(measure_link(parameters, link, processors, stop, on_progress)?);
            }
        }
        Ok(LinksFigures { processors, cs_policy: parameters.cs_policy.to_string(), links })
    };
    // Runs in its own thread, because the thread moves to its own network namespace.
    thread::scope(|scope| scope.spawn(measure).join())
        .unwrap_or_else(|_| Err(io::Error::other("the measuring thread panicked").into()))
}

/// Measures all turns over one kind of link.
fn measure_link(
    parameters: &LinksParameters,
    link: LinkKind,
    processors: Processors,
    stop: &AtomicBool,
    on_progress: &OnProgress<'_>,
) -> Result<Vec<LinkFigures>, LinksError> {
    let place = Place::new(link, parameters.load.payload_bytes)?;
    let pool = BufferPool::new(BUFFERS.0, BUFFERS.1);
    let load = &parameters.load;
    let generator = Generator::start(&place, &pool, &load.consumer(), &load.producer(), processors.generator)?;
    let mut of_sink = Vec::new();
    let mut of_strategies: Vec<Vec<Turn>> = vec![Vec::new(); parameters.strategies.len()];
    let total = (parameters.turns * (1 + parameters.strategies.len())) as u64;
    let mut done = 0;
    let mut show = |what: &str| {
        on_progress(Progress { what: format!("{link}: {what}"), done, total });
        done += 1;
    };
    'turns: for _ in 0..parameters.turns {
        show("frames through a sink");
        let sink = Sink::start(&place, &pool, processors.forwarder)?;
        generator
            .wait_for_data(FIRST_EXCHANGES, START_TIMEOUT, || sink.check())
            .map_err(|error| nothing(error, link, ""))?;
        of_sink.push(turn(&generator, parameters.turn, stop, || Ok(sink.status()))?);
        drop(sink);
        let sections = format!("[content_store]\npolicy = \"{}\"\n", parameters.cs_policy);
        let settings = RouterSettings { sections, ..RouterSettings::one_worker(processors.forwarder) };
        let mut router = RouterProcess::start(&parameters.program, &place, &parameters.strategies, &settings)?;
        let mut warm_up = parameters.warm_up;
        for (strategy, turns) in parameters.strategies.iter().zip(&mut of_strategies) {
            if stop.load(Ordering::Relaxed) {
                break 'turns;
            }
            show(&format!("a router with strategy {strategy}"));
            router.choose(strategy)?;
            let ready = generator.wait_for_data(FIRST_EXCHANGES, START_TIMEOUT, || router.check());
            ready.map_err(|error| nothing(error, link, &router.log()))?;
            generator.wait(std::mem::take(&mut warm_up), stop);
            turns.push(turn(&generator, parameters.turn, stop, || router.status())?);
        }
    }
    let sink = of_turns(link, None, of_sink);
    let routers = parameters.strategies.iter().zip(of_strategies);
    Ok([sink].into_iter().chain(routers.map(|(strategy, turns)| of_turns(link, Some(strategy), turns))).collect())
}

fn nothing(error: LinksError, link: LinkKind, log: &str) -> LinksError {
    match error {
        LinksError::Nothing { .. } => LinksError::Nothing { link, log: log.to_owned() },
        error => error,
    }
}

/// Counters of the router or sink at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct ForwarderStatus {
    /// Busy time so far.
    busy: Duration,
    /// Running time so far.
    running: Duration,
    /// CPU time of all its threads, in user space and in the kernel; `None` for the sink, which is not a process.
    processor_time: Option<(Duration, Duration)>,
}

/// Measures one turn.
fn turn(
    generator: &Generator,
    length: Duration,
    stop: &AtomicBool,
    mut status: impl FnMut() -> Result<ForwarderStatus, LinksError>,
) -> Result<Turn, LinksError> {
    generator.wait(SETTLING, stop);
    let before = status()?;
    generator.begin();
    let began = Instant::now();
    generator.wait(length, stop);
    let (load, elapsed) = (generator.end()?, began.elapsed());
    // After an early end the router would still report its cached status.
    thread::sleep(SHORTEST_TURN.saturating_sub(elapsed));
    Ok(Turn { before, after: status()?, load, elapsed })
}
