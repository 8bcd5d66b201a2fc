//! Bookkeeping of one fetch, without input or output: which segments to ask for, which have arrived, and how the congestion
//! window moves.

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

/// Which segment to ask for next, and whether it was asked for before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) segment: u64,
    /// 0 at the first attempt.
    pub(super) attempt: u32,
    /// Time to wait before sending, after a Nack.
    pub(super) delay: Duration,
}

/// A segment can count as lost when Data of this many later Interests have arrived. Fewer may arrive earlier
/// because of reordering on several paths.
const REORDERING_THRESHOLD: u32 = 3;

/// An Interest that was sent and not answered.
#[derive(Clone, Copy, Debug)]
struct SentInterest {
    /// Interests are numbered as they are sent.
    order: u64,
    attempt: u32,
    sent_at: Instant,
    /// Data of Interests sent later that have arrived.
    overtaken: u32,
}

/// What a Data has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arrived {
    /// Its segment had not come before: its content is wanted.
    pub(super) is_new: bool,
    /// Segments that are now taken for lost and will be asked for again: the caller stops waiting for them.
    pub(super) lost: Vec<u64>,
}

/// Segments of one object on their way.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) control: CongestionControl,
    pub(super) rtt: RttEstimator,
    pub(super) rtt_ns: Histogram<u64>,
    pub(super) counts: FetchCounts,
    /// How far behind the first missing segment others are asked for.
    reorder_limit: u64,
    final_segment: Option<u64>,
    /// Number of the last segment that exists as far as is known before the first one has come.
    expected_last: u64,
    next_new: u64,
    first_missing: u64,
    /// Segments that have arrived behind the first missing one.
    arrived: BTreeSet<u64>,
    in_flight: HashMap<u64, SentInterest>,
    /// Segments in flight, in the order sent.
    by_order: BTreeMap<u64, u64>,
    next_order: u64,
    again: VecDeque<Request>,
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

    fn start(&mut self, now: Instant, request: Request) -> Request {
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

    /// The next Interest that congestion control allows, which the caller must send.
    pub(super) fn next_request(&mut self, now: Instant) -> Option<Request> {
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
                Request { segment: self.next_new - 1, attempt: 0, delay: Duration::ZERO }
            }
        };
        Some(self.start(now, request))
    }

    /// Sets the number of the last segment according to metadata. It is a hint: the segments decide where the object ends.
    pub(super) fn expect_last(&mut self, expected_last: Option<u64>) {
        self.expected_last = expected_last.unwrap_or(0);
        if self.expected_last > 0 {
            self.control.skip_first();
        }
    }

    /// Whether a segment is to be asked for, as soon as congestion control allows it.
    fn has_request(&self) -> bool {
        // The first segment normally tells how many there are. Until it has come, no segment is requested that need not exist.
        let beyond_expected = self.first_missing == 0 && self.next_new > self.expected_last;
        let beyond_end = self.final_segment.is_some_and(|last| self.next_new > last);
        let too_far_ahead = self.next_new - self.first_missing >= self.reorder_limit;
        !self.again.is_empty() || !(beyond_expected || beyond_end || too_far_ahead)
    }

    /// When an Interest may leave although nothing arrives before; `None` while only Data, or a time-out, can make room.
    pub(super) fn next_send(&self) -> Option<Instant> {
        self.control.next_send(self.in_flight.len()).filter(|_| self.has_request())
    }

    /// Whether a segment belongs to the object and has not arrived.
    pub(super) fn is_wanted(&self, segment: u64) -> bool {
        segment >= self.first_missing
            && self.final_segment.is_none_or(|last| segment <= last)
            && !self.arrived.contains(&segment)
    }

    /// A segment arrived. `rtt` is the time of its round trip, `final_segment` what its FinalBlockId says.
    ///
    /// # Errors
    /// What it says of the object's end contradicts what came before; nothing has changed then.
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
        // A retransmitted segment may have been answered to either Interest: no sample (RFC 6298).
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

    /// The object's last segment, after `segment` has said which it is: `said`.
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

    /// Segments that several later ones have overtaken, and that are late as well: one condition alone
    /// also holds for packets that took another path.
    fn find_lost(&mut self, now: Instant, order: u64) -> Vec<u64> {
        let Some(late_after) = self.rtt.late_after() else { return Vec::new() };
        let mut lost = Vec::new();
        for segment in self.by_order.range(..order).map(|(_, segment)| *segment) {
            let Some(sent) = self.in_flight.get_mut(&segment) else { continue };
            sent.overtaken += 1;
            // Only the first Interest counts as lost in this way; after that the time-out decides. Otherwise a segment that
            // nobody has would be asked for as often as others arrive.
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

    /// Marks an Interest as lost; gives the number of attempts, or `None` when the segment is not wanted any more.
    fn lose(&mut self, now: Instant, segment: u64, delay: Duration) -> Option<u32> {
        let sent = self.end(segment).filter(|_| self.is_wanted(segment))?;
        self.control.on_loss(now, sent.sent_at);
        Some(self.request_again(segment, sent, delay))
    }

    fn request_again(&mut self, segment: u64, sent: SentInterest, delay: Duration) -> u32 {
        let attempt = sent.attempt + 1;
        self.again.push_back(Request { segment, attempt, delay });
        attempt
    }

    /// The retransmission timer of a segment expired. Returns the number of attempts so far, or
    /// `None` when the segment is not wanted any more.
    pub(super) fn on_timeout(&mut self, now: Instant, segment: u64) -> Option<u32> {
        let attempts = self.lose(now, segment, Duration::ZERO)?;
        self.counts.timeouts += 1;
        // One loss usually shows in many timers: they back off once.
        let rto = self.rtt.rto();
        if self.last_back_off.is_none_or(|last| now.saturating_duration_since(last) >= rto) {
            self.last_back_off = Some(now);
            self.rtt.back_off();
        }
        Some(attempts)
    }

    /// A Nack came. Returns the number of attempts so far, or `None` when the segment is not wanted
    /// any more.
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

    /// Whether every segment has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.final_segment.is_some_and(|last| self.first_missing > last)
    }

    /// The first segment that has not arrived.
    pub(super) fn first_missing(&self) -> u64 {
        self.first_missing
    }

    /// Segments that have arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.first_missing + self.arrived.len() as u64
    }

    /// Number of segments, once known.
    pub(super) fn total(&self) -> Option<u64> {
        self.final_segment.map(|last| last.saturating_add(1))
    }
}
