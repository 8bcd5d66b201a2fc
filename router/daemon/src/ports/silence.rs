//! Peers on ports that have fallen silent although the link is up (`namehop_face::silence`): their faces are down until they send again.
//!
//! What was sent to a peer and what came from it is seen in the counters of its face, so workers do nothing for this.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use namehop_face::registry::{Face, FacePersistency};
use namehop_face::silence::{LOOKS, PROBE_INTERVAL, Silence, Verdict};
use namehop_face::socket::FaceEvent;
use namehop_packet::{FaceId, LinkType};
use tracing::info;

use super::PortContext;
use super::managed::ManagedPort;

/// What is known of the peers of all ports.
pub(super) struct Silences {
    look_interval: Duration,
    next_look: Instant,
    next_probe: Instant,
    peers: HashMap<FaceId, Peer>,
}

#[derive(Default)]
struct Peer {
    silence: Silence,
    /// Frames when they were last counted, those sent without answers to questions.
    received: u64,
    sent: u64,
    is_down: bool,
}

impl Peer {
    /// Counts frames; whether the peer has been heard.
    fn count(&mut self, face: &Face) -> bool {
        let received = face.counters.sum(|worker| worker.received.frames.get());
        // An answer calls for no answer: otherwise two routers would ask each other for ever.
        let sent = face.counters.sum(|worker| worker.sent.frames.get()).saturating_sub(face.answers_sent());
        let is_heard = received != std::mem::replace(&mut self.received, received);
        let has_sent = sent != std::mem::replace(&mut self.sent, sent);
        if face.take_answered() {
            self.silence.note_answered();
        }
        if is_heard {
            self.silence.note_heard();
        } else if has_sent {
            self.silence.note_sent();
        }
        is_heard
    }
}

impl Silences {
    /// For peers that may be blocked for so long.
    pub(super) fn new(blocked_timeout: Duration) -> Silences {
        let now = Instant::now();
        // Counters do not tell what came first in an interval, which costs one more.
        Silences {
            look_interval: blocked_timeout / (LOOKS + 1),
            next_look: now,
            next_probe: now,
            peers: HashMap::new(),
        }
    }

    /// Looks at the peers of the faces that this router has made.
    pub(super) fn check(&mut self, context: &PortContext, ports: &[ManagedPort], now: Instant) {
        let (is_look, is_probe) = (now >= self.next_look, now >= self.next_probe);
        if is_probe {
            self.next_probe = now + PROBE_INTERVAL;
        }
        if is_look {
            self.next_look = now + self.look_interval;
        } else if !self.peers.values().any(|peer| peer.is_down) {
            return;
        }
        let mut peers = std::mem::take(&mut self.peers);
        // With its link a face goes down and comes up again.
        for face in ports.iter().filter(|port| port.is_up).flat_map(|port| port.faces(context)) {
            if face.persistency() != FacePersistency::OnDemand && face.link_type() == LinkType::PointToPoint {
                let mut peer = peers.remove(&face.id()).unwrap_or_default();
                peer.check(context, &face, is_look, is_probe);
                self.peers.insert(face.id(), peer);
            }
        }
    }
}

impl Peer {
    fn check(&mut self, context: &PortContext, face: &Arc<Face>, is_look: bool, is_probe: bool) {
        if self.is_down {
            if self.count(face) {
                self.is_down = false;
                set_up(context, face, true);
            } else if is_probe {
                ask(context, face);
            }
        } else if is_look {
            self.count(face);
            match self.silence.look() {
                Verdict::Fine | Verdict::Wait => {}
                Verdict::Ask => ask(context, face),
                Verdict::Silent => {
                    self.is_down = true;
                    set_up(context, face, false);
                }
            }
        }
    }
}

fn ask(context: &PortContext, face: &Face) {
    face.want_question();
    context.workers.face_changed(face.id());
}

fn set_up(context: &PortContext, face: &Arc<Face>, is_up: bool) {
    if face.set_up(is_up) != is_up {
        info!(face = %face.id(), remote = %face.remote_uri(), is_up, "peer is silent, or heard again");
        let event = if is_up { FaceEvent::Up } else { FaceEvent::Down };
        context.announce(event(Arc::clone(face)));
    }
}
