//! Hardware counters: where cycles go, by the top-down method of Yasin (ISPASS 2014).
//!
//! Counters are read through Linux's perf_event, for the calling thread in user mode. One group of events counts at a time,
//! one that fits into the processor's counters: it is switched on in front of a piece of work and off behind it, each by a
//! system call, and then read by one `read`. So there is nothing in between but the work itself, and the kernel, which is not
//! counted, need not share out counters. (Reading them by the instruction RDPMC would be faster, but what a read takes
//! does not matter outside of the work; and many systems forbid it.) Groups take turns.
//!
//! | file | what |
//! |---|---|
//! | `events` | what to count on which processor, and what counts mean |
//! | `linux` | groups of events that count together, and their readings |
//! | `tally` | sums and means |
//!
//! Many machines have none to offer, above
//! all virtual ones; [`Counters::open`] then says why, and whoever asked leaves the columns out. Stages of the pipeline
//! and load levels are known for Intel's server cores from Broadwell to Emerald Rapids; elsewhere only cycles and
//! instructions are counted.

mod events;
#[cfg(target_os = "linux")]
mod linux;
mod tally;

use std::io;

use namehop_model::pipeline::{BackendCycles, LoadLevels, StageCycles};
use serde::Serialize;

pub use events::Events;
pub use tally::Tally;

/// Why nothing can be counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountersUnavailable {
    /// The processor's counters are not there; usual in virtual machines.
    #[error("this machine offers no hardware counters (usual in virtual machines)")]
    NoHardwareCounters,
    /// They are there, but not for this user.
    #[error("hardware counters are not permitted: as root, set /proc/sys/kernel/perf_event_paranoid to 2 or less")]
    NotPermitted,
    /// There is no perf_event.
    #[error("hardware counters are read through Linux's perf_event only")]
    UnsupportedSystem,
    /// Something else.
    #[error("hardware counters could not be opened: {0}")]
    System(String),
}

/// What was counted, for one of several equal things.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct CounterFigures {
    /// Cycles that the core was not halted.
    pub cycles: f64,
    /// Instructions retired.
    pub instructions: f64,
    /// Cycles by stage of the pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<StageCycles>,
    /// Backend stalls by unit, in cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendCycles>,
    /// Stalls of the load units by where the data came from, in cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_stalls: Option<LoadLevels>,
    /// Loads retired, by where the data came from. Loads of a line already on its way count nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retired_loads: Option<LoadLevels>,
}

/// The calling thread's counters.
#[cfg_attr(not(target_os = "linux"), derive(Debug))]
pub struct Counters {
    #[cfg(target_os = "linux")]
    groups: linux::Groups,
}

impl Counters {
    /// Opens them, stopped.
    #[cfg(target_os = "linux")]
    pub fn open(events: &Events) -> Result<Self, CountersUnavailable> {
        Ok(Counters { groups: linux::Groups::open(events)? })
    }

    /// Opens them, stopped.
    #[cfg(not(target_os = "linux"))]
    pub fn open(_events: &Events) -> Result<Self, CountersUnavailable> {
        Err(CountersUnavailable::UnsupportedSystem)
    }

    /// Counts what `work` does for `things` equal things, into their tally.
    #[cfg(target_os = "linux")]
    pub fn count<R>(&mut self, tally: &mut Tally, things: usize, work: impl FnOnce() -> R) -> io::Result<R> {
        self.groups.count(tally, things, work)
    }

    /// Counts what `work` does for `things` equal things, into their tally.
    #[cfg(not(target_os = "linux"))]
    pub fn count<R>(&mut self, _tally: &mut Tally, _things: usize, work: impl FnOnce() -> R) -> io::Result<R> {
        Ok(work())
    }
}

#[cfg(test)]
mod tests;
