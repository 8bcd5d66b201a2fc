//! The ping client.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use namehop_client::endpoint::{Endpoint, ExpressError};
use namehop_wire::builder::InterestBuilder;
use namehop_wire::lp::NackReason;
use namehop_wire::{Name, NameRef};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Name component between the prefix and the sequence number.
const PING_COMPONENT: &str = "ping";

/// Configuration of a series of probes.
#[derive(Clone, Debug)]
pub struct PingConfig {
    /// Prefix of the server, without the `ping` component.
    pub prefix: Name,
    /// Time between two probes.
    pub interval: Duration,
    /// InterestLifetime of a probe.
    pub lifetime: Duration,
    /// Number of probes to send; `None` = until stopped.
    pub count: Option<u64>,
    /// First sequence number; `None` for a random one, so that caches do not answer.
    pub start: Option<u64>,
    /// Component before the sequence number, which distinguishes clients.
    pub identifier: Option<String>,
    /// Whether caches may answer with stale Data.
    pub allow_stale: bool,
}

/// Outcome of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PingEvent {
    /// Data arrived.
    Data {
        /// Sequence number.
        sequence: u64,
        /// Round-trip time.
        rtt: Duration,
        /// Bytes of Content.
        content_bytes: usize,
    },
    /// A Nack arrived.
    Nack {
        /// Sequence number.
        sequence: u64,
        /// Nack reason.
        reason: NackReason,
    },
    /// Nothing arrived within the InterestLifetime.
    Timeout {
        /// Sequence number.
        sequence: u64,
    },
}

/// Round-trip times of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RttSummary {
    /// Smallest, in milliseconds.
    pub min_ms: f64,
    /// Mean, in milliseconds.
    pub mean_ms: f64,
    /// Largest, in milliseconds.
    pub max_ms: f64,
    /// Standard deviation, in milliseconds, as ping(8) calls `mdev`.
    pub deviation_ms: f64,
}

/// Result of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PingReport {
    /// Probes sent.
    pub sent: u64,
    /// Probes answered by Data.
    pub received: u64,
    /// Probes answered by a Nack.
    pub nacks: u64,
    /// Probes without an answer.
    pub timeouts: u64,
    /// Data for probes that had already been answered or had timed out.
    pub duplicates: u64,
    /// Round-trip times; `None` if no Data arrived.
    pub rtt: Option<RttSummary>,
    /// Error of the connection that ended the series early. Probes in flight at that time do not count as lost.
    pub broken: Option<ExpressError>,
}

impl PingReport {
    /// Returns the share of finished probes without Data, 0 to 100.
    pub fn loss_percent(&self) -> f64 {
        let finished = self.received + self.nacks + self.timeouts;
        if finished == 0 { 0.0 } else { (finished - self.received) as f64 * 100.0 / finished as f64 }
    }
}

#[derive(Default)]
struct Samples {
    count: u64,
    sum: f64,
    sum_of_squares: f64,
    min: f64,
    max: f64,
}

impl Samples {
    fn add(&mut self, rtt: Duration) {
        let ms = rtt.as_secs_f64() * 1000.0;
        self.min = if self.count == 0 { ms } else { self.min.min(ms) };
        self.max = self.max.max(ms);
        self.sum += ms;
        self.sum_of_squares += ms * ms;
        self.count += 1;
    }

    fn summary(&self) -> Option<RttSummary> {
        let count = self.count as f64;
        let mean = self.sum / count;
        let variance = (self.sum_of_squares / count - mean * mean).max(0.0);
        (self.count > 0).then_some(RttSummary {
            min_ms: self.min,
            mean_ms: mean,
            max_ms: self.max,
            deviation_ms: variance.sqrt(),
        })
    }
}

fn probe_prefix(config: &PingConfig) -> Name {
    let mut name = config.prefix.clone().append_generic(PING_COMPONENT);
    if let Some(identifier) = &config.identifier {
        name = name.append_generic(identifier);
    }
    name
}

async fn probe(endpoint: &Endpoint, name: Name, sequence: u64, config: &PingConfig) -> Result<PingEvent, ExpressError> {
    let interest = InterestBuilder::new(name.append_generic(sequence.to_string()))
        .must_be_fresh(!config.allow_stale)
        .lifetime_ms(config.lifetime.as_millis() as u64);
    match endpoint.request(interest).await {
        Ok(response) => {
            let content_bytes = response.data().map_or(0, |data| data.content.len());
            Ok(PingEvent::Data { sequence, rtt: response.round_trip_time(), content_bytes })
        }
        Err(ExpressError::Nack(reason)) => Ok(PingEvent::Nack { sequence, reason }),
        Err(ExpressError::Timeout { .. }) => Ok(PingEvent::Timeout { sequence }),
        Err(error) => Err(error),
    }
}

/// Sends probes at a steady rate until the count is reached or `stop` completes. Calls `each` with the outcome of every
/// probe. Probes in flight when it stops early do not count as lost.
pub async fn ping(
    endpoint: &Endpoint,
    config: &PingConfig,
    stop: impl Future<Output = ()>,
    mut each: impl FnMut(&PingEvent),
) -> PingReport {
    let prefix = probe_prefix(config);
    let first = config.start.unwrap_or_else(|| rand::random::<u64>() >> 1);
    let duplicates = watch_duplicates(endpoint, &prefix, first);
    let mut ticks = interval_at(Instant::now(), config.interval.max(Duration::from_micros(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut flights = FuturesUnordered::new();
    let mut report = PingReport::default();
    let mut samples = Samples::default();
    tokio::pin!(stop);
    loop {
        let more = config.count.is_none_or(|count| report.sent < count);
        if !more && flights.is_empty() {
            break;
        }
        tokio::select! {
            () = &mut stop => break,
            Some(event) = flights.next() => {
                let event: PingEvent = match event {
                    Ok(event) => event,
                    Err(error) => {
                        report.broken = Some(error);
                        break;
                    }
                };
                match &event {
                    PingEvent::Data { rtt, .. } => {
                        report.received += 1;
                        samples.add(*rtt);
                    }
                    PingEvent::Nack { .. } => report.nacks += 1,
                    PingEvent::Timeout { .. } => report.timeouts += 1,
                }
                each(&event);
            }
            _ = ticks.tick(), if more => {
                let sequence = first.wrapping_add(report.sent);
                flights.push(probe(endpoint, prefix.clone(), sequence, config));
                report.sent += 1;
            }
        }
    }
    report.rtt = samples.summary();
    report.duplicates = duplicates.load(Ordering::Relaxed);
    report
}

/// Counts Data of this series that match no pending probe.
fn watch_duplicates(endpoint: &Endpoint, prefix: &Name, first: u64) -> Arc<AtomicU64> {
    let duplicates = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&duplicates);
    let prefix = prefix.clone();
    endpoint.watch_unsolicited(move |name: NameRef<'_>| {
        let sequence = || std::str::from_utf8(name.get(prefix.len())?.value).ok()?.parse::<u64>().ok();
        let ours = prefix.is_prefix_of(name) && name.len() == prefix.len() + 1;
        if ours && sequence().is_some_and(|sequence| sequence >= first) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    duplicates
}
