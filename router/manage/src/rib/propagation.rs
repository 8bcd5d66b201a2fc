//! Propagates a change of one name's routes to the next hops of that name and of the names below it.
//!
//! Two changes affect the names below: the cost at which the name passes the changed face down, and, if the name starts
//! or stops capturing, the inherited costs of every other face. So one pass over the ancestors and a visit to the
//! affected descendants suffice.

use namehop_packet::FaceId;
use namehop_wire::NameRef;

use super::routes::{FaceCosts, RouteLists, RouteSet};
use super::tree::{NO_NODE, NodeIndex};
use super::{FibChanges, ReadvertisedCosts, Rib};

impl Rib {
    /// Changes the routes of `node` for `face` only, by calling `change`, and reports the resulting changes. Updates
    /// the entry count. Leaves an empty node for the caller to prune.
    pub(super) fn change_routes(
        &mut self,
        node: NodeIndex,
        face: FaceId,
        changes: &mut impl FibChanges,
        change: impl FnOnce(&mut RouteSet, &mut RouteLists),
    ) {
        let mut inherited = std::mem::take(&mut self.inherited);
        self.collect_inherited(node, &mut inherited);

        let before = self.view(node);
        let before_costs = self.tree.routes(node).costs(face, &self.lists);
        let before_readvertised = changes.readvertised_costs(self.routes_view(node));
        change(self.tree.routes_mut(node), &mut self.lists);
        let after = self.view(node);
        let after_costs = self.tree.routes(node).costs(face, &self.lists);
        self.entries = self.entries + usize::from(after.exists) - usize::from(before.exists);

        let after_readvertised = changes.readvertised_costs(self.routes_view(node));
        let mut report = ChangeReport { rib: self, node, name: Vec::new(), changes };
        if before_readvertised != after_readvertised {
            report.readvertised_costs(before_readvertised, after_readvertised);
        }
        let offered = inherited.iter().find(|(other, _)| *other == face).map(|(_, cost)| *cost);
        report.face(face, offered, (before, before_costs), (after, after_costs), &inherited);
        if before != after {
            for &(other, cost) in inherited.iter().filter(|(other, _)| *other != face) {
                let costs = report.rib.tree.routes(node).costs(other, &report.rib.lists);
                report.face(other, Some(cost), (before, costs), (after, costs), &inherited);
            }
        }
        self.inherited = inherited;
    }

    fn view(&self, node: NodeIndex) -> View {
        let routes = self.tree.routes(node);
        View { exists: !routes.is_empty(), captures: routes.is_capturing(&self.lists) }
    }

    /// Collects the costs that `node` inherits from shorter names: per face, the cost at the nearest name that passes
    /// it down.
    fn collect_inherited(&self, node: NodeIndex, inherited: &mut Vec<(FaceId, u64)>) {
        inherited.clear();
        let mut ancestor = self.tree.parent(node);
        while ancestor != NO_NODE {
            let routes = self.tree.routes(ancestor);
            if !routes.is_empty() {
                let nearer = inherited.len();
                routes.for_each_inheritable(&self.lists, |face, cost| {
                    match inherited.iter_mut().position(|(known, _)| *known == face) {
                        // A name may offer a face with several origins; the lowest cost counts.
                        Some(index) if index >= nearer => inherited[index].1 = inherited[index].1.min(cost),
                        Some(_) => {}
                        None => inherited.push((face, cost)),
                    }
                });
                if routes.is_capturing(&self.lists) {
                    break;
                }
            }
            ancestor = self.tree.parent(ancestor);
        }
    }

    /// Returns the next hops that the routes give to `name`, lowest cost first; among equal costs, next hops from its
    /// own routes first. Empty if the name has no routes of its own.
    pub fn effective_nexthops(&self, name: NameRef<'_>) -> Vec<(FaceId, u64)> {
        let Some(node) = self.tree.find(name) else { return Vec::new() };
        let routes = self.tree.routes(node);
        if routes.is_empty() {
            return Vec::new();
        }
        let mut nexthops: Vec<(FaceId, u64)> = Vec::new();
        for route in routes.iter(&self.lists) {
            match nexthops.iter_mut().find(|(face, _)| *face == route.face) {
                Some((_, cost)) => *cost = route.cost.min(*cost),
                None => nexthops.push((route.face, route.cost)),
            }
        }
        if !routes.is_capturing(&self.lists) {
            let mut inherited = Vec::new();
            self.collect_inherited(node, &mut inherited);
            inherited.retain(|(face, _)| nexthops.iter().all(|(known, _)| known != face));
            nexthops.append(&mut inherited);
        }
        nexthops.sort_by_key(|&(_, cost)| cost);
        nexthops
    }
}

/// The properties of a name, besides its costs, that determine which next hops it inherits and passes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct View {
    exists: bool,
    captures: bool,
}

impl View {
    /// Returns the next hop of a face at this name: from its own routes, or else inherited.
    fn effective(self, own: Option<u64>, offered: Option<u64>) -> Option<Effective> {
        if !self.exists {
            return None;
        }
        let own = own.map(|cost| Effective { cost, is_own: true });
        own.or(if self.captures { None } else { offered.map(|cost| Effective { cost, is_own: false }) })
    }

    /// Returns the cost at which this name offers a face to longer names.
    fn passed_down(self, inheritable: Option<u64>, offered: Option<u64>) -> Option<u64> {
        inheritable.or(if self.captures { None } else { offered })
    }
}

/// The next hop of a name to one face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Effective {
    cost: u64,
    /// True if it comes from a route of the name itself; false if inherited.
    is_own: bool,
}

/// Reports changes at and below one node.
struct ChangeReport<'a, C> {
    rib: &'a Rib,
    node: NodeIndex,
    name: Vec<u8>,
    changes: &'a mut C,
}

impl<C: FibChanges> ChangeReport<'_, C> {
    fn readvertised_costs(&mut self, before: ReadvertisedCosts, after: ReadvertisedCosts) {
        self.rib.tree.name_value(self.node, &mut self.name);
        let Ok(name) = NameRef::from_value(&self.name) else { return };
        self.changes.readvertised_costs_changed(name, before, after);
    }

    /// Reports how a change of the node, or of its costs for the face, affects this face. `offered` is the cost at
    /// which shorter names offer the face to the node; `inherited` holds all their offers.
    fn face(
        &mut self,
        face: FaceId,
        offered: Option<u64>,
        (before, before_costs): (View, FaceCosts),
        (after, after_costs): (View, FaceCosts),
        inherited: &[(FaceId, u64)],
    ) {
        self.next_hop(
            face,
            before.effective(before_costs.own, offered),
            after.effective(after_costs.own, offered),
            inherited,
        );
        self.passed_down(
            face,
            before.passed_down(before_costs.inheritable, offered),
            after.passed_down(after_costs.inheritable, offered),
        );
    }

    /// Reports a changed next hop of the node. `inherited` holds the next hops that shorter names offer to it.
    fn next_hop(
        &mut self,
        face: FaceId,
        before: Option<Effective>,
        after: Option<Effective>,
        inherited: &[(FaceId, u64)],
    ) {
        if before == after {
            return;
        }
        let later: Vec<FaceId> = match after {
            Some(Effective { is_own: true, .. }) => {
                let routes = self.rib.tree.routes(self.node);
                let is_own = |face: FaceId| routes.costs(face, &self.rib.lists).own.is_some();
                inherited.iter().map(|&(face, _)| face).filter(|&face| !is_own(face)).collect()
            }
            _ => Vec::new(),
        };
        self.next_hop_of(self.node, face, after.map(|next_hop| next_hop.cost), &later);
    }

    fn next_hop_of(&mut self, node: NodeIndex, face: FaceId, cost: Option<u64>, later: &[FaceId]) {
        self.rib.tree.name_value(node, &mut self.name);
        let Ok(name) = NameRef::from_value(&self.name) else { return };
        match cost {
            Some(cost) => self.changes.set_nexthop(name, face, cost, later),
            None => self.changes.remove_nexthop(name, face),
        }
    }

    /// Updates the names below the node that inherit the face from it.
    fn passed_down(&mut self, face: FaceId, before: Option<u64>, after: Option<u64>) {
        if before == after {
            return;
        }
        let tree = &self.rib.tree;
        let mut node = tree.first_child(self.node);
        while node != NO_NODE {
            let routes = tree.routes(node);
            let mut descend = true;
            if !routes.is_empty() {
                if routes.is_capturing(&self.rib.lists) {
                    descend = false;
                } else {
                    let costs = routes.costs(face, &self.rib.lists);
                    if costs.own.is_none() {
                        self.next_hop_of(node, face, after, &[]);
                    }
                    descend = costs.inheritable.is_none();
                }
            }
            let first_child = tree.first_child(node);
            if descend && first_child != NO_NODE {
                node = first_child;
                continue;
            }
            // Continue with the next sibling of this node or of its nearest ancestor that has one.
            while node != self.node && tree.next_sibling(node) == NO_NODE {
                node = tree.parent(node);
            }
            if node == self.node {
                return;
            }
            node = tree.next_sibling(node);
        }
    }
}
