//! The Routing Information Base: which routes exist under which name, and what they mean for the FIB.
//!
//! A pure data structure: it reads no clock and sends nothing. Callers pass the time and a [`FibChanges`] sink, which
//! receives exactly the next-hop changes that a modification makes necessary. Semantics (NFD management protocol, RIB):
//!
//! * A route is keyed by (face, origin) under a name. For each face the FIB gets the lowest cost.
//! * *child-inherit*: the route also applies to longer names that have an entry of their own, unless that entry has a
//!   route for the same face. The nearest name that offers a face wins.
//! * *capture*: the name, and what is below it, takes nothing from shorter names.
//! * Of next hops with equal cost those that a name's own routes give it come first; among these, and among the inherited
//!   ones, the one that has had its cost the longest.
//! * Only names with at least one route get a FIB entry; everything else follows from longest-prefix match.
//!
//! The structure is sized for millions of routes: see [`tree`] for the layout and [`routes`] for the one-route form.

mod propagation;
mod remote;
mod routes;
mod tree;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use namehop_packet::FaceId;
use namehop_wire::NameRef;
use thiserror::Error;

use crate::readvertise::MAX_DESTINATIONS;
use remote::RemoteRoutes;
pub use remote::RouteLimits;
use routes::RouteLists;
pub use routes::{FLAG_CAPTURE, FLAG_CHILD_INHERIT, Route, RoutesView};
use tree::{NO_NODE, NameTree, NodeIndex, push_in_small_steps};

/// Longest prefix that may be registered, in components.
pub const MAX_PREFIX_COMPONENTS: usize = 32;

/// Why a route was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RibError {
    /// The prefix has more than [`MAX_PREFIX_COMPONENTS`] components.
    #[error("the prefix has more than {MAX_PREFIX_COMPONENTS} components")]
    PrefixTooLong,
    /// More than four billion names or four gigabytes of name components.
    #[error("the routing table is full")]
    Full,
    /// The face has as many routes that were registered from elsewhere as it may have.
    #[error(
        "this face has {0} routes that other computers registered, as many as `max_remote_routes_per_face` in [management] allows"
    )]
    TooManyOfFace(usize),
    /// All faces together have as many.
    #[error(
        "there are {0} routes that other computers registered, as many as `max_remote_routes` in [management] allows"
    )]
    TooManyRemote(usize),
    /// There are as many routes as there may be.
    #[error("there are {0} routes, as many as `max_routes` in [management] or the memory of this host allows")]
    TooMany(usize),
}

/// What a registration did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// There was no route with this face and origin under the name.
    New,
    /// The route existed and now has these properties.
    Updated,
}

/// Costs with which a name is readvertised, by destination.
pub type ReadvertisedCosts = [Option<u64>; MAX_DESTINATIONS];

/// Receives the changes to next hops that follow from a change to routes; and the changes of the
/// costs with which names are readvertised.
pub trait FibChanges {
    /// `prefix` shall have the next hop `face` with `cost`, whether it had it before or not: among those of equal cost before
    /// the faces of `later` and behind all others.
    fn set_nexthop(&mut self, prefix: NameRef<'_>, face: FaceId, cost: u64, later: &[FaceId]);
    /// `prefix` shall not have the next hop `face`.
    fn remove_nexthop(&mut self, prefix: NameRef<'_>, face: FaceId);

    /// The costs with which a name that has these routes is readvertised.
    fn readvertised_costs(&self, _routes: RoutesView<'_>) -> ReadvertisedCosts {
        ReadvertisedCosts::default()
    }

    /// What [`readvertised_costs`](Self::readvertised_costs) says of `prefix` has changed.
    fn readvertised_costs_changed(
        &mut self,
        _prefix: NameRef<'_>,
        _before: ReadvertisedCosts,
        _after: ReadvertisedCosts,
    ) {
    }
}

/// Where a walk over all entries stands. Entries added or removed during the walk may be missed or, when a place is
/// used again, seen; every other entry is seen exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor(NodeIndex);

impl Cursor {
    /// The place as a number, to be kept outside of the program; `None` for the start.
    pub fn number(self) -> Option<u64> {
        (self.0 != 0).then_some(self.0.into())
    }

    /// The place with this number, which need not be from [`number`](Self::number): behind the end there is nothing.
    pub fn from_number(number: u64) -> Self {
        Cursor(NodeIndex::try_from(number).unwrap_or(NodeIndex::MAX))
    }
}

/// Names that hold a route of a face. Entries are added at once and dropped lazily: one whose node has no route of the
/// face any more is skipped, and when too many are stale the list is rebuilt.
#[derive(Debug, Default)]
struct FaceIndex {
    nodes: Vec<NodeIndex>,
    routes: usize,
}

/// Expiry in milliseconds, node, face, origin.
type Deadline = (u64, NodeIndex, u32, u64);

/// The table of routes.
#[derive(Debug, Default)]
pub struct Rib {
    tree: NameTree,
    lists: RouteLists,
    faces: HashMap<u32, FaceIndex>,
    /// Soonest expiry first; records of routes that were refreshed or removed are skipped when they come up.
    deadlines: BinaryHeap<Reverse<Deadline>>,
    expiring_routes: usize,
    remote: RemoteRoutes,
    routes: usize,
    entries: usize,
    /// Inherited next hops of the name being changed; kept to save the allocation.
    inherited: Vec<(FaceId, u64)>,
}

impl Rib {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty table with these limits.
    pub fn with_limits(limits: RouteLimits) -> Self {
        Rib { remote: RemoteRoutes::new(limits), ..Rib::default() }
    }

    /// Number of routes.
    pub fn route_count(&self) -> usize {
        self.routes
    }

    /// Number of names with at least one route.
    pub fn entry_count(&self) -> usize {
        self.entries
    }

    /// Memory held, in bytes, including what is reserved and not yet used.
    pub fn memory_bytes(&self) -> usize {
        let faces: usize = self.faces.values().map(|index| index.nodes.capacity() * size_of::<NodeIndex>()).sum();
        self.tree.memory_bytes() + self.lists.memory_bytes() + faces + self.deadlines.capacity() * size_of::<Deadline>()
    }

    /// Adds the route to `name`, or replaces the one with the same face and origin.
    pub fn register(
        &mut self,
        name: NameRef<'_>,
        route: Route,
        changes: &mut impl FibChanges,
    ) -> Result<Registration, RibError> {
        if name.len() > MAX_PREFIX_COMPONENTS {
            return Err(RibError::PrefixTooLong);
        }
        self.check_limits(name, &route)?;
        let node = self.tree.find_or_insert(name).ok_or(RibError::Full)?;
        let (face, origin, expires_at_ms, is_remote) = (route.face, route.origin, route.expires_at_ms, route.is_remote);
        let mut registration = Registration::New;
        let (mut was_expiring, mut was_remote) = (false, false);
        self.change_routes(node, face, changes, |set, lists| {
            if let Some(old) = set.insert(route, lists) {
                registration = Registration::Updated;
                was_expiring = old.expires_at_ms.is_some();
                was_remote = old.is_remote;
            }
        });
        if registration == Registration::New {
            self.routes += 1;
            let index = self.faces.entry(face.0).or_default();
            index.routes += 1;
            push_in_small_steps(&mut index.nodes, node);
        }
        self.remote.count(face, was_remote, is_remote);
        self.expiring_routes -= usize::from(was_expiring);
        if let Some(deadline) = expires_at_ms {
            self.expiring_routes += 1;
            self.deadlines.push(Reverse((deadline, node, face.0, origin)));
            self.drop_stale_deadlines();
        }
        Ok(registration)
    }

    /// Removes one route. `false` when there was none.
    pub fn unregister(&mut self, name: NameRef<'_>, face: FaceId, origin: u64, changes: &mut impl FibChanges) -> bool {
        match self.tree.find(name) {
            Some(node) => self.remove_route(node, face, origin, changes),
            None => false,
        }
    }

    /// Removes all routes of a face; returns how many there were.
    pub fn remove_face(&mut self, face: FaceId, changes: &mut impl FibChanges) -> usize {
        let Some(index) = self.faces.get_mut(&face.0) else { return 0 };
        let mut nodes = std::mem::take(&mut index.nodes);
        nodes.sort_unstable();
        nodes.dedup();
        // Shorter names first: what they no longer pass down is then not announced to longer names on the way.
        nodes.sort_by_key(|&node| self.tree.depth(node));
        let mut removed = 0;
        for node in nodes {
            if !self.tree.is_live(node) {
                continue;
            }
            while let Some(origin) = self.tree.routes(node).first_origin_of(face, &self.lists) {
                if !self.remove_route(node, face, origin, changes) {
                    break;
                }
                removed += 1;
                if !self.tree.is_live(node) {
                    break;
                }
            }
        }
        self.faces.remove(&face.0);
        removed
    }

    /// Removes the routes whose time has come; returns how many.
    pub fn expire(&mut self, now_ms: u64, changes: &mut impl FibChanges) -> usize {
        let mut expired = 0;
        while let Some(&Reverse((deadline, node, face, origin))) = self.deadlines.peek() {
            if deadline > now_ms {
                break;
            }
            self.deadlines.pop();
            if self.is_current((deadline, node, face, origin)) && self.remove_route(node, FaceId(face), origin, changes)
            {
                expired += 1;
            }
        }
        expired
    }

    /// When the next route expires.
    pub fn next_expiry_ms(&mut self) -> Option<u64> {
        while let Some(&Reverse(deadline)) = self.deadlines.peek() {
            if self.is_current(deadline) {
                return Some(deadline.0);
            }
            self.deadlines.pop();
        }
        None
    }

    /// Whether the limits leave room for this route. One that exists can always be renewed.
    ///
    /// # Errors
    /// Which limit is reached.
    pub fn check_limits(&self, name: NameRef<'_>, route: &Route) -> Result<(), RibError> {
        let node = self.tree.find(name);
        let is_renewed = |node| self.tree.routes(node).has_remote(route.face, route.origin, &self.lists);
        if route.is_remote && !node.is_some_and(is_renewed) {
            self.remote.check(route.face)?;
        }
        if self.routes >= self.remote.limits.total && self.route(name, route.face, route.origin).is_none() {
            return Err(RibError::TooMany(self.routes));
        }
        Ok(())
    }

    /// One route.
    pub fn route(&self, name: NameRef<'_>, face: FaceId, origin: u64) -> Option<Route> {
        let node = self.tree.find(name)?;
        self.tree.routes(node).iter(&self.lists).find(|route| route.face == face && route.origin == origin)
    }

    /// Shows up to `limit` places of the table, entries among them, to `visit` and returns where to go on; `None` at the end.
    /// The routes of an entry are in order of registration.
    pub fn visit_entries(
        &self,
        from: Cursor,
        limit: usize,
        mut visit: impl FnMut(NameRef<'_>, &mut dyn Iterator<Item = Route>),
    ) -> Option<Cursor> {
        self.visit_routes(from, limit, |name, routes| visit(name, &mut routes.set.iter(routes.lists)))
    }

    /// Shows the routes of up to `limit` places of the table, as [`visit_entries`](Self::visit_entries), without copies.
    pub fn visit_routes(
        &self,
        from: Cursor,
        limit: usize,
        mut visit: impl FnMut(NameRef<'_>, RoutesView<'_>),
    ) -> Option<Cursor> {
        let end = (from.0 as usize).saturating_add(limit).min(self.tree.slots());
        let mut value = Vec::new();
        for node in from.0..end as NodeIndex {
            if self.tree.is_live(node) && !self.tree.routes(node).is_empty() {
                self.tree.name_value(node, &mut value);
                if let Ok(name) = NameRef::from_value(&value) {
                    visit(name, self.routes_view(node));
                }
            }
        }
        (end < self.tree.slots()).then_some(Cursor(end as NodeIndex))
    }

    fn routes_view(&self, node: NodeIndex) -> RoutesView<'_> {
        RoutesView { set: self.tree.routes(node), lists: &self.lists }
    }

    /// The prefix announcement that covers `name`: of the longest name at or above it that has one, unless it expired.
    pub fn find_announcement(&self, name: NameRef<'_>, now_ms: u64) -> Option<&[u8]> {
        let mut node = self.tree.find_deepest(name);
        while node != NO_NODE {
            if let Some(found) = self.tree.routes(node).announcement(&self.lists, now_ms) {
                return Some(found);
            }
            node = self.tree.parent(node);
        }
        None
    }

    fn is_current(&self, (deadline, node, face, origin): Deadline) -> bool {
        self.tree.is_live(node) && self.tree.routes(node).expiry(FaceId(face), origin, &self.lists) == Some(deadline)
    }

    /// Keeps records of refreshed routes from piling up.
    fn drop_stale_deadlines(&mut self) {
        if self.deadlines.len() <= 2 * self.expiring_routes + 64 {
            return;
        }
        let mut all = std::mem::take(&mut self.deadlines).into_vec();
        all.sort_unstable();
        all.dedup();
        all.retain(|&Reverse(deadline)| self.is_current(deadline));
        self.deadlines = all.into();
    }

    fn remove_route(&mut self, node: NodeIndex, face: FaceId, origin: u64, changes: &mut impl FibChanges) -> bool {
        let mut removed = None;
        self.change_routes(node, face, changes, |set, lists| removed = set.remove(face, origin, lists));
        let Some(route) = removed else { return false };
        self.routes -= 1;
        self.remote.count(face, route.is_remote, false);
        self.expiring_routes -= usize::from(route.expires_at_ms.is_some());
        if self.tree.routes(node).is_empty() {
            self.tree.prune(node);
        }
        self.forget_in_face_index(face);
        true
    }

    fn forget_in_face_index(&mut self, face: FaceId) {
        let Some(index) = self.faces.get_mut(&face.0) else { return };
        index.routes = index.routes.saturating_sub(1);
        if index.routes == 0 {
            // Also while the face's list is out for `remove_face`: nothing is left to find then.
            self.faces.remove(&face.0);
        } else if index.nodes.len() > 2 * index.routes + 64 {
            let (tree, lists) = (&self.tree, &self.lists);
            index.nodes.sort_unstable();
            index.nodes.dedup();
            index.nodes.retain(|&node| tree.is_live(node) && tree.routes(node).first_origin_of(face, lists).is_some());
            index.nodes.shrink_to_fit();
        }
    }
}
