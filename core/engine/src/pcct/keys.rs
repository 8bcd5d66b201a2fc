//! Entries by key: lookup, insertion, removal.

use namehop_hash::PrefixHashes;
use namehop_wire::lp::PitToken;
use namehop_wire::tlv::types;

use super::blocks::Block;
use super::entry::{Entry, EntryFlags, NONE, SHORT_KEY_BYTES};
use super::record::InRecord;
use super::{MAX_HINTS, Pcct, PitRef};
use crate::pit_token::Named;

/// The key of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'a> {
    /// Name VALUE.
    pub(crate) name: &'a [u8],
    pub(crate) name_hash: u64,
    /// Number of components of the name.
    pub(crate) depth: usize,
    /// Whether the last component is an implicit digest.
    pub(crate) names_digest: bool,
    /// VALUE of the chosen delegation; empty without a forwarding hint.
    pub(crate) delegation: &'a [u8],
    /// Low half of the hash of `delegation`; 0 if it is empty.
    pub(crate) delegation_hash: u32,
}

impl<'a> Key<'a> {
    /// Returns the key of a name and a delegation with its hash. `hashes` must be the prefix hashes of the name.
    #[inline(always)]
    pub(crate) fn new(name: &'a [u8], hashes: &PrefixHashes, delegation: &'a [u8], delegation_hash: u32) -> Self {
        let depth = hashes.depth();
        // Component types are in their shortest form, so the first byte of the component is its type or above 252.
        let names_digest =
            depth > 0 && u32::from(name[hashes.value_bytes(depth - 1)]) == types::IMPLICIT_SHA256_DIGEST_COMPONENT;
        Key { name, name_hash: hashes.full(), depth, names_digest, delegation, delegation_hash }
    }
}

/// The reason why no entry was inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoEntry {
    /// Interests with this name are already pending under [`MAX_HINTS`] hints.
    TooManyHints,
    /// All entries are in use.
    TableFull,
    /// There is no memory for the long name.
    NoMemory,
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The entry with this name and delegation.
    Exact(u32),
    /// An entry with this name; none has this delegation.
    Variant(u32),
    /// No entry with this name.
    Nothing,
}

impl Found {
    /// Returns the entry with this name and delegation.
    #[inline]
    pub(crate) fn exact(self) -> Option<u32> {
        match self {
            Found::Exact(entry) => Some(entry),
            Found::Variant(_) | Found::Nothing => None,
        }
    }
}

impl Pcct {
    #[inline]
    pub(crate) fn entry(&self, index: u32) -> &Entry {
        &self.entries[index]
    }

    #[inline]
    pub(super) fn entry_mut(&mut self, index: u32) -> &mut Entry {
        &mut self.entries[index]
    }

    /// Returns the number of entries in use.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the PIT token of a PIT slot.
    #[inline(always)]
    pub(crate) fn token(&self, pit: PitRef) -> PitToken {
        self.token_form.encode(pit.entry, pit.slot, self.entry(pit.entry).generation)
    }

    /// Returns what a PIT token refers to, if it has the form of this table's tokens.
    #[inline(always)]
    pub(crate) fn decode_token(&self, token: &PitToken) -> Option<Named> {
        self.token_form.decode(token)
    }

    /// Returns the entry that a PIT token refers to, if it is in use and its generation matches.
    pub(crate) fn entry_by_token(&self, token: &PitToken) -> Option<u32> {
        let named = self.decode_token(token).filter(|named| named.entry < self.touched)?;
        let entry = self.entry(named.entry);
        (entry.in_use() && self.token_form.agrees(&named, entry.generation)).then_some(named.entry)
    }

    fn allocate_entry(&mut self) -> Option<u32> {
        if self.entries.len() < self.entry_limit { self.entries.allocate() } else { None }
    }

    #[inline]
    fn key_of<'a>(&'a self, entry: &'a Entry) -> &'a [u8] {
        let length = entry.key_bytes();
        match entry.long_key() {
            None => &entry.short_key[..length],
            Some(block) => self.memory.bytes(block, length),
        }
    }

    /// Returns the Name VALUE of an entry.
    #[inline]
    pub(crate) fn name(&self, index: u32) -> &[u8] {
        let entry = self.entry(index);
        &self.key_of(entry)[..usize::from(entry.name_bytes)]
    }

    /// Returns the VALUE of an entry's chosen delegation; empty without a forwarding hint.
    #[inline]
    pub(crate) fn delegation(&self, index: u32) -> &[u8] {
        let entry = self.entry(index);
        &self.key_of(entry)[usize::from(entry.name_bytes)..]
    }

    /// Looks up the entry with this key.
    #[inline]
    pub(crate) fn look_up(&self, key: &Key<'_>) -> Found {
        let mut found = Found::Nothing;
        for index in self.table.candidates(key.name_hash) {
            if self.has_name(index, key.name) {
                if self.delegation(index) == key.delegation {
                    return Found::Exact(index);
                }
                found = Found::Variant(index);
            }
        }
        found
    }

    /// Returns the entry with this name and delegation.
    pub(crate) fn find(&self, name_hash: u64, name: &[u8], delegation: &[u8]) -> Option<u32> {
        self.table.find(name_hash, |index| self.has_name(index, name) && self.delegation(index) == delegation)
    }

    #[inline]
    fn has_name(&self, index: u32, name: &[u8]) -> bool {
        usize::from(self.entry(index).name_bytes) == name.len() && self.name(index) == name
    }

    /// Returns any entry with this name; the others are its [`variants`](Self::variants).
    pub(crate) fn find_name(&self, name_hash: u64, name: &[u8]) -> Option<u32> {
        self.table.find(name_hash, |index| self.has_name(index, name))
    }

    /// Returns all entries with the same name as this one, starting with this one.
    pub(crate) fn variants(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let mut next = Some(first);
        std::iter::from_fn(move || {
            let current = next?;
            next = Some(self.entry(current).next_variant).filter(|&index| index != first);
            Some(current)
        })
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
        if !self.entries.is_next_ready() && self.evict_data() {
            // The eviction may have freed the sibling.
            sibling = self.find_name(key.name_hash, key.name);
        }
        let key_bytes = key.name.len() + key.delegation.len();
        let long_key = if key_bytes > SHORT_KEY_BYTES {
            Some(self.memory.allocate(key_bytes, NONE).ok_or(NoEntry::NoMemory)?)
        } else {
            None
        };
        let Some(index) = self.allocate_entry() else {
            self.release_memory(long_key);
            return Err(NoEntry::TableFull);
        };
        if self.table.insert(key.name_hash, index).is_err() {
            self.entries.free(index);
            self.release_memory(long_key);
            return Err(NoEntry::TableFull);
        }
        if index >= self.touched {
            self.touched = index + 1;
        }
        let next_variant = match sibling {
            Some(sibling) => std::mem::replace(&mut self.entry_mut(sibling).next_variant, index),
            None => index,
        };
        if let Some(block) = long_key {
            self.memory.set_owner(block, index);
        }
        let entry = &mut self.entries[index];
        entry.name_hash = key.name_hash;
        entry.delegation_hash = key.delegation_hash;
        entry.next_variant = next_variant;
        entry.first_slot = NONE;
        entry.data = Block::NONE;
        entry.name_bytes = key.name.len() as u16;
        entry.delegation_bytes = key.delegation.len() as u16;
        entry.depth = key.depth as u8;
        entry.flags = EntryFlags::IN_USE;
        entry.flags.set(EntryFlags::NAMES_DIGEST, key.names_digest);
        // Until a slot is opened, this is the age of the entry.
        entry.serial = self.next_serial;
        let bytes = match long_key {
            None => &mut entry.short_key[..],
            Some(block) => {
                entry.short_key[..size_of::<Block>()].copy_from_slice(&block.to_bytes());
                self.memory.bytes_mut(block, key_bytes)
            }
        };
        bytes[..key.name.len()].copy_from_slice(key.name);
        if !key.delegation.is_empty() {
            bytes[key.name.len()..key_bytes].copy_from_slice(key.delegation);
        }
        Ok(index)
    }

    /// Makes room for one more entry with a hint under the name of `known`. Returns an entry with that name that
    /// remains.
    #[cold]
    fn make_room_for_hint(&mut self, known: u32) -> Result<u32, NoEntry> {
        if self.hinted(known).count() < MAX_HINTS {
            return Ok(known);
        }
        let victim = self.oldest(self.hinted(known).filter(|&entry| !self.entry(entry).has_slots()));
        let victim = victim.ok_or(NoEntry::TooManyHints)?;
        let left = if victim == known { self.entry(known).next_variant } else { known };
        self.remove_data(victim);
        Ok(left)
    }

    /// Returns the entry with the name of `known` and a forwarding hint to evict for another hint: the oldest without
    /// pending Interests of other downstreams, or else the oldest. So a consumer that uses many hints evicts its own.
    #[cold]
    pub(crate) fn hint_to_give_up(&self, known: u32, is_of_others: impl Fn(&InRecord) -> bool) -> Option<u32> {
        let is_own = |&entry: &u32| self.slots(entry).all(|pit| !self.in_records(pit).any(&is_of_others));
        self.oldest(self.hinted(known).filter(is_own)).or_else(|| self.oldest(self.hinted(known)))
    }

    /// Returns the entries with the name of `known` that have a forwarding hint.
    fn hinted(&self, known: u32) -> impl Iterator<Item = u32> + '_ {
        self.variants(known).filter(|&entry| self.entry(entry).delegation_bytes > 0)
    }

    /// Returns the oldest of some entries with forwarding hints, by insertion or by the last slot opened.
    fn oldest(&self, entries: impl Iterator<Item = u32>) -> Option<u32> {
        entries.max_by_key(|&entry| self.next_serial.wrapping_sub(self.entry(entry).serial))
    }

    /// Frees an entry that has neither a PIT slot nor Data.
    pub(crate) fn free_if_unused(&mut self, index: u32) {
        let entry = self.entry(index);
        if !entry.in_use() || entry.has_slots() || entry.has_data() {
            return;
        }
        let (name_hash, next, long_key) = (entry.name_hash, entry.next_variant, entry.long_key());
        if next != index {
            self.leave_ring(index, next);
        }
        self.table.remove(name_hash, index);
        self.release_memory(long_key);
        let entry = self.entry_mut(index);
        entry.flags.set(EntryFlags::IN_USE, false);
        entry.generation = entry.generation.wrapping_add(1);
        self.entries.free(index);
    }

    /// Removes an entry from the ring of its name, in which it is not alone.
    #[cold]
    fn leave_ring(&mut self, index: u32, next: u32) {
        let previous = self.variants(index).find(|&other| self.entry(other).next_variant == index);
        if let Some(previous) = previous {
            self.entry_mut(previous).next_variant = next;
        }
    }

    #[inline]
    fn release_memory(&mut self, block: Option<Block>) {
        if let Some(block) = block {
            self.memory.release(block);
        }
    }
}
