//! Timers of one worker: an append-only wheel.
//!
//! A timer is a few numbers written behind the last one of the same tick, so setting one costs no DRAM stall: timers set
//! close together in time with the same delay land side by side. Nothing is ever unlinked. The owner of an entry lets an
//! outdated timer come due and sees by the generation (or the entry's own deadline) that it means nothing any more.
//!
//! The wheel turns in ticks of about a millisecond and reaches 4.3 s ahead; a timer further away waits in the last tick
//! and is appended again when that comes. Timers never come due early, and late by less than a tick after the wheel is
//! polled. Timers of one tick come due in the order in which they were set; those of different ticks in the order of their
//! ticks, unless the wheel was not polled for longer than it reaches.

use crate::time::Timestamp;

/// Length of a tick: 2^20 ns.
const TICK_SHIFT: u32 = 20;
/// Ticks the wheel reaches ahead; a power of two, and 64 words of 64 bits.
const SLOTS: u64 = 4096;
const WORDS: usize = SLOTS as usize / 64;
/// Timers of a chunk, which is four cache lines.
const CHUNK_TIMERS: usize = 15;
/// Chunks allocated at a time.
const BLOCK_CHUNKS: usize = 64;
/// "No chunk" where a chunk's number is expected.
const NO_CHUNK: u32 = u32::MAX;

/// A timer that came due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueTimer {
    /// Entry it was set for.
    pub entry: u32,
    /// Generation of the entry at that time.
    pub generation: u32,
    /// What the owner wanted to be reminded of.
    pub kind: u8,
}

#[derive(Clone, Copy, Default)]
struct Timer {
    /// Tick in which it comes due, shifted left by 8, and the kind.
    tick_and_kind: u64,
    entry: u32,
    generation: u32,
}

impl Timer {
    fn tick(self) -> u64 {
        self.tick_and_kind >> 8
    }
}

#[derive(Clone)]
#[repr(align(64))]
struct Chunk {
    next: u32,
    count: u32,
    timers: [Timer; CHUNK_TIMERS],
}

const EMPTY_CHUNK: Chunk =
    Chunk { next: NO_CHUNK, count: 0, timers: [Timer { tick_and_kind: 0, entry: 0, generation: 0 }; CHUNK_TIMERS] };

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
    slots: Box<[Chain]>,
    /// Bit set: the slot has timers.
    occupied: [u64; WORDS],
    blocks: Vec<Box<[Chunk]>>,
    /// First of the free chunks, which are linked.
    free: u32,
    /// Chunk that is being taken out, and how much of it is done.
    draining: u32,
    drained: u32,
    timers: usize,
}

impl TimerWheel {
    /// A wheel without timers that starts to turn at `now`.
    pub fn new(now: Timestamp) -> Self {
        TimerWheel {
            current: now.0 >> TICK_SHIFT,
            slots: vec![EMPTY_CHAIN; SLOTS as usize].into_boxed_slice(),
            occupied: [0; WORDS],
            blocks: Vec::new(),
            free: NO_CHUNK,
            draining: NO_CHUNK,
            drained: 0,
            timers: 0,
        }
    }

    /// Sets a timer. One whose deadline has passed comes due with the next tick; [`Timestamp::NEVER`] never does, and
    /// takes up no room.
    #[inline]
    pub fn schedule(&mut self, deadline: Timestamp, entry: u32, generation: u32, kind: u8) {
        if deadline != Timestamp::NEVER {
            let tick = deadline.0.div_ceil(1 << TICK_SHIFT);
            self.append(tick << 8 | u64::from(kind), entry, generation);
            self.timers += 1;
        }
    }

    /// Calls `due(entry, generation, kind)` for every timer that has come due by `now`, however far `now` is ahead of
    /// the last call.
    pub fn poll(&mut self, now: Timestamp, mut due: impl FnMut(u32, u32, u8)) {
        while let Some(timer) = self.pop_due(now) {
            due(timer.entry, timer.generation, timer.kind);
        }
    }

    /// Takes out the next timer that has come due by `now`. Between calls new timers may be set.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<DueTimer> {
        let now_tick = now.0 >> TICK_SHIFT;
        loop {
            while let Some(timer) = self.next_draining() {
                if timer.tick() <= now_tick {
                    self.timers -= 1;
                    let (entry, generation) = (timer.entry, timer.generation);
                    return Some(DueTimer { entry, generation, kind: timer.tick_and_kind as u8 });
                }
                // It waited beyond the wheel's reach.
                self.append(timer.tick_and_kind, timer.entry, timer.generation);
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
        let tick = if self.draining == NO_CHUNK { self.next_occupied()? } else { self.current };
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

    /// Memory for timers, in bytes: as much as the most timers there ever were took. It is used again and again.
    pub fn memory_bytes(&self) -> usize {
        self.blocks.len() * BLOCK_CHUNKS * size_of::<Chunk>()
    }

    /// Writes a timer behind the last one of its tick.
    #[inline]
    fn append(&mut self, tick_and_kind: u64, entry: u32, generation: u32) {
        let tick = (tick_and_kind >> 8).clamp(self.current + 1, self.current + SLOTS - 1);
        let slot = (tick % SLOTS) as usize;
        let last = self.slots[slot].last;
        let target = if last != NO_CHUNK && (self.chunk(last).count as usize) < CHUNK_TIMERS {
            last
        } else {
            let added = self.take_chunk();
            if last == NO_CHUNK {
                self.slots[slot].first = added;
                self.occupied[slot / 64] |= 1 << (slot % 64);
            } else {
                self.chunk(last).next = added;
            }
            self.slots[slot].last = added;
            added
        };
        let chunk = self.chunk(target);
        chunk.timers[chunk.count as usize] = Timer { tick_and_kind, entry, generation };
        chunk.count += 1;
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
        self.drained = 0;
        self.occupied[slot / 64] &= !(1 << (slot % 64));
    }

    /// The next timer of the tick that is being taken out. Chunks are free for use as soon as they are done.
    fn next_draining(&mut self) -> Option<Timer> {
        while self.draining != NO_CHUNK {
            let number = self.draining;
            let position = self.drained;
            let free = self.free;
            let chunk = self.chunk(number);
            if position < chunk.count {
                let timer = chunk.timers[position as usize];
                self.drained += 1;
                return Some(timer);
            }
            let next = std::mem::replace(&mut chunk.next, free);
            self.free = number;
            self.draining = next;
            self.drained = 0;
        }
        None
    }

    fn chunk(&mut self, number: u32) -> &mut Chunk {
        let number = number as usize;
        &mut self.blocks[number / BLOCK_CHUNKS][number % BLOCK_CHUNKS]
    }

    fn take_chunk(&mut self) -> u32 {
        if self.free == NO_CHUNK {
            // Growth is rare, moves nothing, and stops at the most timers there ever are.
            let first = (self.blocks.len() * BLOCK_CHUNKS) as u32;
            let mut block = vec![EMPTY_CHUNK; BLOCK_CHUNKS].into_boxed_slice();
            for (next, chunk) in (first + 1..).zip(&mut block[..BLOCK_CHUNKS - 1]) {
                chunk.next = next;
            }
            self.blocks.push(block);
            self.free = first;
        }
        let number = self.free;
        let chunk = self.chunk(number);
        let next_free = std::mem::replace(&mut chunk.next, NO_CHUNK);
        chunk.count = 0;
        self.free = next_free;
        number
    }
}

#[cfg(test)]
mod tests;
