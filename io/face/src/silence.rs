//! Peers that have fallen silent: a path that drops packets says nothing, so only the want of answers tells.
//!
//! A producer need not answer an Interest, so silence alone proves nothing. But a Namehop answers the question whether it knows PIT
//! tokens. A peer that was sent something and sends nothing is asked; if it has answered such questions before, and nothing comes from
//! it for the time that a peer may be blocked, its face is down. Peers that run another forwarder ignore the question and stay up.

use std::cell::Cell;
use std::time::Duration;

/// Looks in the time that a peer may be blocked.
pub const LOOKS: u32 = 5;
/// Time between two questions to a peer that is down.
pub const PROBE_INTERVAL: Duration = Duration::from_millis(500);

/// What is known of how a peer answers.
#[derive(Debug, Default)]
pub struct Silence {
    /// Something was sent to it, and nothing has come since.
    is_awaited: Cell<bool>,
    /// Looks since then.
    looks: Cell<u32>,
    /// It has answered a question.
    answers: Cell<bool>,
}

/// What a look at a peer comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is nothing to look for until something is sent to it.
    Fine,
    /// It is to be looked at again.
    Wait,
    /// It is to be asked, and looked at again.
    Ask,
    /// It does not answer any more.
    Silent,
}

impl Silence {
    /// Notes that something is sent to the peer, other than the answer to a question.
    pub fn note_sent(&self) {
        self.is_awaited.set(true);
    }

    /// Notes that something has come from the peer.
    pub fn note_heard(&self) {
        self.is_awaited.set(false);
        self.looks.set(0);
    }

    /// Notes that it was the answer to a question.
    pub fn note_answered(&self) {
        self.answers.set(true);
    }

    /// Forgets that the peer has answered.
    pub fn forget_answers(&self) {
        self.answers.set(false);
    }

    /// Looks at the peer, [`LOOKS`] times in the time that it may be blocked.
    pub fn look(&self) -> Verdict {
        if !self.is_awaited.get() {
            return Verdict::Fine;
        }
        let looks = self.looks.get().saturating_add(1);
        self.looks.set(looks);
        match looks {
            // What was sent just now may yet be answered.
            1 => Verdict::Wait,
            2 => Verdict::Ask,
            // It ignores questions.
            _ if !self.answers.get() => Verdict::Fine,
            LOOKS.. => Verdict::Silent,
            _ => Verdict::Ask,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What looks come to, with what happened before each: sent, heard.
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
