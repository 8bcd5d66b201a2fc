//! The schedule of a burst: how far and how deep the prefetch plane runs ahead of the execution plane.
//!
//! The execution plane (`pipelines`) handles one packet after another and decides everything. The prefetch plane reads
//! packets that are still to come, hashes their names, and prefetches the memory they will need. It changes nothing
//! that the execution plane could observe. So any order of its steps gives the same output for the same input, and
//! differs only in time.
//!
//! [`Engine::process`](crate::Engine::process) takes a burst through these steps, in groups of packets, each group one
//! stage behind the previous one. Measurements arrange the same steps in other orders:
//!
//! | step | what |
//! |---|---|
//! | [`Engine::begin_burst`](crate::Engine::begin_burst) | due timers, and all else that is due before packets |
//! | [`part_of`] | dividing a burst into parts of at most [`MAX_BURST`] packets, each of which passes the next steps |
//! | [`BurstState::parse`] | decoding |
//! | [`BurstState::look_ahead`] | the next two steps as the router does them |
//! | [`BurstState::hash_names`] | hashing the names of a group in SIMD lanes |
//! | [`BurstState::prefetch_buckets`] | first step: buckets of the names |
//! | [`BurstState::prefetch_named_entries`] | first step: entries in PIT tokens, and packets to be copied |
//! | [`BurstState::prefetch_entries`] | second step: what the buckets point to |
//! | [`BurstState::prefetch_contents`] | third step: what the entries point to |
//! | [`Engine::handle`](crate::Engine::handle) | the pipelines of one packet |
//! | [`Engine::end_burst`](crate::Engine::end_burst) | ends the burst |
//!
//! [`Engine::in_stages`](crate::Engine::in_stages) is the arrangement of the steps from hashing to handling.
//!
//! | file | what |
//! |---|---|
//! | `name_limits` | limits on names before packets are handled |
//! | `prefetch` | the steps of the prefetch plane |
//! | `lookahead` | the size of a group |
//! | `run` | the order of the steps; the choice of a packet's pipeline |
//! | `due_work` | what is due at a time rather than for a packet |

mod due_work;
mod lookahead;
mod name_limits;
mod prefetch;
mod run;

pub use crate::burst::{BurstState, Group, MAX_LOOKAHEAD, Prepared};
pub use crate::parse::{MAX_BURST, ParsedKind};
pub use crate::pcct::prefetch::Forecast;
pub use lookahead::lookahead_for;
pub use name_limits::NameLimits;
pub use prefetch::FibTags;

/// Returns the number of packets of the first part of a burst with this number of packets, which is not 0. Parts have
/// at most [`MAX_BURST`] packets, and equal size: a few remaining packets would wait for memory without other work.
#[inline]
pub fn part_of(burst: usize) -> usize {
    burst.div_ceil(burst.div_ceil(MAX_BURST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_burst_have_equal_size() {
        for (burst, part) in [(1, 1), (128, 128), (129, 65), (256, 128), (257, 86)] {
            assert_eq!(part_of(burst), part, "{burst} packets");
        }
    }
}
