//! Takes faces of UDP peers down that have fallen silent (`crate::silence`). Unsolicited peers are not probed.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use namehop_wire::lp::{KnowsPitTokens, PathMtuProbe};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::shared::{Link, ServiceState, SocketFace};
use super::{keep_alive, reachability};
use crate::registry::FacePersistency;
use crate::silence::{LOOKS, Verdict};

/// Asks whether the peer knows PIT tokens. For most forwarders it is an IDLE packet of NDNLPv2. A Namehop answers it
/// with [`ANSWER`].
const QUESTION: [u8; KnowsPitTokens::FRAME_LEN] = KnowsPitTokens::Asks.frame();
/// A peer's answer to [`QUESTION`].
const ANSWER: [u8; KnowsPitTokens::FRAME_LEN] = KnowsPitTokens::Tells.frame();

/// Returns true if the frame answers a question or a probe. An answer needs no answer: otherwise two routers would ask
/// each other forever.
pub(super) fn is_answer(frame: &[u8]) -> bool {
    frame == ANSWER || PathMtuProbe::is_answer(frame)
}

/// Schedules checks of all peers. No check is scheduled while nothing is sent, so an idle router is not woken.
#[derive(Debug, Default)]
pub(super) struct Looks {
    is_planned: Cell<bool>,
    wanted: Notify,
}

impl Looks {
    /// Schedules a check of all peers, unless one is scheduled.
    pub(super) fn plan(&self) {
        if !self.is_planned.replace(true) {
            self.wanted.notify_one();
        }
    }
}

/// Checks the UDP peers some time after something was sent, as long as the service runs.
pub(super) async fn run(shared: Rc<ServiceState>) {
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

/// Asks a peer whether it can be reached.
pub(super) fn ask(shared: &Rc<ServiceState>, entry: &SocketFace) {
    keep_alive::send(shared, entry, &QUESTION);
    if let Some(interest) = entry.face.next_probe_interest() {
        keep_alive::send(shared, entry, &interest);
    }
}

/// Checks the peer of a face; returns whether it has to be checked again.
fn look(shared: &Rc<ServiceState>, entry: &SocketFace) -> bool {
    let Link::Datagram(link) = &entry.link else { return false };
    let is_watched = link.channel().is_unicast() && entry.face.persistency() != FacePersistency::OnDemand;
    let Some(peer) = link.peer().filter(|_| is_watched && entry.face.is_up()) else { return false };
    if entry.face.take_answered() {
        peer.silence.note_answered();
    }
    match peer.silence.look() {
        Verdict::Fine => false,
        Verdict::Wait => true,
        Verdict::Ask => {
            ask(shared, entry);
            true
        }
        Verdict::Silent => {
            reachability::note_silent(shared, &peer);
            false
        }
    }
}
