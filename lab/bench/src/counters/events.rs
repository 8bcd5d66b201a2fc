//! Events by CPU model, and the meaning of their counts.
//!
//! Codes are from Intel's published event lists for each generation, in the layout of the x86 event-select registers.

use std::fs;

use namehop_model::pipeline::{BackendCycles, LoadLevels, SlotCounters, StageCycles, StageSlots, third_level_missed};

use super::CounterFigures;

/// An event that can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// Unhalted core cycles, as a generic event of perf_event.
    Cycles,
    /// Retired instructions, as a generic event of perf_event.
    Instructions,
    /// An event by its CPU-specific code.
    Code(u64),
    /// Nanoseconds that the thread ran; a software event, available on any host.
    #[cfg(test)]
    TaskClock,
    /// Page faults; a software event.
    #[cfg(test)]
    PageFaults,
}

/// Encodes an event in perf_event's raw layout.
const fn code(event: u64, unit_mask: u64, counter_mask: u64) -> Event {
    Event::Code(event | unit_mask << 8 | counter_mask << 24)
}

const CYCLES: Event = code(0x3c, 0, 0);
/// Issue slots per cycle on generations without slot counters.
const WIDTH: f64 = 4.0;
/// Issue slots by outcome, from special registers. The first event must lead the group.
const METRICS: [Event; 5] = [
    code(0x00, 0x04, 0), // all slots
    code(0x00, 0x80, 0), // retired
    code(0x00, 0x81, 0), // wrong speculation
    code(0x00, 0x82, 0), // frontend
    code(0x00, 0x83, 0), // backend
];
/// Cycles, slots not delivered, micro-operations issued, slots retired, recovery cycles.
const SLOTS_SKYLAKE: [Event; 5] =
    [CYCLES, code(0x9c, 0x01, 0), code(0x0e, 0x01, 0), code(0xc2, 0x02, 0), code(0x0d, 0x01, 0)];
const SLOTS_BROADWELL: [Event; 5] =
    [CYCLES, code(0x9c, 0x01, 0), code(0x0e, 0x01, 0), code(0xc2, 0x02, 0), code(0x0d, 0x03, 1)];
/// Execution stalls: all; with a load pending; after misses of the first, second and third level; with the store buffer
/// full.
const STALLS_SKYLAKE: [Event; 6] = [
    code(0xa3, 0x04, 4),
    code(0xa3, 0x14, 20),
    code(0xa3, 0x0c, 12),
    code(0xa3, 0x05, 5),
    code(0xa3, 0x06, 6),
    code(0xa6, 0x40, 0),
];
const STALLS_ICE_LAKE: [Event; 6] = [
    code(0xa3, 0x04, 4),
    code(0xa3, 0x14, 20),
    code(0xa3, 0x0c, 12),
    code(0xa3, 0x05, 5),
    code(0xa3, 0x06, 6),
    code(0xa6, 0x40, 2),
];
const STALLS_SAPPHIRE_RAPIDS: [Event; 6] = [
    code(0xa3, 0x04, 4),
    code(0xa6, 0x21, 5),
    code(0x47, 0x03, 3),
    code(0x47, 0x05, 5),
    code(0x47, 0x09, 9),
    code(0xa6, 0x40, 2),
];
/// As for later generations, but Broadwell does not count stalls after misses of the third level.
const STALLS_BROADWELL: [Event; 5] =
    [code(0xa3, 0x04, 4), code(0xa3, 0x06, 6), code(0xa3, 0x0c, 12), code(0xa3, 0x05, 5), code(0xa2, 0x08, 0)];
/// Retired loads that hit the first, second and third level, and that missed the third.
const LOADS: [Event; 4] = [code(0xd1, 0x01, 0), code(0xd1, 0x02, 0), code(0xd1, 0x04, 0), code(0xd1, 0x20, 0)];

/// Method of counting pipeline stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StageEvents {
    /// Special registers.
    Metrics([Event; 5]),
    /// Counts of micro-operations.
    Slots([Event; 5]),
}

/// Method of counting execution stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StallEvents {
    /// Stalls by level of the memory hierarchy.
    ByLevel([Event; 6]),
    /// Third level and memory combined; retired loads separate them.
    ThirdLevelWithMemory([Event; 5]),
}

/// Events of one CPU model, in groups that must count simultaneously.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Events {
    /// Cycles and instructions.
    pub(super) basic: [Event; 2],
    pub(super) stages: Option<StageEvents>,
    pub(super) stalls: Option<StallEvents>,
    pub(super) loads: Option<[Event; 4]>,
}

/// Group of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Basic,
    Metrics,
    Slots,
    Stalls,
    StallsBroadwell,
    Loads,
}

impl Role {
    pub(super) const COUNT: usize = 6;
    /// Maximum number of events in a group.
    pub(super) const MOST_EVENTS: usize = 6;
}

const UNKNOWN: Events = Events { basic: [Event::Cycles, Event::Instructions], stages: None, stalls: None, loads: None };

impl Events {
    /// Returns the events of this host's CPU.
    pub fn of_this_processor() -> Self {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let intel = field("vendor_id").is_some_and(|vendor| vendor == "GenuineIntel");
        let family = field("cpu family").and_then(|number| number.parse().ok());
        let model = field("model").and_then(|number| number.parse().ok());
        match (intel, family, model) {
            (true, Some(6), Some(model)) => for_intel_model(model),
            _ => UNKNOWN,
        }
    }

    /// Software events in place of the CPU's events, so that all code except the CPU's counters can be tested on any
    /// host.
    #[cfg(test)]
    pub(crate) fn of_the_system() -> Self {
        use Event::{PageFaults, TaskClock};
        Events {
            basic: [TaskClock, PageFaults],
            stages: Some(StageEvents::Metrics([TaskClock, TaskClock, PageFaults, PageFaults, PageFaults])),
            stalls: Some(StallEvents::ByLevel([TaskClock, TaskClock, TaskClock, TaskClock, PageFaults, PageFaults])),
            loads: None,
        }
    }

    /// Returns all groups.
    pub(super) fn groups(&self) -> impl Iterator<Item = (Role, &[Event])> {
        let stages = self.stages.as_ref().map(|stages| match stages {
            StageEvents::Metrics(events) => (Role::Metrics, &events[..]),
            StageEvents::Slots(events) => (Role::Slots, &events[..]),
        });
        let stalls = self.stalls.as_ref().map(|stalls| match stalls {
            StallEvents::ByLevel(events) => (Role::Stalls, &events[..]),
            StallEvents::ThirdLevelWithMemory(events) => (Role::StallsBroadwell, &events[..]),
        });
        let loads = self.loads.as_ref().map(|events| (Role::Loads, &events[..]));
        [Some((Role::Basic, &self.basic[..])), stages, stalls, loads].into_iter().flatten()
    }
}

fn for_intel_model(model: u32) -> Events {
    let (stages, stalls) = match model {
        // Broadwell, the CPU of the publications.
        61 | 71 | 79 | 86 => (StageEvents::Slots(SLOTS_BROADWELL), StallEvents::ThirdLevelWithMemory(STALLS_BROADWELL)),
        // Skylake, Cascade Lake and Cooper Lake; Skylake, Kaby Lake, Coffee Lake and Comet Lake.
        85 | 78 | 94 | 142 | 158 | 165 | 166 => {
            (StageEvents::Slots(SLOTS_SKYLAKE), StallEvents::ByLevel(STALLS_SKYLAKE))
        }
        // Ice Lake, Tiger Lake, Rocket Lake.
        106 | 108 | 125 | 126 | 140 | 141 | 167 => {
            (StageEvents::Metrics(METRICS), StallEvents::ByLevel(STALLS_ICE_LAKE))
        }
        // Sapphire Rapids and Emerald Rapids.
        143 | 207 => (StageEvents::Metrics(METRICS), StallEvents::ByLevel(STALLS_SAPPHIRE_RAPIDS)),
        _ => return UNKNOWN,
    };
    Events { stages: Some(stages), stalls: Some(stalls), loads: Some(LOADS), ..UNKNOWN }
}

/// Mean counts of cycles and instructions, and of the other groups of [`Events`], in their order.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Counts {
    pub(super) basic: [f64; 2],
    pub(super) metrics: Option<[f64; 5]>,
    pub(super) slots: Option<[f64; 5]>,
    pub(super) stalls: Option<[f64; 6]>,
    pub(super) stalls_broadwell: Option<[f64; 5]>,
    pub(super) loads: Option<[f64; 4]>,
}

impl Counts {
    /// Computes the figures from the counts.
    pub(super) fn figures(&self) -> CounterFigures {
        let [cycles, instructions] = self.basic;
        let metrics = self.metrics.map(|[_, retirement, speculation, frontend, backend]| StageSlots {
            frontend,
            backend,
            speculation,
            retirement,
        });
        let slots = self.slots.map(|[cycles, fetch_bubbles, issued, retired, recovery]| {
            let (total, recovery_bubbles) = (WIDTH * cycles, WIDTH * recovery);
            SlotCounters { total, fetch_bubbles, issued, retired, recovery_bubbles }.slots()
        });
        let stages = metrics.or(slots).map(|slots| StageCycles::of_slots(cycles, &slots));
        let units = self.stalls.map(|[all, load, .., store]| [all, load, store]);
        let units = units.or(self.stalls_broadwell.map(|[all, load, .., store]| [all, load, store]));
        let backend = stages
            .zip(units)
            .map(|(stages, [all, load, store])| BackendCycles::of_stalls(stages.backend, load, store, all));
        let load_stalls = backend.and_then(|backend| self.load_stalls(backend.load));
        let retired_loads = self.loads.map(|[l1d, l2, l3, dram]| LoadLevels { l1d, l2, l3, dram });
        CounterFigures { cycles, instructions, stages, backend, load_stalls, retired_loads }
    }

    /// Divides the backend cycles that wait for loads by level.
    fn load_stalls(&self, load: f64) -> Option<LoadLevels> {
        match (self.stalls, self.stalls_broadwell, self.loads) {
            (Some([_, pending, l1d, l2, l3, _]), ..) => Some(LoadLevels::of_stalls(load, pending, l1d, l2, l3)),
            (None, Some([_, pending, l1d, l2, _]), Some([.., hits, misses])) => {
                let l3 = third_level_missed(l2, hits, misses);
                Some(LoadLevels::of_stalls(load, pending, l1d, l2, l3))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_have_their_events() {
        assert_eq!(for_intel_model(207).stalls, Some(StallEvents::ByLevel(STALLS_SAPPHIRE_RAPIDS)));
        assert_eq!(for_intel_model(85).stages, Some(StageEvents::Slots(SLOTS_SKYLAKE)));
        assert_eq!(for_intel_model(79).stalls, Some(StallEvents::ThirdLevelWithMemory(STALLS_BROADWELL)));
        assert_eq!(for_intel_model(1), UNKNOWN);
        assert_eq!(code(0xa3, 0x14, 20), Event::Code(0x1400_14a3));
        assert_eq!(METRICS[0], Event::Code(0x0400));
        let groups: Vec<_> = for_intel_model(85).groups().map(|(role, events)| (role, events.len())).collect();
        assert_eq!(groups, [(Role::Basic, 2), (Role::Slots, 5), (Role::Stalls, 6), (Role::Loads, 4)]);
        assert!(groups.len() <= Role::COUNT && groups.iter().all(|&(_, events)| events <= Role::MOST_EVENTS));
    }

    #[test]
    fn counts_of_both_kinds_give_the_same_stages() {
        let basic = [1000.0, 1200.0];
        let slots = Counts { basic, slots: Some([1000.0, 400.0, 1500.0, 1300.0, 10.0]), ..Counts::default() };
        let metrics = Counts { basic, metrics: Some([4000.0, 1300.0, 240.0, 400.0, 2060.0]), ..Counts::default() };
        assert_eq!(slots.figures(), metrics.figures());
        assert_eq!(slots.figures().stages.map(|stages| stages.backend), Some(515.0));
        assert_eq!(slots.figures().backend, None);
    }

    #[test]
    fn stalls_are_divided_by_unit_and_level() {
        let counts = Counts {
            basic: [1000.0, 500.0],
            metrics: Some([6000.0, 1200.0, 600.0, 600.0, 3600.0]),
            stalls: Some([600.0, 450.0, 420.0, 420.0, 400.0, 30.0]),
            loads: Some([322.0, 1.0, 1.0, 4.0]),
            ..Counts::default()
        };
        let figures = counts.figures();
        let backend = figures.backend.expect("backend");
        assert_eq!((backend.load, backend.store, backend.core), (450.0, 30.0, 120.0));
        let levels = figures.load_stalls.expect("levels");
        assert_eq!((levels.l1d, levels.l2, levels.l3, levels.dram), (30.0, 0.0, 20.0, 400.0));
        assert_eq!(figures.retired_loads.map(|loads| loads.total()), Some(328.0));
    }

    /// The counts are chosen to give the published division of an I-miss.
    #[test]
    fn broadwell_tells_the_third_level_from_memory_by_its_loads() {
        let counts = Counts {
            basic: [1470.0, 1500.0],
            slots: Some([1470.0, 644.0, 2588.0, 1944.0, 0.0]),
            stalls_broadwell: Some([662.0, 512.0, 479.0, 479.0, 10.0]),
            loads: Some([322.0, 1.0, 19.0 * 7.0, 460.0]),
            ..Counts::default()
        };
        let figures = counts.figures();
        assert_eq!(figures.stages.map(|stages| (stages.frontend, stages.backend)), Some((161.0, 662.0)));
        assert_eq!(
            figures.backend.map(|backend| (backend.load, backend.store, backend.core)),
            Some((512.0, 10.0, 140.0))
        );
        let levels = figures.load_stalls.expect("levels");
        assert_eq!((levels.l1d, levels.l2), (33.0, 0.0));
        assert!((levels.l3 - 19.0).abs() < 1e-9 && (levels.dram - 460.0).abs() < 1e-9, "{levels:?}");
        // Without retired loads the levels cannot be separated.
        assert_eq!(Counts { loads: None, ..counts }.figures().load_stalls, None);
    }
}
