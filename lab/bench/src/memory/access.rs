//! Rate of random cache lines from an area, by number of lines in flight.
//!
//! The size of the area determines which level of the memory hierarchy answers.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use namehop_table::clock::{cycles, cycles_per_second};
use namehop_table::walk::{MAX_IN_FLIGHT, RandomWalk};
use namehop_table::{CacheLine, prefetch::prefetch_read};
use serde::Serialize;

use crate::median::median;

/// Measured numbers of lines in flight.
pub const IN_FLIGHT: [usize; 10] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64];
const _: () = assert!(IN_FLIGHT[IN_FLIGHT.len() - 1] <= MAX_IN_FLIGHT);
/// Lines read between two clock readings: so few that interruptions hit few batches even on a busy host.
const BATCH_LINES: usize = 1 << 12;

/// Lines read sequentially between two clock readings: 1 MiB.
const STRETCH_LINES: usize = 1 << 14;

/// An area with a power-of-two number of lines, linked in random order.
#[derive(Clone, Copy)]
pub struct LinkedArea<'a>(RandomWalk<'a>);

impl<'a> LinkedArea<'a> {
    /// Links the largest power-of-two number of lines.
    ///
    /// # Panics
    /// Panics if there are fewer than two lines or more than 2^32.
    pub fn link(lines: &'a mut [CacheLine]) -> Self {
        LinkedArea(RandomWalk::link(lines, 1))
    }

    /// Nanoseconds per line of one chain, in which each line has the address of the next.
    pub fn dependent_ns(&self, time: Duration) -> f64 {
        1e9 / self.chains_lines_per_second(1, time)
    }

    /// Lines per second of `in_flight` independent chains, walked in turn.
    ///
    /// # Panics
    /// Panics if `in_flight` is not one of [`IN_FLIGHT`].
    pub fn chains_lines_per_second(&self, in_flight: usize, time: Duration) -> f64 {
        match in_flight {
            1 => self.chains::<1>(time),
            2 => self.chains::<2>(time),
            4 => self.chains::<4>(time),
            8 => self.chains::<8>(time),
            12 => self.chains::<12>(time),
            16 => self.chains::<16>(time),
            24 => self.chains::<24>(time),
            32 => self.chains::<32>(time),
            48 => self.chains::<48>(time),
            64 => self.chains::<64>(time),
            other => panic!("{other} lines in flight cannot be measured"),
        }
    }

    /// Lines per second if each line is prefetched `in_flight` lines before it is read.
    ///
    /// # Panics
    /// Panics if `in_flight` is 0 or more than 64.
    pub fn sweep_lines_per_second(&self, in_flight: usize, time: Duration) -> f64 {
        let mut sweep = self.0.sweep(in_flight, 0);
        median_rate(time, || sweep.run(BATCH_LINES))
    }

    /// Lines per second of `threads` threads in total, each sweeping with `in_flight` lines in flight.
    pub fn threads_lines_per_second(&self, threads: usize, in_flight: usize, time: Duration) -> f64 {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 1..threads {
                let stop = &stop;
                let mut sweep = self.0.sweep(in_flight, thread as u64);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        black_box(sweep.run(BATCH_LINES));
                    }
                });
            }
            // Threads share the bandwidth evenly, so the rate of one thread is multiplied.
            let mut sweep = self.0.sweep(in_flight, 0);
            let rate = median_rate(time, || sweep.run(BATCH_LINES)) * threads.max(1) as f64;
            stop.store(true, Ordering::Relaxed);
            rate
        })
    }

    /// Measures the cost of a prefetch instruction to the program that issues it.
    pub fn prefetch_issue(&self, time: Duration) -> PrefetchIssue {
        let near: Vec<&CacheLine> = self.0.linked().take(NEAR_LINES).collect();
        let cached_cycles = cycles_per_second() as f64
            / median_rate(time, || {
                for &line in &near {
                    prefetch_read(black_box(line));
                }
                near.len()
            });
        let mut position = 0;
        let mut batch = |prefetch: bool| {
            let before = cycles();
            for round in 0..WORK_ROUNDS {
                for _ in 0..PREFETCHES_AT_ONCE {
                    position += 1;
                    let line = black_box(self.0.line_at(position));
                    if prefetch {
                        self.0.prefetch(line);
                    }
                }
                black_box(work(round));
            }
            cycles().wrapping_sub(before) as f64
        };
        // Adjacent in time, so that both batches see the host in the same state.
        let mut differences = Vec::new();
        let start = Instant::now();
        while differences.is_empty() || start.elapsed() < time {
            let without = batch(false);
            differences.push((batch(true) - without) / f64::from(PREFETCHES_AT_ONCE) / WORK_ROUNDS as f64);
        }
        PrefetchIssue { cached_cycles, dram_cycles: median(&mut differences) }
    }

    fn chains<const CHAINS: usize>(&self, time: Duration) -> f64 {
        let spacing = (self.0.length() / CHAINS) as u64;
        let mut at: [u64; CHAINS] = std::array::from_fn(|chain| self.0.line_at(chain as u64 * spacing));
        median_rate(time, || {
            for _ in 0..BATCH_LINES / CHAINS {
                for line in &mut at {
                    *line = self.0.next(*line);
                }
            }
            black_box(&at);
            BATCH_LINES / CHAINS * CHAINS
        })
    }
}

/// Cycles per prefetch instruction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PrefetchIssue {
    /// For successive prefetches of lines in the first-level cache.
    pub cached_cycles: f64,
    /// For prefetches of random lines in memory beside other work with free execution slots, without the computation of
    /// their addresses. About 0 if the CPU overlaps prefetch and work; noise can make it negative.
    pub dram_cycles: f64,
}

/// Number of lines that fit into any first-level cache.
const NEAR_LINES: usize = 256;
/// Number of prefetches below the limit of any CPU.
const PREFETCHES_AT_ONCE: u32 = 8;
const WORK_ROUNDS: u64 = 256;

/// Computation without memory accesses in which each step depends on the previous one; longer than one DRAM access.
#[inline(never)]
fn work(seed: u64) -> u64 {
    black_box((0..400).fold(seed, |x, _| x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1))
}

/// Units per second that `batch` completes (it returns their number), over about `time`. Returns the median over
/// batches, which ignores interrupted ones.
fn median_rate(time: Duration, mut batch: impl FnMut() -> usize) -> f64 {
    batch();
    let start = Instant::now();
    let mut last = start;
    let mut rates = Vec::new();
    while rates.is_empty() || last - start < time {
        let done = black_box(batch());
        let now = Instant::now();
        rates.push(done as f64 / (now - last).as_secs_f64());
        last = now;
    }
    median(&mut rates)
}

/// Bytes per second that `threads` threads read in total from `lines`, each sequentially through its own part. Each
/// thread's rate is the median over short stretches, which ignores interruptions.
pub fn sequential_bytes_per_second(lines: &[CacheLine], threads: usize) -> f64 {
    let part = lines.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        let readers: Vec<_> = lines.chunks(part).map(|part| scope.spawn(|| read_through(part))).collect();
        // A reader does not panic.
        readers.into_iter().map(|reader| reader.join().unwrap_or(0.0)).sum()
    })
}

/// Bytes per second of one thread.
fn read_through(lines: &[CacheLine]) -> f64 {
    let rates = lines.chunks(STRETCH_LINES).map(|stretch| {
        let start = Instant::now();
        black_box(stretch.iter().fold(0u64, |sum, line| sum.wrapping_add(line.0[0])));
        size_of_val(stretch) as f64 / start.elapsed().as_secs_f64()
    });
    median(&mut rates.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use namehop_table::{CacheLines, PageRequest};

    use super::*;

    const SHORT: Duration = Duration::from_millis(5);

    fn lines(count: usize) -> CacheLines {
        CacheLines::new(count, PageRequest::Ordinary).expect("memory")
    }

    #[test]
    fn every_way_of_walking_measures_something() {
        let mut lines = lines(1 << 12);
        let area = LinkedArea::link(lines.as_mut_slice());
        assert!(area.dependent_ns(SHORT) > 0.0);
        for in_flight in IN_FLIGHT {
            for rate in [area.chains_lines_per_second(in_flight, SHORT), area.sweep_lines_per_second(in_flight, SHORT)]
            {
                assert!(rate > 0.0 && rate.is_finite(), "{in_flight} in flight: {rate}");
            }
        }
        assert!(area.threads_lines_per_second(2, 8, SHORT) > 0.0);
        assert!(sequential_bytes_per_second(lines.as_slice(), 2) > 0.0);
    }
}
