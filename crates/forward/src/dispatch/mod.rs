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
//! Entries can be moved from one worker to another: see [`NameDispatch::move_entry`].
//!
//! Nothing here is written per packet, but for samples of the load. The table is 128 KiB, one line of which is looked at per packet.

mod balance;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use namehop_hash::DispatchKey;
use namehop_packet::LinkFields;
use namehop_wire::lp::PitToken;
use namehop_wire::peek::{component_end, name_value};
use namehop_wire::tlv::types;

use crate::pcct::token;
pub use balance::{Balancer, EntryLoad, EntryMove, GRACE_NS, SAMPLED};

/// Workers that a router can have at most.
pub const MAX_WORKERS: usize = 64;
/// Entries of the name dispatch table.
pub const ENTRIES: usize = 1 << 16;
/// Components that names are divided by, unless the configuration says otherwise.
pub const DEFAULT_COMPONENTS: usize = 2;
/// Most components that names can be divided by.
pub const MAX_COMPONENTS: usize = 8;

/// In an entry: where the number of the former owner is, plus 1; 0 when there is none.
const FORMER_SHIFT: u32 = 8;

/// Some workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerSet(u64);

impl WorkerSet {
    /// Adds a worker.
    pub fn insert(&mut self, worker: u8) {
        self.0 |= 1 << (worker as usize % MAX_WORKERS);
    }

    /// Takes a worker out.
    pub fn remove(&mut self, worker: u8) {
        self.0 &= !(1 << (worker as usize % MAX_WORKERS));
    }

    /// Is there none?
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their numbers, lowest first.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        // Nearly always there is none, which is asked for each packet.
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let worker = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (worker < u64::BITS).then_some(worker as u8)
        })
    }
}

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
    /// Pending Interests that are [counted](NameDispatch::count_pending), and entries with a former owner. While it is 0, what a
    /// PIT token says is all there is to know.
    count: AtomicU32,
}

/// The name dispatch table, shared by all threads; see the module's description.
pub struct NameDispatch {
    key: DispatchKey,
    workers: u8,
    components: usize,
    entries: Box<[AtomicU16]>,
    /// Pending Interests with CanBePrefix and fewer than `components` components, by the entry of their name.
    short: Box<[AtomicU32]>,
    exceptions: Exceptions,
    /// Packets by the entry of their name, of which one in [`SAMPLED`] counts.
    loads: Box<[AtomicU32]>,
}

/// A part of a name that decides, and how many components it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Deciding<'a> {
    prefix: &'a [u8],
    components: usize,
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
            entries: (0..ENTRIES).map(|index| AtomicU16::new((index % workers) as u16)).collect(),
            short: (0..ENTRIES).map(|_| AtomicU32::new(0)).collect(),
            exceptions: Exceptions::default(),
            loads: (0..ENTRIES).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        usize::from(self.workers)
    }

    /// Components that names are divided by.
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
            _ if is_plain => Some(Owners::one(self.owner(self.deciding(name_value(packet)?, !is_data)?.prefix))),
            _ => self.all_owners(name_value(packet)?, by_token),
        }
    }

    /// Whom Data with this name concerns while there are short Interests, or entries on the move.
    #[cold]
    fn all_owners(&self, name: &[u8], by_token: Option<u8>) -> Option<Owners> {
        let Deciding { prefix, components } = self.deciding(name, false)?;
        let mut others = WorkerSet::default();
        let mut add = |entry: u16| {
            others.insert(entry as u8);
            if let Some(former) = former_owner(entry) {
                others.insert(former);
            }
        };
        let own = self.entry(self.index(prefix));
        add(own);
        let (mut end, mut of_short) = (0, None);
        for _ in 1..components {
            end = component_end(name, end)?;
            let index = self.index(&name[..end]);
            if self.short[index].load(Ordering::Relaxed) > 0 {
                add(self.entry(index));
                of_short = Some(self.entry(index) as u8);
            }
        }
        // The owner counts the Data if it is unsolicited. It is the worker that most probably waits for it.
        let owner = by_token.or(of_short).unwrap_or(own as u8);
        others.remove(owner);
        Some(Owners { owner, others })
    }

    /// The part of a name that decides whose it is; `None` when components are cut off. Only an Interest asks for Data by a digest
    /// behind the name.
    #[inline]
    fn deciding<'a>(&self, name: &'a [u8], of_interest: bool) -> Option<Deciding<'a>> {
        const DIGEST: u8 = types::IMPLICIT_SHA256_DIGEST_COMPONENT as u8;
        let (mut end, mut last, mut components) = (0, 0, 0);
        while components < self.components && end < name.len() {
            last = end;
            end = component_end(name, end)?;
            components += 1;
        }
        if of_interest && end == name.len() && name.get(last) == Some(&DIGEST) {
            (end, components) = (last, components - 1);
        }
        Some(Deciding { prefix: &name[..end], components })
    }

    #[inline]
    fn index(&self, prefix: &[u8]) -> usize {
        (self.key.hash(prefix) >> (64 - ENTRIES.trailing_zeros())) as usize
    }

    #[inline]
    fn entry(&self, index: usize) -> u16 {
        self.entries[index % ENTRIES].load(Ordering::Relaxed)
    }

    #[inline]
    fn owner(&self, prefix: &[u8]) -> u8 {
        self.entry(self.index(prefix)) as u8
    }

    /// The entry that an Interest with this name has, and its owner; `None` when the VALUE is not one of a Name.
    pub fn entry_of(&self, name: &[u8]) -> Option<(usize, u8)> {
        let index = self.index(self.deciding(name, true)?.prefix);
        Some((index, self.entry(index) as u8))
    }

    /// Counts a pending Interest with CanBePrefix, made (`is_pending`) or ended, if it has so few components that Data of other
    /// workers may satisfy it.
    pub(crate) fn count_pending(&self, name: &[u8], is_pending: bool) {
        let Some(Deciding { prefix, components }) = self.deciding(name, true) else { return };
        if components >= self.components {
            return;
        }
        let count = &self.short[self.index(prefix)];
        // It is counted before the Interest is sent, so whoever has its Data sees it, as one sees what comes before a message.
        if is_pending {
            count.fetch_add(1, Ordering::Relaxed);
            self.exceptions.count.fetch_add(1, Ordering::Relaxed);
        } else {
            count.fetch_sub(1, Ordering::Relaxed);
            self.exceptions.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Gives an entry to another worker. Interests go there from now on. Data is also offered to the former owner, which may have
    /// Interests pending, until [`forget_former_owner`](Self::forget_former_owner) is called. One thread moves entries, and an
    /// entry that has a former owner stays. Whether it was moved.
    pub fn move_entry(&self, index: usize, worker: u8) -> bool {
        let entry = self.entry(index);
        if worker >= self.workers || entry as u8 == worker || former_owner(entry).is_some() {
            return false;
        }
        self.exceptions.count.fetch_add(1, Ordering::Relaxed);
        let moved = u16::from(worker) | (u16::from(entry as u8) + 1) << FORMER_SHIFT;
        self.entries[index % ENTRIES].store(moved, Ordering::Release);
        true
    }

    /// Ends the time in which Data is offered to the former owner of an entry. Whether there was one.
    pub fn forget_former_owner(&self, index: usize) -> bool {
        let entry = self.entry(index);
        if former_owner(entry).is_none() {
            return false;
        }
        self.entries[index % ENTRIES].store(entry & 0xFF, Ordering::Release);
        self.exceptions.count.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Counts a packet for the entry of its name. Called for one in [`SAMPLED`] packets.
    #[cold]
    pub fn note_load(&self, packet: &[u8]) {
        if let Some((index, _)) = name_value(packet).and_then(|name| self.entry_of(name)) {
            self.loads[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was counted for each entry since the last call; entries without a packet are left out.
    fn take_loads(&self) -> impl Iterator<Item = EntryLoad> + '_ {
        self.loads.iter().enumerate().filter_map(|(entry, load)| match load.load(Ordering::Relaxed) {
            0 => None,
            _ => {
                let samples = load.swap(0, Ordering::Relaxed);
                Some(EntryLoad { samples, entry, worker: self.entry(entry) as u8 })
            }
        })
    }

    /// The worker to which an entry belonged before, while Data is still offered to it.
    pub fn former_owner_of(&self, index: usize) -> Option<u8> {
        former_owner(self.entry(index))
    }

    /// The worker to which an entry belongs.
    pub fn owner_of(&self, index: usize) -> u8 {
        self.entry(index) as u8
    }

    /// Entries of each worker.
    pub fn entries_by_worker(&self) -> Vec<u64> {
        let mut counts = vec![0; self.workers()];
        for entry in &self.entries {
            let owner = entry.load(Ordering::Relaxed) & 0xFF;
            counts[usize::from(owner) % self.workers()] += 1;
        }
        counts
    }
}

fn former_owner(entry: u16) -> Option<u8> {
    ((entry >> FORMER_SHIFT) as u8).checked_sub(1)
}

impl fmt::Debug for NameDispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameDispatch").field("workers", &self.workers).field("components", &self.components).finish()
    }
}
