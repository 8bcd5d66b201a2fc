//! Bookkeeping of one fetch, without input or output: which segments to ask for, what arrived,
//! what can be written, and how the congestion window moves.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::congestion::Window;
use super::control::CongestionControl;
use super::rtt::RttEstimator;

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

/// Segments of one object on their way.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) control: CongestionControl,
    pub(super) rtt: RttEstimator,
    /// Segments that may wait for an earlier one.
    reorder_limit: u64,
    final_segment: Option<u64>,
    any_arrived: bool,
    next_new: u64,
    next_write: u64,
    in_flight: HashMap<u64, SentInterest>,
    /// Segments in flight, in the order sent.
    by_order: BTreeMap<u64, u64>,
    next_order: u64,
    again: VecDeque<Request>,
    waiting: BTreeMap<u64, Vec<u8>>,
    last_back_off: Option<Instant>,
    pub(super) retransmissions: u64,
    pub(super) timeouts: u64,
    pub(super) nacks: u64,
    pub(super) marks: u64,
    pub(super) duplicates: u64,
}

impl Transfer {
    pub(super) fn new(window: Window, rtt: RttEstimator, reorder_limit: u64) -> Self {
        Self {
            control: CongestionControl::new(window),
            rtt,
            reorder_limit: reorder_limit.max(1),
            final_segment: None,
            any_arrived: false,
            next_new: 0,
            next_write: 0,
            in_flight: HashMap::new(),
            by_order: BTreeMap::new(),
            next_order: 0,
            again: VecDeque::new(),
            waiting: BTreeMap::new(),
            last_back_off: None,
            retransmissions: 0,
            timeouts: 0,
            nacks: 0,
            marks: 0,
            duplicates: 0,
        }
    }

    fn start(&mut self, now: Instant, request: Request) -> Request {
        let sent = SentInterest { order: self.next_order, attempt: request.attempt, sent_at: now, overtaken: 0 };
        self.next_order += 1;
        self.by_order.insert(sent.order, request.segment);
        self.in_flight.insert(request.segment, sent);
        request
    }

    fn end(&mut self, segment: u64) -> Option<SentInterest> {
        let sent = self.in_flight.remove(&segment)?;
        self.by_order.remove(&sent.order);
        Some(sent)
    }

    /// The next Interest that the window allows, which the caller must send.
    pub(super) fn next_request(&mut self, now: Instant) -> Option<Request> {
        if self.in_flight.len() >= self.control.allowed() {
            return None;
        }
        while let Some(request) = self.again.pop_front() {
            if self.is_wanted(request.segment) {
                self.retransmissions += 1;
                return Some(self.start(now, request));
            }
        }
        // The first segment normally tells how many there are: asking for more before would ask
        // for segments that do not exist.
        let first_alone = !self.any_arrived && self.next_new > 0;
        let beyond_end = self.final_segment.is_some_and(|last| self.next_new > last);
        let too_far_ahead = self.next_new - self.next_write >= self.reorder_limit;
        if first_alone || beyond_end || too_far_ahead {
            return None;
        }
        let request = Request { segment: self.next_new, attempt: 0, delay: Duration::ZERO };
        self.next_new += 1;
        Some(self.start(now, request))
    }

    /// Whether a segment belongs to the object and has not arrived.
    pub(super) fn is_wanted(&self, segment: u64) -> bool {
        segment >= self.next_write
            && self.final_segment.is_none_or(|last| segment <= last)
            && !self.waiting.contains_key(&segment)
    }

    /// A segment arrived. `rtt` is the time of its round trip, `final_segment` what its FinalBlockId
    /// says. Returns the segments that are now taken for lost and will be asked for again: the caller
    /// stops waiting for them.
    pub(super) fn on_data(
        &mut self,
        now: Instant,
        segment: u64,
        content: Vec<u8>,
        final_segment: Option<u64>,
        rtt: Duration,
        marked: bool,
    ) -> Vec<u64> {
        let sent = self.end(segment);
        if !self.is_wanted(segment) {
            self.duplicates += 1;
            return Vec::new();
        }
        self.any_arrived = true;
        if let Some(last) = final_segment {
            // Later segments may extend the object; they never shorten what was written.
            self.final_segment = Some(last.max(segment));
        }
        // A retransmitted segment may have been answered to either Interest: no sample (RFC 6298).
        let rtt = Some(rtt).filter(|_| sent.is_some_and(|sent| sent.attempt == 0));
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
        }
        self.marks += u64::from(marked && sent.is_some());
        self.control.on_data(now, sent.map(|sent| sent.sent_at), rtt, self.rtt.min(), marked);
        self.next_new = self.next_new.max(segment + 1);
        self.waiting.insert(segment, content);
        sent.map(|sent| self.find_lost(now, sent.order)).unwrap_or_default()
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
            self.lose(now, segment, Duration::ZERO);
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
        self.timeouts += 1;
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
    pub(super) fn on_nack(&mut self, now: Instant, segment: u64, congestion: bool, delay: Duration) -> Option<u32> {
        self.nacks += 1;
        let sent = self.end(segment).filter(|_| self.is_wanted(segment))?;
        if congestion {
            self.control.on_congestion(now, sent.sent_at);
        }
        Some(self.request_again(segment, sent, delay))
    }

    /// Content that can be written now, in order.
    pub(super) fn take_ready(&mut self) -> Option<Vec<u8>> {
        let content = self.waiting.remove(&self.next_write)?;
        self.next_write += 1;
        Some(content)
    }

    /// Whether everything was written.
    pub(super) fn is_complete(&self) -> bool {
        self.final_segment.is_some_and(|last| self.next_write > last)
    }

    /// Segments written so far.
    pub(super) fn written(&self) -> u64 {
        self.next_write
    }

    /// Number of segments, once known.
    pub(super) fn total(&self) -> Option<u64> {
        self.final_segment.map(|last| last.saturating_add(1))
    }
}
