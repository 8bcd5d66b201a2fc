//! The running program under control: its tables, and cells that may be changed only while no worker uses them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namehop_p4_compile::layout::{Cells, Id};

use crate::Control as Switch;
use crate::cells::{Rates, Standstill};
use crate::program::{Change, Entry, Program, TableError};

/// Register cells that are accessed at a time, while packets wait.
const CELLS_AT_ONCE: u64 = 4096;

/// A running program.
pub struct Live {
    pub program: Arc<Program>,
    pub switch: Switch,
    /// The cells of each meter that have rates; they cannot be read back from the program.
    rates: Mutex<Vec<BTreeMap<u64, Rates>>>,
}

pub(super) fn at(index: u64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

impl Live {
    pub fn new(program: Arc<Program>, switch: Switch, meters: usize) -> Live {
        Live { program, switch, rates: Mutex::new(vec![BTreeMap::new(); meters]) }
    }

    /// The rates of all meters.
    pub fn rates(&self) -> MutexGuard<'_, Vec<BTreeMap<u64, Rates>>> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the rates of meter cells, or removes them. Removing skips cells that have none.
    pub fn set_rates(&self, meter: usize, indices: Range<u64>, rates: Option<Rates>) {
        let mut all = self.rates();
        let Some(known) = all.get_mut(meter) else { return };
        let changed: Vec<u64> = match rates {
            Some(_) => indices.collect(),
            None => known.range(indices).map(|(index, _)| *index).collect(),
        };
        for index in changed {
            self.switch.between_bursts(|standstill| standstill.set_meter(meter, at(index), rates));
            match rates {
                Some(rates) => drop(known.insert(index, rates)),
                None => drop(known.remove(&index)),
            }
        }
    }

    /// Calls `work` for each register cell, some at a time, so that packets do not wait for long.
    pub fn each_register_cell(&self, register: usize, indices: Range<u64>, mut work: impl FnMut(u64, &mut [u8])) {
        let mut next = indices.start;
        while next < indices.end {
            let end = (next + CELLS_AT_ONCE).min(indices.end);
            self.switch.between_bursts(|standstill: &mut Standstill<'_>| {
                for index in next..end {
                    standstill.register(register, at(index), |cell| work(index, cell));
                }
            });
            next = end;
        }
    }

    /// Changes a table. After an error, which names the table, it is unchanged.
    pub fn change(&self, table: usize, change: Change, entry: &Entry) -> Result<(), TableError> {
        self.program.change(table, change, entry)
    }

    /// Sets the action for keys that match no entry.
    pub fn set_default(&self, table: usize, action: u32, data: &[u8]) -> Result<(), TableError> {
        self.program.set_default(table, action, data)
    }

    /// Resets a cell of entries: its counter and its meter's rates.
    pub fn clear_cell(&self, cells: Cells, cell: u32) {
        if let Some(counter) = cells.counter {
            self.program.set_counter(counter.index(), cell as usize, 0, 0);
        }
        if let Some(meter) = cells.meter {
            self.set_rates(meter.index(), u64::from(cell)..u64::from(cell) + 1, None);
        }
    }

    /// Sets the members of a value set, each of `words` words. Returns false if that is not possible.
    pub fn set_members(&self, set: usize, words: usize, rows: &[u64]) -> bool {
        self.program.set_members(set, words, rows)
    }

    /// Waits until no packet is in progress that has seen the tables' previous state.
    pub fn wait(&self) {
        self.switch.between_bursts(|_| ());
    }
}
