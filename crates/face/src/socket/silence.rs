//! UDP peers that have fallen silent: a path that drops packets says nothing, so only the want of answers tells.
//!
//! A producer need not answer an Interest, so silence alone proves nothing. But a Namehop answers the question whether it knows PIT
//! tokens. A peer that was sent something and sends nothing is asked; if it has answered such questions before, and nothing comes from
//! it for the time that a peer may be blocked, its face is down. Peers that have made their faces by themselves are not asked, and
//! those of other forwarders, which ignore the question, stay up.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use namehop_wire::lp::KnowsPitTokens;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::shared::{Link, Shared, SocketFace};
use super::{keep_alive, reachability};
use crate::registry::FacePersistency;

/// An IDLE packet of NDNLPv2 for most forwarders. A Namehop answers it with [`ANSWER`].
pub(super) const QUESTION: [u8; KnowsPitTokens::FRAME_LEN] = KnowsPitTokens::Asks.frame();
const ANSWER: [u8; KnowsPitTokens::FRAME_LEN] = KnowsPitTokens::Tells.frame();
/// Looks in the time that a peer may be blocked.
const LOOKS: u32 = 5;

/// What is known of how a peer answers.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// Something was sent to it, and nothing has come since.
    is_awaited: Cell<bool>,
    /// Looks since then.
    looks: Cell<u32>,
    /// It has answered a question.
    answers: Cell<bool>,
}

/// What a look at a peer comes to.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
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
    /// Notes that something is sent to the peer.
    pub(super) fn note_sent(&self) {
        self.is_awaited.set(true);
    }

    /// Notes what has come from the peer.
    pub(super) fn note_heard(&self, datagram: &[u8]) {
        self.is_awaited.set(false);
        self.looks.set(0);
        if datagram == ANSWER {
            self.answers.set(true);
        }
    }

    /// Forgets that the peer has answered.
    pub(super) fn forget_answers(&self) {
        self.answers.set(false);
    }

    fn look(&self) -> Verdict {
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

/// When the next look is due. An idle router is not woken for one.
#[derive(Debug, Default)]
pub(super) struct Looks {
    is_planned: Cell<bool>,
    wanted: Notify,
}

impl Looks {
    /// Plans a look at all peers, unless one is planned.
    pub(super) fn plan(&self) {
        if !self.is_planned.replace(true) {
            self.wanted.notify_one();
        }
    }
}

/// Looks at the UDP peers after something was sent, for as long as the service lives.
pub(super) async fn run(shared: Rc<Shared>) {
    let interval = Duration::from_millis(shared.config.blocked_timeout_ms) / LOOKS;
    loop {
        shared.silence_looks.wanted.notified().await;
        sleep(interval.max(Duration::from_millis(1))).await;
        shared.silence_looks.is_planned.set(false);
        let mut is_unsure = false;
        for entry in shared.entries() {
            is_unsure |= look(&shared, &entry);
        }
        if is_unsure {
            shared.silence_looks.plan();
        }
    }
}

/// Looks at the peer of a face; whether it has to be looked at again.
fn look(shared: &Rc<Shared>, entry: &SocketFace) -> bool {
    let Link::Datagram(link) = &entry.link else { return false };
    let is_asked = link.channel().is_unicast() && entry.face.persistency() != FacePersistency::OnDemand;
    let Some(peer) = link.peer().filter(|_| is_asked && entry.face.is_up()) else { return false };
    match peer.silence.look() {
        Verdict::Fine => false,
        Verdict::Wait => true,
        Verdict::Ask => {
            keep_alive::send(shared, entry, &QUESTION);
            true
        }
        Verdict::Silent => {
            reachability::note_silent(shared, &peer);
            false
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
                silence.note_heard(&[5, 0]);
            }
            silence.look()
        };
        before.iter().map(look).collect()
    }

    #[test]
    fn a_peer_that_has_answered_is_silent_after_some_looks() {
        use Verdict::{Ask, Fine, Silent, Wait};
        let silence = Silence::default();
        silence.note_heard(&ANSWER);
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
        silence.note_heard(&ANSWER);
        silence.forget_answers();
        assert_eq!(verdicts(&silence, &busy), [Wait, Ask, Fine, Fine, Fine, Fine, Fine]);
    }
}
