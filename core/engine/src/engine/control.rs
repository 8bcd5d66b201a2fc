//! Control operations on an engine: faces, Content Store, settings, reports.

use namehop_packet::{DropCounters, FaceId, FaceInfo};
use namehop_store::Progress;
use namehop_wire::NameRef;

use super::config::{CsChange, CsInfo, EngineError, TableSizes};
use super::cs_counters::CsCounters;
use super::{CsErasure, Engine};
use crate::counters::EngineCounters;
use crate::pcct::content::ContentStore;
use crate::second_tier::TierReport;
use crate::trace::TraceRequest;

/// Entries of the PIT-CS composite table that one call of [`Engine::cs_erase`] examines.
const ENTRIES_PER_ERASE: usize = 8_192;
/// Cached Data packets that one call of [`Engine::cs_settle`] moves or evicts. Each costs several memory accesses.
const PACKETS_PER_SETTLING: usize = 256;

impl Engine {
    /// Adds a face or updates it. If the face goes down, the Interests pending on it are retried in the next calls of
    /// [`advance`](Self::advance), or answered with a Nack.
    pub fn set_face(&mut self, info: FaceInfo) {
        let goes_down = self.core.faces.is_up(info.id) && !info.is_up;
        self.core.faces.set(info);
        self.core.pcct.set_face(info.id);
        if goes_down && self.core.faces.is_asked(info.id) {
            self.core.upstream_lost();
        }
    }

    /// Marks an existing face as belonging to an unsolicited remote peer, or not. All such faces together can keep at
    /// most half of a full PIT from the others. The default is `false`.
    pub fn set_stranger(&mut self, id: FaceId, is_stranger: bool) {
        if self.core.faces.exists(id) {
            self.core.pcct.set_stranger(id, is_stranger);
        }
    }

    /// Replaces the current trace request; `None` ends tracing. Each traced packet is reported as
    /// [`EngineEvent::Traced`](super::EngineEvent::Traced).
    pub fn trace(&mut self, request: Option<TraceRequest>) {
        self.core.tracing.set(request);
    }

    /// Removes a face. Its records in the PIT are ignored from now on. Interests pending on it are retried in the next
    /// calls of [`advance`](Self::advance), or answered with a Nack.
    pub fn remove_face(&mut self, id: FaceId) {
        let is_asked = self.core.faces.is_asked(id);
        self.core.faces.remove(id);
        self.core.pcct.remove_face(id);
        if is_asked {
            self.core.upstream_lost();
        }
    }

    /// Returns whether the face exists.
    #[inline]
    pub fn has_face(&self, id: FaceId) -> bool {
        self.core.faces.exists(id)
    }

    /// Returns whether the link of the face is up; `None` if the face does not exist.
    pub fn is_face_up(&self, id: FaceId) -> Option<bool> {
        self.core.faces.get(id).map(|face| face.is_up)
    }

    /// Returns the dropped packets received on a face; `None` if the face does not exist.
    pub fn face_drops(&self, id: FaceId) -> Option<&DropCounters> {
        self.core.faces.drops(id)
    }

    /// Returns the totals since the start.
    pub fn counters(&self) -> &EngineCounters {
        &self.core.counters
    }

    /// Returns the number of entries in each table, as of the last call with a time.
    pub fn table_sizes(&self) -> TableSizes {
        TableSizes {
            pit: self.core.pcct.pit_len(),
            cs: self.core.pcct.content.len(),
            dead_nonces: self.core.dead_nonces.len(self.core.now),
            measurements: self.core.measurements.len(),
            pcct: self.core.pcct.len(),
            timers: self.core.timers.len(),
        }
    }

    /// Returns the Content Store's counters since the start.
    fn cs_totals(&self) -> CsCounters {
        let EngineCounters { cs_hits, cs_misses, cs_rejected, .. } = self.core.counters;
        let ContentStore { insertions, evictions, .. } = self.core.pcct.content;
        CsCounters { hits: cs_hits, misses: cs_misses, insertions, evictions, rejections: cs_rejected }
    }

    /// Returns the state of the Content Store.
    pub fn cs_info(&self) -> CsInfo {
        let content = &self.core.pcct.content;
        let policy = content.policy();
        CsInfo {
            capacity: content.capacity,
            admit: content.admit,
            serve: content.serve,
            entries: content.len(),
            hits: self.core.counters.cs_hits,
            misses: self.core.counters.cs_misses,
            policy,
            by_policy: self.core.policy_periods.until_now(policy.kind, self.cs_totals()),
            second_tier: content.second_tier.as_ref().map(|tier| TierReport {
                waiting: self.core.tier_reads.as_ref().map_or(0, |reads| reads.len() as u64),
                ..tier.report()
            }),
        }
    }

    /// Changes settings of the Content Store. They take effect at once; [`cs_settle`](Self::cs_settle) then moves or
    /// evicts the cached packets. A capacity larger than every earlier one takes time in proportion to the size of the
    /// tables. The resulting capacity may be smaller than requested; see [`cs_info`](Self::cs_info).
    ///
    /// # Errors
    /// If the memory for a larger capacity or another policy cannot be allocated. Then only the flags have changed.
    pub fn cs_configure(&mut self, change: CsChange) -> Result<(), EngineError> {
        let before = (self.core.pcct.content.policy().kind, self.cs_totals());
        let pcct = &mut self.core.pcct;
        pcct.content.admit = change.admit.unwrap_or(pcct.content.admit);
        pcct.content.serve = change.serve.unwrap_or(pcct.content.serve);
        pcct.configure_content(change.capacity, change.policy)?;
        if pcct.content.policy().kind != before.0 {
            self.core.policy_periods.end(before.0, before.1);
        }
        Ok(())
    }

    /// Does a bounded part of the work that [`cs_configure`](Self::cs_configure) requires: evicts packets beyond the
    /// capacity and moves packets to the new policy. Call it until it reports completion; packets may be processed in
    /// between. The policy that is returned at the end owns much memory, which dropping it frees.
    pub fn cs_settle(&mut self) -> Progress {
        self.core.pcct.settle_content(PACKETS_PER_SETTLING)
    }

    /// Erases up to `limit` cached Data packets under a prefix and returns the number. Each call examines a bounded
    /// number of entries. Call it again with the same `erasure`, which starts as the default, until `limit` is reached
    /// or the erasure is complete. Data that is cached in the meantime may stay. An erasure starts where the previous
    /// one ended, so a sequence of limited erasures does not examine the same entries repeatedly.
    ///
    /// Everything in the second tier under the prefix is erased too, regardless of `limit`; the number of packets
    /// erased there is unknown.
    pub fn cs_erase(&mut self, prefix: NameRef<'_>, limit: usize, erasure: &mut CsErasure) -> usize {
        let is_meant = |name: &[u8]| name.starts_with(prefix.value());
        // The second tier is erased first, so that nothing is read from it into memory meanwhile, and again at the end
        // for packets written to it meanwhile.
        if !erasure.has_begun() {
            self.erase_in_tier(prefix);
        }
        let erased = self.core.pcct.erase_data(is_meant, limit, ENTRIES_PER_ERASE, erasure);
        if erasure.is_complete() || erased == limit {
            self.erase_in_tier(prefix);
        }
        erased
    }

    fn erase_in_tier(&mut self, prefix: NameRef<'_>) {
        if let Some(tier) = &mut self.core.pcct.content.second_tier {
            tier.erase(prefix.value());
        }
    }

    /// Checks that the redundant state of tables, lists and memory is consistent. For tests and fuzzers; takes time
    /// linear in the size of the tables. The error describes the inconsistency.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.core.pcct.check_invariants()?;
        for pit in self.core.pcct.all_slots() {
            let slot = self.core.pcct.slot(pit);
            if slot.timer_at > slot.expiry {
                return Err(format!(
                    "{pit:?} expires at {:?}, but its timer is due at {:?}",
                    slot.expiry, slot.timer_at
                ));
            }
        }
        Ok(())
    }

    /// Returns whether nothing is pending. Then the engine holds no packet except cached Data.
    pub fn is_idle(&self) -> bool {
        let waits_for_tier = self.core.tier_reads.as_ref().is_some_and(|reads| reads.len() > 0);
        self.core.pcct.pit_len() == 0 && self.core.learning.is_idle() && !waits_for_tier
    }
}
