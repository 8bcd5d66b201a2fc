//! The dead nonce list: (name, Nonce) pairs that were forwarded lately and have no PIT entry any more.
//!
//! An Interest with such a pair has looped. The list holds hashes only, in a table of single cache lines: the hash
//! selects a line, and the line keeps its eight newest hashes with their times. Insertion and lookup touch that one
//! line, memory is fixed, and no sweep is needed.
//!
//! Possible errors, and their rates:
//! * **False positive**: each live hash of a line, of at most eight, matches another one by chance in 39 bits with
//!   probability 2^-39. So a lookup errs with probability below 1.5 · 10^-11. At a million Interests per second and a
//!   full list that is one wrongly dropped Interest in 19 hours; with another Nonce it passes.
//! * **Early eviction**: a line that gets more than eight hashes within a lifetime evicts its oldest. The list is sized
//!   so that a list filled to its capacity loses less than 1 % of its hashes in this way (0.02 % if half full). A loop
//!   then lives until the HopLimit or the next router ends it.
//! * Times are kept in 64ths of the lifetime and 24 bits, so a hash lives up to 1/64 longer than the lifetime. A hash
//!   in a line without insertions for 18 days (at the default lifetime) would match again for a moment.

use std::time::Duration;

use namehop_packet::Timestamp;
use namehop_table::{CacheLine, CacheLines, PageRequest, TableError};

/// Time units of a lifetime.
const LIFETIME_UNITS: u64 = 64;
/// Low bits of a slot: the time in units, wrapping.
const TIME_BITS: u32 = 24;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
/// Lowest bit of the hash part, always set, so that no used slot is 0.
const USED: u64 = 1 << TIME_BITS;
/// Hashes per line, of eight slots, for which the list is sized.
const FULL_LOAD: usize = 4;
/// Number of counters of insertions by time unit; more than the units of a lifetime.
const COUNTERS: u64 = 128;

/// The dead nonce list; see the module documentation.
pub struct DeadNonceList {
    lines: CacheLines,
    unit_ns: u64,
    /// The latest time seen, in units. Time does not go back.
    latest: u64,
    /// Number of live hashes by the unit of their time, for statistics.
    live: [u32; COUNTERS as usize],
    forgotten_early: u64,
}

impl DeadNonceList {
    /// Creates a list that keeps pairs for `lifetime` and has room for about `capacity` hashes at a time: the rate of
    /// Interests times the lifetime. It takes 16 to 32 bytes for each, and touches memory only as it fills.
    pub fn new(lifetime: Duration, capacity: usize) -> Result<Self, TableError> {
        let lines = lines_for(capacity).ok_or(TableError::CapacityTooLarge)?;
        let lifetime_ns = u64::try_from(lifetime.as_nanos()).unwrap_or(u64::MAX);
        Ok(DeadNonceList {
            lines: CacheLines::used_anywhere(lines, PageRequest::Large)?.named("dead nonce list"),
            unit_ns: lifetime_ns.div_ceil(LIFETIME_UNITS).max(1),
            latest: 0,
            live: [0; COUNTERS as usize],
            forgotten_early: 0,
        })
    }

    /// Returns the size in bytes of a list for `capacity` hashes.
    pub fn bytes_for(capacity: usize) -> usize {
        lines_for(capacity).map_or(usize::MAX, |lines| lines.saturating_mul(size_of::<CacheLine>()))
    }

    /// Makes memory ready in advance, once more than a few insertions are expected: each of the `packets` may insert a
    /// pair.
    #[inline(always)]
    pub fn expect_use(&mut self, packets: usize) {
        self.lines.note_uses(packets);
    }

    /// Inserts a pair; `hash` must be its [`hash_with_nonce`](namehop_hash::hash_with_nonce).
    pub fn insert(&mut self, hash: u64, now: Timestamp) {
        self.advance(now);
        let latest = self.latest;
        let number = self.line_of(hash);
        let line = &mut self.lines[number].0;
        // The slot of the same hash, or else a free one, or else the oldest.
        let rank = |word: u64| if same_hash(word, hash) { u64::MAX } else { age(word, latest) };
        let mut slot = 0;
        for other in 1..line.len() {
            if rank(line[other]) > rank(line[slot]) {
                slot = other;
            }
        }
        let old = std::mem::replace(&mut line[slot], hash & !TIME_MASK | USED | latest & TIME_MASK);
        let old_age = age(old, latest);
        if old_age <= LIFETIME_UNITS {
            // Saturating, because a hash older than a wrap of the times is not in the counters.
            let counter = &mut self.live[((latest - old_age.min(latest)) % COUNTERS) as usize];
            *counter = counter.saturating_sub(1);
            self.forgotten_early += u64::from(!same_hash(old, hash));
        }
        self.live[(latest % COUNTERS) as usize] += 1;
    }

    /// Returns whether the pair was inserted less than a lifetime ago.
    #[inline]
    pub fn contains(&self, hash: u64, now: Timestamp) -> bool {
        let line = &self.lines[self.line_of(hash)].0;
        let wanted = hash & !TIME_MASK | USED;
        // Hardly any Interest is in the list, so all slots are compared at once, without a branch for each.
        let found = line.iter().fold(false, |found, &word| found | ((word ^ wanted) >> TIME_BITS == 0));
        found && self.remembers(line, hash, now)
    }

    /// Returns whether a slot with this hash is younger than the lifetime.
    #[cold]
    fn remembers(&self, line: &[u64], hash: u64, now: Timestamp) -> bool {
        let now = self.unit_of(now);
        line.iter().any(|&word| same_hash(word, hash) && age(word, now) <= LIFETIME_UNITS)
    }

    /// Prefetches the line of `hash`.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.lines.prefetch(self.line_of(hash));
    }

    /// Returns the number of live pairs at this time.
    pub fn len(&self, now: Timestamp) -> usize {
        let now = self.unit_of(now);
        let oldest = now.saturating_sub(LIFETIME_UNITS);
        // Units after the latest insertion have no counter yet.
        (oldest..=self.latest.min(now)).map(|unit| self.live[(unit % COUNTERS) as usize] as usize).sum()
    }

    /// Returns whether no pair is live at this time.
    pub fn is_empty(&self, now: Timestamp) -> bool {
        self.len(now) == 0
    }

    /// Returns the number of pairs that newer ones evicted before their lifetime ended. A large number means that the
    /// capacity is too small.
    pub fn forgotten_early(&self) -> u64 {
        self.forgotten_early
    }

    /// Returns the memory of the whole list, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.lines.len() * size_of::<CacheLine>()
    }

    #[inline]
    fn line_of(&self, hash: u64) -> usize {
        // The number of lines is a power of two, and the low bits are not stored in the slots.
        hash as usize & (self.lines.len() - 1)
    }

    #[inline]
    fn unit_of(&self, now: Timestamp) -> u64 {
        (now.0 / self.unit_ns).max(self.latest)
    }

    fn advance(&mut self, now: Timestamp) {
        let now = self.unit_of(now);
        for back in 0..(now - self.latest).min(COUNTERS) {
            self.live[((now - back) % COUNTERS) as usize] = 0;
        }
        self.latest = now;
    }
}

impl std::fmt::Debug for DeadNonceList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeadNonceList")
            .field("memory_bytes", &self.memory_bytes())
            .field("forgotten_early", &self.forgotten_early)
            .finish()
    }
}

/// Returns the number of lines for `capacity` hashes; `None` if there are too many.
fn lines_for(capacity: usize) -> Option<usize> {
    capacity.div_ceil(FULL_LOAD).checked_next_power_of_two()
}

/// Returns whether a slot holds this hash, as far as its bits tell.
#[inline]
fn same_hash(word: u64, hash: u64) -> bool {
    word & !TIME_MASK == hash & !TIME_MASK | USED
}

/// Returns the age of a slot in units; for a free slot, more than any used slot's.
#[inline]
fn age(word: u64, now: u64) -> u64 {
    if word == 0 { TIME_MASK + 1 } else { now.wrapping_sub(word) & TIME_MASK }
}

#[cfg(test)]
mod tests;
