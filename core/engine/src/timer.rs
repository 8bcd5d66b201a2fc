//! Timers of one worker: an append-only wheel.
//!
//! A timer is a few numbers written behind the last one of the same tick, so setting one costs no DRAM stall: timers set
//! close together in time with the same delay land side by side. Nothing is ever unlinked. A timer whose entry has ended
//! means nothing any more, which its owner sees by the generation.
//!
//! The wheel turns in ticks of about a millisecond and reaches 4.3 s ahead. How long a timer runs is the choice of whoever
//! sent the Interest, up to days; how long its entry lives is mostly a round-trip time. So that outdated timers do not pile
//! up until their deadlines, a timer is looked at earlier: 2.1 s after it was set, 4.3 s after, and then once in
//! every turn of the wheel. Each time its owner is asked whether it still means something; if not, it is gone. Nearly all
//! Interests that are answered at all are answered before the first look, so looks cost no more than letting timers come due.
//! They bound the memory, whatever the deadlines are:
//!
//! * timers set during the last 2.1 s: the rate of Interests times 2.1 s, which is half of what their usual lifetime of 4 s
//!   would take;
//! * of those set between 2.1 and 4.3 s ago, and of all set before, no more than can mean something at a time. For those that are
//!   left were found alive by the look before, and so all of one such stretch of time lived at one and the same moment.
//!
//! An earlier first look would save memory in floods, and cost everybody whose answers take longer than that.
//!
//! Timers never come due early, and late by less than a tick after the wheel is polled. Timers of one tick come due in no
//! particular order; those of different ticks in the order of their ticks, unless the wheel was not polled for longer than it
//! reaches.

use namehop_packet::Timestamp;
use namehop_table::{Arena, PageRequest, TableError};

/// Length of a tick: 2^20 ns.
const TICK_SHIFT: u32 = 20;
/// Ticks the wheel reaches ahead; a power of two, and 64 words of 64 bits.
const SLOTS: u64 = 4096;
const WORDS: usize = SLOTS as usize / 64;
/// Ticks until a timer is looked at, by how often it was looked at before; the last of them again and again.
const UNTIL_LOOK: [u64; 3] = [2_048, 2_048, SLOTS - 1];
/// Timers of a chunk, which is four cache lines.
const CHUNK_TIMERS: usize = 15;
/// New timers that a wheel for many entries has room for by default: more than any worker can set in 2.1 s.
pub const MOST_NEW_TIMERS: usize = 1 << 24;
/// The same for each entry, so that a wheel for few entries reserves less address space.
const NEW_TIMERS_PER_ENTRY: usize = 1 << 12;
/// Timers that can be there for each entry: two mean something, its end and a reminder of the strategy, and the description
/// above says how many times so many there can be.
const TIMERS_PER_ENTRY: usize = 2 * 2;
/// "No chunk" where a chunk's number is expected.
const NO_CHUNK: u32 = u32::MAX;

/// A timer: what it was set with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timer {
    /// Tick in which it comes due, then 8 bits for how often it was looked at, then 8 bits for the kind.
    word: u64,
    /// What it was set for, by a number of its owner's choice.
    pub entry: u32,
    /// What the owner tells by whether that is still the same.
    pub generation: u32,
}

impl Timer {
    fn new(deadline: Timestamp, entry: u32, generation: u32, kind: u8) -> Self {
        Timer { word: tick_of(deadline) << 16 | u64::from(kind), entry, generation }
    }

    /// What the owner wanted to be reminded of.
    pub fn kind(&self) -> u8 {
        self.word as u8
    }

    /// Was it set for the deadline with this [mark](deadline_mark)?
    #[inline(always)]
    pub fn is_for_mark(&self, mark: u32) -> bool {
        self.tick() as u32 == mark
    }

    fn tick(&self) -> u64 {
        self.word >> 16
    }

    fn looks(&self) -> u8 {
        (self.word >> 8) as u8
    }

    /// The same after one more look.
    fn looked_at(self) -> Self {
        if usize::from(self.looks()) < UNTIL_LOOK.len() - 1 {
            Timer { word: self.word + (1 << 8), ..self }
        } else {
            self
        }
    }

    /// The tick in which it is to be looked at, or comes due.
    fn next_tick(&self, current: u64) -> u64 {
        let look = current + UNTIL_LOOK[usize::from(self.looks()).min(UNTIL_LOOK.len() - 1)];
        self.tick().clamp(current + 1, look)
    }
}

/// Most timers of a wheel for `entries` entries.
fn most_timers(entries: usize, new_timers: usize) -> usize {
    let new = entries.saturating_mul(NEW_TIMERS_PER_ENTRY).min(new_timers);
    entries.saturating_mul(TIMERS_PER_ENTRY).saturating_add(new)
}

/// Chunks that hold `timers` timers: the last chunk of every tick may be nearly empty.
fn chunks(timers: usize) -> usize {
    timers.div_ceil(CHUNK_TIMERS).saturating_add(SLOTS as usize)
}

/// Bytes that the timers of a wheel take at most, when it was made with these arguments.
pub fn timer_bytes(entries: usize, new_timers: usize) -> usize {
    chunks(most_timers(entries, new_timers)).saturating_mul(size_of::<Chunk>() + size_of::<u32>())
}

/// What tells a deadline from others, to a tick and within some 50 days.
#[inline(always)]
pub fn deadline_mark(deadline: Timestamp) -> u32 {
    tick_of(deadline) as u32
}

/// The first tick that does not begin before the deadline.
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
    /// Without timers.
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

/// The wheel; see the module's description.
pub struct TimerWheel {
    /// The last tick whose timers were taken out.
    current: u64,
    slots: Box<[Chain; SLOTS as usize]>,
    /// Bit set: the slot has timers.
    occupied: [u64; WORDS],
    chunks: Arena<Chunk>,
    /// Timers of the chunk that is being taken out, how many they are, how many of them are done, and the chunk behind it.
    drained: [Timer; CHUNK_TIMERS],
    drained_count: u32,
    drained_until: u32,
    draining: u32,
    timers: usize,
}

impl TimerWheel {
    /// A wheel without timers that starts to turn at `now`, for `entries` entries at a time. `new_timers` is the most timers that may
    /// be set during 2.1 s.
    ///
    /// # Errors
    /// When the address space for so many timers cannot be had.
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

    /// Sets a timer. One whose deadline has passed comes due with the next tick; [`Timestamp::NEVER`] never does, and
    /// takes up no room. `false` if there is no room, which takes more new timers in two seconds than the wheel was made for.
    #[inline]
    pub fn schedule(&mut self, deadline: Timestamp, entry: u32, generation: u32, kind: u8) -> bool {
        if deadline == Timestamp::NEVER {
            return true;
        }
        let is_set = self.append(Timer::new(deadline, entry, generation, kind));
        self.timers += usize::from(is_set);
        is_set
    }

    /// Takes out the next timer that has come due by `now`, however far `now` is ahead of the last call. Between calls new
    /// timers may be set. `is_current` says of a timer that is only looked at whether it is still in force.
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
                if !is_current(&timer) || !self.append(timer.looked_at()) {
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

    /// When to poll next: not later than the tick in which the next timer comes due, possibly earlier. `None` when
    /// there are no timers.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let is_draining = self.draining != NO_CHUNK || self.drained_until < self.drained_count;
        let tick = if is_draining { self.current } else { self.next_occupied()? };
        Some(Timestamp(tick << TICK_SHIFT))
    }

    /// Timers that are set, outdated ones included.
    pub fn len(&self) -> usize {
        self.timers
    }

    /// Is no timer set?
    pub fn is_empty(&self) -> bool {
        self.timers == 0
    }

    /// Memory that timers take now, in bytes. It is used again and again.
    pub fn memory_bytes(&self) -> usize {
        self.chunks.len() * size_of::<Chunk>()
    }

    /// Writes a timer behind the last one of its tick, or of the tick in which it is to be looked at. `false` if there is no
    /// room.
    #[inline]
    fn append(&mut self, timer: Timer) -> bool {
        let slot = (timer.next_tick(self.current) % SLOTS) as usize;
        // There is no chunk with the number that stands for none.
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

    /// Puts an empty chunk behind the last one of a slot.
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

    /// The next tick after the current one whose slot has timers.
    fn next_occupied(&self) -> Option<u64> {
        let start = self.current + 1;
        let first_slot = (start % SLOTS) as usize;
        let (first_word, first_bit) = (first_slot / 64, first_slot % 64);
        // The first word is looked at twice: its high bits first, its low bits after a full turn.
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

    /// Takes the timers of the next chunk of the tick that is being taken out. The chunk is free for use then.
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
