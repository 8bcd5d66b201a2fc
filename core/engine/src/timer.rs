//! The timers of one worker: an append-only wheel.
//!
//! A timer is a few numbers appended to the list of its tick, so setting one costs no DRAM stall: timers set close
//! together in time with the same delay are adjacent in memory. Nothing is ever unlinked. When an entry ends, its timer
//! is stale, which the owner detects by the generation.
//!
//! The wheel turns in ticks of about a millisecond and reaches 4.3 s ahead. The sender of an Interest chooses how long
//! its timer runs, up to days; its entry mostly lives for a round-trip time. Each timer is checked before its deadline,
//! so that stale ones do not pile up: 2.1 s after it was set, 4.3 s after, and then once in every turn of the wheel.
//! Each time the owner says whether it is still in force; if not, it is removed. Nearly all answered Interests are
//! answered before the first check, so checks cost no more than letting timers fire. They bound the memory for all
//! deadlines:
//!
//! * timers set during the last 2.1 s: the rate of Interests times 2.1 s, which is half of what their usual lifetime of
//!   4 s would take;
//! * timers set between 2.1 and 4.3 s ago, and timers set earlier: in each of these two groups, at most as many as can
//!   be in force at a time. The previous check found them in force, so all timers of a group were in force at the same
//!   moment.
//!
//! An earlier first check would save memory in floods, but cost more for all Interests with slower answers.
//!
//! Timers never fire early, and at most a tick late after the wheel is polled. Timers of one tick fire in no particular
//! order. Timers of different ticks fire in the order of their ticks, unless the wheel was not polled for longer than
//! it reaches.

use namehop_packet::Timestamp;
use namehop_table::{Arena, PageRequest, TableError};

/// Length of a tick: 2^20 ns.
const TICK_SHIFT: u32 = 20;
/// Ticks the wheel reaches ahead; a power of two, and 64 words of 64 bits.
const SLOTS: u64 = 4096;
const WORDS: usize = SLOTS as usize / 64;
/// Ticks until a timer is checked, by the number of previous checks; the last value repeats.
const UNTIL_CHECK: [u64; 3] = [2_048, 2_048, SLOTS - 1];
/// Timers per chunk, which is four cache lines.
const CHUNK_TIMERS: usize = 15;
/// Default maximum number of new timers for a wheel with many entries: more than any worker can set in 2.1 s.
pub const MOST_NEW_TIMERS: usize = 1 << 24;
/// Maximum number of new timers per entry, so that a wheel for few entries reserves less address space.
const NEW_TIMERS_PER_ENTRY: usize = 1 << 12;
/// Maximum number of older timers per entry: two can be in force, its end and a timer of the strategy, in each of the
/// two groups of the module documentation.
const TIMERS_PER_ENTRY: usize = 2 * 2;
/// Index that means no chunk.
const NO_CHUNK: u32 = u32::MAX;

/// A timer and the values it was set with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timer {
    /// Tick in which it is due, then 8 bits for the number of checks, then 8 bits for the kind.
    word: u64,
    /// The entry it was set for; a number of the owner's choice.
    pub entry: u32,
    /// The generation by which the owner detects a stale timer.
    pub generation: u32,
}

impl Timer {
    fn new(deadline: Timestamp, entry: u32, generation: u32, kind: u8) -> Self {
        Timer { word: tick_of(deadline) << 16 | u64::from(kind), entry, generation }
    }

    /// Returns the kind, a number of the owner's choice.
    pub fn kind(&self) -> u8 {
        self.word as u8
    }

    /// Returns whether it was set for the deadline with this [mark](deadline_mark).
    #[inline(always)]
    pub fn is_for_mark(&self, mark: u32) -> bool {
        self.tick() as u32 == mark
    }

    fn tick(&self) -> u64 {
        self.word >> 16
    }

    fn checks(&self) -> u8 {
        (self.word >> 8) as u8
    }

    /// Returns the timer after one more check.
    fn checked(self) -> Self {
        if usize::from(self.checks()) < UNTIL_CHECK.len() - 1 {
            Timer { word: self.word + (1 << 8), ..self }
        } else {
            self
        }
    }

    /// Returns the tick in which it is checked next, or due.
    fn next_tick(&self, current: u64) -> u64 {
        let check = current + UNTIL_CHECK[usize::from(self.checks()).min(UNTIL_CHECK.len() - 1)];
        self.tick().clamp(current + 1, check)
    }
}

/// Returns the maximum number of timers of a wheel for `entries` entries.
fn most_timers(entries: usize, new_timers: usize) -> usize {
    let new = entries.saturating_mul(NEW_TIMERS_PER_ENTRY).min(new_timers);
    entries.saturating_mul(TIMERS_PER_ENTRY).saturating_add(new)
}

/// Returns the number of chunks for `timers` timers: the last chunk of every tick may be nearly empty.
fn chunks(timers: usize) -> usize {
    timers.div_ceil(CHUNK_TIMERS).saturating_add(SLOTS as usize)
}

/// Returns the maximum size in bytes of the timers of a wheel created with these arguments.
pub fn timer_bytes(entries: usize, new_timers: usize) -> usize {
    chunks(most_timers(entries, new_timers)).saturating_mul(size_of::<Chunk>() + size_of::<u32>())
}

/// Returns a mark that identifies a deadline to the tick, within some 50 days.
#[inline(always)]
pub fn deadline_mark(deadline: Timestamp) -> u32 {
    tick_of(deadline) as u32
}

/// Returns the first tick that does not begin before the deadline.
#[inline(always)]
fn tick_of(deadline: Timestamp) -> u64 {
    deadline.0.div_ceil(1 << TICK_SHIFT)
}

#[repr(align(64))]
struct Chunk {
    next: u32,
    count: u32,
    timers: [Timer; CHUNK_TIMERS],
}

impl Default for Chunk {
    /// Returns a chunk without timers.
    fn default() -> Self {
        Chunk { next: NO_CHUNK, count: 0, timers: [Timer::default(); CHUNK_TIMERS] }
    }
}

const _: () = assert!(size_of::<Chunk>() == 256);

/// First and last chunk of a tick; both [`NO_CHUNK`] if it has no timers.
#[derive(Clone, Copy)]
struct Chain {
    first: u32,
    last: u32,
}

const EMPTY_CHAIN: Chain = Chain { first: NO_CHUNK, last: NO_CHUNK };

/// The timer wheel; see the module documentation.
pub struct TimerWheel {
    /// The last drained tick.
    current: u64,
    slots: Box<[Chain; SLOTS as usize]>,
    /// A set bit means that the slot has timers.
    occupied: [u64; WORDS],
    chunks: Arena<Chunk>,
    /// The timers of the chunk being drained, their number, the number drained so far, and the next chunk.
    drained: [Timer; CHUNK_TIMERS],
    drained_count: u32,
    drained_until: u32,
    draining: u32,
    timers: usize,
}

impl TimerWheel {
    /// Creates an empty wheel that starts at `now`, for `entries` entries at a time. `new_timers` is the maximum number
    /// of timers set during 2.1 s.
    ///
    /// # Errors
    /// If the address space cannot be reserved.
    pub fn new(now: Timestamp, entries: usize, new_timers: usize) -> Result<Self, TableError> {
        let chunks = |timers| u32::try_from(chunks(timers)).map_err(|_| TableError::CapacityTooLarge);
        let (most, expected) = (chunks(most_timers(entries, new_timers))?, chunks(entries)?);
        Ok(TimerWheel {
            current: now.0 >> TICK_SHIFT,
            slots: Box::new([EMPTY_CHAIN; SLOTS as usize]),
            occupied: [0; WORDS],
            chunks: Arena::with_reserve(most, expected, PageRequest::Large)?,
            drained: [Timer::default(); CHUNK_TIMERS],
            drained_count: 0,
            drained_until: 0,
            draining: NO_CHUNK,
            timers: 0,
        })
    }

    /// Sets a timer. A deadline in the past is due with the next tick; a timer for [`Timestamp::NEVER`] never fires and
    /// takes no memory. Returns `false` if there is no room, which takes more than the wheel's `new_timers` within two
    /// seconds.
    #[inline]
    pub fn schedule(&mut self, deadline: Timestamp, entry: u32, generation: u32, kind: u8) -> bool {
        if deadline == Timestamp::NEVER {
            return true;
        }
        let is_set = self.append(Timer::new(deadline, entry, generation, kind));
        self.timers += usize::from(is_set);
        is_set
    }

    /// Removes and returns the next timer that is due by `now`, however long ago the last call was. New timers may be
    /// set between calls. `is_current` is called for timers that are only checked, and returns whether they are still
    /// in force.
    pub fn pop_due(&mut self, now: Timestamp, mut is_current: impl FnMut(&Timer) -> bool) -> Option<Timer> {
        let now_tick = now.0 >> TICK_SHIFT;
        loop {
            while self.drained_until < self.drained_count || self.drain_next_chunk() {
                let timer = self.drained[self.drained_until as usize];
                self.drained_until += 1;
                if timer.tick() <= now_tick {
                    self.timers -= 1;
                    return Some(timer);
                }
                if !is_current(&timer) || !self.append(timer.checked()) {
                    self.timers -= 1;
                }
            }
            // After a long pause one turn of the wheel is enough.
            self.current = self.current.max(now_tick.saturating_sub(SLOTS));
            match self.next_occupied() {
                Some(tick) if tick <= now_tick => self.start_draining(tick),
                _ => {
                    self.current = self.current.max(now_tick);
                    return None;
                }
            }
        }
    }

    /// Returns when to poll next: not later than the tick of the next due timer, possibly earlier. Returns `None` if
    /// there are no timers.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let is_draining = self.draining != NO_CHUNK || self.drained_until < self.drained_count;
        let tick = if is_draining { self.current } else { self.next_occupied()? };
        Some(Timestamp(tick << TICK_SHIFT))
    }

    /// Returns the number of timers, including stale ones.
    pub fn len(&self) -> usize {
        self.timers
    }

    /// Returns whether no timer is set.
    pub fn is_empty(&self) -> bool {
        self.timers == 0
    }

    /// Returns the current memory of the timers in bytes. It is reused.
    pub fn memory_bytes(&self) -> usize {
        self.chunks.len() * size_of::<Chunk>()
    }

    /// Appends a timer to its tick, or to the tick in which it is checked next. Returns `false` if there is no room.
    #[inline]
    fn append(&mut self, timer: Timer) -> bool {
        let slot = (timer.next_tick(self.current) % SLOTS) as usize;
        // `NO_CHUNK` is never the index of a chunk.
        let chunk = match self.chunks.get_mut(self.slots[slot].last) {
            Some(last) if (last.count as usize) < CHUNK_TIMERS => last,
            _ => match self.add_chunk(slot) {
                Some(added) => &mut self.chunks[added],
                None => return false,
            },
        };
        chunk.timers[chunk.count as usize] = timer;
        chunk.count += 1;
        true
    }

    /// Appends an empty chunk to a slot.
    #[inline(never)]
    fn add_chunk(&mut self, slot: usize) -> Option<u32> {
        let added = self.chunks.allocate()?;
        let chunk = &mut self.chunks[added];
        (chunk.next, chunk.count) = (NO_CHUNK, 0);
        match self.slots[slot].last {
            NO_CHUNK => {
                self.slots[slot].first = added;
                self.occupied[slot / 64] |= 1 << (slot % 64);
            }
            last => self.chunks[last].next = added,
        }
        self.slots[slot].last = added;
        Some(added)
    }

    /// Returns the next tick after the current one that has timers in its slot.
    fn next_occupied(&self) -> Option<u64> {
        let start = self.current + 1;
        let first_slot = (start % SLOTS) as usize;
        let (first_word, first_bit) = (first_slot / 64, first_slot % 64);
        // The first word is read twice: its high bits first, its low bits after a full turn.
        for step in 0..=WORDS {
            let word = (first_word + step) % WORDS;
            let mask = match step {
                0 => u64::MAX << first_bit,
                WORDS => !(u64::MAX << first_bit),
                _ => u64::MAX,
            };
            let bits = self.occupied[word] & mask;
            if bits != 0 {
                let slot = word as u64 * 64 + u64::from(bits.trailing_zeros());
                return Some(start + (slot + SLOTS - first_slot as u64) % SLOTS);
            }
        }
        None
    }

    fn start_draining(&mut self, tick: u64) {
        let slot = (tick % SLOTS) as usize;
        self.current = tick;
        self.draining = std::mem::replace(&mut self.slots[slot], EMPTY_CHAIN).first;
        self.occupied[slot / 64] &= !(1 << (slot % 64));
    }

    /// Copies the timers of the next chunk of the tick being drained, and frees the chunk. Returns `false` if there is
    /// none.
    #[inline(never)]
    fn drain_next_chunk(&mut self) -> bool {
        let Some(chunk) = self.chunks.get(self.draining) else { return false };
        (self.drained, self.drained_count, self.drained_until) = (chunk.timers, chunk.count, 0);
        let next = chunk.next;
        self.chunks.free(self.draining);
        self.draining = next;
        // No chunk is empty.
        true
    }
}

#[cfg(test)]
mod tests;
