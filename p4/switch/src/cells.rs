//! What a program keeps beside its tables: counters, registers and meters, each a list of cells.

use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ffi;
use crate::program::Program;

/// What a cell of a meter lets pass: packets or bytes, as the meter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// In a second, for green.
    pub committed_rate: u64,
    /// At once.
    pub committed_burst: u64,
    /// In a second, for green and yellow together.
    pub peak_rate: u64,
    /// At once.
    pub peak_burst: u64,
}

/// A program while no worker processes packets with it: see [`crate::Control::between_bursts`].
pub struct Standstill<'p> {
    program: &'p Program,
}

impl<'p> Standstill<'p> {
    /// For whoever has all engines of the program.
    pub(crate) fn new(program: &'p Program) -> Standstill<'p> {
        Standstill { program }
    }

    /// Does something with a cell of a register, as it lies in memory. `None` when there is no such cell.
    pub fn register<R>(&mut self, register: usize, index: usize, work: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        let (mut count, mut bytes) = (0, 0);
        // SAFETY: the function takes any number, and fills both.
        let cells = unsafe { (self.program.host.registers)(register, &mut count, &mut bytes) };
        if cells.is_null() || index >= count {
            return None;
        }
        // SAFETY: so many cells of this size are there, which live as long as the program. Whoever has this has all its engines, so
        // nobody else reads or writes them.
        Some(work(unsafe { slice::from_raw_parts_mut(cells.cast::<u8>().add(index * bytes), bytes) }))
    }

    /// Sets what a cell of a meter lets pass; without rates all of it. False when there is no such cell.
    pub fn set_meter(&mut self, meter: usize, index: usize, rates: Option<Rates>) -> bool {
        let rates = rates.map(|rates| ffi::Rates {
            committed_rate: rates.committed_rate,
            committed_burst: rates.committed_burst,
            peak_rate: rates.peak_rate,
            peak_burst: rates.peak_burst,
        });
        let pointer = rates.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the function takes any numbers; no worker is inside, as above.
        unsafe { (self.program.host.meter_set)(meter, index, pointer) }
    }
}

impl Program {
    fn counter_cell(&self, counter: usize, index: usize) -> Option<&[AtomicU64; 2]> {
        let (mut count, mut bytes) = (0, 0);
        // SAFETY: the function takes any number, and fills both.
        let cells = unsafe { (self.host.counters)(counter, &mut count, &mut bytes) };
        if cells.is_null() || index >= count || bytes != size_of::<[AtomicU64; 2]>() {
            return None;
        }
        // SAFETY: so many cells of this size are there, which live as long as the program and consist of two aligned numbers. Workers add
        // to them as a whole.
        Some(unsafe { &*cells.cast::<[AtomicU64; 2]>().add(index) })
    }

    /// Packets and bytes that a counter has counted in one of its cells; `None` when there is no such cell.
    pub fn counter(&self, counter: usize, index: usize) -> Option<(u64, u64)> {
        self.counter_cell(counter, index)
            .map(|[packets, bytes]| (packets.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed)))
    }

    /// Sets a cell of a counter. What is counted at the same moment may be lost. False when there is no such cell.
    pub fn set_counter(&self, counter: usize, index: usize, packets: u64, bytes: u64) -> bool {
        let Some(cell) = self.counter_cell(counter, index) else { return false };
        cell[0].store(packets, Ordering::Relaxed);
        cell[1].store(bytes, Ordering::Relaxed);
        true
    }
}
