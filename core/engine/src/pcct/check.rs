//! Self-check of the table: compares redundant state.

use namehop_store::CachePolicy;
use namehop_wire::MAX_NAME_COMPONENTS;

use super::Pcct;
use super::entry::NONE;

fn agree(what: &str, counted: usize, found: usize) -> Result<(), String> {
    if counted == found { Ok(()) } else { Err(format!("{what}: {counted} counted, {found} found")) }
}

/// Returns the number of extension blocks for this number of records.
fn chain_blocks(records: usize) -> usize {
    records.saturating_sub(super::record::INLINE_RECORDS).div_ceil(super::record::BLOCK_RECORDS)
}

impl Pcct {
    /// Compares all counts, lists and arenas with each other. Takes time linear in the size of the table.
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        let mut pending_prefixes = [0u32; MAX_NAME_COMPONENTS + 1];
        let mut pending_digests = [0u32; MAX_NAME_COMPONENTS + 1];
        let (mut entries, mut data, mut pit) = (0, 0, 0);
        let (mut in_blocks, mut out_blocks, mut tokens, mut memory) = (0, 0, 0, 0);
        for index in self.used_entries() {
            let entry = self.entry(index);
            entries += 1;
            if self.find(entry.name_hash, self.name(index), self.delegation(index)) != Some(index) {
                return Err(format!("entry {index} is not found by its key"));
            }
            if !entry.has_slots() && !entry.has_data() {
                return Err(format!("entry {index} has neither PIT slots nor Data"));
            }
            if self.variants(index).any(|other| self.name(other) != self.name(index)) {
                return Err(format!("entry {index} is in the ring of another name"));
            }
            if self.variants(index).filter(|&other| self.entry(other).delegation_bytes > 0).count() > super::MAX_HINTS {
                return Err(format!("the name of entry {index} has too many delegations"));
            }
            data += usize::from(entry.has_data());
            if entry.has_data() && self.owner_of_data(entry.data) != Some(index) {
                return Err(format!("the Data of entry {index} does not refer to it"));
            }
            memory += usize::from(entry.long_key().is_some());
            for slot_ref in self.slots(index) {
                let slot = self.slot(slot_ref);
                pit += 1;
                memory += usize::from(!slot.packet.is_none());
                if self.queue.get_by_serial(slot.queue_position, slot.serial) != Some(slot_ref) {
                    return Err(format!("slot {slot_ref:?} is not at its recorded position in the queue"));
                }
                pending_prefixes[usize::from(entry.depth)] += u32::from(slot.selectors().can_be_prefix);
                pending_digests[usize::from(entry.depth)] += u32::from(entry.names_digest());
                in_blocks += chain_blocks(usize::from(slot.in_count));
                out_blocks += chain_blocks(usize::from(slot.out_count));
                tokens += self.in_records(slot_ref).filter(|record| record.long_token != NONE).count();
            }
        }
        agree("entries in the arena", self.entries.len(), entries)?;
        agree("entries in the bucket table", self.table.len(), entries)?;
        agree("cached Data", self.content.len(), data)?;
        agree("cached Data in the policy", self.content.policy.len(), data)?;
        agree("memory blocks of cached Data", self.content.blocks.live(), data)?;
        agree("PIT slots in the queue", self.queue.len(), pit)?;
        self.shares.check_invariants(self.queue.with_holders().map(|(_, holder)| holder))?;
        agree("PIT slots in the arena", self.slots.len(), pit)?;
        agree("in-record blocks", self.in_blocks.len(), in_blocks)?;
        agree("out-record blocks", self.out_blocks.len(), out_blocks)?;
        agree("long tokens", self.tokens.len(), tokens)?;
        agree("long names and Interest copies", self.memory.live(), memory)?;
        let digests: u32 = pending_digests.iter().sum();
        agree("names of Interests with digests", self.digest_names.len(), digests as usize)?;
        let unusual: u32 = pending_prefixes.iter().chain(&pending_digests).sum();
        agree("Interests with CanBePrefix or a digest", self.pending_unusual as usize, unusual as usize)?;
        if pending_prefixes != self.pending_prefixes || pending_digests != self.pending_digests {
            return Err("the counts of pending prefixes or digests by length are wrong".to_owned());
        }
        self.content.blocks.check_invariants()?;
        self.memory.check_invariants()
    }
}
