//! Tests of counting, with the CPU's events if available, and with software events on any host.

use namehop_table::{Arena, PageRequest};

use super::*;

/// Work that takes time.
fn work(rounds: u64) -> u64 {
    std::hint::black_box((0..rounds).fold(0, |sum, number| sum ^ std::hint::black_box(number).wrapping_mul(3)))
}

#[test]
fn processors_count_or_say_why_not() {
    match Counters::open(&Events::of_this_processor()) {
        Ok(mut counters) => {
            let mut tally = Tally::default();
            for _ in 0..64 {
                counters.count(&mut tally, 1, || work(100_000)).expect("counted");
            }
            let figures = tally.figures().expect("cycles");
            assert!(figures.instructions > 100_000.0, "{figures:?}");
        }
        Err(reason) => assert!(!reason.to_string().is_empty()),
    }
}

/// Allocates memory that causes at least `PAGES` page faults.
fn touch_new_pages() {
    let area = Arena::<[u64; 8]>::new((PAGES * 4096 / 64) as u32, PageRequest::Ordinary);
    let mut area = area.expect("a buffer");
    while area.allocate().is_some() {}
}

/// Pages of a few KiB.
const PAGES: usize = 64;

/// Counts page faults and time in place of CPU events.
#[test]
fn groups_take_turns_and_kinds_are_kept_apart() {
    let mut counters = Counters::open(&Events::of_the_system()).expect("every kernel supports these events");
    let (mut short, mut long) = (Tally::default(), Tally::default());
    for turn in 0..48 {
        counters.count(&mut short, 100, || work(20_000)).expect("counted");
        // Work of another kind, in step with the number of groups.
        if turn % 3 == 0 {
            counters.count(&mut long, 1, || (touch_new_pages(), work(200_000))).expect("counted");
        }
        // Work that is not counted.
        work(1_000);
    }
    let (short, long) =
        (short.figures().expect("all counter groups ran"), long.figures().expect("all counter groups ran"));
    // "Cycles" are nanoseconds, and "instructions" are page faults.
    assert!(short.cycles > 1.0 && long.cycles > 100.0 * short.cycles, "{short:?} {long:?}");
    assert!(long.instructions >= PAGES as f64 && short.instructions < 1.0, "{short:?} {long:?}");
    // The other groups had their turns: nearly all "slots" are nanoseconds.
    let stages = short.stages.expect("stages");
    assert!(stages.total() > 0.0 && short.backend.is_some() && short.load_stalls.is_some());
    assert_eq!(short.retired_loads, None);
}

#[test]
fn what_was_not_counted_is_not_in_json() {
    let figures = CounterFigures { cycles: 3.0, instructions: 4.0, ..CounterFigures::default() };
    let json = serde_json::to_value(figures).expect("JSON");
    assert_eq!(json, serde_json::json!({"cycles": 3.0, "instructions": 4.0}));
}
