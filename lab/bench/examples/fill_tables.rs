//! Measures how fast an empty cache and an empty PIT fill, compared with full ones: the cost of touching their memory
//! for the first time.
//!
//! `cargo run --release -p namehop-bench --example fill_tables -- [ahead|slow|here] [EXCHANGES_PER_S]`
//!
//! An engine with the router's default tables and a cache policy that admits all Data (`lru`) receives Interests and
//! their Data of 8,000 bytes, in bursts. It first receives as many as an empty cache holds, and then, with the cache
//! full, as many again. After that it receives unanswered Interests, twice as many as the PIT holds, likewise in two
//! halves.
//!
//! With `ahead` (the default) another thread prepares the memory, as in the router; with `here` the engine's thread
//! touches it. `slow` is `ahead` on a system that provides memory slowly: the other thread gets a sixtieth of a busy
//! CPU. With a rate, bursts have start times, and the time of a burst includes its delay when it is late.
//!
//! The engine has the last CPU for itself, and the thread that prepares memory has the others. Before the measurement
//! as much memory as will be filled is touched and freed. On a virtual machine the host provides memory when the guest
//! first touches it, which takes much longer than clearing it, and is not to be measured.

use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};

use namehop_engine::engine::CsConfig;
use namehop_engine::fib::FibWriter;
use namehop_engine::strategy::StrategyInstance;
use namehop_engine::{Engine, EngineConfig};
use namehop_hash::HashKey;
use namehop_packet::{BufferPool, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, LinkType, Timestamp};
use namehop_store::PolicyKind;
use namehop_table::{CacheLine, CacheLines, PageRequest, Readiness, is_memory_ready, make_memory_ready_ahead};
use namehop_wire::Name;
use namehop_wire::builder::{DataBuilder, InterestBuilder};
use namehop_wire::security::DigestSigner;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

const CONSUMER: FaceId = FaceId(256);
const PRODUCER: FaceId = FaceId(257);
const CONTENT_BYTES: usize = 8_000;
const BURST: usize = 32;
/// Number of digits at the end of a name.
const DIGITS: usize = 10;

/// A packet in which only the number at the end of the name changes.
struct Template {
    bytes: Vec<u8>,
    digits_at: usize,
}

impl Template {
    fn new(bytes: Vec<u8>) -> Result<Self, Box<dyn Error>> {
        let zeros = [b'0'; DIGITS];
        let digits_at =
            bytes.windows(DIGITS).position(|window| window == zeros).ok_or("the name contains no number")?;
        Ok(Template { bytes, digits_at })
    }

    fn numbered(&mut self, number: usize) -> &[u8] {
        let text = format!("{number:0DIGITS$}");
        self.bytes[self.digits_at..][..DIGITS].copy_from_slice(text.as_bytes());
        &self.bytes
    }
}

/// Figures of a stretch of packets.
struct Figures {
    per_s: f64,
    p99: Duration,
    longest: Duration,
    page_faults: i64,
}

struct Filling {
    engine: Engine,
    pool: BufferPool,
    interest: Template,
    data: Template,
    started: Instant,
    /// Time between the starts of two bursts; 0 to send without pauses.
    pause: Duration,
}

impl Filling {
    fn burst(&mut self, from_consumer: bool, first: usize) -> Result<(), Box<dyn Error>> {
        let (face, template) = if from_consumer { (CONSUMER, &mut self.interest) } else { (PRODUCER, &mut self.data) };
        let mut burst = Vec::with_capacity(BURST);
        for number in first..first + BURST {
            let buffer = self.pool.copy_of(template.numbered(number)).ok_or("no packet buffer is free")?;
            burst.push(Incoming { face, buffer, fields: LinkFields::default() });
        }
        let mut out = Vec::with_capacity(2 * BURST);
        let now = Timestamp(u64::try_from(self.started.elapsed().as_nanos())?);
        self.engine.process(now, &mut burst, &mut out);
        if out.len() == BURST && out.iter().all(|packet| !packet.buffer.bytes().is_empty()) {
            Ok(())
        } else {
            Err(format!("only {} packets of a burst were forwarded", out.len()).into())
        }
    }

    /// Sends `count` Interests numbered from `first` on, with or without their Data.
    fn stretch(&mut self, first: usize, count: usize, is_answered: bool) -> Result<Figures, Box<dyn Error>> {
        let faults = || getrusage(UsageWho::RUSAGE_THREAD).map(|usage| usage.minor_page_faults());
        let (faults_before, started) = (faults()?, Instant::now());
        let mut times = Vec::with_capacity(count / BURST);
        let mut due = started;
        for burst in 0..count / BURST {
            while Instant::now() < due {
                std::hint::spin_loop();
            }
            let begun = if self.pause.is_zero() { Instant::now() } else { due };
            self.burst(true, first + burst * BURST)?;
            if is_answered {
                self.burst(false, first + burst * BURST)?;
            }
            times.push(begun.elapsed());
            due += self.pause;
        }
        let per_s = (times.len() * BURST) as f64 / started.elapsed().as_secs_f64();
        let page_faults = faults()? - faults_before;
        times.sort_unstable();
        let longest = times.last().copied().unwrap_or_default();
        Ok(Figures { per_s, p99: times[times.len() * 99 / 100], longest, page_faults })
    }

    /// Sends Interests and their Data until the cache stops growing, and returns the next number.
    fn until_cache_is_full(&mut self, mut next: usize) -> Result<usize, Box<dyn Error>> {
        loop {
            let (before, was_ready) = (self.engine.cs_info().entries, is_memory_ready());
            self.stretch(next, 100 * BURST, true)?;
            next += 100 * BURST;
            if was_ready && self.engine.cs_info().entries <= before {
                return Ok(next);
            }
        }
    }

    /// Fills a table with `entries` entries, sends as many again when it is full, and compares.
    fn compare(&mut self, what: &str, first: usize, entries: usize, is_answered: bool) -> Result<(), Box<dyn Error>> {
        let filling = self.stretch(first, entries, is_answered)?;
        let mut next = first + entries;
        if is_answered {
            println!("{what} of {} Data after {entries} exchanges", self.engine.cs_info().entries);
            next = self.until_cache_is_full(next)?;
            println!("{what} of {} Data after {} exchanges, full", self.engine.cs_info().entries, next - first);
        }
        let full = self.stretch(next, entries, is_answered)?;
        for (state, figures) in [("empty", &filling), ("full", &full)] {
            println!(
                "{what} {state:>5} at first: {:>9.0}/s, 99 % of bursts within {:>8.1} us, all within {:>9.1} us, \
                 {} page faults",
                figures.per_s,
                figures.p99.as_secs_f64() * 1e6,
                figures.longest.as_secs_f64() * 1e6,
                figures.page_faults
            );
        }
        println!(
            "{what} filling against full: throughput {:.2}, 99 % of times {:.2}",
            filling.per_s / full.per_s,
            filling.p99.as_secs_f64() / full.p99.as_secs_f64()
        );
        Ok(())
    }
}

/// Memory that is touched before the measurement, in bytes.
const TOUCHED_BYTES: usize = 1 << 30;

/// Returns the last usable CPU, and all others.
fn processors() -> Result<(CpuSet, CpuSet), Box<dyn Error>> {
    let this_thread = Pid::from_raw(0);
    let mut others = sched_getaffinity(this_thread)?;
    let last = (0..CpuSet::count()).rev().find(|&cpu| others.is_set(cpu) == Ok(true)).ok_or("no usable CPU")?;
    let mut alone = CpuSet::new();
    alone.set(last)?;
    others.unset(last)?;
    if others == CpuSet::new() {
        return Err("fill_tables needs two CPUs".into());
    }
    Ok((alone, others))
}

/// Limits the thread that prepares memory to a sixtieth of a CPU on which another thread is busy.
fn starve_memory_thread() -> Result<(), Box<dyn Error>> {
    // The thread sets its name shortly after its start.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        for thread in std::fs::read_dir("/proc/self/task")? {
            let thread = thread?;
            if std::fs::read_to_string(thread.path().join("comm"))?.trim() == "memory" {
                let status = Command::new("renice").args(["-n", "19", "-p"]).arg(thread.file_name()).status()?;
                return if status.success() { Ok(()) } else { Err(format!("renice: {status}").into()) };
            }
        }
    }
    Err("the memory preparation thread is not running".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let (for_engine, for_others) = processors()?;
    CacheLines::new(TOUCHED_BYTES / size_of::<CacheLine>(), PageRequest::Large)?.as_mut_slice().fill(CacheLine([1; 8]));
    // The other thread starts with the first table, and inherits this thread's CPUs of that moment.
    sched_setaffinity(Pid::from_raw(0), &for_others)?;
    let mut arguments = std::env::args().skip(1);
    let how = arguments.next();
    match how.as_deref() {
        None | Some("ahead" | "slow") => make_memory_ready_ahead(Readiness::BeforeUse),
        Some("here") => {}
        Some(_) => return Err("usage: fill_tables [ahead|slow|here] [EXCHANGES_PER_S]".into()),
    }
    let pause = match arguments.next() {
        Some(rate) => Duration::from_secs_f64(BURST as f64 / rate.parse::<f64>()?),
        None => Duration::ZERO,
    };
    let key = HashKey::random();
    let mut fib = FibWriter::new(key, StrategyInstance::default())?;
    fib.add_nexthop(Name::new().as_ref(), PRODUCER, 0)?;
    // A policy with admission control would reject Data when the cache is full.
    let cs = CsConfig { policy: PolicyKind::Lru.into(), ..CsConfig::default() };
    let config = EngineConfig { max_lifetime_ms: 600_000, cs, ..EngineConfig::default() };
    let (cache, pit) = (config.cs.capacity_packets, config.pit_capacity);
    let pool = BufferPool::new(4 * BURST, 4 * BURST);
    let mut engine = Engine::new(config, fib.reader(), pool.clone(), key)?;
    for id in [CONSUMER, PRODUCER] {
        engine.set_face(FaceInfo { id, scope: FaceScope::NonLocal, link_type: LinkType::PointToPoint, is_up: true });
    }
    if how.as_deref() == Some("slow") {
        starve_memory_thread()?;
        (0..CpuSet::count()).filter(|&cpu| for_others.is_set(cpu) == Ok(true)).for_each(|_| {
            std::thread::spawn(|| {
                loop {
                    std::hint::spin_loop()
                }
            });
        });
    }
    sched_setaffinity(Pid::from_raw(0), &for_engine)?;
    let name = || Name::new().append_generic("fill").append_generic([b'0'; DIGITS]);
    let interest = InterestBuilder::new(name()).nonce(1).lifetime_ms(600_000).build()?;
    let data = DataBuilder::new(name()).content(vec![7; CONTENT_BYTES]).sign(&DigestSigner)?;
    let (interest, data) = (Template::new(interest)?, Template::new(data)?);
    let mut filling = Filling { engine, pool, interest, data, started: Instant::now(), pause };
    // A router is idle for a while before packets arrive.
    std::thread::sleep(Duration::from_millis(500));
    // The limit in bytes is reached before the number of packets.
    filling.compare("cache", 0, cache * 7 / 8 / BURST * BURST, true)?;
    filling.compare("PIT", 10 * cache, pit / BURST * BURST, false)?;
    Ok(())
}
