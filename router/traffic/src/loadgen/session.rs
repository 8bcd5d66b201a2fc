//! A session: several consumers and producers that run together, each on its own connection and thread.
//!
//! A session ends when its duration is over, when all consumers have sent their Interests, or when it is interrupted.
//! Consumers then stop sending and wait for pending Interests. A broken connection ends its own consumer or producer,
//! which still reports.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use namehop_client::target::TransportUri;
use namehop_wire::Name;
use namehop_wire::security::Signer;

use super::control::{self, CreatedFace};
use super::link::{Link, LinkCounts};
use super::open_link::OpenLink;
use super::{
    Consumer, ConsumerCounts, ConsumerPlan, LONGEST, LinkAddress, LoadError, PortError, ProcessTimes, Producer,
    ProducerCounts, ReplyPattern, TICK,
};

/// Time limit for the peer of a memif to connect: memif clients try once a second.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long consumers wait for pending Interests after an interruption. Otherwise they wait for the InterestLifetime.
const PATIENCE_WHEN_INTERRUPTED: Duration = Duration::from_millis(500);

/// Configuration of a consumer.
#[derive(Clone, Debug)]
pub struct ConsumerConfig {
    /// Name in reports.
    pub name: String,
    /// Address of its connection.
    pub link: LinkAddress,
    /// Its workload and timing.
    pub plan: ConsumerPlan,
}

/// Configuration of a producer.
#[derive(Clone, Debug)]
pub struct ProducerConfig {
    /// Name in reports.
    pub name: String,
    /// Address of its connection.
    pub link: LinkAddress,
    /// Local connection that registers its prefixes if it is on UDP.
    pub control: Option<TransportUri>,
    /// Whether it registers the prefixes of its patterns; never over a port.
    pub registers: bool,
    /// Patterns that it answers.
    pub patterns: Vec<ReplyPattern>,
    /// Seed of the random choice of replies.
    pub seed: u64,
}

/// Configuration of a session.
#[derive(Clone)]
pub struct SessionConfig {
    /// Its consumers.
    pub consumers: Vec<ConsumerConfig>,
    /// Its producers.
    pub producers: Vec<ProducerConfig>,
    /// Signs the commands that register prefixes.
    pub signer: Arc<dyn Signer>,
    /// How long consumers send; `None` to run until they have sent all Interests, or an interruption.
    pub duration: Option<Duration>,
}

/// Progress of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Interests sent by consumers.
    pub sent: u64,
    /// Interests answered by Data.
    pub received: u64,
    /// Interests answered by Nacks or timed out.
    pub lost: u64,
    /// Interests received by producers.
    pub asked: u64,
}

/// Result of a consumer.
#[derive(Clone, Debug)]
pub struct ConsumerReport {
    /// Name of the consumer.
    pub name: String,
    /// Time during which it sent, in seconds.
    pub elapsed_s: f64,
    /// Its counters.
    pub counts: ConsumerCounts,
    /// The window at the end, its largest size, and the number of reductions; `None` without congestion control.
    pub window: Option<(usize, usize, u64)>,
    /// Frames that its connection carried and dropped.
    pub link: LinkCounts,
    /// Error that ended it early.
    pub error: Option<String>,
}

/// Result of a producer.
#[derive(Clone, Debug)]
pub struct ProducerReport {
    /// Name of the producer.
    pub name: String,
    /// Its counters.
    pub counts: ProducerCounts,
    /// Frames that its connection carried and dropped.
    pub link: LinkCounts,
    /// Error that ended it early.
    pub error: Option<String>,
}

/// Result of a session.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// Time from start to end, in seconds.
    pub elapsed_s: f64,
    /// CPU time of this process from start to end.
    pub own_cpu: ProcessTimes,
    /// In the order of the configuration.
    pub consumers: Vec<ConsumerReport>,
    /// In the order of the configuration.
    pub producers: Vec<ProducerReport>,
}

/// State shared by the threads of a session.
#[derive(Default)]
struct SessionState {
    /// Consumers send no more Interests.
    is_over: AtomicBool,
    /// Consumers also wait at most [`PATIENCE_WHEN_INTERRUPTED`].
    is_interrupted: AtomicBool,
    /// Producers end.
    are_consumers_done: AtomicBool,
}

/// Counts of one thread that other threads may read while it runs.
#[derive(Default)]
struct Live {
    sent: AtomicU64,
    received: AtomicU64,
    lost: AtomicU64,
    asked: AtomicU64,
}

/// A running session.
pub struct Session {
    shared: Arc<SessionState>,
    live: Vec<Arc<Live>>,
    consumers: Vec<JoinHandle<(ConsumerReport, Consumer<OpenLink>)>>,
    producers: Vec<JoinHandle<ProducerReport>>,
    faces: Vec<CreatedFace>,
    /// Disconnects when all consumers have ended.
    consumers_done: mpsc::Receiver<()>,
    began: Instant,
    ends: Option<Instant>,
    cpu_before: ProcessTimes,
}

impl Session {
    /// Opens all connections, registers prefixes and starts the threads. Setting `stop` ends the wait for memif peers.
    ///
    /// # Errors
    /// See [`LoadError`]. On an error nothing runs, and the registrations end with their connections.
    pub fn start(config: &SessionConfig, stop: &AtomicBool) -> Result<Session, LoadError> {
        check(config)?;
        let pid = std::process::id();
        let cpu_before = ProcessTimes::of(pid).map_err(|source| LoadError::Process { pid, source })?;
        let consumers = config
            .consumers
            .iter()
            .map(|config| Ok((config.name.clone(), Consumer::new(OpenLink::open(&config.link)?, &config.plan)?)))
            .collect::<Result<Vec<_>, LoadError>>()?;
        let mut faces = Vec::new();
        let producers = open_producers(config, &mut faces).and_then(|producers| {
            wait_for_peers(config, &consumers, &producers, stop)?;
            Ok(producers)
        });
        let producers = match producers {
            Ok(producers) => producers,
            Err(error) => {
                faces.into_iter().for_each(CreatedFace::destroy);
                return Err(error);
            }
        };
        let (running, consumers_done) = mpsc::channel::<()>();
        let began = Instant::now();
        let mut session = Session {
            shared: Arc::new(SessionState::default()),
            live: Vec::new(),
            consumers: Vec::new(),
            producers: Vec::new(),
            faces,
            consumers_done,
            began,
            ends: config.duration.map(|duration| began + duration),
            cpu_before,
        };
        for (name, producer) in producers {
            let (shared, live) = session.share();
            session.producers.push(spawn("producer", move || produce(name, producer, &shared, &live))?);
        }
        for (name, consumer) in consumers {
            let (shared, live) = session.share();
            let running = running.clone();
            session.consumers.push(spawn("consumer", move || {
                let report = consume(name, consumer, &shared, &live);
                drop(running);
                report
            })?);
        }
        Ok(session)
    }

    fn share(&mut self) -> (Arc<SessionState>, Arc<Live>) {
        let live = Arc::new(Live::default());
        self.live.push(Arc::clone(&live));
        (Arc::clone(&self.shared), live)
    }

    /// Returns the progress so far.
    pub fn progress(&self) -> Progress {
        let sum = |of: fn(&Live) -> &AtomicU64| self.live.iter().map(|live| of(live).load(Ordering::Relaxed)).sum();
        Progress {
            sent: sum(|live| &live.sent),
            received: sum(|live| &live.received),
            lost: sum(|live| &live.lost),
            asked: sum(|live| &live.asked),
        }
    }

    /// Waits until the session ends or `stop` is set, and calls `show` regularly.
    pub fn wait(self, stop: &AtomicBool, mut show: impl FnMut(&Session)) -> SessionReport {
        let has_consumers = !self.consumers.is_empty();
        loop {
            if stop.load(Ordering::Relaxed) {
                self.shared.is_interrupted.store(true, Ordering::Relaxed);
            }
            if stop.load(Ordering::Relaxed) || self.ends.is_some_and(|ends| Instant::now() >= ends) {
                self.shared.is_over.store(true, Ordering::Relaxed);
            }
            let is_over = self.shared.is_over.load(Ordering::Relaxed);
            let are_done = match has_consumers {
                true => self.consumers_done.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Disconnected),
                false => is_over || self.producers.iter().all(JoinHandle::is_finished),
            };
            if are_done {
                break;
            }
            if !has_consumers {
                thread::sleep(TICK);
            }
            show(&self);
        }
        self.end()
    }

    fn end(mut self) -> SessionReport {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // The consumers' links stay open until the producers have ended: a producer may be at the other end.
        let (consumers, links): (_, Vec<_>) = self.consumers.drain(..).filter_map(|thread| thread.join().ok()).unzip();
        self.shared.are_consumers_done.store(true, Ordering::Relaxed);
        let producers = self.producers.drain(..).filter_map(|thread| thread.join().ok()).collect();
        drop(links);
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let own_cpu = ProcessTimes::of(std::process::id()).unwrap_or(self.cpu_before).since(self.cpu_before);
        self.faces.drain(..).for_each(CreatedFace::destroy);
        SessionReport { elapsed_s, own_cpu, consumers, producers }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Threads of an abandoned session, for instance one that failed to start completely, end by themselves.
        self.faces.drain(..).for_each(CreatedFace::destroy);
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.is_interrupted.store(true, Ordering::Relaxed);
        self.shared.are_consumers_done.store(true, Ordering::Relaxed);
    }
}

fn check(config: &SessionConfig) -> Result<(), LoadError> {
    let fail = |text: String| Err(LoadError::Configuration(text));
    if config.consumers.is_empty() && config.producers.is_empty() {
        return fail("the plan has neither a consumer nor a producer".to_owned());
    }
    if config.duration.is_some_and(|duration| duration.is_zero() || duration > LONGEST) {
        return fail("the duration must be above 0 and at most 30 days".to_owned());
    }
    for config in &config.producers {
        config.patterns.iter().try_for_each(ReplyPattern::check)?;
        let is_on_udp = matches!(config.link, LinkAddress::Socket(TransportUri::Udp(_)));
        if config.registers && is_on_udp && config.control.is_none() {
            return fail(format!(
                "{}: a forwarder accepts no commands over UDP: to register its prefixes, give a local connection, as \
                 in control = \"unix:///run/nfd/nfd.sock\" (--control), or add routes to the forwarder and set \
                 register = false (--no-register)",
                config.name
            ));
        }
    }
    Ok(())
}

type NamedConsumer = (String, Consumer<OpenLink>);
type NamedProducer = (String, Producer<OpenLink>);

fn open_producers(config: &SessionConfig, faces: &mut Vec<CreatedFace>) -> Result<Vec<NamedProducer>, LoadError> {
    let mut producers = Vec::new();
    for ProducerConfig { name, link, control, registers, patterns, seed } in &config.producers {
        let mut link = OpenLink::open(link)?;
        if *registers && let OpenLink::Socket(link) = &mut link {
            let prefixes: Vec<Name> = patterns.iter().map(|pattern| pattern.prefix.clone()).collect();
            faces.extend(control::register(link, &prefixes, control.as_ref(), &config.signer)?);
            link.forget_counts();
        }
        producers.push((name.clone(), Producer::new(link, patterns, *seed)?));
    }
    Ok(producers)
}

/// Waits until every memif has a peer.
fn wait_for_peers(
    config: &SessionConfig,
    consumers: &[NamedConsumer],
    producers: &[NamedProducer],
    stop: &AtomicBool,
) -> Result<(), LoadError> {
    let addresses = config.consumers.iter().map(|config| &config.link);
    let addresses = addresses.chain(config.producers.iter().map(|config| &config.link));
    let links = consumers.iter().map(|(_, consumer)| consumer.link());
    let links = links.chain(producers.iter().map(|(_, producer)| producer.link()));
    let limit = Instant::now() + CONNECT_TIMEOUT;
    for (link, address) in links.zip(addresses) {
        while !link.is_connected() {
            if stop.load(Ordering::Relaxed) || Instant::now() > limit {
                return Err(LoadError::Port { link: address.to_string(), reason: PortError::NoPeer });
            }
            thread::sleep(TICK);
        }
    }
    Ok(())
}

fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

fn produce(name: String, mut producer: Producer<OpenLink>, shared: &SessionState, live: &Live) -> ProducerReport {
    let mut error = None;
    while error.is_none() && !shared.are_consumers_done.load(Ordering::Relaxed) {
        error = producer.step().err();
        live.asked.store(producer.counts().interests, Ordering::Relaxed);
    }
    let link = producer.link().counts();
    ProducerReport { name, counts: producer.counts(), link, error: error.map(|error| error.to_string()) }
}

fn consume(
    name: String,
    mut consumer: Consumer<OpenLink>,
    shared: &SessionState,
    live: &Live,
) -> (ConsumerReport, Consumer<OpenLink>) {
    let began = Instant::now();
    let mut sent_until = None;
    let mut error = None;
    loop {
        if sent_until.is_none() && (consumer.has_sent_all() || shared.is_over.load(Ordering::Relaxed)) {
            consumer.stop_sending();
            sent_until = Some(Instant::now());
        }
        let is_given_up = shared.is_interrupted.load(Ordering::Relaxed)
            && sent_until.is_some_and(|until| until.elapsed() > PATIENCE_WHEN_INTERRUPTED);
        if sent_until.is_some() && consumer.pending() == 0 || is_given_up {
            break;
        }
        if let Err(broken) = consumer.step(|| true) {
            error = Some(broken.to_string());
            break;
        }
        let counts = consumer.counts();
        live.sent.store(counts.interests, Ordering::Relaxed);
        live.received.store(counts.exchanges, Ordering::Relaxed);
        live.lost.store(counts.timeouts + counts.nacks, Ordering::Relaxed);
    }
    consumer.give_up();
    let elapsed_s = sent_until.unwrap_or_else(Instant::now).duration_since(began).as_secs_f64();
    let (window, link) = (consumer.window(), consumer.link().counts());
    let report = ConsumerReport { name, elapsed_s, counts: consumer.take_counts(), window, link, error };
    (report, consumer)
}
