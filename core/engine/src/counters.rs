//! Counters of an engine: packets, cache hits, and dropped packets by reason.
//!
//! Counters are plain integers with one writer, the worker that owns the engine; readers get copies.

use std::ops::AddAssign;

use namehop_packet::DropCounters;

use crate::pcct::content::insertion::Stored;

/// Totals of one engine since its start (NFD management protocol, general status).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineCounters {
    /// Interests handed to the engine, dropped ones included.
    pub in_interests: u64,
    /// Data handed to the engine, dropped ones included.
    pub in_data: u64,
    /// Nacks handed to the engine, dropped ones included.
    pub in_nacks: u64,
    /// Interests sent.
    pub out_interests: u64,
    /// Data sent, cached Data included.
    pub out_data: u64,
    /// Nacks sent.
    pub out_nacks: u64,
    /// PIT entries that ended with Data, and Interests answered from the Content Store.
    pub satisfied_interests: u64,
    /// PIT entries that ended without Data, evicted ones included.
    pub unsatisfied_interests: u64,
    /// Interests answered from the Content Store.
    pub cs_hits: u64,
    /// Interests that the Content Store could not answer.
    pub cs_misses: u64,
    /// Data that the cache policy rejected.
    pub cs_rejected: u64,
    /// Data that could not be cached although the policy allowed it (no memory, or too many hints for one name).
    pub cs_no_room: u64,
    /// Implicit digests computed for arriving Data, because a pending Interest names a digest.
    pub digests: u64,
    /// Interests that were aggregated with a pending PIT entry.
    pub aggregated_interests: u64,
    /// Self-learning events lost because the control plane did not fetch them in time.
    pub lost_events: u64,
    /// Dropped packets by reason.
    pub drops: DropCounters,
}

impl EngineCounters {
    /// Counts Data that was not cached.
    #[inline]
    pub(crate) fn note_stored(&mut self, stored: Stored) {
        self.cs_rejected += u64::from(stored == Stored::Rejected);
        self.cs_no_room += u64::from(stored == Stored::NoRoom);
    }
}

impl AddAssign for EngineCounters {
    /// Adds the counters of another engine.
    fn add_assign(&mut self, other: EngineCounters) {
        // By name, so that the compiler reports a missing counter.
        let EngineCounters {
            in_interests,
            in_data,
            in_nacks,
            out_interests,
            out_data,
            out_nacks,
            satisfied_interests,
            unsatisfied_interests,
            cs_hits,
            cs_misses,
            cs_rejected,
            cs_no_room,
            digests,
            aggregated_interests,
            lost_events,
            drops,
        } = other;
        self.in_interests += in_interests;
        self.in_data += in_data;
        self.in_nacks += in_nacks;
        self.out_interests += out_interests;
        self.out_data += out_data;
        self.out_nacks += out_nacks;
        self.satisfied_interests += satisfied_interests;
        self.unsatisfied_interests += unsatisfied_interests;
        self.cs_hits += cs_hits;
        self.cs_misses += cs_misses;
        self.cs_rejected += cs_rejected;
        self.cs_no_room += cs_no_room;
        self.digests += digests;
        self.aggregated_interests += aggregated_interests;
        self.lost_events += lost_events;
        self.drops += drops;
    }
}
