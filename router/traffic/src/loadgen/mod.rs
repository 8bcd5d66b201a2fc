//! Load generator: consumers and producers that account for every packet, and a measurement of Interest-Data exchanges
//! per second through a forwarder's sockets.
//!
//! A consumer keeps a fixed number of Interests in flight and a producer answers them, on two connections, each served
//! by one plain thread with blocking sockets. Packets are built once. Only the sequence number and the nonce are
//! patched per packet, and each system call carries many packets, so the generator costs much less than the forwarder
//! under load. Names are distinct by default, so that every Interest misses the forwarder's cache.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use namehop_client::endpoint::CommandError;
use namehop_client::target::TransportUri;
use namehop_wire::Name;
use namehop_wire::security::Signer;

use crate::segmented::WindowKind;

mod address;
mod consumer;
mod control;
mod counts;
mod link;
mod open_link;
mod open_port;
mod pacing;
mod packets;
mod port_link;
mod process;
mod producer;
mod requests;
mod session;
mod socket_link;
#[cfg(test)]
mod tests;

pub use address::{LinkAddress, LinkUri, PortAddress};
pub use consumer::{Consumer, ConsumerPlan};
pub use counts::ConsumerCounts;
pub use link::{Link, LinkCounts, PATIENCE};
pub use open_port::{OpenPort, PortError, memif_buffer_bytes};
pub use pacing::{MAX_IN_FLIGHT, Pacing};
pub use packets::numbered_name;
pub use port_link::{Idle, PortLink};
pub use process::{CpuUse, ProcessReading, ProcessTimes, process_tree, resident_bytes};
pub use producer::{DataShape, Producer, ProducerCounts, Reply, ReplyKind, ReplyPattern};
pub use requests::{MAX_PATTERNS, Names, Pattern};
pub use session::{
    ConsumerConfig, ConsumerReport, ProducerConfig, ProducerReport, Progress, Session, SessionConfig, SessionReport,
};

use socket_link::SocketLink;

/// Role of this process in a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Consumer and producer, on two connections.
    Both,
    /// Consumer only; a producer with the same prefix and payload runs elsewhere.
    Consumer,
    /// Producer only; runs for the duration and reports what it served.
    Producer,
}

/// Properties of the exchanged packets.
#[derive(Clone, Debug)]
pub struct Load {
    /// Prefix of all names.
    pub prefix: Name,
    /// Number of Interests in flight.
    pub in_flight: usize,
    /// Bytes of Content in each Data.
    pub payload_bytes: usize,
    /// Number of distinct names to cycle through; 0 = every Interest has a new name.
    pub names: u64,
    /// Freshness period of the Data, in milliseconds.
    pub freshness_ms: u64,
    /// Time without an answer after which an Interest counts as lost.
    pub lifetime: Duration,
}

impl Load {
    /// Returns the consumer's plan. Every run has new names, unless they cycle.
    pub fn consumer(&self) -> ConsumerPlan {
        let names = if self.names == 0 { Names::New } else { Names::Cycle(self.names) };
        let pacing = Pacing::Window { size: self.in_flight, law: WindowKind::Fixed, max: self.in_flight };
        let pattern = Pattern { names, ..Pattern::new(self.prefix.clone(), self.lifetime) };
        ConsumerPlan { patterns: vec![pattern], pacing, count: None, seed: rand::random() }
    }

    /// Returns the producer's reply pattern.
    pub fn producer(&self) -> ReplyPattern {
        let shape =
            DataShape { suffix: Name::new(), freshness_ms: self.freshness_ms, payload_bytes: self.payload_bytes };
        let reply = Reply { weight: 1, kind: ReplyKind::Data(shape), delay: Duration::ZERO };
        ReplyPattern { prefix: self.prefix.clone(), replies: vec![reply] }
    }
}

/// Configuration of a measurement.
#[derive(Clone)]
pub struct LoadConfig {
    /// Role of this process.
    pub role: Role,
    /// Connection of the consumer.
    pub consumer: TransportUri,
    /// Connection of the producer.
    pub producer: TransportUri,
    /// Local connection for management commands; required if the producer is on UDP, where forwarders accept no prefix
    /// registrations.
    pub control: Option<TransportUri>,
    /// Signs the commands that register the prefix.
    pub signer: Arc<dyn Signer>,
    /// Properties of the exchanged packets.
    pub load: Load,
    /// Time before measuring starts.
    pub warm_up: Duration,
    /// Duration of the measurement.
    pub duration: Duration,
    /// Process to report CPU time of, including its descendants; normally the forwarder.
    pub pid: Option<u32>,
}

/// Result of a measurement.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// Time measured, in seconds.
    pub elapsed_s: f64,
    /// Interests answered by Data in that time.
    pub exchanges: u64,
    /// Interests sent in that time.
    pub interests: u64,
    /// Interests without an answer.
    pub timeouts: u64,
    /// Interests answered by a Nack.
    pub nacks: u64,
    /// Data that matched no pending Interest: duplicates and late Data.
    pub unexpected: u64,
    /// Interests answered by the producer over the whole run; 0 if the producer runs elsewhere.
    pub served: u64,
    /// Interests answered by the producer in the time measured; caches answered the others.
    pub served_measured: u64,
    /// Frames that either side could not parse.
    pub malformed: u64,
    /// Histogram of round-trip times in nanoseconds, precise to a thousandth; `None` if the consumer runs elsewhere.
    pub rtt_ns: Option<Histogram<u64>>,
    /// CPU time used by the observed process and its descendants in the time measured.
    pub observed_cpu: Option<CpuUse>,
    /// CPU time used by this process in the time measured.
    pub own_cpu: CpuUse,
}

impl LoadReport {
    /// Returns the exchanges per second.
    pub fn exchanges_per_second(&self) -> f64 {
        if self.elapsed_s > 0.0 { self.exchanges as f64 / self.elapsed_s } else { 0.0 }
    }

    /// Returns the CPU time per exchange in microseconds, for instance of [`LoadReport::observed_cpu`].
    pub fn cpu_us_per_exchange(&self, used: CpuUse) -> Option<f64> {
        (self.exchanges > 0).then(|| used.total.total().as_secs_f64() * 1e6 / self.exchanges as f64)
    }
}

/// Reason why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A connection could not be opened.
    #[error("no forwarder is reachable at {uri}: {source}; start one with 'namehop run'")]
    Connect {
        /// Address of the forwarder.
        uri: TransportUri,
        /// Error of the system.
        source: io::Error,
    },
    /// A port could not be opened, or has no peer.
    #[error("{link}: {reason}")]
    Port {
        /// Address of the link.
        link: String,
        /// The error.
        reason: PortError,
    },
    /// A connection broke while measuring.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
    /// The producer's prefix could not be registered.
    #[error("cannot register {prefix}: {source}")]
    Register {
        /// The prefix.
        prefix: Name,
        /// Error of the command.
        source: CommandError,
    },
    /// The face of a producer on UDP could not be created.
    #[error("cannot create the face of the producer: {0}")]
    CreateFace(CommandError),
    /// The configuration is invalid.
    #[error("{0}")]
    Configuration(String),
    /// The CPU time of the observed process cannot be read.
    #[error("cannot read the CPU time of process {pid}: {source}")]
    Process {
        /// Process id.
        pid: u32,
        /// Error of the system.
        source: io::Error,
    },
}

/// How often the time-keeping thread checks the flags.
const TICK: Duration = Duration::from_millis(20);
/// Maximum duration: longer values are mistakes and could overflow the clock.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

fn check(config: &LoadConfig) -> Result<(), LoadError> {
    let fail = |text: String| Err(LoadError::Configuration(text));
    if config.load.in_flight == 0 || config.load.in_flight > 1 << 20 {
        return fail("the number of Interests in flight must be between 1 and 1048576".to_owned());
    }
    if config.load.names > 0 && config.load.names < config.load.in_flight as u64 {
        return fail(format!(
            "{} names cannot keep {} Interests in flight: use at least one name per Interest",
            config.load.names, config.load.in_flight
        ));
    }
    if config.duration.is_zero() {
        return fail("the duration must be above 0".to_owned());
    }
    if config.load.lifetime < Duration::from_millis(1) {
        return fail("the Interest lifetime must be at least 1 ms".to_owned());
    }
    if [config.warm_up, config.duration, config.load.lifetime].into_iter().any(|time| time > LONGEST) {
        return fail("a time must be at most 30 days".to_owned());
    }
    let producer_on_udp = config.role != Role::Consumer && matches!(config.producer, TransportUri::Udp(_));
    if producer_on_udp && config.control.is_none() {
        return fail(
            "a forwarder accepts no commands over UDP: to register the producer's prefix, give a local connection, as \
             in --control unix:///run/nfd/nfd.sock"
                .to_owned(),
        );
    }
    config.load.producer().check()
}

fn observe(pid: u32) -> Result<ProcessReading, LoadError> {
    ProcessReading::of_tree(pid).map_err(|source| LoadError::Process { pid, source })
}

/// Runs one measurement; blocks the calling thread for its duration. `stop` ends it early.
///
/// # Errors
/// See [`LoadError`].
pub fn run(config: &LoadConfig, stop: &Arc<AtomicBool>) -> Result<LoadReport, LoadError> {
    check(config)?;
    let load = &config.load;
    let ended = Arc::new(AtomicBool::new(false));
    let measuring = Arc::new(AtomicBool::new(false));

    // Do everything that can fail before changing the forwarder.
    config.pid.map(observe).transpose()?;
    let consumer_link = if config.role == Role::Producer { None } else { Some(SocketLink::open(&config.consumer)?) };
    let mut producer = None;
    let mut created_face = None;
    let served = Arc::new(AtomicU64::new(0));
    if config.role != Role::Consumer {
        let mut link = SocketLink::open(&config.producer)?;
        let prefixes = std::slice::from_ref(&load.prefix);
        created_face = control::register(&mut link, prefixes, config.control.as_ref(), &config.signer)?;
        let (ended, served) = (Arc::clone(&ended), Arc::clone(&served));
        let mut state = Producer::new(link, &[load.producer()], rand::random())?;
        producer = Some(thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                state.step()?;
                served.store(state.counts().data, Ordering::Relaxed);
            }
            Ok(state.counts().malformed)
        }));
    }
    let consumer = consumer_link.map(|link| Consumer::new(link, &load.consumer())).transpose()?;
    let consumer = consumer.map(|mut state| {
        let (ended, measuring) = (Arc::clone(&ended), Arc::clone(&measuring));
        thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                state.step(|| measuring.load(Ordering::Acquire))?;
            }
            Ok(state.take_counts())
        })
    });

    let sides_alive = || {
        consumer.as_ref().is_none_or(|thread| !thread.is_finished())
            && producer.as_ref().is_none_or(|thread| !thread.is_finished())
    };
    let wait = |time: Duration| {
        let until = Instant::now() + time;
        while Instant::now() < until && !stop.load(Ordering::Relaxed) && sides_alive() {
            thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
        }
    };
    let observe_both = || -> Result<(Option<ProcessReading>, ProcessReading), LoadError> {
        // The forwarder may be a child of this process.
        Ok((config.pid.map(observe).transpose()?, ProcessReading::of(std::process::id())?))
    };
    wait(config.warm_up);
    let before = observe_both();
    let served_before = served.load(Ordering::Relaxed);
    measuring.store(true, Ordering::Release);
    let started = Instant::now();
    wait(config.duration);
    let after = observe_both();
    let elapsed_s = started.elapsed().as_secs_f64();
    let served_measured = served.load(Ordering::Relaxed) - served_before;
    measuring.store(false, Ordering::Release);
    ended.store(true, Ordering::Release);

    let (consumed, produced) = (join(consumer), join(producer));
    if let Some(face) = created_face {
        face.destroy();
    }
    let (consumed, malformed) = (consumed?, produced?.unwrap_or(0));
    let (observed_before, own_before) = before?;
    let (observed_after, own_after) = after?;
    let count = |part: fn(&ConsumerCounts) -> u64| consumed.as_ref().map_or(0, part);
    Ok(LoadReport {
        elapsed_s,
        exchanges: count(|counts| counts.exchanges),
        interests: count(|counts| counts.interests),
        timeouts: count(|counts| counts.timeouts),
        nacks: count(|counts| counts.nacks),
        unexpected: count(ConsumerCounts::unexpected),
        served: served.load(Ordering::Relaxed),
        served_measured,
        malformed: malformed + count(|counts| counts.malformed),
        rtt_ns: consumed.map(|counts| counts.rtt_ns),
        observed_cpu: observed_after.zip(observed_before).map(|(after, before)| after.since(&before)),
        own_cpu: own_after.since(&own_before),
    })
}

fn join<T>(thread: Option<thread::JoinHandle<io::Result<T>>>) -> Result<Option<T>, LoadError> {
    match thread.map(thread::JoinHandle::join) {
        None => Ok(None),
        Some(Ok(result)) => Ok(Some(result?)),
        Some(Err(_)) => Err(LoadError::Io(io::Error::other("a generator thread panicked"))),
    }
}
