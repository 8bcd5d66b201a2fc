//! Routes from prefix announcements: by command (`rib/announce`) and learned by the self-learning strategy.
//!
//! Both are child-inherit routes of origin "prefix announcement" with a fixed cost. They expire with the announcement
//! at the latest. Routes learned without a command live for at most ten minutes.

use namehop_client::nfd::numbers::{origin, route_flags, status_code};
use namehop_client::nfd::{ControlParameters, ControlResponse};
use namehop_packet::FaceId;
use namehop_wire::security::unix_time_ms;
use namehop_wire::{Data, DecodeError, Name, NameRef, PrefixAnnouncement};
use thiserror::Error;

use super::dispatcher::Requester;
use super::rib::{check_neighbour, refused};
use super::{ControlPlane, Management, RouteError};
use crate::authentication::{Authority, Rejection};
use crate::rib::Route;

/// Cost of routes from prefix announcements (NFD self-learning).
const ANNOUNCED_COST: u64 = 2048;
/// Maximum lifetime of a route learned without a command, in milliseconds (NFD self-learning).
const MAX_LEARNED_LIFETIME_MS: u64 = 600_000;

/// Why a prefix announcement creates no route.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AnnouncementError {
    /// The packet is not a prefix announcement.
    #[error("malformed prefix announcement: {0}")]
    Malformed(#[from] DecodeError),
    /// The key of the announcement is not trusted for this prefix.
    #[error("prefix announcement refused: {0}")]
    Refused(#[from] Rejection),
    /// The validity period has not begun or has ended.
    #[error("the prefix announcement is not valid at this time")]
    NotValidNow,
    /// The route cannot be added.
    #[error(transparent)]
    Route(#[from] RouteError),
}

impl<C: ControlPlane> Management<C> {
    /// Adds a route from an announcement in a Data from `face`; returns its prefix. The self-learning strategy of the
    /// forwarding engine passes such announcements on.
    ///
    /// # Errors
    /// Why no route was added.
    pub fn learn_route(&self, announcement: &[u8], face: FaceId) -> Result<Name, AnnouncementError> {
        self.route_from_announcement(announcement, face, MAX_LEARNED_LIFETIME_MS, true).map(|(prefix, ..)| prefix)
    }

    /// Removes a learned route because its face is down or returned a no-route Nack. Returns false if there was no such
    /// route.
    pub fn forget_learned_route(&self, prefix: NameRef<'_>, face: FaceId) -> bool {
        self.remove_route(prefix, face, origin::PREFIX_ANNOUNCEMENT)
    }

    /// Returns the announcement (a complete Data) that covers a Data name, for the self-learning strategy to attach.
    pub fn find_announcement(&self, name: NameRef<'_>) -> Option<Vec<u8>> {
        self.routes.borrow().rib.find_announcement(name, self.now_ms()).map(<[u8]>::to_vec)
    }

    pub(super) fn announce(&self, announcement: &[u8], requester: Requester) -> ControlResponse {
        // The key of the command must cover the prefix as well, because any peer can replay another's announcement.
        let covered = Data::decode(announcement).and_then(|data| {
            let prefix = PrefixAnnouncement::decode(&data)?.prefix;
            Ok(check_neighbour(&requester, prefix, requester.face))
        });
        if let Ok(Err(response)) = covered {
            return response;
        }
        let is_remote = matches!(requester.authority, Authority::Neighbour(_));
        match self.route_from_announcement(announcement, requester.face, u64::MAX, is_remote) {
            Ok((prefix, route, lifetime_ms)) => ControlResponse::ok(&ControlParameters {
                name: Some(prefix),
                face_id: Some(route.face.0.into()),
                origin: Some(route.origin),
                cost: Some(route.cost),
                flags: Some(route.flags),
                expiration_period_ms: Some(lifetime_ms),
                ..ControlParameters::default()
            }),
            Err(AnnouncementError::Malformed(error)) => {
                ControlResponse::new(status_code::BAD_REQUEST, AnnouncementError::Malformed(error).to_string())
            }
            Err(AnnouncementError::Route(error)) => refused(error),
            Err(error) => ControlResponse::new(status_code::FORBIDDEN, error.to_string()),
        }
    }

    fn route_from_announcement(
        &self,
        packet: &[u8],
        face: FaceId,
        max_lifetime_ms: u64,
        is_remote: bool,
    ) -> Result<(Name, Route, u64), AnnouncementError> {
        let data = Data::decode(packet)?;
        let announcement = PrefixAnnouncement::decode(&data)?;
        let now_unix_ms = unix_time_ms();
        self.authenticator.borrow().verify_announcement(&data, announcement.prefix, now_unix_ms)?;
        let mut lifetime_ms = announcement.expiration_ms.min(max_lifetime_ms);
        if let Some(validity) = announcement.validity_period {
            if !validity.contains(now_unix_ms / 1000) {
                return Err(AnnouncementError::NotValidNow);
            }
            let remaining_ms = validity.not_after_s.saturating_add(1).saturating_mul(1000) - now_unix_ms;
            lifetime_ms = lifetime_ms.min(remaining_ms);
        }
        let route = Route {
            face,
            origin: origin::PREFIX_ANNOUNCEMENT,
            cost: ANNOUNCED_COST,
            flags: route_flags::CHILD_INHERIT,
            expires_at_ms: Some(self.now_ms().saturating_add(lifetime_ms)),
            announcement: Some(packet.into()),
            is_remote,
        };
        self.check_room(announcement.prefix, &route)?;
        self.add_route(announcement.prefix, route.clone())?;
        Ok((announcement.prefix.to_owned(), route, lifetime_ms))
    }
}
