//! Cache lines of tables that packets need from beyond the core's own cache: what the DRAM floor follows from. Whether a
//! last-level cache has them depends on who else uses it, so it is not asked.
//!
//! They are counted, not derived: the tests of this module drive packets through a worker with every access to the tables
//! noted ([`namehop_table::touched`]), let the lines pass a cache that forgets what was not used for longest, as large as
//! the core's own, and count those that it does not have. Noting accesses is no part of a release build, because even
//! asking whether to note one would cost something at each; so what was counted is written down here, and the tests fail
//! when it is not what they count.
//!
//! Not counted are lines that are used in sequence (the order in which PIT entries and Data are given up) and packets
//! themselves.

use super::frames;
use crate::schedule::{ByPacket, EngineParameters, Traffic};

const LINE_BYTES: usize = 64;
/// Bytes that a cached packet has in front of it: its owner.
const FRONT_BYTES: usize = 4;

/// An Interest that the cache does not answer: one line of the dead nonce list, FIB bucket and FIB entry, PIT-CS bucket; seldom
/// an overflow bucket. Its new PIT entry is one that was given up just before, and still near. Its timer and its place in the
/// queue of PIT entries take a part of a line each, beside those of other packets, and so does that place when the timer is looked at.
const INTEREST_MISS: f64 = 4.55;
/// An Interest that the cache answers, besides the packet: both lines of its entry, and three of the order of cached Data.
const INTEREST_HIT: f64 = 6.0;
/// An entry of the PIT-CS table.
const ENTRY: f64 = 2.0;
/// What is noted of a pending Interest, apart from its entry.
const SLOT: f64 = 2.0;
/// Its place in the queue of PIT entries, beside those of other packets.
const PLACE: f64 = 0.25;
/// The bucket from which that entry is taken, when the Data does not stay.
const REMOVAL: f64 = 1.0;
/// Data that enters the cache and drives another one out, besides its packet and its Interest's entry: entry and bucket of
/// that one, and a part of a line with notes about the order, in which packets that came together lie side by side. Where
/// hits mix that order there are some more, half a line when every other Interest is a hit.
const ADMISSION: f64 = 3.2;

/// What admission needs besides in mixed traffic: packets that came together do not lie side by side in the notes about the order.
const SCATTERED: f64 = 1.8;
/// Each further bucket of the FIB that a longest-first search looks at; it seldom has an overflow bucket. The second line of the
/// entry of a long prefix comes with the first one and is not counted.
const FURTHER_BUCKET: f64 = 1.0;
/// Sizes that differ from that of the core's own cache by less than this factor neither fit nor do not fit: the lines are unclear.
const CLEARLY: f64 = 2.0;

/// Lines that packets of this load need from beyond the core's own cache, with so many FIB buckets looked at per lookup; and
/// whether the result is clear, that is, not decided by a small difference in size. The FIB and the
/// Content Store are taken to be much larger than that cache.
pub(super) fn lines(parameters: &EngineParameters, lookups: f64) -> (ByPacket<f64>, bool) {
    let packet = (frames::data_bytes(parameters) + FRONT_BYTES).div_ceil(LINE_BYTES) as f64;
    let scattered = if parameters.traffic == Traffic::Mixed { SCATTERED } else { 0.0 };
    let admission = if parameters.cs_capacity > 0 { ADMISSION + scattered + packet } else { 0.0 };
    let pending = ENTRY + SLOT + PLACE + if parameters.cs_capacity > 0 { 0.0 } else { REMOVAL };
    let interest_miss = INTEREST_MISS + FURTHER_BUCKET * (lookups - 1.0);
    // Between an Interest and its Data, those of all others that are pending pass through the cache.
    let bytes_between = parameters.in_flight as f64 * (interest_miss + ENTRY + SLOT + admission) * LINE_BYTES as f64;
    let filling = bytes_between / parameters.private_cache_bytes as f64;
    let is_clear = !(1.0 / CLEARLY..CLEARLY).contains(&filling);
    let data = admission + if filling < 1.0 { 0.0 } else { pending };
    (ByPacket { interest_miss, interest_hit: INTEREST_HIT + packet, data }, is_clear)
}

/// Bytes of entries and cached packets of this load, without the FIB.
pub(super) fn table_bytes(parameters: &EngineParameters) -> usize {
    let entries = (parameters.in_flight + parameters.cs_capacity) * ENTRY as usize * LINE_BYTES;
    let slots = parameters.in_flight * SLOT as usize * LINE_BYTES;
    entries + slots + parameters.cs_capacity * (frames::data_bytes(parameters) + FRONT_BYTES)
}

#[cfg(test)]
pub(super) mod tests;
