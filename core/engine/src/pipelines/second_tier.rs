//! The second tier of the Content Store: Interests that wait for reads, and the Data these find.

use namehop_hash::hash_prefixes;
use namehop_packet::{DropReason, FaceId, FaceInfo, Incoming, LinkFields, Outgoing, Timestamp};
use namehop_wire::DataHeader;

use super::content_store::Admission;
use crate::burst::Prepared;
use crate::engine::Engine;
use crate::parse::ParsedKind;
use crate::pcct::PitRef;
use crate::second_tier::{FinishedRead, ReadId, ReadStart};
use crate::state::ForwardingState;
use crate::state::tier_reads::TierReads;
use crate::trace::TraceStep;

/// Data read from the second tier, for which memory holds no newer Data.
pub(crate) struct FoundInTier<'a> {
    packet: &'a [u8],
    /// Name VALUE.
    name: &'a [u8],
    fresh_until: Timestamp,
}

impl ForwardingState {
    /// Starts a read for the name of an Interest, if the tier's index has a match. The Interest must then
    /// [wait](TierReads::push) for the read. Returns `None` if there is no match, if too many Interests wait, or if the
    /// tier is busy.
    #[cold]
    pub(super) fn start_tier_read(
        &mut self,
        now: Timestamp,
        (face, name_hash, must_be_fresh): (FaceId, u64, bool),
    ) -> Option<ReadId> {
        let location = self.pcct.content.second_tier.as_ref()?.find(name_hash, must_be_fresh)?;
        let is_unsolicited = self.pcct.is_unsolicited(face);
        let has_room = self.tier_reads.as_ref()?.has_room(face, is_unsolicited);
        let tier = self.pcct.content.second_tier.as_mut()?;
        if !has_room {
            tier.note_busy();
            return None;
        }
        tier.set_now(now);
        match tier.start_read(name_hash, location, is_unsolicited) {
            ReadStart::Started(read) | ReadStart::Joined(read) => {
                self.emitter.note(|| TraceStep::AsksDisk);
                Some(read)
            }
            ReadStart::Busy => None,
        }
    }

    /// Makes an Interest wait for a read that [was started](Self::start_tier_read).
    #[cold]
    pub(super) fn wait_for_tier(&mut self, read: ReadId, interest: Incoming) -> Result<(), DropReason> {
        let is_unsolicited = self.pcct.is_unsolicited(interest.face);
        let without_room = match &mut self.tier_reads {
            Some(reads) => reads.push(read, interest, is_unsolicited),
            None => Some(interest),
        };
        // `start_tier_read` checked for room, so the Interest is never returned.
        without_room.map_or(Ok(()), |_| Err(DropReason::NoBuffer))
    }

    /// Answers an Interest for this name with Data from the second tier. Returns `None` if that Data does not satisfy
    /// it.
    #[cold]
    pub(super) fn answer_from_tier(
        &mut self,
        now: Timestamp,
        (found, name, must_be_fresh): (&FoundInTier<'_>, &[u8], bool),
        pending: Option<PitRef>,
        (ingress, fields): (&FaceInfo, &LinkFields),
        out: &mut Vec<Outgoing>,
    ) -> Option<Result<(), DropReason>> {
        if found.name != name || must_be_fresh && found.fresh_until <= now {
            return None;
        }
        self.emitter.note(|| TraceStep::DiskHit);
        let copy = self.emitter.copy_of(found.packet);
        Some(self.answer_from_store(now, (copy, found.fresh_until), pending, ingress, fields, out))
    }

    /// Inserts Data from the second tier into memory. Returns `None` if the Data is not valid, or if memory holds newer
    /// Data of its name.
    fn take_found<'a>(
        &mut self,
        now: Timestamp,
        finished: &'a FinishedRead,
        reads: &mut TierReads,
    ) -> Option<FoundInTier<'a>> {
        let (packet, fresh_until) = finished.data()?;
        let name_ref = DataHeader::decode(packet).ok()?.name;
        let name = name_ref.value();
        hash_prefixes(&self.key, name, &mut reads.hashes).ok()?;
        let hashes = &reads.hashes;
        if hashes.full() != finished.name_hash
            || self.pcct.content.second_tier.as_ref()?.is_erased(name, finished.position)
        {
            return None;
        }
        if let Some(dispatch) = self.other_workers.dispatch() {
            let (_, owner) = dispatch.entry_of(name)?;
            let is_valid = dispatch.entries_of(name).all(|entry| reads.is_valid(entry, finished.position));
            if !self.other_workers.is_here(owner) || !is_valid {
                return None;
            }
        }
        let exact = self.pcct.find_name(hashes.full(), name);
        // Data that came into memory meanwhile is newer.
        if exact.is_some_and(|exact| {
            self.pcct
                .variants(exact)
                .any(|entry| self.pcct.delegation(entry).is_empty() && self.pcct.entry(entry).has_data())
        }) {
            return None;
        }
        if self.pcct.content.admits() {
            let freshness_ms = fresh_until.since_ns(now) / 1_000_000;
            let admission =
                Admission { packet, name, freshness_ms, hashes: Some(hashes), digest: None, is_from_tier: true };
            self.admit(now, &admission, None, exact);
        }
        Some(FoundInTier { packet, name, fresh_until })
    }
}

impl Engine {
    /// Submits the pending writes and reads to the second tier.
    #[inline]
    pub(crate) fn flush_tier(&mut self) {
        if let Some(tier) = &mut self.state.pcct.content.second_tier {
            tier.flush();
        }
    }

    /// Polls the second tier's completions and resumes the Interests of finished and timed-out reads.
    #[cold]
    pub(crate) fn poll_tier(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        let Some(mut reads) = self.state.tier_reads.take() else { return };
        if let Some(tier) = &mut self.state.pcct.content.second_tier {
            tier.set_now(now);
        }
        while let Some(finished) = self.state.pcct.content.second_tier.as_mut().and_then(|tier| tier.next_finished()) {
            let found = self.state.take_found(now, &finished, &mut reads);
            self.resume(now, finished.id, found.as_ref(), &mut reads, out);
            let is_found = found.is_some();
            if let Some(tier) = &mut self.state.pcct.content.second_tier {
                tier.end_read(finished, is_found);
            }
        }
        while let Some(expired) = self.state.pcct.content.second_tier.as_mut().and_then(|tier| tier.next_expired()) {
            self.resume(now, expired, None, &mut reads, out);
        }
        self.state.emitter.end_trace_if_on();
        self.state.tier_reads = Some(reads);
    }

    /// Resumes all Interests that wait for a read.
    fn resume(
        &mut self,
        now: Timestamp,
        read: ReadId,
        found: Option<&FoundInTier<'_>>,
        reads: &mut TierReads,
        out: &mut Vec<Outgoing>,
    ) {
        while let Some(interest) = reads.pop(read) {
            let face = interest.face;
            let TierReads { parsed, hashes, .. } = reads;
            parsed.parse(&interest, || true);
            let handled = match parsed.kind {
                ParsedKind::Interest => {
                    self.incoming_interest::<true>(now, interest, Prepared::not_hashed(parsed, hashes), found, out)
                }
                // It was an Interest when it began to wait, so this does not happen.
                _ => Err(DropReason::Malformed),
            };
            if let Err(reason) = handled {
                self.state.emitter.count_drop(face, reason);
            }
        }
    }
}
