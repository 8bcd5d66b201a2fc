//! Content Store hits, and admission of Data to the Content Store.

use arrayvec::ArrayVec;
use namehop_hash::PrefixHashes;
use namehop_packet::{DropReason, FaceId, FaceInfo, LinkFields, Outgoing, PacketBuffer, PacketKind, Timestamp};
use namehop_wire::MAX_PACKET_SIZE;

use crate::pcct::PitRef;
use crate::pcct::content::DIGEST_BYTES;
use crate::pcct::content::insertion::{NewData, Stored};
use crate::pcct::key::{Key, NoEntry};
use crate::state::ForwardingState;
use crate::trace::TraceStep;

/// The parts of an arriving Data packet that the Content Store needs.
pub(super) struct Admission<'a> {
    pub(super) packet: &'a [u8],
    /// Name VALUE.
    pub(super) name: &'a [u8],
    pub(super) freshness_ms: u64,
    /// May be `None` only if the Data goes into the entry of an Interest with its exact name.
    pub(super) hashes: Option<&'a PrefixHashes>,
    pub(super) digest: Option<&'a [u8; DIGEST_BYTES]>,
    /// Whether it was read from the second tier, which still has it.
    pub(super) is_from_tier: bool,
}

/// A copy of cached Data, to be sent.
pub(super) struct StoredCopy {
    /// `None` if no buffer was available.
    pub(super) copy: Option<PacketBuffer>,
    pub(super) fresh_until: Timestamp,
}

impl ForwardingState {
    /// Content Store hit pipeline (NFD developer's guide, section 4.2.3): answers with the cached Data of an entry.
    /// `pending` is the PIT slot of the Interest, if there is one without downstreams: it ends.
    pub(super) fn content_store_hit(
        &mut self,
        now: Timestamp,
        entry: u32,
        pending: Option<PitRef>,
        ingress: &FaceInfo,
        fields: &LinkFields,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        self.pcct.content.note_used(entry);
        let copy = self.emitter.copy_of(self.pcct.content.data(&self.pcct.names, entry));
        let data = StoredCopy { copy, fresh_until: self.pcct.names.entry(entry).fresh_until };
        self.answer_from_store(now, data, pending, ingress, fields, out)
    }

    /// Answers with a copy of cached Data.
    #[inline(always)]
    pub(super) fn answer_from_store(
        &mut self,
        now: Timestamp,
        StoredCopy { copy, fresh_until }: StoredCopy,
        pending: Option<PitRef>,
        ingress: &FaceInfo,
        fields: &LinkFields,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        self.emitter.counters.cs_hits += 1;
        match pending {
            Some(pit) => {
                // The cached Data stops looping Interests for as long as it may answer them.
                let keeps_nonces = self.dead_nonces.outlast_until(fresh_until, now);
                let slot = self.pcct.pit.slot_mut(pit);
                // A slot that its strategy kept for late Data also stands for an earlier Interest.
                self.emitter.counters.satisfied_interests += u64::from(slot.is_satisfied());
                slot.set_satisfied(slot.selectors().must_be_fresh && keeps_nonces);
                self.end_slot(now, pit);
            }
            None => self.emitter.counters.satisfied_interests += 1,
        }
        let buffer = copy.ok_or(DropReason::NoBuffer)?;
        self.emitter.transmit(ingress.id, PacketKind::Data, buffer, out, || LinkFields {
            pit_token: fields.pit_token,
            congestion_mark: fields.congestion_mark,
            incoming_face_id: Some(FaceId::CONTENT_STORE),
            stamp: fields.stamp,
            ..LinkFields::default()
        });
        Ok(())
    }

    /// Caches Data under the delegation of `partition`, an entry that it satisfies, or under none. `exact` is any entry
    /// with the name of the Data. If the Interest requested exactly this name, its own entry holds the Data.
    pub(super) fn admit(&mut self, now: Timestamp, data: &Admission<'_>, partition: Option<u32>, exact: Option<u32>) {
        if !self.pcct.content.admits() {
            self.emitter.note(|| TraceStep::NotCached);
            return;
        }
        let known = match exact {
            // The usual case: the Interest requested this very name.
            Some(_) if exact == partition => exact,
            Some(exact) => {
                let delegation = partition.map_or(&[][..], |entry| self.pcct.names.delegation(entry));
                self.pcct.names.variants(exact).find(|&entry| self.pcct.names.delegation(entry) == delegation)
            }
            None => None,
        };
        let entry = match (known, data.hashes) {
            (Some(entry), _) => Ok(entry),
            (None, None) => Err(NoEntry::NoMemory),
            (None, Some(hashes)) => self.make_content_entry(data, hashes, partition, exact),
        };
        let stored = match entry {
            Err(_) => Stored::NoRoom,
            Ok(entry) => {
                let new = NewData {
                    packet: data.packet,
                    hashes: data.hashes,
                    // Data without a FreshnessPeriod is never fresh.
                    fresh_until: now.plus_ms(data.freshness_ms),
                    is_solicited: partition.is_some() || data.is_from_tier,
                    digest: data.digest,
                    is_from_tier: data.is_from_tier,
                };
                let stored = self.pcct.content.store(&mut self.pcct.names, entry, &new, now);
                if stored != Stored::Yes {
                    self.pcct.names.free_if_unused(entry);
                }
                stored
            }
        };
        self.emitter.note(|| if stored == Stored::Yes { TraceStep::Cached } else { TraceStep::NotCached });
        self.emitter.counters.note_stored(stored);
    }

    /// Inserts an entry for Data that does not go into the entry of an Interest.
    // A separate function, because the delegation takes much room on the stack.
    #[inline(never)]
    fn make_content_entry(
        &mut self,
        data: &Admission<'_>,
        hashes: &PrefixHashes,
        partition: Option<u32>,
        exact: Option<u32>,
    ) -> Result<u32, NoEntry> {
        // The delegation is copied because it lies in the table that is about to change.
        let delegation: ArrayVec<u8, MAX_PACKET_SIZE> = match partition {
            Some(entry) => self.pcct.names.delegation(entry).iter().copied().collect(),
            None => ArrayVec::new(),
        };
        let delegation_hash = partition.map_or(0, |entry| self.pcct.names.entry(entry).delegation_hash);
        let key = Key::new(data.name, hashes, &delegation, delegation_hash);
        self.pcct.insert(&key, exact)
    }
}
