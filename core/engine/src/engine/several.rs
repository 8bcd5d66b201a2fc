//! What an engine does that is one of several, among which names are divided: see [`dispatch`](crate::dispatch).

use std::sync::Arc;

use namehop_hash::hash_prefixes;
use namehop_packet::{Incoming, Outgoing, Timestamp};
use namehop_wire::lp::PitToken;

use super::core::Core;
use super::{CsErasure, Engine};
use crate::dispatch::{ENTRIES, NameDispatch};
use crate::parse::{Kind, Parsed};
use crate::pcct::token;
use crate::schedule::Schedule;
use crate::trace::TraceStep;

/// Entries of the PIT-CS composite table that one call of [`Engine::cs_erase_entries`] looks at. Fewer than an operator's command
/// may look at, because this goes on by itself while there is much to forward.
const ENTRIES_PER_ERASE: usize = 1_024;

impl<S: Schedule> Engine<S> {
    /// Makes it one of several engines among which names are divided. To be called before the first packet.
    pub fn share_dispatch(&mut self, dispatch: Arc<NameDispatch>) {
        self.core.pcct.share_dispatch(Arc::clone(&dispatch));
        self.core.dispatch = Some(dispatch);
    }

    /// Handles Data that belongs to another engine: what nobody here waits for is forgotten without being counted. To be called
    /// after [`process`](Self::process) of the same turn.
    pub fn process_offered(&mut self, now: Timestamp, burst: &mut Vec<Incoming>, out: &mut Vec<Outgoing>) {
        burst.retain(|packet| self.awaits(packet));
        self.run(now, burst, out);
        self.flush_disk();
        self.fib.quiescent();
    }

    /// Is an Interest pending that this Data may satisfy?
    fn awaits(&mut self, packet: &Incoming) -> bool {
        let mut parsed = Parsed::default();
        parsed.parse(packet, |_| true);
        if parsed.kind != Kind::Data {
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

    /// Erases cached Data, on the disk too, of these entries of the name dispatch table, whose numbers are sorted, before they are given to this
    /// engine: it may have been cached before its name was another engine's, and be older than what that one had. Returns how
    /// many. To be called again as [`cs_erase`](Self::cs_erase) is.
    pub fn cs_erase_entries(&mut self, entries: &[usize], erasure: &mut CsErasure) -> usize {
        let dispatch = self.core.dispatch.clone();
        let entry_of = |name: &[u8]| dispatch.as_ref()?.entry_of(name);
        let is_meant = |name: &[u8]| entry_of(name).is_some_and(|(entry, _)| entries.binary_search(&entry).is_ok());
        let erased = self.core.pcct.erase_data(is_meant, usize::MAX, ENTRIES_PER_ERASE, erasure);
        if erasure.is_complete()
            && let (Some(disk), Some(reads)) = (&self.core.pcct.content.disk, &mut self.core.disk_reads)
        {
            reads.start_anew(entries, ENTRIES, disk.position());
        }
        erased
    }

    /// Data and Nacks that came with a PIT token of this engine that leads nowhere, while their name belongs to another engine.
    /// The token is taken off. To be called after [`process`](Self::process).
    pub fn take_misdirected(&mut self) -> impl Iterator<Item = Incoming> + '_ {
        self.core.misdirected.drain(..)
    }
}

impl Core {
    /// Is this a packet that came here because of its PIT token alone, and whose name belongs to another engine? The token led
    /// nowhere.
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

    /// Puts a packet aside for another engine.
    pub(crate) fn put_aside(&mut self, mut packet: Incoming) {
        self.tracing.note(|| TraceStep::OtherWorker);
        packet.fields.pit_token = PitToken::empty();
        self.misdirected.push(packet);
    }
}
