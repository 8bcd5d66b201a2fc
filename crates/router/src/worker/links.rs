//! The worker's own table of faces: one link service per slot, and who of them has a timer running.

use std::sync::Arc;

use namehop_face::link_service::{DroppedInterest, LinkService};
use namehop_face::registry::Face;
use namehop_packet::{BufferPool, FaceId, PacketBuffer, Timestamp};

/// One face of the worker.
pub(super) struct LinkEntry {
    pub(super) service: LinkService,
    /// Listed in `Links::timed`.
    is_timed: bool,
}

/// All faces of the worker, by slot of the face number.
pub(super) struct Links {
    entries: Vec<Option<LinkEntry>>,
    /// Faces that may have a deadline: a few, those with reliability under way.
    timed: Vec<FaceId>,
    /// No deadline of a timed face is earlier.
    next_deadline: Timestamp,
}

impl Links {
    pub(super) fn new() -> Self {
        Links { entries: Vec::new(), timed: Vec::new(), next_deadline: Timestamp::NEVER }
    }

    /// The face with this number, if the worker knows it.
    pub(super) fn get(&mut self, id: FaceId) -> Option<&mut LinkService> {
        let entry = self.entries.get_mut(id.slot())?.as_mut()?;
        (entry.service.face().id() == id).then_some(&mut entry.service)
    }

    /// Enters a face; an older one in the same slot is gone for good.
    pub(super) fn insert(&mut self, face: &Arc<Face>) {
        let slot = face.id().slot();
        if self.entries.len() <= slot {
            self.entries.resize_with(slot + 1, || None);
        }
        self.entries[slot] = Some(LinkEntry { service: LinkService::new(Arc::clone(face)), is_timed: false });
    }

    /// Forgets a face.
    pub(super) fn remove(&mut self, id: FaceId) {
        if self.get(id).is_some() {
            self.entries[id.slot()] = None;
        }
    }

    /// Notes the deadline of a face after it was used.
    pub(super) fn note_deadline(&mut self, id: FaceId) {
        let Some(entry) = self.entries.get_mut(id.slot()).and_then(Option::as_mut) else { return };
        let deadline = entry.service.next_deadline();
        if deadline == Timestamp::NEVER {
            return;
        }
        if !entry.is_timed {
            entry.is_timed = true;
            self.timed.push(id);
        }
        self.next_deadline = self.next_deadline.min(deadline);
    }

    /// When [`Links::tick`] is due.
    pub(super) fn next_deadline(&self) -> Timestamp {
        self.next_deadline
    }

    /// Runs due timers; `send` gets the frames that result.
    pub(super) fn tick(
        &mut self,
        now: Timestamp,
        pool: &BufferPool,
        dropped: &mut Vec<DroppedInterest>,
        frames: &mut Vec<PacketBuffer>,
        mut send: impl FnMut(&Arc<Face>, &mut Vec<PacketBuffer>),
    ) {
        if now < self.next_deadline {
            return;
        }
        let mut next_deadline = Timestamp::NEVER;
        let entries = &mut self.entries;
        self.timed.retain(|id| {
            let Some(entry) = entries.get_mut(id.slot()).and_then(Option::as_mut) else { return false };
            if entry.service.face().id() != *id {
                return false;
            }
            if entry.service.next_deadline() <= now {
                entry.service.tick(now, pool, frames, dropped);
                send(entry.service.face(), frames);
            }
            let deadline = entry.service.next_deadline();
            next_deadline = next_deadline.min(deadline);
            entry.is_timed = deadline != Timestamp::NEVER;
            entry.is_timed
        });
        self.next_deadline = next_deadline;
    }
}
