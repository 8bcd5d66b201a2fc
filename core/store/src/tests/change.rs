//! Changes of policy while packets are inserted and evicted.

use proptest::prelude::*;

use super::steps::{Step, Store, steps};
use super::{CAPACITY, SLOTS, choices, parameters, store};
use crate::{Arrival, CachePolicy, Policy, PolicyChoice, Progress};

fn newer(choice: PolicyChoice) -> Policy {
    Policy::of(choice.kind, &parameters(choice)).expect("memory")
}

fn arrival(id: u32) -> Arrival {
    Arrival::fresh(id.into())
}

/// Returns all ids in the order of eviction.
fn drained(policy: &mut Policy) -> Vec<u32> {
    std::iter::from_fn(|| policy.evict()).collect()
}

/// Changes the policy in one step.
fn changed(store: &mut Store, choice: PolicyChoice) {
    store.policy.change_to(newer(choice));
    assert_eq!(store.policy.choice(), choice);
    let Progress::Done(Some(older)) = store.policy.go_on(usize::MAX, arrival) else {
        panic!("the change is not completed")
    };
    assert!(older.is_empty());
}

proptest! {
    /// At each step of a change, one of the policies knows each packet, for all pairs of policies and with events
    /// meanwhile; another change may begin before the first has ended.
    #[test]
    fn no_packet_is_lost_in_a_change(
        before in steps(),
        during in steps(),
        pair in (0..64_usize, 0..64_usize, 0..64_usize),
        portion in 0..4_usize,
    ) {
        let all = choices();
        let [first, second, third] = [pair.0, pair.1, pair.2].map(|at| all[at % all.len()]);
        let mut store = store(first);
        before.iter().for_each(|&step| store.run(step));
        store.policy.change_to(newer(second));
        for (position, &step) in during.iter().enumerate() {
            if position == 7 {
                store.policy.change_to(newer(third));
            }
            store.run(step);
            store.policy.go_on(portion, arrival);
            prop_assert_eq!(store.policy.len(), store.names().len(), "{} {} {}", first, second, third);
            prop_assert!(store.policy.len() <= CAPACITY);
        }
        prop_assert!(matches!(store.policy.go_on(SLOTS, arrival), Progress::Done(_)));
        let expected = if during.len() > 7 { third } else { second };
        prop_assert_eq!(store.policy.choice(), expected);
        let count = store.names().len();
        let mut left = drained(&mut store.policy);
        left.sort_unstable();
        left.dedup();
        prop_assert_eq!(left.len(), count);
        prop_assert!(matches!(store.policy.go_on(1, arrival), Progress::Done(None)), "no change may be in progress");
    }

    /// Packets enter the newer policy in the order in which the older one would have evicted them.
    #[test]
    fn what_would_leave_first_still_does(steps in steps()) {
        let lru: PolicyChoice = "lru".parse().expect("a policy");
        let fifo: PolicyChoice = "fifo".parse().expect("a policy");
        for (from, to) in [(lru, fifo), (fifo, lru)] {
            let mut changing = store(from);
            let mut unchanged = store(from);
            steps.iter().for_each(|&step| changing.run(step));
            steps.iter().for_each(|&step| unchanged.run(step));
            changed(&mut changing, to);
            prop_assert_eq!(drained(&mut changing.policy), drained(&mut unchanged.policy));
        }
    }
}

#[test]
fn what_was_there_before_leaves_ahead_of_what_comes_during_a_change() {
    for choice in choices() {
        let mut store = store("fifo".parse().expect("a policy"));
        (0..CAPACITY as u64).for_each(|name| store.run(Step::request(name)));
        let before = store.names();
        store.policy.change_to(newer(choice));
        // Requested often enough for every admission policy.
        for name in [20, 20, 20, 20, 21, 21, 21, 21] {
            store.run(Step::request(name));
        }
        let names = store.names();
        assert!(names.contains(&20) && names.contains(&21), "{choice}: {names:?}");
        assert_eq!(names.iter().filter(|name| before.contains(name)).count(), CAPACITY - 2, "{choice}");
    }
}
