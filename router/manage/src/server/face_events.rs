//! The notification stream `faces/events`: one numbered Data for each event of a face.
//!
//! A subscriber first requests the newest event by prefix and then each following number. Interests for future events
//! wait here with their PIT tokens and are answered when the event happens. The latest events are kept for subscribers
//! that are late.

use std::collections::VecDeque;
use std::time::Duration;

use namehop_client::nfd::{Element, FaceEventKind, FaceEventNotification, names};
use namehop_face::registry::Face;
use namehop_face::socket::FaceEvent;
use namehop_wire::data::content_type;
use namehop_wire::lp::PitToken;
use tokio::time::Instant;

use super::dispatcher::{Request, VERB_END};
use super::reply::{FRESHNESS_MS, data};
use super::{ControlPlane, Management};

/// Events kept for subscribers that are late.
const KEPT_EVENTS: usize = 1024;
/// Interests that can wait for an event; the oldest is dropped first.
const MAX_WAITING: usize = 1024;

#[derive(Debug)]
struct WaitingInterest {
    /// The requested number; `None` = the next event.
    sequence: Option<u64>,
    token: PitToken,
    until: Instant,
}

/// Recent events, and Interests for future events.
#[derive(Debug, Default)]
pub(super) struct FaceEvents {
    /// Newest last. The number of the newest is `count - 1`.
    kept: VecDeque<Vec<u8>>,
    count: u64,
    newest_at: Option<Instant>,
    waiting: VecDeque<WaitingInterest>,
}

impl FaceEvents {
    fn get(&self, sequence: u64) -> Option<&Vec<u8>> {
        let from_end = self.count.checked_sub(sequence)?;
        let index = self.kept.len().checked_sub(usize::try_from(from_end).ok()?)?;
        self.kept.get(index)
    }

    /// Returns the newest event while it is fresh. A new subscriber does not want older ones.
    fn fresh(&self) -> Option<&Vec<u8>> {
        let is_fresh = self.newest_at?.elapsed() < Duration::from_millis(FRESHNESS_MS);
        self.kept.back().filter(|_| is_fresh)
    }

    fn push(&mut self, packet: Vec<u8>) {
        if self.kept.len() == KEPT_EVENTS {
            self.kept.pop_front();
        }
        self.kept.push_back(packet);
        self.count += 1;
        self.newest_at = Some(Instant::now());
    }

    fn wait(&mut self, waiting: WaitingInterest) {
        let now = Instant::now();
        self.waiting.retain(|other| other.until > now);
        if self.waiting.len() == MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(waiting);
    }

    /// Removes the Interests that wait for this number and returns their tokens.
    fn take_waiting(&mut self, sequence: u64) -> Vec<PitToken> {
        let now = Instant::now();
        let mut tokens = Vec::new();
        self.waiting.retain(|waiting| {
            if waiting.until <= now {
                return false;
            }
            let is_answered = waiting.sequence.is_none_or(|wanted| wanted == sequence);
            if is_answered {
                tokens.push(waiting.token);
            }
            !is_answered
        });
        tokens
    }
}

/// Returns the notification for an event; `None` if applications are not notified of it.
fn notification(event: &FaceEvent) -> Option<FaceEventNotification> {
    let (kind, face): (_, &Face) = match event {
        FaceEvent::Created(face) => (FaceEventKind::Created, face),
        FaceEvent::Destroyed(face) => (FaceEventKind::Destroyed, face),
        FaceEvent::Up(face) => (FaceEventKind::Up, face),
        FaceEvent::Down(face) => (FaceEventKind::Down, face),
        FaceEvent::Changed(_) => return None,
    };
    Some(FaceEventNotification {
        kind,
        face_id: face.id().0.into(),
        uri: face.remote_uri().to_string(),
        local_uri: face.local_uri().to_string(),
        scope: face.scope(),
        persistency: face.persistency(),
        link_type: face.link_type(),
        flags: face.flags().0,
    })
}

impl<C: ControlPlane> Management<C> {
    pub(super) fn publish_face_event(&self, event: &FaceEvent) {
        let Some(notification) = notification(event) else { return };
        let mut events = self.events.borrow_mut();
        let sequence = events.count;
        let name = names::face_events().append_sequence(sequence);
        let Some(packet) = data(name.as_ref(), content_type::BLOB, &notification.to_vec(), None) else { return };
        let mut tokens = events.take_waiting(sequence);
        // One copy answers all Interests without a token.
        tokens.sort_unstable_by(|a, b| a.as_slice().cmp(b.as_slice()));
        tokens.dedup();
        events.push(packet.clone());
        drop(events);
        for token in tokens {
            self.send(token, &packet);
        }
    }

    /// Answers an Interest under `/localhost/nfd/faces/events`, or keeps it until its event happens.
    pub(super) fn serve_face_event(&self, request: &Request<'_>) {
        let interest = &request.interest;
        let mut rest = interest.name.suffix(VERB_END).components();
        let sequence = match (rest.next(), rest.next()) {
            (None, _) if interest.can_be_prefix => None,
            (Some(component), None) => match component.as_sequence() {
                Some(sequence) => Some(sequence),
                None => return,
            },
            _ => return,
        };
        let mut events = self.events.borrow_mut();
        let found = match sequence {
            Some(sequence) => events.get(sequence),
            None => events.fresh(),
        };
        match found.cloned() {
            Some(packet) => {
                drop(events);
                self.send(request.token, &packet);
            }
            None if sequence.is_some_and(|sequence| sequence < events.count) => {}
            None => {
                // A day is longer than any forwarder keeps the Interest; much longer lifetimes would overflow the
                // clock.
                let lifetime_ms = interest.lifetime_or_default_ms().min(86_400_000);
                let until = Instant::now() + Duration::from_millis(lifetime_ms);
                events.wait(WaitingInterest { sequence, token: request.token, until });
            }
        }
    }
}
