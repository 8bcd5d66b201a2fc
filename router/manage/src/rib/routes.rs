//! The routes of one name, in 12 bytes for the most frequent case of one ordinary route.
//!
//! The routes of a name move to a separate list when there is more than one, or when the route expires, has an
//! announcement, was registered by another host, or has an unusually large origin or cost. They move back when the list
//! shrinks to one ordinary route.

use namehop_packet::FaceId;

/// Route flag: also applies to longer names.
pub const FLAG_CHILD_INHERIT: u64 = 1;
/// Route flag: the name inherits nothing from shorter names.
pub const FLAG_CAPTURE: u64 = 2;

/// One route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Next hop.
    pub face: FaceId,
    /// Origin of the route (see [`namehop_client::nfd::numbers::origin`]).
    pub origin: u64,
    /// Lower is better.
    pub cost: u64,
    /// [`FLAG_CHILD_INHERIT`], [`FLAG_CAPTURE`]; other bits are kept and have no effect.
    pub flags: u64,
    /// Expiry on the clock of the caller, in milliseconds; `None` = never.
    pub expires_at_ms: Option<u64>,
    /// The prefix announcement (a complete Data) that the route was made from.
    pub announcement: Option<Box<[u8]>>,
    /// A peer on another host registered the route, or it was learned from one. It counts against
    /// [`RouteLimits`](super::RouteLimits).
    pub is_remote: bool,
}

impl Route {
    fn small(&self) -> Option<RouteSet> {
        if self.expires_at_ms.is_some() || self.announcement.is_some() || self.is_remote {
            return None;
        }
        Some(RouteSet::One {
            face: self.face.0,
            cost: u32::try_from(self.cost).ok()?,
            origin: u16::try_from(self.origin).ok()?,
            flags: u8::try_from(self.flags).ok()?,
        })
    }
}

/// The routes of one name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum RouteSet {
    #[default]
    Empty,
    One {
        face: u32,
        cost: u32,
        origin: u16,
        flags: u8,
    },
    List(u32),
}

/// Route lists of the names that need one.
#[derive(Debug, Default)]
pub(super) struct RouteLists {
    lists: Vec<Vec<Route>>,
    free: Vec<u32>,
}

impl RouteLists {
    fn get(&self, index: u32) -> &[Route] {
        &self.lists[index as usize]
    }

    fn add(&mut self, routes: Vec<Route>) -> u32 {
        if let Some(index) = self.free.pop() {
            self.lists[index as usize] = routes;
            return index;
        }
        super::push_in_small_steps(&mut self.lists, routes);
        (self.lists.len() - 1) as u32
    }

    fn release(&mut self, index: u32) -> Vec<Route> {
        self.free.push(index);
        std::mem::take(&mut self.lists[index as usize])
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.lists.capacity() * size_of::<Vec<Route>>()
            + self.free.capacity() * size_of::<u32>()
            + self.lists.iter().map(|list| list.capacity() * size_of::<Route>()).sum::<usize>()
    }
}

/// Read access to the routes of one name.
#[derive(Debug, Clone, Copy)]
pub struct RoutesView<'a> {
    pub(super) set: &'a RouteSet,
    pub(super) lists: &'a RouteLists,
}

impl RoutesView<'_> {
    /// Returns the lowest cost of the routes of these origins; `None` if there are none.
    pub fn lowest_cost(&self, origins: &[u64]) -> Option<u64> {
        let mut lowest = None;
        self.set.for_each(self.lists, |_, origin, cost, _| {
            if origins.contains(&origin) {
                lowest = Some(lowest.map_or(cost, |lowest: u64| lowest.min(cost)));
            }
        });
        lowest
    }
}

/// Costs of one face at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FaceCosts {
    /// Lowest cost of all routes for the face.
    pub own: Option<u64>,
    /// Lowest cost of its child-inherit routes.
    pub inheritable: Option<u64>,
}

impl RouteSet {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, RouteSet::Empty)
    }

    /// Calls `visit` with (face, origin, cost, flags) of each route, without copying announcements.
    fn for_each(&self, lists: &RouteLists, mut visit: impl FnMut(FaceId, u64, u64, u64)) {
        match *self {
            RouteSet::Empty => {}
            RouteSet::One { face, cost, origin, flags } => {
                visit(FaceId(face), origin.into(), cost.into(), flags.into());
            }
            RouteSet::List(index) => {
                for route in lists.get(index) {
                    visit(route.face, route.origin, route.cost, route.flags);
                }
            }
        }
    }

    /// Returns copies of the routes, in order of registration.
    pub(super) fn iter<'a>(&self, lists: &'a RouteLists) -> impl Iterator<Item = Route> + use<'a> {
        let (one, list) = match *self {
            RouteSet::Empty => (None, &[][..]),
            RouteSet::One { face, cost, origin, flags } => (
                Some(Route {
                    face: FaceId(face),
                    origin: origin.into(),
                    cost: cost.into(),
                    flags: flags.into(),
                    expires_at_ms: None,
                    announcement: None,
                    is_remote: false,
                }),
                &[][..],
            ),
            RouteSet::List(index) => (None, lists.get(index)),
        };
        one.into_iter().chain(list.iter().cloned())
    }

    pub(super) fn is_capturing(&self, lists: &RouteLists) -> bool {
        let mut capturing = false;
        self.for_each(lists, |_, _, _, flags| capturing |= flags & FLAG_CAPTURE != 0);
        capturing
    }

    pub(super) fn costs(&self, wanted: FaceId, lists: &RouteLists) -> FaceCosts {
        let mut costs = FaceCosts::default();
        let lower = |old: Option<u64>, new: u64| Some(old.map_or(new, |old| old.min(new)));
        self.for_each(lists, |face, _, cost, flags| {
            if face == wanted {
                costs.own = lower(costs.own, cost);
                if flags & FLAG_CHILD_INHERIT != 0 {
                    costs.inheritable = lower(costs.inheritable, cost);
                }
            }
        });
        costs
    }

    /// Calls `visit` with face and cost of every child-inherit route.
    pub(super) fn for_each_inheritable(&self, lists: &RouteLists, mut visit: impl FnMut(FaceId, u64)) {
        self.for_each(lists, |face, _, cost, flags| {
            if flags & FLAG_CHILD_INHERIT != 0 {
                visit(face, cost);
            }
        });
    }

    pub(super) fn first_origin_of(&self, wanted: FaceId, lists: &RouteLists) -> Option<u64> {
        let mut found = None;
        self.for_each(lists, |face, origin, _, _| {
            if face == wanted && found.is_none() {
                found = Some(origin);
            }
        });
        found
    }

    pub(super) fn expiry(&self, face: FaceId, origin: u64, lists: &RouteLists) -> Option<u64> {
        let RouteSet::List(index) = *self else { return None };
        lists.get(index).iter().find(|route| route.face == face && route.origin == origin)?.expires_at_ms
    }

    /// Returns true if another host registered the route of this face and origin.
    pub(super) fn has_remote(&self, face: FaceId, origin: u64, lists: &RouteLists) -> bool {
        let RouteSet::List(index) = *self else { return false };
        lists.get(index).iter().any(|route| route.face == face && route.origin == origin && route.is_remote)
    }

    pub(super) fn announcement<'a>(&self, lists: &'a RouteLists, now_ms: u64) -> Option<&'a [u8]> {
        let RouteSet::List(index) = *self else { return None };
        lists
            .get(index)
            .iter()
            .filter(|route| route.expires_at_ms.is_none_or(|expiry| expiry > now_ms))
            .find_map(|route| route.announcement.as_deref())
    }

    /// Adds or replaces the route with the same face and origin; returns the replaced one.
    pub(super) fn insert(&mut self, route: Route, lists: &mut RouteLists) -> Option<Route> {
        if self.is_empty() {
            *self = match route.small() {
                Some(small) => small,
                None => RouteSet::List(lists.add(vec![route])),
            };
            return None;
        }
        let mut routes = self.take(lists);
        let same = routes.iter_mut().find(|old| old.face == route.face && old.origin == route.origin);
        let old = match same {
            Some(old) => Some(std::mem::replace(old, route)),
            None => {
                routes.push(route);
                None
            }
        };
        self.put_back(routes, lists);
        old
    }

    /// Removes and returns a route.
    pub(super) fn remove(&mut self, face: FaceId, origin: u64, lists: &mut RouteLists) -> Option<Route> {
        let position = self.iter_position(face, origin, lists)?;
        let mut routes = self.take(lists);
        let removed = routes.remove(position);
        self.put_back(routes, lists);
        Some(removed)
    }

    fn iter_position(&self, wanted: FaceId, wanted_origin: u64, lists: &RouteLists) -> Option<usize> {
        let (mut position, mut found) = (0, None);
        self.for_each(lists, |face, origin, _, _| {
            if face == wanted && origin == wanted_origin {
                found = Some(position);
            }
            position += 1;
        });
        found
    }

    fn take(&mut self, lists: &mut RouteLists) -> Vec<Route> {
        let routes = match *self {
            RouteSet::List(index) => lists.release(index),
            _ => self.iter(lists).collect(),
        };
        *self = RouteSet::Empty;
        routes
    }

    fn put_back(&mut self, routes: Vec<Route>, lists: &mut RouteLists) {
        *self = match routes.as_slice() {
            [] => RouteSet::Empty,
            [route] => match route.small() {
                Some(small) => small,
                None => RouteSet::List(lists.add(routes)),
            },
            _ => RouteSet::List(lists.add(routes)),
        };
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_ordinary_route_takes_twelve_bytes() {
        assert_eq!(size_of::<super::RouteSet>(), 12);
    }
}
