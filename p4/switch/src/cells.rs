//! State of a program besides its tables: counters, registers and meters, each an array of cells.

use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ffi;
use crate::program::Program;

/// Rates of a meter cell, in packets or in bytes, depending on the meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Green rate, per second.
    pub committed_rate: u64,
    /// Green burst size.
    pub committed_burst: u64,
    /// Green and yellow rate, per second.
    pub peak_rate: u64,
    /// Green and yellow burst size.
    pub peak_burst: u64,
}

/// A program while no worker is processing packets with it: see [`crate::Control::between_bursts`].
pub struct Standstill<'p> {
    program: &'p Program,
}

impl<'p> Standstill<'p> {
    /// The caller must hold all engines of the program.
    pub(crate) fn new(program: &'p Program) -> Standstill<'p> {
        Standstill { program }
    }

    /// Calls `work` with the bytes of a register cell. `None` if there is no such cell.
    pub fn register<R>(&mut self, register: usize, index: usize, work: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        let (mut count, mut bytes) = (0, 0);
        // SAFETY: the function takes any index, and sets both numbers.
        let cells = unsafe { (self.program.host.registers)(register, &mut count, &mut bytes) };
        if cells.is_null() || index >= count {
            return None;
        }
        // SAFETY: the array has `count` cells of `bytes` bytes each and lives as long as the program. The holder of
        // `self` holds all engines, so no worker reads or writes them.
        Some(work(unsafe { slice::from_raw_parts_mut(cells.cast::<u8>().add(index * bytes), bytes) }))
    }

    /// Sets the rates of a meter cell; without rates, every packet is green. Returns false if there is no such cell.
    pub fn set_meter(&mut self, meter: usize, index: usize, rates: Option<Rates>) -> bool {
        let rates = rates.map(|rates| ffi::Rates {
            committed_rate: rates.committed_rate,
            committed_burst: rates.committed_burst,
            peak_rate: rates.peak_rate,
            peak_burst: rates.peak_burst,
        });
        let pointer = rates.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the function takes any index; no worker is processing packets, as above.
        unsafe { (self.program.host.meter_set)(meter, index, pointer) }
    }
}

impl Program {
    fn counter_cell(&self, counter: usize, index: usize) -> Option<&[AtomicU64; 2]> {
        let (mut count, mut bytes) = (0, 0);
        // SAFETY: the function takes any index, and sets both numbers.
        let cells = unsafe { (self.host.counters)(counter, &mut count, &mut bytes) };
        if cells.is_null() || index >= count || bytes != size_of::<[AtomicU64; 2]>() {
            return None;
        }
        // SAFETY: the array has `count` cells of this size, lives as long as the program, and each cell consists of two
        // aligned numbers. Workers update each number atomically.
        Some(unsafe { &*cells.cast::<[AtomicU64; 2]>().add(index) })
    }

    /// Packets and bytes counted in a cell of a counter; `None` if there is no such cell.
    pub fn counter(&self, counter: usize, index: usize) -> Option<(u64, u64)> {
        self.counter_cell(counter, index)
            .map(|[packets, bytes]| (packets.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed)))
    }

    /// Sets a cell of a counter. Packets counted at the same moment may be lost from the count. Returns false if there
    /// is no such cell.
    pub fn set_counter(&self, counter: usize, index: usize, packets: u64, bytes: u64) -> bool {
        let Some(cell) = self.counter_cell(counter, index) else { return false };
        cell[0].store(packets, Ordering::Relaxed);
        cell[1].store(bytes, Ordering::Relaxed);
        true
    }
}
