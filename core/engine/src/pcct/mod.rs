//! PIT-CS composite table: pending Interests and cached Data of one worker in one table.
//!
//! Entries are keyed by (name, chosen forwarding hint). The bucket table is keyed by the hash of the name alone, and
//! all entries of one name form a ring. So Data that finds one entry it may satisfy finds all others. An entry lives
//! while it has a PIT slot or Data. When an Interest is satisfied, the Data goes into the entry that the Interest made.
//!
//! The table has three parts: the [`NameTable`] of entries, and the [`Pit`] and the [`ContentStore`] that refer to it.
//! Their methods get the table of names as an argument. [`Pcct`] itself has only what takes all three.
//!
//! | file | what |
//! |---|---|
//! | `entry`, `record` | memory layout |
//! | `key`, `names` | keys; the table of names: lookup, insertion and removal of entries |
//! | `pit` | PIT slots with their records |
//! | `content` | the Content Store |
//! | `prefetch` | the forecast of the prefetch plane, and prefetches that take several parts |
//! | `blocks` | memory for Data, long names, copies of Interests |
//! | `memory` | the memory that full tables use |
//! | `check` | self-check |
//!
//! Nothing here sends packets or knows more of a face than its id. Assumes that names are valid Name VALUEs with at
//! most 64 components.

mod blocks;
mod check;
pub(crate) mod content;
pub(crate) mod entry;
pub(crate) mod key;
pub(crate) mod memory;
pub(crate) mod names;
mod pit;
pub(crate) mod prefetch;
pub(crate) mod record;

use namehop_hash::HashKey;
use namehop_store::PolicyChoice;
use namehop_table::TableError;
use namehop_wire::lp::PitToken;

use crate::pit_token::{Named, TokenForm};
pub use check::InvariantError;
use check::agree;
use content::{ContentConfig, ContentStore};
use key::{Key, NoEntry};
use names::NameTable;
pub(crate) use pit::{Arrival, Downstream, NoRoom, Pit, short_downstream};
use record::InRecord;

/// Maximum number of entries with one name and a forwarding hint. One without a hint may exist in addition.
const MAX_HINTS: usize = 8;
/// Entries beyond one for each PIT slot and each Data: for entries made while others are about to be freed.
const SPARE_ENTRIES: usize = 64;

/// Handle of one PIT slot. Valid until the slot is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PitRef {
    pub(crate) entry: u32,
    pub(crate) slot: u32,
}

/// Sizes of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PcctConfig {
    /// Maximum number of PIT slots.
    pub(crate) pit_capacity: usize,
    /// Maximum bytes of long names and Interest copies.
    pub(crate) memory_bytes: usize,
    pub(crate) content: ContentConfig,
    /// The key for hashing names.
    pub(crate) key: HashKey,
    /// Number of the worker: the first byte of its PIT tokens.
    pub(crate) worker: u8,
}

/// The PIT-CS composite table.
pub(crate) struct Pcct {
    pub(crate) names: NameTable,
    pub(crate) pit: Pit,
    pub(crate) content: ContentStore,
    /// The layout of tokens for the PIT slots.
    token_form: TokenForm,
}

impl Pcct {
    /// Creates an empty table.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub(crate) fn new(config: &PcctConfig) -> Result<Self, TableError> {
        let pit_capacity = config.pit_capacity.max(1);
        let entry_limit = pit_capacity + config.content.capacity_packets + SPARE_ENTRIES;
        let reserved =
            pit_capacity + config.content.capacity_packets.max(config.content.reserved_packets) + SPARE_ENTRIES;
        let names = NameTable::new(entry_limit, reserved, config.memory_bytes)?;
        Ok(Pcct {
            token_form: TokenForm::new(config.worker, names.reserved(), pit_capacity),
            names,
            pit: Pit::new(pit_capacity, config.key)?,
            content: ContentStore::new(&config.content, entry_limit, config.key)?,
        })
    }

    /// Changes the capacity and the policy of the Content Store; `None` leaves a setting unchanged. The capacity may be
    /// limited to what the reserved address space allows. After an error nothing has changed.
    pub(crate) fn configure_content(
        &mut self,
        capacity_packets: Option<usize>,
        policy: Option<PolicyChoice>,
    ) -> Result<(), TableError> {
        let others = self.pit.capacity() + SPARE_ENTRIES;
        let capacity = capacity_packets.unwrap_or(self.content.capacity()).min(self.names.reserved() - others);
        let choice = policy.unwrap_or(self.content.policy());
        self.content.configure(&mut self.names, capacity, capacity + others, choice)
    }

    /// Inserts an entry; the key must not be in the table. `sibling` is any entry with the same name, if there is one.
    /// The caller must give the entry a slot or Data at once, or free it.
    ///
    /// Consumers choose the hints, so at most [`MAX_HINTS`] entries with a hint are kept for one name. A further one
    /// evicts the oldest that has no PIT slot. The entry without a hint, which most requests use, does not count.
    pub(crate) fn insert(&mut self, key: &Key<'_>, mut sibling: Option<u32>) -> Result<u32, NoEntry> {
        if let Some(known) = sibling
            && !key.delegation.is_empty()
        {
            sibling = Some(self.make_room_for_hint(known)?);
        }
        if !self.names.is_next_ready() && self.content.evict_one(&mut self.names) {
            // The eviction may have freed the sibling.
            sibling = self.names.find_name(key.name_hash, key.name);
        }
        self.names.insert(key, sibling, self.pit.last_serial())
    }

    /// Makes room for one more entry with a hint under the name of `known`. Returns an entry with that name that
    /// remains.
    #[cold]
    fn make_room_for_hint(&mut self, known: u32) -> Result<u32, NoEntry> {
        let names = &self.names;
        if names.hinted(known).count() < MAX_HINTS {
            return Ok(known);
        }
        let unused = names.hinted(known).filter(|&entry| !names.entry(entry).has_slots());
        let victim = names.oldest(unused, self.pit.last_serial()).ok_or(NoEntry::TooManyHints)?;
        let left = if victim == known { names.entry(known).next_variant } else { known };
        self.content.remove(&mut self.names, victim);
        Ok(left)
    }

    /// Returns the entry with the name of `known` and a forwarding hint to evict for another hint: the oldest without
    /// pending Interests of other downstreams, or else the oldest. So a consumer that uses many hints evicts its own.
    #[cold]
    pub(crate) fn hint_to_evict(&self, known: u32, is_of_others: impl Fn(&InRecord) -> bool) -> Option<u32> {
        let Pcct { names, pit, .. } = self;
        let is_own = |&entry: &u32| pit.slots_of(names, entry).all(|slot| !pit.in_records(slot).any(&is_of_others));
        let serial = pit.last_serial();
        names.oldest(names.hinted(known).filter(is_own), serial).or_else(|| names.oldest(names.hinted(known), serial))
    }

    /// Returns the PIT token of a PIT slot.
    #[inline(always)]
    pub(crate) fn token(&self, pit: PitRef) -> PitToken {
        self.token_form.encode(pit.entry, pit.slot, self.names.entry(pit.entry).generation)
    }

    /// Returns what a PIT token refers to, if it has the form of this table's tokens.
    #[inline(always)]
    pub(crate) fn decode_token(&self, token: &PitToken) -> Option<Named> {
        self.token_form.decode(token)
    }

    /// Returns the entry that a PIT token refers to, if it is in use and its generation matches.
    pub(crate) fn entry_by_token(&self, token: &PitToken) -> Option<u32> {
        let named = self.decode_token(token).filter(|named| named.entry < self.names.touched())?;
        let entry = self.names.entry(named.entry);
        (entry.in_use() && self.token_form.agrees(&named, entry.generation)).then_some(named.entry)
    }
}
