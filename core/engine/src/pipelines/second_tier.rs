//! The second tier of the Content Store: Interests that wait for reads, and the Data these find.

use namehop_hash::hash_prefixes;
use namehop_packet::{DropReason, Incoming, Outgoing, Timestamp};
use namehop_wire::DataHeader;

use super::content_store::{Admission, StoredCopy};
use super::received_interest::Received;
use crate::burst::Prepared;
use crate::engine::Engine;
use crate::parse::ParsedKind;
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

/// The second tier's answer to an Interest.
pub(super) enum TierAnswer {
    /// The tier has no match, or is busy.
    None,
    /// Data that answers the Interest.
    Data(StoredCopy),
    /// The tier may have a match: the Interest must [wait](ForwardingState::wait_for_tier) for this read.
    Waits(ReadId),
}

impl ForwardingState {
    /// Looks up an Interest in the second tier, after memory had no match. With `HAS_WAITED`, the Interest has waited
    /// for a read, which may have `found` Data.
    #[inline(always)]
    pub(super) fn look_up_tier<const HAS_WAITED: bool>(
        &mut self,
        now: Timestamp,
        interest: &Received<'_>,
        found: Option<&FoundInTier<'_>>,
    ) -> TierAnswer {
        if HAS_WAITED {
            let found = found.filter(|_| interest.delegation.is_none());
            let answer = found.and_then(|found| self.answer_with(now, interest, found));
            return answer.map_or(TierAnswer::None, TierAnswer::Data);
        }
        if self.tier_reads.is_none() || interest.delegation.is_some() {
            return TierAnswer::None;
        }
        self.start_tier_read(now, interest).map_or(TierAnswer::None, TierAnswer::Waits)
    }

    /// Starts a read for the name of an Interest, if the tier's index has a match. The Interest must then
    /// [wait](Self::wait_for_tier) for the read. Returns `None` if there is no match, if too many Interests wait, or if
    /// the tier is busy.
    #[cold]
    fn start_tier_read(&mut self, now: Timestamp, interest: &Received<'_>) -> Option<ReadId> {
        let (face, name_hash) = (interest.ingress.id, interest.hashes.full());
        let location = self.pcct.content.tier()?.find(name_hash, interest.layout.must_be_fresh)?;
        let is_unsolicited = self.pcct.pit.is_unsolicited(face);
        let has_room = self.tier_reads.as_ref()?.has_room(face, is_unsolicited);
        let tier = self.pcct.content.tier_mut()?;
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

    /// Makes an Interest wait for a read that was [started](TierAnswer::Waits).
    #[cold]
    pub(super) fn wait_for_tier(&mut self, read: ReadId, interest: Incoming) -> Result<(), DropReason> {
        let is_unsolicited = self.pcct.pit.is_unsolicited(interest.face);
        let without_room = match &mut self.tier_reads {
            Some(reads) => reads.push(read, interest, is_unsolicited),
            None => Some(interest),
        };
        // `start_tier_read` checked for room, so the Interest is never returned.
        without_room.map_or(Ok(()), |_| Err(DropReason::NoBuffer))
    }

    /// Returns the answer to an Interest with Data from the second tier. Returns `None` if that Data does not satisfy
    /// it.
    #[cold]
    fn answer_with(&mut self, now: Timestamp, interest: &Received<'_>, found: &FoundInTier<'_>) -> Option<StoredCopy> {
        if found.name != interest.name().value() || interest.layout.must_be_fresh && found.fresh_until <= now {
            return None;
        }
        self.emitter.note(|| TraceStep::DiskHit);
        Some(StoredCopy { copy: self.emitter.copy_of(found.packet), fresh_until: found.fresh_until })
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
        if hashes.full() != finished.name_hash || self.pcct.content.tier()?.is_erased(name, finished.position) {
            return None;
        }
        if let Some(dispatch) = self.other_workers.dispatch() {
            let (_, owner) = dispatch.entry_of(name)?;
            let is_valid = dispatch.entries_of(name).all(|entry| reads.is_valid(entry, finished.position));
            if !self.other_workers.is_here(owner) || !is_valid {
                return None;
            }
        }
        let exact = self.pcct.names.find_name(hashes.full(), name);
        // Data that came into memory meanwhile is newer.
        if exact.is_some_and(|exact| {
            self.pcct
                .names
                .variants(exact)
                .any(|entry| self.pcct.names.delegation(entry).is_empty() && self.pcct.names.entry(entry).has_data())
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
        if let Some(tier) = self.state.pcct.content.tier_mut() {
            tier.flush();
        }
    }

    /// Polls the second tier's completions and resumes the Interests of finished and timed-out reads.
    #[cold]
    pub(crate) fn poll_tier(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        let Some(mut reads) = self.state.tier_reads.take() else { return };
        if let Some(tier) = self.state.pcct.content.tier_mut() {
            tier.set_now(now);
        }
        while let Some(finished) = self.state.pcct.content.tier_mut().and_then(|tier| tier.next_finished()) {
            let found = self.state.take_found(now, &finished, &mut reads);
            self.resume(now, finished.id, found.as_ref(), &mut reads, out);
            let is_found = found.is_some();
            if let Some(tier) = self.state.pcct.content.tier_mut() {
                tier.end_read(finished, is_found);
            }
        }
        while let Some(expired) = self.state.pcct.content.tier_mut().and_then(|tier| tier.next_expired()) {
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
