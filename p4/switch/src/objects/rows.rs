//! The entries of one table in memory: one row of words per entry, all of the same length, and an index of the rows by
//! identity. Tables have millions of entries, so an entry takes no memory besides its row and its index slot.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use namehop_p4_compile::description::Identity;
use namehop_p4_compile::layout;

use crate::program::Entry;

/// The identity of an entry.
pub fn identity(entry: &Entry) -> Identity {
    layout::identity(entry.prefix, &[&entry.key, &entry.mask, &entry.ranges], entry.priority)
}

/// The action number of a row without an entry.
const FREE: u64 = u64::MAX;

/// The entries of a table. A row holds the identity, then the action and its data.
pub struct Rows {
    key_words: usize,
    /// Number of words of the identity, and of a whole row.
    identity_words: usize,
    stride: usize,
    /// Length of each action's data, in bytes.
    data_bytes: Vec<usize>,
    words: Vec<u64>,
    index: HashTable<u32>,
    /// Has its own seed. The standard library's hasher took an eighth of the time to load entries.
    hasher: DefaultHashBuilder,
    free: Vec<u32>,
}

impl Rows {
    pub fn new(table: &layout::Table) -> Rows {
        let ranges = table.keys.iter().filter(|key| key.kind == layout::Match::Range).count();
        let key_words = table.key_words() as usize;
        let identity_words = 2 + 2 * key_words + 2 * ranges;
        let data_bytes: Vec<usize> =
            (0..table.actions.len()).map(|action| table.bits_of(action).div_ceil(8) as usize).collect();
        let longest = data_bytes.iter().copied().max().unwrap_or(0);
        Rows {
            key_words,
            identity_words,
            stride: identity_words + 1 + longest.div_ceil(8),
            data_bytes,
            words: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            free: Vec::new(),
        }
    }

    fn row(&self, place: usize) -> &[u64] {
        &self.words[place * self.stride..][..self.stride]
    }

    fn identity_at(&self, place: u32) -> &[u64] {
        &self.row(place as usize)[..self.identity_words]
    }

    fn place(&self, identity: &[u64]) -> Option<usize> {
        let found = self.index.find(self.hasher.hash_one(identity), |place| self.identity_at(*place) == identity);
        found.map(|place| *place as usize)
    }

    /// The entry in a row.
    fn entry(&self, row: &[u64]) -> Entry {
        let (identity, rest) = row.split_at(self.identity_words);
        let (prefix, identity) = (identity[0], &identity[1..]);
        let (key, identity) = identity.split_at(self.key_words);
        let (mask, identity) = identity.split_at(self.key_words);
        let (ranges, priority) = identity.split_at(identity.len() - 1);
        let action = rest[0] as usize;
        let mut data: Vec<u8> = rest[1..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        data.truncate(self.data_bytes.get(action).copied().unwrap_or(0));
        Entry {
            priority: priority[0].cast_signed(),
            prefix: prefix as u32,
            action: action as u32,
            key: key.to_vec(),
            mask: mask.to_vec(),
            ranges: ranges.to_vec(),
            data,
        }
    }

    /// The entry with this identity.
    pub fn get(&self, identity: &[u64]) -> Option<Entry> {
        self.place(identity).map(|place| self.entry(self.row(place)))
    }

    /// Inserts an entry, or replaces the one with the same identity.
    pub fn put(&mut self, identity: &[u64], entry: &Entry) {
        let Rows { index, words, hasher, stride, identity_words, free, .. } = self;
        let hash_at = |place: &u32| hasher.hash_one(&words[*place as usize * *stride..][..*identity_words]);
        let is_same = |place: &u32| &words[*place as usize * *stride..][..*identity_words] == identity;
        let known = index.entry(hasher.hash_one(identity), is_same, hash_at);
        let place = match known {
            hashbrown::hash_table::Entry::Occupied(known) => *known.get() as usize,
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                let place = free.pop().unwrap_or((words.len() / *stride) as u32);
                vacant.insert(place);
                let place = place as usize;
                if place * *stride == words.len() {
                    words.resize(words.len() + *stride, 0);
                }
                words[place * *stride..][..*identity_words].copy_from_slice(identity);
                place
            }
        };
        let row = &mut self.words[place * self.stride + self.identity_words..][..self.stride - self.identity_words];
        row.fill(0);
        row[0] = u64::from(entry.action);
        for (word, bytes) in row[1..].iter_mut().zip(entry.data.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
    }

    /// Removes an entry, if it exists.
    pub fn remove(&mut self, identity: &[u64]) {
        let Rows { index, words, hasher, stride, identity_words, .. } = self;
        let is_same = |place: &u32| &words[*place as usize * *stride..][..*identity_words] == identity;
        let Ok(found) = index.find_entry(hasher.hash_one(identity), is_same) else { return };
        let (place, _) = found.remove();
        self.words[place as usize * self.stride + self.identity_words] = FREE;
        self.free.push(place);
    }

    /// Entries with their identities from a row on, in the order of rows, each with the number of the next row. An
    /// entry stays in its row while it is in the table.
    pub fn from(&self, first: usize) -> impl Iterator<Item = (usize, &[u64], Entry)> {
        let rows = self.words.chunks_exact(self.stride).enumerate().skip(first);
        let used = rows.filter(|(_, row)| row[self.identity_words] != FREE);
        used.map(|(place, row)| (place + 1, &row[..self.identity_words], self.entry(row)))
    }
}
