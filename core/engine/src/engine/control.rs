//! Control operations on an engine: faces, tracing, reports.

use namehop_packet::{DropCounters, FaceId, FaceInfo, Outgoing};

use super::{Engine, EngineEvent, InvariantError, TableSizes};
use crate::counters::EngineCounters;
use crate::trace::TraceRequest;

impl Engine {
    /// Adds a face or updates it. If the face goes down, the Interests pending on it are retried in the next calls of
    /// [`advance`](Self::advance), or answered with a Nack.
    pub fn set_face(&mut self, info: FaceInfo) {
        let goes_down = self.state.faces.is_up(info.id) && !info.is_up;
        self.state.faces.set(info);
        self.state.emitter.face_drops_mut().set_face(info.id);
        self.state.pcct.pit.set_face(info.id);
        if goes_down && self.state.faces.was_sent_to(info.id) {
            self.state.lost_upstreams.start(&self.state.pcct);
        }
    }

    /// Marks an existing face as belonging to an unsolicited remote peer, or not. All such faces together can keep at
    /// most half of a full PIT from the others. The default is `false`.
    pub fn set_unsolicited(&mut self, id: FaceId, is_unsolicited: bool) {
        if self.state.faces.exists(id) {
            self.state.pcct.pit.set_unsolicited(id, is_unsolicited);
        }
    }

    /// Replaces the current trace request; `None` ends tracing. Each traced packet is reported as
    /// [`EngineEvent::Traced`].
    pub fn trace(&mut self, request: Option<TraceRequest>) {
        self.state.emitter.set_trace_request(request);
    }

    /// Removes a face. Its records in the PIT are ignored from now on. Interests pending on it are retried in the next
    /// calls of [`advance`](Self::advance), or answered with a Nack.
    pub fn remove_face(&mut self, id: FaceId) {
        let was_sent_to = self.state.faces.was_sent_to(id);
        self.state.faces.remove(id);
        self.state.emitter.face_drops_mut().remove_face(id);
        self.state.pcct.pit.remove_face(id);
        if was_sent_to {
            self.state.lost_upstreams.start(&self.state.pcct);
        }
    }

    /// Returns whether the face exists.
    #[inline]
    pub fn has_face(&self, id: FaceId) -> bool {
        self.state.faces.exists(id)
    }

    /// Returns whether the link of the face is up; `None` if the face does not exist.
    pub fn is_face_up(&self, id: FaceId) -> Option<bool> {
        self.state.faces.get(id).map(|face| face.is_up)
    }

    /// Returns the dropped packets received on a face; `None` if the face does not exist.
    pub fn face_drops(&self, id: FaceId) -> Option<&DropCounters> {
        self.state.emitter.face_drops().get(id)
    }

    /// Empties the queue of reports and returns them.
    pub fn take_events(&mut self) -> Vec<EngineEvent> {
        self.state.emitter.take_events()
    }

    /// Handles the control plane's reply to [`EngineEvent::AnnouncementWanted`]: the announcement as a complete Data
    /// packet, or `None`. Does nothing if the reply comes too late.
    pub fn announcement_reply(&mut self, request: u64, announcement: Option<&[u8]>, out: &mut Vec<Outgoing>) {
        self.state.learning.send_with(&mut self.state.emitter, request, announcement, out);
    }

    /// Returns the totals since the start.
    pub fn counters(&self) -> &EngineCounters {
        &self.state.emitter.counters
    }

    /// Returns the number of entries in each table, as of the last call with a time.
    pub fn table_sizes(&self) -> TableSizes {
        TableSizes {
            pit: self.state.pcct.pit.len(),
            cs: self.state.pcct.content.len(),
            dead_nonces: self.state.dead_nonces.len(self.state.emitter.now()),
            measurements: self.state.measurements.len(),
            pcct: self.state.pcct.names.len(),
            timers: self.state.timers.len(),
        }
    }

    /// Checks that the redundant state of tables, lists and memory is consistent. For tests and fuzzers; takes time
    /// linear in the size of the tables.
    ///
    /// # Errors
    /// Returns the first inconsistency found.
    pub fn check_invariants(&self) -> Result<(), InvariantError> {
        self.state.pcct.check_invariants()
    }
}
