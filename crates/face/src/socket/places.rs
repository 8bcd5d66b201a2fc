//! The limit of faces over sockets, and the part of it that strangers cannot take.
//!
//! Anybody who can send a datagram or open a connection makes a face. A part of the places is kept for applications on
//! this computer and for faces made by configuration or command, so that the router can be used and looked at whatever
//! comes in from the network. WebSocket connections hold a place from before their handshake.

use std::cell::Cell;
use std::rc::Rc;

use namehop_forward::face::FaceScope;

use crate::registry::{FaceParams, FacePersistency};

/// One in so many places is kept from strangers.
const KEPT_FRACTION: usize = 4;
/// No fewer are kept, unless that were more than half.
const LEAST_KEPT: usize = 16;

/// For whom a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guest {
    /// A peer on another computer that came by itself.
    Stranger,
    /// An application on this computer, or a peer that this router was told of.
    Known,
}

impl Guest {
    /// Who an accepted connection is from.
    pub(super) fn of_scope(scope: FaceScope) -> Guest {
        if scope == FaceScope::Local { Guest::Known } else { Guest::Stranger }
    }

    /// Whom a new face is for.
    pub(super) fn of_face(params: &FaceParams) -> Guest {
        match params.persistency {
            FacePersistency::OnDemand => Guest::of_scope(params.scope),
            FacePersistency::Persistent | FacePersistency::Permanent => Guest::Known,
        }
    }
}

/// All places.
#[derive(Debug)]
pub(super) struct Places {
    limit: usize,
    strangers_limit: usize,
    taken: Cell<usize>,
    strangers: Cell<usize>,
}

impl Places {
    /// `limit` free places.
    pub(super) fn new(limit: usize) -> Rc<Places> {
        let kept = (limit / KEPT_FRACTION).max(LEAST_KEPT).min(limit / 2);
        Rc::new(Places { limit, strangers_limit: limit - kept, taken: Cell::new(0), strangers: Cell::new(0) })
    }

    /// Whether there is a place for `guest`.
    pub(super) fn has_room(&self, guest: Guest) -> bool {
        self.taken.get() < self.limit && (guest == Guest::Known || self.strangers.get() < self.strangers_limit)
    }

    /// Takes a place, if there is one for `guest`.
    pub(super) fn take(self: &Rc<Self>, guest: Guest) -> Option<Place> {
        if !self.has_room(guest) {
            return None;
        }
        self.taken.set(self.taken.get() + 1);
        if guest == Guest::Stranger {
            self.strangers.set(self.strangers.get() + 1);
        }
        Some(Place { places: Rc::clone(self), guest })
    }
}

/// A place that was taken; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Place {
    places: Rc<Places>,
    guest: Guest,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.set(self.places.taken.get() - 1);
        if self.guest == Guest::Stranger {
            self.places.strangers.set(self.places.strangers.get() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(places: &Rc<Places>, guest: Guest) -> Vec<Place> {
        std::iter::from_fn(|| places.take(guest)).collect()
    }

    #[test]
    fn strangers_leave_a_part() {
        for (limit, for_strangers) in [(0, 0), (1, 1), (4, 2), (20, 10), (40, 24), (64, 48), (16_384, 12_288)] {
            let places = Places::new(limit);
            let strangers = take_all(&places, Guest::Stranger);
            assert_eq!(strangers.len(), for_strangers, "of {limit}");
            let known = take_all(&places, Guest::Known);
            assert_eq!(known.len(), limit - for_strangers, "of {limit}");
        }
    }

    #[test]
    fn places_come_back_and_the_known_may_take_them_all() {
        let places = Places::new(40);
        let strangers = take_all(&places, Guest::Stranger);
        drop(strangers);
        let known = take_all(&places, Guest::Known);
        assert_eq!(known.len(), 40);
        assert!(!places.has_room(Guest::Stranger));
        drop(known);
        assert_eq!(take_all(&places, Guest::Stranger).len(), 24);
    }
}
