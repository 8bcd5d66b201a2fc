//! Memory accesses of cache policies that miss all CPU caches.

use namehop_store::PolicyKind;

use crate::ReproduceError;
use crate::context::Context;
use crate::published;
use crate::report::{Cell, Column, Report, Row};

/// Thesis 4.2.
pub(crate) fn accesses(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let row = |&kind: &PolicyKind| {
        let lines = kind.lines();
        let printed = |of: PolicyKind, value| if kind == of { Cell::Published(value) } else { Cell::Empty };
        Row::new(
            kind.name(),
            [
                printed(PolicyKind::Lru, published::LRU_ACCESSES),
                Cell::Computed(lines.hit),
                printed(PolicyKind::TinyLfu, published::TINYLFU_ACCESSES),
                Cell::Computed(lines.decision),
                printed(PolicyKind::ClockPro, published::CLOCK_PRO_ACCESSES),
                Cell::Computed(lines.eviction),
            ],
        )
    };
    let rows: Vec<Row> = PolicyKind::ALL.iter().map(row).collect();
    let columns = vec![
        Column::published("hit"),
        Column::computed("hit"),
        Column::published("admission"),
        Column::computed("admission"),
        Column::published("eviction"),
        Column::computed("eviction"),
    ];
    let difference = "The published counts are dependent accesses; these are all lines that an operation touches, of \
        which only some depend on others: in LRU, the record of a packet leads to the block with its list position; \
        the counters of a name depend on nothing. The published 16.6 of CLOCK-Pro come from traces of its authors, and \
        the distance that its hand moves depends on the requests; here its hand finds a quarter of the packets used. \
        TinyLFU also examines the victim, whose counters depend on its name.";
    let limits =
        ["For a store of 100,000 packets, of which a quarter was used; the tests of the program count these lines."];
    let conditions = ["counted by the tests of the program, not measured here".to_owned()];
    Ok(Report::new(columns, rows, difference).with_conditions(conditions).with_limits(limits))
}
