//! Peers on ports that have fallen silent although the link is up (`namehop_face::silence`): their faces are down until
//! they send again.
//!
//! The counters of a face show what was sent and received, so workers do nothing for this.

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

/// The state of the peers of all ports.
pub(super) struct Silences {
    look_interval: Duration,
    next_look: Instant,
    next_probe: Instant,
    peers: HashMap<FaceId, Peer>,
}

#[derive(Default)]
struct Peer {
    silence: Silence,
    /// Frame counts at the last check; `sent` without answers to probes.
    received: u64,
    sent: u64,
    is_down: bool,
}

impl Peer {
    /// Updates the frame counts. Returns whether frames were received since the last update.
    fn count(&mut self, face: &Face) -> bool {
        let received = face.counters.sum(|worker| worker.received.frames.get());
        // Answers need no answer: otherwise two routers would probe each other for ever.
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
    /// Creates the checker; a peer is silent if it sends nothing for `blocked_timeout` after frames were sent to it.
    pub(super) fn new(blocked_timeout: Duration) -> Silences {
        let now = Instant::now();
        // Counters do not show the order of frames within an interval, which costs one more interval.
        Silences {
            look_interval: blocked_timeout / (LOOKS + 1),
            next_look: now,
            next_probe: now,
            peers: HashMap::new(),
        }
    }

    /// Checks the peers of all point-to-point faces that are not on-demand.
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
        // Ports that are down are skipped: their faces go down and up with the link.
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
        info!(face = %face.id(), remote = %face.remote_uri(), is_up, "peer went silent or answers again");
        let event = if is_up { FaceEvent::Up } else { FaceEvent::Down };
        context.announce(event(Arc::clone(face)));
    }
}
