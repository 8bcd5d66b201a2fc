//! The reduced path that publications measured instead of a whole router: see [`PathKind::Stripped`].
//!
//! Tables and prefetch plane are the engine's own. Omitted are PIT tokens, NDNLPv2 fields, selectors, forwarding hints,
//! nonces, HopLimits, scopes, limits on names, strategies, out-records and timers: a PIT entry without Data stays until
//! the PIT is full. The order of the steps is that of Takemasa (thesis, 2019, section 3 and figure 4.2).
//!
//! [`PathKind::Stripped`]: crate::PathKind::Stripped

use std::ops::ControlFlow;

use namehop_engine::Engine;
use namehop_engine::schedule::{BurstState, Group, ParsedKind, Prepared};
use namehop_engine::tables::{EVICTIONS_PER_INSERTION, NewData, PitEntry, Stored, Tables};
use namehop_hash::Lanes;
use namehop_packet::{DropReason, Incoming, Outgoing, PacketKind, Timestamp};

use crate::clock::{BlockClock, FlowBlock};
use crate::path::Path;

/// The stripped path, with a clock for its blocks.
pub(crate) struct Stripped<C> {
    clock: C,
}

impl<C> Stripped<C> {
    pub(crate) fn new(clock: C) -> Self {
        Stripped { clock }
    }

    pub(crate) fn clock(&self) -> &C {
        &self.clock
    }
}

impl<C: BlockClock> Path for Stripped<C> {
    #[inline(always)]
    fn parse(&mut self, _: &Engine, packets: &[Incoming], state: &mut BurstState) {
        let clock = &mut self.clock;
        clock.start();
        state.parse(packets, None, |kind| {
            clock.lap(if kind == ParsedKind::Data { FlowBlock::DataDecoding } else { FlowBlock::InterestDecoding });
        });
    }

    #[inline(always)]
    fn look_ahead(engine: &Engine, packets: &[Incoming], state: &mut BurstState, group: Group, lanes: Lanes) {
        state.hash_names(engine, packets, group, lanes, None);
        state.prefetch_buckets(engine, packets, group, false);
    }

    #[inline(always)]
    fn handle(
        &mut self,
        engine: &mut Engine,
        now: Timestamp,
        packet: Incoming,
        prepared: Prepared<'_>,
        out: &mut Vec<Outgoing>,
    ) {
        let face = packet.face;
        let handled = match prepared.kind() {
            ParsedKind::Interest => self.interest(engine.tables(), now, packet, prepared, out),
            ParsedKind::Data => self.data(engine.tables(), now, packet, prepared, out),
            ParsedKind::Nack(_) | ParsedKind::Unread | ParsedKind::Malformed => {
                return handle_whole(engine, now, packet, prepared, out);
            }
        };
        if let Err(reason) = handled {
            engine.tables().count_drop(face, reason);
        }
    }
}

/// Handles a packet that is neither an Interest nor Data, as on the router's path.
#[cold]
#[inline(never)]
fn handle_whole(
    engine: &mut Engine,
    now: Timestamp,
    packet: Incoming,
    prepared: Prepared<'_>,
    out: &mut Vec<Outgoing>,
) {
    engine.handle(now, packet, prepared, out);
}

impl<C: BlockClock> Stripped<C> {
    /// Handles an Interest. The error is the reason why it was dropped.
    #[inline(always)]
    fn interest(
        &mut self,
        mut tables: Tables<'_>,
        now: Timestamp,
        packet: Incoming,
        prepared: Prepared<'_>,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        let clock = &mut self.clock;
        clock.start();
        tables.counters().in_interests += 1;
        let fib_guess = prepared.fib_guess();
        let name = prepared.name(&packet);
        let hashes = prepared.into_hashes(tables.key(), name)?;
        clock.lap(FlowBlock::InterestHashing);

        // Content Store lookup.
        tables.note_request(hashes);
        clock.lap(FlowBlock::HistoryUpdate);
        let lookup = tables.look_up(name, hashes);
        let cached = tables.cached(&lookup);
        clock.lap(FlowBlock::StoreLookup);
        if let Some(cached) = cached {
            tables.counters().cs_hits += 1;
            tables.counters().satisfied_interests += 1;
            tables.note_hit(cached);
            clock.lap(FlowBlock::HistoryUpdate);
            let copy = tables.copy_of(cached)?;
            clock.lap(FlowBlock::StoreFetch);
            tables.send(packet.face, PacketKind::Data, copy, out);
            clock.lap(FlowBlock::DataTransmission);
            return Ok(());
        }
        tables.counters().cs_misses += 1;

        // PIT lookup, and insertion of the incoming face.
        let pending = tables.pending(&lookup);
        let pit = match pending {
            Some(pit) => pit,
            None => tables.open(now, packet.face, lookup)?,
        };
        tables.add_downstream(pit, packet.face)?;
        clock.lap(FlowBlock::PitInsertion);
        if pending.is_some() {
            tables.counters().aggregated_interests += 1;
            return Ok(());
        }

        // FIB longest prefix match, and out to the first next hop.
        let next_hop = tables.next_hop(fib_guess, hashes, name);
        clock.lap(FlowBlock::FibLookup);
        match next_hop {
            Some(face) => {
                tables.send(face, PacketKind::Interest, packet.buffer, out);
                clock.lap(FlowBlock::InterestTransmission);
            }
            // Without timers nothing else would end the PIT entry.
            None => {
                tables.counters().unsatisfied_interests += 1;
                tables.close(pit);
                return Err(DropReason::NoSuchNextHop);
            }
        }
        Ok(())
    }

    /// Handles Data. The error is the reason why it was dropped.
    #[inline(always)]
    fn data(
        &mut self,
        mut tables: Tables<'_>,
        now: Timestamp,
        packet: Incoming,
        prepared: Prepared<'_>,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        self.clock.start();
        tables.counters().in_data += 1;
        let name = prepared.name(&packet);
        let hashes = prepared.into_hashes(tables.key(), name)?;
        self.clock.lap(FlowBlock::DataHashing);

        // PIT lookup.
        let pit = tables.find_pending(name, hashes).ok_or(DropReason::UnsolicitedData)?;
        self.clock.lap(FlowBlock::PitLookup);

        // Content Store insertion.
        if tables.admits_data() {
            let stored = self.store(&mut tables, pit, &NewData::by_name(packet.buffer.bytes()), now);
            tables.note_stored(stored);
        }

        // Out to the downstreams of the PIT entry.
        tables.answer(pit, packet.face, packet.buffer, out);
        self.clock.lap(FlowBlock::DataTransmission);

        // PIT entry removed.
        tables.counters().satisfied_interests += 1;
        tables.close(pit);
        self.clock.lap(FlowBlock::PitRemoval);
        Ok(())
    }

    /// Caches Data as the router does, and times the parts.
    #[inline(always)]
    fn store(&mut self, tables: &mut Tables<'_>, pit: PitEntry, data: &NewData<'_>, now: Timestamp) -> Stored {
        let candidate = match tables.offer(pit, data, now) {
            ControlFlow::Continue(candidate) => candidate,
            ControlFlow::Break(stored) => return stored,
        };
        if tables.needs_decision(&candidate) {
            let is_admitted = tables.admits(&candidate);
            self.clock.lap(FlowBlock::Admission);
            if !is_admitted {
                return tables.reject(&candidate);
            }
        }
        for _ in 0..EVICTIONS_PER_INSERTION {
            if tables.is_store_full() {
                let victim = tables.choose_victim();
                self.clock.lap(FlowBlock::Eviction);
                tables.evict(victim);
            }
        }
        let stored = tables.insert(&candidate);
        if stored == Stored::Yes {
            self.clock.lap(FlowBlock::StoreInsertion);
        }
        stored
    }
}
