//! The prefetches for a packet: its buckets first, then what they point to, then what that points to.
//!
//! Each step reads only memory that the previous step prefetched. Guesses may be wrong: a bucket identifies an entry by
//! 32 bits of a hash, and everything read may have changed when the packet is handled.

use namehop_hash::{Lanes, PrefixHashes, hash_group};
use namehop_packet::Incoming;
use namehop_table::prefetch::prefetch_lines;

use super::burst::{BurstState, Guess};
use super::{MAX_LOOKAHEAD, Schedule};
use crate::engine::Engine;
use crate::parse::{Kind, Parsed};
use crate::pcct::prefetch::Forecast;

/// Bytes of a packet to be copied that are prefetched; the hardware prefetcher detects the sequence and fetches the
/// rest.
const COPIED_BYTES: usize = 512;

impl<S: Schedule> Engine<S> {
    /// Hashes the names of packets, if the pipelines will need their hashes, from `position` of the burst on, into the
    /// places from `place` on.
    #[inline]
    pub(super) fn hash_names(
        &self,
        packets: &[Incoming],
        state: &mut BurstState,
        (position, place): (usize, usize),
        lanes: Lanes,
    ) {
        let BurstState { parsed, guesses, hashes } = state;
        let mut names: [&[u8]; MAX_LOOKAHEAD] = [&[]; MAX_LOOKAHEAD];
        let mut any = false;
        let mut long_names = self.core.long_names.total();
        let known = parsed[position..].iter().zip(&mut guesses[place..]);
        for ((packet, (parsed, guess)), name) in packets.iter().zip(known).zip(&mut names) {
            *guess = Guess::default();
            // Data with a token finds its entry without hashes, and a Nack needs little more than its token.
            if parsed.kind == Kind::Interest || parsed.kind == Kind::Data && self.needs_hashes(packet) {
                let its_name = parsed.name(packet);
                // Names that will be refused are not hashed.
                if S::IS_STRIPPED
                    || self.core.check_length(its_name).is_ok()
                        && self.core.long_names.foresee(packet.face, its_name, &mut long_names)
                {
                    *name = its_name.value();
                    guess.is_hashed = true;
                    any = true;
                }
            }
        }
        if any {
            hash_group(&self.core.key, lanes, &names[..packets.len()], &mut hashes[place..]);
        }
    }

    fn needs_hashes(&self, data: &Incoming) -> bool {
        self.core.token_form.decode(&data.fields.pit_token).is_none() || self.core.pcct.asks_for_prefixes(self.core.now)
    }

    /// First step: buckets, and the entry in a PIT token if the schedule prefetches entries.
    #[inline]
    pub(super) fn prefetch_buckets(
        &self,
        packet: &Incoming,
        (parsed, guess, hashes): (&Parsed, &mut Guess, Option<&PrefixHashes>),
    ) {
        let core = &self.core;
        if parsed.kind == Kind::Interest {
            let interest = &parsed.interest;
            let Some(hashes) = hashes else { return };
            core.pcct.prefetch_bucket(hashes.full());
            core.pcct.prefetch_tier_lookup(hashes.full());
            self.fib.prefetch_buckets(hashes);
            if !S::IS_STRIPPED
                && let Some(nonce) = interest.nonce()
            {
                core.dead_nonces.prefetch(namehop_hash::hash_with_nonce(hashes.full(), nonce));
            }
            if interest.can_be_prefix && core.pcct.content.serve {
                core.pcct.prefetch_prefix(hashes.full());
            }
            return;
        }
        let named = core.token_form.decode(&packet.fields.pit_token);
        (guess.entry, guess.slot) = (named.map(|named| named.entry), named.and_then(|named| named.slot));
        if parsed.kind == Kind::Data && S::KIND.fetches_entries() && core.pcct.content.lets_most_in() {
            // All of it will be copied.
            let bytes = packet.buffer.bytes();
            prefetch_lines(bytes.as_ptr(), bytes.len().min(COPIED_BYTES));
        }
        if let Some(hashes) = hashes {
            core.pcct.prefetch_satisfied(hashes);
        }
    }

    /// Prefetches the Content Store policy's state of the hashed names. Separate from the other buckets, because most
    /// policies do not use names.
    #[inline]
    pub(super) fn prefetch_name_notes(&self, guesses: &[Guess], hashes: &[PrefixHashes]) {
        if !self.core.pcct.policy_expects() {
            return;
        }
        for (guess, hashes) in guesses.iter().zip(hashes) {
            if guess.is_hashed && hashes.result().is_ok() {
                self.core.pcct.prefetch_name_notes(hashes.full());
            }
        }
    }

    /// Prefetches the entries and PIT slots in PIT tokens, for several packets in a row, so that the CPU translates
    /// several addresses at once. Address translation takes longer than all else if tables are large or not entirely on
    /// huge pages.
    #[inline]
    pub(super) fn prefetch_named_entries(&self, guesses: &[Guess]) {
        for (entry, slot) in guesses.iter().filter_map(|guess| Some((guess.entry?, guess.slot))) {
            self.core.pcct.prefetch_entry(entry);
            self.core.pcct.prefetch_order(entry);
            if let Some(slot) = slot {
                self.core.pcct.prefetch_slot(slot);
            }
        }
    }

    /// For schedules that look at few packets together: prefetches the entry that will lose its Data to this packet, so
    /// that it is cached when its own bucket is prefetched. No bucket leads to this entry.
    #[inline]
    pub(super) fn prefetch_replaced(&self, parsed: &Parsed, guess: &Guess, forecast: &mut Forecast) {
        if parsed.kind == Kind::Data
            && let Some(victim) = self.core.pcct.foresee_data(guess.entry, forecast)
        {
            self.core.pcct.prefetch_identity(victim);
        }
    }

    /// Second step: prefetches what the buckets point to.
    #[inline]
    pub(super) fn prefetch_entries(
        &self,
        (parsed, guess, hashes): (&Parsed, &mut Guess, Option<&PrefixHashes>),
        forecast: &mut Forecast,
    ) {
        let core = &self.core;
        let is_interest = parsed.kind == Kind::Interest;
        if let Some(hashes) = hashes {
            if is_interest {
                guess.fib = if S::KIND.fetches_all_entries() {
                    self.fib.prefetch_all_entries(hashes)
                } else {
                    self.fib.guess(hashes)
                };
            }
            if guess.entry.is_none() {
                guess.entry = core.pcct.guess(hashes.full());
                match guess.entry {
                    Some(entry) => {
                        core.pcct.prefetch_entry(entry);
                        core.pcct.prefetch_order(entry);
                    }
                    None if is_interest => guess.victim = core.pcct.foresee_entry(forecast),
                    None => {}
                }
            }
        }
        if parsed.kind == Kind::Data {
            guess.victim = core.pcct.foresee_data(guess.entry, forecast);
        }
    }

    /// Prefetches what the second step guessed: FIB entries, and entries that will lose their Data. For several packets
    /// in a row, as in [`prefetch_named_entries`](Self::prefetch_named_entries).
    #[inline]
    pub(super) fn prefetch_guessed_entries(&self, parsed: &[Parsed], guesses: &[Guess]) {
        for (parsed, guess) in parsed.iter().zip(guesses) {
            self.fib.prefetch_guessed(guess.fib);
            if let (Kind::Data, Some(victim)) = (parsed.kind, guess.victim) {
                self.core.pcct.prefetch_identity(victim);
            }
        }
    }

    /// Part of the third step: prefetches the state that decides on admission to the Content Store.
    #[inline]
    pub(super) fn prefetch_decisions(&self, parsed: &[Parsed], guesses: &[Guess]) {
        if !self.core.pcct.policy_expects() || !self.core.pcct.content.admits() {
            return;
        }
        for (_, guess) in parsed.iter().zip(guesses).filter(|(parsed, _)| parsed.kind == Kind::Data) {
            self.core.pcct.prefetch_decision(guess.entry, guess.victim);
        }
    }

    /// Third step: prefetches what the entries point to.
    #[inline]
    pub(super) fn prefetch_contents(&self, parsed: &Parsed, guess: &Guess) {
        let core = &self.core;
        if parsed.kind == Kind::Interest {
            self.fib.prefetch_extension(guess.fib);
            if let Some(entry) = guess.entry {
                core.pcct.prefetch_use(entry);
            } else if let Some(nonce) = guess.victim.and_then(|victim| core.pcct.prefetch_end(victim)) {
                core.dead_nonces.prefetch(nonce);
            }
            return;
        }
        if let Some(entry) = guess.entry {
            core.pcct.prefetch_answer(entry, guess.slot);
        }
        match (guess.victim, guess.entry) {
            (Some(victim), _) => core.pcct.prefetch_eviction(victim),
            // The entry ends with its PIT entry.
            (None, Some(entry)) if !core.pcct.content.lets_most_in() => core.pcct.prefetch_removal(entry),
            _ => {}
        }
    }
}
