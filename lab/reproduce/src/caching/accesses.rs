//! Memory accesses of cache policies that miss all CPU caches.

use namehop_store::{PolicyKind, lines};

use crate::ReproduceError;
use crate::context::Context;
use crate::published;
use crate::report::{Cell, Column, Report, Row};

/// Thesis 4.2.
pub(crate) fn accesses(_: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let row = |&kind: &PolicyKind| {
        let lines = lines::of(kind);
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
    let difference = "Published are accesses that have to wait for one another, here all lines that an operation touches, of which only \
                      some wait: in LRU's, the note of a packet leads to the block that holds its place; the counters of a name \
                      wait for nothing. The published 16.6 of CLOCK-Pro are from traces of its authors, and how far its hand goes \
                      depends on the requests; its hand here finds a quarter of the packets used. TinyLFU decides on one more packet, the \
                      victim, whose name and counters follow from each other.";
    let limits =
        ["In a store of 100,000 packets of which a quarter was used; the tests of the program count these lines."];
    let conditions = ["counted by the tests of the program, not measured here".to_owned()];
    Ok(Report::new(columns, rows, difference).with_conditions(conditions).with_limits(limits))
}
