//! The RIB as a plain list of routes; the FIB is derived from scratch by the definitions of the flags.

use std::collections::{BTreeMap, BTreeSet};

use namehop_wire::Name;

use crate::rib::{FLAG_CAPTURE, FLAG_CHILD_INHERIT, Route};

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) routes: Vec<(Name, Route)>,
    /// Each next hop, and the step since which it exists unchanged.
    ages: BTreeMap<(Name, u32), (NextHop, u64)>,
    step: u64,
}

/// Cost of a next hop, and true if it is inherited from a shorter name.
pub(super) type NextHop = (u64, bool);

impl Model {
    fn position(&self, name: &Name, face: u32, origin: u64) -> Option<usize> {
        self.routes.iter().position(|(other, route)| other == name && route.face.0 == face && route.origin == origin)
    }

    pub(super) fn register(&mut self, name: &Name, route: &Route) -> bool {
        match self.position(name, route.face.0, route.origin) {
            Some(position) => {
                self.routes[position].1 = route.clone();
                false
            }
            None => {
                self.routes.push((name.clone(), route.clone()));
                true
            }
        }
    }

    pub(super) fn unregister(&mut self, name: &Name, face: u32, origin: u64) -> bool {
        self.position(name, face, origin).map(|position| self.routes.remove(position)).is_some()
    }

    fn remove_where(&mut self, condition: impl Fn(&Route) -> bool) -> usize {
        let before = self.routes.len();
        self.routes.retain(|(_, route)| !condition(route));
        before - self.routes.len()
    }

    pub(super) fn remove_face(&mut self, face: u32) -> usize {
        self.remove_where(|route| route.face.0 == face)
    }

    pub(super) fn expire(&mut self, now_ms: u64) -> usize {
        self.remove_where(|route| route.expires_at_ms.is_some_and(|expiry| expiry <= now_ms))
    }

    pub(super) fn next_expiry_ms(&self) -> Option<u64> {
        self.routes.iter().filter_map(|(_, route)| route.expires_at_ms).min()
    }

    pub(super) fn names(&self) -> BTreeSet<Name> {
        self.routes.iter().map(|(name, _)| name.clone()).collect()
    }

    fn of<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = &'a Route> {
        self.routes.iter().filter(move |(other, _)| other == name).map(|(_, route)| route)
    }

    /// Returns the next hops of a name that has routes: its own, and for each other face the nearest inheritable one up
    /// to the first capture.
    fn effective(&self, name: &Name) -> BTreeMap<u32, NextHop> {
        let mut result = BTreeMap::new();
        let mut at = name.clone();
        loop {
            let mut here: BTreeMap<u32, u64> = BTreeMap::new();
            for route in self.of(&at).filter(|route| at == *name || route.flags & FLAG_CHILD_INHERIT != 0) {
                let cost = here.entry(route.face.0).or_insert(route.cost);
                *cost = route.cost.min(*cost);
            }
            for (face, cost) in here {
                result.entry(face).or_insert((cost, at != *name));
            }
            let captures = self.of(&at).any(|route| route.flags & FLAG_CAPTURE != 0);
            if captures || at.is_empty() {
                return result;
            }
            at.pop();
        }
    }

    /// Returns the costs by face.
    pub(super) fn costs(&self, name: &Name) -> BTreeMap<u32, u64> {
        self.effective(name).into_iter().map(|(face, (cost, _))| (face, cost)).collect()
    }

    pub(super) fn nexthops(&self) -> BTreeMap<(Name, u32), u64> {
        self.names()
            .into_iter()
            .flat_map(|name| self.costs(&name).into_iter().map(move |(face, cost)| ((name.clone(), face), cost)))
            .collect()
    }

    /// Records which next hops are new or changed; called after every step.
    pub(super) fn note_ages(&mut self) {
        self.step += 1;
        let mut ages = BTreeMap::new();
        for name in self.names() {
            for (face, next_hop) in self.effective(&name) {
                let key = (name.clone(), face);
                let old = self.ages.get(&key).filter(|(old, _)| *old == next_hop);
                let age = old.copied().unwrap_or((next_hop, self.step));
                ages.insert(key, age);
            }
        }
        self.ages = ages;
    }

    /// Returns the sort key of a next hop.
    pub(super) fn rank(&self, name: &Name, face: u32) -> (u64, bool, u64) {
        let ((cost, is_inherited), since) = self.ages[&(name.clone(), face)];
        (cost, is_inherited, since)
    }

    /// Returns, for each name, the lowest cost of its routes with the origins of each destination, if there are any.
    pub(super) fn readvertised(&self, origins: [&[u64]; 2]) -> BTreeMap<Name, [Option<u64>; 2]> {
        let lowest = |name: &Name, origins: &[u64]| {
            self.of(name).filter(|route| origins.contains(&route.origin)).map(|route| route.cost).min()
        };
        let costs = |name: Name| (origins.map(|origins| lowest(&name, origins)), name);
        let found = self.names().into_iter().map(costs).filter(|(costs, _)| *costs != [None, None]);
        found.map(|(costs, name)| (name, costs)).collect()
    }
}
