//! The Data processing path up to the PIT entries that the Data satisfies: incoming Data, Data unsolicited (NFD
//! developer's guide, section 4.3, here "guide"). Sections of the NDN packet format specification 0.3 ("spec") and of
//! NDNLPv2 are cited beside each step.

use arrayvec::ArrayVec;

use namehop_hash::{PrefixHashes, hash_name};
use namehop_packet::{DropReason, FaceId, FaceInfo, FaceScope, Incoming, Outgoing, Timestamp};
use namehop_wire::MAX_PACKET_SIZE;
use namehop_wire::data::implicit_digest;
use namehop_wire::tlv::types;

use super::content_store::Admission;
use super::satisfy::{PendingRoutes, Satisfying};
use crate::burst::Prepared;
use crate::engine::Engine;
use crate::pcct::PitRef;
use crate::pcct::content::DIGEST_BYTES;
use crate::scope::NameScope;
use crate::state::ForwardingState;
use crate::trace::{TraceStep, TraceSubject};

/// Maximum length of a name followed by an implicit digest: TYPE, LENGTH and the digest.
const FULL_NAME_BYTES: usize = MAX_PACKET_SIZE + 2 + DIGEST_BYTES;

impl Engine {
    /// Incoming Data pipeline (guide, section 4.3.1). The error is the reason why the Data was dropped.
    pub(crate) fn incoming_data(
        &mut self,
        now: Timestamp,
        packet: Incoming,
        prepared: Prepared<'_>,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        let Engine { fib, state, hashes: name_hashes, delegation_hashes, .. } = self;
        state.emitter.counters.in_data += 1;
        let freshness_ms = prepared.parsed.data.freshness_ms;
        let no_cache = packet.fields.no_cache;
        let name_ref = prepared.parsed.data.name.of_packet(packet.buffer.bytes());
        let name = name_ref.value();
        state
            .emitter
            .trace_if_on(now, TraceSubject::Data, packet.face, name_ref, || TraceStep::Data { freshness_ms, no_cache });
        let Some(ingress) = state.faces.get(packet.face) else { return Err(DropReason::UnknownFace) };

        // Guide, section 4.3.1: `/localhost` is for processes on this host.
        let is_localhost = NameScope::of(name) == NameScope::Localhost;
        if ingress.scope == FaceScope::NonLocal && is_localhost {
            return Err(DropReason::ScopeViolation);
        }

        // NDNLPv2, "PIT token": if it leads to an entry with this name, the exact name need not be looked up, and in
        // the usual case nothing else either.
        let by_token = state.pcct.entry_by_token(&packet.fields.pit_token);
        let known = by_token.filter(|&entry| state.pcct.names.name(entry) == name);
        // The name of a known entry was admitted with its Interest.
        if known.is_none() {
            state.limits.admit_name(ingress.id, name_ref)?;
            if state.other_workers.is_misdirected(&packet) {
                state.redirect_data(packet);
                return Ok(());
            }
        }
        let hashes = match known {
            Some(_) if !state.pcct.needs_data_hashes(now) => None,
            _ => Some(prepared.into_hashes(&state.key, name_ref)?),
        };

        // Spec, "Interest matching": all pending Interests that this Data satisfies.
        let mut matches = std::mem::take(&mut state.scratch.matches);
        matches.clear();
        let exact = state.pcct.pit.find_satisfied(&state.pcct.names, name, hashes, known, &mut matches);
        let digest = state.find_satisfied_by_digest(packet.buffer.bytes(), name, hashes, &mut matches);
        let unsolicited = state.keep_sent_to(&ingress, &mut matches);
        state.emitter.note(|| TraceStep::Satisfies { entries: matches.len(), by_token: known.is_some() });

        let (bytes, digest) = (packet.buffer.bytes(), digest.as_ref());
        let admission = Admission { packet: bytes, name, freshness_ms, hashes, digest, is_from_tier: false };
        if matches.is_empty() {
            state.scratch.matches = matches;
            state.data_unsolicited(now, &ingress, (&admission, exact), no_cache);
            return Err(unsolicited);
        }

        // Content Store insert, unless the producer forbids it (NDNLPv2, "Local cache policy").
        state.note_requests(&matches, hashes);
        if !no_cache {
            let partition = state.partition_of(&matches, by_token, ingress.id);
            state.admit(now, &admission, Some(partition), exact);
        }

        let satisfying = Satisfying { now, freshness_ms, ingress: ingress.id, is_localhost };
        let routes = PendingRoutes { fib, name_hashes, delegation_hashes };
        state.satisfy(&satisfying, &matches, routes, packet, out);
        state.scratch.matches = matches;
        Ok(())
    }
}

/// The steps of the incoming Data pipeline.
impl ForwardingState {
    /// Sets Data aside for the worker that its name belongs to.
    #[cold]
    fn redirect_data(&mut self, packet: Incoming) {
        self.emitter.counters.in_data -= 1;
        self.emitter.note(|| TraceStep::OtherWorker);
        self.other_workers.put_aside(packet);
    }

    /// Adds the PIT slots that request this Data by its implicit digest. Returns the digest, which is computed only if
    /// a pending Interest requests this name by digest.
    #[inline(always)]
    fn find_satisfied_by_digest(
        &mut self,
        packet: &[u8],
        name: &[u8],
        hashes: Option<&PrefixHashes>,
        matches: &mut Vec<PitRef>,
    ) -> Option<[u8; DIGEST_BYTES]> {
        if !self.pcct.pit.requests_digest(hashes?) {
            return None;
        }
        self.emitter.counters.digests += 1;
        Some(self.match_full_name(packet, name, matches))
    }

    /// Collects the PIT slots that request this very Data by its name and implicit digest. Returns the digest.
    // A separate function, because the full name takes much room on the stack.
    #[cold]
    #[inline(never)]
    fn match_full_name(&self, packet: &[u8], name: &[u8], matches: &mut Vec<PitRef>) -> [u8; DIGEST_BYTES] {
        let digest = implicit_digest(packet);
        let component_header = [types::IMPLICIT_SHA256_DIGEST_COMPONENT as u8, DIGEST_BYTES as u8];
        let full: ArrayVec<u8, FULL_NAME_BYTES> =
            name.iter().chain(&component_header).chain(&digest).copied().collect();
        self.pcct.pit.collect(&self.pcct.names, hash_name(&self.key, &full), &full, matches);
        digest
    }

    /// Removes the PIT slots that were not sent to this face, if only such slots can be satisfied by it. Returns the
    /// drop reason for Data without a match.
    #[inline(always)]
    fn keep_sent_to(&self, ingress: &FaceInfo, matches: &mut Vec<PitRef>) -> DropReason {
        if !self.rules.requires_out_record(ingress) || matches.is_empty() {
            return DropReason::UnsolicitedData;
        }
        match matches[..] {
            [only] if self.pcct.pit.was_sent_to(only, ingress.id) => {}
            _ => self.remove_not_sent_to(matches, ingress.id),
        }
        DropReason::UnaskedData
    }

    #[cold]
    #[inline(never)]
    fn remove_not_sent_to(&self, matches: &mut Vec<PitRef>, face: FaceId) {
        matches.retain(|&pit| self.pcct.pit.was_sent_to(pit, face));
    }

    /// Data unsolicited pipeline (guide, section 4.3.2): such Data is never forwarded, and is cached only if the policy
    /// admits it and the producer does not forbid it. `exact` is any entry with its name.
    #[cold]
    fn data_unsolicited(
        &mut self,
        now: Timestamp,
        ingress: &FaceInfo,
        (admission, exact): (&Admission<'_>, Option<u32>),
        no_cache: bool,
    ) {
        if self.rules.admits_unsolicited(ingress) && !no_cache {
            self.admit(now, admission, None, exact);
        }
    }

    /// Records requests by prefix or digest for the cache policy, now that the name of the Data is known. A request by
    /// that name was recorded with the Interest.
    #[inline(always)]
    fn note_requests(&mut self, matches: &[PitRef], hashes: Option<&PrefixHashes>) {
        if let Some(hashes) = hashes
            && !self.pcct.pit.are_exact(&self.pcct.names, matches)
        {
            self.pcct.content.note_request(hashes.full());
        }
    }

    /// Returns the entry that determines the hint under which the Data is cached: the entry of its token, or else one
    /// that was sent to this face. So no peer can place Data where other consumers look for answers through another
    /// hint.
    #[inline(always)]
    fn partition_of(&self, matches: &[PitRef], by_token: Option<u32>, ingress: FaceId) -> u32 {
        match matches {
            // The usual case.
            [only] => only.entry,
            _ => self.partition_of_several(matches, by_token, ingress),
        }
    }

    #[cold]
    #[inline(never)]
    fn partition_of_several(&self, matches: &[PitRef], by_token: Option<u32>, ingress: FaceId) -> u32 {
        let was_sent = |pit: &&PitRef| self.pcct.pit.was_sent_to(**pit, ingress);
        let by_token = matches.iter().find(|pit| Some(pit.entry) == by_token);
        by_token.or_else(|| matches.iter().find(was_sent)).unwrap_or(&matches[0]).entry
    }
}
