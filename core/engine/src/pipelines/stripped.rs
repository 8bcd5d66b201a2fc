//! The reduced path that publications measured instead of a whole router: see [`Stripped`](crate::schedule::Stripped).
//!
//! Tables and prefetch plane are the engine's own. Omitted are PIT tokens, NDNLPv2 fields, selectors, forwarding hints,
//! nonces, HopLimits, scopes, limits on names, strategies, out-records and timers: a PIT entry without Data stays until
//! the PIT is full. The order of the steps is that of Takemasa (thesis, 2019, section 3 and figure 4.2).

use std::ops::ControlFlow;

use namehop_packet::{DropReason, Incoming, LinkFields, Outgoing, PacketKind, Stamp, Timestamp};
use namehop_wire::lp::PitToken;

use super::outgoing_data::DataSource;
use crate::engine::Engine;
use crate::flow::{BlockClock, FlowBlock};
use crate::pcct::insertion::{EVICTIONS_PER_INSERTION, NewData, Stored};
use crate::pcct::entry::{LIFETIME_ABSENT, Selectors};
use crate::pcct::keys::Key;
use crate::pcct::record::PendingHopLimit;
use crate::pcct::{Arrival, NoRoom, Pcct};
use crate::schedule::{Prepared, Schedule};

/// Names match exactly, and Data never becomes stale.
const EXACT: Selectors = Selectors { can_be_prefix: false, must_be_fresh: false };

impl<S: Schedule> Engine<S> {
    /// Handles an Interest. The error is the reason why it was dropped.
    pub(crate) fn stripped_interest(
        &mut self,
        now: Timestamp,
        packet: Incoming,
        prepared: Prepared<'_>,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        let Engine { fib, core, clock, .. } = self;
        clock.start();
        core.counters.in_interests += 1;
        let (layout, fib_guess) = (&prepared.parsed.interest, prepared.fib_guess);
        let name = layout.name.of_packet(packet.buffer.bytes());
        let hashes = prepared.into_hashes(&core.key, name)?;
        clock.lap(FlowBlock::InterestHashing);
        let key = Key {
            name: name.value(),
            name_hash: hashes.full(),
            depth: hashes.depth(),
            names_digest: false,
            delegation: &[],
            delegation_hash: 0,
        };

        // Content Store lookup.
        core.pcct.note_request(key.name_hash);
        clock.lap(FlowBlock::HistoryUpdate);
        let found = core.pcct.look_up(&key);
        let cached = found.exact().filter(|&entry| core.pcct.entry(entry).has_data());
        clock.lap(FlowBlock::StoreLookup);
        if let Some(cached) = cached {
            core.counters.cs_hits += 1;
            core.counters.satisfied_interests += 1;
            core.pcct.note_data_used(cached);
            clock.lap(FlowBlock::HistoryUpdate);
            let copy = core.pool.copy_of(core.pcct.data(cached)).ok_or(DropReason::NoBuffer)?;
            clock.lap(FlowBlock::StoreFetch);
            core.transmit(packet.face, PacketKind::Data, copy, out, LinkFields::default);
            clock.lap(FlowBlock::DataTransmission);
            return Ok(());
        }
        core.counters.cs_misses += 1;

        // PIT lookup, and insertion of the incoming face.
        let pending = found.exact().and_then(|entry| core.pcct.find_slot(entry, EXACT));
        let pit = match pending {
            Some(pit) => pit,
            None => core.open_slot(now, packet.face, (&key, EXACT), found, None)?,
        };
        let arrival = Arrival {
            face: packet.face,
            nonce: 0,
            expiry: Timestamp::NEVER,
            lifetime_ms: LIFETIME_ABSENT,
            hop_limit: PendingHopLimit::Absent,
            congestion_mark: 0,
            token: &PitToken::empty(),
            non_discovery: false,
            measured: false,
        };
        core.pcct.renew(pit, &arrival).map_err(|NoRoom| DropReason::TooManyDownstreams)?;
        clock.lap(FlowBlock::PitInsertion);
        if pending.is_some() {
            core.counters.aggregated_interests += 1;
            return Ok(());
        }

        // FIB longest prefix match, and out to the first next hop.
        let matched = fib.longest_prefix_match_near(fib_guess, hashes, name);
        let next_hop = matched.nexthops().faces().first();
        clock.lap(FlowBlock::FibLookup);
        match next_hop {
            Some(&face) => {
                core.transmit(face, PacketKind::Interest, packet.buffer, out, LinkFields::default);
                clock.lap(FlowBlock::InterestTransmission);
            }
            // Without timers nothing else would end the PIT entry.
            None => {
                core.counters.unsatisfied_interests += 1;
                core.pcct.close_slot(pit);
                return Err(DropReason::NoSuchNextHop);
            }
        }
        Ok(())
    }

    /// Handles Data. The error is the reason why it was dropped.
    pub(crate) fn stripped_data(
        &mut self,
        now: Timestamp,
        packet: Incoming,
        prepared: Prepared<'_>,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        let Engine { core, clock, .. } = self;
        clock.start();
        core.counters.in_data += 1;
        let name = prepared.parsed.data.name.of_packet(packet.buffer.bytes());
        let hashes = prepared.into_hashes(&core.key, name)?;
        clock.lap(FlowBlock::DataHashing);

        // PIT lookup.
        let entry = core.pcct.find_name(hashes.full(), name.value()).ok_or(DropReason::UnsolicitedData)?;
        let pit = core.pcct.find_slot(entry, EXACT).ok_or(DropReason::UnsolicitedData)?;
        clock.lap(FlowBlock::PitLookup);

        // Content Store insertion.
        if core.pcct.content.admits() {
            let new = NewData {
                packet: packet.buffer.bytes(),
                hashes: None,
                fresh_until: Timestamp::NEVER,
                is_solicited: true,
                digest: None,
                is_from_tier: false,
            };
            let stored = store(&mut core.pcct, entry, &new, now, clock);
            core.counters.note_stored(stored);
        }

        // Out to the downstreams of the PIT entry.
        match core.pcct.only_in_record(pit).map(|record| record.face) {
            Some(face) => core.transmit(face, PacketKind::Data, packet.buffer, out, LinkFields::default),
            None => {
                let mut downstreams = std::mem::take(&mut core.downstreams);
                downstreams.clear();
                core.pcct.take_in_records(pit, |_| true, |_, downstream| downstreams.push(downstream));
                let source =
                    DataSource { face: packet.face, congestion_mark: 0, stamp: Stamp::NONE, is_localhost: false };
                core.send_data(packet.buffer, &source, &downstreams, None, out);
                core.downstreams = downstreams;
            }
        }

        clock.lap(FlowBlock::DataTransmission);

        // PIT entry removed.
        core.counters.satisfied_interests += 1;
        core.pcct.close_slot(pit);
        clock.lap(FlowBlock::PitRemoval);
        Ok(())
    }
}

/// Caches Data as [`Pcct::store_data`], and times the parts.
#[inline(always)]
fn store(pcct: &mut Pcct, entry: u32, data: &NewData<'_>, now: Timestamp, clock: &mut impl BlockClock) -> Stored {
    let candidate = match pcct.offer_data(entry, data, now) {
        ControlFlow::Continue(candidate) => candidate,
        ControlFlow::Break(stored) => return stored,
    };
    if pcct.needs_decision(&candidate) {
        let is_admitted = pcct.admits_candidate(&candidate);
        clock.lap(FlowBlock::Admission);
        if !is_admitted {
            return pcct.reject_candidate(&candidate);
        }
    }
    for _ in 0..EVICTIONS_PER_INSERTION {
        if pcct.content.is_over_capacity() {
            let victim = pcct.choose_victim();
            clock.lap(FlowBlock::Eviction);
            pcct.give_up_data(victim);
        }
    }
    let stored = pcct.insert_candidate(&candidate);
    if stored == Stored::Yes {
        clock.lap(FlowBlock::StoreInsertion);
    }
    stored
}
