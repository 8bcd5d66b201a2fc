//! What is known of one next hop: its hardware address, and when that is asked for again.
//!
//! There is one for each next hop that faces use, and none for anybody else, so nobody can fill memory by sending. A hardware
//! address is taken from an answer to a question of ours only. The one that answers keeps its place: another one that is heard of
//! makes us ask the one that we know, and only when that stays silent is everybody asked.

use std::collections::VecDeque;

use namehop_packet::{PacketBuffer, Timestamp};

use crate::encapsulation::MacAddress;

/// An answer holds so long; then its sender is asked again, while packets go on to it.
const REACHABLE_MS: u64 = 30_000;
/// Pause between two questions.
pub(super) const QUESTION_MS: u64 = 1_000;
/// So many questions without an answer make a next hop unreachable.
pub(super) const QUESTIONS: u32 = 3;
/// How often the pause doubles between questions to one that is unreachable: up to 16 s.
const MAX_DOUBLINGS: u32 = 4;
/// Frames that may wait for the first answer.
pub(super) const MAX_WAITING: usize = 16;

/// A next hop.
#[derive(Debug)]
pub(super) struct Neighbour {
    /// Its hardware address, once it has answered.
    address: Option<MacAddress>,
    /// Questions since the last answer.
    questions: u32,
    /// When the next question is due.
    due: Timestamp,
    last_question: Timestamp,
    /// Frames with all but its hardware address, by the place of their face among the outputs, until it answers.
    pub(super) waiting: VecDeque<(u32, PacketBuffer)>,
    /// Places of the faces that use it.
    pub(super) outputs: Vec<u32>,
}

/// What is to be done at a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Ask this hardware address, or everybody.
    Ask(Option<MacAddress>),
    /// The same, and what waited is given up; the hardware address no longer counts.
    AskAndGiveUp,
}

/// What has become of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is what was known, or says nothing.
    Nothing,
    /// The hardware address is known from now on.
    Resolved(MacAddress),
    /// Another hardware address than the one that is known.
    Conflict,
}

impl Neighbour {
    /// One that nothing is known of.
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

    /// Its hardware address.
    pub(super) fn address(&self) -> Option<MacAddress> {
        self.address
    }

    /// When [`Neighbour::tick`] has something to do.
    pub(super) fn due(&self) -> Timestamp {
        self.due
    }

    /// How many more frames may wait for its answer.
    pub(super) fn room(&self) -> usize {
        if self.questions > QUESTIONS { 0 } else { MAX_WAITING.saturating_sub(self.waiting.len()) }
    }

    /// Forgets the hardware address: the link was interrupted, so another one may be there.
    pub(super) fn forget(&mut self, now: Timestamp) {
        (self.address, self.questions, self.due) = (None, 0, now);
    }

    /// What is to be done now, if anything.
    pub(super) fn tick(&mut self, now: Timestamp) -> Option<Due> {
        if now < self.due {
            return None;
        }
        let gives_up = self.questions == QUESTIONS;
        if gives_up && self.address.take().is_some() {
            // The one we knew is silent. Everybody is asked, as if nothing had been known, and packets wait.
            self.questions = 0;
        }
        self.questions = self.questions.saturating_add(1);
        self.last_question = now;
        let doublings = self.questions.saturating_sub(QUESTIONS).min(MAX_DOUBLINGS);
        self.due = now.plus_ms(QUESTION_MS << doublings);
        Some(if gives_up { Due::AskAndGiveUp } else { Due::Ask(self.address) })
    }

    /// An answer to a question of ours came from `address`; `None`: without one, which confirms the one that is known.
    pub(super) fn answered(&mut self, now: Timestamp, address: Option<MacAddress>) -> Heard {
        match (self.address, address.or(self.address)) {
            (_, None) => Heard::Nothing,
            (Some(known), Some(said)) if known != said => self.doubt(now),
            (known, Some(said)) => {
                if self.questions == 0 {
                    // Nobody asked.
                    return Heard::Nothing;
                }
                (self.address, self.questions, self.due) = (Some(said), 0, now.plus_ms(REACHABLE_MS));
                if known.is_none() { Heard::Resolved(said) } else { Heard::Nothing }
            }
        }
    }

    /// It is said without having been asked to have this hardware address: reason to ask soon, and no more.
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

    /// Another hardware address than the known one was named: the known one is asked soon whether it is still there.
    fn doubt(&mut self, now: Timestamp) -> Heard {
        if self.questions == 0 {
            self.due = self.next_question(now);
        }
        Heard::Conflict
    }

    /// The earliest time for a question: whatever is heard, not more than one in a while.
    fn next_question(&self, now: Timestamp) -> Timestamp {
        now.max(self.last_question.plus_ms(QUESTION_MS))
    }
}
