//! What strategies measure of next hops: round-trip times, time-outs, probing times, the last working next hop.
//!
//! Each worker has one [`MeasurementTable`], keyed by the hash of the FIB prefix. Its memory is bounded: it has a fixed number of
//! entries of fixed size, and a new entry of a full set replaces the one that was not used for longest. A lost entry makes choices
//! worse and never wrong; so do two prefixes with the same 64-bit keyed hash.
//!
//! There are no timers here. A time-out is noticed when the next hop is looked at again
//! ([`NextHopMeasurement::check_timeout`]).

use namehop_packet::rtt::RttEstimator;
use namehop_packet::{FaceId, Timestamp};

use super::context::StrategyContext;
use super::upstreams::{is_used, out_record_of};

/// Next hops measured per prefix. A prefix with more forgets the one not used for longest.
pub const MEASURED_NEXT_HOPS: usize = 16;

/// Words that a strategy can keep for each prefix.
pub const PREFIX_SCRATCH_WORDS: usize = 8;

/// Entries that a prefix hash may be stored in.
const WAYS: usize = 8;

/// Out-record scratch flag: the Interest was sent again before an answer, so that the answer is no round-trip sample.
const SENT_AGAIN: u32 = 1 << 1;

/// What is known of one next hop of one prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHopMeasurement {
    /// The next hop; [`FaceId::INVALID`] when the place is free.
    face: FaceId,
    /// Interests in a row that were not answered in time.
    timeouts: u32,
    /// It is taken not to work.
    timed_out: bool,
    rtt: RttEstimator,
    /// Since when the oldest watched Interest waits for its answer; [`Timestamp::NEVER`] when none does.
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

    /// Round-trip time estimate.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Is this next hop taken not to work?
    pub fn is_timed_out(&self) -> bool {
        self.timed_out
    }

    /// When it was last asked, or last answered.
    pub fn last_used(&self) -> Timestamp {
        self.last_used
    }

    /// Unanswered Interests in a row.
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// An Interest was sent. One Interest is watched at a time; those sent meanwhile are not.
    pub fn sent(&mut self, now: Timestamp) {
        self.last_used = now;
        if self.awaiting_since == Timestamp::NEVER {
            self.awaiting_since = now;
        }
    }

    /// Data arrived for an Interest sent at `sent`. `is_sample`: it can only be the answer to that one.
    pub fn answered(&mut self, sent: Timestamp, now: Timestamp, is_sample: bool) {
        self.last_used = now;
        self.timeouts = 0;
        self.timed_out = false;
        if is_sample {
            self.rtt.add_sample(now.since_ns(sent));
        }
        // An answer to the watched Interest or a later one: the link works, whatever became of the watched one.
        if self.awaiting_since <= sent {
            self.awaiting_since = Timestamp::NEVER;
        }
    }

    /// Counts a time-out if the answer to the watched Interest is overdue. After `max_timeouts` in a row the next hop is taken not
    /// to work.
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

    /// The next hop said that it cannot answer.
    pub fn refused(&mut self) {
        self.awaiting_since = Timestamp::NEVER;
        self.timed_out = true;
    }

    /// The next hop gave an answer that says neither that it works nor that it does not.
    pub fn not_measured(&mut self) {
        self.awaiting_since = Timestamp::NEVER;
    }

    fn is_alive(&self, now: Timestamp, lifetime_ms: u64) -> bool {
        self.last_used.plus_ms(lifetime_ms) >= now
    }
}

/// Who the words of a prefix belong to: a strategy never sees what another one left there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScratchOwner(u64);

impl ScratchOwner {
    const NOBODY: ScratchOwner = ScratchOwner(0);
    /// Told apart from names of built-in strategies, of which no hash has this bit.
    const PROGRAM: u64 = 1 << 63;

    /// The built-in strategy of this name.
    pub const fn built_in(name: &str) -> Self {
        let (bytes, mut hash, mut index) = (name.as_bytes(), 1_u64, 0);
        while index < bytes.len() {
            hash = hash.wrapping_mul(0x0100_0000_01b3) ^ bytes[index] as u64;
            index += 1;
        }
        ScratchOwner(hash & !Self::PROGRAM)
    }

    /// The loaded program with this number.
    pub const fn program(number: u64) -> Self {
        ScratchOwner(number | Self::PROGRAM)
    }
}

/// What is known of one FIB prefix.
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
    /// Words that a strategy keeps for the prefix; zero when they were another's.
    pub fn scratch(&mut self, owner: ScratchOwner) -> &mut [u64; PREFIX_SCRATCH_WORDS] {
        if self.scratch_owner != owner {
            self.scratch_owner = owner;
            self.scratch = [0; PREFIX_SCRATCH_WORDS];
        }
        &mut self.scratch
    }

    /// What is known of a next hop, unless it was last used more than `lifetime_ms` ago.
    pub fn next_hop(&mut self, face: FaceId, now: Timestamp, lifetime_ms: u64) -> Option<&mut NextHopMeasurement> {
        self.next_hops.iter_mut().find(|measured| measured.face == face && measured.is_alive(now, lifetime_ms))
    }

    /// Like [`next_hop`](Self::next_hop), making an empty measurement when there is none.
    pub fn next_hop_or_new(&mut self, face: FaceId, now: Timestamp, lifetime_ms: u64) -> &mut NextHopMeasurement {
        let mut chosen = 0;
        for (index, measured) in self.next_hops.iter().enumerate() {
            if measured.face == face {
                chosen = index;
                break;
            }
            // Free places have the oldest time there is.
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

    /// Retransmission time-out of a next hop.
    pub fn rto_ns(&mut self, face: FaceId, now: Timestamp, lifetime_ms: u64) -> u64 {
        self.next_hop(face, now, lifetime_ms).map_or(RttEstimator::NEW.rto_ns(), |measured| measured.rtt.rto_ns())
    }

    /// The next hop that answered last, unless that was more than `lifetime_ms` ago.
    pub fn last_working(&self, now: Timestamp, lifetime_ms: u64) -> Option<FaceId> {
        let known = self.last_working != FaceId::INVALID && self.last_working_at.plus_ms(lifetime_ms) >= now;
        known.then_some(self.last_working)
    }

    /// A next hop has answered.
    pub fn set_last_working(&mut self, face: FaceId, now: Timestamp) {
        self.last_working = face;
        self.last_working_at = now;
    }

    /// This next hop does not work; no effect when it is not the last working one.
    pub fn forget_last_working(&mut self, face: FaceId) {
        if self.last_working == face {
            self.last_working = FaceId::INVALID;
        }
    }
}

/// Sends the pending Interest (as a probe with a new nonce if `probe`) and watches for the answer.
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

/// Records that Data came from the ingress. `false` when that face was not asked.
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

/// A place of a set: the upper half of the hash, and the number of the entry plus 1; 0 when free.
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

/// Entries of a table for `capacity` prefixes.
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
    /// A table for at least `capacity` prefixes, rounded up to 8 times a power of two and at most 2²⁴.
    pub fn new(capacity: usize) -> Self {
        let entries = entries_for(capacity);
        MeasurementTable { slots: vec![Slot::default(); entries], entries: Vec::with_capacity(entries) }
    }

    /// Bytes that a table for `capacity` prefixes takes when it is full.
    pub fn bytes_for(capacity: usize) -> usize {
        entries_for(capacity) * (size_of::<Slot>() + size_of::<Entry>())
    }

    /// Prefixes with measurements.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No measurements yet?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Most prefixes it can hold.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// The measurements of the FIB prefix with this hash, found or made. A new one may take the place of the one in the same set
    /// that was not used for longest.
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
