//! The orders: which steps precede the handling of which packet. Packets are handled in the order of arrival.
//!
//! The functions are generic over the path and over what they prefetch, so that no order pays for another one.

use std::slice;
use std::vec::Drain;

use namehop_engine::Engine;
use namehop_engine::schedule::{BurstState, FibTags, Group};
use namehop_hash::Lanes;
use namehop_packet::{Incoming, Outgoing, Timestamp};

use crate::path::Path;

/// Decoded packets of a burst, and what handling them needs.
pub(crate) struct Burst<'a> {
    pub(crate) now: Timestamp,
    pub(crate) packets: Drain<'a, Incoming>,
    pub(crate) state: &'a mut BurstState,
    pub(crate) out: &'a mut Vec<Outgoing>,
}

/// What a speculative order prefetches besides buckets.
pub(crate) trait Speculation {
    /// The FIB entries to prefetch; `None` if nothing but buckets is prefetched.
    const TAGS: Option<FibTags>;
    /// Whether what the entries point to is prefetched, too.
    const CONTENTS: bool;
}

/// Prefetches nothing but buckets.
pub(crate) enum BucketsOnly {}

impl Speculation for BucketsOnly {
    const TAGS: Option<FibTags> = None;
    const CONTENTS: bool = false;
}

/// Prefetches the FIB entries of all matching tags, and what all entries point to if `CONTENTS` is set.
pub(crate) enum AllTags<const CONTENTS: bool> {}

impl<const CONTENTS: bool> Speculation for AllTags<CONTENTS> {
    const TAGS: Option<FibTags> = Some(FibTags::All);
    const CONTENTS: bool = CONTENTS;
}

/// Prefetches the FIB entry of the first matching tag, and what all entries point to if `CONTENTS` is set.
pub(crate) enum FirstTag<const CONTENTS: bool> {}

impl<const CONTENTS: bool> Speculation for FirstTag<CONTENTS> {
    const TAGS: Option<FibTags> = Some(FibTags::First);
    const CONTENTS: bool = CONTENTS;
}

/// `Naive`: no step of the prefetch plane.
#[inline(never)]
pub(crate) fn naive<P: Path>(path: &mut P, engine: &mut Engine, burst: Burst<'_>) {
    let Burst { now, packets, state, out } = burst;
    // No name is hashed ahead here, so all packets use the same empty guess.
    state.forget(0);
    for (position, packet) in packets.enumerate() {
        path.handle(engine, now, packet, state.prepared(position, 0), out);
    }
}

/// `BucketPrefetch`: each packet's own buckets.
#[inline(never)]
pub(crate) fn bucket_prefetch<P: Path>(path: &mut P, engine: &mut Engine, burst: Burst<'_>) {
    let Burst { now, packets, state, out } = burst;
    for (position, packet) in packets.enumerate() {
        look_ahead::<P, BucketsOnly>(engine, &packet, state, Group::one(position, 0));
        path.handle(engine, now, packet, state.prepared(position, 0), out);
    }
}

/// The first stage of the orders that process packets one by one: hashes the name, then prefetches buckets.
#[inline(always)]
fn look_ahead<P: Path, F: Speculation>(engine: &Engine, packet: &Incoming, state: &mut BurstState, at: Group) {
    let packet = slice::from_ref(packet);
    P::look_ahead(engine, packet, state, at, Lanes::SCALAR);
    if F::TAGS.is_some() {
        state.prefetch_named_entries(engine, packet, at);
    }
}

/// One packet ahead: `PreHash`, and `Speculative`, which also prefetches entries. "After fetching hash buckets" of a
/// packet its entries are prefetched, and the hash computation of the next one hides the wait (ICN 2017, section 4.2).
/// With `CONTENTS`, what the entries point to is prefetched after that computation.
#[inline(never)]
pub(crate) fn one_ahead<P: Path, F: Speculation>(path: &mut P, engine: &mut Engine, burst: Burst<'_>) {
    let Burst { now, mut packets, state, out } = burst;
    let (mut position, mut current, mut next) = (0, 0, 1);
    if let [packet, ..] = packets.as_slice() {
        look_ahead::<P, F>(engine, packet, state, Group::one(position, current));
    }
    while let Some(packet) = packets.next() {
        let at = Group::one(position, current);
        let mut forecast = engine.forecast();
        if let Some(tags) = F::TAGS {
            state.prefetch_entries(engine, at, tags, &mut forecast);
        }
        if let [following, ..] = packets.as_slice() {
            let at = Group::one(position + 1, next);
            look_ahead::<P, F>(engine, following, state, at);
            if F::TAGS.is_some() {
                state.prefetch_replaced(engine, at, &mut forecast);
            }
        }
        if F::CONTENTS {
            state.prefetch_contents(engine, at);
        }
        path.handle(engine, now, packet, state.prepared(position, current), out);
        position += 1;
        std::mem::swap(&mut current, &mut next);
    }
}

/// Two packets at a time: `SpeculativePairs`. Hashing the second name hides the wait for the buckets of the first.
#[inline(never)]
pub(crate) fn pairs<P: Path>(path: &mut P, engine: &mut Engine, burst: Burst<'_>) {
    let Burst { now, mut packets, state, out } = burst;
    let mut position = 0;
    while !packets.as_slice().is_empty() {
        let pair = packets.as_slice().len().min(2);
        let mut forecast = engine.forecast();
        for (place, packet) in packets.as_slice()[..pair].iter().enumerate() {
            let at = Group::one(position + place, place);
            look_ahead::<P, AllTags<false>>(engine, packet, state, at);
            state.prefetch_replaced(engine, at, &mut forecast);
        }
        let mut forecast = engine.forecast();
        for place in 0..pair {
            state.prefetch_entries(engine, Group::one(position + place, place), FibTags::All, &mut forecast);
        }
        for (place, packet) in packets.by_ref().take(pair).enumerate() {
            path.handle(engine, now, packet, state.prepared(position, place), out);
            position += 1;
        }
    }
}

/// `Burst` and `BurstScalar`: the engine's own stages, with these lanes to hash names.
#[inline(never)]
pub(crate) fn staged<P: Path>(path: &mut P, engine: &mut Engine, burst: Burst<'_>, lanes: Lanes) {
    let Burst { now, packets, state, out } = burst;
    engine.in_stages(
        packets,
        state,
        |engine, packets, state, group| P::look_ahead(engine, packets, state, group, lanes),
        |engine, packet, prepared| path.handle(engine, now, packet, prepared, out),
    );
}
