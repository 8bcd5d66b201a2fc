//! The size of a group in the burst schedule, chosen for the memory of the host.

use namehop_table::MemorySpeed;

use super::MAX_LOOKAHEAD;

/// Cache lines that an Interest needs in the first step, for which nothing was prefetched: its buckets in FIB, PIT-CS
/// composite table and dead nonce list.
const LINES_OF_STEP: f64 = 3.0;
/// Minimum time in nanoseconds to handle a packet without stalls.
const PACKET_NS: f64 = 100.0;
/// Minimum size of a group. The names of a group are hashed together and its addresses translated together, and both
/// are faster for several packets: with 32 instead of 8, packets take 3 to 5 % less time.
const LEAST: f64 = 32.0;

/// Returns the packets of a group for memory of this speed, from 1 to [`MAX_LOOKAHEAD`].
///
/// A group requests `LINES_OF_STEP` lines per packet at once. The CPU has buffers for [`MemorySpeed::lines_in_flight`]
/// lines in flight; further requests wait for a buffer, and fewer requests leave memory idle. So a group has
///
/// ```text
/// lines_in_flight / LINES_OF_STEP                 packets, rounded down,
/// ```
///
/// but at least enough that handling a group takes as long as fetching the lines of the next one:
///
/// ```text
/// latency_ns / PACKET_NS                          packets, rounded up,
/// ```
///
/// and never fewer than `LEAST`.
pub fn lookahead_for(memory: &MemorySpeed) -> usize {
    let fill = (memory.lines_in_flight() / LINES_OF_STEP).floor();
    let cover = (memory.latency_ns / PACKET_NS).ceil();
    // The conversion saturates, and turns NaN into 0.
    (fill.max(cover).max(LEAST) as usize).min(MAX_LOOKAHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_fill_the_buffers_and_cover_the_latency() {
        for (latency_ns, line_ns, packets, what) in [
            (124.0, 7.8, 32, "a server CPU: 16 lines in flight"),
            (90.0, 0.8, 37, "a CPU with very many line fill buffers"),
            (95.0, 95.0, 32, "one line at a time, at low latency"),
            (4_150.0, 1_000.0, 42, "far memory: four lines in flight, but the latency must be covered"),
            (50.0, 0.1, 64, "at most a burst"),
            (1e9, 1.0, 64, "an emulator"),
            (0.0, 0.0, 32, "no latency"),
            (f64::INFINITY, f64::INFINITY, 64, "infinite latency"),
        ] {
            assert_eq!(lookahead_for(&MemorySpeed { latency_ns, line_ns }), packets, "{what}");
        }
    }

    #[test]
    fn this_machine_gets_a_sane_number() {
        if let Some(memory) = MemorySpeed::measure() {
            let packets = lookahead_for(&memory);
            assert!((LEAST as usize..=MAX_LOOKAHEAD).contains(&packets), "{packets} for {memory:?}");
        }
    }
}
