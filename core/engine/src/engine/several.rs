//! Multi-worker operation: name dispatch and misdirected packets. See [`dispatch`](crate::dispatch).

use std::sync::Arc;

use namehop_hash::hash_prefixes;
use namehop_packet::{Incoming, Outgoing, Timestamp};
use namehop_wire::lp::PitToken;

use super::core::Core;
use super::{CsErasure, Engine};
use crate::dispatch::{ENTRIES, NameDispatch};
use crate::parse::{Parsed, ParsedKind};
use crate::pcct::token;
use crate::trace::TraceStep;

/// Entries of the PIT-CS composite table that one call of [`Engine::cs_erase_entries`] examines. It is less than for an
/// operator's command, because this erasure runs during normal forwarding.
const ENTRIES_PER_ERASE: usize = 1_024;

impl Engine {
    /// Makes this engine one of several that divide the names. Must be called before the first packet.
    pub fn share_dispatch(&mut self, dispatch: Arc<NameDispatch>) {
        self.core.pcct.share_dispatch(Arc::clone(&dispatch));
        self.core.dispatch = Some(dispatch);
    }

    /// Handles Data that belongs to another engine. Data that no Interest here waits for is discarded without being
    /// counted. Must be called after [`process`](Self::process) in the same poll iteration.
    pub fn process_offered(&mut self, now: Timestamp, burst: &mut Vec<Incoming>, out: &mut Vec<Outgoing>) {
        burst.retain(|packet| self.awaits(packet));
        self.run(now, burst, out);
        self.flush_tier();
        self.fib.quiescent();
    }

    /// Returns whether a pending Interest may be satisfied by this Data.
    fn awaits(&mut self, packet: &Incoming) -> bool {
        let mut parsed = Parsed::default();
        parsed.parse(packet, || true);
        if parsed.kind != ParsedKind::Data {
            return false;
        }
        let name = parsed.name(packet);
        if hash_prefixes(&self.core.key, name.value(), &mut self.hashes).is_err() {
            return false;
        }
        let mut matches = std::mem::take(&mut self.core.matches);
        matches.clear();
        self.core.pcct.find_satisfied(name.value(), Some(&self.hashes), None, &mut matches);
        let awaits = !matches.is_empty() || self.core.pcct.asks_for_digest(&self.hashes);
        self.core.matches = matches;
        awaits
    }

    /// Erases cached Data, also in the second tier, of these entries of the name dispatch table before they are
    /// assigned to this engine. `entries` must be sorted. Such Data may have been cached before another engine owned
    /// its name, and may be older than that engine's. Returns the number erased. Must be called repeatedly, as
    /// [`cs_erase`](Self::cs_erase).
    pub fn cs_erase_entries(&mut self, entries: &[usize], erasure: &mut CsErasure) -> usize {
        let dispatch = self.core.dispatch.clone();
        let entry_of = |name: &[u8]| dispatch.as_ref()?.entry_of(name);
        let is_meant = |name: &[u8]| entry_of(name).is_some_and(|(entry, _)| entries.binary_search(&entry).is_ok());
        let erased = self.core.pcct.erase_data(is_meant, usize::MAX, ENTRIES_PER_ERASE, erasure);
        if erasure.is_complete()
            && let (Some(tier), Some(reads)) = (&self.core.pcct.content.second_tier, &mut self.core.tier_reads)
        {
            reads.start_anew(entries, ENTRIES, tier.position());
        }
        erased
    }

    /// Returns Data and Nacks with a PIT token of this engine that matches no PIT entry, and a name that belongs to
    /// another engine. Their token is removed. Must be called after [`process`](Self::process).
    pub fn take_misdirected(&mut self) -> impl Iterator<Item = Incoming> + '_ {
        self.core.misdirected.drain(..)
    }
}

impl Core {
    /// Returns whether this packet came here only because of its PIT token, which matched no PIT entry, and its name
    /// belongs to another engine.
    #[inline]
    pub(crate) fn is_misdirected(&self, packet: &Incoming) -> bool {
        self.dispatch.as_ref().is_some_and(|dispatch| self.belongs_elsewhere(dispatch, packet))
    }

    #[cold]
    fn belongs_elsewhere(&self, dispatch: &NameDispatch, packet: &Incoming) -> bool {
        let is_nack = packet.fields.nack.is_some();
        let by_name = dispatch.owners_by_token(packet.buffer.bytes(), &PitToken::empty(), is_nack);
        let is_here = |owner: u8| owner == self.worker;
        token::worker(&packet.fields.pit_token) == Some(self.worker)
            && by_name.is_some_and(|owners| !is_here(owners.owner) && !owners.others.iter().any(is_here))
    }

    /// Sets a packet aside for another engine.
    pub(crate) fn put_aside(&mut self, mut packet: Incoming) {
        self.tracing.note(|| TraceStep::OtherWorker);
        packet.fields.pit_token = PitToken::empty();
        self.misdirected.push(packet);
    }
}
