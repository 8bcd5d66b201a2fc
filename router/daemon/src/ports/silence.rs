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
use super::thread::CHECK_INTERVAL;

/// The state of the peers of all ports.
pub(super) struct Silences {
    looks: Periodic,
    probes: Periodic,
    peers: HashMap<FaceId, Peer>,
}

/// Something that is due at regular times, for a caller that asks from time to time.
struct Periodic {
    interval: Duration,
    next: Instant,
}

impl Periodic {
    fn new(interval: Duration, now: Instant) -> Periodic {
        Periodic { interval, next: now }
    }

    /// Returns whether it is due. A late caller does not delay the next time.
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now >= self.next;
        if is_due {
            self.next = (self.next + self.interval).max(now);
        }
        is_due
    }
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

    /// Forgets a silence, but not that the peer answers.
    fn start_over(&mut self) {
        self.is_down = false;
        self.silence.note_heard();
    }
}

impl Silences {
    /// Creates the checker; a peer is silent if it sends nothing for `blocked_timeout` after frames were sent to it.
    pub(super) fn new(blocked_timeout: Duration) -> Silences {
        let now = Instant::now();
        Silences {
            looks: Periodic::new(look_interval(blocked_timeout), now),
            probes: Periodic::new(PROBE_INTERVAL, now),
            peers: HashMap::new(),
        }
    }

    /// Checks the peers of all point-to-point faces that are not on-demand.
    pub(super) fn check(&mut self, context: &PortContext, ports: &[ManagedPort], now: Instant) {
        let (is_look, is_probe) = (self.looks.is_due(now), self.probes.is_due(now));
        if !is_look && !self.peers.values().any(|peer| peer.is_down) {
            return;
        }
        let mut peers = std::mem::take(&mut self.peers);
        for port in ports {
            for face in port.faces(context) {
                if face.persistency() != FacePersistency::OnDemand && face.link_type() == LinkType::PointToPoint {
                    let mut peer = peers.remove(&face.id()).unwrap_or_default();
                    if port.is_up {
                        peer.check(context, &face, is_look, is_probe);
                    } else {
                        // The face goes down and up with the link.
                        peer.start_over();
                    }
                    self.peers.insert(face.id(), peer);
                }
            }
        }
    }
}

/// Returns the interval between two checks of a peer. The last check is within `blocked_timeout` of at least 2 s,
/// although counters do not show the order of frames within an interval, and the thread checks only every
/// [`CHECK_INTERVAL`]. A `blocked_timeout` of 1 s is 1.2 s.
fn look_interval(blocked_timeout: Duration) -> Duration {
    blocked_timeout.saturating_sub(CHECK_INTERVAL) / (LOOKS + 1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_check_is_within_the_timeout() {
        let start = Instant::now();
        for timeout in [2, 4, 10, 60].map(Duration::from_secs) {
            // The frame is sent directly after a check, at any phase of the thread's own interval.
            for phase_ms in 0..200 {
                let mut looks = Periodic::new(look_interval(timeout), start);
                let mut now = start + Duration::from_millis(phase_ms);
                assert!(looks.is_due(now));
                let sent = now;
                for _ in 0..=LOOKS {
                    now += CHECK_INTERVAL;
                    while !looks.is_due(now) {
                        now += CHECK_INTERVAL;
                    }
                }
                assert!(now - sent <= timeout, "{timeout:?}, {phase_ms}: {:?}", now - sent);
            }
        }
    }
}
