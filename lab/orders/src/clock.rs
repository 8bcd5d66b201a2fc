//! A clock that measures the blocks of the published packet flow (Takemasa, thesis, Osaka University 2019, figures 3.3,
//! 5.1 and 5.2).
//!
//! The clock is part of the type of the stripped path. With [`Untimed`] it compiles to nothing.

use namehop_table::clock::cycles_in_order;

/// A block of the packet flow. B1 to B13 are the names of the thesis in figures 5.1 and 5.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowBlock {
    /// An Interest is decoded: part of B1. (Receiving it is not part of the engine.)
    InterestDecoding,
    /// All prefixes of the Interest's name are hashed: part of B1.
    InterestHashing,
    /// The cache policy records the requested name and the result of the lookup: B2.
    HistoryUpdate,
    /// The name is looked up in the Content Store: B3.
    StoreLookup,
    /// Cached Data is copied into a packet: B4.
    StoreFetch,
    /// The incoming face is recorded in the PIT: B5.
    PitInsertion,
    /// Longest prefix match: B6.
    FibLookup,
    /// The Interest is handed to its outgoing face: B7.
    InterestTransmission,
    /// Data is decoded: part of B8.
    DataDecoding,
    /// The Data's name is hashed: part of B8.
    DataHashing,
    /// The PIT entry of the Data is looked up: part of B9.
    PitLookup,
    /// The PIT entry is removed: part of B9.
    PitRemoval,
    /// Data is copied into the Content Store, and the memory of its victim is freed: B10.
    StoreInsertion,
    /// Data is handed to its downstream faces: B11.
    DataTransmission,
    /// The cache policy chooses the victim: B12.
    Eviction,
    /// The cache policy decides whether Data is admitted: B13.
    Admission,
}

impl FlowBlock {
    /// All blocks, in the order of their discriminants.
    pub const ALL: [FlowBlock; 16] = [
        FlowBlock::InterestDecoding,
        FlowBlock::InterestHashing,
        FlowBlock::HistoryUpdate,
        FlowBlock::StoreLookup,
        FlowBlock::StoreFetch,
        FlowBlock::PitInsertion,
        FlowBlock::FibLookup,
        FlowBlock::InterestTransmission,
        FlowBlock::DataDecoding,
        FlowBlock::DataHashing,
        FlowBlock::PitLookup,
        FlowBlock::PitRemoval,
        FlowBlock::StoreInsertion,
        FlowBlock::DataTransmission,
        FlowBlock::Eviction,
        FlowBlock::Admission,
    ];
}

/// Divides the processing time of packets among blocks.
pub(crate) trait BlockClock {
    /// Starts a block.
    fn start(&mut self);
    /// Ends `block` and starts the next one.
    fn lap(&mut self, block: FlowBlock);
}

/// A clock that measures nothing and occupies no memory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Untimed;

impl BlockClock for Untimed {
    #[inline(always)]
    fn start(&mut self) {}

    #[inline(always)]
    fn lap(&mut self, _: FlowBlock) {}
}

/// Laps longer than this, in ticks, are counted as interruptions by the operating system. It is some microseconds.
const INTERRUPTION_TICKS: u64 = 20_000;

/// A clock that reads the CPU's time-stamp counter. Each lap waits for all earlier instructions, so blocks do not
/// overlap. They do overlap without a clock, so the sum of all blocks exceeds the time without one.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockTicks {
    last: u64,
    ticks: [u64; FlowBlock::ALL.len()],
    laps: [u64; FlowBlock::ALL.len()],
    interruptions: u64,
}

impl BlockClock for BlockTicks {
    #[inline(always)]
    fn start(&mut self) {
        self.last = cycles_in_order();
    }

    #[inline(always)]
    fn lap(&mut self, block: FlowBlock) {
        let now = cycles_in_order();
        let spent = now.wrapping_sub(self.last);
        if spent <= INTERRUPTION_TICKS {
            self.ticks[block as usize] += spent;
            self.laps[block as usize] += 1;
        } else {
            self.interruptions += 1;
        }
        // Excludes the time of the lines above from all blocks.
        self.last = cycles_in_order();
    }
}

impl BlockTicks {
    /// Returns the ticks of the time-stamp counter in all laps of `block`, and the number of laps. Interruptions are
    /// excluded; the clock's own time in each lap is included.
    pub fn of(&self, block: FlowBlock) -> (u64, u64) {
        (self.ticks[block as usize], self.laps[block as usize])
    }

    /// Returns the ticks and laps measured since `earlier`.
    pub fn since(&self, earlier: &BlockTicks) -> BlockTicks {
        let difference = |now: [u64; FlowBlock::ALL.len()], before: [u64; FlowBlock::ALL.len()]| {
            std::array::from_fn(|block| now[block] - before[block])
        };
        BlockTicks {
            last: self.last,
            ticks: difference(self.ticks, earlier.ticks),
            laps: difference(self.laps, earlier.laps),
            interruptions: self.interruptions - earlier.interruptions,
        }
    }

    /// Returns the number of laps that were excluded as interruptions.
    pub fn interruptions(&self) -> u64 {
        self.interruptions
    }

    /// Returns the ticks of an empty lap, to be subtracted from each measured lap.
    ///
    /// It is the median of the means of several runs. A single lap says little, because some counters advance in steps
    /// as long as the lap (26 ticks on an AMD EPYC of family 26). Interruptions lengthen only few runs.
    pub fn of_empty_lap() -> u64 {
        const RUNS: usize = 101;
        const LAPS: u64 = 100;
        let run = |_| {
            let mut clock = BlockTicks::default();
            clock.start();
            (0..LAPS).for_each(|_| clock.lap(FlowBlock::Admission));
            let (ticks, laps) = clock.of(FlowBlock::Admission);
            (ticks + laps / 2).checked_div(laps).unwrap_or(0)
        };
        let mut means: [u64; RUNS] = std::array::from_fn(run);
        means.sort_unstable();
        means[RUNS / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_are_counted_by_block() {
        let mut clock = BlockTicks::default();
        clock.start();
        clock.lap(FlowBlock::FibLookup);
        clock.lap(FlowBlock::FibLookup);
        clock.lap(FlowBlock::Admission);
        let laps: u64 = FlowBlock::ALL.iter().map(|&block| clock.of(block).1).sum();
        assert_eq!(laps + clock.interruptions(), 3);
        assert!(clock.of(FlowBlock::FibLookup).1 <= 2 && clock.of(FlowBlock::StoreLookup) == (0, 0));
        std::thread::sleep(std::time::Duration::from_millis(1));
        let before = clock.interruptions();
        clock.lap(FlowBlock::Admission);
        assert_eq!(clock.interruptions(), before + 1, "a block of 1 ms must count as an interruption");
    }

    /// Empty laps take what `of_empty_lap` returns, to a few ticks.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn empty_laps_take_what_is_subtracted() {
        let is_close = || {
            let mut clock = BlockTicks::default();
            clock.start();
            (0..10_000).for_each(|_| clock.lap(FlowBlock::Admission));
            let (ticks, laps) = clock.of(FlowBlock::Admission);
            let (mean, subtracted) = (ticks as f64 / laps as f64, BlockTicks::of_empty_lap() as f64);
            (mean - subtracted).abs() < 0.25 * subtracted
        };
        // The machine may be busy, so one of several attempts has to succeed.
        assert!((0..20).any(|_| is_close()));
    }

    #[test]
    fn blocks_are_in_their_own_order() {
        for (place, block) in FlowBlock::ALL.into_iter().enumerate() {
            assert_eq!(block as usize, place);
        }
    }

    #[test]
    fn no_clock_takes_no_room() {
        assert_eq!(size_of::<Untimed>(), 0);
    }
}
