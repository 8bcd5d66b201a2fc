//! CPU cycles by pipeline stage: the top-down method of Yasin, "A top-down method for performance analysis and
//! counters
//! architecture" (ISPASS 2014), as Takemasa et al. (2017) table 1 and Takemasa (2019) tables 3.2 to 3.4 use it.
//!
//! A core can issue a few micro-operations per cycle (its width). Each of these slots is either not supplied by the
//! frontend, not accepted by the backend, spent on a mispredicted path, or retired. Cycles are divided in proportion
//! to slots.

use serde::Serialize;

/// Cycles by stage of the pipeline; table 3.2.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct StageCycles {
    /// Stalls because the frontend supplied no instructions.
    pub frontend: f64,
    /// Stalls because execution units or data were not ready.
    pub backend: f64,
    /// Work discarded after branch mispredictions.
    pub speculation: f64,
    /// Useful work: the cycles without stalls.
    pub retirement: f64,
}

impl StageCycles {
    /// Divides `cycles` in proportion to issue slots.
    pub fn of_slots(cycles: f64, slots: &StageSlots) -> Self {
        let total = slots.frontend + slots.backend + slots.speculation + slots.retirement;
        let share = |slots: f64| if total > 0.0 { cycles * slots / total } else { 0.0 };
        StageCycles {
            frontend: share(slots.frontend),
            backend: share(slots.backend),
            speculation: share(slots.speculation),
            retirement: share(slots.retirement),
        }
    }

    /// All cycles.
    pub fn total(&self) -> f64 {
        self.frontend + self.backend + self.speculation + self.retirement
    }
}

/// Issue slots by outcome. Only ratios matter, so a common factor may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct StageSlots {
    /// Not supplied by the frontend.
    pub frontend: f64,
    /// Not accepted by the backend.
    pub backend: f64,
    /// Issued but not retired, or lost during recovery.
    pub speculation: f64,
    /// Retired.
    pub retirement: f64,
}

/// Counters from which the slots are computed on CPUs that do not count them by stage (Intel before Ice Lake). Yasin
/// (2014), section 3 and appendix 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SlotCounters {
    /// All slots: width times cycles.
    pub total: f64,
    /// Slots that the frontend left empty while the backend could accept micro-operations.
    pub fetch_bubbles: f64,
    /// Micro-operations issued.
    pub issued: f64,
    /// Micro-operations retired.
    pub retired: f64,
    /// Slots lost while recovering from a misprediction: width times recovery cycles.
    pub recovery_bubbles: f64,
}

impl SlotCounters {
    /// Frontend = fetch bubbles; speculation = issued − retired + recovery bubbles; retirement = retired; backend = the
    /// rest.
    pub fn slots(&self) -> StageSlots {
        let speculation = (self.issued - self.retired + self.recovery_bubbles).max(0.0);
        StageSlots {
            frontend: self.fetch_bubbles,
            speculation,
            retirement: self.retired,
            backend: (self.total - self.fetch_bubbles - speculation - self.retired).max(0.0),
        }
    }
}

/// Backend stalls by unit; table 3.3.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct BackendCycles {
    /// Waiting for loads.
    pub load: f64,
    /// Waiting for a free store buffer entry.
    pub store: f64,
    /// Waiting for execution units.
    pub core: f64,
}

impl BackendCycles {
    /// Divides backend stalls in proportion to the execution stalls counted with loads pending (`load_stalls`), with
    /// the store buffer full (`store_stalls`), and in total (`all_stalls`). Yasin (2014), 3.4: stalls that are not
    /// caused by memory belong to the core.
    pub fn of_stalls(backend: f64, load_stalls: f64, store_stalls: f64, all_stalls: f64) -> Self {
        let all = all_stalls.max(load_stalls + store_stalls);
        let share = |stalls: f64| if all > 0.0 { backend * stalls / all } else { 0.0 };
        let (load, store) = (share(load_stalls), share(store_stalls));
        BackendCycles { load, store, core: backend - load - store }
    }

    /// All backend stalls.
    pub fn total(&self) -> f64 {
        self.load + self.store + self.core
    }
}

/// Load stalls, or loads, by the level that supplied the data; tables 3.4 and 3.5.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LoadLevels {
    /// First-level data cache.
    pub l1d: f64,
    /// Second-level cache.
    pub l2: f64,
    /// Third-level cache.
    pub l3: f64,
    /// Memory.
    pub dram: f64,
}

impl LoadLevels {
    /// Divides load stalls by the level that the load waited for. The counters give the stalls while a load had missed
    /// a given level. The stalls of a level are the ones that missed the level before it and not this level. Yasin
    /// (2014), 3.4.1.
    pub fn of_stalls(load: f64, pending: f64, missed_l1d: f64, missed_l2: f64, missed_l3: f64) -> Self {
        let share = |stalls: f64| if pending > 0.0 { load * stalls.max(0.0) / pending } else { 0.0 };
        let (missed_l1d, missed_l2) = (missed_l1d.min(pending), missed_l2.min(pending));
        LoadLevels {
            l1d: share(pending - missed_l1d),
            l2: share(missed_l1d - missed_l2),
            l3: share(missed_l2 - missed_l3),
            dram: share(missed_l3),
        }
    }

    /// All levels together.
    pub fn total(&self) -> f64 {
        self.l1d + self.l2 + self.l3 + self.dram
    }
}

/// How many times longer a load from memory stalls than one from the third level. The top-down method assumes this
/// ratio on CPUs without an event for it. Yasin (2014), 3.4.1, and Intel's metrics for Broadwell.
const MEMORY_WEIGHT: f64 = 7.0;

/// Estimates the stalls after misses of the third level from the stalls after misses of the second (`missed_l2`) and
/// from the numbers of retired loads that hit and missed the third.
pub fn third_level_missed(missed_l2: f64, l3_hits: f64, l3_misses: f64) -> f64 {
    let weighted = MEMORY_WEIGHT * l3_misses;
    if weighted > 0.0 { missed_l2 * weighted / (l3_hits + weighted) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn published_tables_add_up() {
        // Takemasa (2019), tables 3.2, 3.3, 3.4: I-miss, I-hit, Data.
        let stages = [(1470.0, [161.0, 662.0, 161.0, 486.0]), (860.0, [40.0, 359.0, 18.0, 443.0])];
        let stages = stages.into_iter().chain([(565.0, [73.0, 220.0, 42.0, 230.0])]);
        for (total, [frontend, backend, speculation, retirement]) in stages {
            assert_eq!(StageCycles { frontend, backend, speculation, retirement }.total(), total);
        }
        for (total, [load, store, core]) in
            [(662.0, [512.0, 10.0, 140.0]), (359.0, [256.0, 11.0, 92.0]), (220.0, [146.0, 14.0, 60.0])]
        {
            assert_eq!(BackendCycles { load, store, core }.total(), total);
        }
        for (total, [l1d, l2, l3, dram]) in
            [(512.0, [33.0, 0.0, 19.0, 460.0]), (256.0, [66.0, 0.0, 28.0, 162.0]), (146.0, [20.0, 0.0, 32.0, 94.0])]
        {
            assert_eq!(LoadLevels { l1d, l2, l3, dram }.total(), total);
        }
        // "31.3 % of the CPU cycles" of an Interest wait for DRAM.
        assert!((460.0_f64 / 1470.0 - 0.313).abs() < 0.0005);
    }

    #[test]
    fn slots_from_counters() {
        // 1000 cycles of a core that is 4 wide.
        let counters = SlotCounters {
            total: 4000.0,
            fetch_bubbles: 400.0,
            issued: 1500.0,
            retired: 1300.0,
            recovery_bubbles: 40.0,
        };
        let slots = counters.slots();
        assert_eq!(slots, StageSlots { frontend: 400.0, backend: 2060.0, speculation: 240.0, retirement: 1300.0 });
        let cycles = StageCycles::of_slots(1000.0, &slots);
        assert_eq!(cycles, StageCycles { frontend: 100.0, backend: 515.0, speculation: 60.0, retirement: 325.0 });
    }

    #[test]
    fn loads_distinguish_the_third_level_from_memory() {
        assert_eq!(third_level_missed(80.0, 7.0, 9.0), 72.0);
        assert_eq!(third_level_missed(80.0, 0.0, 3.0), 80.0);
        assert_eq!(third_level_missed(80.0, 5.0, 0.0), 0.0);
    }

    #[test]
    fn nothing_counted_gives_nothing() {
        assert_eq!(StageCycles::of_slots(5.0, &StageSlots::default()).total(), 0.0);
        assert_eq!(LoadLevels::of_stalls(5.0, 0.0, 0.0, 0.0, 0.0).total(), 0.0);
        assert_eq!(BackendCycles::of_stalls(5.0, 0.0, 0.0, 0.0).core, 5.0);
    }

    proptest! {
        #[test]
        fn parts_make_up_the_whole(whole in 1.0f64..1e6, parts: [u32; 4]) {
            let [a, b, c, d] = parts.map(|part| f64::from(part) + 1.0);
            let close = |sum: f64| (sum - whole).abs() <= 1e-9 * whole;
            let slots = StageSlots { frontend: a, backend: b, speculation: c, retirement: d };
            prop_assert!(close(StageCycles::of_slots(whole, &slots).total()));
            prop_assert!(close(BackendCycles::of_stalls(whole, a, b, c).total()));
            let levels = LoadLevels::of_stalls(whole, a + b + c + d, b + c + d, c + d, d);
            prop_assert!(close(levels.total()));
        }
    }
}
