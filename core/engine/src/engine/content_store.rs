//! Control operations on the Content Store of an engine: its state, settings, erasing Data.

use namehop_store::Progress;
use namehop_wire::NameRef;

use super::{CsChange, CsCounters, CsErasure, CsInfo, Engine, EngineError};
use crate::counters::EngineCounters;
use crate::dispatch::ENTRIES;
use crate::second_tier::{SecondTier, TierReport};
use crate::state::tier_reads::TierReads;

/// Entries of the PIT-CS composite table that one call of [`Engine::cs_erase`] examines.
const ENTRIES_PER_ERASE: usize = 8_192;
/// The same for [`Engine::cs_erase_entries`]. It is less than for an operator's command, because this erasure runs
/// during normal forwarding.
const ENTRIES_PER_MOVE: usize = 1_024;
/// Cached Data packets that one call of [`Engine::cs_settle`] moves or evicts. Each costs several memory accesses.
const PACKETS_PER_SETTLING: usize = 256;

impl Engine {
    /// Gives the Content Store a second tier. Must be called before the first packet.
    pub fn use_second_tier(&mut self, tier: Box<dyn SecondTier>) {
        self.state.pcct.content.use_tier(tier);
        self.state.tier_reads = Some(Box::new(TierReads::new()));
    }

    /// Returns whether the second tier has completions for [`advance`](Self::advance).
    #[inline]
    pub fn has_tier_completions(&self) -> bool {
        self.state.pcct.content.tier().is_some_and(|tier| tier.has_completions())
    }

    /// Returns the Content Store's counters since the start.
    fn cs_totals(&self) -> CsCounters {
        let EngineCounters { cs_hits, cs_misses, cs_rejected, .. } = self.state.emitter.counters;
        let (insertions, evictions) = self.state.pcct.content.insertions_and_evictions();
        CsCounters { hits: cs_hits, misses: cs_misses, insertions, evictions, rejections: cs_rejected }
    }

    /// Returns the state of the Content Store.
    pub fn cs_info(&self) -> CsInfo {
        let content = &self.state.pcct.content;
        let policy = content.policy();
        CsInfo {
            capacity: content.capacity(),
            admit: content.admit_flag(),
            serve: content.serves(),
            entries: content.len(),
            hits: self.state.emitter.counters.cs_hits,
            misses: self.state.emitter.counters.cs_misses,
            policy,
            by_policy: self.state.policy_periods.until_now(policy.kind, self.cs_totals()),
            second_tier: content.tier().map(|tier| TierReport {
                waiting: self.state.tier_reads.as_ref().map_or(0, |reads| reads.len() as u64),
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
        let before = (self.state.pcct.content.policy().kind, self.cs_totals());
        let pcct = &mut self.state.pcct;
        let content = &mut pcct.content;
        content.set_flags(change.admit.unwrap_or(content.admit_flag()), change.serve.unwrap_or(content.serves()));
        pcct.configure_content(change.capacity, change.policy)?;
        if pcct.content.policy().kind != before.0 {
            self.state.policy_periods.end(before.0, before.1);
        }
        Ok(())
    }

    /// Does a bounded part of the work that [`cs_configure`](Self::cs_configure) requires: evicts packets beyond the
    /// capacity and moves packets to the new policy. Call it until it reports completion; packets may be processed in
    /// between. The policy that is returned at the end owns much memory, which dropping it frees.
    pub fn cs_settle(&mut self) -> Progress {
        self.state.pcct.content.settle(&mut self.state.pcct.names, PACKETS_PER_SETTLING)
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
        let erased =
            self.state.pcct.content.erase(&mut self.state.pcct.names, is_meant, limit, ENTRIES_PER_ERASE, erasure);
        if erasure.is_complete() || erased == limit {
            self.erase_in_tier(prefix);
        }
        erased
    }

    fn erase_in_tier(&mut self, prefix: NameRef<'_>) {
        if let Some(tier) = self.state.pcct.content.tier_mut() {
            tier.erase(prefix.value());
        }
    }

    /// Erases cached Data, also in the second tier, of these entries of the name dispatch table before they are
    /// assigned to this engine. `entries` must be sorted. Such Data may have been cached before another engine owned
    /// its name, and may be older than that engine's. Returns the number erased. Must be called repeatedly, as
    /// [`cs_erase`](Self::cs_erase).
    pub fn cs_erase_entries(&mut self, entries: &[usize], erasure: &mut CsErasure) -> usize {
        let dispatch = self.state.other_workers.dispatch().cloned();
        let entry_of = |name: &[u8]| dispatch.as_ref()?.entry_of(name);
        let is_meant = |name: &[u8]| entry_of(name).is_some_and(|(entry, _)| entries.binary_search(&entry).is_ok());
        let erased =
            self.state.pcct.content.erase(&mut self.state.pcct.names, is_meant, usize::MAX, ENTRIES_PER_MOVE, erasure);
        if erasure.is_complete()
            && let (Some(tier), Some(reads)) = (self.state.pcct.content.tier(), &mut self.state.tier_reads)
        {
            reads.invalidate_before(entries, ENTRIES, tier.position());
        }
        erased
    }
}
