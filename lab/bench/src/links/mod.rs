//! What an exchange costs a router from frame to frame: a process of its own that forwards between two ports, on one side a
//! consumer and on the other a producer.
//!
//! ```text
//!   consumer ── link ── port  router or sink  port ── link ── producer
//! ```
//!
//! The same links are measured with a sink in the router's place: a loop that moves frames from one port to the other and knows
//! nothing of NDN. What it costs is the cost of driver and kernel, and the rest of the router's cost is NDN's.
//!
//! Router and sink run on one processor, consumer and producer together on another ([`generator`]). Runs take turns: sink, router
//! with each strategy, sink again, because machines are faster at one time than at another.

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

use namehop_daemon::worker::usable_processors;
use namehop_packet::BufferPool;
use namehop_store::PolicyChoice;
use namehop_traffic::loadgen::{Load, LoadError};
use serde::Serialize;

use crate::progress::{OnProgress, Progress};
pub use figures::{LinkFigures, LinksFigures};
use figures::{Turn, of_turns};
use generator::Generator;
use place::{Place, RouterSettings};
pub use port::LinkKind;
use router::RouterProcess;
use sink::Sink;

/// Packets in memory, of each size.
const BUFFERS: (usize, usize) = (16_384, 4_096);
/// How long it may take until the first Data comes.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// Exchanges before it counts as started.
const FIRST_EXCHANGES: u64 = 1_000;
/// Time before each turn, in which what ran before comes to an end.
const SETTLING: Duration = Duration::from_millis(300);
const TICK: Duration = Duration::from_millis(10);
/// A turn lasts longer than a router keeps what it said of its workers.
pub const SHORTEST_TURN: Duration = Duration::from_millis(1_200);

/// What to measure.
#[derive(Debug, Clone)]
pub struct LinksParameters {
    /// Links, one after the other.
    pub links: Vec<LinkKind>,
    /// What is exchanged over them.
    pub load: Load,
    /// Strategies of the router that take turns: names, or paths of object files.
    pub strategies: Vec<String>,
    /// Policy of the router's Content Store.
    pub cs_policy: PolicyChoice,
    /// Time before the first turn of each router, in which its cache fills and it takes the memory that it needs.
    pub warm_up: Duration,
    /// Length of a turn.
    pub turn: Duration,
    /// Turns of each.
    pub turns: usize,
    /// The program that is run as the router: this one.
    pub program: PathBuf,
}

/// Which processors do what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Processors {
    /// The router's worker, or the sink.
    pub forwarder: usize,
    /// Consumer and producer.
    pub generator: usize,
}

impl Processors {
    /// The last one for what is measured, as routers choose, and the one before it for the load.
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
    /// There is one processor only.
    #[error("the router and its load need two processors, and this process may use one")]
    TooFewProcessors,
    /// Network interfaces of its own could not be made.
    #[error(
        "links of kind dev and xdp need network interfaces of their own: {0}; run this as root, or with --link memif"
    )]
    Interfaces(String),
    /// A port did not open, or the load is impossible.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The router did not start, or ended.
    #[error("the router {what}; it said:\n{log}")]
    Router {
        /// What happened.
        what: String,
        /// The end of its log.
        log: String,
    },
    /// Nothing came back.
    #[error("no Data came back over {link} within 15 s{}", if .log.is_empty() { String::new() } else { format!("; the router said:\n{}", .log) })]
    Nothing {
        /// Over which link.
        link: LinkKind,
        /// The end of the router's log.
        log: String,
    },
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Measures all links. `stop` ends it early, with what was measured until then.
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
    // A thread of its own, because it moves to a network namespace of its own.
    thread::scope(|scope| scope.spawn(measure).join())
        .unwrap_or_else(|_| Err(io::Error::other("the thread that measures panicked").into()))
}

/// All turns over one kind of link.
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

/// What moves frames, at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct ForwarderStatus {
    /// How long it had something to do.
    busy: Duration,
    /// How long it has run.
    running: Duration,
    /// Processor time of all its threads: in user space, and in the kernel. Only of a process of its own.
    processor_time: Option<(Duration, Duration)>,
}

/// Measures for a while.
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
    // After an early end the router still says what it said before.
    thread::sleep(SHORTEST_TURN.saturating_sub(elapsed));
    Ok(Turn { before, after: status()?, load, elapsed })
}
