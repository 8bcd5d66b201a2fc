//! Lookups in the FIB, on a packet worker's thread.

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
/// The worker calls [`quiescent`](Self::quiescent) between bursts and [`offline`](Self::offline) before it sleeps, so that
/// the writer can reclaim memory; the next lookup brings it online again.
pub struct FibReader<S> {
    shared: Arc<Shared<S>>,
    quiescence: QsbrReader,
    /// Differs between any two times that are not within the same period without a quiescent state, of all readers there
    /// are: their numbers are in the upper bits.
    period: u64,
}

/// Bits of `period` that count.
const PERIOD_BITS: u32 = 48;

/// Where a lookup will end unless 32 bits of a hash deceive, see [`FibReader::guess`]. Of use until the reader's next
/// quiescent state.
#[derive(Debug, Clone, Copy, Default)]
pub struct FibGuess {
    /// Of no reader's period by default.
    period: u64,
    index: u32,
    /// 0 when no prefix was found.
    depth: u8,
}

impl<S: Send + Sync> FibReader<S> {
    pub(super) fn new(shared: Arc<Shared<S>>, quiescence: QsbrReader) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let period = NUMBERS.fetch_add(1, Ordering::Relaxed) << PERIOD_BITS;
        FibReader { shared, quiescence, period }
    }

    /// The longest prefix of `name` in the table; there is always one, at least `/`. `hashes` are those of `name`, with
    /// the key that the [`FibWriter`](super::FibWriter) uses.
    ///
    /// Touches one cache line for each depth that holds prefixes, from the longest to that of the match, and the two
    /// lines of the entry. (Next hops of a prefix that has only a strategy are two more.)
    #[inline(always)]
    pub fn longest_prefix_match(&self, hashes: &PrefixHashes, name: NameRef<'_>) -> FibMatch<'_, S> {
        self.quiescence.online();
        let value = name.value();
        for depth in self.depths(hashes) {
            let hash = hashes.get(depth);
            let Some(prefix) = value.get(..hashes.value_bytes(depth)) else { continue };
            // SAFETY: this thread is online, so that nothing is freed that was published when the lookup began. The
            // result borrows from `self`, and going quiescent or offline needs `self` exclusively.
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

    /// The same with a guess, which is tried first. It was made for this name, and the result is that of a lookup then or now.
    #[inline(always)]
    pub fn longest_prefix_match_near(
        &self,
        guess: FibGuess,
        hashes: &PrefixHashes,
        name: NameRef<'_>,
    ) -> FibMatch<'_, S> {
        let depth = usize::from(guess.depth);
        if guess.period == self.period && depth > 0 && depth <= hashes.depth() {
            // The guess was made by this reader, which had no quiescent state since: what was published then is not freed.
            let entry = self.entry(guess.index);
            if name.value().get(..hashes.value_bytes(depth)) == Some(entry.value()) {
                return self.matched(entry, hashes.get(depth));
            }
        }
        self.longest_prefix_match(hashes, name)
    }

    /// Asks for the buckets that [`longest_prefix_match`](Self::longest_prefix_match) will look at.
    #[inline]
    pub fn prefetch_buckets(&self, hashes: &PrefixHashes) {
        self.quiescence.online();
        for depth in self.depths(hashes) {
            // SAFETY: this thread is online, see `longest_prefix_match`.
            unsafe { self.shared.table.prefetch(hashes.get(depth)) };
        }
    }

    /// Where [`longest_prefix_match`](Self::longest_prefix_match) will probably end, judging by the buckets alone. Best when they
    /// are in the cache.
    #[inline]
    pub fn guess(&self, hashes: &PrefixHashes) -> FibGuess {
        self.guess_all(hashes, |_| false)
    }

    /// Asks for the entry that was guessed.
    #[inline]
    pub fn prefetch_guessed(&self, guess: FibGuess) {
        if guess.depth > 0 {
            self.shared.entries.prefetch_line(guess.index, 0);
            // An entry of two lines begins at an even one. The line beside another one costs next to nothing.
            if guess.index.is_multiple_of(2) {
                self.shared.entries.prefetch_line(guess.index, 1);
            }
        }
    }

    /// Asks for what of the entry that was guessed is on the heap. Best when the entry is in the cache.
    #[inline]
    pub fn prefetch_extension(&self, guess: FibGuess) {
        if guess.depth > 0 && guess.period == self.period {
            // As in `longest_prefix_match_near`.
            self.entry(guess.index).prefetch_extension();
        }
    }

    /// Asks for all entries that the buckets point to, needed or not. The guess is the longest.
    #[inline]
    pub fn prefetch_all_entries(&self, hashes: &PrefixHashes) -> FibGuess {
        self.guess_all(hashes, |guess| {
            self.prefetch_guessed(guess);
            true
        })
    }

    /// Hands out the entries that may be prefixes of the name, longest first, while `goes_on` says so. Returns the first.
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

    /// A number that changes whenever a strategy choice has changed. While it stays the same, a name keeps its strategy.
    #[inline]
    pub fn strategies_version(&self) -> u64 {
        self.shared.strategies_version.load(Ordering::Acquire)
    }

    /// Says that this worker holds nothing from the table. To be called at least once per burst.
    #[inline]
    pub fn quiescent(&mut self) {
        self.period += 1;
        self.quiescence.quiescent();
    }

    /// Says that this worker holds nothing from the table and may not call for a while. To be called before sleeping.
    pub fn offline(&mut self) {
        self.period += 1;
        self.quiescence.offline();
    }

    /// Depths below the root at which the table may hold a prefix of the name, longest first.
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

/// The set bits of a word above bit 0, from high to low.
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

/// What the FIB says about a name.
pub struct FibMatch<'a, S> {
    shared: &'a Shared<S>,
    entry: &'a Entry,
    /// The entry itself or the one it inherits next hops from.
    nexthop_entry: Option<&'a Entry>,
    hash: u64,
}

impl<'a, S> FibMatch<'a, S> {
    /// Next hops of the longest prefix that has any, sorted by cost, then as they were added.
    #[inline]
    pub fn nexthops(&self) -> NextHops<'a> {
        self.nexthop_entry.map_or(NextHops::default(), Entry::own_nexthops)
    }

    /// Is there a next hop?
    #[inline]
    pub fn has_nexthops(&self) -> bool {
        self.nexthop_entry.is_some()
    }

    /// Components of the prefix that [`nexthops`](Self::nexthops) belong to; 0 when there are none.
    #[inline]
    pub fn nexthop_prefix_len(&self) -> usize {
        self.nexthop_entry.map_or(0, Entry::depth)
    }

    /// The strategy chosen for the name.
    #[inline]
    pub fn strategy(&self) -> &'a S {
        // SAFETY: a choice and its strategy instance are published before an entry refers to them, and freed after
        // every reader passed a quiescent state, which this match rules out by its lifetime.
        unsafe { &*self.shared.choices.get(self.entry.choice()).load(Ordering::Acquire) }
    }

    /// Hash of the longest prefix that has next hops or a strategy of its own. Names with the same prefix have the same
    /// next hops and the same strategy, so this is the key for measurements.
    #[inline]
    pub fn prefix_hash(&self) -> u64 {
        self.hash
    }

    /// Components of the longest prefix that has next hops or a strategy of its own.
    #[inline]
    pub fn prefix_len(&self) -> usize {
        self.entry.depth()
    }
}
