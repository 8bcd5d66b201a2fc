//! Module `fib`: next hops set by command, in addition to those from routes.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{ControlParameters, ControlResponse, FieldSet};
use namehop_engine::fib::{FibError, NextHop};
use namehop_packet::FaceId;
use namehop_wire::Name;

use super::dispatcher::{Requester, face_or_incoming};
use super::verbs::{Action, Verb};
use super::{ControlPlane, Management};

/// Prefixes with a next hop set by command, by face. Kept because searching the whole FIB for a face takes long.
pub(super) type DirectNextHops = HashMap<FaceId, HashSet<Name>>;

/// Returns the response to a change that the FIB refuses.
pub(super) fn refused(error: &FibError) -> ControlResponse {
    let code = match error {
        FibError::PrefixTooLong => status_code::PREFIX_TOO_LONG,
        FibError::Dedicated => status_code::NOT_ACCEPTABLE,
        _ => status_code::INTERNAL_ERROR,
    };
    ControlResponse::new(code, error.to_string())
}

impl<C: ControlPlane> Management<C> {
    /// Verbs of the module.
    pub(super) const FIB_VERBS: &[Verb<C>] = &[
        Verb {
            name: "add-nexthop",
            required: FieldSet::NAME,
            optional: FieldSet::FACE_ID.with(FieldSet::COST),
            action: Action::Now(Self::add_next_hop),
        },
        Verb {
            name: "remove-nexthop",
            required: FieldSet::NAME,
            optional: FieldSet::FACE_ID,
            action: Action::Now(Self::remove_next_hop),
        },
    ];

    fn add_next_hop(&self, parameters: ControlParameters, requester: Requester) -> ControlResponse {
        let (name, cost) = (parameters.name.unwrap_or_default(), parameters.cost.unwrap_or(0));
        let face = face_or_incoming(parameters.face_id, requester.face);
        let Some(face) = face.filter(|&face| self.control.faces().get(face).is_some()) else {
            return ControlResponse::new(status_code::GONE, "the face does not exist");
        };
        let added = self.control.with_fib(|fib| fib.add_nexthop(name.as_ref(), face, cost));
        match added {
            Ok(is_new) => {
                if is_new {
                    self.control.next_hop_added(name.as_ref(), NextHop { face, cost });
                }
                self.direct_next_hops.borrow_mut().entry(face).or_default().insert(name.clone());
                self.next_hops_changed(name.as_ref());
                ControlResponse::ok(&ControlParameters {
                    name: Some(name),
                    face_id: Some(face.0.into()),
                    cost: Some(cost),
                    ..ControlParameters::default()
                })
            }
            Err(error) => refused(&error),
        }
    }

    fn remove_next_hop(&self, parameters: ControlParameters, requester: Requester) -> ControlResponse {
        let name = parameters.name.unwrap_or_default();
        let face_id = match parameters.face_id {
            None | Some(0) => requester.face.0.into(),
            Some(id) => id,
        };
        if let Ok(face) = u32::try_from(face_id) {
            self.remove_direct_next_hop(&name, FaceId(face));
        }
        ControlResponse::ok(&ControlParameters {
            name: Some(name),
            face_id: Some(face_id),
            ..ControlParameters::default()
        })
    }

    fn remove_direct_next_hop(&self, name: &Name, face: FaceId) {
        if let Entry::Occupied(mut names) = self.direct_next_hops.borrow_mut().entry(face) {
            names.get_mut().remove(name);
            if names.get().is_empty() {
                names.remove();
            }
        }
        self.remove_from_fib(name, face);
    }

    fn remove_from_fib(&self, name: &Name, face: FaceId) {
        if let Err(error) = self.control.with_fib(|fib| fib.remove_nexthop(name.as_ref(), face)) {
            tracing::debug!(%name, %face, %error, "cannot remove a next hop from the FIB");
        }
        self.next_hops_changed(name.as_ref());
    }

    /// Removes the next hops of a face that were set by command. Next hops from routes are removed with the routes.
    pub(super) fn remove_direct_next_hops(&self, face: FaceId) {
        let names = self.direct_next_hops.borrow_mut().remove(&face).unwrap_or_default();
        for name in &names {
            self.remove_from_fib(name, face);
        }
    }
}
