//! The RIB as a plain list of routes, with the FIB derived from scratch by the words of the flag definitions.

use std::collections::{BTreeMap, BTreeSet};

use namehop_wire::Name;

use crate::rib::{FLAG_CAPTURE, FLAG_CHILD_INHERIT, Route};

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) routes: Vec<(Name, Route)>,
}

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

    /// Next hops of a name that has routes: its own, and by face the nearest inheritable ones up to the first capture.
    pub(super) fn effective(&self, name: &Name) -> BTreeMap<u32, u64> {
        let mut result = BTreeMap::new();
        let mut at = name.clone();
        loop {
            let mut here: BTreeMap<u32, u64> = BTreeMap::new();
            for route in self.of(&at).filter(|route| at == *name || route.flags & FLAG_CHILD_INHERIT != 0) {
                let cost = here.entry(route.face.0).or_insert(route.cost);
                *cost = route.cost.min(*cost);
            }
            for (face, cost) in here {
                result.entry(face).or_insert(cost);
            }
            let captures = self.of(&at).any(|route| route.flags & FLAG_CAPTURE != 0);
            if captures || at.is_empty() {
                return result;
            }
            at.pop();
        }
    }

    pub(super) fn nexthops(&self) -> BTreeMap<(Name, u32), u64> {
        self.names()
            .into_iter()
            .flat_map(|name| {
                let effective = self.effective(&name);
                effective.into_iter().map(move |(face, cost)| ((name.clone(), face), cost))
            })
            .collect()
    }
}
