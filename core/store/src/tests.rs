//! Compares policies with slow and simple models, in a store like the router's.

mod change;
mod dependent;
pub(crate) mod models;
mod steps;

use proptest::prelude::*;

use self::models::Model;
use self::steps::{Step, Store, steps};
use super::*;

/// Packets in the stores of these tests, and their slots, some of which are always free.
const CAPACITY: usize = 12;
const SLOTS: usize = 15;

fn store(choice: PolicyChoice) -> Store {
    let parameters = Parameters { slots: SLOTS, capacity: CAPACITY, tuning: choice.tuning };
    Store::new(Policy::of(choice.kind, &parameters).expect("memory"), CAPACITY)
}

fn parameters(choice: PolicyChoice) -> Parameters {
    Parameters { slots: SLOTS, capacity: CAPACITY, tuning: choice.tuning }
}

/// Policies with default settings and with others.
fn choices() -> Vec<PolicyChoice> {
    let other = [
        "filter:history=5:threshold=3",
        "tinylfu-clock:sample=3",
        "w-tinylfu-clock:sample=3:window=0.4",
        "s3-fifo:small=0.5:ghosts=0.4:promote=1",
        "w-tinylfu:window=0.4:protected=0.5",
    ];
    let usual = PolicyKind::ALL.iter().copied().map(PolicyChoice::from);
    let mut all: Vec<PolicyChoice> = usual.chain(other.map(|text| text.parse().expect("a policy"))).collect();
    for choice in all.iter_mut().filter(|choice| choice.kind == PolicyKind::Filter) {
        // Enough that no two names share one.
        choice.tuning.counters = Some(1 << 20);
    }
    all
}

proptest! {
    /// After each step the store and the model's store hold the same names.
    #[test]
    fn policies_decide_as_their_models(steps in steps()) {
        for choice in choices() {
            let mut store = store(choice);
            let mut model: Box<dyn Model> = choice.kind.model(&parameters(choice));
            for (position, &step) in steps.iter().enumerate() {
                let decided = store.apply(step);
                model.apply(step, decided);
                prop_assert_eq!(store.names(), model.names(), "{} after step {}, {:?}", choice, position, step);
                prop_assert_eq!(store.policy.len(), store.names().len());
            }
            let mut left = store.names().len();
            while let Some(victim) = store.policy.victim() {
                store.policy.evicted(victim);
                left -= 1;
            }
            prop_assert_eq!(left, 0);
            prop_assert!(store.policy.is_empty());
        }
    }

    /// A look-ahead ends and returns only numbers of the store, even if the store changed after the look-ahead began.
    #[test]
    fn an_outdated_look_ahead_does_no_harm(before in steps(), after in steps(), passed in 0..20_usize) {
        for choice in choices() {
            let mut store = store(choice);
            before.iter().for_each(|&step| store.run(step));
            let mut ahead = Ahead::default();
            for _ in 0..passed {
                store.policy.upcoming(&mut ahead);
            }
            for id in [0, SLOTS as u32, u32::MAX] {
                store.policy.prefetch(id);
                store.policy.prefetch_hit(id);
                store.policy.prefetch_victim(id, id.into());
                store.policy.prefetch_name(id.into());
            }
            after.iter().for_each(|&step| store.run(step));
            let rest: Vec<u32> = std::iter::from_fn(|| store.policy.upcoming(&mut ahead)).collect();
            prop_assert!(rest.len() <= SLOTS && rest.iter().all(|&id| id < SLOTS as u32), "{choice}: {rest:?}");
        }
    }

    /// If the order is known ahead, evictions follow the look-ahead.
    #[test]
    fn evictions_are_predicted(steps in steps()) {
        for kind in [PolicyKind::Lru, PolicyKind::Fifo, PolicyKind::Filter, PolicyKind::PriorityFifo] {
            let mut store = store(kind.into());
            steps.iter().for_each(|&step| store.run(step));
            let mut ahead = Ahead::default();
            let predicted: Vec<u32> = std::iter::from_fn(|| store.policy.upcoming(&mut ahead)).collect();
            let mut evicted = Vec::new();
            while let Some(victim) = store.policy.victim() {
                store.policy.evicted(victim);
                evicted.push(victim);
            }
            prop_assert_eq!(predicted, evicted, "{}", kind);
        }
    }
}

#[test]
fn the_next_victim_is_predicted() {
    for choice in choices() {
        let mut store = store(choice);
        for name in 0..100 {
            store.apply(Step::request(name % 40));
            store.apply(Step::request(name % 7));
            let victim = store.policy.victim();
            let predicted = store.policy.upcoming(&mut Ahead::default());
            // The window's packets lose most comparisons, not all.
            if !matches!(choice.kind, PolicyKind::WTinyLfu | PolicyKind::WTinyLfuClock) {
                assert_eq!(predicted, victim, "{choice}");
            }
        }
    }
}

#[test]
fn random_evictions_are_even() {
    let mut policy = Random::new(&Parameters::new(8, 8)).expect("memory");
    (0..8).for_each(|id| policy.admitted(id, &Arrival::fresh(0)));
    let mut evictions = [0_u32; 8];
    for _ in 0..80_000 {
        let victim = policy.victim().expect("a victim, because the store is not empty");
        assert_eq!(policy.victim(), Some(victim), "the victim must stay the same until it is evicted");
        evictions[victim as usize] += 1;
        policy.evicted(victim);
        policy.admitted(victim, &Arrival::fresh(0));
    }
    // Five standard deviations.
    assert!(evictions.iter().all(|&count| (9_530..10_470).contains(&count)), "{evictions:?}");
}

#[test]
fn a_counter_of_the_filter_stays_right_when_it_is_full() {
    let tuning = Tuning { history: Some(100_000), threshold: 2, ..Tuning::default() };
    let mut filter = Filter::new(&Parameters { slots: 1, capacity: 1, tuning }).expect("memory");
    for _ in 0..100_000 {
        filter.requested(1);
    }
    assert!(filter.admits(1));
    for _ in 0..99_998 {
        filter.requested(2);
    }
    assert!(filter.admits(1) || filter.admits(2));
    for _ in 0..2 {
        filter.requested(2);
    }
    assert!(!filter.admits(1), "none of the recent requests was for this name");
    assert!(filter.admits(2));
}

#[test]
fn a_store_without_room_has_no_victim() {
    for &kind in PolicyKind::ALL {
        assert_eq!(Policy::of(kind, &Parameters::new(0, 0)).expect("memory").victim(), None);
    }
}

#[test]
fn too_many_packets_are_refused() {
    for &kind in PolicyKind::ALL {
        assert!(Policy::of(kind, &Parameters::new(usize::MAX, usize::MAX)).is_err(), "{kind}");
    }
}

#[test]
fn names_read_back() {
    for &kind in PolicyKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
        assert_eq!(kind.name().to_uppercase().parse(), Ok(kind));
        assert_eq!(Policy::of(kind, &Parameters::new(1, 1)).expect("memory").kind(), kind);
    }
    let error = "best".parse::<PolicyKind>().expect_err("the policy is unknown").to_string();
    let [first, .., last] = PolicyKind::ALL else { panic!("several policies") };
    assert!(error.starts_with(&format!("unknown content store policy 'best', expected '{first}', '")), "{error}");
    assert!(error.ends_with(&format!("' or '{last}'")), "{error}");
}

/// One packet that is requested all the time does not keep out packets that are requested more often than the others.
#[test]
fn a_popular_packet_does_not_keep_others_out() {
    for kind in [
        PolicyKind::TinyLfu,
        PolicyKind::TinyLfuRandom,
        PolicyKind::TinyLfuClock,
        PolicyKind::WTinyLfu,
        PolicyKind::WTinyLfuClock,
    ] {
        let mut store = store(kind.into());
        for round in 0..200 {
            // The first packet to enter is also the most requested one.
            store.apply(Step::request(1_000));
            store.apply(Step::request(1_000));
            if round < CAPACITY as u64 {
                store.apply(Step::request(round));
            } else {
                store.apply(Step::request(500));
            }
        }
        assert!(store.names().contains(&1_000) && store.names().contains(&500), "{kind}: {:?}", store.names());
    }
}
