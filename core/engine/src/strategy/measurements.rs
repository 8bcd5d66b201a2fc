//! Measurements of next hops for strategies: round-trip times, time-outs, probing times, the last working next hop.
//!
//! Each worker has one [`MeasurementTable`], keyed by the hash of the FIB prefix. Its memory is bounded: it has a fixed
//! number of entries of fixed size, and a new entry in a full set replaces the least recently used one. A lost entry
//! makes choices worse but never wrong; so do two prefixes with the same 64-bit keyed hash.
//!
//! There are no timers here. A time-out is detected when the next hop is examined again
//! ([`NextHopMeasurement::check_timeout`]).

use namehop_packet::rtt::RttEstimator;
use namehop_packet::{FaceId, Timestamp};

use super::context::StrategyContext;
use super::upstreams::{is_used, out_record_of};

/// Number of next hops measured per prefix. If a prefix has more, the least recently used measurement is replaced.
pub const MEASURED_NEXT_HOPS: usize = 16;

/// Number of words that a strategy can keep for each prefix.
pub const PREFIX_SCRATCH_WORDS: usize = 8;

/// Number of slots in which a prefix hash may be stored.
const WAYS: usize = 8;

/// Out-record scratch flag: the Interest was sent again before an answer, so the answer is not a round-trip sample.
const SENT_AGAIN: u32 = 1 << 1;

/// Measurements of one next hop of one prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHopMeasurement {
    /// The next hop; [`FaceId::INVALID`] in a free slot.
    face: FaceId,
    /// Number of consecutive Interests that were not answered in time.
    timeouts: u32,
    /// Whether the next hop is considered not working.
    timed_out: bool,
    rtt: RttEstimator,
    /// Since when the watched Interest waits for its answer; [`Timestamp::NEVER`] if none is watched.
    awaiting_since: Timestamp,
    last_used: Timestamp,
}

impl NextHopMeasurement {
    const FREE: NextHopMeasurement = NextHopMeasurement {
        face: FaceId::INVALID,
        timeouts: 0,
        timed_out: false,
        rtt: RttEstimator::NEW,
        awaiting_since: Timestamp::NEVER,
        last_used: Timestamp(0),
    };

    /// Returns the round-trip time estimate.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Returns whether this next hop is considered not working.
    pub fn is_timed_out(&self) -> bool {
        self.timed_out
    }

    /// Returns when an Interest was last sent to it, or it last answered.
    pub fn last_used(&self) -> Timestamp {
        self.last_used
    }

    /// Returns the number of consecutive unanswered Interests.
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Records that an Interest was sent. One Interest is watched at a time; those sent meanwhile are not.
    pub fn sent(&mut self, now: Timestamp) {
        self.last_used = now;
        if self.awaiting_since == Timestamp::NEVER {
            self.awaiting_since = now;
        }
    }

    /// Records Data for an Interest sent at `sent`. With `is_sample`, it can only be the answer to that Interest.
    pub fn answered(&mut self, sent: Timestamp, now: Timestamp, is_sample: bool) {
        self.last_used = now;
        self.timeouts = 0;
        self.timed_out = false;
        if is_sample {
            self.rtt.add_sample(now.since_ns(sent));
        }
        // It answers the watched Interest or a later one: the link works, regardless of the watched one.
        if self.awaiting_since <= sent {
            self.awaiting_since = Timestamp::NEVER;
        }
    }

    /// Counts a time-out if the answer to the watched Interest is overdue. After `max_timeouts` consecutive ones the
    /// next hop is considered not working.
    pub fn check_timeout(&mut self, now: Timestamp, max_timeouts: u32) {
        let overdue = self.awaiting_since != Timestamp::NEVER && now.since_ns(self.awaiting_since) >= self.rtt.rto_ns();
        if overdue {
            self.count_timeout(max_timeouts);
        }
    }

    /// Counts a time-out, because the watched Interest is overdue or the link could not deliver it.
    pub fn count_timeout(&mut self, max_timeouts: u32) {
        self.awaiting_since = Timestamp::NEVER;
        self.timeouts = self.timeouts.saturating_add(1);
        self.timed_out |= self.timeouts >= max_timeouts;
    }

    /// Records that the next hop refused the Interest.
    pub fn refused(&mut self) {
        self.awaiting_since = Timestamp::NEVER;
        self.timed_out = true;
    }

    /// Records an answer that says nothing about whether the next hop works.
    pub fn not_measured(&mut self) {
        self.awaiting_since = Timestamp::NEVER;
    }

    fn is_alive(&self, now: Timestamp, lifetime_ms: u64) -> bool {
        self.last_used.plus_ms(lifetime_ms) >= now
    }
}

/// The owner of a prefix's scratch words: a strategy never sees the words of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScratchOwner(u64);

impl ScratchOwner {
    const NOBODY: ScratchOwner = ScratchOwner(0);
    /// Bit of programs; hashes of built-in strategies never have it.
    const PROGRAM: u64 = 1 << 63;

    /// Returns the owner for the built-in strategy of this name.
    pub const fn built_in(name: &str) -> Self {
        let (bytes, mut hash, mut index) = (name.as_bytes(), 1_u64, 0);
        while index < bytes.len() {
            hash = hash.wrapping_mul(0x0100_0000_01b3) ^ bytes[index] as u64;
            index += 1;
        }
        ScratchOwner(hash & !Self::PROGRAM)
    }

    /// Returns the owner for the loaded program with this number.
    pub const fn program(number: u64) -> Self {
        ScratchOwner(number | Self::PROGRAM)
    }
}

/// Measurements of one FIB prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measurements {
    next_hops: [NextHopMeasurement; MEASURED_NEXT_HOPS],
    last_working: FaceId,
    last_working_at: Timestamp,
    /// When the next probe is due; `None` until probing of this prefix has started.
    pub next_probe: Option<Timestamp>,
    scratch_owner: ScratchOwner,
    scratch: [u64; PREFIX_SCRATCH_WORDS],
}

impl Default for Measurements {
    fn default() -> Self {
        Measurements {
            next_hops: [NextHopMeasurement::FREE; MEASURED_NEXT_HOPS],
            last_working: FaceId::INVALID,
            last_working_at: Timestamp(0),
            next_probe: None,
            scratch_owner: ScratchOwner::NOBODY,
            scratch: [0; PREFIX_SCRATCH_WORDS],
        }
    }
}

impl Measurements {
    /// Returns the words that a strategy keeps for the prefix; zero if they belonged to another strategy.
    pub fn scratch(&mut self, owner: ScratchOwner) -> &mut [u64; PREFIX_SCRATCH_WORDS] {
        if self.scratch_owner != owner {
            self.scratch_owner = owner;
            self.scratch = [0; PREFIX_SCRATCH_WORDS];
        }
        &mut self.scratch
    }

    /// Returns the measurements of a next hop, unless it was last used more than `lifetime_ms` ago.
    pub fn next_hop(&mut self, face: FaceId, now: Timestamp, lifetime_ms: u64) -> Option<&mut NextHopMeasurement> {
        self.next_hops.iter_mut().find(|measured| measured.face == face && measured.is_alive(now, lifetime_ms))
    }

    /// Like [`next_hop`](Self::next_hop), but creates an empty measurement if there is none.
    pub fn next_hop_or_new(&mut self, face: FaceId, now: Timestamp, lifetime_ms: u64) -> &mut NextHopMeasurement {
        let mut chosen = 0;
        for (index, measured) in self.next_hops.iter().enumerate() {
            if measured.face == face {
                chosen = index;
                break;
            }
            // Free slots have the oldest possible time.
            if measured.last_used < self.next_hops[chosen].last_used {
                chosen = index;
            }
        }
        let measured = &mut self.next_hops[chosen];
        if measured.face != face || !measured.is_alive(now, lifetime_ms) {
            *measured = NextHopMeasurement { face, last_used: now, ..NextHopMeasurement::FREE };
        }
        measured
    }

    /// Returns the retransmission time-out of a next hop, in nanoseconds.
    pub fn rto_ns(&mut self, face: FaceId, now: Timestamp, lifetime_ms: u64) -> u64 {
        self.next_hop(face, now, lifetime_ms).map_or(RttEstimator::NEW.rto_ns(), |measured| measured.rtt.rto_ns())
    }

    /// Returns the next hop that answered last, unless that was more than `lifetime_ms` ago.
    pub fn last_working(&self, now: Timestamp, lifetime_ms: u64) -> Option<FaceId> {
        let known = self.last_working != FaceId::INVALID && self.last_working_at.plus_ms(lifetime_ms) >= now;
        known.then_some(self.last_working)
    }

    /// Records that a next hop has answered.
    pub fn set_last_working(&mut self, face: FaceId, now: Timestamp) {
        self.last_working = face;
        self.last_working_at = now;
    }

    /// Records that this next hop does not work; no effect if it is not the last working one.
    pub fn forget_last_working(&mut self, face: FaceId) {
        if self.last_working == face {
            self.last_working = FaceId::INVALID;
        }
    }
}

/// Sends the pending Interest (as a probe with a new nonce if `probe`) and watches for the answer. Returns `false` if
/// it could not be sent.
pub fn send_measured<C: StrategyContext>(ctx: &mut C, face: FaceId, lifetime_ms: u64, probe: bool) -> bool {
    let now = ctx.now();
    let again = is_used(ctx, face);
    let sent = if probe { ctx.send_probe(face) } else { ctx.send_interest(face) };
    if !sent {
        return false;
    }
    if let Some(scratch) = ctx.out_scratch(face) {
        if again {
            scratch.flags |= SENT_AGAIN;
        } else {
            scratch.flags &= !SENT_AGAIN;
        }
    }
    if let Some(measurements) = ctx.measurements() {
        measurements.next_hop_or_new(face, now, lifetime_ms).sent(now);
    }
    true
}

/// Records that Data arrived from the ingress. Returns `false` if the Interest was not sent to that face.
pub fn record_answer<C: StrategyContext>(ctx: &mut C, lifetime_ms: u64) -> bool {
    let (now, ingress) = (ctx.now(), ctx.ingress());
    let Some(record) = out_record_of(ctx, ingress) else {
        return false;
    };
    let is_sample = ctx.out_scratch(ingress).is_none_or(|scratch| scratch.flags & SENT_AGAIN == 0);
    if let Some(measurements) = ctx.measurements() {
        measurements.next_hop_or_new(ingress, now, lifetime_ms).answered(record.last_renewed, now, is_sample);
    }
    true
}

/// A slot of a set: the upper half of the hash, and the index of the entry plus 1; 0 if free.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    tag: u32,
    number_plus_one: u32,
}

#[derive(Debug)]
struct Entry {
    prefix_hash: u64,
    last_used: Timestamp,
    measurements: Measurements,
}

/// Returns the number of entries of a table for `capacity` prefixes.
fn entries_for(capacity: usize) -> usize {
    capacity.clamp(1, 1 << 24).div_ceil(WAYS).next_power_of_two() * WAYS
}

/// Measurements of all prefixes of one worker.
#[derive(Debug)]
pub struct MeasurementTable {
    /// Sets of [`WAYS`] slots.
    slots: Vec<Slot>,
    /// Grows up to the reserved capacity and never moves; pages that no entry has touched cost no memory.
    entries: Vec<Entry>,
}

impl MeasurementTable {
    /// Creates a table for at least `capacity` prefixes, rounded up to 8 times a power of two and at most 2²⁴.
    pub fn new(capacity: usize) -> Self {
        let entries = entries_for(capacity);
        MeasurementTable { slots: vec![Slot::default(); entries], entries: Vec::with_capacity(entries) }
    }

    /// Returns the size in bytes of a full table for `capacity` prefixes.
    pub fn bytes_for(capacity: usize) -> usize {
        entries_for(capacity) * (size_of::<Slot>() + size_of::<Entry>())
    }

    /// Returns the number of prefixes with measurements.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no measurements yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the maximum number of prefixes.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Returns the measurements of the FIB prefix with this hash, and creates them if necessary. A new entry may
    /// replace the least recently used one of its set.
    pub fn entry(&mut self, prefix_hash: u64, now: Timestamp) -> &mut Measurements {
        let tag = (prefix_hash >> 32) as u32;
        // The number of sets is a power of two of at most 2²¹, so the low half of the hash selects among all of them.
        let first = (prefix_hash as usize & (self.slots.len() / WAYS - 1)) * WAYS;
        let set = &mut self.slots[first..first + WAYS];
        let found = set.iter().find_map(|slot| {
            let number = slot.number_plus_one.checked_sub(1)? as usize;
            (slot.tag == tag && self.entries[number].prefix_hash == prefix_hash).then_some(number)
        });
        let number = match found {
            Some(number) => number,
            None => {
                let fresh = Entry { prefix_hash, last_used: now, measurements: Measurements::default() };
                if let Some(slot) = set.iter_mut().find(|slot| slot.number_plus_one == 0) {
                    self.entries.push(fresh);
                    *slot = Slot { tag, number_plus_one: self.entries.len() as u32 };
                    self.entries.len() - 1
                } else {
                    let number_of = |slot: &Slot| slot.number_plus_one as usize - 1;
                    let mut oldest = 0;
                    for way in 1..WAYS {
                        if self.entries[number_of(&set[way])].last_used
                            < self.entries[number_of(&set[oldest])].last_used
                        {
                            oldest = way;
                        }
                    }
                    set[oldest].tag = tag;
                    let number = number_of(&set[oldest]);
                    self.entries[number] = fresh;
                    number
                }
            }
        };
        let entry = &mut self.entries[number];
        entry.last_used = now;
        &mut entry.measurements
    }
}

#[cfg(test)]
#[path = "tests/measurements.rs"]
mod tests;
