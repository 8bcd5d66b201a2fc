//! Changes to the FIB, on the control thread.

mod bulk;
pub(super) mod growth;
mod strategy;
mod update;
mod walk;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use namehop_hash::{HashKey, PrefixHashes, hash_name};
use namehop_packet::FaceId;
use namehop_table::{BucketStatistics, ConcurrentBucketTable, PageRequest, Qsbr, SharedArena};
use namehop_wire::NameRef;

use super::entry::{Entry, EntryParts, NONE};
use super::shared::{Choice, Retired, Shared};
use super::{FibError, FibReader, MAX_PREFIX_COMPONENTS, NextHop, NextHops};

pub use bulk::{BulkError, FibAddition};
use growth::INITIAL_CAPACITY;
use strategy::{ROOT_CHOICE, Round};
use update::{NextHopList, Prefix};
pub use walk::FibCursor;

/// Number of unpublished things at which the writer tries to reclaim them by itself.
const RECLAIM_AFTER: usize = 1024;

/// The size of a FIB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FibStatistics {
    /// Prefixes with their own next hops.
    pub nexthop_entries: usize,
    /// Prefixes with their own strategy, including the root.
    pub strategies: usize,
    /// Prefixes with either, including the root.
    pub entries: usize,
    /// Unpublished things that a reader may still see.
    pub pending: usize,
    /// Memory of entries, of their heap blocks, and of buckets in use, in bytes.
    pub bytes: usize,
    /// Statistics of the hash table.
    pub buckets: BucketStatistics,
}

/// The only handle that changes a FIB.
///
/// Memory of replaced and removed things is reclaimed by later changes or by [`reclaim`](Self::reclaim), once no reader
/// can see it. Every error leaves the table unchanged, except that [`remove_face`](Self::remove_face) may have done
/// part of its work.
pub struct FibWriter<S> {
    key: HashKey,
    shared: Arc<Shared<S>>,
    table: ConcurrentBucketTable,
    entries: SharedArena<Entry>,
    choices: SharedArena<Choice<S>>,
    retired: Qsbr<Retired<S>>,
    /// Number of prefixes by depth.
    depth_counts: [usize; MAX_PREFIX_COMPONENTS + 1],
    /// Choice by Name VALUE, for all prefixes with their own strategy. There are few.
    strategies: BTreeMap<Box<[u8]>, u32>,
    /// The round that updates entries after changes of `strategies`, and the next one.
    round: Option<Round>,
    next_round: Option<Round>,
    nexthop_entries: usize,
    extension_bytes: usize,
    /// Number of unpublished things at which the next reclamation is tried.
    reclaim_at: usize,
    /// VALUEs of the dedicated prefixes: their next hops, and the next hops of all prefixes below, never change. There
    /// are one or two.
    dedicated: Vec<Box<[u8]>>,
    /// Number of prefixes to make room for, in addition to normal growth.
    wanted_capacity: usize,
    /// Space for the hashes of a chunk of prefixes.
    chunk_hashes: Box<[PrefixHashes]>,
}

impl<S: Send + Sync> FibWriter<S> {
    /// Creates a FIB without next hops, with one strategy for all names. Readers must hash names with the same `key`.
    pub fn new(key: HashKey, root_strategy: S) -> Result<Self, FibError> {
        let pages = PageRequest::Large;
        let table = ConcurrentBucketTable::new(INITIAL_CAPACITY, pages)?;
        let mut entries = SharedArena::new(pages);
        let mut choices = SharedArena::new(PageRequest::Ordinary);
        let root = entries.allocate(Entry::new(&EntryParts {
            value: &[],
            depth: 0,
            hash: hash_name(&key, &[]),
            nexthops: &[],
            choice: ROOT_CHOICE,
            nexthop_source: NONE,
        }))?;
        let choice = choices.allocate(AtomicPtr::new(Arc::into_raw(Arc::new(root_strategy)).cast_mut()))?;
        debug_assert_eq!(choice, ROOT_CHOICE);
        let shared = Shared {
            root: AtomicU32::new(root),
            depths: AtomicU64::new(1),
            strategies_version: AtomicU64::new(0),
            table: table.reader(),
            entries: entries.reader(),
            choices: choices.reader(),
            orphans: Mutex::new(Vec::new()),
        };
        let mut depth_counts = [0; MAX_PREFIX_COMPONENTS + 1];
        depth_counts[0] = 1;
        Ok(FibWriter {
            key,
            shared: Arc::new(shared),
            table,
            entries,
            choices,
            retired: Qsbr::new(),
            depth_counts,
            strategies: BTreeMap::from([(Box::default(), choice)]),
            round: None,
            next_round: None,
            nexthop_entries: 0,
            extension_bytes: 0,
            reclaim_at: RECLAIM_AFTER,
            dedicated: Vec::new(),
            wanted_capacity: 0,
            chunk_hashes: bulk::new_chunk_hashes(),
        })
    }

    /// Returns a handle for one more worker.
    pub fn reader(&self) -> FibReader<S> {
        FibReader::new(Arc::clone(&self.shared), self.retired.reader())
    }

    /// Adds a next hop, or changes its cost; it then follows the others of equal cost. Returns `true` if the face was
    /// not yet a next hop of the prefix.
    pub fn add_nexthop(&mut self, prefix: NameRef<'_>, face: FaceId, cost: u64) -> Result<bool, FibError> {
        let mut hashes = PrefixHashes::new();
        let prefix = self.prefix(prefix.value(), &mut hashes)?;
        self.add_to_prefix(&prefix, &[NextHop { face, cost }]).map(|added| added > 0)
    }

    /// Adds a next hop, or moves it. Among next hops of equal cost it precedes the faces in `later` and follows all
    /// others. Returns `true` if the face was not yet a next hop of the prefix.
    pub fn place_nexthop(&mut self, prefix: NameRef<'_>, nexthop: NextHop, later: &[FaceId]) -> Result<bool, FibError> {
        let mut hashes = PrefixHashes::new();
        let prefix = self.prefix(prefix.value(), &mut hashes)?;
        let old = self.find(&prefix);
        let before = self.nexthops_of(old);
        let mut list: NextHopList = before.iter().filter(|other| other.face != nexthop.face).collect();
        let is_new = list.len() == before.len();
        let stands_behind =
            |other: &NextHop| other.cost > nexthop.cost || other.cost == nexthop.cost && later.contains(&other.face);
        let position = list.iter().position(stands_behind).unwrap_or(list.len());
        list.try_insert(position, nexthop).map_err(|_| FibError::TooManyNextHops)?;
        self.put_nexthops(&prefix, old, &mut list)?;
        Ok(is_new)
    }

    /// Dedicates a prefix and everything below it to one face: later changes of next hops there are refused with
    /// [`FibError::Dedicated`]. This is for names that the router itself answers, which no route may redirect.
    /// Strategies can be chosen as for other prefixes, but do not affect Interests that go to the router itself.
    ///
    /// Must be called before any next hop is added there.
    pub fn dedicate(&mut self, prefix: NameRef<'_>, face: FaceId) -> Result<(), FibError> {
        self.set_nexthops(prefix, &[NextHop { face, cost: 0 }])?;
        self.dedicated.push(prefix.value().into());
        Ok(())
    }

    /// Returns whether changes of the next hops of this prefix are refused, because it was [dedicated](Self::dedicate).
    pub fn is_dedicated(&self, prefix: NameRef<'_>) -> bool {
        self.is_value_dedicated(prefix.value())
    }

    fn is_value_dedicated(&self, value: &[u8]) -> bool {
        // A VALUE that begins with another one belongs to a name below it: components carry their lengths.
        self.dedicated.iter().any(|dedicated| value.starts_with(dedicated))
    }

    /// Removes a next hop. Returns `true` if it existed. The entry is removed with its last next hop, unless it has a
    /// strategy.
    pub fn remove_nexthop(&mut self, prefix: NameRef<'_>, face: FaceId) -> Result<bool, FibError> {
        let mut hashes = PrefixHashes::new();
        let prefix = self.prefix(prefix.value(), &mut hashes)?;
        self.drop_face(&prefix, face)
    }

    /// Replaces the prefix's next hops with `nexthops`; next hops of equal cost keep their order. Of several for the
    /// same face the last counts.
    pub fn set_nexthops(&mut self, prefix: NameRef<'_>, nexthops: &[NextHop]) -> Result<(), FibError> {
        let mut hashes = PrefixHashes::new();
        let prefix = self.prefix(prefix.value(), &mut hashes)?;
        let mut list = NextHopList::new();
        merge(&mut list, nexthops)?;
        self.put_nexthops(&prefix, self.find(&prefix), &mut list)
    }

    /// Returns the prefix's own next hops.
    pub fn nexthops(&self, prefix: NameRef<'_>) -> NextHops<'_> {
        let mut hashes = PrefixHashes::new();
        let prefix = Prefix::hash_into(&self.key, prefix.value(), &mut hashes);
        self.nexthops_of(prefix.and_then(|prefix| self.find(&prefix)))
    }

    /// Returns all prefixes with next hops, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = (NameRef<'_>, NextHops<'_>)> {
        self.live_entries().filter(|entry| entry.has_own_nexthops()).filter_map(|entry| {
            let name = NameRef::from_value(entry.value()).ok()?;
            Some((name, entry.own_nexthops()))
        })
    }

    /// Returns the number of prefixes with next hops.
    pub fn len(&self) -> usize {
        self.nexthop_entries
    }

    /// Returns whether no prefix has next hops.
    pub fn is_empty(&self) -> bool {
        self.nexthop_entries == 0
    }

    /// Returns the size of the FIB.
    pub fn statistics(&self) -> FibStatistics {
        let buckets = self.table.statistics();
        let slots = self.entries.slots_made() as usize;
        let lines = buckets.home_buckets + buckets.overflow_buckets;
        FibStatistics {
            nexthop_entries: self.nexthop_entries,
            strategies: self.strategies.len(),
            entries: self.table.len() + 1,
            pending: self.retired.pending(),
            bytes: slots * size_of::<Entry>() + self.extension_bytes + lines * 64,
            buckets,
        }
    }

    /// Frees replaced and removed things that no reader can see any more. Returns the number of things that still wait
    /// for readers to pass a quiescent state. Must be called from time to time.
    pub fn reclaim(&mut self) -> usize {
        let FibWriter { shared, entries, choices, retired, extension_bytes, .. } = self;
        retired.reclaim(|item| {
            let mut is_pair = false;
            if let Retired::Entry(index) = item {
                // SAFETY: the index was allocated, and is freed only below.
                let entry = unsafe { entries.get(index) };
                *extension_bytes -= entry.extension_bytes();
                is_pair = entry.is_pair();
            }
            // SAFETY: no reader sees the item any more, it is released once, and its slot is not used afterwards.
            unsafe {
                shared.release(&item);
                match item {
                    Retired::Entry(index) if is_pair => entries.free_pair(index, Entry::vacant()),
                    Retired::Entry(index) => entries.free(index),
                    Retired::Choice(choice) => choices.free(choice),
                    Retired::Strategy(_) | Retired::Buckets(_) => {}
                }
            }
        });
        self.reclaim_at = RECLAIM_AFTER.max(2 * retired.pending());
        retired.pending()
    }
}

/// Adds next hops to a list with at most one for each face: of several the last counts. Returns the number of new
/// faces.
fn merge(list: &mut NextHopList, nexthops: &[NextHop]) -> Result<usize, FibError> {
    let before = list.len();
    for nexthop in nexthops {
        match list.iter().position(|other| other.face == nexthop.face) {
            Some(position) if list[position].cost == nexthop.cost => continue,
            Some(position) => drop(list.remove(position)),
            None => {}
        }
        list.try_push(*nexthop).map_err(|_| FibError::TooManyNextHops)?;
    }
    Ok(list.len() - before)
}

impl<S> Drop for FibWriter<S> {
    fn drop(&mut self) {
        // Readers may live on, so published and unreclaimed things are freed with the last of them.
        let published = std::iter::once(self.shared.root.load(Ordering::Relaxed)).chain(self.table.iter());
        let mut orphans = self.shared.orphans.lock().unwrap_or_else(PoisonError::into_inner);
        orphans.extend(published.map(Retired::Entry));
        let rounds = [self.round.take(), self.next_round.take()];
        let removed = rounds.iter().flatten().flat_map(Round::removed);
        orphans.extend(self.strategies.values().chain(removed).map(|&choice| Retired::Choice(choice)));
        orphans.extend(self.retired.take_retired());
    }
}
