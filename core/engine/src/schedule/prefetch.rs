//! The steps of the prefetch plane for a group of packets: decoding, hashing, and prefetches of buckets first, then of
//! what they point to, then of what that points to.
//!
//! Each step reads only memory that the previous step prefetched. Guesses may be wrong: a bucket identifies an entry by
//! 32 bits of a hash, and everything read may have changed when the packet is handled.

use namehop_hash::{Lanes, PrefixHashes, hash_group};
use namehop_packet::Incoming;
use namehop_table::prefetch::prefetch_lines;

use super::name_limits::NameLimits;
use crate::burst::{BurstState, Group, Guess, MAX_LOOKAHEAD};
use crate::engine::Engine;
use crate::parse::{Parsed, ParsedKind};
use crate::pcct::prefetch::Forecast;

/// Bytes of a packet to be copied that are prefetched; the hardware prefetcher detects the sequence and fetches the
/// rest.
const COPIED_BYTES: usize = 512;

/// The FIB entries that [`BurstState::prefetch_entries`] prefetches for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FibTags {
    /// The entry of the longest prefix with a matching tag.
    First,
    /// The entries of all prefixes with a matching tag, needed or not.
    All,
}

impl Engine {
    /// Predicts where the engine's tables will grow and what they will evict, from their current state. The steps
    /// carry one forecast through the packets between two handled groups.
    #[inline]
    pub fn forecast(&self) -> Forecast {
        self.state.pcct.forecast()
    }

    fn needs_hashes(&self, data: &Incoming) -> bool {
        self.state.pcct.decode_token(&data.fields.pit_token).is_none()
            || self.state.pcct.needs_data_hashes(self.state.emitter.now())
    }
}

impl BurstState {
    /// Decodes the packets of a burst, from position 0 on. Long names beyond `limits` are not decoded; without limits
    /// all names are. Passes the kind of each packet to `on_parsed`.
    #[inline(always)]
    pub fn parse(
        &mut self,
        packets: &[Incoming],
        limits: Option<&NameLimits<'_>>,
        mut on_parsed: impl FnMut(ParsedKind),
    ) {
        for (packet, parsed) in packets.iter().zip(&mut self.parsed) {
            parsed.parse(packet, || limits.is_none_or(|limits| limits.may_decode(packet)));
            on_parsed(parsed.kind);
        }
    }

    /// Hashes the names of a group of at most [`MAX_LOOKAHEAD`] packets, if their pipelines will need the hashes and
    /// will accept the names under `limits`.
    #[inline(always)]
    pub fn hash_names(
        &mut self,
        engine: &Engine,
        packets: &[Incoming],
        group: Group,
        lanes: Lanes,
        mut limits: Option<NameLimits<'_>>,
    ) {
        let BurstState { parsed, guesses, hashes } = self;
        let mut names: [&[u8]; MAX_LOOKAHEAD] = [&[]; MAX_LOOKAHEAD];
        let mut any = false;
        let known = parsed[group.positions().start..].iter().zip(&mut guesses[group.indices().start..]);
        for ((packet, (parsed, guess)), name) in packets.iter().zip(known).zip(&mut names) {
            *guess = Guess::default();
            // Data with a token finds its entry without hashes, and a Nack needs little more than its token.
            if parsed.kind == ParsedKind::Interest || parsed.kind == ParsedKind::Data && engine.needs_hashes(packet) {
                let its_name = parsed.name(packet);
                // Names that will be refused are not hashed.
                if limits.as_mut().is_none_or(|limits| limits.take(packet.face, its_name)) {
                    *name = its_name.value();
                    guess.is_hashed = true;
                    any = true;
                }
            }
        }
        if any {
            hash_group(&engine.state.key, lanes, &names[..packets.len()], &mut hashes[group.indices().start..]);
        }
    }

    /// The router's first step: hashes the names of a group under the engine's limits on names, and prefetches their
    /// buckets.
    // Not inlined, so that the tables' addresses stay in registers: a caller that also handles packets is too large for
    // that, and loads them for each packet.
    #[inline(never)]
    pub fn look_ahead(&mut self, engine: &Engine, packets: &[Incoming], group: Group, lanes: Lanes) {
        self.hash_names(engine, packets, group, lanes, Some(engine.name_limits()));
        self.prefetch_buckets(engine, packets, group, true);
    }

    /// First step: prefetches the buckets of the hashed names, and the Content Store policy's state of them. Notes the
    /// entries in PIT tokens. `is_checked_for_loops` says whether the Dead Nonce List will be looked up for Interests.
    #[inline(always)]
    pub fn prefetch_buckets(
        &mut self,
        engine: &Engine,
        packets: &[Incoming],
        group: Group,
        is_checked_for_loops: bool,
    ) {
        for (packet, (position, index)) in packets.iter().zip(group.each()) {
            prefetch_buckets_of(engine, packet, self.at(position, index), is_checked_for_loops);
        }
        // Separate from the other buckets, because most policies do not count requests.
        if !engine.state.pcct.content.counts_requests() {
            return;
        }
        for (position, index) in group.each() {
            let (parsed, _, hashes) = self.at(position, index);
            if let (ParsedKind::Interest, Some(hashes)) = (parsed.kind, hashes) {
                engine.state.pcct.content.prefetch_request(hashes.full());
            }
        }
    }

    /// Part of the first step: prefetches the entries and PIT slots in PIT tokens, for several packets in a row, so
    /// that the CPU translates several addresses at once. Address translation takes longer than all else if tables are
    /// large or not entirely on huge pages. Also prefetches the packets that the Content Store will copy.
    #[inline(always)]
    pub fn prefetch_named_entries(&self, engine: &Engine, packets: &[Incoming], group: Group) {
        let state = &engine.state;
        for (entry, slot) in self.guesses[group.indices()].iter().filter_map(|guess| Some((guess.entry?, guess.slot))) {
            state.pcct.names.prefetch_entry(entry);
            state.pcct.content.prefetch_order(entry);
            if let Some(slot) = slot {
                state.pcct.pit.prefetch_slot(slot);
            }
        }
        if !state.pcct.content.admits_most() {
            return;
        }
        for (packet, parsed) in packets.iter().zip(&self.parsed[group.positions()]) {
            if parsed.kind == ParsedKind::Data {
                // All of it will be copied.
                let bytes = packet.buffer.bytes();
                prefetch_lines(bytes.as_ptr(), bytes.len().min(COPIED_BYTES));
            }
        }
    }

    /// For orders that look at few packets together: prefetches the entries that will lose their Data to this group, so
    /// that they are cached when their own buckets are prefetched. No bucket leads to these entries.
    #[inline(always)]
    pub fn prefetch_replaced(&self, engine: &Engine, group: Group, forecast: &mut Forecast) {
        for (parsed, guess) in self.parsed[group.positions()].iter().zip(&self.guesses[group.indices()]) {
            if parsed.kind == ParsedKind::Data
                && let Some(victim) = engine.state.pcct.foresee_data(guess.entry, forecast)
            {
                engine.state.pcct.names.prefetch_identity(victim);
            }
        }
    }

    /// Second step: prefetches what the buckets point to, and entries that will lose their Data.
    #[inline(always)]
    pub fn prefetch_entries(&mut self, engine: &Engine, group: Group, tags: FibTags, forecast: &mut Forecast) {
        for (position, index) in group.each() {
            prefetch_entries_of(engine, self.at(position, index), tags, forecast);
        }
        // For several packets in a row, as in `prefetch_named_entries`.
        for (parsed, guess) in self.parsed[group.positions()].iter().zip(&self.guesses[group.indices()]) {
            engine.fib.prefetch_guessed(guess.fib);
            if let (ParsedKind::Data, Some(victim)) = (parsed.kind, guess.victim) {
                engine.state.pcct.names.prefetch_identity(victim);
            }
        }
    }

    /// The router's second step for one group, and its third step for another one.
    // Not inlined, for the same reason as `look_ahead`.
    #[inline(never)]
    pub(super) fn prefetch_deeper(
        &mut self,
        engine: &Engine,
        entries_of: Group,
        contents_of: Group,
        forecast: &mut Forecast,
    ) {
        self.prefetch_entries(engine, entries_of, FibTags::First, forecast);
        self.prefetch_contents(engine, contents_of);
    }

    /// Third step: prefetches what the entries point to, and the state that decides on admission to the Content Store.
    #[inline(always)]
    pub fn prefetch_contents(&self, engine: &Engine, group: Group) {
        let state = &engine.state;
        let known = || self.parsed[group.positions()].iter().zip(&self.guesses[group.indices()]);
        for (parsed, guess) in known() {
            prefetch_contents_of(engine, parsed, guess);
        }
        if !state.pcct.content.examines_data() {
            return;
        }
        for (_, guess) in known().filter(|(parsed, _)| parsed.kind == ParsedKind::Data) {
            state.pcct.content.prefetch_decision(&state.pcct.names, guess.entry, guess.victim);
        }
    }
}

/// Prefetches the buckets of a packet.
#[inline(always)]
fn prefetch_buckets_of(
    engine: &Engine,
    packet: &Incoming,
    (parsed, guess, hashes): (&Parsed, &mut Guess, Option<&PrefixHashes>),
    is_checked_for_loops: bool,
) {
    let state = &engine.state;
    if parsed.kind == ParsedKind::Interest {
        let interest = &parsed.interest;
        let Some(hashes) = hashes else { return };
        state.pcct.names.prefetch_bucket(hashes.full());
        state.pcct.content.prefetch_tier_lookup(hashes.full());
        engine.fib.prefetch_buckets(hashes);
        if is_checked_for_loops && let Some(nonce) = interest.nonce() {
            state.dead_nonces.prefetch(namehop_hash::hash_with_nonce(hashes.full(), nonce));
        }
        if interest.can_be_prefix && state.pcct.content.serves() {
            state.pcct.content.prefetch_prefix(hashes.full());
        }
        return;
    }
    let named = state.pcct.decode_token(&packet.fields.pit_token);
    (guess.entry, guess.slot) = (named.map(|named| named.entry), named.and_then(|named| named.slot));
    if let Some(hashes) = hashes {
        state.pcct.pit.prefetch_satisfied(&state.pcct.names, hashes);
    }
}

/// Prefetches what the buckets of a packet point to in the PIT-CS composite table, and guesses its FIB entry.
#[inline(always)]
fn prefetch_entries_of(
    engine: &Engine,
    (parsed, guess, hashes): (&Parsed, &mut Guess, Option<&PrefixHashes>),
    tags: FibTags,
    forecast: &mut Forecast,
) {
    let state = &engine.state;
    let is_interest = parsed.kind == ParsedKind::Interest;
    if let Some(hashes) = hashes {
        if is_interest {
            guess.fib = match tags {
                FibTags::First => engine.fib.guess(hashes),
                FibTags::All => engine.fib.prefetch_all_entries(hashes),
            };
        }
        if guess.entry.is_none() {
            guess.entry = state.pcct.names.guess(hashes.full());
            match guess.entry {
                Some(entry) => {
                    state.pcct.names.prefetch_entry(entry);
                    state.pcct.content.prefetch_order(entry);
                }
                None if is_interest => guess.victim = state.pcct.foresee_entry(forecast),
                None => {}
            }
        }
    }
    if parsed.kind == ParsedKind::Data {
        guess.victim = state.pcct.foresee_data(guess.entry, forecast);
    }
}

/// Prefetches what the entries of a packet point to.
#[inline(always)]
fn prefetch_contents_of(engine: &Engine, parsed: &Parsed, guess: &Guess) {
    let state = &engine.state;
    if parsed.kind == ParsedKind::Interest {
        engine.fib.prefetch_extension(guess.fib);
        if let Some(entry) = guess.entry {
            state.pcct.prefetch_use(entry);
        } else if let Some(nonce) = guess.victim.and_then(|victim| state.pcct.prefetch_end(victim)) {
            state.dead_nonces.prefetch(nonce);
        }
        return;
    }
    if let Some(entry) = guess.entry {
        state.pcct.prefetch_answer(entry, guess.slot);
    }
    match (guess.victim, guess.entry) {
        // The entry ends with its PIT entry.
        (_, Some(entry)) if !state.pcct.content.admits_most() => state.pcct.names.prefetch_removal(entry),
        (Some(victim), _) if state.pcct.content.admits_most() => {
            state.pcct.content.prefetch_eviction(&state.pcct.names, victim);
        }
        _ => {}
    }
}
