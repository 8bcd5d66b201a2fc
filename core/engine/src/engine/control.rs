//! What the control plane does with an engine: faces, Content Store, settings, reports.

use namehop_disk::DiskReport;
use namehop_packet::{DropCounters, FaceId, FaceInfo};
use namehop_store::Progress;
use namehop_wire::NameRef;

use super::config::{CsChange, CsInfo, EngineError, TableSizes};
use super::cs_counters::CsCounters;
use super::{CsErasure, Engine};
use crate::counters::EngineCounters;
use crate::pcct::content::ContentStore;
use crate::schedule::Schedule;
use crate::trace::TraceRequest;

/// Entries of the PIT-CS composite table that one call of [`Engine::cs_erase`] looks at.
const ENTRIES_PER_ERASE: usize = 8_192;
/// Cached Data that one call of [`Engine::cs_settle`] moves or evicts: each costs some accesses to memory.
const PACKETS_PER_SETTLING: usize = 256;

impl<S: Schedule> Engine<S> {
    /// Adds a face, or changes what is known of it. Interests that wait for a face that has gone down are sent elsewhere in the
    /// next calls of [`advance`](Self::advance), or answered with a Nack.
    pub fn set_face(&mut self, info: FaceInfo) {
        let goes_down = self.core.faces.is_up(info.id) && !info.is_up;
        self.core.faces.set(info);
        self.core.pcct.set_face(info.id);
        if goes_down && self.core.faces.is_asked(info.id) {
            self.core.upstream_lost();
        }
    }

    /// Says of a face that is there whether it is a stranger: a peer on another computer that came by itself. All of them together
    /// keep no more than half of a full PIT from the others. Without a word a face is none.
    pub fn set_stranger(&mut self, id: FaceId, is_stranger: bool) {
        if self.core.faces.exists(id) {
            self.core.pcct.set_stranger(id, is_stranger);
        }
    }

    /// Traces packets as asked for here from now on, in place of what was asked for before; each is reported as
    /// [`EngineEvent::Traced`](super::EngineEvent::Traced).
    pub fn trace(&mut self, request: Option<TraceRequest>) {
        self.core.tracing.set(request);
    }

    /// Removes a face. Its records in the PIT are ignored from now on. Interests that wait for it are sent elsewhere in the next
    /// calls of [`advance`](Self::advance), or answered with a Nack.
    pub fn remove_face(&mut self, id: FaceId) {
        let is_asked = self.core.faces.is_asked(id);
        self.core.faces.remove(id);
        self.core.pcct.remove_face(id);
        if is_asked {
            self.core.upstream_lost();
        }
    }

    /// Does this face exist?
    #[inline]
    pub fn has_face(&self, id: FaceId) -> bool {
        self.core.faces.exists(id)
    }

    /// Does the link of this face work? `None` when the face does not exist.
    pub fn is_face_up(&self, id: FaceId) -> Option<bool> {
        self.core.faces.get(id).map(|face| face.is_up)
    }

    /// Discarded packets that came in on a face; `None` when it does not exist.
    pub fn face_drops(&self, id: FaceId) -> Option<&DropCounters> {
        self.core.faces.drops(id)
    }

    /// Totals since the start.
    pub fn counters(&self) -> &EngineCounters {
        &self.core.counters
    }

    /// Number of entries in each table, as of the last call with a time.
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

    /// What the Content Store did since the start.
    fn cs_totals(&self) -> CsCounters {
        let EngineCounters { cs_hits, cs_misses, cs_rejected, .. } = self.core.counters;
        let ContentStore { insertions, evictions, .. } = self.core.pcct.content;
        CsCounters { hits: cs_hits, misses: cs_misses, insertions, evictions, rejections: cs_rejected }
    }

    /// State of the Content Store.
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
            disk: content.disk.as_ref().map(|disk| DiskReport {
                waiting: self.core.disk_reads.as_ref().map_or(0, |reads| reads.len() as u64),
                ..disk.report()
            }),
        }
    }

    /// Changes settings of the Content Store. They hold from now on; what follows for the packets in it is done by
    /// [`cs_settle`](Self::cs_settle). A larger capacity than at any time before costs time in proportion to the size of the
    /// tables. The capacity may end up smaller than asked for; see [`cs_info`](Self::cs_info).
    ///
    /// # Errors
    /// When the memory for a larger capacity or another policy cannot be had; then nothing has changed but the flags.
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

    /// Does a bounded part of what [`cs_configure`](Self::cs_configure) entails: evicts what is too much, and lets the packets go
    /// over to the newer policy. To be called until it is done; packets may come meanwhile. Dropping the policy that is given
    /// back at the end frees much memory.
    pub fn cs_settle(&mut self) -> Progress {
        self.core.pcct.settle_content(PACKETS_PER_SETTLING)
    }

    /// Erases up to `limit` cached Data under a prefix and returns how many. Looks at a bounded number of entries: call it
    /// again with the same `erasure`, which starts as the default, until so many are erased or it is complete. Data that
    /// is cached in the meantime may stay. An erasure starts where the last one ended, so a sequence of limited ones does
    /// not look at the same entries again and again.
    ///
    /// Everything on the disk under the prefix is erased as well, whatever the limit; how many those are nobody knows.
    pub fn cs_erase(&mut self, prefix: NameRef<'_>, limit: usize, erasure: &mut CsErasure) -> usize {
        let is_meant = |name: &[u8]| name.starts_with(prefix.value());
        // First on the disk, so that nothing comes from there into memory meanwhile; and at the end what went there meanwhile.
        if !erasure.has_begun() {
            self.erase_on_disk(prefix);
        }
        let erased = self.core.pcct.erase_data(is_meant, limit, ENTRIES_PER_ERASE, erasure);
        if erasure.is_complete() || erased == limit {
            self.erase_on_disk(prefix);
        }
        erased
    }

    fn erase_on_disk(&mut self, prefix: NameRef<'_>) {
        if let Some(disk) = &mut self.core.pcct.content.disk {
            disk.erase(prefix.value());
        }
    }

    /// Compares everything that is counted twice: tables, lists, memory. For tests and fuzzers; takes time linear in the
    /// size of the tables. An error says what does not agree.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.core.pcct.check_invariants()?;
        for pit in self.core.pcct.all_slots() {
            let slot = self.core.pcct.slot(pit);
            if slot.timer_at > slot.expiry {
                return Err(format!("{pit:?} ends at {:?}, watched at {:?}", slot.expiry, slot.timer_at));
            }
        }
        Ok(())
    }

    /// Is nothing pending? Then the engine holds no packet but cached Data.
    pub fn is_idle(&self) -> bool {
        let waits_for_disk = self.core.disk_reads.as_ref().is_some_and(|reads| reads.len() > 0);
        self.core.pcct.pit_len() == 0 && self.core.learning.is_idle() && !waits_for_disk
    }
}
