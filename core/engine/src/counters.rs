//! Counters of an engine: packets, cache hits, and dropped packets by reason.
//!
//! Counters are plain integers with one writer, the worker that owns the engine; readers get copies.

use namehop_packet::DropCounters;

use crate::pcct::content::insertion::Stored;

namehop_packet::counters! {
    /// Totals of one engine since its start (NFD management protocol, general status).
    pub struct EngineCounters {
        in_interests: "Interests handed to the engine, dropped ones included";
        in_data: "Data handed to the engine, dropped ones included";
        in_nacks: "Nacks handed to the engine, dropped ones included";
        out_interests: "Interests sent";
        out_data: "Data sent, cached Data included";
        out_nacks: "Nacks sent";
        satisfied_interests = "satisfied_interests":
            "PIT entries that ended with Data, and Interests answered from the Content Store";
        unsatisfied_interests = "unsatisfied_interests":
            "PIT entries that ended without Data, evicted ones included";
        aggregated_interests = "aggregated_interests": "Interests that were aggregated with a pending PIT entry";
        cs_hits = "cs_hits": "Interests answered from the Content Store";
        cs_misses = "cs_misses": "Interests that the Content Store could not answer";
        cs_rejected: "Data that the cache policy rejected";
        cs_no_room = "cs_no_room":
            "Data that could not be cached although the policy allowed it: no memory, or too many hints for one name";
        digests = "digests":
            "Implicit digests computed for arriving Data, because a pending Interest names a digest";
        lost_events = "lost_events":
            "Self-learning events lost because the control plane did not fetch them in time";
    }
    and {
        /// Dropped packets by reason.
        drops: DropCounters;
    }
}

impl EngineCounters {
    /// Counts Data that was not cached.
    #[inline]
    pub(crate) fn note_stored(&mut self, stored: Stored) {
        self.cs_rejected += u64::from(stored == Stored::Rejected);
        self.cs_no_room += u64::from(stored == Stored::NoRoom);
    }
}
