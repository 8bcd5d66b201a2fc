//! What to fetch for a packet: its buckets first, then what they point to, then what that points to.
//!
//! Each step reads only memory that the step before asked for. Guesses may be wrong: a bucket names an entry by 32 bits of
//! a hash, and whatever was read may have changed when the packet has its turn.

use namehop_hash::{Lanes, PrefixHashes, hash_group};
use namehop_table::prefetch::prefetch_lines;

use super::summary::{Kind, Scratch, Summary};
use super::{MAX_BURST, Schedule};
use crate::buffer::{BufferPool, PacketBuffer};
use crate::engine::Engine;
use crate::engine::long_names::Allowance;
use crate::face::FaceId;
use crate::packet::Incoming;
use crate::pcct::hints::Forecast;
use crate::pcct::token;

/// Bytes of a packet to be copied that are asked for; the processor notices the run and fetches the rest itself.
const COPIED_BYTES: usize = 512;

impl<P: BufferPool, S: Schedule> Engine<P, S> {
    /// Decodes packets and hashes the names of those whose hashes the pipelines will need. What is known of them is put into
    /// `scratch` from position `first` on.
    #[inline]
    pub(super) fn look_at(&self, packets: &[Incoming<P::Buffer>], scratch: &mut Scratch, first: usize, lanes: Lanes) {
        let mut names: [&[u8]; MAX_BURST] = [&[]; MAX_BURST];
        let mut any = false;
        let mut long_names = self.core.long_names.total();
        for ((packet, summary), name) in packets.iter().zip(&mut scratch.summaries[first..]).zip(&mut names) {
            summary.look_at(packet, |bytes| self.may_read(packet.face, bytes, &long_names));
            // Data with a token finds its entry without, and of a Nack little more than the token is needed.
            if summary.kind == Kind::Interest || summary.kind == Kind::Data && self.needs_hashes(packet) {
                let its_name = summary.name(packet);
                // Names that will be refused are not worth it.
                if S::IS_STRIPPED
                    || self.core.check_length(its_name).is_ok()
                        && self.core.long_names.foresee(packet.face, its_name, &mut long_names)
                {
                    *name = its_name.value();
                    summary.is_hashed = true;
                    any = true;
                }
            }
        }
        if any {
            hash_group(&self.core.key, lanes, &names[..packets.len()], &mut scratch.hashes[first..]);
        }
    }

    /// Is an Interest worth decoding, if `long_names` is what is left for long ones?
    #[inline]
    pub(super) fn may_read(&self, face: FaceId, interest: &[u8], long_names: &Allowance) -> bool {
        S::IS_STRIPPED || self.core.check_unread(face, interest, long_names).is_ok()
    }

    fn needs_hashes(&self, data: &Incoming<P::Buffer>) -> bool {
        token::decode(self.core.worker, &data.fields.pit_token).is_none()
            || self.core.pcct.asks_for_prefixes(self.core.now)
    }

    /// First step: buckets, and the entry that a PIT token names if the schedule fetches entries.
    #[inline]
    pub(super) fn hint_buckets(
        &self,
        packet: &Incoming<P::Buffer>,
        (summary, hashes): (&mut Summary, Option<&PrefixHashes>),
    ) {
        let core = &self.core;
        if summary.kind == Kind::Interest {
            let interest = &summary.interest;
            let Some(hashes) = hashes else { return };
            core.pcct.prefetch_bucket(hashes.full());
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
        summary.entry = token::decode(core.worker, &packet.fields.pit_token).map(|(entry, _)| entry);
        if summary.kind == Kind::Data && S::KIND.fetches_entries() && core.pcct.content.admits() {
            // All of it will be copied.
            let bytes = packet.buffer.bytes();
            prefetch_lines(bytes.as_ptr(), bytes.len().min(COPIED_BYTES));
        }
        if let Some(hashes) = hashes {
            core.pcct.prefetch_satisfied(hashes);
        }
    }

    /// The entries that PIT tokens name. Of several packets in a row, so that the processor translates several addresses at
    /// once: that takes longer than all else where tables are large, or not on huge pages through and through.
    #[inline]
    pub(super) fn hint_named_entries(&self, summaries: &[Summary]) {
        for entry in summaries.iter().filter_map(|summary| summary.entry) {
            self.core.pcct.prefetch_entry(entry);
            self.core.pcct.prefetch_order(entry);
        }
    }

    /// For schedules that look at few packets together: the entry whose Data will be replaced by this packet, which no bucket
    /// tells, so that it is there when its own bucket is to be asked for.
    #[inline]
    pub(super) fn hint_replaced(&self, summary: &Summary, forecast: &mut Forecast) {
        if summary.kind == Kind::Data
            && let Some(victim) = self.core.pcct.foresee_data(summary.entry, forecast)
        {
            self.core.pcct.prefetch_identity(victim);
        }
    }

    /// Second step: what the buckets point to.
    #[inline]
    pub(super) fn hint_entries(
        &self,
        (summary, hashes): (&mut Summary, Option<&PrefixHashes>),
        forecast: &mut Forecast,
    ) {
        let core = &self.core;
        let is_interest = summary.kind == Kind::Interest;
        if let Some(hashes) = hashes {
            if is_interest {
                summary.fib_guess = if S::KIND.fetches_all_entries() {
                    self.fib.prefetch_all_entries(hashes)
                } else {
                    self.fib.guess(hashes)
                };
            }
            if summary.entry.is_none() {
                summary.entry = core.pcct.guess(hashes.full());
                match summary.entry {
                    Some(entry) => {
                        core.pcct.prefetch_entry(entry);
                        core.pcct.prefetch_order(entry);
                    }
                    None if is_interest => summary.victim = core.pcct.foresee_entry(forecast),
                    None => {}
                }
            }
        }
        if summary.kind == Kind::Data {
            summary.victim = core.pcct.foresee_data(summary.entry, forecast);
        }
    }

    /// What was guessed in the second step: FIB entries, and entries whose Data will be replaced. Of several packets in a row as
    /// in [`hint_named_entries`](Self::hint_named_entries).
    #[inline]
    pub(super) fn hint_guessed_entries(&self, summaries: &[Summary]) {
        for summary in summaries {
            self.fib.prefetch_guessed(summary.fib_guess);
            if let (Kind::Data, Some(victim)) = (summary.kind, summary.victim) {
                self.core.pcct.prefetch_identity(victim);
            }
        }
    }

    /// Third step: what the entries point to.
    #[inline]
    pub(super) fn hint_contents(&self, summary: &Summary) {
        let core = &self.core;
        if summary.kind == Kind::Interest {
            self.fib.prefetch_extension(summary.fib_guess);
            if let Some(entry) = summary.entry {
                core.pcct.prefetch_use(entry);
            } else if let Some(nonce) = summary.victim.and_then(|victim| core.pcct.prefetch_end(victim)) {
                core.dead_nonces.prefetch(nonce);
            }
            return;
        }
        if let Some(entry) = summary.entry {
            core.pcct.prefetch_answer(entry);
        }
        match (summary.victim, summary.entry) {
            (Some(victim), _) => core.pcct.prefetch_eviction(victim),
            // The entry ends with its PIT entry.
            (None, Some(entry)) if !core.pcct.content.admits() => core.pcct.prefetch_removal(entry),
            _ => {}
        }
    }
}
