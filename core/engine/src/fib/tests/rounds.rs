//! Tests of strategy changes in a table so large that entries are updated in portions, while it changes.

use proptest::prelude::*;

use super::*;

/// More than a change examines by itself.
const ENTRIES: u32 = 9000;
const PARENTS: u32 = 5;

fn parent(number: u32) -> Name {
    name("/round").append_generic([number as u8])
}

fn entry(number: u32) -> Name {
    parent(number % PARENTS).append_generic(number.to_be_bytes())
}

/// Returns the number of entries with another strategy than the longest prefix with a choice has.
fn mistaken(fib: &FibWriter<u32>, reader: &FibReader<u32>) -> usize {
    let choices: Vec<(Name, u32)> = fib.strategies().map(|(name, strategy)| (name.to_owned(), *strategy)).collect();
    let right = |name: &Name| {
        let above = choices.iter().filter(|(prefix, _)| prefix.is_prefix_of(name.as_ref()));
        above.max_by_key(|(prefix, _)| prefix.len()).map(|(_, strategy)| *strategy)
    };
    let wrong = fib.entries().map(|(name, _)| name.to_owned()).filter(|name| {
        let found = *reader.longest_prefix_match(&hashes(name), name.as_ref()).strategy();
        assert_eq!(Some(*fib.effective_strategy(name.as_ref())), right(name));
        Some(found) != right(name)
    });
    wrong.count()
}

#[derive(Debug, Clone)]
enum Step {
    /// At the root of all, at a parent, or at an entry.
    Set(u8, u32),
    Unset(u8, u32),
    Put(u32, u64),
    Remove(u32),
    Settle(usize),
    Quiescent,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0u8..3, 0..ENTRIES).prop_map(|(depth, number)| Step::Set(depth, number)),
        3 => (0u8..3, 0..ENTRIES).prop_map(|(depth, number)| Step::Unset(depth, number)),
        3 => (0..2 * ENTRIES, 0u64..3).prop_map(|(number, cost)| Step::Put(number, cost)),
        2 => (0..ENTRIES).prop_map(Step::Remove),
        2 => (1usize..6000).prop_map(Step::Settle),
        1 => Just(Step::Quiescent),
    ]
}

fn place(depth: u8, number: u32) -> Name {
    match depth {
        0 => name("/round"),
        1 => parent(number % PARENTS),
        _ => entry(number),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn all_entries_follow_the_choices_in_the_end(steps in prop::collection::vec(step(), 1..60)) {
        let mut fib = FibWriter::new(KEY, 0u32).expect("memory");
        for number in 0..ENTRIES {
            fib.add_nexthop(entry(number).as_ref(), FaceId(1), 0).expect("add");
        }
        let mut reader = fib.reader();
        for (strategy, step) in (1..).zip(&steps) {
            match *step {
                Step::Set(depth, number) => fib.set_strategy(place(depth, number).as_ref(), strategy).expect("set"),
                Step::Unset(depth, number) => {
                    fib.unset_strategy(place(depth, number).as_ref()).expect("unset");
                }
                Step::Put(number, cost) => {
                    fib.add_nexthop(entry(number).as_ref(), FaceId(1), cost).expect("add");
                }
                Step::Remove(number) => {
                    fib.remove_nexthop(entry(number).as_ref(), FaceId(1)).expect("remove");
                    fib.reclaim();
                }
                Step::Settle(entries) => {
                    fib.settle_strategies(entries);
                }
                Step::Quiescent => reader.quiescent(),
            }
        }
        // Two rounds settle any number of changes.
        fib.settle_strategies(usize::MAX);
        prop_assert!(fib.settle_strategies(usize::MAX));
        prop_assert_eq!(mistaken(&fib, &reader), 0);
        fib.reclaim();
        reader.quiescent();
        prop_assert_eq!(fib.reclaim(), 0);
        prop_assert_eq!(fib.statistics().strategies, fib.strategies().count());
    }
}

#[test]
fn a_change_is_made_in_portions_and_takes_its_choice_back_when_it_ends() {
    let mut fib = FibWriter::new(KEY, Arc::new(0)).expect("memory");
    for number in 0..ENTRIES {
        fib.add_nexthop(entry(number).as_ref(), FaceId(1), 0).expect("add");
    }
    let strategy = Arc::new(1);
    fib.set_strategy(name("/round").as_ref(), Arc::clone(&strategy)).expect("set");
    assert!(!fib.settle_strategies(1), "the first portion must not be the last");
    fib.unset_strategy(name("/round").as_ref()).expect("unset");
    fib.reclaim();
    assert_eq!(Arc::strong_count(&strategy), 2, "entries may still refer to the strategy");
    while !fib.settle_strategies(1000) {}
    fib.reclaim();
    assert_eq!(Arc::strong_count(&strategy), 1);
    // A choice that is not settled when the FIB is dropped is freed too.
    fib.set_strategy(name("/round").as_ref(), Arc::clone(&strategy)).expect("set");
    fib.unset_strategy(name("/round").as_ref()).expect("unset");
    let reader = fib.reader();
    drop(fib);
    drop(reader);
    assert_eq!(Arc::strong_count(&strategy), 1);
}
