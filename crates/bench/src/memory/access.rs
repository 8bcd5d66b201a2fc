//! Walks through an area in random order, with a given number of cache lines in flight.
//!
//! The first word of every line holds the number of the next line, in one cycle through all lines; the other words are
//! zero. Nothing here knows which level of the memory hierarchy answers; that is a matter of the area's size.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use namehop_table::clock::cycles_per_second;
use namehop_table::{CacheLine, prefetch::prefetch_read};
use serde::Serialize;

use crate::median::median;

use crate::permutation::Permutation;

/// Numbers of lines in flight that are measured.
pub const IN_FLIGHT: [usize; 10] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64];
const MAX_IN_FLIGHT: usize = IN_FLIGHT[IN_FLIGHT.len() - 1];
/// Lines read between two looks at the clock: so few that hardly any batch is interrupted even on a busy machine.
const BATCH_LINES: usize = 1 << 12;

/// Lines read in sequence between two looks at the clock: 1 MiB.
const STRETCH_LINES: usize = 1 << 14;

/// An area of a power of two of lines, linked in random order.
#[derive(Clone, Copy)]
pub struct LinkedArea<'a> {
    lines: &'a [CacheLine],
    order: Permutation,
}

impl<'a> LinkedArea<'a> {
    /// Links the first lines, as many as the largest power of two that there is room for.
    ///
    /// # Panics
    /// If there are fewer than two lines or more than 2^32.
    pub fn link(lines: &'a mut [CacheLine]) -> Self {
        let bits = lines.len().ilog2();
        assert!((1..=32).contains(&bits), "an area has 2 to 2^32 lines");
        let count = 1usize << bits;
        let order = Permutation::new(bits, 0x006c_696e_6573);
        let lines = &mut lines[..count];
        for position in 0..count as u64 {
            lines[order.apply(position) as usize].0[0] = order.apply(position + 1);
        }
        LinkedArea { lines, order }
    }

    /// Nanoseconds per line of one chain: each line's address is in the line before.
    pub fn dependent_ns(&self, time: Duration) -> f64 {
        1e9 / self.chains_lines_per_second(1, time)
    }

    /// Lines per second of `in_flight` independent chains, walked in turn.
    ///
    /// # Panics
    /// If `in_flight` is not one of [`IN_FLIGHT`].
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
            other => panic!("{other} lines in flight are not measured"),
        }
    }

    /// Lines per second when every line is prefetched `in_flight` lines before it is read. No more than that are in
    /// flight: what to prefetch next depends on what was read.
    ///
    /// # Panics
    /// If `in_flight` is 0 or more than 64.
    pub fn sweep_lines_per_second(&self, in_flight: usize, time: Duration) -> f64 {
        let mut sweep = Sweep::new(self, in_flight, 0);
        median_rate(time, || sweep.run(BATCH_LINES))
    }

    /// Lines per second of all `threads` together, each sweeping with `in_flight` lines in flight.
    pub fn threads_lines_per_second(&self, threads: usize, in_flight: usize, time: Duration) -> f64 {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 1..threads {
                let stop = &stop;
                let mut sweep = Sweep::new(self, in_flight, thread as u64);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        black_box(sweep.run(BATCH_LINES));
                    }
                });
            }
            // Threads share what is measured evenly, so one of them stands for all.
            let mut sweep = Sweep::new(self, in_flight, 0);
            let rate = median_rate(time, || sweep.run(BATCH_LINES)) * threads.max(1) as f64;
            stop.store(true, Ordering::Relaxed);
            rate
        })
    }

    /// What a prefetch instruction costs the program that issues it.
    pub fn prefetch_issue(&self, time: Duration) -> PrefetchIssue {
        let cycles_per = |rate: f64| cycles_per_second() as f64 / rate;
        let near = &self.lines[..NEAR_LINES.min(self.lines.len())];
        let cached_cycles = cycles_per(median_rate(time, || {
            for line in near {
                prefetch_read(black_box(line));
            }
            near.len()
        }));
        let alone = cycles_per(median_rate(time, || {
            (0..WORK_ROUNDS).fold(0, |sum, round| work(sum ^ round));
            WORK_ROUNDS as usize
        }));
        let mut position = 0;
        let together = cycles_per(median_rate(time, || {
            for round in 0..WORK_ROUNDS {
                for _ in 0..PREFETCHES_AT_ONCE {
                    position += 1;
                    prefetch_read(&raw const self.lines[self.order.apply(position) as usize]);
                }
                black_box(work(round));
            }
            WORK_ROUNDS as usize
        }));
        let dram_cycles = ((together - alone) / f64::from(PREFETCHES_AT_ONCE)).max(0.0);
        PrefetchIssue { cached_cycles, dram_cycles }
    }

    fn chains<const CHAINS: usize>(&self, time: Duration) -> f64 {
        let spacing = (self.lines.len() / CHAINS) as u64;
        let mut at: [u64; CHAINS] = std::array::from_fn(|chain| self.order.apply(chain as u64 * spacing));
        median_rate(time, || {
            for _ in 0..BATCH_LINES / CHAINS {
                for line in &mut at {
                    *line = self.lines[*line as usize].0[0];
                }
            }
            black_box(&at);
            BATCH_LINES / CHAINS * CHAINS
        })
    }
}

/// Cycles that one prefetch instruction takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PrefetchIssue {
    /// One after the other, of lines in the first-level cache.
    pub cached_cycles: f64,
    /// Added to other work by each of a few prefetches of random lines in memory, their addresses' computation included.
    pub dram_cycles: f64,
}

/// Lines that any first-level cache holds.
const NEAR_LINES: usize = 256;
/// Fewer than any processor can have outstanding.
const PREFETCHES_AT_ONCE: u32 = 8;
const WORK_ROUNDS: u64 = 256;

/// Computation without memory, in which each step waits for the one before: longer than one DRAM access.
#[inline(never)]
fn work(seed: u64) -> u64 {
    black_box((0..400).fold(seed, |x, _| x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1))
}

/// A prefetched walk through random lines.
struct Sweep<'a> {
    area: LinkedArea<'a>,
    /// Lines asked for and not yet read.
    ring: [u32; MAX_IN_FLIGHT],
    in_flight: usize,
    oldest: usize,
    /// Position in the order of the line to ask for next.
    position: u64,
}

impl<'a> Sweep<'a> {
    fn new(area: &LinkedArea<'a>, in_flight: usize, start: u64) -> Self {
        assert!((1..=MAX_IN_FLIGHT).contains(&in_flight), "1 to {MAX_IN_FLIGHT} lines can be in flight");
        // Walks that run side by side start far from each other.
        let position = crate::permutation::mix(start);
        let mut sweep = Sweep { area: *area, ring: [0; MAX_IN_FLIGHT], in_flight, oldest: 0, position };
        for slot in 0..in_flight {
            sweep.ask(slot, 0);
        }
        sweep
    }

    #[inline(always)]
    fn ask(&mut self, slot: usize, read: u64) {
        self.position = self.position.wrapping_add(1 + read);
        let line = self.area.order.apply(self.position) as u32;
        self.ring[slot] = line;
        prefetch_read(&raw const self.area.lines[line as usize]);
    }

    /// Reads `count` lines; returns `count`.
    fn run(&mut self, count: usize) -> usize {
        for _ in 0..count {
            let slot = self.oldest;
            // Always zero, but the processor has to wait for it.
            let read = self.area.lines[self.ring[slot] as usize].0[1];
            self.ask(slot, read);
            self.oldest = if slot + 1 == self.in_flight { 0 } else { slot + 1 };
        }
        count
    }
}

/// Things per second that `batch` does (it says how many it did), over about `time`: the median of all batches, so that
/// those that were interrupted do not count.
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

/// Bytes per second that `threads` together read from `lines`, each going through a part of its own from start to end: the
/// sum of what each of them reads in the median of short stretches, so that interruptions do not count.
pub fn sequential_bytes_per_second(lines: &[CacheLine], threads: usize) -> f64 {
    let part = lines.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        let readers: Vec<_> = lines.chunks(part).map(|part| scope.spawn(|| read_through(part))).collect();
        // A reader does not panic; if it did, it read nothing.
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
    fn the_lines_form_one_cycle() {
        let mut lines = lines(3000);
        let area = LinkedArea::link(lines.as_mut_slice());
        assert_eq!(area.lines.len(), 2048);
        let mut seen = vec![false; 2048];
        let mut at = 0;
        for _ in 0..2048 {
            assert!(!std::mem::replace(&mut seen[at], true), "line {at} twice");
            at = area.lines[at].0[0] as usize;
        }
        assert_eq!(at, 0);
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

    #[test]
    fn a_sweep_reads_each_line_once_in_a_round() {
        let mut lines = lines(256);
        let area = LinkedArea::link(lines.as_mut_slice());
        let mut sweep = Sweep::new(&area, 7, 3);
        let mut counts = [0; 256];
        for _ in 0..256 {
            counts[sweep.ring[sweep.oldest] as usize] += 1;
            sweep.run(1);
        }
        assert_eq!(counts, [1; 256]);
    }
}
