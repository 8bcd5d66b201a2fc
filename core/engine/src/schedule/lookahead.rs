//! How many packets the burst schedule looks at together, so that it suits the machine's memory.

use namehop_table::MemorySpeed;

use super::MAX_LOOKAHEAD;

/// Lines that a packet asks for in the first step, which is the one that nothing was fetched for: an Interest's buckets in
/// FIB, PIT-CS composite table and dead nonce list.
const LINES_OF_STEP: f64 = 3.0;
/// Nanoseconds that a packet takes at least, when it waits for nothing.
const PACKET_NS: f64 = 100.0;
/// The least, where lines do not ask for more. A group's names are hashed together and its addresses translated together,
/// and both go faster when there are some: with 32 instead of 8, packets take 3 to 5 % less time.
const LEAST: f64 = 32.0;

/// Packets of a group for memory of this speed, from 1 to [`MAX_LOOKAHEAD`].
///
/// A group asks for `LINES_OF_STEP` lines per packet at once. The processor has buffers for
/// [`MemorySpeed::lines_in_flight`] lines that are under way; more requests than that wait for each other, and fewer leave
/// memory idle. So a group has
///
/// ```text
/// lines_in_flight / LINES_OF_STEP                 packets, rounded down,
/// ```
///
/// but at least so many that handling a group takes as long as the lines of the next one need to come:
///
/// ```text
/// latency_ns / PACKET_NS                          packets, rounded up,
/// ```
///
/// and never fewer than `LEAST`.
pub fn lookahead_for(memory: &MemorySpeed) -> usize {
    let fill = (memory.lines_in_flight() / LINES_OF_STEP).floor();
    let cover = (memory.latency_ns / PACKET_NS).ceil();
    // The conversion saturates, and makes 0 of what is not a number.
    (fill.max(cover).max(LEAST) as usize).min(MAX_LOOKAHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_fill_the_buffers_and_cover_the_latency() {
        for (latency_ns, line_ns, packets, what) in [
            (124.0, 7.8, 32, "a server processor: 16 lines under way"),
            (90.0, 0.8, 37, "a processor with very many buffers"),
            (95.0, 95.0, 32, "one line at a time, quickly"),
            (4_150.0, 1_000.0, 42, "far memory: four lines under way, but the latency is to be covered"),
            (50.0, 0.1, 64, "never more than a burst"),
            (1e9, 1.0, 64, "an emulator"),
            (0.0, 0.0, 32, "no time at all"),
            (f64::INFINITY, f64::INFINITY, 64, "nothing ever comes"),
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
