//! State of one next hop: its hardware address, and when to request that address again.
//!
//! There is a record only for next hops that faces use, so no sender can fill the memory. A hardware address is
//! accepted only from an answer to a request of this router. A known address stays valid while its host answers. If
//! another address is claimed for the next hop, the known host is asked soon; only if it does not answer, the request
//! is broadcast.

use std::collections::VecDeque;

use namehop_packet::{PacketBuffer, Timestamp};

use namehop_face::address::MacAddress;

/// Time for which an answer is valid. Then the known host is asked again, while packets are still sent to it.
const REACHABLE_MS: u64 = 30_000;
/// Interval between two requests.
pub(super) const QUESTION_MS: u64 = 1_000;
/// Number of unanswered requests after which a next hop is unreachable.
pub(super) const QUESTIONS: u32 = 3;
/// Maximum number of times that the interval doubles while the next hop is unreachable: up to 16 s.
const MAX_DOUBLINGS: u32 = 4;
/// Maximum number of frames that wait for the first answer.
pub(super) const MAX_WAITING: usize = 16;

/// A next hop.
#[derive(Debug)]
pub(super) struct Neighbour {
    /// Hardware address, once the next hop has answered.
    address: Option<MacAddress>,
    /// Requests since the last answer.
    questions: u32,
    /// When the next request is due.
    due: Timestamp,
    last_question: Timestamp,
    /// Frames that are complete except for the hardware address, each with the output index of its face.
    pub(super) waiting: VecDeque<(u32, PacketBuffer)>,
    /// Output indices of the faces that use this next hop.
    pub(super) outputs: Vec<u32>,
}

/// A due action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Send a request to this hardware address, or broadcast it.
    Ask(Option<MacAddress>),
    /// Broadcast a request, and drop the waiting frames; the known hardware address is invalid.
    AskAndGiveUp,
}

/// Result of a message about a next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing new.
    Nothing,
    /// The hardware address is known from now on.
    Resolved(MacAddress),
    /// The message has another hardware address than the known one.
    Conflict,
}

impl Neighbour {
    /// Creates the record of an unresolved next hop.
    pub(super) fn new(now: Timestamp) -> Neighbour {
        Neighbour {
            address: None,
            questions: 0,
            due: now,
            last_question: Timestamp(0),
            waiting: VecDeque::new(),
            outputs: Vec::new(),
        }
    }

    /// Returns the hardware address.
    pub(super) fn address(&self) -> Option<MacAddress> {
        self.address
    }

    /// Returns when [`Neighbour::tick`] has to be called next.
    pub(super) fn due(&self) -> Timestamp {
        self.due
    }

    /// Returns how many more frames may wait for an answer.
    pub(super) fn room(&self) -> usize {
        if self.questions > QUESTIONS { 0 } else { MAX_WAITING.saturating_sub(self.waiting.len()) }
    }

    /// Forgets the hardware address, because the link was interrupted and another host may be connected now.
    pub(super) fn forget(&mut self, now: Timestamp) {
        (self.address, self.questions, self.due) = (None, 0, now);
    }

    /// Returns the action that is due now, if any.
    pub(super) fn tick(&mut self, now: Timestamp) -> Option<Due> {
        if now < self.due {
            return None;
        }
        let gives_up = self.questions == QUESTIONS;
        if gives_up && self.address.take().is_some() {
            // The known host does not answer. Broadcast a request as if nothing were known; packets wait.
            self.questions = 0;
        }
        self.questions = self.questions.saturating_add(1);
        self.last_question = now;
        let doublings = self.questions.saturating_sub(QUESTIONS).min(MAX_DOUBLINGS);
        self.due = now.plus_ms(QUESTION_MS << doublings);
        Some(if gives_up { Due::AskAndGiveUp } else { Due::Ask(self.address) })
    }

    /// Handles an answer to a request, with a hardware address; an answer without one confirms the known address.
    pub(super) fn answered(&mut self, now: Timestamp, address: Option<MacAddress>) -> Heard {
        match (self.address, address.or(self.address)) {
            (_, None) => Heard::Nothing,
            (Some(known), Some(said)) if known != said => self.doubt(now),
            (known, Some(said)) => {
                if self.questions == 0 {
                    // There was no request.
                    return Heard::Nothing;
                }
                (self.address, self.questions, self.due) = (Some(said), 0, now.plus_ms(REACHABLE_MS));
                if known.is_none() { Heard::Resolved(said) } else { Heard::Nothing }
            }
        }
    }

    /// Handles an unsolicited claim of this hardware address: it only causes a request soon.
    pub(super) fn claimed(&mut self, now: Timestamp, address: MacAddress) -> Heard {
        match self.address {
            Some(known) if known == address => Heard::Nothing,
            Some(_) => self.doubt(now),
            None => {
                if self.questions > QUESTIONS {
                    self.questions = 0;
                }
                self.due = self.due.min(self.next_question(now));
                Heard::Nothing
            }
        }
    }

    /// Handles another hardware address than the known one: the known host is asked soon whether it is still there.
    fn doubt(&mut self, now: Timestamp) -> Heard {
        if self.questions == 0 {
            self.due = self.next_question(now);
        }
        Heard::Conflict
    }

    /// Returns the earliest time for a request: at most one per interval, however many messages arrive.
    fn next_question(&self, now: Timestamp) -> Timestamp {
        now.max(self.last_question.plus_ms(QUESTION_MS))
    }
}
