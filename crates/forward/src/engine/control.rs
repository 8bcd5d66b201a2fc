//! What the control plane does with an engine: faces, Content Store, settings, reports.

use namehop_wire::{Name, NameRef};

use super::config::{CsInfo, CsSettings, EngineError, TableSizes, UnsolicitedPolicy};
use super::{Engine, route::Route};
use crate::buffer::BufferPool;
use crate::counters::{DropCounters, EngineCounters};
use crate::face::{FaceId, FaceInfo};
use crate::fib::NextHop;
use crate::packet::Outgoing;
use crate::pcct::PitRef;
use crate::strategy::Trigger;
use crate::time::Timestamp;

impl<P: BufferPool> Engine<P> {
    /// Adds a face, or changes what is known of it.
    pub fn set_face(&mut self, info: FaceInfo) {
        self.core.faces.set(info);
    }

    /// Removes a face. Its records in the PIT are ignored from now on, and removed when their PIT entry is next used.
    pub fn remove_face(&mut self, id: FaceId) {
        self.core.faces.remove(id);
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
        }
    }

    /// Sets the names of the regions that this router belongs to.
    pub fn set_producer_regions(&mut self, regions: Vec<Name>) {
        self.core.producer_regions = regions;
    }

    /// Sets what becomes of Data that nobody asked for.
    pub fn set_unsolicited(&mut self, policy: UnsolicitedPolicy) {
        self.core.unsolicited = policy;
    }

    /// Sets the HopLimit that Interests without one get; 0 leaves them without.
    pub fn set_default_hop_limit(&mut self, hop_limit: u8) {
        self.core.default_hop_limit = hop_limit;
    }

    /// State of the Content Store.
    pub fn cs_info(&self) -> CsInfo {
        let content = &self.core.pcct.content;
        CsInfo {
            capacity: content.capacity,
            admit: content.admit,
            serve: content.serve,
            entries: content.len(),
            hits: self.core.counters.cs_hits,
            misses: self.core.counters.cs_misses,
        }
    }

    /// Changes settings of the Content Store. A larger capacity than at any time before costs time in proportion to the
    /// size of the tables. The capacity may end up smaller than asked for; see [`cs_info`](Self::cs_info).
    ///
    /// # Errors
    /// When the memory for a larger capacity cannot be had; then nothing has changed but the flags.
    pub fn cs_configure(&mut self, settings: CsSettings) -> Result<(), EngineError> {
        let pcct = &mut self.core.pcct;
        pcct.content.admit = settings.admit.unwrap_or(pcct.content.admit);
        pcct.content.serve = settings.serve.unwrap_or(pcct.content.serve);
        if let Some(capacity) = settings.capacity {
            pcct.set_content_capacity(capacity)?;
        }
        Ok(())
    }

    /// Removes up to `limit` cached Data under a prefix and returns how many. Looks at the whole table.
    pub fn cs_erase(&mut self, prefix: NameRef<'_>, limit: usize) -> usize {
        self.core.pcct.erase_data(prefix.value(), limit)
    }

    /// A FIB entry got a new next hop: strategies may send pending Interests there. Looks at the whole PIT.
    pub fn new_nexthop(
        &mut self,
        now: Timestamp,
        prefix: NameRef<'_>,
        nexthop: NextHop,
        out: &mut Vec<Outgoing<P::Buffer>>,
    ) {
        let pcct = &self.core.pcct;
        let concerns = |pit: &PitRef| {
            let hint = pcct.hint(pit.entry);
            let routed_by = if hint.is_empty() { pcct.name(pit.entry) } else { hint };
            routed_by.starts_with(prefix.value()) && !pcct.slot(*pit).is_satisfied()
        };
        let concerned: Vec<PitRef> = pcct.all_slots().filter(concerns).collect();
        for pit in concerned {
            let context = self.pending_context(now, pit, out);
            // A longer prefix with next hops of its own hides the one that has changed.
            if is_routed_by(&context.route, prefix) {
                let mut context = context;
                context.dispatch(Trigger::AfterNewNextHop(nexthop));
                context.settle();
            }
        }
        self.fib.quiescent();
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
        self.core.pcct.pit_len() == 0 && self.core.learning.is_idle()
    }
}

fn is_routed_by(route: &Route<'_>, prefix: NameRef<'_>) -> bool {
    route.prefix_len == prefix.len()
}
