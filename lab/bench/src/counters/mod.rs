//! Hardware counters: CPU cycles by pipeline stage, by the top-down method of Yasin (ISPASS 2014).
//!
//! Counters are read through Linux perf_event, for the calling thread in user mode. One group of events, small enough
//! for the CPU's counters, counts at a time; groups take turns. A system call enables the group just before each piece
//! of work, and another one disables it just after; then one `read` returns the counts. So only the work is counted,
//! without the kernel, and the kernel need not multiplex counters. (The instruction RDPMC would be faster. But the time
//! of a read is outside the work, and many systems forbid RDPMC.)
//!
//! | file | what |
//! |---|---|
//! | `events` | events by CPU, and the meaning of their counts |
//! | `linux` | groups of events that count together, and their readings |
//! | `tally` | sums and means |
//!
//! Many hosts offer no counters, above all virtual machines. [`Counters::open`] then returns the reason, and the caller
//! leaves the columns empty. Pipeline stages and load levels are known for Intel's server cores from Broadwell to
//! Emerald Rapids; on other CPUs only cycles and instructions are counted.

mod events;
#[cfg(target_os = "linux")]
mod linux;
mod tally;

use std::io;

use namehop_model::pipeline::{BackendCycles, LoadLevels, StageCycles};
use serde::Serialize;

pub use events::Events;
pub use tally::Tally;

/// Why counters are not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountersUnavailable {
    /// The CPU's counters are not accessible; usual in virtual machines.
    #[error("this host offers no hardware counters (usual in virtual machines)")]
    NoHardwareCounters,
    /// The user lacks the permission.
    #[error("hardware counters are not permitted: as root, set /proc/sys/kernel/perf_event_paranoid to at most 2")]
    NotPermitted,
    /// The system has no perf_event.
    #[error("hardware counters need Linux's perf_event")]
    UnsupportedSystem,
    /// Another error.
    #[error("hardware counters could not be opened: {0}")]
    System(String),
}

/// Mean counts of one unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct CounterFigures {
    /// Unhalted core cycles.
    pub cycles: f64,
    /// Instructions retired.
    pub instructions: f64,
    /// Cycles by stage of the pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<StageCycles>,
    /// Backend stalls by unit, in cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendCycles>,
    /// Load stalls by the level that supplied the data, in cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_stalls: Option<LoadLevels>,
    /// Retired loads by the level that supplied the data. Loads of a line already being fetched are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retired_loads: Option<LoadLevels>,
}

/// Hardware counters of the calling thread.
#[cfg_attr(not(target_os = "linux"), derive(Debug))]
pub struct Counters {
    #[cfg(target_os = "linux")]
    groups: linux::Groups,
}

impl Counters {
    /// Opens the counters, disabled.
    #[cfg(target_os = "linux")]
    pub fn open(events: &Events) -> Result<Self, CountersUnavailable> {
        Ok(Counters { groups: linux::Groups::open(events)? })
    }

    /// Opens the counters, disabled.
    #[cfg(not(target_os = "linux"))]
    pub fn open(_events: &Events) -> Result<Self, CountersUnavailable> {
        Err(CountersUnavailable::UnsupportedSystem)
    }

    /// Runs `work`, and adds the counts of one group to `tally`, as counts of `things` equal units of work.
    #[cfg(target_os = "linux")]
    pub fn count<R>(&mut self, tally: &mut Tally, things: usize, work: impl FnOnce() -> R) -> io::Result<R> {
        self.groups.count(tally, things, work)
    }

    /// Runs `work` without counting.
    #[cfg(not(target_os = "linux"))]
    pub fn count<R>(&mut self, _tally: &mut Tally, _things: usize, work: impl FnOnce() -> R) -> io::Result<R> {
        Ok(work())
    }
}

#[cfg(test)]
mod tests;
