//! Cache lines of tables that packets fetch from beyond the core's private cache: the basis of the DRAM floor. The
//! last-level cache is ignored, because what it holds depends on its other users.
//!
//! The numbers are counted, not derived. The tests of this module send packets through a worker with every access to
//! its tables recorded ([`namehop_table::touched`]), filter the lines through an LRU cache as large as the core's
//! private cache, and count the misses. A release build does not record accesses, because even the check whether to
//! record costs time. So the counts are constants here, and the tests fail if they differ.
//!
//! Not counted are lines read sequentially (the queues from which PIT entries and Data are evicted), and packets
//! themselves.

use super::frames;
use crate::schedule::{ByPacket, EngineParameters, Traffic};

const LINE_BYTES: usize = 64;
/// Bytes in front of a cached packet: its owner.
const FRONT_BYTES: usize = 4;

/// Lines of an Interest that the cache does not answer: one line of the dead nonce list, FIB bucket and FIB entry,
/// PIT-CS bucket, and rarely an overflow bucket. Its new PIT entry was freed just before, and is still cached. Its
/// timer and its queue slot each share a line with other packets, and so does the queue slot when the timer expires.
const INTEREST_MISS: f64 = 4.55;
/// Lines of an Interest that the cache answers, besides the packet: both lines of its entry, and three of the eviction
/// order.
const INTEREST_HIT: f64 = 6.0;
/// Lines of an entry of the PIT-CS table.
const ENTRY: f64 = 2.0;
/// Lines of the state of a pending Interest besides its entry.
const SLOT: f64 = 2.0;
/// Lines of its slot in the queue of PIT entries, shared with other packets.
const PLACE: f64 = 0.25;
/// Line of the bucket from which that entry is removed, if the Data is not cached.
const REMOVAL: f64 = 1.0;
/// Lines of admitting Data and evicting another, besides its packet and its Interest's entry: entry and bucket of the
/// victim, and part of a line of the eviction order, in which packets that arrived together are adjacent. Hits mix that
/// order and add some: half a line if every other Interest is a hit.
const ADMISSION: f64 = 3.2;

/// Additional lines of an admission in mixed traffic: packets that arrived together are not adjacent in the eviction
/// order.
const SCATTERED: f64 = 1.8;
/// Lines per further FIB bucket of a longest-first search; it rarely has an overflow bucket. The second line of a long
/// prefix's entry is fetched with the first one, and not counted.
const FURTHER_BUCKET: f64 = 1.0;
/// If the size of the pending state differs by less than this factor from that of the core's private cache, the count
/// of lines is not robust.
const CLEARLY: f64 = 2.0;

/// Returns the lines that packets of this load fetch from beyond the core's private cache, with `lookups` FIB buckets
/// read per lookup, and whether the count is robust against small differences in size. Assumes that FIB and Content
/// Store are much larger than that cache.
pub(super) fn lines(parameters: &EngineParameters, lookups: f64) -> (ByPacket<f64>, bool) {
    let packet = (frames::data_bytes(parameters) + FRONT_BYTES).div_ceil(LINE_BYTES) as f64;
    let scattered = if parameters.traffic == Traffic::Mixed { SCATTERED } else { 0.0 };
    let admission = if parameters.cs_capacity > 0 { ADMISSION + scattered + packet } else { 0.0 };
    let pending = ENTRY + SLOT + PLACE + if parameters.cs_capacity > 0 { 0.0 } else { REMOVAL };
    let interest_miss = INTEREST_MISS + FURTHER_BUCKET * (lookups - 1.0);
    // Between an Interest and its Data, the lines of all other pending Interests pass through the cache.
    let bytes_between = parameters.in_flight as f64 * (interest_miss + ENTRY + SLOT + admission) * LINE_BYTES as f64;
    let filling = bytes_between / parameters.private_cache_bytes as f64;
    let is_clear = !(1.0 / CLEARLY..CLEARLY).contains(&filling);
    let data = admission + if filling < 1.0 { 0.0 } else { pending };
    (ByPacket { interest_miss, interest_hit: INTEREST_HIT + packet, data }, is_clear)
}

/// Size of entries and cached packets of this load in bytes, without the FIB.
pub(super) fn table_bytes(parameters: &EngineParameters) -> usize {
    let entries = (parameters.in_flight + parameters.cs_capacity) * ENTRY as usize * LINE_BYTES;
    let slots = parameters.in_flight * SLOT as usize * LINE_BYTES;
    entries + slots + parameters.cs_capacity * (frames::data_bytes(parameters) + FRONT_BYTES)
}

#[cfg(test)]
pub(super) mod tests;
