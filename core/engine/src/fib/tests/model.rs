//! Random sequences of changes, compared after each with a map that looks up every prefix.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// Components of the names: two short ones and one that makes names spill into extension blocks.
const COMPONENTS: [&str; 3] = ["a", "b", "a-component-that-is-so-long-that-two-of-them-do-not-fit"];
const FACES: u32 = 8;

#[derive(Debug, Clone)]
enum Step {
    Add(Name, u32, u64),
    Place(Name, NextHop, Vec<FaceId>),
    Remove(Name, u32),
    Set(Name, Vec<NextHop>),
    AddMany(Vec<(Name, Vec<NextHop>)>),
    RemoveFace(u32),
    SetStrategy(Name, u32),
    UnsetStrategy(Name),
    Quiescent,
    Offline,
    Reclaim,
}

fn any_name() -> impl Strategy<Value = Name> {
    prop::collection::vec(0..COMPONENTS.len(), 0..5)
        .prop_map(|picks| picks.into_iter().fold(Name::default(), |name, pick| name.append_generic(COMPONENTS[pick])))
}

fn any_hop() -> impl Strategy<Value = NextHop> {
    (0..FACES, 0u64..4).prop_map(|(face, cost)| hop(face, cost))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any_name(), any_hop()).prop_map(|(name, hop)| Step::Add(name, hop.face.0, hop.cost)),
        3 => (any_name(), any_hop(), prop::collection::vec((0..FACES).prop_map(FaceId), 0..5))
            .prop_map(|(name, hop, later)| Step::Place(name, hop, later)),
        3 => (any_name(), 0..FACES).prop_map(|(name, face)| Step::Remove(name, face)),
        2 => (any_name(), prop::collection::vec(any_hop(), 0..9)).prop_map(|(name, hops)| Step::Set(name, hops)),
        2 => prop::collection::vec((any_name(), prop::collection::vec(any_hop(), 0..4)), 0..80).prop_map(Step::AddMany),
        1 => (0..FACES).prop_map(Step::RemoveFace),
        4 => (any_name(), any::<u32>()).prop_map(|(name, strategy)| Step::SetStrategy(name, strategy)),
        3 => any_name().prop_map(Step::UnsetStrategy),
        1 => Just(Step::Quiescent),
        1 => Just(Step::Offline),
        1 => Just(Step::Reclaim),
    ]
}

#[derive(Default)]
struct Model {
    /// The next hops of each prefix, in the order in which they got their costs.
    nexthops: BTreeMap<Name, Vec<NextHop>>,
    strategies: BTreeMap<Name, u32>,
}

impl Model {
    fn apply(&mut self, step: &Step) {
        match step {
            Step::Add(name, face, cost) => {
                put(self.nexthops.entry(name.clone()).or_default(), hop(*face, *cost));
            }
            Step::Remove(name, face) => {
                if let Some(hops) = self.nexthops.get_mut(name) {
                    hops.retain(|hop| hop.face.0 != *face);
                }
            }
            Step::Place(name, placed, later) => {
                // The list is sorted after every step, so positions among equal costs are positions in the list.
                let hops = self.nexthops.entry(name.clone()).or_default();
                hops.retain(|hop| hop.face != placed.face);
                hops.sort_by_key(|hop| hop.cost);
                let place = hops
                    .iter()
                    .take_while(|hop| hop.cost < placed.cost || hop.cost == placed.cost && !later.contains(&hop.face));
                let place = place.count();
                hops.insert(place, *placed);
            }
            Step::Set(name, hops) => {
                let mut list = Vec::new();
                hops.iter().for_each(|hop| put(&mut list, *hop));
                self.nexthops.insert(name.clone(), list);
            }
            Step::AddMany(additions) => {
                for (name, hops) in additions {
                    let known = self.nexthops.entry(name.clone()).or_default();
                    hops.iter().for_each(|hop| put(known, *hop));
                }
            }
            Step::RemoveFace(face) => {
                for hops in self.nexthops.values_mut() {
                    hops.retain(|hop| hop.face.0 != *face);
                }
            }
            Step::SetStrategy(name, strategy) => {
                self.strategies.insert(name.clone(), *strategy);
            }
            Step::UnsetStrategy(name) if !name.is_empty() => {
                self.strategies.remove(name);
            }
            Step::UnsetStrategy(_) | Step::Quiescent | Step::Offline | Step::Reclaim => {}
        }
        self.nexthops.retain(|_, hops| !hops.is_empty());
    }

    fn sorted(hops: &[NextHop]) -> Vec<NextHop> {
        let mut hops = hops.to_vec();
        hops.sort_by_key(|hop| hop.cost);
        hops
    }

    /// Returns the same as [`lookup`].
    fn lookup(&self, name: &Name) -> (usize, Vec<NextHop>, usize, u32) {
        let prefixes = || (0..=name.len()).rev().map(|depth| (depth, name.prefix(depth).to_owned()));
        let (hops_depth, hops) = prefixes()
            .find_map(|(depth, prefix)| Some((depth, Self::sorted(self.nexthops.get(&prefix)?))))
            .unwrap_or_default();
        let (strategy_depth, strategy) = prefixes()
            .find_map(|(depth, prefix)| Some((depth, *self.strategies.get(&prefix)?)))
            .expect("the root has a strategy");
        (hops_depth.max(strategy_depth), hops, hops_depth, strategy)
    }
}

/// Adds a next hop; one with a changed cost goes to the end.
fn put(hops: &mut Vec<NextHop>, added: NextHop) {
    if !hops.contains(&added) {
        hops.retain(|hop| hop.face != added.face);
        hops.push(added);
    }
}

fn has_face(hops: &[NextHop], face: u32) -> bool {
    hops.iter().any(|hop| hop.face.0 == face)
}

fn apply(fib: &mut FibWriter<u32>, reader: &mut FibReader<u32>, step: &Step, model: &Model) -> Result<(), FibError> {
    let hops_of = |name: &Name| model.nexthops.get(name);
    match step {
        Step::Add(name, face, cost) => {
            let is_new = hops_of(name).is_none_or(|hops| !has_face(hops, *face));
            assert_eq!(fib.add_nexthop(name.as_ref(), FaceId(*face), *cost)?, is_new);
        }
        Step::Place(name, placed, later) => {
            let is_new = hops_of(name).is_none_or(|hops| !has_face(hops, placed.face.0));
            assert_eq!(fib.place_nexthop(name.as_ref(), *placed, later)?, is_new);
        }
        Step::Remove(name, face) => {
            let is_there = hops_of(name).is_some_and(|hops| has_face(hops, *face));
            assert_eq!(fib.remove_nexthop(name.as_ref(), FaceId(*face))?, is_there);
        }
        Step::Set(name, hops) => fib.set_nexthops(name.as_ref(), hops)?,
        Step::AddMany(additions) => {
            let additions: Vec<FibAddition<'_>> =
                additions.iter().map(|(name, hops)| FibAddition { prefix: name.as_ref(), nexthops: hops }).collect();
            fib.add_many(&additions).map_err(|refused| refused.error)?;
        }
        Step::RemoveFace(face) => {
            let count = model.nexthops.values().filter(|hops| has_face(hops, *face)).count();
            assert_eq!(fib.remove_face(FaceId(*face))?, count);
        }
        Step::SetStrategy(name, strategy) => fib.set_strategy(name.as_ref(), *strategy)?,
        Step::UnsetStrategy(name) if name.is_empty() => {
            assert_eq!(fib.unset_strategy(name.as_ref()), Err(FibError::RootStrategy));
        }
        Step::UnsetStrategy(name) => {
            assert_eq!(fib.unset_strategy(name.as_ref())?, model.strategies.contains_key(name));
        }
        Step::Quiescent => reader.quiescent(),
        Step::Offline => reader.offline(),
        Step::Reclaim => {
            fib.reclaim();
        }
    }
    Ok(())
}

/// Returns every name of up to five components.
fn all_names() -> Vec<Name> {
    let mut names = vec![Name::default()];
    let mut start = 0;
    for _ in 0..5 {
        let end = names.len();
        for position in start..end {
            for component in COMPONENTS {
                names.push(names[position].clone().append_generic(component));
            }
        }
        start = end;
    }
    names
}

fn check(fib: &FibWriter<u32>, reader: &FibReader<u32>, model: &Model, names: &[Name]) {
    for name in names {
        let hashes = hashes(name);
        let found = reader.longest_prefix_match(&hashes, name.as_ref());
        let seen = (found.prefix_len(), found.nexthops().to_vec(), found.nexthop_prefix_len(), *found.strategy());
        assert_eq!(seen, model.lookup(name), "{name:?}");
        assert_eq!(found.prefix_hash(), hashes.get(found.prefix_len()));
        assert_eq!(*fib.effective_strategy(name.as_ref()), seen.3);
    }
    let listed: BTreeMap<Name, Vec<NextHop>> =
        fib.entries().map(|(name, hops)| (name.to_owned(), hops.to_vec())).collect();
    let expected: BTreeMap<Name, Vec<NextHop>> =
        model.nexthops.iter().map(|(name, hops)| (name.clone(), Model::sorted(hops))).collect();
    assert_eq!(listed, expected);
    assert_eq!((fib.entries().count(), fib.len()), (expected.len(), expected.len()));
    let (mut visited, mut cursor) = (BTreeMap::new(), Some(FibCursor::default()));
    while let Some(from) = cursor {
        cursor = fib.visit_entries(from, 3, |name, hops| {
            assert_eq!(visited.insert(name.to_owned(), hops.to_vec()), None);
        });
    }
    assert_eq!(visited, expected);
    let strategies: Vec<(Name, u32)> = fib.strategies().map(|(name, &strategy)| (name.to_owned(), strategy)).collect();
    assert_eq!(strategies, model.strategies.clone().into_iter().collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_the_model(steps in prop::collection::vec(step(), 1..120)) {
        let mut fib = FibWriter::new(KEY, 0).expect("memory");
        let mut reader = fib.reader();
        let mut model = Model { strategies: BTreeMap::from([(Name::default(), 0)]), ..Model::default() };
        let names = all_names();
        let some: Vec<Name> = names.iter().filter(|name| name.len() <= 3).cloned().collect();
        for step in &steps {
            prop_assert_eq!(apply(&mut fib, &mut reader, step, &model), Ok(()));
            model.apply(step);
            check(&fib, &reader, &model, &some);
        }
        check(&fib, &reader, &model, &names);
        reader.offline();
        prop_assert_eq!(fib.reclaim(), 0);
        let prefixes: BTreeSet<&Name> = model.nexthops.keys().chain(model.strategies.keys()).collect();
        prop_assert_eq!(fib.statistics().entries, prefixes.len());
    }
}
