//! Detects peers that have fallen silent: a path that drops packets reports no error, so only missing answers show it.
//!
//! A producer need not answer an Interest, so silence alone proves nothing. But a Namehop answers the question whether
//! it knows PIT tokens, and NFD answers an Interest without a route (`registry::probe_interests`). A peer that was sent
//! something and sends nothing is asked in both ways; a known Namehop only in the first. If the peer has answered
//! before, and sends nothing for `blocked_timeout_ms`, its face goes down. Peers that answer neither stay up.

use std::cell::Cell;
use std::time::Duration;

/// Number of checks within `blocked_timeout_ms`.
pub const LOOKS: u32 = 5;
/// Interval between two questions to a peer that is down.
pub const PROBE_INTERVAL: Duration = Duration::from_millis(500);

/// Tracks whether a peer answers.
#[derive(Debug, Default)]
pub struct Silence {
    /// Something was sent to the peer, and nothing was received since.
    is_awaited: Cell<bool>,
    /// Number of checks since then.
    looks: Cell<u32>,
    /// The peer has answered a question.
    answers: Cell<bool>,
}

/// Result of a check of a peer.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No further check is needed until something is sent to the peer.
    Fine,
    /// Check the peer again.
    Wait,
    /// Ask the peer, and check it again.
    Ask,
    /// The peer has stopped answering.
    Silent,
}

impl Silence {
    /// Notes that something was sent to the peer, other than the answer to a question.
    pub fn note_sent(&self) {
        self.is_awaited.set(true);
    }

    /// Notes that something was received from the peer.
    pub fn note_heard(&self) {
        self.is_awaited.set(false);
        self.looks.set(0);
    }

    /// Notes that the received packet was the answer to a question.
    pub fn note_answered(&self) {
        self.answers.set(true);
    }

    /// Clears the note that the peer has answered.
    pub fn forget_answers(&self) {
        self.answers.set(false);
    }

    /// Checks the peer; called [`LOOKS`] times within `blocked_timeout_ms`.
    pub fn look(&self) -> Verdict {
        if !self.is_awaited.get() {
            return Verdict::Fine;
        }
        let looks = self.looks.get().saturating_add(1);
        self.looks.set(looks);
        match looks {
            // The packet sent last may still be answered.
            1 => Verdict::Wait,
            2 => Verdict::Ask,
            // The peer ignores questions.
            _ if !self.answers.get() => Verdict::Fine,
            LOOKS.. => Verdict::Silent,
            _ => Verdict::Ask,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the results of checks, with the events before each: sent, heard.
    fn verdicts(silence: &Silence, before: &[(bool, bool)]) -> Vec<Verdict> {
        let look = |&(sent, heard): &(bool, bool)| {
            if sent {
                silence.note_sent();
            }
            if heard {
                silence.note_heard();
            }
            silence.look()
        };
        before.iter().map(look).collect()
    }

    #[test]
    fn a_peer_that_has_answered_is_silent_after_some_looks() {
        use Verdict::{Ask, Fine, Silent, Wait};
        let silence = Silence::default();
        silence.note_heard();
        silence.note_answered();
        let before = [(false, false), (true, false), (false, false), (true, false), (false, false), (true, false)];
        assert_eq!(verdicts(&silence, &before), [Fine, Wait, Ask, Ask, Ask, Silent]);
        let before = [(true, true), (true, false), (false, false), (false, true), (false, false), (true, false)];
        assert_eq!(verdicts(&silence, &before), [Fine, Wait, Ask, Fine, Fine, Wait]);
    }

    #[test]
    fn a_peer_that_never_answered_is_asked_once_in_each_silence() {
        use Verdict::{Ask, Fine, Wait};
        let silence = Silence::default();
        let busy = [(true, false); 7];
        assert_eq!(verdicts(&silence, &busy), [Wait, Ask, Fine, Fine, Fine, Fine, Fine]);
        assert_eq!(verdicts(&silence, &[(true, true), (true, false), (true, false)]), [Fine, Wait, Ask]);
        silence.note_heard();
        silence.note_answered();
        silence.forget_answers();
        assert_eq!(verdicts(&silence, &busy), [Wait, Ask, Fine, Fine, Fine, Fine, Fine]);
    }
}
