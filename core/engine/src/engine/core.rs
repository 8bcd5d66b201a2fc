//! The state of an engine except the FIB: tables, faces, timers, counters.
//!
//! It is separate from the FIB so that a pipeline can hold a FIB match, which borrows the reader, while it changes the
//! rest.

use std::sync::Arc;
use std::time::Duration;

use namehop_hash::{HashKey, Lanes, PrefixHashes, hash_name, hash_with_nonce};
use namehop_packet::in_place::push_in_place;
use namehop_packet::{
    BufferPool, DropReason, FaceId, Incoming, LinkFields, Outgoing, PacketBuffer, PacketKind, Timestamp,
};
use namehop_wire::{Name, NameRef, long_name_bytes};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::config::{EngineConfig, EngineError, UnsolicitedPolicy};
use super::cs_counters::PolicyPeriods;
use super::faces::FaceArray;
use super::learning::{EngineEvent, Learning};
use super::long_names::{Allowance, LongNames};
use super::new_nexthop::NewNextHops;
use super::retry::LostUpstreams;
use super::tier_reads::TierReads;
use crate::counters::EngineCounters;
use crate::dead_nonce_list::DeadNonceList;
use crate::dispatch::NameDispatch;
use crate::pcct::content::ContentConfig;
use crate::pcct::entry::Selectors;
use crate::pcct::keys::{Found, Key, NoEntry};
use crate::pcct::record::InRecord;
use crate::pcct::token::TokenForm;
use crate::pcct::{Downstream, Pcct, PcctConfig, PitRef};
use crate::schedule::MAX_LOOKAHEAD;
use crate::strategy::MeasurementTable;
use crate::timer::{Timer, TimerWheel};
use crate::trace::{TraceStep, Tracing};

/// Maximum number of times that memory is reclaimed for one new PIT entry before it is refused.
const MAX_RECLAIMS: usize = 4;
/// Maximum number of memory chunks examined to find one to reclaim.
const CHUNKS_LOOKED_AT: usize = 8;
/// PIT entries evicted for one record outside a PIT entry: one in four PIT entries may have such records.
const EVICTIONS_FOR_RECORDS: usize = 16;
/// Maximum number of PIT entries reassigned to an aggregated downstream during one eviction. A downstream has sent an
/// Interest for each of them.
const MAX_HANDED_OVER: usize = 64;

/// Minimum time between two reports of the same limit.
const LIMIT_REPORT_INTERVAL_MS: u64 = 60_000;

/// The engine without its FIB.
pub(crate) struct Core {
    pub(crate) worker: u8,
    pub(crate) token_form: TokenForm,
    pub(crate) key: HashKey,
    pub(crate) pool: BufferPool,
    pub(crate) pcct: Pcct,
    pub(crate) faces: FaceArray,
    pub(crate) dead_nonces: DeadNonceList,
    pub(crate) timers: TimerWheel,
    pub(crate) measurements: MeasurementTable,
    pub(crate) counters: EngineCounters,
    pub(crate) policy_periods: PolicyPeriods,
    pub(crate) learning: Learning,
    pub(crate) new_nexthops: NewNextHops,
    pub(crate) lost_upstreams: LostUpstreams,
    pub(crate) producer_regions: Vec<Name>,
    pub(crate) unsolicited: UnsolicitedPolicy,
    pub(crate) accept_unasked_data: bool,
    pub(crate) default_hop_limit: u8,
    pub(crate) max_name_bytes: usize,
    pub(crate) long_names: LongNames,
    pub(crate) max_lifetime_ms: u64,
    pub(crate) dead_nonce_lifetime_ms: u64,
    /// Number of packets that the prefetch stages process together.
    pub(crate) lookahead: usize,
    /// The SIMD lanes that hash the names of a burst.
    pub(crate) lanes: Lanes,
    /// The FIB's strategies version at the start of the burst, and the serial number of the first PIT entry since it
    /// last changed.
    pub(crate) strategies_version: u64,
    pub(crate) strategies_since: u32,
    /// Time of the last call.
    pub(crate) now: Timestamp,
    random: SplitMix64,
    /// The earliest time of the next report for each limit.
    next_limit_reports: [Timestamp; DropReason::COUNT],
    /// Lists that are reused to avoid allocations.
    pub(crate) matches: Vec<PitRef>,
    pub(crate) downstreams: Vec<Downstream>,
    pub(crate) answered: Vec<(InRecord, Downstream)>,
    pub(crate) due: Vec<Timer>,
    owners: Vec<u32>,
    /// `None` if there is only one engine.
    pub(crate) dispatch: Option<Arc<NameDispatch>>,
    /// Packets that turned out to belong to another engine.
    pub(crate) misdirected: Vec<Incoming>,
    pub(crate) tracing: Tracing,
    /// Interests that wait for the second tier of the Content Store; `None` if there is none.
    pub(crate) tier_reads: Option<Box<TierReads>>,
}

impl Core {
    pub(crate) fn new(config: EngineConfig, pool: BufferPool, key: HashKey) -> Result<Self, EngineError> {
        let pcct = Pcct::new(&PcctConfig {
            pit_capacity: config.pit_capacity,
            memory_bytes: config.pit_memory_bytes,
            content: ContentConfig {
                capacity_packets: config.cs.capacity_packets,
                capacity_bytes: config.cs.capacity_bytes,
                reserved_packets: config.reserved_packets,
                policy: config.cs.policy,
                admit: config.cs.admit,
                serve: config.cs.serve,
            },
            key,
        })?;
        Ok(Core {
            worker: config.worker,
            token_form: pcct.token_form(config.worker),
            key,
            pool,
            pcct,
            faces: FaceArray::new(),
            dead_nonces: DeadNonceList::new(
                Duration::from_millis(config.dead_nonce_lifetime_ms),
                config.dead_nonce_capacity,
            )?,
            timers: TimerWheel::new(Timestamp::default(), config.pit_capacity, config.new_timers)?,
            measurements: MeasurementTable::new(config.measurement_capacity),
            counters: EngineCounters::default(),
            policy_periods: PolicyPeriods::default(),
            learning: Learning::new(),
            new_nexthops: NewNextHops::new(),
            lost_upstreams: LostUpstreams::new(),
            producer_regions: config.producer_regions,
            unsolicited: config.unsolicited,
            accept_unasked_data: config.accept_unasked_data,
            default_hop_limit: config.default_hop_limit,
            max_name_bytes: config.max_name_bytes,
            long_names: LongNames::new(config.long_name_bytes_per_s),
            max_lifetime_ms: config.max_lifetime_ms,
            dead_nonce_lifetime_ms: config.dead_nonce_lifetime_ms,
            lookahead: config.lookahead.clamp(1, MAX_LOOKAHEAD),
            lanes: Lanes::best(),
            strategies_version: 0,
            strategies_since: 0,
            now: Timestamp::default(),
            // Seeded from the secret hash key; the outputs that peers can observe do not reveal it. Each worker has its
            // own sequence.
            random: SplitMix64::seed_from_u64(hash_with_nonce(
                hash_name(&key, b"random numbers"),
                config.worker.into(),
            )),
            next_limit_reports: [Timestamp::default(); DropReason::COUNT],
            matches: Vec::new(),
            downstreams: Vec::new(),
            answered: Vec::new(),
            due: Vec::new(),
            owners: Vec::new(),
            dispatch: None,
            misdirected: Vec::new(),
            tracing: Tracing::default(),
            tier_reads: None,
        })
    }

    /// Returns a random number.
    pub(crate) fn random(&mut self) -> u64 {
        self.random.next_u64()
    }

    pub(crate) fn count_drop(&mut self, face: FaceId, reason: DropReason) {
        self.tracing.note(|| TraceStep::Dropped(reason));
        self.counters.drops[reason] += 1;
        self.faces.count_drop(face, reason);
        if reason.setting().is_some() && self.now >= self.next_limit_reports[reason.index()] {
            self.next_limit_reports[reason.index()] = self.now.plus_ms(LIMIT_REPORT_INTERVAL_MS);
            self.report(EngineEvent::LimitReached { reason, face });
        }
    }

    /// Returns whether a forwarding hint that names `delegation` has reached the region of this router.
    pub(crate) fn is_producer_region(&self, delegation: NameRef<'_>) -> bool {
        self.producer_regions.iter().any(|region| delegation.is_prefix_of(region.as_ref()))
    }

    /// Sends a packet to its face.
    #[inline(always)]
    pub(crate) fn transmit(
        &mut self,
        face: FaceId,
        kind: PacketKind,
        buffer: PacketBuffer,
        out: &mut Vec<Outgoing>,
        fields: impl FnOnce() -> LinkFields,
    ) {
        self.tracing.note(|| TraceStep::Sent { kind, face });
        match kind {
            PacketKind::Interest => self.counters.out_interests += 1,
            PacketKind::Data => self.counters.out_data += 1,
            PacketKind::Nack => self.counters.out_nacks += 1,
        }
        push_in_place(out, move || Outgoing { face, kind, buffer, fields: fields() });
    }

    /// Removes the records of faces that no longer exist, so that strategies neither wait for them nor count them.
    pub(crate) fn forget_removed_faces(&mut self, pit: PitRef) {
        let faces = &self.faces;
        self.pcct.remove_in_records(pit, |record| !faces.exists(record.face));
        self.pcct.remove_out_records(pit, |record| !faces.exists(record.face));
    }

    /// Opens a PIT slot for `key`, requested by `face`, and evicts other PIT entries if there is no room. `found` is
    /// the table's lookup result for the key. `packet` is kept with the slot.
    pub(crate) fn open_slot(
        &mut self,
        now: Timestamp,
        face: FaceId,
        (key, selectors): (&Key<'_>, Selectors),
        mut found: Found,
        packet: Option<&[u8]>,
    ) -> Result<PitRef, DropReason> {
        while self.pcct.pit_is_full() {
            if !self.evict(now, face) {
                return Err(DropReason::PitFull);
            }
            // The evicted slot may have been the last one of the entry.
            found = self.pcct.look_up(key);
        }
        for _ in 0..=MAX_RECLAIMS {
            let entry = match found {
                Found::Exact(entry) => Ok(entry),
                Found::Variant(sibling) => self.pcct.insert(key, Some(sibling)),
                Found::Nothing => self.pcct.insert(key, None),
            };
            match entry {
                Ok(entry) => {
                    let Some(pit) = self.pcct.open_slot(entry, selectors, face) else {
                        self.pcct.free_if_unused(entry);
                        if !self.make_room_for_records(now, face, None) {
                            return Err(DropReason::PitFull);
                        }
                        found = self.pcct.look_up(key);
                        continue;
                    };
                    if packet.is_none_or(|packet| self.pcct.store_packet(pit, packet)) {
                        return Ok(pit);
                    }
                    self.pcct.close_slot(pit);
                }
                Err(NoEntry::TooManyHints) => {
                    self.give_up_hint(now, found, face);
                    found = self.pcct.look_up(key);
                    continue;
                }
                Err(NoEntry::NoMemory) => {}
                Err(NoEntry::TableFull) => {
                    self.evict(now, face);
                }
            }
            self.reclaim_memory(now);
            found = self.pcct.look_up(key);
        }
        Err(DropReason::PitFull)
    }

    /// Evicts the entry of one forwarding hint of a name to make room for another hint that `face` uses.
    #[cold]
    fn give_up_hint(&mut self, now: Timestamp, found: Found, face: FaceId) {
        let Found::Variant(known) = found else { return };
        let faces = &self.faces;
        let is_of_others = |record: &InRecord| record.face != face && faces.exists(record.face);
        let Some(victim) = self.pcct.hint_to_give_up(known, is_of_others) else { return };
        while let Some(pit) = self.first_slot(victim) {
            let downstream = self.pcct.in_records(pit).next().map_or(FaceId::INVALID, |record| record.face);
            self.count_drop(downstream, DropReason::TooManyHints);
            self.end_slot(now, pit);
        }
        if self.pcct.entry(victim).in_use() {
            self.pcct.remove_data(victim);
        }
    }

    /// Evicts a PIT entry of a face that holds many, for a new one of `newcomer`. Its downstreams get no Nack. Returns
    /// `false` if the newcomer itself holds too many.
    fn evict(&mut self, now: Timestamp, newcomer: FaceId) -> bool {
        let Some(mut victim) = self.pcct.victim(newcomer) else { return false };
        // An entry that other downstreams have joined is reassigned to one of them.
        for _ in 0..MAX_HANDED_OVER {
            let faces = &self.faces;
            let waits = |record: &InRecord| record.expiry > now && faces.exists(record.face);
            if self.pcct.in_count(victim) < 2 || !self.pcct.hand_over(victim, waits) {
                break;
            }
            let Some(next) = self.pcct.victim(newcomer) else { return false };
            victim = next;
        }
        self.give_up_slot(now, victim);
        true
    }

    /// Evicts a PIT entry and counts the drop for the face that holds it. In a flood this is mostly the same face, so
    /// its counters are in the CPU cache. Without evictions this costs nothing.
    fn give_up_slot(&mut self, now: Timestamp, pit: PitRef) {
        self.count_drop(self.pcct.holder(pit), DropReason::PitEvicted);
        self.end_slot(now, pit);
    }

    /// Evicts PIT entries of faces that hold many until there is room for a record outside PIT entries: more selectors
    /// of one name, more downstreams, more upstreams, long tokens. The room is for `newcomer`, and `kept` is not
    /// evicted. Returns `false` if no room is missing, or if none could be made.
    #[cold]
    pub(crate) fn make_room_for_records(&mut self, now: Timestamp, newcomer: FaceId, kept: Option<PitRef>) -> bool {
        if !self.pcct.records_are_used_up() {
            return false;
        }
        for _ in 0..EVICTIONS_FOR_RECORDS {
            let Some(victim) = self.pcct.victim(newcomer) else { break };
            if Some(victim) != kept {
                self.give_up_slot(now, victim);
            }
            if !self.pcct.records_are_used_up() {
                return true;
            }
        }
        false
    }

    /// Evicts all entries that hold memory of one chunk, PIT slots and Data alike, so that any size fits again. Chunks
    /// with PIT slots of faces that hold few are spared, unless all examined chunks have some.
    fn reclaim_memory(&mut self, now: Timestamp) {
        let mut owners = std::mem::take(&mut self.owners);
        for _ in 0..CHUNKS_LOOKED_AT {
            self.pcct.memory_owners(&mut owners);
            if !owners.iter().any(|&owner| self.pcct.is_held_by_few(owner)) {
                break;
            }
        }
        for &owner in &owners {
            while let Some(pit) = self.first_slot(owner) {
                self.give_up_slot(now, pit);
            }
            if self.pcct.entry(owner).in_use() {
                self.pcct.remove_data(owner);
            }
        }
        self.owners = owners;
    }

    fn first_slot(&self, entry: u32) -> Option<PitRef> {
        if self.pcct.entry(entry).in_use() { self.pcct.slots(entry).next() } else { None }
    }

    /// Refuses names longer than the maximum, before any other work on them.
    #[inline]
    pub(crate) fn check_length(&self, name: NameRef<'_>) -> Result<(), DropReason> {
        if name.value().len() <= self.max_name_bytes { Ok(()) } else { Err(DropReason::NameTooLong) }
    }

    /// Refuses an undecoded packet that [`admit_name`](Self::admit_name) would refuse for the length of its name.
    /// `total` is the rest of the allowance of all faces.
    #[inline]
    pub(crate) fn check_unread(&self, face: FaceId, packet: &[u8], total: &Allowance) -> Result<(), DropReason> {
        match long_name_bytes(packet) {
            Some(bytes) if bytes > self.max_name_bytes => Err(DropReason::NameTooLong),
            Some(bytes) if !self.long_names.may_take(face, bytes, total) => Err(DropReason::TooManyLongNames),
            _ => Ok(()),
        }
    }

    /// Refuses names longer than the maximum, and long ones beyond the rate limit. Must be called before the name is
    /// hashed.
    #[inline]
    pub(crate) fn admit_name(&mut self, face: FaceId, name: NameRef<'_>) -> Result<(), DropReason> {
        self.check_length(name)?;
        if self.long_names.take(face, name) { Ok(()) } else { Err(DropReason::TooManyLongNames) }
    }

    /// Adds the nonce of an Interest to the Dead Nonce List.
    pub(crate) fn insert_dead_nonce(&mut self, now: Timestamp, name_hash: u64, nonce: u32) {
        self.dead_nonces.insert(hash_with_nonce(name_hash, nonce), now);
    }
}

/// Returns whether the last component of `name` is an implicit digest. `hashes` must be the prefix hashes of the name.
pub(crate) fn names_digest(name: &[u8], hashes: &PrefixHashes) -> bool {
    let depth = hashes.depth();
    // Component types are in their shortest form, so the first byte of the component is its type or above 252.
    depth > 0
        && u32::from(name[hashes.value_bytes(depth - 1)]) == namehop_wire::tlv::types::IMPLICIT_SHA256_DIGEST_COMPONENT
}
