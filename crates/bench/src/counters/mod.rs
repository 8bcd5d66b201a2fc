//! Hardware counters: where cycles go, by the top-down method of Yasin (ISPASS 2014).
//!
//! Counters are read through Linux's perf_event, for the calling thread in user mode. Many machines have none to offer, above
//! all virtual ones; [`Counters::open`] then says why, and whoever asked leaves the columns out. Stages of the pipeline
//! and load levels are known for Intel's server cores from Broadwell to Emerald Rapids; elsewhere only cycles and
//! instructions are counted.

mod events;
#[cfg(target_os = "linux")]
mod linux;

use std::io;

use namehop_model::pipeline::{BackendCycles, LoadLevels, StageCycles};
use serde::Serialize;

/// Why nothing can be counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WhyNot {
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

/// What was counted between start and stop.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct CounterFigures {
    /// Cycles that the core was not halted.
    pub cycles: f64,
    /// Instructions retired.
    pub instructions: f64,
    /// Cycles by stage of the pipeline.
    pub stages: Option<StageCycles>,
    /// Backend stalls by unit, in cycles.
    pub backend: Option<BackendCycles>,
    /// Stalls of the load units by where the data came from, in cycles.
    pub load_stalls: Option<LoadLevels>,
    /// Loads retired, by where the data came from. Loads of a line already on its way count nowhere.
    pub retired_loads: Option<LoadLevels>,
}

impl CounterFigures {
    /// The figures for one of `count` equal things.
    #[must_use]
    pub fn per(&self, count: f64) -> Self {
        let levels = |levels: LoadLevels| LoadLevels {
            l1d: levels.l1d / count,
            l2: levels.l2 / count,
            l3: levels.l3 / count,
            dram: levels.dram / count,
        };
        CounterFigures {
            cycles: self.cycles / count,
            instructions: self.instructions / count,
            stages: self.stages.map(|stages| StageCycles {
                frontend: stages.frontend / count,
                backend: stages.backend / count,
                speculation: stages.speculation / count,
                retirement: stages.retirement / count,
            }),
            backend: self.backend.map(|backend| BackendCycles {
                load: backend.load / count,
                store: backend.store / count,
                core: backend.core / count,
            }),
            load_stalls: self.load_stalls.map(levels),
            retired_loads: self.retired_loads.map(levels),
        }
    }
}

/// The calling thread's counters.
#[cfg_attr(not(target_os = "linux"), derive(Debug))]
pub struct Counters {
    #[cfg(target_os = "linux")]
    groups: linux::Groups,
}

impl Counters {
    /// Opens them, stopped and at zero.
    #[cfg(target_os = "linux")]
    pub fn open() -> Result<Self, WhyNot> {
        Ok(Counters { groups: linux::Groups::open(events::for_this_processor())? })
    }

    /// Opens them, stopped and at zero.
    #[cfg(not(target_os = "linux"))]
    pub fn open() -> Result<Self, WhyNot> {
        Err(WhyNot::UnsupportedSystem)
    }

    /// Counts from zero.
    pub fn start(&mut self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        self.groups.start()?;
        Ok(())
    }

    /// Counts no more, until the next start.
    pub fn stop(&mut self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        self.groups.stop()?;
        Ok(())
    }

    /// What was counted since the last start.
    pub fn read(&mut self) -> io::Result<CounterFigures> {
        #[cfg(target_os = "linux")]
        return Ok(self.groups.read()?.figures());
        #[cfg(not(target_os = "linux"))]
        Ok(CounterFigures::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_count_or_say_why_not() {
        match Counters::open() {
            Ok(mut counters) => {
                counters.start().expect("start");
                std::hint::black_box((0..100_000u64).fold(0, |sum, number| sum ^ number.wrapping_mul(3)));
                counters.stop().expect("stop");
                let figures = counters.read().expect("read");
                assert!(figures.instructions > 1000.0, "{figures:?}");
            }
            Err(reason) => assert!(!reason.to_string().is_empty()),
        }
    }

    #[test]
    fn figures_per_thing() {
        let levels = LoadLevels { l1d: 10.0, l2: 20.0, l3: 30.0, dram: 40.0 };
        let figures = CounterFigures {
            cycles: 100.0,
            instructions: 50.0,
            stages: Some(StageCycles { frontend: 10.0, backend: 20.0, speculation: 30.0, retirement: 40.0 }),
            backend: Some(BackendCycles { load: 10.0, store: 20.0, core: 30.0 }),
            load_stalls: Some(levels),
            retired_loads: None,
        };
        let each = figures.per(10.0);
        assert_eq!((each.cycles, each.instructions), (10.0, 5.0));
        assert_eq!(each.stages.map(|stages| stages.total()), Some(10.0));
        assert_eq!(each.backend.map(|backend| backend.total()), Some(6.0));
        assert_eq!(each.load_stalls.map(|levels| levels.dram), Some(4.0));
        assert_eq!(each.retired_loads, None);
    }
}
