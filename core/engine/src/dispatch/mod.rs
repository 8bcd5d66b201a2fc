//! Which worker a packet belongs to, when there are several: the name dispatch table (NDT; Shi, Pesavento and Benmohamed, ICN
//! 2020, section 3).
//!
//! Each worker has an engine of its own, so all packets that have to do with each other must come to the same one. Interests are
//! divided by the first few components of their names: a hash of these is the index of an entry in a table that all threads
//! read, and the entry names the worker. Data and Nacks follow the worker number in the PIT token that the Interest was sent
//! with, and without a token of this router the name, as Interests do.
//!
//! A name of no more components is divided by all of it. If an implicit digest ends the name of an Interest, it does not count,
//! because the name of the Data has none. So an Interest and the Data that it names by full name or digest always meet. What is
//! left are Interests with fewer components and CanBePrefix: their Data has a longer name, which may belong to another worker.
//! While such an Interest is pending, Data with its name as prefix is also *offered* to the worker that has it. Offered Data
//! that nobody there waits for is forgotten silently, because another worker counts it.
//!
//! Entries can be moved from one worker to another: see [`NameDispatch::move_entry`]. An entry that brings more than one worker can
//! do is divided: names with more components then have entries by one component more, and so on, up to [`MAX_COMPONENTS`]. See
//! [`NameDispatch::divide_entry`].
//!
//! Nothing here is written per packet, but for samples of the load. The table is 128 KiB, one line of which is looked at per packet.

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

use crate::pcct::token;
pub use balance::{Balancer, EntryLoad, EntryMove, GRACE_NS, Plan, SAMPLED, StoreUse};
use entry::Entry;
pub use worker_set::WorkerSet;

/// Workers that a router can have at most.
pub const MAX_WORKERS: usize = 64;
/// Entries of the name dispatch table.
pub const ENTRIES: usize = 1 << 16;
/// Components that names are divided by, unless the configuration says otherwise.
pub const DEFAULT_COMPONENTS: usize = 2;
/// Most components that names can be divided by.
pub const MAX_COMPONENTS: usize = 8;

/// First byte of an implicit digest at the end of a name.
const DIGEST: u8 = types::IMPLICIT_SHA256_DIGEST_COMPONENT as u8;

/// Whom a packet concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owners {
    /// The worker that it belongs to.
    pub owner: u8,
    /// Of Data: other workers that have Interests it may satisfy.
    pub others: WorkerSet,
}

impl Owners {
    fn one(owner: u8) -> Owners {
        Owners { owner, others: WorkerSet::default() }
    }
}

/// What is written while others read the table, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Exceptions {
    /// Pending Interests that are [counted](NameDispatch::count_pending), and entries that were moved or divided lately. While it is
    /// 0, what a PIT token says is all there is to know.
    count: AtomicU32,
}

/// The name dispatch table, shared by all threads; see the module's description.
pub struct NameDispatch {
    key: DispatchKey,
    workers: u8,
    components: usize,
    entries: Box<[AtomicU16]>,
    /// Pending Interests with CanBePrefix whose Data may have another entry, by the entry of their name.
    short: Box<[AtomicU32]>,
    exceptions: Exceptions,
    /// Packets by the entry of their name, of which one in [`SAMPLED`] counts.
    loads: Box<[AtomicU32]>,
    /// Those of them that are Data.
    data_loads: Box<[AtomicU32]>,
}

/// The part of a name that decides whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Deciding {
    /// Where it ends in the VALUE of the name.
    end: usize,
    components: usize,
    /// Number of its entry.
    index: usize,
    entry: Entry,
    /// Would longer names have other entries?
    is_short: bool,
}

fn counters() -> Box<[AtomicU32]> {
    (0..ENTRIES).map(|_| AtomicU32::new(0)).collect()
}

impl NameDispatch {
    /// Entries dealt out evenly to so many workers (from 1 to [`MAX_WORKERS`]; others are clamped), for names divided by so many
    /// components (from 1 to [`MAX_COMPONENTS`]).
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

    /// Number of workers.
    pub fn workers(&self) -> usize {
        usize::from(self.workers)
    }

    /// Components that names are divided by, where no entry is divided.
    pub fn components(&self) -> usize {
        self.components
    }

    /// Whom a packet concerns that holds one Interest or Data; `None` when its name cannot be found, so that any worker may drop
    /// it.
    #[inline]
    pub fn owners(&self, packet: &[u8], fields: &LinkFields) -> Option<Owners> {
        self.owners_by_token(packet, &fields.pit_token, fields.nack.is_some())
    }

    /// The same for a packet with this PIT token, which is a Nack or not.
    #[inline]
    pub fn owners_by_token(&self, packet: &[u8], token: &PitToken, is_nack: bool) -> Option<Owners> {
        let is_data = packet.first().copied() == Some(types::DATA as u8);
        // The token of an Interest is the peer's.
        let by_token = if is_data || is_nack { token::worker(token).filter(|&own| own < self.workers) } else { None };
        let is_plain = !is_data || self.exceptions.count.load(Ordering::Relaxed) == 0;
        match by_token {
            Some(owner) if is_plain => Some(Owners::one(owner)),
            _ if is_plain => Some(Owners::one(self.deciding(name_value(packet)?, !is_data)?.entry.owner())),
            _ => self.all_owners(name_value(packet)?, by_token),
        }
    }

    /// Whom Data with this name concerns while there are short Interests, or entries were moved or divided lately.
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
        // The owner counts the Data if it is unsolicited. It is the worker that most probably waits for it.
        let owner = by_token.or(of_short).unwrap_or(own.owner());
        others.remove(owner);
        Some(Owners { owner, others })
    }

    /// The part of a name that decides whose it is; `None` when components are cut off. Only an Interest asks for Data by a digest
    /// behind the name.
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

    /// One thread changes entries.
    fn set_entry(&self, index: usize, entry: Entry) {
        self.entries[index % ENTRIES].store(entry.bits(), Ordering::Release);
    }

    /// The entry that an Interest with this name has, and its owner; `None` when the VALUE is not one of a Name.
    pub fn entry_of(&self, name: &[u8]) -> Option<(usize, u8)> {
        let Deciding { index, entry, .. } = self.deciding(name, true)?;
        Some((index, entry.owner()))
    }

    /// The entries that decided about an Interest with this name: the divided ones, and at the end the one that it has.
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

    /// Counts a pending Interest with CanBePrefix if it has so few components that Data of other workers may satisfy it. Whether it
    /// did: then [`uncount_pending`](Self::uncount_pending) is called when the Interest has ended.
    pub(crate) fn count_pending(&self, name: &[u8]) -> bool {
        let Some(Deciding { index, is_short: true, .. }) = self.deciding(name, true) else { return false };
        // It is counted before the Interest is sent, so whoever has its Data sees it, as one sees what comes before a message.
        self.short[index].fetch_add(1, Ordering::Relaxed);
        self.exceptions.count.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// An Interest with this name, which was counted, has ended.
    pub(crate) fn uncount_pending(&self, name: &[u8]) {
        // Its name ended at this entry when it was counted, so it does so still.
        let Some(Deciding { index, .. }) = self.deciding(name, true) else { return };
        self.short[index].fetch_sub(1, Ordering::Relaxed);
        self.exceptions.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives an entry to another worker. Interests go there from now on. Data is also offered to the former owner, which may have
    /// Interests pending, until [`forget_former_owner`](Self::forget_former_owner) is called. One thread moves and divides entries,
    /// and an entry that has a former owner stays. Whether it was moved.
    pub fn move_entry(&self, index: usize, worker: u8) -> bool {
        let entry = self.entry(index);
        if worker >= self.workers || entry.owner() == worker || entry.former_owner().is_some() {
            return false;
        }
        self.exceptions.count.fetch_add(1, Ordering::Relaxed);
        self.set_entry(index, entry.moved_to(worker));
        true
    }

    /// Ends the time in which Data is offered to the former owner of an entry. Whether there was one.
    pub fn forget_former_owner(&self, index: usize) -> bool {
        let entry = self.entry(index);
        if entry.former_owner().is_none() {
            return false;
        }
        self.set_entry(index, entry.without_former_owner());
        self.exceptions.count.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Divides an entry: names with more components than those that led to it have entries of their own from now on, by one component
    /// more. Data with such names is also offered to the owner of the divided entry, which may have Interests pending, until
    /// [`forget_division`](Self::forget_division) is called. Whether it was divided; an entry that is divided stays so.
    pub fn divide_entry(&self, index: usize) -> bool {
        let entry = self.entry(index);
        if entry.is_divided() {
            return false;
        }
        self.exceptions.count.fetch_add(1, Ordering::Relaxed);
        self.set_entry(index, entry.divided());
        true
    }

    /// Ends the time in which Data with longer names is offered to the owner of a divided entry.
    pub fn forget_division(&self, index: usize) {
        let entry = self.entry(index);
        if entry.is_divided_lately() {
            self.set_entry(index, entry.divided_for_long());
            self.exceptions.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Counts a packet for the entry of its name. Called for one in [`SAMPLED`] packets.
    #[cold]
    pub fn note_load(&self, packet: &[u8]) {
        let Some((index, _)) = name_value(packet).and_then(|name| self.entry_of(name)) else { return };
        self.loads[index].fetch_add(1, Ordering::Relaxed);
        if packet.first() == Some(&(types::DATA as u8)) {
            self.data_loads[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was counted for each entry since the last call; entries without a packet are left out.
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

    /// The worker to which an entry belonged before, while Data is still offered to it.
    pub fn former_owner_of(&self, index: usize) -> Option<u8> {
        self.entry(index).former_owner()
    }

    /// The worker to which an entry belongs.
    pub fn owner_of(&self, index: usize) -> u8 {
        self.entry(index).owner()
    }

    /// Do longer names have entries of their own?
    pub fn is_divided(&self, index: usize) -> bool {
        self.entry(index).is_divided()
    }

    /// Entries that are divided.
    pub fn divided_entries(&self) -> impl Iterator<Item = usize> + '_ {
        (0..ENTRIES).filter(|&index| self.is_divided(index))
    }

    /// Entries of each worker.
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
