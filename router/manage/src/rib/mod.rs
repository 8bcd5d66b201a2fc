//! The Routing Information Base: the routes of each name, and the FIB next hops that they give.
//!
//! A pure data structure: it reads no clock and sends nothing. Callers pass the time and a [`FibChanges`] sink, which
//! receives exactly the next-hop changes that a modification causes. Semantics (NFD management protocol, RIB):
//!
//! * A route is keyed by (face, origin) under a name. For each face the FIB gets the lowest cost.
//! * *child-inherit*: the route also applies to longer names that have an entry of their own, unless that entry has a
//!   route for the same face. If several names offer a face, the nearest one applies.
//! * *capture*: the name and the names below it inherit nothing from shorter names.
//! * Next hops with equal cost: those from the name's own routes come first, then the inherited ones. Within each
//!   group, the next hop that has had its cost longest comes first.
//! * Only names with at least one route get a FIB entry; longest-prefix match does the rest.
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

use remote::RemoteRoutes;
pub use remote::RouteLimits;
use routes::RouteLists;
pub use routes::{FLAG_CAPTURE, FLAG_CHILD_INHERIT, Route, RoutesView};
use tree::{NO_NODE, NameTree, NodeIndex, push_in_small_steps};

/// Maximum length of a prefix, in components.
pub const MAX_PREFIX_COMPONENTS: usize = 32;

/// Why a route was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RibError {
    /// The prefix has more than [`MAX_PREFIX_COMPONENTS`] components.
    #[error("the prefix has more than {MAX_PREFIX_COMPONENTS} components")]
    PrefixTooLong,
    /// More than four billion names or four gigabytes of name components.
    #[error("the routing table is full")]
    Full,
    /// The face has the maximum number of routes registered by other hosts.
    #[error(
        "this face has {0} routes registered by other hosts, the limit `max_remote_routes_per_face` in [management]"
    )]
    TooManyOfFace(usize),
    /// All faces together have the maximum number of routes registered by other hosts.
    #[error("there are {0} routes registered by other hosts, the limit `max_remote_routes` in [management]")]
    TooManyRemote(usize),
    /// The table has the maximum number of routes.
    #[error("there are {0} routes, the limit set by `max_routes` in [management] or by the memory of this host")]
    TooMany(usize),
}

/// The effect of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// The name had no route with this face and origin.
    New,
    /// The route existed and was replaced.
    Updated,
}

/// Maximum number of destinations of readvertising: a routing daemon and a gateway.
pub const MAX_DESTINATIONS: usize = 2;

/// Costs with which a name is readvertised, indexed by destination; `None` = not readvertised.
pub type ReadvertisedCosts = [Option<u64>; MAX_DESTINATIONS];

/// Receives the changes of next hops and of readvertised costs that a change of routes causes.
pub trait FibChanges {
    /// Adds or updates the next hop `face` of `prefix`. Among next hops of equal cost, it is placed before the faces in
    /// `later` and after all others.
    fn set_nexthop(&mut self, prefix: NameRef<'_>, face: FaceId, cost: u64, later: &[FaceId]);
    /// Removes the next hop `face` of `prefix`.
    fn remove_nexthop(&mut self, prefix: NameRef<'_>, face: FaceId);

    /// Returns the costs with which a name with these routes is readvertised.
    fn readvertised_costs(&self, _routes: RoutesView<'_>) -> ReadvertisedCosts {
        ReadvertisedCosts::default()
    }

    /// Reports that the [`readvertised_costs`](Self::readvertised_costs) of `prefix` have changed.
    fn readvertised_costs_changed(
        &mut self,
        _prefix: NameRef<'_>,
        _before: ReadvertisedCosts,
        _after: ReadvertisedCosts,
    ) {
    }
}

/// Position of a walk over all entries. An entry added or removed during the walk may be missed or, if its slot is
/// reused, seen. Every other entry is seen exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor(NodeIndex);

impl Cursor {
    /// Returns the position as a number that clients can keep; `None` at the start.
    pub fn number(self) -> Option<u64> {
        (self.0 != 0).then_some(self.0.into())
    }

    /// Returns the position with this number. Any number is accepted; a number past the end gives an empty walk.
    pub fn from_number(number: u64) -> Self {
        Cursor(NodeIndex::try_from(number).unwrap_or(NodeIndex::MAX))
    }
}

/// Nodes that hold a route of a face. Nodes are added at once and removed lazily: stale nodes without a route of the
/// face are skipped, and the list is rebuilt when it holds too many of them.
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
    /// Soonest expiry first. Records of refreshed or removed routes are skipped when they come due.
    deadlines: BinaryHeap<Reverse<Deadline>>,
    expiring_routes: usize,
    remote: RemoteRoutes,
    routes: usize,
    entries: usize,
    /// Inherited next hops of the name being changed; kept between calls to avoid an allocation.
    inherited: Vec<(FaceId, u64)>,
}

impl Rib {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty table with these limits.
    pub fn with_limits(limits: RouteLimits) -> Self {
        Rib { remote: RemoteRoutes::new(limits), ..Rib::default() }
    }

    /// Returns the number of routes.
    pub fn route_count(&self) -> usize {
        self.routes
    }

    /// Returns the number of names with at least one route.
    pub fn entry_count(&self) -> usize {
        self.entries
    }

    /// Returns the allocated memory in bytes, including reserved capacity.
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

    /// Removes a route; returns false if there was none.
    pub fn unregister(&mut self, name: NameRef<'_>, face: FaceId, origin: u64, changes: &mut impl FibChanges) -> bool {
        match self.tree.find(name) {
            Some(node) => self.remove_route(node, face, origin, changes),
            None => false,
        }
    }

    /// Removes all routes of a face; returns their number.
    pub fn remove_face(&mut self, face: FaceId, changes: &mut impl FibChanges) -> usize {
        let Some(index) = self.faces.get_mut(&face.0) else { return 0 };
        let mut nodes = std::mem::take(&mut index.nodes);
        nodes.sort_unstable();
        nodes.dedup();
        // Shorter names first. Otherwise a longer name that lost its own route would inherit the face for a moment.
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

    /// Removes expired routes; returns their number.
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

    /// Returns the time at which the next route expires.
    pub fn next_expiry_ms(&mut self) -> Option<u64> {
        while let Some(&Reverse(deadline)) = self.deadlines.peek() {
            if self.is_current(deadline) {
                return Some(deadline.0);
            }
            self.deadlines.pop();
        }
        None
    }

    /// Checks that the limits leave room for this route. An existing route can always be renewed.
    ///
    /// # Errors
    /// The limit that is reached.
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

    /// Returns the route with this name, face and origin.
    pub fn route(&self, name: NameRef<'_>, face: FaceId, origin: u64) -> Option<Route> {
        let node = self.tree.find(name)?;
        self.tree.routes(node).iter(&self.lists).find(|route| route.face == face && route.origin == origin)
    }

    /// Calls `visit` with the entries in the next `limit` slots of the table. Returns the position to continue from;
    /// `None` at the end. The routes of an entry are in order of registration.
    pub fn visit_entries(
        &self,
        from: Cursor,
        limit: usize,
        mut visit: impl FnMut(NameRef<'_>, &mut dyn Iterator<Item = Route>),
    ) -> Option<Cursor> {
        self.visit_routes(from, limit, |name, routes| visit(name, &mut routes.set.iter(routes.lists)))
    }

    /// Visits entries like [`visit_entries`](Self::visit_entries), without copying their routes.
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

    /// Returns the prefix announcement of the longest prefix of `name` that has an unexpired one.
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

    /// Removes records of refreshed routes when they outnumber the current ones.
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
            // This may happen while `remove_face` holds the list of the face; nothing is left to find then.
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
