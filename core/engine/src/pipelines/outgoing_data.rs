//! Outgoing Data pipeline (NFD developer's guide, section 4.3.3): sends Data to the downstreams of PIT entries.

use namehop_packet::{DropReason, FaceScope, LinkType, Outgoing, PacketBuffer, Timestamp};

use crate::pcct::record::InRecord;
use crate::pcct::{Downstream, PitRef, short_downstream};
use crate::state::ForwardingState;
use crate::state::emitter::DataSource;
use crate::state::faces::FaceArray;

/// The answer to a downstream for Data that satisfies its Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Nothing: its Interest has expired, or the Data came from its face.
    None,
    /// Nothing, because `/localhost` never leaves the host.
    OutOfScope,
    /// The Data.
    Data,
}

/// Returns the answer to the downstream with this record: the Data while its Interest is pending, but not on the face
/// that the Data came from unless that is ad hoc.
#[inline(always)]
fn answer_for(source: &DataSource, record: &InRecord, faces: &FaceArray, now: Timestamp) -> Answer {
    match faces.get(record.face) {
        Some(face) if record.expiry > now && (face.id != source.face || face.link_type == LinkType::AdHoc) => {
            let stays = source.is_localhost && face.scope == FaceScope::NonLocal;
            if stays { Answer::OutOfScope } else { Answer::Data }
        }
        _ => Answer::None,
    }
}

impl ForwardingState {
    /// Moves the downstreams of Data from their in-records to a list, if their Interest is still pending. The face that
    /// the Data came from is excluded unless it is ad hoc. A face is listed once for each token it used. Returns the
    /// number of downstreams that the Data may not reach by scope; their drops are counted.
    pub(crate) fn take_downstreams(
        &mut self,
        now: Timestamp,
        pit: PitRef,
        source: &DataSource,
        downstreams: &mut Vec<Downstream>,
    ) -> usize {
        let faces = &self.faces;
        let is_taken = |record: &InRecord| answer_for(source, record, faces, now) != Answer::None;
        let mut out_of_scope = 0;
        self.pcct.pit.take_in_records(pit, is_taken, |record, downstream| {
            if answer_for(source, record, faces, now) == Answer::Data {
                downstreams.push(downstream);
            } else {
                out_of_scope += 1;
            }
        });
        for _ in 0..out_of_scope {
            self.emitter.count_drop(source.face, DropReason::ScopeViolation);
        }
        out_of_scope
    }

    /// Counts Data without a downstream as dropped, unless its drop was counted for scope.
    #[inline]
    pub(crate) fn count_undelivered(&mut self, source: &DataSource, downstreams: &[Downstream], out_of_scope: usize) {
        if downstreams.is_empty() && out_of_scope == 0 {
            self.emitter.count_drop(source.face, DropReason::NoDownstream);
        }
    }

    /// Sends Data to the downstreams of one PIT entry, and removes their in-records.
    pub(crate) fn outgoing_data(
        &mut self,
        now: Timestamp,
        pit: PitRef,
        source: &DataSource,
        buffer: PacketBuffer,
        announcement: Option<&PacketBuffer>,
        out: &mut Vec<Outgoing>,
    ) {
        let mut downstreams = std::mem::take(&mut self.scratch.downstreams);
        downstreams.clear();
        let out_of_scope = self.take_downstreams(now, pit, source, &mut downstreams);
        self.count_undelivered(source, &downstreams, out_of_scope);
        self.emitter.send_data(buffer, source, &downstreams, announcement, out);
        self.scratch.downstreams = downstreams;
    }

    /// The same for a PIT entry that ends at once, so that its in-records need not be removed.
    #[inline]
    pub(crate) fn answer_and_forget(
        &mut self,
        now: Timestamp,
        pit: PitRef,
        source: &DataSource,
        buffer: PacketBuffer,
        out: &mut Vec<Outgoing>,
    ) {
        // The usual case is one downstream with its token in its record.
        let Some(record) = self.pcct.pit.only_in_record(pit) else {
            return self.outgoing_data(now, pit, source, buffer, None, out);
        };
        match answer_for(source, record, &self.faces, now) {
            Answer::None => self.emitter.count_drop(source.face, DropReason::NoDownstream),
            Answer::OutOfScope => self.emitter.count_drop(source.face, DropReason::ScopeViolation),
            Answer::Data => {
                let downstream = short_downstream(record);
                self.emitter.send_data_to(buffer, source, &downstream, None, out);
            }
        }
    }
}

/// Merges downstreams of several PIT entries so that no face gets the same Data twice, except with different tokens.
pub(super) fn merge(downstreams: &mut Vec<Downstream>) {
    // Sorting takes at most n log n steps; the list may contain all downstreams of several entries.
    fn order(downstream: &Downstream) -> (u32, bool, &[u8]) {
        (downstream.face.0, downstream.token.is_empty(), downstream.token.as_slice())
    }
    downstreams.sort_unstable_by(|one, other| order(one).cmp(&order(other)));
    downstreams.dedup_by(|new, known| {
        // A peer that sent no token with one of its Interests accepts any answer; sorting puts these last.
        let is_same = known.face == new.face && (known.token == new.token || new.token.is_empty());
        if is_same {
            known.congestion_mark = known.congestion_mark.max(new.congestion_mark);
        }
        is_same
    });
}

#[cfg(test)]
mod tests {
    use namehop_packet::FaceId;
    use namehop_wire::lp::PitToken;

    use super::*;

    fn downstream(face: u32, token: &[u8], congestion_mark: u64) -> Downstream {
        let token = PitToken::from_slice(token).expect("short");
        Downstream { face: FaceId(face), token, congestion_mark }
    }

    #[test]
    fn a_face_is_served_once_per_token() {
        let mut list = vec![
            downstream(1, b"", 4),
            downstream(1, b"a", 2),
            downstream(1, b"", 1),
            downstream(3, b"", 0),
            downstream(1, b"b", 0),
            downstream(1, b"a", 3),
            downstream(2, b"a", 0),
        ];
        merge(&mut list);
        let merged = [downstream(1, b"a", 3), downstream(1, b"b", 4), downstream(2, b"a", 0), downstream(3, b"", 0)];
        assert_eq!(list, merged);
    }
}
