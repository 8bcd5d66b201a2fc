//! Module `rib`: routes, and the changes of the FIB that they cause.

use namehop_client::nfd::numbers::{origin, route_flags, status_code};
use namehop_client::nfd::{ControlParameters, ControlResponse, FieldSet};
use namehop_face::counters::LinkDrop;
use namehop_packet::FaceId;
use namehop_wire::NameRef;
use thiserror::Error;

use super::dispatcher::{Requester, face_or_incoming};
use super::fib_update::{FibUpdate, OverfullNames};
use super::reply::not_saved;
use super::verbs::{Action, Verb};
use super::{ControlPlane, Management, StateChange};
use crate::authentication::Authority;
use crate::rib::{Rib, RibError, Route, RouteLimits};

/// Routes, and the state of transferring them to the FIB.
#[derive(Debug, Default)]
pub(super) struct Routes {
    pub(super) rib: Rib,
    overfull: OverfullNames,
}

impl Routes {
    pub(super) fn with_limits(limits: RouteLimits) -> Self {
        Routes { rib: Rib::with_limits(limits), ..Routes::default() }
    }
}

/// Why a route was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RouteError {
    /// The face does not exist.
    #[error("the face does not exist")]
    NoSuchFace,
    /// The router itself answers names under this prefix. A route would divert its commands.
    #[error("the router itself answers names under this prefix, so it cannot have routes")]
    Dedicated,
    /// The table refuses the route.
    #[error(transparent)]
    Rib(#[from] RibError),
}

impl RouteError {
    /// Returns the status code of the NFD management protocol.
    pub(super) const fn status_code(self) -> u64 {
        match self {
            RouteError::NoSuchFace => status_code::GONE,
            RouteError::Dedicated => status_code::NOT_ACCEPTABLE,
            RouteError::Rib(RibError::PrefixTooLong) => status_code::PREFIX_TOO_LONG,
            RouteError::Rib(RibError::Full) => status_code::INTERNAL_ERROR,
            RouteError::Rib(RibError::TooManyOfFace(_) | RibError::TooManyRemote(_) | RibError::TooMany(_)) => {
                status_code::INSUFFICIENT_STORAGE
            }
        }
    }
}

impl<C: ControlPlane> Management<C> {
    /// Verbs of the module.
    pub(super) const RIB_VERBS: &[Verb<C>] = &[
        Verb {
            name: "register",
            required: FieldSet::NAME,
            optional: FieldSet::FACE_ID
                .with(FieldSet::ORIGIN)
                .with(FieldSet::COST)
                .with(FieldSet::FLAGS)
                .with(FieldSet::EXPIRATION_PERIOD),
            action: Action::Now(Self::register),
        },
        Verb {
            name: "unregister",
            required: FieldSet::NAME,
            optional: FieldSet::FACE_ID.with(FieldSet::ORIGIN),
            action: Action::Now(Self::unregister),
        },
        Verb {
            name: "announce",
            required: FieldSet::NONE,
            optional: FieldSet::NONE,
            action: Action::WithApplicationParameters(Self::announce),
        },
    ];

    /// Applies `change` to the RIB and the resulting changes to the FIB.
    fn change_routes<R>(&self, change: impl FnOnce(&mut Rib, &mut FibUpdate<'_, C>) -> R) -> R {
        let Routes { rib, overfull } = &mut *self.routes.borrow_mut();
        let result = self.control.with_fib(|fib| {
            let mut readvertise = self.readvertise.borrow_mut();
            let mut update = FibUpdate::new(&self.control, fib, overfull, &mut readvertise, self.now_ms());
            let result = change(rib, &mut update);
            update.finish(rib);
            result
        });
        self.notify_readvertise();
        result
    }

    /// Adds a route or replaces the one with the same face and origin. Its expiry is on the clock of
    /// [`now_ms`](Self::now_ms).
    ///
    /// # Errors
    /// When the face does not exist, the prefix is too long or reserved for the router itself, or the table refuses the
    /// route.
    pub fn add_route(&self, prefix: NameRef<'_>, route: Route) -> Result<(), RouteError> {
        if self.control.with_fib(|fib| fib.is_dedicated(prefix)) {
            return Err(RouteError::Dedicated);
        }
        if self.control.faces().get(route.face).is_none() {
            return Err(RouteError::NoSuchFace);
        }
        let expires = route.expires_at_ms.is_some();
        self.change_routes(|rib, update| rib.register(prefix, route, update))?;
        if expires {
            self.due_earlier.notify_one();
        }
        Ok(())
    }

    /// Removes a route; returns false if there was none.
    pub fn remove_route(&self, prefix: NameRef<'_>, face: FaceId, origin: u64) -> bool {
        self.change_routes(|rib, update| rib.unregister(prefix, face, origin, update))
    }

    pub(super) fn expire_routes(&self, now_ms: u64) {
        if self.routes.borrow_mut().rib.next_expiry_ms().is_some_and(|due_ms| due_ms <= now_ms) {
            let expired = self.change_routes(|rib, update| rib.expire(now_ms, update));
            tracing::debug!(expired, "routes expired");
        }
    }

    /// Removes all routes and next hops of a face. A second call has no effect.
    pub(super) fn forget_face(&self, face: FaceId) {
        self.change_routes(|rib, update| rib.remove_face(face, update));
        self.remove_direct_next_hops(face);
        self.start_removing_loaded(face);
    }

    fn register(&self, parameters: ControlParameters, requester: Requester) -> ControlResponse {
        let name = parameters.name.unwrap_or_default();
        let Some(face) = face_or_incoming(parameters.face_id, requester.face) else {
            return refused(RouteError::NoSuchFace);
        };
        if let Err(response) = check_neighbour(&requester, name.as_ref(), face) {
            return response;
        }
        if self.control.faces().get(face).is_none() {
            return refused(RouteError::NoSuchFace);
        }
        let route = Route {
            face,
            origin: parameters.origin.unwrap_or(origin::APP),
            cost: parameters.cost.unwrap_or(0),
            flags: parameters.flags.unwrap_or(route_flags::CHILD_INHERIT),
            expires_at_ms: parameters.expiration_period_ms.map(|period_ms| self.now_ms().saturating_add(period_ms)),
            announcement: None,
            is_remote: matches!(requester.authority, Authority::Neighbour(_)),
        };
        // The room is checked first, so nothing is written to disk for a route that is refused.
        if let Err(error) = self.check_room(name.as_ref(), &route) {
            return refused(error);
        }
        let lifetime_ms = parameters.expiration_period_ms;
        let change = StateChange::RouteRegistered { prefix: name.as_ref(), route: &route, lifetime_ms };
        if let Err(error) = self.control.save(change) {
            return not_saved(&error);
        }
        if let Err(error) = self.add_route(name.as_ref(), route.clone()) {
            self.control.withdraw();
            return refused(error);
        }
        ControlResponse::ok(&ControlParameters {
            name: Some(name),
            face_id: Some(face.0.into()),
            origin: Some(route.origin),
            cost: Some(route.cost),
            flags: Some(route.flags),
            expiration_period_ms: parameters.expiration_period_ms,
            ..ControlParameters::default()
        })
    }

    /// Checks the limits on routes for one more route. Counts a refusal on its face.
    pub(super) fn check_room(&self, name: NameRef<'_>, route: &Route) -> Result<(), RouteError> {
        self.routes.borrow().rib.check_limits(name, route).map_err(|error| {
            if let Some(face) = self.control.faces().get(route.face) {
                face.counters.count_transport_drop(LinkDrop::TooManyRoutes);
            }
            RouteError::Rib(error)
        })
    }

    fn unregister(&self, parameters: ControlParameters, requester: Requester) -> ControlResponse {
        let name = parameters.name.unwrap_or_default();
        let origin = parameters.origin.unwrap_or(origin::APP);
        let face_id = match parameters.face_id {
            None | Some(0) => requester.face.0.into(),
            Some(id) => id,
        };
        let face = u32::try_from(face_id).map(FaceId);
        if let Err(response) = check_neighbour(&requester, name.as_ref(), face.unwrap_or_default()) {
            return response;
        }
        if let Ok(face) = face
            && self.routes.borrow().rib.route(name.as_ref(), face, origin).is_some()
        {
            let change = StateChange::RouteUnregistered { prefix: name.as_ref(), face, origin };
            if let Err(error) = self.control.save(change) {
                return not_saved(&error);
            }
            self.remove_route(name.as_ref(), face, origin);
        }
        ControlResponse::ok(&ControlParameters {
            name: Some(name),
            face_id: Some(face_id),
            origin: Some(origin),
            ..ControlParameters::default()
        })
    }
}

pub(super) fn refused(error: RouteError) -> ControlResponse {
    ControlResponse::new(error.status_code(), error.to_string())
}

/// Checks that a neighbour commands routes only for its own face and for names of its key.
pub(super) fn check_neighbour(requester: &Requester, name: NameRef<'_>, face: FaceId) -> Result<(), ControlResponse> {
    let forbidden = |text: String| Err(ControlResponse::new(status_code::FORBIDDEN, text));
    let Authority::Neighbour(namespace) = &requester.authority else { return Ok(()) };
    if face != requester.face {
        let text = "a command under /localhop/nfd applies to the face that it arrives on: omit FaceId";
        return forbidden(text.to_owned());
    }
    namespace.check(name).or_else(|rejection| forbidden(rejection.to_string()))
}
