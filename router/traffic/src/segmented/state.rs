//! State of one fetch, without input or output: segments to request, segments that have arrived, and the congestion
//! window.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use namehop_wire::lp::NackReason;

use super::control::CongestionControl;
use super::counts::{EndError, FetchCounts};
use super::rtt::RttEstimator;
use crate::rtt_histogram::rtt_histogram;

/// A segment to request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentRequest {
    pub(super) segment: u64,
    /// Number of attempts before this one.
    pub(super) attempt: u32,
    /// Delay before sending, after a Nack.
    pub(super) delay: Duration,
}

/// A segment can count as lost once Data of this many later Interests have arrived. Reordering between paths can make
/// fewer arrive earlier.
const REORDERING_THRESHOLD: u32 = 3;

/// A sent Interest without an answer.
#[derive(Clone, Copy, Debug)]
struct SentInterest {
    /// Sequence number in sending order.
    order: u64,
    attempt: u32,
    sent_at: Instant,
    /// Number of later Interests with Data that has arrived.
    overtaken: u32,
}

/// Result of an arrived Data.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arrived {
    /// The segment had not arrived before, so its content is needed.
    pub(super) is_new: bool,
    /// Segments that now count as lost and will be requested again; the caller stops waiting for them.
    pub(super) lost: Vec<u64>,
}

/// State of the transfer of one object's segments.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) control: CongestionControl,
    pub(super) rtt: RttEstimator,
    pub(super) rtt_ns: Histogram<u64>,
    pub(super) counts: FetchCounts,
    /// Segments are requested only less than this many beyond the first missing one.
    reorder_limit: u64,
    final_segment: Option<u64>,
    /// Number of the last segment that is expected to exist before the first one has arrived.
    expected_last: u64,
    next_new: u64,
    first_missing: u64,
    /// Segments beyond the first missing one that have arrived.
    arrived: BTreeSet<u64>,
    in_flight: HashMap<u64, SentInterest>,
    /// Segments in flight by sequence number of their Interests.
    by_order: BTreeMap<u64, u64>,
    next_order: u64,
    again: VecDeque<SegmentRequest>,
    last_back_off: Option<Instant>,
}

impl Transfer {
    pub(super) fn new(control: CongestionControl, rtt: RttEstimator, reorder_limit: u64) -> Self {
        Self {
            control,
            rtt,
            rtt_ns: rtt_histogram(),
            counts: FetchCounts::default(),
            reorder_limit: reorder_limit.max(1),
            final_segment: None,
            expected_last: 0,
            next_new: 0,
            first_missing: 0,
            arrived: BTreeSet::new(),
            in_flight: HashMap::new(),
            by_order: BTreeMap::new(),
            next_order: 0,
            again: VecDeque::new(),
            last_back_off: None,
        }
    }

    fn start(&mut self, now: Instant, request: SegmentRequest) -> SegmentRequest {
        let sent = SentInterest { order: self.next_order, attempt: request.attempt, sent_at: now, overtaken: 0 };
        self.next_order += 1;
        self.counts.interests += 1;
        self.control.on_send(now);
        self.by_order.insert(sent.order, request.segment);
        self.in_flight.insert(request.segment, sent);
        request
    }

    fn end(&mut self, segment: u64) -> Option<SentInterest> {
        let sent = self.in_flight.remove(&segment)?;
        self.by_order.remove(&sent.order);
        Some(sent)
    }

    /// Returns the next request if congestion control allows one. The caller must send it.
    pub(super) fn next_request(&mut self, now: Instant) -> Option<SegmentRequest> {
        while self.again.front().is_some_and(|request| !self.is_wanted(request.segment)) {
            self.again.pop_front();
        }
        if !self.has_request() || !self.control.may_send(now, self.in_flight.len()) {
            return None;
        }
        let request = match self.again.pop_front() {
            Some(request) => {
                self.counts.retransmissions += 1;
                request
            }
            None => {
                self.next_new += 1;
                SegmentRequest { segment: self.next_new - 1, attempt: 0, delay: Duration::ZERO }
            }
        };
        Some(self.start(now, request))
    }

    /// Sets the number of the last segment according to the metadata. It is a hint only: the segments themselves say
    /// where the object ends.
    pub(super) fn expect_last(&mut self, expected_last: Option<u64>) {
        self.expected_last = expected_last.unwrap_or(0);
        if self.expected_last > 0 {
            self.control.skip_first();
        }
    }

    /// Returns true if a segment can be requested as soon as congestion control allows it.
    fn has_request(&self) -> bool {
        // The first segment normally holds the number of segments. Until it arrives, only segments that are expected to
        // exist are requested.
        let beyond_expected = self.first_missing == 0 && self.next_new > self.expected_last;
        let beyond_end = self.final_segment.is_some_and(|last| self.next_new > last);
        let too_far_ahead = self.next_new - self.first_missing >= self.reorder_limit;
        !self.again.is_empty() || !(beyond_expected || beyond_end || too_far_ahead)
    }

    /// Returns when an Interest may be sent if nothing arrives before. `None` if sending has to wait for Data or a
    /// time-out.
    pub(super) fn next_send(&self) -> Option<Instant> {
        self.control.next_send(self.in_flight.len()).filter(|_| self.has_request())
    }

    /// Returns true if a segment belongs to the object and has not arrived.
    pub(super) fn is_wanted(&self, segment: u64) -> bool {
        segment >= self.first_missing
            && self.final_segment.is_none_or(|last| segment <= last)
            && !self.arrived.contains(&segment)
    }

    /// Records an arrived segment. `rtt` is its round-trip time, `final_segment` the segment in its FinalBlockId.
    ///
    /// # Errors
    /// Fails, without changing anything, if its FinalBlockId contradicts earlier segments.
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        segment: u64,
        final_segment: Option<u64>,
        rtt: Duration,
        marked: bool,
    ) -> Result<Arrived, EndError> {
        let last = self.learn_end(segment, final_segment)?;
        let sent = self.end(segment);
        self.counts.data += u64::from(sent.is_some());
        if !self.is_wanted(segment) {
            self.counts.duplicates += 1;
            return Ok(Arrived::default());
        }
        self.final_segment = last;
        // A retransmitted segment may answer either Interest, so it is not a sample (RFC 6298).
        let rtt = Some(rtt).filter(|_| sent.is_some_and(|sent| sent.attempt == 0));
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
            self.rtt_ns.saturating_record(u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX));
        }
        self.counts.congestion_marks += u64::from(marked && sent.is_some());
        self.control.on_data(now, sent.map(|sent| sent.sent_at), rtt, self.rtt.min(), marked);
        self.next_new = self.next_new.max(segment.saturating_add(1));
        self.arrived.insert(segment);
        while self.arrived.remove(&self.first_missing) {
            self.first_missing += 1;
        }
        let lost = sent.map(|sent| self.find_lost(now, sent.order)).unwrap_or_default();
        Ok(Arrived { is_new: true, lost })
    }

    /// Returns the object's last segment, given that the FinalBlockId of `segment` names `said`.
    fn learn_end(&self, segment: u64, said: Option<u64>) -> Result<Option<u64>, EndError> {
        let Some(said) = said else { return Ok(self.final_segment) };
        if let Some(was) = self.final_segment.filter(|was| *was != said) {
            return Err(EndError::Changed { segment, said, was });
        }
        let before = self.first_missing.checked_sub(1);
        let highest = self.arrived.last().copied().or(before).map_or(segment, |highest| highest.max(segment));
        if self.final_segment.is_none() && highest > said {
            return Err(EndError::Passed { segment, said, highest });
        }
        Ok(Some(said))
    }

    /// Requests again the segments that several later ones have overtaken and that are late, and returns them. Either
    /// condition alone also holds for packets that took another path.
    fn find_lost(&mut self, now: Instant, order: u64) -> Vec<u64> {
        let Some(late_after) = self.rtt.late_after() else { return Vec::new() };
        let mut lost = Vec::new();
        for segment in self.by_order.range(..order).map(|(_, segment)| *segment) {
            let Some(sent) = self.in_flight.get_mut(&segment) else { continue };
            sent.overtaken += 1;
            // Only the first Interest counts as lost in this way; retransmissions wait for the time-out. Otherwise a
            // missing segment would be requested as often as other segments arrive.
            let is_first = sent.attempt == 0;
            if is_first
                && sent.overtaken >= REORDERING_THRESHOLD
                && now.saturating_duration_since(sent.sent_at) > late_after
            {
                lost.push(segment);
            }
        }
        for &segment in &lost {
            self.counts.overtaken += u64::from(self.lose(now, segment, Duration::ZERO).is_some());
        }
        lost
    }

    /// Records an Interest as lost and requests its segment again. Returns the number of attempts so far, or `None` if
    /// the segment is not needed.
    fn lose(&mut self, now: Instant, segment: u64, delay: Duration) -> Option<u32> {
        let sent = self.end(segment).filter(|_| self.is_wanted(segment))?;
        self.control.on_loss(now, sent.sent_at);
        Some(self.request_again(segment, sent, delay))
    }

    fn request_again(&mut self, segment: u64, sent: SentInterest, delay: Duration) -> u32 {
        let attempt = sent.attempt + 1;
        self.again.push_back(SegmentRequest { segment, attempt, delay });
        attempt
    }

    /// Handles an expired retransmission timer. Returns the number of attempts so far, or `None` if the segment is not
    /// needed.
    pub(super) fn on_timeout(&mut self, now: Instant, segment: u64) -> Option<u32> {
        let attempts = self.lose(now, segment, Duration::ZERO)?;
        self.counts.timeouts += 1;
        // One loss usually expires many timers; they back off once.
        let rto = self.rtt.rto();
        if self.last_back_off.is_none_or(|last| now.saturating_duration_since(last) >= rto) {
            self.last_back_off = Some(now);
            self.rtt.back_off();
        }
        Some(attempts)
    }

    /// Handles a Nack. Returns the number of attempts so far, or `None` if the segment is not needed.
    pub(super) fn on_nack(&mut self, now: Instant, segment: u64, reason: NackReason, delay: Duration) -> Option<u32> {
        let sent = self.end(segment)?;
        self.counts.count_nack(reason);
        if !self.is_wanted(segment) {
            return None;
        }
        if reason == NackReason::CONGESTION {
            self.control.on_congestion(now, sent.sent_at);
        }
        Some(self.request_again(segment, sent, delay))
    }

    /// Returns true if every segment has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.final_segment.is_some_and(|last| self.first_missing > last)
    }

    /// Returns the first segment that has not arrived.
    pub(super) fn first_missing(&self) -> u64 {
        self.first_missing
    }

    /// Returns the number of segments that have arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.first_missing + self.arrived.len() as u64
    }

    /// Returns the number of segments, once known.
    pub(super) fn total(&self) -> Option<u64> {
        self.final_segment.map(|last| last.saturating_add(1))
    }
}
