//! Module `faces`: creating, changing and destroying faces.

use std::sync::Arc;

use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{Code, ControlParameters, ControlResponse, FaceStatus, FieldSet};
use namehop_face::FaceUri;
use namehop_face::counters::DirectionCounters;
use namehop_face::registry::{Face, FaceFlags, FacePersistency, FaceUpdate, RejectedProperties};
use namehop_face::socket::CreateError;
use namehop_packet::FaceId;
use namehop_port::drivers::{self, Access, Driver};

use super::dispatcher::face_or_incoming;
use super::reply::not_saved;
use super::verbs::{Action, Verb, bad_request};
use super::{ControlPlane, Management, StateChange};
use crate::authentication::Authority;

/// Fields of the configurable properties of a face.
const FACE_PROPERTIES: FieldSet = FieldSet::FLAGS
    .with(FieldSet::MASK)
    .with(FieldSet::FACE_PERSISTENCY)
    .with(FieldSet::BASE_CONGESTION_MARKING_INTERVAL)
    .with(FieldSet::DEFAULT_CONGESTION_THRESHOLD)
    .with(FieldSet::MTU);

/// Converts to an entry of the dataset `faces/list`.
pub(super) fn face_status(face: &Face) -> FaceStatus {
    let received = |count: fn(&DirectionCounters) -> u64| face.counters.sum(|worker| count(&worker.received));
    let sent = |count: fn(&DirectionCounters) -> u64| face.counters.sum(|worker| count(&worker.sent));
    FaceStatus {
        face_id: face.id().0.into(),
        uri: face.remote_uri().to_string(),
        local_uri: face.local_uri().to_string(),
        expiration_period_ms: face.expiration_period_ms(),
        scope: face.scope(),
        persistency: face.persistency(),
        link_type: face.link_type(),
        base_congestion_marking_interval_ns: Some(face.base_congestion_marking_interval_ns()),
        default_congestion_threshold_bytes: Some(face.default_congestion_threshold_bytes()),
        // A stream carries packets of any size, so it has no MTU.
        mtu_bytes: face.is_datagram().then(|| face.mtu_bytes() as u64),
        in_interests: received(|counters| counters.interests.packets.get()),
        in_data: received(|counters| counters.data.packets.get()),
        in_nacks: received(|counters| counters.nacks.packets.get()),
        out_interests: sent(|counters| counters.interests.packets.get()),
        out_data: sent(|counters| counters.data.packets.get()),
        out_nacks: sent(|counters| counters.nacks.packets.get()),
        in_bytes: received(|counters| counters.bytes.get()),
        out_bytes: sent(|counters| counters.bytes.get()),
        flags: face.flags().0,
        is_up: Some(face.is_up()),
    }
}

/// Returns the properties of a face for the response to a command. Optional ones are included only if the command had
/// them, because some clients do not know the others.
fn properties(face: &Face, requested: &ControlParameters) -> ControlParameters {
    ControlParameters {
        face_id: Some(face.id().0.into()),
        flags: Some(face.flags().0),
        face_persistency: Some(face.persistency().code()),
        base_congestion_marking_interval_ns: requested
            .base_congestion_marking_interval_ns
            .map(|_| face.base_congestion_marking_interval_ns()),
        default_congestion_threshold_bytes: requested
            .default_congestion_threshold_bytes
            .map(|_| face.default_congestion_threshold_bytes()),
        mtu_bytes: requested.mtu_bytes.map(|_| face.mtu_bytes() as u64),
        ..ControlParameters::default()
    }
}

fn properties_with_uris(face: &Face, requested: &ControlParameters) -> ControlParameters {
    ControlParameters {
        uri: Some(face.remote_uri().to_string()),
        local_uri: Some(face.local_uri().to_string()),
        ..properties(face, requested)
    }
}

fn to_update(parameters: &ControlParameters) -> Result<FaceUpdate, ControlResponse> {
    let persistency = match parameters.face_persistency {
        Some(code) => match FacePersistency::from_code(code) {
            Some(persistency) => Some(persistency),
            None => return Err(bad_request(format!("{code} is not a FacePersistency"))),
        },
        None => None,
    };
    Ok(FaceUpdate {
        persistency,
        flags: FaceFlags(parameters.flags.unwrap_or(0)),
        flags_mask: parameters.mask.unwrap_or(0),
        base_congestion_marking_interval_ns: parameters.base_congestion_marking_interval_ns,
        default_congestion_threshold_bytes: parameters.default_congestion_threshold_bytes,
        mtu_bytes: parameters.mtu_bytes,
    })
}

/// Returns the change that reverts `update`.
fn undoing(face: &Face, update: &FaceUpdate) -> FaceUpdate {
    FaceUpdate {
        persistency: update.persistency.map(|_| face.persistency()),
        flags: face.flags(),
        // A change of persistency may also change this flag.
        flags_mask: update.flags_mask | update.persistency.map_or(0, |_| FaceFlags::KEEP_ALIVE.0),
        base_congestion_marking_interval_ns: update
            .base_congestion_marking_interval_ns
            .map(|_| face.base_congestion_marking_interval_ns()),
        default_congestion_threshold_bytes: update
            .default_congestion_threshold_bytes
            .map(|_| face.default_congestion_threshold_bytes()),
        // The largest number means that no MTU was set.
        mtu_bytes: update.mtu_bytes.map(|_| face.requested_mtu_bytes().unwrap_or(u64::MAX)),
    }
}

fn canonical_uri(text: &str) -> Result<FaceUri, ControlResponse> {
    match drivers::parse_uri(text) {
        Ok(uri) if uri.is_canonical() => Ok(uri),
        Ok(uri) => Err(bad_request(format!(
            "{uri} is not canonical: give a numeric address with the address family in the scheme, and a port"
        ))),
        Err(error) => Err(bad_request(error.to_string())),
    }
}

fn not_acceptable(text: impl Into<String>) -> ControlResponse {
    ControlResponse::new(status_code::NOT_ACCEPTABLE, text)
}

/// Whether ports of this driver can have addresses.
fn has_options(driver: &Driver) -> bool {
    driver.scheme.separator.is_some()
}

/// Checks the rules of face creation that apply to every transport.
fn check_creation(uri: &FaceUri, local_uri: Option<&FaceUri>, update: &FaceUpdate) -> Result<(), ControlResponse> {
    if update.persistency == Some(FacePersistency::OnDemand) {
        return Err(not_acceptable("on-demand faces are created by incoming packets, not by commands"));
    }
    if uri.is_multicast() && !matches!(uri, FaceUri::Ethernet(_)) {
        return Err(not_acceptable("multicast faces are created by the configuration, not by commands"));
    }
    match (uri, local_uri) {
        (FaceUri::Udp { .. } | FaceUri::Tunnel(_), Some(local)) if local.options().is_some() => Ok(()),
        (FaceUri::Udp { .. }, Some(_)) => Err(not_acceptable(format!(
            "UDP faces take no LocalUri, or that of a port with its own addresses: {}",
            drivers::forms(has_options)
        ))),
        (FaceUri::Tcp { .. }, Some(_)) => Err(not_acceptable("TCP faces take no LocalUri")),
        (FaceUri::Tunnel(_), _) => {
            let scheme = uri.scheme();
            Err(not_acceptable(format!("{scheme} faces need a LocalUri of the form {}", drivers::forms(has_options))))
        }
        (FaceUri::Ethernet(_), Some(FaceUri::Port(_))) => Ok(()),
        (FaceUri::Ethernet(_), _) => {
            Err(not_acceptable(format!("Ethernet faces need a LocalUri of the form {}", drivers::forms(|_| true))))
        }
        _ => Ok(()),
    }
}

/// Returns the rejected properties with the requested values.
fn refused(rejected: &RejectedProperties, requested: &ControlParameters) -> ControlParameters {
    ControlParameters {
        face_persistency: requested.face_persistency.filter(|_| rejected.persistency),
        flags: requested.flags.filter(|_| rejected.flags),
        mask: requested.mask.filter(|_| rejected.flags),
        base_congestion_marking_interval_ns: requested
            .base_congestion_marking_interval_ns
            .filter(|_| rejected.base_congestion_marking_interval),
        mtu_bytes: requested.mtu_bytes.filter(|_| rejected.mtu),
        ..ControlParameters::default()
    }
}

impl<C: ControlPlane> Management<C> {
    /// Verbs of the module.
    pub(super) const FACE_VERBS: &[Verb<C>] = &[
        Verb {
            name: "create",
            required: FieldSet::URI,
            optional: FieldSet::LOCAL_URI.with(FACE_PROPERTIES),
            action: Action::Task(|this, parameters, requester| {
                Box::pin(async move { this.create_face(parameters, requester.authority).await })
            }),
        },
        Verb {
            name: "update",
            required: FieldSet::NONE,
            optional: FieldSet::FACE_ID.with(FACE_PROPERTIES),
            action: Action::Task(|this, parameters, requester| {
                Box::pin(async move { this.update_face(parameters, requester.face).await })
            }),
        },
        Verb {
            name: "destroy",
            required: FieldSet::FACE_ID,
            optional: FieldSet::NONE,
            action: Action::Task(|this, parameters, _| Box::pin(async move { this.destroy_face(parameters).await })),
        },
    ];

    /// Checks that the requester may have the port opened. The router opens ports with its own rights, which may exceed
    /// the requester's rights.
    fn check_port(
        &self,
        uri: &FaceUri,
        local_uri: Option<&FaceUri>,
        authority: Authority,
    ) -> Result<(), ControlResponse> {
        let port = match (uri, local_uri) {
            (uri, _) if uri.is_bare_port() => uri,
            (_, Some(local @ FaceUri::Port(_))) => local,
            _ => return Ok(()),
        };
        // If the face exists, the response is its id, and no port is opened.
        let exists = self.control.faces().find_by_remote(uri).iter().any(|face| *face.local_uri() == *port);
        // Only the configuration decides which files are read and written, even for authorized requesters.
        let is_file = Driver::access_to(port) == Some(Access::Files);
        if matches!(authority, Authority::ListedKey | Authority::Token) && !is_file || exists {
            return Ok(());
        }
        self.control
            .may_open_port(port)
            .map_err(|error| ControlResponse::new(status_code::FORBIDDEN, error.to_string()))
    }

    async fn create_face(&self, parameters: ControlParameters, authority: Authority) -> ControlResponse {
        let creation = || {
            let uri = canonical_uri(parameters.uri.as_deref().unwrap_or_default())?;
            let local_uri = parameters.local_uri.as_deref().map(canonical_uri).transpose()?;
            let update = to_update(&parameters)?;
            check_creation(&uri, local_uri.as_ref(), &update)?;
            self.check_port(&uri, local_uri.as_ref(), authority)?;
            Ok((uri, local_uri, update))
        };
        let (uri, local_uri, update) = match creation() {
            Ok(creation) => creation,
            Err(response) => return response,
        };
        match self.control.create_face(uri, local_uri, update).await {
            Ok(face) => {
                if let Err(error) = self.control.save(StateChange::FaceCreated(&face)) {
                    self.remove_face(&face).await;
                    return not_saved(&error);
                }
                ControlResponse::ok(&properties_with_uris(&face, &parameters))
            }
            Err(error) => {
                let response = ControlResponse::new(error.status_code(), error.to_string());
                match error {
                    CreateError::Exists(face) => response.with_parameters(&properties_with_uris(&face, &parameters)),
                    _ => response,
                }
            }
        }
    }

    async fn update_face(&self, parameters: ControlParameters, incoming: FaceId) -> ControlResponse {
        let update = match to_update(&parameters) {
            Ok(update) => update,
            Err(response) => return response,
        };
        let Some(face) = self.find_face(parameters.face_id, incoming) else {
            return ControlResponse::new(status_code::NOT_FOUND, "the face does not exist");
        };
        if face.id() < FaceId::FIRST_USER {
            return ControlResponse::new(status_code::NOT_ACCEPTABLE, "the router's own faces cannot be changed");
        }
        let before = undoing(&face, &update);
        match self.control.update_face(&face, update).await {
            Ok(()) => {
                if let Err(error) = self.control.save(StateChange::FaceUpdated(&face)) {
                    // The face had these properties a moment ago, so it does not reject them.
                    let _ = self.control.update_face(&face, before).await;
                    return not_saved(&error);
                }
                ControlResponse::ok(&properties(&face, &parameters))
            }
            Err(rejected) => ControlResponse::new(status_code::CONFLICT, rejected.to_string())
                .with_parameters(&refused(&rejected, &parameters)),
        }
    }

    async fn destroy_face(&self, parameters: ControlParameters) -> ControlResponse {
        if parameters.face_id == Some(0) {
            return bad_request("FaceId must be the id of a face: 0 is none".to_owned());
        }
        let done = ControlParameters { face_id: parameters.face_id, ..ControlParameters::default() };
        let face = parameters.face_id.and_then(|id| u32::try_from(id).ok()).map(FaceId);
        let Some(face) = face.and_then(|id| self.control.faces().get(id)) else { return ControlResponse::ok(&done) };
        if face.id() < FaceId::FIRST_USER {
            return not_acceptable("this face belongs to the router itself and cannot be destroyed");
        }
        if let Err(error) = self.control.save(StateChange::FaceDestroyed(&face)) {
            return not_saved(&error);
        }
        self.remove_face(&face).await;
        ControlResponse::ok(&done)
    }

    /// Destroys a face and removes its routes and next hops.
    async fn remove_face(&self, face: &Face) {
        self.control.destroy_face(face.id()).await;
        // The event of the destruction may still be on its way; the routes must be removed before the response.
        self.forget_face(face.id());
    }

    fn find_face(&self, face_id: Option<u64>, incoming: FaceId) -> Option<Arc<Face>> {
        self.control.faces().get(face_or_incoming(face_id, incoming)?)
    }
}
