//! The faces that hold PIT slots, and which of them loses one when the PIT is full.

use namehop_packet::FaceId;

use super::Pit;
use crate::pcct::PitRef;
use crate::pcct::names::NameTable;
use crate::pcct::record::InRecord;

/// Maximum number of downstreams of a PIT slot that are considered as its next holder.
const MAX_CANDIDATES: usize = 16;

impl Pit {
    /// Returns the next PIT slot to evict, for an Interest from `newcomer`. The caller closes it or [hands it
    /// over](Self::hand_over). Returns `None` if the newcomer itself holds too many.
    pub(crate) fn victim(&mut self, newcomer: FaceId) -> Option<PitRef> {
        self.shares.note_victim();
        self.queue.victim(&self.shares, newcomer)
    }

    /// Makes an aggregated downstream the holder of a PIT slot: one among the first few that holds little and for which
    /// `may_take_over` returns `true`. Returns `false` if there is none.
    #[cold]
    pub(crate) fn hand_over(&mut self, pit: PitRef, may_take_over: impl Fn(&InRecord) -> bool) -> bool {
        let position = self.slot(pit).queue_position;
        let holder = self.queue.holder(position);
        let may_hold = |record: &&InRecord| {
            record.face != holder && may_take_over(record) && self.shares.holds_little(record.face)
        };
        let Some(face) = self.in_records(pit).take(MAX_CANDIDATES).find(may_hold).map(|record| record.face) else {
            return false;
        };
        self.shares.remove(holder);
        self.shares.add(face);
        self.queue.hand_over(position, face);
        true
    }

    /// Returns the face that holds a PIT slot: its Interest opened the slot, or the slot was handed over to it.
    pub(crate) fn holder(&self, pit: PitRef) -> FaceId {
        self.queue.holder(self.slot(pit).queue_position)
    }

    /// Returns whether the entry has a slot that is held by a face with few of them.
    pub(crate) fn is_held_by_few(&self, names: &NameTable, entry: u32) -> bool {
        let is_few = |pit| !self.shares.holds_much(self.shares.standing(self.holder(pit)));
        names.entry(entry).in_use() && self.slots_of(names, entry).any(is_few)
    }

    /// Records that the face exists.
    pub(crate) fn set_face(&mut self, face: FaceId) {
        self.shares.set_face(face);
    }

    /// Returns whether the face belongs to an unsolicited remote peer.
    pub(crate) fn is_unsolicited(&self, face: FaceId) -> bool {
        self.shares.is_unsolicited(face)
    }

    /// Records whether the face belongs to an unsolicited remote peer.
    pub(crate) fn set_unsolicited(&mut self, face: FaceId, is_unsolicited: bool) {
        self.shares.set_unsolicited(face, is_unsolicited);
    }

    /// Records that the face was removed: its slots are evicted first.
    pub(crate) fn remove_face(&mut self, face: FaceId) {
        self.shares.remove_face(face);
    }
}
