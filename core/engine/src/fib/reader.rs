//! Lookups in the FIB, on a worker's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use namehop_hash::PrefixHashes;
use namehop_table::QsbrReader;
use namehop_wire::NameRef;

use super::NextHops;
use super::entry::{Entry, NONE};
use super::shared::Shared;

/// One worker's handle on the FIB.
///
/// The worker calls [`quiescent`](Self::quiescent) between bursts and [`offline`](Self::offline) before it sleeps, so
/// that the writer can reclaim memory; the next lookup brings it online again.
pub struct FibReader<S> {
    shared: Arc<Shared<S>>,
    quiescence: QsbrReader,
    /// Identifies the period between two quiescent states, among all readers: the reader's number is in the upper bits.
    period: u64,
}

/// Number of bits of `period` that count periods.
const PERIOD_BITS: u32 = 48;

/// The probable result of a lookup, wrong only if 32 bits of a hash collide; see [`FibReader::guess`]. Valid until the
/// reader's next quiescent state.
#[derive(Debug, Clone, Copy, Default)]
pub struct FibGuess {
    /// The default is no reader's period.
    period: u64,
    index: u32,
    /// 0 if no prefix was found.
    depth: u8,
}

impl<S: Send + Sync> FibReader<S> {
    pub(super) fn new(shared: Arc<Shared<S>>, quiescence: QsbrReader) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let period = NUMBERS.fetch_add(1, Ordering::Relaxed) << PERIOD_BITS;
        FibReader { shared, quiescence, period }
    }

    /// Returns the longest prefix of `name` in the table; there is always one, at least `/`. `hashes` must be the
    /// prefix hashes of `name`, with the key of the [`FibWriter`](super::FibWriter).
    ///
    /// Touches one cache line for each depth with prefixes, from the longest to that of the match, and the two lines of
    /// the entry. (Next hops of a prefix that has only a strategy are two more.)
    #[inline(always)]
    pub fn longest_prefix_match(&self, hashes: &PrefixHashes, name: NameRef<'_>) -> FibMatch<'_, S> {
        self.quiescence.online();
        let value = name.value();
        for depth in self.depths(hashes) {
            let hash = hashes.get(depth);
            let Some(prefix) = value.get(..hashes.value_bytes(depth)) else { continue };
            // SAFETY: this thread is online, so nothing is freed that was published when the lookup began. The result
            // borrows from `self`, and going quiescent or offline needs `self` exclusively.
            let candidates = unsafe { self.shared.table.candidates(hash) };
            for index in candidates {
                let entry = self.entry(index);
                if entry.value() == prefix {
                    return self.matched(entry, hash);
                }
            }
        }
        self.matched(self.entry(self.shared.root.load(Ordering::Acquire)), hashes.get(0))
    }

    /// The same with a guess for this name, which is tried first. The result is that of a lookup now, or of one when
    /// the guess was made.
    #[inline(always)]
    pub fn longest_prefix_match_near(
        &self,
        guess: FibGuess,
        hashes: &PrefixHashes,
        name: NameRef<'_>,
    ) -> FibMatch<'_, S> {
        let depth = usize::from(guess.depth);
        if guess.period == self.period && depth > 0 && depth <= hashes.depth() {
            // The guess was made by this reader, which had no quiescent state since, so nothing published then is
            // freed.
            let entry = self.entry(guess.index);
            if name.value().get(..hashes.value_bytes(depth)) == Some(entry.value()) {
                return self.matched(entry, hashes.get(depth));
            }
        }
        self.longest_prefix_match(hashes, name)
    }

    /// Prefetches the buckets that [`longest_prefix_match`](Self::longest_prefix_match) will read.
    #[inline]
    pub fn prefetch_buckets(&self, hashes: &PrefixHashes) {
        self.quiescence.online();
        for depth in self.depths(hashes) {
            // SAFETY: this thread is online, see `longest_prefix_match`.
            unsafe { self.shared.table.prefetch(hashes.get(depth)) };
        }
    }

    /// Guesses the result of [`longest_prefix_match`](Self::longest_prefix_match) from the buckets alone. Best when
    /// they are cached.
    #[inline]
    pub fn guess(&self, hashes: &PrefixHashes) -> FibGuess {
        self.guess_all(hashes, |_| false)
    }

    /// Prefetches the guessed entry.
    #[inline]
    pub fn prefetch_guessed(&self, guess: FibGuess) {
        if guess.depth > 0 {
            self.shared.entries.prefetch_line(guess.index, 0);
            // A two-line entry begins at an even index. Prefetching the adjacent line in vain costs next to nothing.
            if guess.index.is_multiple_of(2) {
                self.shared.entries.prefetch_line(guess.index, 1);
            }
        }
    }

    /// Prefetches the part of the guessed entry that is on the heap. Best when the entry is cached.
    #[inline]
    pub fn prefetch_extension(&self, guess: FibGuess) {
        if guess.depth > 0 && guess.period == self.period {
            // As in `longest_prefix_match_near`.
            self.entry(guess.index).prefetch_extension();
        }
    }

    /// Prefetches all entries that the buckets point to, needed or not. Returns the longest as the guess.
    #[inline]
    pub fn prefetch_all_entries(&self, hashes: &PrefixHashes) -> FibGuess {
        self.guess_all(hashes, |guess| {
            self.prefetch_guessed(guess);
            true
        })
    }

    /// Passes the entries that may be prefixes of the name to `goes_on`, longest first, while it returns `true`.
    /// Returns the first.
    #[inline(always)]
    fn guess_all(&self, hashes: &PrefixHashes, goes_on: impl Fn(FibGuess) -> bool) -> FibGuess {
        self.quiescence.online();
        let mut longest = FibGuess::default();
        for depth in self.depths(hashes) {
            // SAFETY: this thread is online, see `longest_prefix_match`.
            if let Some(index) = unsafe { self.shared.table.candidates(hashes.get(depth)) }.next() {
                let guess = FibGuess { period: self.period, index, depth: depth as u8 };
                if longest.depth == 0 {
                    longest = guess;
                }
                if !goes_on(guess) {
                    break;
                }
            }
        }
        longest
    }

    /// Returns a number that changes with every change of a strategy choice. While it stays the same, a name keeps its
    /// strategy.
    #[inline]
    pub fn strategies_version(&self) -> u64 {
        self.shared.strategies_version.load(Ordering::Acquire)
    }

    /// Declares that this worker holds no reference into the table. Must be called at least once per burst.
    #[inline]
    pub fn quiescent(&mut self) {
        self.period += 1;
        self.quiescence.quiescent();
    }

    /// Declares that this worker holds no reference into the table and may not call for a while. Must be called before
    /// sleeping.
    pub fn offline(&mut self) {
        self.period += 1;
        self.quiescence.offline();
    }

    /// Returns the depths below the root at which the table may hold a prefix of the name, longest first.
    #[inline(always)]
    fn depths(&self, hashes: &PrefixHashes) -> Depths {
        let up_to_name = u64::MAX >> (63 - hashes.depth().min(63));
        Depths(self.shared.depths.load(Ordering::Acquire) & up_to_name & !1)
    }

    #[inline(always)]
    fn entry(&self, index: u32) -> &Entry {
        // SAFETY: callers got the index with acquire ordering from where it was published, while this thread was
        // online; see `longest_prefix_match`.
        unsafe { self.shared.entries.get(index) }
    }

    #[inline(always)]
    fn matched<'a>(&'a self, entry: &'a Entry, hash: u64) -> FibMatch<'a, S> {
        let nexthop_entry = if entry.has_own_nexthops() {
            Some(entry)
        } else {
            match entry.nexthop_source() {
                NONE => None,
                source => Some(self.entry(source)),
            }
        };
        FibMatch { shared: &self.shared, entry, nexthop_entry, hash }
    }
}

/// An iterator over the set bits of a word above bit 0, from high to low.
struct Depths(u64);

impl Iterator for Depths {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let depth = self.0.checked_ilog2()?;
        self.0 ^= 1 << depth;
        Some(depth as usize)
    }
}

/// The result of a lookup.
pub struct FibMatch<'a, S> {
    shared: &'a Shared<S>,
    entry: &'a Entry,
    /// The entry itself, or the one that it inherits next hops from.
    nexthop_entry: Option<&'a Entry>,
    hash: u64,
}

impl<'a, S> FibMatch<'a, S> {
    /// Returns the next hops of the longest prefix that has any, sorted by cost, then by order of addition.
    #[inline]
    pub fn nexthops(&self) -> NextHops<'a> {
        self.nexthop_entry.map_or(NextHops::default(), Entry::own_nexthops)
    }

    /// Returns whether there is a next hop.
    #[inline]
    pub fn has_nexthops(&self) -> bool {
        self.nexthop_entry.is_some()
    }

    /// Returns the number of components of the prefix that [`nexthops`](Self::nexthops) belong to; 0 if there are none.
    #[inline]
    pub fn nexthop_prefix_len(&self) -> usize {
        self.nexthop_entry.map_or(0, Entry::depth)
    }

    /// Returns the strategy of the name.
    #[inline]
    pub fn strategy(&self) -> &'a S {
        // SAFETY: a choice and its strategy instance are published before an entry refers to them, and freed after
        // every reader passed a quiescent state, which this match rules out by its lifetime.
        unsafe { &*self.shared.choices.get(self.entry.choice()).load(Ordering::Acquire) }
    }

    /// Returns the hash of the longest prefix with its own next hops or strategy. Names with the same prefix have the
    /// same next hops and the same strategy, so this is the key for measurements.
    #[inline]
    pub fn prefix_hash(&self) -> u64 {
        self.hash
    }

    /// Returns the number of components of the longest prefix with its own next hops or strategy.
    #[inline]
    pub fn prefix_len(&self) -> usize {
        self.entry.depth()
    }
}
