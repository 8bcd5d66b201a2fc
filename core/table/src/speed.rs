//! Memory speed of this host, measured in about 20 ms with 5 MiB.
//!
//! An area that exceeds every last-level cache takes hundreds of mebibytes and the time to touch them. Here the lines
//! of a small area are flushed from all caches instead, so that reading them again goes to memory. The pages are
//! ordinary ones; huge pages reserved for tables are not used.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::walk::{MAX_IN_FLIGHT, RandomWalk};
use crate::{CacheLines, PageRequest};

/// Lines read in a round.
const LINES: usize = 8_192;
/// Lines of the area per line that is read. More than one, because CPUs prefetch neighbouring lines; and odd, because
/// caches and memory channels interleave by powers of two.
const SPACING: usize = 9;
/// Number of rounds; a disturbance rarely affects all of them.
const ROUNDS: usize = 5;
/// No round starts after this time, on a host that is too busy to be measured well.
const ENOUGH: Duration = Duration::from_millis(40);

/// Time to read cache lines from memory, in one thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemorySpeed {
    /// Nanoseconds to read one line with no other line in flight.
    pub latency_ns: f64,
    /// Nanoseconds per line when as many lines are in flight as the CPU supports.
    pub line_ns: f64,
}

impl MemorySpeed {
    /// Measures the host's memory speed. Frees its memory afterwards. Returns `None` if programs cannot flush the
    /// caches or if there is no memory.
    pub fn measure() -> Option<MemorySpeed> {
        let mut lines = CacheLines::new(LINES * SPACING, PageRequest::Ordinary).ok()?;
        let walk = RandomWalk::link(lines.as_mut_slice(), SPACING);
        let mut best = MemorySpeed { latency_ns: f64::INFINITY, line_ns: f64::INFINITY };
        let began = Instant::now();
        for round in 0..ROUNDS {
            if round > 0 && began.elapsed() > ENOUGH {
                break;
            }
            best.latency_ns = best.latency_ns.min(time_of(&walk, || {
                let last = (0..LINES).fold(0, |line, _| walk.next(line));
                black_box(last);
            })?);
            best.line_ns = best.line_ns.min(time_of(&walk, || {
                walk.sweep(MAX_IN_FLIGHT, 0).run(LINES);
            })?);
        }
        Some(best)
    }

    /// Returns the number of lines in flight at the full rate (by Little's law): the number of the CPU's buffers for
    /// that.
    pub fn lines_in_flight(&self) -> f64 {
        self.latency_ns / self.line_ns
    }
}

/// Returns the nanoseconds per line that `read` takes when no line is cached.
fn time_of(walk: &RandomWalk<'_>, read: impl FnOnce()) -> Option<f64> {
    throw_out(walk)?;
    let began = Instant::now();
    read();
    Some(began.elapsed().as_nanos() as f64 / walk.length() as f64)
}

/// Flushes a walk's lines from all caches. Returns `None` where programs cannot do that.
#[cfg(target_arch = "x86_64")]
fn throw_out(walk: &RandomWalk<'_>) -> Option<()> {
    use std::arch::x86_64::{_mm_clflush, _mm_mfence};
    for line in walk.linked() {
        // SAFETY: needs SSE2, which every x86-64 CPU has, and changes no memory.
        unsafe { _mm_clflush(std::ptr::from_ref(line).cast()) };
    }
    // SAFETY: as above.
    unsafe { _mm_mfence() };
    Some(())
}

/// Does the same on aarch64; Linux permits programs to do it.
#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
fn throw_out(walk: &RandomWalk<'_>) -> Option<()> {
    for line in walk.linked() {
        // SAFETY: writes the line back and drops it from the caches; the address is mapped and no memory changes.
        unsafe { std::arch::asm!("dc civac, {}", in(reg) std::ptr::from_ref(line), options(nostack, preserves_flags)) };
    }
    // SAFETY: a barrier.
    unsafe { std::arch::asm!("dsb ish", options(nostack, preserves_flags)) };
    Some(())
}

#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_os = "linux"))))]
fn throw_out(_walk: &RandomWalk<'_>) -> Option<()> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CacheLine;

    #[test]
    fn memory_is_slower_than_caches_and_faster_with_prefetch() {
        let measured = MemorySpeed::measure();
        assert!(measured.is_some() || !cfg!(target_arch = "x86_64"), "every x86-64 CPU must allow the measurement");
        let Some(speed) = measured else { return };
        // The fastest memory takes some 50 ns, the third-level cache of a large CPU 20 to 30 ns; emulators are slow.
        assert!((15.0..100_000.0).contains(&speed.latency_ns), "{speed:?}");
        assert!(speed.line_ns > 0.1 && speed.line_ns < speed.latency_ns, "{speed:?}");
        let area_bytes = LINES * SPACING * size_of::<CacheLine>();
        assert!(crate::table_memory().iter().all(|memory| memory.bytes != area_bytes), "the memory must be released");
    }

    #[test]
    fn lines_in_flight_follow_from_both_times() {
        let speed = MemorySpeed { latency_ns: 120.0, line_ns: 8.0 };
        assert!((speed.lines_in_flight() - 15.0).abs() < 1e-9);
    }
}
