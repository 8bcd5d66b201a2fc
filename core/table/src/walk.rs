//! Walks through memory in random order, with a given number of cache lines in flight.
//!
//! The first word of every line holds the number of the next line, in one cycle through all lines; the other words
//! are zero. The code makes no assumption about which level of the memory hierarchy serves a line, or how long that
//! takes.

use crate::CacheLine;
use crate::permutation::{Permutation, mix};
use crate::prefetch::prefetch_read;

/// Maximum number of lines that a [`Sweep`] can have in flight.
pub const MAX_IN_FLIGHT: usize = 64;

/// A power of two of lines, linked in random order.
#[derive(Clone, Copy)]
pub struct RandomWalk<'a> {
    lines: &'a [CacheLine],
    spacing: usize,
    order: Permutation,
}

impl<'a> RandomWalk<'a> {
    /// Links one of every `spacing` lines, up to the largest power of two that fits. The spacing keeps the CPU from
    /// prefetching neighbouring lines by itself.
    ///
    /// # Panics
    /// If fewer than two lines would be linked, or more than 2^32.
    pub fn link(lines: &'a mut [CacheLine], spacing: usize) -> Self {
        let bits = (lines.len() / spacing).max(1).ilog2();
        assert!((1..=32).contains(&bits), "a walk must have 2 to 2^32 lines");
        let count = 1usize << bits;
        let order = Permutation::new(bits, 0x006c_696e_6573);
        let lines = &mut lines[..count * spacing];
        for position in 0..count as u64 {
            lines[order.apply(position) as usize * spacing].0[0] = order.apply(position + 1) * spacing as u64;
        }
        RandomWalk { lines, spacing, order }
    }

    /// Number of linked lines.
    pub fn length(&self) -> usize {
        self.lines.len() / self.spacing
    }

    /// Returns the number of the line at a position in the walk; positions wrap around.
    #[inline(always)]
    pub fn line_at(&self, position: u64) -> u64 {
        self.order.apply(position) * self.spacing as u64
    }

    /// Returns the line after line number `line`; this has to wait for that line.
    #[inline(always)]
    pub fn next(&self, line: u64) -> u64 {
        self.lines[line as usize].0[0]
    }

    /// Prefetches a line.
    #[inline(always)]
    pub fn prefetch(&self, line: u64) {
        prefetch_read(&raw const self.lines[line as usize]);
    }

    /// The linked lines, in the order of their addresses.
    pub fn linked(&self) -> impl Iterator<Item = &'a CacheLine> {
        self.lines.iter().step_by(self.spacing)
    }

    /// Starts a walk in which every line is prefetched `in_flight` lines before it is read. Walks with different
    /// `start` begin far from each other.
    ///
    /// # Panics
    /// If `in_flight` is 0 or more than [`MAX_IN_FLIGHT`].
    pub fn sweep(&self, in_flight: usize, start: u64) -> Sweep<'a> {
        assert!((1..=MAX_IN_FLIGHT).contains(&in_flight), "1 to {MAX_IN_FLIGHT} lines must be in flight");
        let mut sweep = Sweep { walk: *self, ring: [0; MAX_IN_FLIGHT], in_flight, oldest: 0, position: mix(start) };
        for slot in 0..in_flight {
            sweep.request(slot, 0);
        }
        sweep
    }
}

/// A prefetched walk; see [`RandomWalk::sweep`].
pub struct Sweep<'a> {
    walk: RandomWalk<'a>,
    /// Lines that are prefetched and not yet read.
    ring: [u64; MAX_IN_FLIGHT],
    in_flight: usize,
    oldest: usize,
    /// Position in the order of the next line to prefetch.
    position: u64,
}

impl Sweep<'_> {
    #[inline(always)]
    fn request(&mut self, slot: usize, read: u64) {
        self.position = self.position.wrapping_add(1 + read);
        let line = self.walk.line_at(self.position);
        self.ring[slot] = line;
        self.walk.prefetch(line);
    }

    /// Reads `count` lines; returns `count`. Never more than `in_flight` lines are in flight, because what is
    /// prefetched next depends on what was read.
    pub fn run(&mut self, count: usize) -> usize {
        for _ in 0..count {
            let slot = self.oldest;
            // Always zero, but the CPU has to wait for it.
            let read = self.walk.lines[self.ring[slot] as usize].0[1];
            self.request(slot, read);
            self.oldest = if slot + 1 == self.in_flight { 0 } else { slot + 1 };
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_form_one_cycle() {
        for spacing in [1, 4] {
            let mut lines = vec![CacheLine::default(); 3000 * spacing];
            let walk = RandomWalk::link(&mut lines, spacing);
            assert_eq!((walk.length(), walk.linked().count()), (2048, 2048));
            let mut seen = vec![false; 2048];
            let mut at = 0;
            for _ in 0..2048 {
                assert!(!std::mem::replace(&mut seen[at as usize / spacing], true), "line {at} is visited twice");
                assert_eq!(at % spacing as u64, 0);
                at = walk.next(at);
            }
            assert_eq!(at, 0);
        }
    }

    #[test]
    fn a_sweep_reads_each_line_once_in_a_round() {
        let mut lines = vec![CacheLine::default(); 512];
        let walk = RandomWalk::link(&mut lines, 2);
        let mut sweep = walk.sweep(7, 3);
        let mut counts = [0; 512];
        for _ in 0..256 {
            counts[sweep.ring[sweep.oldest] as usize] += 1;
            assert_eq!(sweep.run(1), 1);
        }
        assert!(counts.chunks(2).all(|pair| pair == [1, 0]));
    }
}
