//! Assignment of packets to workers: the name dispatch table (NDT; Shi, Pesavento and Benmohamed, ICN 2020, section 3).
//!
//! Each worker has its own engine, so all related packets must reach the same worker. Interests are assigned by the
//! first few components of their names: a hash of these is the index of an entry in a table that all threads read, and
//! the entry contains the worker. Data and Nacks follow the worker number in the PIT token that the Interest was sent
//! with. Without a token of this router they follow the name, like Interests.
//!
//! A name with no more components is assigned by all of it. An implicit digest at the end of an Interest's name does
//! not count, because the name of the Data has none. So an Interest always meets the Data that it requests by name or
//! by full name. The exception are Interests with fewer components and CanBePrefix: their Data has a longer name, which
//! may belong to another worker. While such an Interest is pending, Data with its name as prefix is also *offered* to
//! the worker of the Interest. Offered Data that no Interest there waits for is discarded silently, because another
//! worker counts it.
//!
//! Entries can be moved to another worker: see [`NameDispatch::move_entry`]. An entry with more load than one worker
//! can process is divided: names with more components then have entries by one more component, and so on, up to
//! [`MAX_COMPONENTS`]. See [`NameDispatch::divide_entry`].
//!
//! Packets write nothing here except samples of the load. The table has 128 KiB, of which a packet reads one cache
//! line.

mod balance;
#[cfg(test)]
mod division_tests;
mod entry;
#[cfg(test)]
mod tests;
mod worker_set;

use std::fmt;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use namehop_hash::DispatchKey;
use namehop_packet::LinkFields;
use namehop_wire::lp::PitToken;
use namehop_wire::peek::{component_end, name_value};
use namehop_wire::tlv::types;

use crate::pit_token;
pub use balance::{Balancer, EntryLoad, EntryMove, GRACE_NS, Plan, SAMPLED, StoreUse};
use entry::Entry;
pub use worker_set::WorkerSet;

/// Maximum number of workers of a router.
pub const MAX_WORKERS: usize = 64;
/// Number of entries in the name dispatch table.
pub const ENTRIES: usize = 1 << 16;
/// Default number of components that names are assigned by.
pub const DEFAULT_COMPONENTS: usize = 2;
/// Maximum number of components that names can be assigned by.
pub const MAX_COMPONENTS: usize = 8;

/// First byte of an implicit digest component.
const DIGEST: u8 = types::IMPLICIT_SHA256_DIGEST_COMPONENT as u8;

/// The workers that a packet concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owners {
    /// The worker that the packet belongs to.
    pub owner: u8,
    /// For Data: other workers with Interests it may satisfy.
    pub others: WorkerSet,
}

impl Owners {
    fn one(owner: u8) -> Owners {
        Owners { owner, others: WorkerSet::default() }
    }
}

/// The state that is written while other threads read the table, on its own cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Exceptions {
    /// Pending Interests that are [counted](NameDispatch::count_pending), and entries that were moved or divided
    /// lately. While it is 0, a PIT token alone decides.
    count: AtomicU32,
}

/// The name dispatch table, shared by all threads; see the module documentation.
pub struct NameDispatch {
    key: DispatchKey,
    workers: u8,
    components: usize,
    entries: Box<[AtomicU16]>,
    /// Number of pending Interests with CanBePrefix that Data of other entries may satisfy, by the entry of their name.
    short: Box<[AtomicU32]>,
    exceptions: Exceptions,
    /// Sampled packets, one in [`SAMPLED`], by the entry of their name.
    loads: Box<[AtomicU32]>,
    /// Number of Data among them.
    data_loads: Box<[AtomicU32]>,
}

/// The part of a name that determines its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Deciding {
    /// Its end in the VALUE of the name.
    end: usize,
    components: usize,
    /// Index of its entry.
    index: usize,
    entry: Entry,
    /// Whether longer names have other entries.
    is_short: bool,
}

fn counters() -> Box<[AtomicU32]> {
    (0..ENTRIES).map(|_| AtomicU32::new(0)).collect()
}

impl NameDispatch {
    /// Creates a table with entries distributed evenly to `workers` (clamped to 1 to [`MAX_WORKERS`]), for names
    /// assigned by `components` (clamped to 1 to [`MAX_COMPONENTS`]).
    pub fn new(workers: usize, components: usize, key: DispatchKey) -> Self {
        let workers = workers.clamp(1, MAX_WORKERS);
        NameDispatch {
            key,
            workers: workers as u8,
            components: components.clamp(1, MAX_COMPONENTS),
            entries: (0..ENTRIES).map(|index| AtomicU16::new(Entry::new((index % workers) as u8).bits())).collect(),
            short: counters(),
            exceptions: Exceptions::default(),
            loads: counters(),
            data_loads: counters(),
        }
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        usize::from(self.workers)
    }

    /// Returns the number of components that names are assigned by, without divisions.
    pub fn components(&self) -> usize {
        self.components
    }

    /// Returns the workers that a packet with one Interest or Data concerns. Returns `None` if its name cannot be
    /// parsed; then any worker may drop it.
    #[inline]
    pub fn owners(&self, packet: &[u8], fields: &LinkFields) -> Option<Owners> {
        self.owners_by_token(packet, &fields.pit_token, fields.nack.is_some())
    }

    /// The same for a packet with this PIT token.
    #[inline]
    pub fn owners_by_token(&self, packet: &[u8], token: &PitToken, is_nack: bool) -> Option<Owners> {
        let is_data = packet.first().copied() == Some(types::DATA as u8);
        // The token of an Interest is the peer's.
        let by_token =
            if is_data || is_nack { pit_token::worker(token).filter(|&own| own < self.workers) } else { None };
        let is_plain = !is_data || self.exceptions.count.load(Ordering::Relaxed) == 0;
        match by_token {
            Some(owner) if is_plain => Some(Owners::one(owner)),
            _ if is_plain => Some(Owners::one(self.deciding(name_value(packet)?, !is_data)?.entry.owner())),
            _ => self.all_owners(name_value(packet)?, by_token),
        }
    }

    /// Returns the workers that Data with this name concerns, while short Interests are pending or entries were moved
    /// or divided lately.
    #[cold]
    fn all_owners(&self, name: &[u8], by_token: Option<u8>) -> Option<Owners> {
        let Deciding { components, entry: own, .. } = self.deciding(name, false)?;
        let mut others = WorkerSet::default();
        let mut add = |entry: Entry| {
            others.insert(entry.owner());
            if let Some(former) = entry.former_owner() {
                others.insert(former);
            }
        };
        add(own);
        let (mut end, mut of_short) = (0, None);
        for _ in 1..components {
            end = component_end(name, end)?;
            let index = self.index(&name[..end]);
            let (entry, awaits) = (self.entry(index), self.short[index].load(Ordering::Relaxed) > 0);
            if awaits || entry.is_divided_lately() {
                add(entry);
            }
            if awaits {
                of_short = Some(entry.owner());
            }
        }
        // The owner counts the Data if it is unsolicited. It is the worker that most probably has the Interest.
        let owner = by_token.or(of_short).unwrap_or(own.owner());
        others.remove(owner);
        Some(Owners { owner, others })
    }

    /// Returns the part of a name that determines its owner; `None` if a component is truncated. Only an Interest's
    /// name can end with an implicit digest that does not belong to the Data's name.
    #[inline]
    fn deciding(&self, name: &[u8], of_interest: bool) -> Option<Deciding> {
        let (mut end, mut last, mut components) = (0, 0, 0);
        while components < self.components && end < name.len() {
            last = end;
            end = component_end(name, end)?;
            components += 1;
        }
        if of_interest && end == name.len() && name.get(last) == Some(&DIGEST) {
            (end, components) = (last, components - 1);
        }
        let index = self.index(&name[..end]);
        let (entry, is_short) = (self.entry(index), components < self.components);
        let decided = Deciding { end, components, index, entry, is_short };
        if entry.is_divided() { self.deciding_below(name, of_interest, decided) } else { Some(decided) }
    }

    /// The same for a name with a divided entry.
    #[cold]
    fn deciding_below(&self, name: &[u8], of_interest: bool, start: Deciding) -> Option<Deciding> {
        let mut decided = start;
        while decided.entry.is_divided() && decided.components < MAX_COMPONENTS {
            let next = (decided.end < name.len()).then(|| component_end(name, decided.end));
            let is_digest = |end| of_interest && end == name.len() && name.get(decided.end) == Some(&DIGEST);
            let end = match next {
                Some(end) if !is_digest(end?) => end?,
                _ => return Some(Deciding { is_short: true, ..decided }),
            };
            let index = self.index(&name[..end]);
            let components = decided.components + 1;
            decided = Deciding { end, components, index, entry: self.entry(index), is_short: false };
        }
        Some(decided)
    }

    #[inline]
    fn index(&self, prefix: &[u8]) -> usize {
        (self.key.hash(prefix) >> (64 - ENTRIES.trailing_zeros())) as usize
    }

    #[inline]
    fn entry(&self, index: usize) -> Entry {
        Entry::from_bits(self.entries[index % ENTRIES].load(Ordering::Relaxed))
    }

    /// Must be called by only one thread.
    fn set_entry(&self, index: usize, entry: Entry) {
        self.entries[index % ENTRIES].store(entry.bits(), Ordering::Release);
    }

    /// Returns the entry of an Interest with this name, and its owner; `None` if the bytes are not a Name VALUE.
    pub fn entry_of(&self, name: &[u8]) -> Option<(usize, u8)> {
        let Deciding { index, entry, .. } = self.deciding(name, true)?;
        Some((index, entry.owner()))
    }

    /// Returns the entries that determine the owner of an Interest with this name: the divided ones, and last its own.
    pub(crate) fn entries_of(&self, name: &[u8]) -> impl Iterator<Item = usize> {
        let components = self.deciding(name, true).map_or(0, |decided| decided.components);
        let mut end = 0;
        (0..=components).filter_map(move |count| {
            if count > 0 {
                end = component_end(name, end)?;
            }
            (count >= self.components.min(components)).then(|| self.index(&name[..end]))
        })
    }

    /// Counts a pending Interest with CanBePrefix if it has so few components that Data of other workers may satisfy
    /// it. Returns whether it was counted; then [`uncount_pending`](Self::uncount_pending) must be called when the
    /// Interest has ended.
    pub(crate) fn count_pending(&self, name: &[u8]) -> bool {
        let Some(Deciding { index, is_short: true, .. }) = self.deciding(name, true) else { return false };
        // The count happens before the Interest is sent, so the thread that receives its Data sees it.
        self.short[index].fetch_add(1, Ordering::Relaxed);
        self.exceptions.count.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Counts down when a counted Interest with this name has ended.
    pub(crate) fn uncount_pending(&self, name: &[u8]) {
        // A name that ended at this entry when it was counted still does.
        let Some(Deciding { index, .. }) = self.deciding(name, true) else { return };
        self.short[index].fetch_sub(1, Ordering::Relaxed);
        self.exceptions.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Assigns an entry to another worker. Interests go there from now on. Data is also offered to the former owner,
    /// which may have Interests pending, until [`forget_former_owner`](Self::forget_former_owner) is called. Only one
    /// thread may move and divide entries. An entry with a former owner is not moved. Returns whether it was moved.
    pub fn move_entry(&self, index: usize, worker: u8) -> bool {
        let entry = self.entry(index);
        if worker >= self.workers || entry.owner() == worker || entry.former_owner().is_some() {
            return false;
        }
        self.exceptions.count.fetch_add(1, Ordering::Relaxed);
        self.set_entry(index, entry.moved_to(worker));
        true
    }

    /// Stops offering Data to the former owner of an entry. Returns whether there was one.
    pub fn forget_former_owner(&self, index: usize) -> bool {
        let entry = self.entry(index);
        if entry.former_owner().is_none() {
            return false;
        }
        self.set_entry(index, entry.without_former_owner());
        self.exceptions.count.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Divides an entry: names that continue beyond its components now have their own entries, by one more component.
    /// Data with such names is also offered to the owner of the divided entry, which may have Interests pending, until
    /// [`forget_division`](Self::forget_division) is called. A divided entry stays divided. Returns whether it was
    /// divided now.
    pub fn divide_entry(&self, index: usize) -> bool {
        let entry = self.entry(index);
        if entry.is_divided() {
            return false;
        }
        self.exceptions.count.fetch_add(1, Ordering::Relaxed);
        self.set_entry(index, entry.divided());
        true
    }

    /// Stops offering Data with longer names to the owner of a divided entry.
    pub fn forget_division(&self, index: usize) {
        let entry = self.entry(index);
        if entry.is_divided_lately() {
            self.set_entry(index, entry.divided_for_long());
            self.exceptions.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Counts a packet for the entry of its name. Must be called for one in [`SAMPLED`] packets.
    #[cold]
    pub fn note_load(&self, packet: &[u8]) {
        let Some((index, _)) = name_value(packet).and_then(|name| self.entry_of(name)) else { return };
        self.loads[index].fetch_add(1, Ordering::Relaxed);
        if packet.first() == Some(&(types::DATA as u8)) {
            self.data_loads[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the counts of each entry since the last call, without entries that had no packet.
    fn take_loads(&self) -> impl Iterator<Item = EntryLoad> + '_ {
        self.loads.iter().enumerate().filter_map(|(entry, load)| match load.load(Ordering::Relaxed) {
            0 => None,
            _ => {
                let samples = load.swap(0, Ordering::Relaxed);
                let data = self.data_loads[entry].swap(0, Ordering::Relaxed);
                Some(EntryLoad { samples, data, entry, worker: self.owner_of(entry) })
            }
        })
    }

    /// Returns the former owner of an entry, while Data is still offered to it.
    pub fn former_owner_of(&self, index: usize) -> Option<u8> {
        self.entry(index).former_owner()
    }

    /// Returns the owner of an entry.
    pub fn owner_of(&self, index: usize) -> u8 {
        self.entry(index).owner()
    }

    /// Returns whether longer names have their own entries.
    pub fn is_divided(&self, index: usize) -> bool {
        self.entry(index).is_divided()
    }

    /// Returns the divided entries.
    pub fn divided_entries(&self) -> impl Iterator<Item = usize> + '_ {
        (0..ENTRIES).filter(|&index| self.is_divided(index))
    }

    /// Returns the number of entries of each worker.
    pub fn entries_by_worker(&self) -> Vec<u64> {
        let mut counts = vec![0; self.workers()];
        for index in 0..ENTRIES {
            counts[usize::from(self.owner_of(index)) % self.workers()] += 1;
        }
        counts
    }
}

impl fmt::Debug for NameDispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameDispatch").field("workers", &self.workers).field("components", &self.components).finish()
    }
}
