//! Costs of useless prefetches: lines fetched without need, and instructions.

use namehop_model::prefetch::{UselessPrefetches, cycles_in_vain};

use crate::context::{Context, count};
use crate::measured::{lookups, memory};
use crate::published::{self, NAME_COMPONENTS, PREFIX_COMPONENTS};
use crate::report::{Cell, Column, Report, Row};
use crate::{NO_FIGURES, ReproduceError};

/// Components of the shortest prefix of the engine's items. One prefix is as long as names.
const SHORTEST_PREFIX: u32 = 2;

/// ICN'17 6.7 and thesis 4.3.2.
pub(crate) fn overhead(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let (options, runs) = (context.settings.memory, context.settings.runs);
    context.progress("prefetch instructions");
    let instruction = memory::prefetch_instruction(&options, runs)?;
    context.progress("useless bucket lookups");
    let vain_lookup = lookups::vain_lookup(options.time, runs)?;
    let published_useless = UselessPrefetches::of(PREFIX_COMPONENTS, PREFIX_COMPONENTS);
    let useless = UselessPrefetches::of(NAME_COMPONENTS, PREFIX_COMPONENTS);
    let needed_only = UselessPrefetches::of_lengths(SHORTEST_PREFIX..=NAME_COMPONENTS, PREFIX_COMPONENTS);
    let lines = published::LINES_PER_INTEREST;
    let computed = |value: u32| Cell::Computed(f64::from(value));
    let measured = |value| Cell::measured(value, NO_FIGURES);
    let vain_cycles = cycles_in_vain(useless.longer, published::VAIN_LOOKUP_CYCLES.value());
    let rows = vec![
        Row::new("lines fetched by an I-miss", [lines.into(), Cell::Empty, Cell::Empty]),
        Row::new(
            "useless lines, name of 4 components, prefix of 4",
            [published::USELESS_LINES.into(), computed(published_useless.shorter), Cell::Empty],
        ),
        Row::new(
            "  share of the published lines of an I-miss, %",
            [Cell::Empty, Cell::Computed(100.0 * published_useless.share_of(lines.value())), Cell::Empty],
        ),
        Row::new(
            "useless lines, name of 7, prefix of 4, all lengths",
            [Cell::Empty, computed(useless.total()), Cell::Empty],
        ),
        Row::new(
            "  the same, only lengths that hold prefixes (2 to 7)",
            [Cell::Empty, computed(needed_only.total()), Cell::Empty],
        ),
        Row::new(
            "one prefetch instruction, line in cache, cycles (published: fewer than)",
            [published::PREFETCH_CYCLES.into(), Cell::Empty, measured(instruction.cached_cycles)],
        ),
        Row::new(
            "one prefetch instruction, line in DRAM, during other work, cycles (published: fewer than)",
            [published::PREFETCH_CYCLES.into(), Cell::Empty, measured(instruction.dram_cycles)],
        ),
        Row::new(
            "one useless bucket lookup, cycles",
            [published::VAIN_LOOKUP_CYCLES.into(), Cell::Empty, measured(vain_lookup)],
        ),
        Row::new(
            "three useless bucket lookups, cycles (computed: from the published 48 each)",
            [published::VAIN_LOOKUPS_CYCLES.into(), Cell::Computed(vain_cycles), Cell::Empty],
        ),
    ];
    let columns = vec![Column::published(""), Column::computed(""), Column::measured("")];
    let difference = "The published figures are for a prototype that prefetches every length, on another processor. \
        The FIB of the engine's items prefetches only lengths that hold prefixes. Here a bucket lookup compares eight \
        tags at once, in the first-level cache, with many lookups in sequence.";
    let limits = [
        "The cost of prefetching a line from DRAM is the difference of two nearly equal times: values around 0, \
         including negative ones, mean that the prefetch overlaps with the other work and has no measurable cost. \
         Address translation is included where it stalls.",
        "A prefetch stalls when the CPU already has its maximum of outstanding lines; these rows exclude that.",
    ];
    let conditions = [format!(
        "{} of {} ms per figure; median (minimum to maximum), in ticks of the time-stamp counter",
        count(runs.max(1), "run"),
        options.time.as_millis()
    )];
    Ok(Report::new(columns, rows, difference).with_conditions(conditions).with_limits(limits))
}
