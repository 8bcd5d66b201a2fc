//! The table of names: entries by name and chosen forwarding hint, to which PIT slots and cached Data belong.
//!
//! The bucket table is keyed by the hash of the name alone, and all entries of one name form a ring. Names that do not
//! fit into an entry are in blocks of memory, as are the copies of Interests that belong to PIT slots.

use namehop_table::{Arena, BucketTable, Growth, PageRequest, TableError};

use super::InvariantError;
use super::blocks::{Block, OwnedBlocks, PREFETCHED_LINES};
use super::entry::{Entry, EntryFlags, NONE, SHORT_KEY_BYTES};
use super::key::{Found, Key, NoEntry};

/// The table of names.
pub(crate) struct NameTable {
    buckets: BucketTable,
    entries: Arena<Entry>,
    /// Long names and Interest copies.
    memory: OwnedBlocks,
    /// Maximum number of entries in use: one for each possible PIT slot and each possible cached Data, and some spare
    /// ones.
    entry_limit: usize,
    /// Entry indices below this one have been in use at some time.
    touched: u32,
}

impl NameTable {
    /// Creates an empty table for `entry_limit` entries, which can be raised to `reserved` later. `memory_bytes` is the
    /// maximum for long names and Interest copies.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub(super) fn new(entry_limit: usize, reserved: usize, memory_bytes: usize) -> Result<Self, TableError> {
        let pages = PageRequest::Large;
        let count = |entries: usize| u32::try_from(entries).map_err(|_| TableError::CapacityTooLarge);
        Ok(NameTable {
            buckets: BucketTable::new(entry_limit, pages)?,
            entries: Arena::with_reserve(count(reserved)?, count(entry_limit)?, pages)?,
            memory: OwnedBlocks::new(memory_bytes, Growth::AtOnce)?,
            entry_limit,
            touched: 0,
        })
    }

    /// Returns the maximum number of entries in use.
    pub(super) fn entry_limit(&self) -> usize {
        self.entry_limit
    }

    /// Returns the number of entries for which address space is reserved.
    pub(super) fn reserved(&self) -> usize {
        self.entries.capacity()
    }

    /// Returns a number above the indices of all entries that have been in use.
    pub(super) fn touched(&self) -> u32 {
        self.touched
    }

    /// Returns whether the memory for one more entry is ready.
    #[inline]
    pub(super) fn is_next_ready(&mut self) -> bool {
        self.entries.is_next_ready()
    }

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
        for index in self.buckets.candidates(key.name_hash) {
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
        self.buckets.find(name_hash, |index| self.has_name(index, name) && self.delegation(index) == delegation)
    }

    #[inline]
    fn has_name(&self, index: u32, name: &[u8]) -> bool {
        usize::from(self.entry(index).name_bytes) == name.len() && self.name(index) == name
    }

    /// Returns any entry with this name; the others are its [`variants`](Self::variants).
    pub(crate) fn find_name(&self, name_hash: u64, name: &[u8]) -> Option<u32> {
        self.buckets.find(name_hash, |index| self.has_name(index, name))
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
    /// `serial` is its age. The caller must give the entry a slot or Data at once, or free it.
    pub(super) fn insert(&mut self, key: &Key<'_>, sibling: Option<u32>, serial: u32) -> Result<u32, NoEntry> {
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
        if self.buckets.insert(key.name_hash, index).is_err() {
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
        entry.serial = serial;
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

    /// Returns the entries with the name of `known` that have a forwarding hint.
    pub(super) fn hinted(&self, known: u32) -> impl Iterator<Item = u32> + '_ {
        self.variants(known).filter(|&entry| self.entry(entry).delegation_bytes > 0)
    }

    /// Returns the oldest of some entries with forwarding hints, by insertion or by the last slot opened. `serial` is
    /// the serial number of the last slot.
    pub(super) fn oldest(&self, entries: impl Iterator<Item = u32>, serial: u32) -> Option<u32> {
        entries.max_by_key(|&entry| serial.wrapping_sub(self.entry(entry).serial))
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
        self.buckets.remove(name_hash, index);
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

    /// Makes room for more entries by rebuilding the buckets. After an error nothing has changed.
    pub(super) fn raise_entry_limit(&mut self, entry_limit: usize) -> Result<(), TableError> {
        let mut buckets = BucketTable::new(entry_limit, PageRequest::Large)?;
        for index in self.used_entries() {
            buckets.insert(self.entry(index).name_hash, index).map_err(|_| TableError::CapacityTooLarge)?;
        }
        self.buckets = buckets;
        self.entry_limit = entry_limit;
        Ok(())
    }

    /// Returns the entries in use.
    pub(super) fn used_entries(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.touched).filter(|&index| self.entry(index).in_use())
    }

    /// Stores a copy of an Interest for an entry. Returns `None` if there is no memory for it.
    pub(super) fn store_packet(&mut self, owner: u32, packet: &[u8]) -> Option<Block> {
        let block = self.memory.allocate(packet.len(), owner)?;
        self.memory.bytes_mut(block, packet.len()).copy_from_slice(packet);
        Some(block)
    }

    /// Returns a [stored](Self::store_packet) Interest of this length.
    pub(super) fn packet(&self, block: Block, length: usize) -> &[u8] {
        self.memory.bytes(block, length)
    }

    /// Frees the memory of a stored Interest.
    pub(super) fn release_packet(&mut self, block: Block) {
        self.memory.release(block);
    }

    /// Fills `owners` with the entries that hold the long names and Interest copies of one memory chunk, of another
    /// chunk in each call. When all of them are freed, a block of any size fits.
    pub(crate) fn memory_owners(&mut self, owners: &mut Vec<u32>) {
        self.memory.starved_chunk(owners);
    }

    /// Returns the number of memory blocks in use.
    pub(super) fn memory_blocks(&self) -> usize {
        self.memory.live()
    }

    /// Returns the number of entries in the buckets.
    pub(super) fn bucket_entries(&self) -> usize {
        self.buckets.len()
    }

    /// See [`OwnedBlocks::check_invariants`].
    pub(super) fn check_memory(&self) -> Result<(), InvariantError> {
        self.memory.check_invariants()
    }
}

/// Prefetches. Any index may be passed.
impl NameTable {
    /// Returns an entry; `None` if there is none with this index.
    #[inline(always)]
    pub(super) fn get(&self, index: u32) -> Option<&Entry> {
        self.entries.get(index)
    }

    /// Returns the free entry that will be taken after this number of others.
    #[inline(always)]
    pub(super) fn upcoming(&self, taken_before: usize) -> Option<u32> {
        self.entries.upcoming(taken_before)
    }

    /// Prefetches the bucket of a name.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, name_hash: u64) {
        self.buckets.prefetch(name_hash);
    }

    /// Guesses the entry of a name from its bucket alone. Best when the bucket is cached.
    #[inline]
    pub(crate) fn guess(&self, name_hash: u64) -> Option<u32> {
        self.buckets.guess(name_hash)
    }

    /// Prefetches all lines of an entry.
    #[inline]
    pub(crate) fn prefetch_entry(&self, index: u32) {
        for line in 0..size_of::<Entry>() / 64 {
            self.entries.prefetch_line(index, line);
        }
    }

    /// Prefetches identity and start of the name of an entry.
    #[inline]
    pub(crate) fn prefetch_identity(&self, index: u32) {
        self.entries.prefetch_line(index, 0);
    }

    /// Prefetches the identity and the first bytes of the name of an entry, also if the name fills the first line.
    pub(crate) fn prefetch_name(&self, index: u32) {
        self.entries.prefetch_line(index, 0);
        self.entries.prefetch_line(index, 1);
    }

    /// Prefetches the bucket that is changed when an entry is freed. Reads the entry.
    #[inline]
    pub(crate) fn prefetch_removal(&self, index: u32) {
        if let Some(entry) = self.entries.get(index) {
            self.buckets.prefetch(entry.name_hash);
        }
    }

    /// Prefetches the memory of an entry's long name.
    #[inline]
    pub(super) fn prefetch_long_key(&self, entry: &Entry) {
        if let Some(block) = entry.long_key() {
            self.memory.prefetch(block, entry.key_bytes(), PREFETCHED_LINES);
        }
    }
}
