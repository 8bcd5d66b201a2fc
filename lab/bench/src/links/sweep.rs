//! Sweeps over links: a router with new settings for each case, between the same consumer and producer.
//!
//! Every run measures all cases of a sweep, one after the other, each with a new router. So changes of the host's speed
//! affect all cases alike.

use std::error::Error;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use namehop_client::nfd::LatencyStatus;
use namehop_packet::BufferPool;
use namehop_store::PolicyChoice;
use namehop_traffic::loadgen::{
    ConsumerPlan, DataShape, Names, Pacing, Pattern, Reply, ReplyKind, ReplyPattern, numbered_name,
};
use namehop_traffic::segmented::WindowKind;
use namehop_wire::Name;
use namehop_worker::usable_processors;

use super::figures::Turn;
use super::generator::Generator;
use super::place::{Place, RouterSettings, Side};
use super::router::RouterProcess;
use super::{BUFFERS, FIRST_EXCHANGES, LinkKind, LinksError, Processors, START_TIMEOUT, nothing, turn};
use crate::fault::ForwarderFault;
use crate::median::median;
use crate::progress::{OnProgress, Progress};
use crate::sweep::{CaseFigures, NameMatch, Setting, Sweep, SweepFigures, SweepMeasurements};

/// Sampling of latency: one in this many packets.
const LATENCY_SAMPLE: NonZeroU32 = NonZeroU32::new(64).expect("not 0");
/// Number of first name components when there are several workers, so that the name dispatch table can spread names.
const FLOWS: usize = 16;
/// Time limit for loading a FIB or filling a Content Store.
const FILLING_TIMEOUT: Duration = Duration::from_secs(60);
/// The Content Store counts as filled when it answers this share of the Interests that it could answer.
const FILLED: f64 = 0.95;
/// Maximum overhead of a cached Data besides its payload, in bytes.
const AROUND_CACHED_BYTES: usize = 1024;
/// The router's default for the memory of its Content Store.
const LEAST_CACHE_BYTES: usize = 512 << 20;
const LIFETIME: Duration = Duration::from_secs(1);
/// Sum of the weights of Interest patterns.
const WEIGHTS: f64 = 1000.0;
const TICK: Duration = Duration::from_millis(200);

/// Parameters of the measurement of sweeps.
#[derive(Debug, Clone)]
pub struct SweepParameters {
    /// Kind of the links on both sides of the router.
    pub link: LinkKind,
    /// Number of Interests in flight.
    pub in_flight: usize,
    /// Time before each turn, in which the cache fills and the router allocates memory.
    pub warm_up: Duration,
    /// Length of a turn.
    pub turn: Duration,
    /// Policy of the router's Content Store; [that of the sweep](Sweep::cs_policy) if `None`.
    pub cs_policy: Option<PolicyChoice>,
    /// Path of the program run as the router, this program.
    pub program: PathBuf,
}

impl SweepParameters {
    /// Default parameters, as in the options of `namehop bench links`.
    pub fn usual(program: PathBuf) -> SweepParameters {
        SweepParameters {
            link: LinkKind::Memif,
            in_flight: 512,
            warm_up: Duration::from_secs(3),
            turn: Duration::from_secs(2),
            cs_policy: None,
            program,
        }
    }
}

/// Measures sweeps over links.
pub struct LinkSweeps<'a> {
    /// Parameters of all sweeps.
    pub parameters: SweepParameters,
    /// Set to end a measurement early with the results so far.
    pub stop: &'a AtomicBool,
}

impl SweepMeasurements for LinkSweeps<'_> {
    fn measure(
        &mut self,
        sweep: Sweep,
        runs: usize,
        on_progress: &OnProgress<'_>,
    ) -> Result<SweepFigures, Box<dyn Error + Send + Sync>> {
        Ok(measure(&self.parameters, sweep, runs, self.stop, on_progress)?)
    }
}

/// Measures a sweep. Setting `stop` ends the measurement early with the results so far.
///
/// # Errors
/// See [`LinksError`].
pub fn measure(
    parameters: &SweepParameters,
    sweep: Sweep,
    runs: usize,
    stop: &AtomicBool,
    on_progress: &OnProgress<'_>,
) -> Result<SweepFigures, LinksError> {
    let processors = Processors::choose()?;
    let usable = usable_processors()?;
    let settings = sweep.settings(usable.len());
    let cs_policy = parameters.cs_policy.unwrap_or_else(|| sweep.cs_policy());
    let total = (runs * settings.len()) as u64;
    let measure = || {
        let mut measured: Vec<Vec<CaseTurn>> = settings.iter().map(|_| Vec::new()).collect();
        let pool = BufferPool::new(BUFFERS.0, BUFFERS.1);
        let mut done = 0;
        for _ in 0..runs {
            for (setting, turns) in settings.iter().zip(&mut measured) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                on_progress(Progress { what: format!("{sweep}: {}", describe(setting)), done, total });
                done += 1;
                let placed = Placed {
                    generator: processors.generator,
                    workers: worker_processors(&usable, processors, setting),
                };
                let turn = measure_case(parameters, cs_policy, setting, &placed, &pool, stop)?;
                // Interrupted turns are ignored.
                if !stop.load(Ordering::Relaxed) {
                    turns.push(turn);
                }
            }
        }
        let cases = settings.iter().zip(measured).filter(|(_, turns)| !turns.is_empty());
        let shares = |setting| worker_processors(&usable, processors, setting).contains(&processors.generator);
        Ok(SweepFigures {
            sweep,
            cs_policy: cs_policy.to_string(),
            cases: cases.map(|(setting, turns)| of_turns(setting, shares(setting), &turns)).collect(),
        })
    };
    // Runs in its own thread, because the thread moves to its own network namespace.
    thread::scope(|scope| scope.spawn(measure).join())
        .unwrap_or_else(|_| Err(io::Error::other("the measuring thread panicked").into()))
}

/// CPUs of the generator and of the workers.
struct Placed {
    generator: usize,
    workers: Vec<usize>,
}

/// Chooses the last CPUs for the workers, that of the generator last of all.
fn worker_processors(usable: &[usize], processors: Processors, setting: &Setting) -> Vec<usize> {
    let free = usable.iter().rev().copied().filter(|&processor| processor != processors.generator);
    free.chain([processors.generator]).take(setting.workers).collect()
}

struct CaseTurn {
    turn: Turn,
    /// Number of Interests that the Content Store answered, and of all looked up.
    hits: (u64, u64),
    latency: LatencyStatus,
}

fn measure_case(
    parameters: &SweepParameters,
    cs_policy: PolicyChoice,
    setting: &Setting,
    placed: &Placed,
    pool: &BufferPool,
    stop: &AtomicBool,
) -> Result<CaseTurn, LinksError> {
    let SweepParameters { link, in_flight, warm_up, turn: length, program, cs_policy: _ } = parameters;
    let place = Place::new(*link, setting.payload_bytes)?;
    let settings = router_settings(setting, cs_policy, &place, placed.workers.clone())?;
    let plan = consumer(setting, *in_flight);
    let generator = Generator::start(&place, pool, &plan, &producer(setting), placed.generator)?;
    let mut router = RouterProcess::start(program, &place, &[], &settings)?;
    wait_for("its FIB is not loaded", stop, || Ok(router.fib_entries()? >= setting.fib_entries), &router)?;
    let ready = generator.wait_for_data(FIRST_EXCHANGES, START_TIMEOUT, || router.check());
    ready.map_err(|error| nothing(error, *link, &router.log()))?;
    generator.wait(*warm_up, stop);
    let mut before = router.cache_hits_and_misses()?;
    wait_for(
        "its Content Store does not reach the hit ratio",
        stop,
        || {
            let now = router.cache_hits_and_misses()?;
            let (hits, all) = since(std::mem::replace(&mut before, now), now);
            Ok(hits as f64 >= FILLED * setting.cached_share * all as f64)
        },
        &router,
    )?;
    router.sample_latency(LATENCY_SAMPLE)?;
    let before = router.cache_hits_and_misses()?;
    let turn = turn(&generator, *length, stop, || router.status())?;
    let hits = since(before, router.cache_hits_and_misses()?);
    Ok(CaseTurn { turn, hits, latency: router.latency()? })
}

/// Number of Interests that the Content Store answered since the first reading, and of all looked up since then.
fn since((hits, misses): (u64, u64), (hits_now, misses_now): (u64, u64)) -> (u64, u64) {
    let new_hits = hits_now.saturating_sub(hits);
    (new_hits, new_hits + misses_now.saturating_sub(misses))
}

/// Polls `is_so` until it is true.
fn wait_for(
    otherwise: &str,
    stop: &AtomicBool,
    mut is_so: impl FnMut() -> Result<bool, LinksError>,
    router: &RouterProcess,
) -> Result<(), LinksError> {
    let limit = Instant::now() + FILLING_TIMEOUT;
    while !stop.load(Ordering::Relaxed) && !is_so()? {
        if Instant::now() > limit {
            let seconds = FILLING_TIMEOUT.as_secs();
            return Err(LinksError::Router {
                fault: ForwarderFault::TooSlow { seconds, otherwise: otherwise.to_owned() },
                log: router.log(),
            });
        }
        thread::sleep(TICK);
    }
    Ok(())
}

fn of_turns(setting: &Setting, shares_processor: bool, turns: &[CaseTurn]) -> CaseFigures {
    let hits = turns.iter().fold((0, 0), |sum, turn| (sum.0 + turn.hits.0, sum.1 + turn.hits.1));
    let mut latency = turns[0].latency.clone();
    for turn in &turns[1..] {
        latency.add(&turn.latency);
    }
    CaseFigures {
        setting: *setting,
        shares_processor,
        data_per_s: turns.iter().map(|of| of.turn.exchanges_per_s()).collect(),
        busy_ns: turns.iter().map(|of| of.turn.busy_ns()).collect(),
        hit_share: (hits.1 > 0).then(|| hits.0 as f64 / hits.1 as f64),
        lost: turns.iter().map(|of| of.turn.load.counts.timeouts).sum(),
        generator_busy_share: median(&mut turns.iter().map(|of| of.turn.generator_busy_share()).collect::<Vec<f64>>()),
        latency,
    }
}

/// Describes the special settings of a case in a few words.
fn describe(setting: &Setting) -> String {
    let Setting { workers, components, payload_bytes, fib_entries, cs_packets_per_worker, cached_share, matches } =
        setting;
    let mut text = format!("{workers} workers, {components} components, {payload_bytes} bytes");
    if *fib_entries > 0 {
        let _ = write!(text, ", {fib_entries} prefixes");
    }
    if *cached_share > 0.0 {
        let how = if *matches == NameMatch::Exact { "exact" } else { "prefix" };
        let _ = write!(text, ", {:.0} % cached, {how}, of {cs_packets_per_worker}", 100.0 * cached_share);
    }
    text
}

/// Returns the name prefix of one flow. With the number appended, a name has as many components as the setting says.
fn prefix(setting: &Setting, flow: usize, kind: &str) -> Name {
    let name = Name::new().append_generic("bench").append_generic(flow.to_string()).append_generic(kind);
    (name.components().count() + 1..setting.components).fold(name, |name, _| name.append_generic("Y"))
}

fn consumer(setting: &Setting, in_flight: usize) -> ConsumerPlan {
    let can_be_prefix = setting.matches == NameMatch::Prefix;
    let cached = (WEIGHTS * setting.cached_share) as u32;
    let flows = if setting.workers > 1 { FLOWS } else { 1 };
    // Half of the capacity, so that new Data does not need that room.
    let cached_names = (setting.cs_packets_per_worker / 2) as u64;
    let (new_names, must_be_fresh) = match setting.fib_entries {
        0 => (Names::New, false),
        // These names repeat and would be cached, so Interests have MustBeFresh, and Data is never fresh.
        names => (Names::Zipf { names, alpha: 0.0 }, true),
    };
    let mut patterns = Vec::new();
    for flow in 0..flows {
        let mut add = |weight, kind, names, must_be_fresh| {
            if weight > 0 {
                let pattern = Pattern::new(prefix(setting, flow, kind), LIFETIME);
                patterns.push(Pattern { weight, names, can_be_prefix, must_be_fresh, ..pattern });
            }
        };
        add(WEIGHTS as u32 - cached, "new", new_names.clone(), must_be_fresh);
        add(cached, "cached", Names::Cycle(cached_names), false);
    }
    let pacing = Pacing::Window { size: in_flight, law: WindowKind::Fixed, max: in_flight };
    // Every router is new, so it has none of the names.
    ConsumerPlan { patterns, pacing, count: None, seed: 0 }
}

fn producer(setting: &Setting) -> ReplyPattern {
    let suffix = match setting.matches {
        NameMatch::Exact => Name::new(),
        NameMatch::Prefix => Name::new().append_generic("Z"),
    };
    let shape = DataShape { suffix, freshness_ms: 0, payload_bytes: setting.payload_bytes };
    let reply = Reply { weight: 1, kind: ReplyKind::Data(shape), delay: Duration::ZERO };
    ReplyPattern { prefix: Name::new().append_generic("bench"), replies: vec![reply] }
}

fn router_settings(
    setting: &Setting,
    cs_policy: PolicyChoice,
    place: &Place,
    processors: Vec<usize>,
) -> io::Result<RouterSettings> {
    let packets = setting.cs_packets_per_worker * setting.workers;
    let bytes = (packets * (setting.payload_bytes + AROUND_CACHED_BYTES)).max(LEAST_CACHE_BYTES);
    let mut sections =
        format!("[content_store]\ncapacity_packets = {packets}\ncapacity_bytes = {bytes}\npolicy = \"{cs_policy}\"\n");
    if setting.fib_entries > 0 {
        let file = place.folder().join("fib.txt");
        write_fib(&file, setting, &place.face_uri(Side::Producer))?;
        let _ = write!(sections, "[fib]\nfile = \"{}\"\n", file.display());
    }
    Ok(RouterSettings { processors, forwarding: String::new(), sections })
}

/// Writes a FIB with every requested name.
fn write_fib(file: &Path, setting: &Setting, nexthop: &str) -> io::Result<()> {
    let prefix = prefix(setting, 0, "new");
    let mut output = BufWriter::new(File::create(file)?);
    for number in 0..setting.fib_entries {
        writeln!(output, "{} {nexthop}", numbered_name(&prefix, number))?;
    }
    output.flush()
}

#[cfg(test)]
mod tests {
    use namehop_config::Config;
    use namehop_store::PolicyKind;

    use super::*;
    use crate::sweep::ALL_SWEEPS;

    /// Checks all settings of all sweeps with consumer, producer and router.
    #[test]
    fn settings_are_possible() {
        let place = Place::new(LinkKind::Memif, 8000).expect("folder");
        for setting in ALL_SWEEPS.into_iter().flat_map(|sweep| sweep.settings(12)) {
            let setting = Setting { fib_entries: setting.fib_entries.min(10), ..setting };
            consumer(&setting, 512).check().unwrap_or_else(|error| panic!("{setting:?}: {error}"));
            producer(&setting).check().unwrap_or_else(|error| panic!("{setting:?}: {error}"));
            let settings = router_settings(&setting, PolicyKind::Lru.into(), &place, (0..setting.workers).collect())
                .expect("written");
            let text = place.router_configuration(&settings);
            let config =
                Config::parse(&text, Path::new("router.toml")).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(config.forwarding.processors.len(), setting.workers);
            let name = numbered_name(&prefix(&setting, 3, "new"), 7);
            assert_eq!(name.components().count(), setting.components, "{name}");
        }
    }

    #[test]
    fn workers_take_the_generators_processor_last() {
        let processors = Processors { forwarder: 5, generator: 4 };
        let of = |workers| {
            let setting = Setting { workers, ..Sweep::Workers.settings(1)[0] };
            worker_processors(&[1, 4, 5], processors, &setting)
        };
        assert_eq!([of(1), of(2), of(3)], [vec![5], vec![5, 1], vec![5, 1, 4]]);
    }

    #[test]
    fn a_fib_has_the_names_that_are_asked_for() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("fib.txt");
        let setting = Setting { fib_entries: 3, ..Sweep::Fib.settings(1)[0] };
        write_fib(&file, &setting, "memif:///a.sock?id=0").expect("written");
        let text = std::fs::read_to_string(&file).expect("read");
        assert_eq!(text.lines().count(), 3);
        let first = text.lines().next().expect("a line").split(' ').next().expect("a prefix");
        assert_eq!(first.parse::<Name>(), Ok(numbered_name(&prefix(&setting, 0, "new"), 0)), "{text}");
    }
}
