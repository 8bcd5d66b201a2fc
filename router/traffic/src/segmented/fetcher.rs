//! Fetches an object: discovery, a congestion-controlled stream of Interests, verification, and delivery of segments to
//! an output.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use hdrhistogram::Histogram;
use namehop_client::endpoint::{Endpoint, ExpressError, Response};
use namehop_wire::builder::InterestBuilder;
use namehop_wire::data::content_type;
use namehop_wire::interest::DEFAULT_INTEREST_LIFETIME_MS;
use namehop_wire::lp::NackReason;
use namehop_wire::{Data, DecodeError, MAX_PACKET_SIZE, Name};

use super::congestion::WindowKind;
use super::control::CongestionControl;
use super::counts::{EndError, FetchCounts};
use super::discovery::{Discovery, DiscoveryMethod, FoundObject, discover};
use super::numbering::Numbering;
use super::output::{Output, OutputError};
use super::rtt::{RtoBounds, RttEstimator};
use super::state::{SegmentRequest, Transfer};
use super::verification::{Verification, VerificationError};

/// Number of NoRoute Nacks for a segment that fail the fetch. Routes come and go, but the fetch does not wait for a
/// missing one.
const MAX_NO_ROUTE_NACKS: u32 = 4;
/// Delay before a nacked Interest is sent again; doubles with every attempt, up to `MAX_NACK_DELAY`.
const NACK_DELAY: Duration = Duration::from_millis(50);
const MAX_NACK_DELAY: Duration = Duration::from_secs(2);

/// Options of a fetch.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// How to find the version.
    pub discovery: Discovery,
    /// Number of retries of a discovery Interest that timed out.
    pub discovery_retries: u32,
    /// Law of the congestion window.
    pub window: WindowKind,
    /// Initial number of Interests in flight; with [`WindowKind::Fixed`], the number throughout.
    pub initial_window: Option<f64>,
    /// Maximum number of Interests in flight.
    pub max_window: f64,
    /// Bounds of the retransmission time-out.
    pub rto: RtoBounds,
    /// InterestLifetime of segment Interests, in milliseconds.
    pub lifetime_ms: u64,
    /// Maximum number of attempts per segment.
    pub max_attempts: u32,
    /// How far the fetch may run ahead of a missing segment, in bytes (of packets of maximum size). An in-order output
    /// keeps them in memory.
    pub reorder_bytes: usize,
    /// Requirements on signatures.
    pub verification: Verification,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            discovery: Discovery::Auto,
            discovery_retries: 2,
            window: WindowKind::Adaptive,
            initial_window: None,
            max_window: 4096.0,
            rto: RtoBounds::default(),
            lifetime_ms: DEFAULT_INTEREST_LIFETIME_MS,
            max_attempts: 16,
            reorder_bytes: 64 << 20,
            verification: Verification::Digest,
        }
    }
}

/// Progress of a fetch.
#[derive(Clone, Copy, Debug, Default)]
pub struct FetchProgress {
    /// Bytes of content that have arrived.
    pub bytes: u64,
    /// Segments that have arrived.
    pub segments: u64,
    /// Number of segments, once known.
    pub total_segments: Option<u64>,
    /// Outcomes of the Interests so far.
    pub counts: FetchCounts,
}

/// Result of a fetch.
#[derive(Clone, Debug)]
pub struct FetchReport {
    /// Versioned name of the object, or the name of its only Data.
    pub name: Name,
    /// How the version was found.
    pub discovery: DiscoveryMethod,
    /// Bytes of content.
    pub bytes: u64,
    /// Number of segments.
    pub segments: u64,
    /// Time from the first Interest to the last byte written.
    pub elapsed: Duration,
    /// Outcomes of the Interests.
    pub counts: FetchCounts,
    /// Number of reductions of the congestion window.
    pub window_decreases: u64,
    /// Largest congestion window, in Interests.
    pub largest_window: usize,
    /// Round-trip times.
    pub rtt: RttEstimator,
    /// Histogram of round-trip times in nanoseconds, precise to a thousandth.
    pub rtt_ns: Histogram<u64>,
    /// Data with unverified signatures, because no key was given for them.
    pub unverified: u64,
}

/// Reason for a failed fetch. Content written in order until then is a correct prefix of the object.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Discovery of the version failed.
    #[error("cannot find the object: {0}")]
    Discovery(ExpressError),
    /// Metadata arrived but does not name a version.
    #[error("the metadata of the object is not usable: {0}")]
    BadMetadata(String),
    /// A segment could not be retrieved.
    #[error("segment {segment}: {error} ({attempts} attempts)")]
    Segment {
        /// Segment number.
        segment: u64,
        /// The last error.
        error: ExpressError,
        /// Number of attempts.
        attempts: u32,
    },
    /// No Interest is in flight although this segment has not arrived.
    #[error("segment {0} is missing")]
    Missing(u64),
    /// The producer says that it has no such object.
    #[error("the producer has no object {0}")]
    ProducerNack(Name),
    /// A Data under the prefix is not a segment of a known form, and does not claim to be the whole object.
    #[error(
        "{0} may be one segment of an object with an unknown segment numbering; give its full name to fetch it alone"
    )]
    PartOf(Name),
    /// FinalBlockId is not a segment number in the object's form.
    #[error(
        "segment {segment} names '{end}' as the last segment, which is not a segment number: the end of the object is \
         unknown"
    )]
    StrangeEnd {
        /// Segment with this FinalBlockId.
        segment: u64,
        /// The FinalBlockId's component, as a name.
        end: Name,
    },
    /// A Data violates the packet format.
    #[error("{name}: {error}")]
    BadData {
        /// Name of the Data.
        name: Name,
        /// The decoding error.
        error: DecodeError,
    },
    /// Signature verification of a Data failed.
    #[error("{name}: {error}")]
    Verification {
        /// Name of the Data.
        name: Name,
        /// The verification error.
        error: VerificationError,
    },
    /// The end of the object is unknown, because segments contradict each other.
    #[error(transparent)]
    End(#[from] EndError),
    /// The content could not be written, or its file offset is unknown.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl FetchError {
    /// Returns true if nothing was received at all, as opposed to a wrong answer or a refusal.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self,
            Self::Discovery(ExpressError::Timeout { .. }) | Self::Segment { error: ExpressError::Timeout { .. }, .. }
        )
    }
}

struct Arrival {
    segment: u64,
    result: Result<Response, ExpressError>,
}

/// Makes one attempt to retrieve a segment; waits at most the retransmission time-out `rto` after `request.delay`.
async fn attempt(endpoint: &Endpoint, name: Name, request: SegmentRequest, rto: Duration, lifetime_ms: u64) -> Arrival {
    if !request.delay.is_zero() {
        tokio::time::sleep(request.delay).await;
    }
    let interest = InterestBuilder::new(name).lifetime_ms(lifetime_ms);
    let result = match tokio::time::timeout(rto, endpoint.request(interest)).await {
        Ok(result) => result,
        Err(_) => Err(ExpressError::Timeout { lifetime_ms: rto.as_millis() as u64 }),
    };
    Arrival { segment: request.segment, result }
}

struct Fetcher<'a, O> {
    name: Name,
    numbering: Numbering,
    options: &'a FetchOptions,
    output: &'a mut O,
    transfer: Transfer,
    /// Aborts the wait for a segment in flight, by segment number.
    waits: HashMap<u64, AbortHandle>,
    /// Number of NoRoute Nacks for each missing segment that got one.
    no_routes: HashMap<u64, u32>,
    unverified: u64,
    bytes: u64,
}

impl<O: Output> Fetcher<'_, O> {
    fn content<'d>(&mut self, data: &Data<'d>) -> Result<&'d [u8], FetchError> {
        if data.content_type == content_type::NACK {
            return Err(FetchError::ProducerNack(data.name.to_owned()));
        }
        match self.options.verification.check(data) {
            Ok(verified) => self.unverified += u64::from(!verified),
            Err(error) => return Err(FetchError::Verification { name: data.name.to_owned(), error }),
        }
        Ok(data.content)
    }

    fn handle(&mut self, arrival: Arrival) -> Result<(), FetchError> {
        let segment = arrival.segment;
        let now = Instant::now();
        self.waits.remove(&segment);
        let (attempts, error) = match arrival.result {
            Ok(response) => return self.segment(segment, &response),
            Err(error @ ExpressError::Timeout { .. }) => (self.transfer.on_timeout(now, segment), error),
            Err(ExpressError::Nack(reason)) => {
                // After a Duplicate Nack a new nonce is enough; other reasons need time.
                let delay = if reason == NackReason::DUPLICATE { Duration::ZERO } else { NACK_DELAY };
                let attempts = self.transfer.on_nack(now, segment, reason, delay);
                if let Some(attempts) = attempts.filter(|_| reason == NackReason::NO_ROUTE) {
                    let nacks = self.no_routes.entry(segment).or_insert(0);
                    *nacks += 1;
                    if *nacks >= MAX_NO_ROUTE_NACKS {
                        return Err(FetchError::Segment { segment, error: ExpressError::Nack(reason), attempts });
                    }
                }
                (attempts, ExpressError::Nack(reason))
            }
            Err(error) => return Err(FetchError::Segment { segment, error, attempts: 1 }),
        };
        match attempts {
            Some(attempts) if attempts >= self.options.max_attempts => {
                Err(FetchError::Segment { segment, error, attempts })
            }
            _ => Ok(()),
        }
    }

    fn segment(&mut self, segment: u64, response: &Response) -> Result<(), FetchError> {
        let data = response.data().map_err(|error| FetchError::BadData { name: self.name.clone(), error })?;
        let content = self.content(&data)?;
        let last = match data.final_block_id {
            Some(end) => Some(
                self.numbering
                    .segment(end)
                    .ok_or_else(|| FetchError::StrangeEnd { segment, end: Name::new().append(end) })?,
            ),
            None => None,
        };
        let marked = response.congestion_mark > 0;
        let rtt = response.round_trip_time();
        let arrived = self.transfer.on_data(response.received_at, segment, last, rtt, marked)?;
        if arrived.is_new {
            self.no_routes.remove(&segment);
            self.bytes += content.len() as u64;
            self.output.take(segment, content)?;
        }
        for lost in arrived.lost {
            if let Some(wait) = self.waits.remove(&lost) {
                wait.abort();
            }
        }
        Ok(())
    }

    fn progress(&self) -> FetchProgress {
        FetchProgress {
            bytes: self.bytes,
            segments: self.transfer.arrived(),
            total_segments: self.transfer.total(),
            counts: self.transfer.counts,
        }
    }

    fn report(self, discovery: DiscoveryMethod, started: Instant) -> FetchReport {
        let transfer = self.transfer;
        FetchReport {
            name: self.name,
            discovery,
            bytes: self.bytes,
            segments: transfer.arrived().max(1),
            elapsed: started.elapsed(),
            counts: transfer.counts,
            window_decreases: transfer.control.decreases(),
            largest_window: transfer.control.largest(),
            rtt: transfer.rtt,
            rtt_ns: transfer.rtt_ns,
            unverified: self.unverified,
        }
    }
}

/// Fetches the object `name` and passes its content to `output`. If `name` has no version, the newest one is fetched.
/// `progress` is called after every batch of answers.
///
/// # Errors
/// See [`FetchError`].
pub async fn fetch(
    endpoint: &Endpoint,
    name: &Name,
    output: &mut impl Output,
    options: &FetchOptions,
    mut progress: impl FnMut(FetchProgress),
) -> Result<FetchReport, FetchError> {
    let started = Instant::now();
    let found = discover(endpoint, name, options).await?;
    let initial = options.initial_window.unwrap_or(options.window.default_initial());
    let control = CongestionControl::new(options.window, initial, options.max_window);
    let reorder_limit = (options.reorder_bytes / MAX_PACKET_SIZE) as u64;
    let transfer = Transfer::new(control, RttEstimator::new(options.rto), reorder_limit);
    let mut fetcher = Fetcher {
        name: name.clone(),
        numbering: Numbering::default(),
        options,
        output,
        transfer,
        waits: HashMap::new(),
        no_routes: HashMap::new(),
        unverified: 0,
        bytes: 0,
    };
    let first = match found.object {
        FoundObject::Single(response) => {
            let data = response.data().map_err(|error| FetchError::BadData { name: name.clone(), error })?;
            let content = fetcher.content(&data)?;
            fetcher.name = data.name.to_owned();
            fetcher.bytes = content.len() as u64;
            fetcher.output.take(0, content)?;
            fetcher.output.finish(0).await?;
            return Ok(fetcher.report(found.method, started));
        }
        FoundObject::Segments { name, numbering, first, expected_last } => {
            fetcher.name = name;
            fetcher.numbering = numbering;
            fetcher.transfer.expect_last(expected_last);
            first
        }
    };
    let versioned = fetcher.name.clone();
    if let Some(response) = first {
        fetcher.segment(0, &response)?;
    }

    let mut flights = FuturesUnordered::new();
    while !fetcher.transfer.is_complete() {
        while let Some(mut request) = fetcher.transfer.next_request(Instant::now()) {
            request.delay = (request.delay * (1 << request.attempt.min(6)) / 2).min(MAX_NACK_DELAY);
            // The first retransmission may be early, before the time-out of the first Interest, so its own time-out is
            // not doubled.
            let rto = fetcher.transfer.rtt.rto_after(request.attempt.saturating_sub(1));
            let (wait, registration) = AbortHandle::new_pair();
            fetcher.waits.insert(request.segment, wait);
            let name = fetcher.numbering.name(&versioned, request.segment);
            flights.push(Abortable::new(attempt(endpoint, name, request, rto, options.lifetime_ms), registration));
        }
        let mut landed = match fetcher.transfer.next_send() {
            Some(at) if flights.is_empty() => {
                tokio::time::sleep_until(at.into()).await;
                continue;
            }
            Some(at) => match tokio::time::timeout_at(at.into(), flights.next()).await {
                Ok(landed) => landed,
                // The next Interest is due.
                Err(_) => continue,
            },
            None => flights.next().await,
        };
        if landed.is_none() {
            return Err(FetchError::Missing(fetcher.transfer.first_missing()));
        }
        // Answers that arrived in the same read are handled together, so that the Interests they permit leave together.
        while let Some(result) = landed {
            if let Ok(arrival) = result {
                fetcher.handle(arrival)?;
            }
            landed = flights.next().now_or_never().flatten();
        }
        progress(fetcher.progress());
        fetcher.output.write().await.map_err(OutputError::Write)?;
    }
    drop(flights);
    let last = fetcher.transfer.first_missing().saturating_sub(1);
    fetcher.output.finish(last).await?;
    Ok(fetcher.report(found.method, started))
}
