//! What useless prefetches cost: lines fetched in vain, and the instructions.

use namehop_bench::memory;
use namehop_model::prefetch::{UselessPrefetches, cycles_in_vain};

use crate::published::{self, NAME_COMPONENTS, PREFIX_COMPONENTS};
use crate::report::{Cell, Report, Row};
use crate::{Context, ReproduceError};

/// ICN'17 6.7 and thesis 4.3.2.
pub(crate) fn overhead(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    context.progress("prefetch instructions");
    let issue = memory::measure_prefetch_issue(&context.settings.memory)?;
    let published_useless = UselessPrefetches::of(PREFIX_COMPONENTS, PREFIX_COMPONENTS);
    let useless = UselessPrefetches::of(NAME_COMPONENTS, PREFIX_COMPONENTS);
    let needed_only = UselessPrefetches::of_lengths([PREFIX_COMPONENTS], PREFIX_COMPONENTS);
    let share = |lines: f64| 100.0 * lines / published::LINES_PER_INTEREST;
    let rows = vec![
        Row::new(
            "lines fetched in vain, name of 4 components, prefix of 4",
            [Cell::Number(published::USELESS_LINES), Cell::Number(f64::from(published_useless.shorter))],
        ),
        Row::new(
            "  share of the lines of an Interest, %",
            [
                Cell::Number(share(published::USELESS_LINES)),
                Cell::Number(100.0 * published_useless.share_of(published::LINES_PER_INTEREST)),
            ],
        ),
        Row::new(
            "lines fetched in vain, name of 7, prefix of 4, all lengths",
            [Cell::Empty, Cell::Number(f64::from(useless.total()))],
        ),
        Row::new(
            "  the same, only lengths that hold prefixes (4)",
            [Cell::Empty, Cell::Number(f64::from(needed_only.total()))],
        ),
        Row::new(
            "one prefetch instruction, line in cache, cycles (published: fewer than)",
            [Cell::Number(published::PREFETCH_CYCLES), Cell::Number(issue.cached_cycles)],
        ),
        Row::new(
            "one prefetch instruction, line in DRAM, cycles (published: fewer than)",
            [Cell::Number(published::PREFETCH_CYCLES), Cell::Number(issue.dram_cycles)],
        ),
        Row::new(
            "three buckets looked at in vain, cycles (48 each as published)",
            [
                Cell::Number(published::VAIN_LOOKUPS_CYCLES),
                Cell::Number(cycles_in_vain(useless.longer, published::VAIN_LOOKUP_CYCLES)),
            ],
        ),
    ];
    let difference = "The published figures are for a prototype that prefetches every length on another processor; here the \
                      instruction was measured on this one, beside other work, and a FIB whose prefixes all have four \
                      components prefetches no other length.";
    Ok(Report::new(&["published", "here"], rows, difference))
}
