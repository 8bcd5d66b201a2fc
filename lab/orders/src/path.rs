//! The path of packets: how they are decoded, hashed and handled. An order arranges these steps.

use namehop_engine::Engine;
use namehop_engine::schedule::{BurstState, Group, Prepared};
use namehop_hash::Lanes;
use namehop_packet::{Incoming, Outgoing, Timestamp};

/// The steps that differ between paths.
pub(crate) trait Path {
    /// Decodes packets, from position 0 of the burst on.
    fn parse(&mut self, engine: &Engine, packets: &[Incoming], state: &mut BurstState);

    /// Hashes the names of a group and prefetches their buckets.
    fn look_ahead(engine: &Engine, packets: &[Incoming], state: &mut BurstState, group: Group, lanes: Lanes);

    /// Handles a packet.
    fn handle(
        &mut self,
        engine: &mut Engine,
        now: Timestamp,
        packet: Incoming,
        prepared: Prepared<'_>,
        out: &mut Vec<Outgoing>,
    );
}

/// The router's path: the whole protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole;

impl Path for Whole {
    #[inline(always)]
    fn parse(&mut self, engine: &Engine, packets: &[Incoming], state: &mut BurstState) {
        state.parse(packets, Some(&engine.name_limits()), |_| ());
    }

    #[inline(always)]
    fn look_ahead(engine: &Engine, packets: &[Incoming], state: &mut BurstState, group: Group, lanes: Lanes) {
        state.look_ahead(engine, packets, group, lanes);
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
        engine.handle(now, packet, prepared, out);
    }
}
