//! Tests of the entries that are moved and divided for various loads and stores.

use namehop_hash::DispatchKey;
use namehop_wire::Name;

use super::super::tests::{data, interest, name};
use super::*;

const SECOND: u64 = 1_000_000_000;

/// Returns names of different entries that all belong to worker 0.
fn names_of_one_worker(dispatch: &NameDispatch, count: usize) -> Vec<Name> {
    let names = (0..).map(|number| name(&format!("/a/n{number}")));
    let is_of_first = |name: &Name| dispatch.entry_of(name.value()).is_some_and(|(_, owner)| owner == 0);
    names.filter(is_of_first).take(count).collect()
}

/// Measures, plans and moves. Returns the number of entries changed.
fn step(balancer: &mut Balancer, now: Timestamp, dispatch: &NameDispatch) -> usize {
    balancer.measure(now, dispatch);
    let plan = balancer.plan(dispatch, &[]);
    balancer.carry_out(now, dispatch, &plan)
}

fn load(dispatch: &NameDispatch, names: &[Name], samples: usize) {
    for name in names {
        (0..samples).for_each(|_| dispatch.note_load(&interest(name)));
    }
}

fn owners(dispatch: &NameDispatch, names: &[Name]) -> Vec<usize> {
    let mut counts = vec![0; dispatch.workers()];
    for name in names {
        counts[usize::from(dispatch.entry_of(name.value()).expect("a name").1)] += 1;
    }
    counts
}

#[test]
fn the_load_of_one_worker_is_shared_and_then_left_alone() {
    let dispatch = NameDispatch::new(4, 2, DispatchKey::new(1, 2));
    let names = names_of_one_worker(&dispatch, 40);
    let mut balancer = Balancer::default();
    load(&dispatch, &names, 100);
    assert!(step(&mut balancer, Timestamp(1), &dispatch) > 20);
    let after = owners(&dispatch, &names);
    assert!(after.iter().all(|&count| (8..=12).contains(&count)), "{after:?}");
    load(&dispatch, &names, 100);
    assert_eq!(step(&mut balancer, Timestamp(SECOND), &dispatch), 0);
    // Former owners are removed at the end of the grace period, and not earlier.
    let has_former = |name: &Name| dispatch.forget_former_owner(dispatch.entry_of(name.value()).expect("a name").0);
    step(&mut balancer, Timestamp(GRACE_NS), &dispatch);
    assert!(names.iter().any(has_former));
    step(&mut balancer, Timestamp(GRACE_NS + 1), &dispatch);
    assert!(!names.iter().any(has_former));
}

#[test]
fn little_load_changes_nothing() {
    let dispatch = NameDispatch::new(2, 2, DispatchKey::new(1, 2));
    let names = names_of_one_worker(&dispatch, 9);
    let mut balancer = Balancer::default();
    load(&dispatch, &names, 100);
    assert_eq!(step(&mut balancer, Timestamp(1), &dispatch), 0, "too few samples to move entries");
}

/// Names below a prefix.
fn below(prefix: &Name, count: usize) -> Vec<Name> {
    (0..count).map(|number| prefix.clone().append_generic(format!("s{number}"))).collect()
}

#[test]
fn what_comes_beside_a_heavy_prefix_goes_elsewhere_and_then_the_prefix_is_divided() {
    let dispatch = NameDispatch::new(2, 2, DispatchKey::new(1, 2));
    let names = names_of_one_worker(&dispatch, 9);
    let heavy = below(&names[0], 200);
    let mut balancer = Balancer::default();
    let loaded = |balancer: &mut Balancer, now| {
        load(&dispatch, &heavy, 50);
        load(&dispatch, &names[1..], 10);
        step(balancer, Timestamp(now), &dispatch)
    };
    assert_eq!(loaded(&mut balancer, 1), 9, "all other entries must be moved, and the heavy one divided");
    assert_eq!(owners(&dispatch, &names), [1, 8]);
    let halves = owners(&dispatch, &heavy);
    assert!(halves.iter().all(|&half| half > 70), "{halves:?}");
    // The loads are balanced now.
    assert_eq!(loaded(&mut balancer, 2), 0);
    let entry = dispatch.entry_of(names[0].value()).expect("a name").0;
    assert!(dispatch.is_divided(entry));
    // A divided entry stays divided after its grace period.
    step(&mut balancer, Timestamp(GRACE_NS + 3), &dispatch);
    assert!(dispatch.is_divided(entry));
    assert_eq!(owners(&dispatch, &heavy), halves);
    assert_eq!(dispatch.exceptions.count.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn one_heavy_name_is_divided_once_and_left_alone() {
    let dispatch = NameDispatch::new(2, 2, DispatchKey::new(1, 2));
    let names = names_of_one_worker(&dispatch, 1);
    let mut balancer = Balancer::default();
    let steps: Vec<usize> = (1..5)
        .map(|now| {
            load(&dispatch, &names, 10_000);
            step(&mut balancer, Timestamp(now), &dispatch)
        })
        .collect();
    assert_eq!(steps, [1, 0, 0, 0]);
}

#[test]
fn a_prefix_is_divided_as_deep_as_its_names_need_it() {
    let dispatch = NameDispatch::new(4, 1, DispatchKey::new(1, 2));
    let names = below(&name("/a/b/c/d/e"), 400);
    let mut balancer = Balancer::default();
    for now in 1..10 {
        load(&dispatch, &names, 10);
        step(&mut balancer, Timestamp(now * SECOND), &dispatch);
    }
    let parts = owners(&dispatch, &names);
    assert!(parts.iter().all(|&part| part > 70), "{parts:?}");
}

/// Returns the store use of two workers.
fn stores(of_first: (usize, bool), of_second: (usize, bool)) -> [StoreUse; 2] {
    [of_first, of_second].map(|(packets, is_full)| StoreUse { packets, is_full })
}

fn load_data(dispatch: &NameDispatch, names: &[Name], samples: usize) {
    for name in names {
        (0..samples).for_each(|_| dispatch.note_load(&data(name)));
    }
}

#[test]
fn names_of_a_full_store_go_to_one_that_has_room() {
    let dispatch = NameDispatch::new(2, 2, DispatchKey::new(1, 2));
    let mut balancer = Balancer::default();
    let names = names_of_one_worker(&dispatch, 10);
    let plan = |balancer: &mut Balancer, stores: &[StoreUse], samples| {
        load_data(&dispatch, &names, samples);
        balancer.measure(Timestamp(1), &dispatch);
        balancer.plan(&dispatch, stores)
    };
    let (full, empty) = ((1_000, true), (10, false));
    assert_eq!(plan(&mut balancer, &stores(full, empty), 4), Plan::default(), "too few samples to move entries");
    assert_eq!(plan(&mut balancer, &stores((900, false), empty), 10), Plan::default(), "both stores have room");
    assert_eq!(
        plan(&mut balancer, &stores(full, (501, false)), 10),
        Plan::default(),
        "the second store is filling up already"
    );
    assert_eq!(plan(&mut balancer, &stores(full, full), 10), Plan::default());
    assert_eq!(plan(&mut balancer, &stores(empty, full), 10), Plan::default(), "a full store must not get more names");
    let planned = plan(&mut balancer, &stores(full, empty), 10);
    assert_eq!((planned.moves.len(), planned.divide), (5, None), "{planned:?}");
    assert!(planned.moves.iter().all(|step| step.to == 1));
    assert_eq!(balancer.carry_out(Timestamp(2), &dispatch, &planned), 5);
    assert_eq!(
        plan(&mut balancer, &stores(full, empty), 10),
        Plan::default(),
        "the expected use of the stores is equal now"
    );
}

#[test]
fn a_prefix_that_fills_a_store_alone_is_divided() {
    let dispatch = NameDispatch::new(2, 2, DispatchKey::new(1, 2));
    let mut balancer = Balancer::default();
    let prefixes = names_of_one_worker(&dispatch, 1);
    let names = below(&prefixes[0], 100);
    load_data(&dispatch, &names, 2);
    balancer.measure(Timestamp(1), &dispatch);
    let planned = balancer.plan(&dispatch, &stores((1_000, true), (0, false)));
    let entry = dispatch.entry_of(prefixes[0].value()).expect("a name").0;
    assert_eq!(planned, Plan { moves: Vec::new(), divide: Some(entry) });
}

#[test]
fn stores_are_not_evened_out_at_the_cost_of_loads() {
    let dispatch = NameDispatch::new(2, 2, DispatchKey::new(1, 2));
    let mut balancer = Balancer::default();
    let names = names_of_one_worker(&dispatch, 10);
    let others: Vec<Name> = {
        let names = (0..).map(|number| name(&format!("/b/n{number}")));
        let is_of_second = |name: &Name| dispatch.entry_of(name.value()).is_some_and(|(_, owner)| owner == 1);
        names.filter(is_of_second).take(10).collect()
    };
    // The second worker has as many packets, but no Data: its store answers everything.
    load_data(&dispatch, &names, 100);
    load(&dispatch, &others, 110);
    balancer.measure(Timestamp(1), &dispatch);
    let planned = balancer.plan(&dispatch, &stores((1_000, true), (10, false)));
    assert_eq!(
        (planned.moves.len(), planned.divide),
        (1, None),
        "moving one more would overload the second worker: {planned:?}"
    );
}
