//! Cache lines of tables that packets need from memory: what the DRAM floor follows from.
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
use crate::schedule::{ByPacket, EngineParameters};

const LINE_BYTES: usize = 64;
/// Bytes that a cached packet has in front of it: owner and digest.
const FRONT_BYTES: usize = 4 + 32;

/// An Interest that the cache does not answer: one line of the dead nonce list, FIB bucket and FIB entry, PIT-CS bucket; seldom
/// an overflow bucket. Its new PIT entry is one that was given up just before, and still near. Its timer, and what tells whether
/// that still means something, take a part of a line each, beside those of other packets.
const INTEREST_MISS: f64 = 4.3;
/// An Interest that the cache answers, besides the packet: all four lines of its entry, and three of the order of cached Data.
const INTEREST_HIT: f64 = 8.0;
/// The entry of a pending Interest when its Data comes.
const ENTRY: f64 = 4.0;
/// The bucket from which that entry is taken, when the Data does not stay.
const REMOVAL: f64 = 1.0;
/// Data that enters the cache and drives another one out, besides its packet and its Interest's entry: entry and bucket of
/// that one, and a part of a line with notes about the order, in which packets that came together lie side by side. Where
/// hits mix that order there are some more, half a line when every other Interest is a hit.
const ADMISSION: f64 = 5.2;

/// Lines that packets of this workload need from memory. The FIB and the Content Store are taken to be much larger than the
/// core's own cache, and names to be short enough for their entries, as those of the published workload are.
pub(super) fn lines(parameters: &EngineParameters) -> ByPacket<f64> {
    let packet = (frames::data_bytes(parameters) + FRONT_BYTES).div_ceil(LINE_BYTES) as f64;
    let admission = if parameters.cs_capacity > 0 { ADMISSION + packet } else { 0.0 };
    let pending = ENTRY + if parameters.cs_capacity > 0 { 0.0 } else { REMOVAL };
    // Between an Interest and its Data, those of all others that are pending pass through the cache.
    let lines_between = parameters.in_flight as f64 * (INTEREST_MISS + ENTRY + admission);
    // What fills the cache to the last line is driven out by whatever else there is.
    let is_near = lines_between * (LINE_BYTES as f64) < parameters.private_cache_bytes as f64;
    ByPacket {
        interest_miss: INTEREST_MISS,
        interest_hit: INTEREST_HIT + packet,
        data: admission + if is_near { 0.0 } else { pending },
    }
}

#[cfg(test)]
pub(super) mod tests;
