//! Policies against plain queues.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const CAPACITY: u32 = 40;

#[derive(Debug, Clone, Copy)]
enum Step {
    Admit(u32),
    Hit(u32),
    Remove(u32),
    Evict,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..CAPACITY).prop_map(Step::Admit),
        3 => (0..CAPACITY).prop_map(Step::Hit),
        1 => (0..CAPACITY).prop_map(Step::Remove),
        1 => Just(Step::Evict),
    ];
    prop::collection::vec(step, 0..400)
}

/// The same policy over a queue: front leaves first.
struct Model {
    kind: PolicyKind,
    order: VecDeque<u32>,
}

impl Model {
    fn take(&mut self, id: u32) -> bool {
        match self.order.iter().position(|&other| other == id) {
            Some(position) => self.order.remove(position).is_some(),
            None => false,
        }
    }

    fn apply(&mut self, step: Step) -> Option<u32> {
        match step {
            Step::Admit(id) => {
                self.take(id);
                self.order.push_back(id);
            }
            Step::Hit(id) => {
                if self.kind == PolicyKind::Lru && self.take(id) {
                    self.order.push_back(id);
                }
            }
            Step::Remove(id) => {
                self.take(id);
            }
            Step::Evict => return self.order.pop_front(),
        }
        None
    }
}

fn apply(policy: &mut Policy, step: Step) -> Option<u32> {
    match step {
        // What is there already leaves before it enters.
        Step::Admit(id) => {
            policy.removed(id);
            policy.admitted(id);
        }
        Step::Hit(id) => policy.hit(id),
        Step::Remove(id) => policy.removed(id),
        Step::Evict => {
            let victim = policy.victim()?;
            policy.removed(victim);
            return Some(victim);
        }
    }
    None
}

proptest! {
    #[test]
    fn policies_order_like_queues(steps in steps()) {
        for &kind in PolicyKind::ALL {
            let mut policy = Policy::new(kind, CAPACITY as usize).expect("memory");
            let mut model = Model { kind, order: VecDeque::new() };
            for &step in &steps {
                prop_assert_eq!(apply(&mut policy, step), model.apply(step));
                prop_assert_eq!(policy.len(), model.order.len());
                prop_assert_eq!(policy.victim(), model.order.front().copied());
                let mut ahead = Ahead::default();
                let upcoming: Vec<u32> = std::iter::from_fn(|| policy.upcoming(&mut ahead)).collect();
                prop_assert!(upcoming.iter().eq(&model.order));
            }
            let mut rest = Vec::new();
            while let Some(victim) = apply(&mut policy, Step::Evict) {
                rest.push(victim);
            }
            prop_assert_eq!(rest, Vec::from(model.order));
            prop_assert!(policy.is_empty());
        }
    }
}

proptest! {
    /// Whatever happened since the look ahead began, it ends and names packets of the store's numbers only.
    #[test]
    fn an_outdated_look_ahead_does_no_harm(before in steps(), after in steps(), passed in 0..50_usize) {
        for &kind in PolicyKind::ALL {
            let mut policy = Policy::new(kind, CAPACITY as usize).expect("memory");
            for &step in &before {
                apply(&mut policy, step);
            }
            let mut ahead = Ahead::default();
            for _ in 0..passed {
                policy.upcoming(&mut ahead);
            }
            for id in [0, CAPACITY, u32::MAX] {
                policy.prefetch(id);
                policy.prefetch_hit(id);
            }
            for &step in &after {
                apply(&mut policy, step);
            }
            let rest: Vec<u32> = std::iter::from_fn(|| policy.upcoming(&mut ahead)).collect();
            prop_assert!(rest.len() <= CAPACITY as usize && rest.iter().all(|&id| id < CAPACITY), "{rest:?}");
        }
    }
}

#[test]
fn a_store_without_room_has_no_victim() {
    for &kind in PolicyKind::ALL {
        assert_eq!(Policy::new(kind, 0).expect("memory").victim(), None);
    }
}

#[test]
fn too_many_packets_are_refused() {
    for &kind in PolicyKind::ALL {
        assert!(Policy::new(kind, usize::MAX).is_err());
    }
}

#[test]
fn names_read_back() {
    for &kind in PolicyKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
        assert_eq!(kind.name().to_uppercase().parse(), Ok(kind));
        assert_eq!(Policy::new(kind, 1).expect("memory").kind(), kind);
    }
    let error = "arc".parse::<PolicyKind>().expect_err("no such policy");
    assert_eq!(error.to_string(), "unknown content store policy 'arc', expected 'lru' or 'fifo'");
}
