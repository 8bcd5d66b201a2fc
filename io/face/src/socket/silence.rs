//! UDP peers that have fallen silent (`crate::silence`): their faces are down. Peers that have made their faces by themselves are not asked.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use namehop_wire::lp::KnowsPitTokens;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::shared::{Link, Shared, SocketFace};
use super::{keep_alive, reachability};
use crate::registry::FacePersistency;
use crate::silence::{LOOKS, Verdict};

/// An IDLE packet of NDNLPv2 for most forwarders. A Namehop answers it with [`ANSWER`].
pub(super) const QUESTION: [u8; KnowsPitTokens::FRAME_LEN] = KnowsPitTokens::Asks.frame();
/// The answer of a peer to it.
pub(super) const ANSWER: [u8; KnowsPitTokens::FRAME_LEN] = KnowsPitTokens::Tells.frame();
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
