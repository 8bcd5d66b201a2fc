//! The tables of an engine, step by step, for paths of packets that are simpler than the router's pipelines.
//!
//! The laboratory builds the path of publications on them. They keep the tables consistent; what the protocol requires
//! is the caller's task. Interests match by name only: no selectors, no forwarding hints, no PIT tokens.

use std::ops::ControlFlow;

use namehop_hash::{HashKey, PrefixHashes};
use namehop_packet::{DropReason, FaceId, LinkFields, Outgoing, PacketBuffer, PacketKind, Stamp, Timestamp};
use namehop_wire::NameRef;
use namehop_wire::lp::PitToken;

use crate::counters::EngineCounters;
use crate::engine::{Engine, Fib};
use crate::fib::FibGuess;
use crate::pcct::entry::{LIFETIME_ABSENT, Selectors};
use crate::pcct::key::{Found, Key};
use crate::pcct::record::PendingHopLimit;
use crate::pcct::{Arrival, NoRoom, PitRef};
use crate::state::ForwardingState;
use crate::state::emitter::DataSource;

pub use crate::pcct::content::insertion::{Candidate, EVICTIONS_PER_INSERTION, NewData, Stored};

/// Names match exactly, and Data never becomes stale.
const EXACT: Selectors = Selectors { can_be_prefix: false, must_be_fresh: false };

/// The tables of an engine. Each method is one step.
pub struct Tables<'e> {
    fib: &'e Fib,
    state: &'e mut ForwardingState,
}

/// A name and what the PIT-CS composite table has under it. Valid until the table changes.
#[derive(Debug, Clone, Copy)]
pub struct NameLookup<'n> {
    key: Key<'n>,
    found: Found,
}

/// Handle of cached Data. Valid until the table changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedData(u32);

/// Handle of a PIT entry. Valid until the entry is closed or evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PitEntry(PitRef);

impl Engine {
    /// Returns the engine's tables.
    #[inline(always)]
    pub fn tables(&mut self) -> Tables<'_> {
        Tables { fib: &self.fib, state: &mut self.state }
    }
}

impl Tables<'_> {
    /// Returns the key for hashing names.
    #[inline(always)]
    pub fn key(&self) -> &HashKey {
        &self.state.key
    }

    /// Returns the engine's counters, which the caller of single steps maintains. Only the methods that send or drop
    /// packets count them.
    #[inline(always)]
    pub fn counters(&mut self) -> &mut EngineCounters {
        &mut self.state.emitter.counters
    }

    /// Counts a dropped packet for the face it arrived on.
    #[inline]
    pub fn count_drop(&mut self, face: FaceId, reason: DropReason) {
        self.state.emitter.count_drop(face, reason);
    }

    /// Sends a packet without link-layer fields to a face.
    #[inline(always)]
    pub fn send(&mut self, face: FaceId, kind: PacketKind, buffer: PacketBuffer, out: &mut Vec<Outgoing>) {
        self.state.emitter.transmit(face, kind, buffer, out, LinkFields::default);
    }
}

/// FIB and PIT.
impl Tables<'_> {
    /// Looks up a name in the PIT-CS composite table. `hashes` must be the hashes of the name.
    #[inline(always)]
    pub fn look_up<'n>(&self, name: NameRef<'n>, hashes: &PrefixHashes) -> NameLookup<'n> {
        let key = Key {
            name: name.value(),
            name_hash: hashes.full(),
            depth: hashes.depth(),
            names_digest: false,
            delegation: &[],
            delegation_hash: 0,
        };
        NameLookup { key, found: self.state.pcct.names.look_up(&key) }
    }

    /// Returns the PIT entry of a looked-up name.
    #[inline(always)]
    pub fn pending(&self, lookup: &NameLookup<'_>) -> Option<PitEntry> {
        lookup
            .found
            .exact()
            .and_then(|entry| self.state.pcct.pit.find(&self.state.pcct.names, entry, EXACT))
            .map(PitEntry)
    }

    /// Returns the PIT entry of a name. `hashes` must be the hashes of the name.
    #[inline(always)]
    pub fn find_pending(&self, name: NameRef<'_>, hashes: &PrefixHashes) -> Option<PitEntry> {
        let entry = self.state.pcct.names.find_name(hashes.full(), name.value())?;
        self.state.pcct.pit.find(&self.state.pcct.names, entry, EXACT).map(PitEntry)
    }

    /// Opens a PIT entry for a looked-up name that has none, requested by `face`. Evicts others if there is no room.
    ///
    /// # Errors
    /// If no room can be made.
    #[inline(always)]
    pub fn open(&mut self, now: Timestamp, face: FaceId, lookup: NameLookup<'_>) -> Result<PitEntry, DropReason> {
        self.state.open_slot(now, face, (&lookup.key, EXACT), lookup.found, None).map(PitEntry)
    }

    /// Adds a downstream to a PIT entry, which waits without limit.
    ///
    /// # Errors
    /// If there are too many downstreams.
    #[inline(always)]
    pub fn add_downstream(&mut self, pit: PitEntry, face: FaceId) -> Result<(), DropReason> {
        let arrival = Arrival {
            face,
            nonce: 0,
            expiry: Timestamp::NEVER,
            lifetime_ms: LIFETIME_ABSENT,
            hop_limit: PendingHopLimit::Absent,
            congestion_mark: 0,
            token: &PitToken::empty(),
            non_discovery: false,
            measured: false,
        };
        match self.state.pcct.pit.renew(pit.0, &arrival) {
            Ok(_) => Ok(()),
            Err(NoRoom) => Err(DropReason::TooManyDownstreams),
        }
    }

    /// Sends Data that arrived on `face` to all downstreams of a PIT entry, in their order. The entry must be closed
    /// next.
    #[inline(always)]
    pub fn answer(&mut self, pit: PitEntry, face: FaceId, data: PacketBuffer, out: &mut Vec<Outgoing>) {
        match self.state.pcct.pit.only_in_record(pit.0).map(|record| record.face) {
            Some(downstream) => self.send(downstream, PacketKind::Data, data, out),
            None => {
                let mut downstreams = std::mem::take(&mut self.state.scratch.downstreams);
                downstreams.clear();
                self.state.pcct.pit.take_in_records(pit.0, |_| true, |_, downstream| downstreams.push(downstream));
                let source = DataSource { face, congestion_mark: 0, stamp: Stamp::NONE, is_localhost: false };
                self.state.emitter.send_data(data, &source, &downstreams, None, out);
                self.state.scratch.downstreams = downstreams;
            }
        }
    }

    /// Closes a PIT entry.
    #[inline(always)]
    pub fn close(&mut self, pit: PitEntry) {
        self.state.pcct.pit.close(&mut self.state.pcct.names, pit.0);
    }

    /// Returns the next hop of least cost of a name's longest prefix. `guess` is the guess for this name, or none.
    #[inline(always)]
    pub fn next_hop(&self, guess: FibGuess, hashes: &PrefixHashes, name: NameRef<'_>) -> Option<FaceId> {
        self.fib.longest_prefix_match_near(guess, hashes, name).nexthops().faces().first().copied()
    }
}

/// Content Store. The router inserts Data in the same parts, from [`offer`](Tables::offer) to
/// [`insert`](Tables::insert).
impl Tables<'_> {
    /// Has the cache policy record a request for a name, whether cached Data will answer it or not.
    #[inline(always)]
    pub fn note_request(&mut self, hashes: &PrefixHashes) {
        self.state.pcct.content.note_request(hashes.full());
    }

    /// Returns the cached Data of a looked-up name.
    #[inline(always)]
    pub fn cached(&self, lookup: &NameLookup<'_>) -> Option<CachedData> {
        lookup.found.exact().filter(|&entry| self.state.pcct.names.entry(entry).has_data()).map(CachedData)
    }

    /// Has the cache policy record that cached Data answers an Interest.
    #[inline(always)]
    pub fn note_hit(&mut self, cached: CachedData) {
        self.state.pcct.content.note_used(cached.0);
    }

    /// Returns a copy of cached Data in a packet buffer.
    ///
    /// # Errors
    /// If no buffer is free.
    #[inline(always)]
    pub fn copy_of(&self, cached: CachedData) -> Result<PacketBuffer, DropReason> {
        self.state
            .emitter
            .copy_of(self.state.pcct.content.data(&self.state.pcct.names, cached.0))
            .ok_or(DropReason::NoBuffer)
    }

    /// Returns whether the Content Store admits Data at all.
    #[inline(always)]
    pub fn admits_data(&self) -> bool {
        self.state.pcct.content.admits()
    }

    /// Starts to insert Data with the name of a PIT entry. The result is final if the same Data is cached already, or
    /// if nothing is cached.
    #[inline(always)]
    pub fn offer<'d>(
        &mut self,
        pit: PitEntry,
        data: &'d NewData<'d>,
        now: Timestamp,
    ) -> ControlFlow<Stored, Candidate<'d>> {
        let candidate = Candidate::new(&self.state.pcct.names, pit.0.entry, data, now);
        match self.state.pcct.content.offer(&mut self.state.pcct.names, &candidate) {
            ControlFlow::Continue(()) => ControlFlow::Continue(candidate),
            ControlFlow::Break(stored) => ControlFlow::Break(stored),
        }
    }

    /// Returns whether the cache policy decides on the admission of this Data; otherwise it is admitted.
    #[inline(always)]
    pub fn needs_decision(&self, candidate: &Candidate<'_>) -> bool {
        self.state.pcct.content.needs_decision(candidate)
    }

    /// Has the cache policy decide on the admission. Rejected Data must be passed to [`reject`](Self::reject).
    #[inline(always)]
    pub fn admits(&mut self, candidate: &Candidate<'_>) -> bool {
        self.state.pcct.content.decide(candidate)
    }

    /// Ends the insertion of Data that the policy rejected.
    #[inline(always)]
    pub fn reject(&mut self, candidate: &Candidate<'_>) -> Stored {
        self.state.pcct.content.reject(&self.state.pcct.names, candidate)
    }

    /// Returns whether Data must be evicted before other Data is inserted; at most [`EVICTIONS_PER_INSERTION`] times.
    #[inline(always)]
    pub fn is_store_full(&self) -> bool {
        self.state.pcct.content.is_over_capacity()
    }

    /// Has the cache policy choose the Data to evict, which must be passed to [`evict`](Self::evict); `None` if nothing
    /// is cached.
    #[inline(always)]
    pub fn choose_victim(&mut self) -> Option<CachedData> {
        self.state.pcct.content.choose_victim().map(CachedData)
    }

    /// Evicts the Data that the policy chose.
    #[inline(always)]
    pub fn evict(&mut self, victim: Option<CachedData>) {
        self.state.pcct.content.evict(&mut self.state.pcct.names, victim.map(|victim| victim.0));
    }

    /// Copies the Data into the store, and ends its insertion.
    #[inline(always)]
    pub fn insert(&mut self, candidate: &Candidate<'_>) -> Stored {
        self.state.pcct.content.insert(&mut self.state.pcct.names, candidate)
    }

    /// Counts the result of an insertion.
    #[inline(always)]
    pub fn note_stored(&mut self, stored: Stored) {
        self.state.emitter.counters.note_stored(stored);
    }
}
