//! Messages about faces: status, channels, the query filter, and event notifications.

use namehop_face::FacePersistency;
use namehop_packet::{FaceScope, LinkType};
use namehop_wire::tlv::types::nfd;

use super::numbers::FaceEventKind;
use super::record::records;

records! {
    /// One face in `faces/list` and `faces/query`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct FaceStatus(nfd::FACE_STATUS) {
        /// Id of the face.
        face_id: u64 = nfd::FACE_ID,
        /// Remote FaceUri.
        uri: String = nfd::URI,
        /// Local FaceUri.
        local_uri: String = nfd::LOCAL_URI,
        /// Time until an idle on-demand face is closed, in milliseconds.
        expiration_period_ms: Option<u64> = nfd::EXPIRATION_PERIOD,
        /// Local or non-local.
        scope: FaceScope = nfd::FACE_SCOPE,
        /// When the face is closed.
        persistency: FacePersistency = nfd::FACE_PERSISTENCY,
        /// Number of peers that the link reaches.
        link_type: LinkType = nfd::LINK_TYPE,
        /// Congestion marking interval, in nanoseconds.
        base_congestion_marking_interval_ns: Option<u64> = nfd::BASE_CONGESTION_MARKING_INTERVAL,
        /// Congestion threshold of the send queue, in bytes.
        default_congestion_threshold_bytes: Option<u64> = nfd::DEFAULT_CONGESTION_THRESHOLD,
        /// MTU, in bytes; absent if there is no limit.
        mtu_bytes: Option<u64> = nfd::MTU,
        /// Interests received.
        in_interests: u64 = nfd::N_IN_INTERESTS,
        /// Data received.
        in_data: u64 = nfd::N_IN_DATA,
        /// Nacks received.
        in_nacks: u64 = nfd::N_IN_NACKS,
        /// Interests sent.
        out_interests: u64 = nfd::N_OUT_INTERESTS,
        /// Data sent.
        out_data: u64 = nfd::N_OUT_DATA,
        /// Nacks sent.
        out_nacks: u64 = nfd::N_OUT_NACKS,
        /// Bytes received.
        in_bytes: u64 = nfd::N_IN_BYTES,
        /// Bytes sent.
        out_bytes: u64 = nfd::N_OUT_BYTES,
        /// Bits of [`face_flags`](super::numbers::face_flags).
        flags: u64 = nfd::FLAGS,
        /// True if the link is up. Namehop's own addition, absent from other routers.
        is_up: Option<bool> = 65_286,
    }

    /// One listener in `faces/channels`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ChannelStatus(nfd::CHANNEL_STATUS) {
        /// FaceUri that the router listens on.
        local_uri: String = nfd::LOCAL_URI,
    }

    /// Filter of `faces/query`: faces match if they match every field given.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct FaceQueryFilter(nfd::FACE_QUERY_FILTER) {
        /// Id of the face.
        face_id: Option<u64> = nfd::FACE_ID,
        /// Scheme of the remote or local FaceUri.
        uri_scheme: Option<String> = nfd::URI_SCHEME,
        /// Remote FaceUri.
        uri: Option<String> = nfd::URI,
        /// Local FaceUri.
        local_uri: Option<String> = nfd::LOCAL_URI,
        /// Local or non-local.
        scope: Option<FaceScope> = nfd::FACE_SCOPE,
        /// When the face is closed.
        persistency: Option<FacePersistency> = nfd::FACE_PERSISTENCY,
        /// Number of peers that the link reaches.
        link_type: Option<LinkType> = nfd::LINK_TYPE,
    }

    /// One event of the stream `faces/events`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct FaceEventNotification(nfd::FACE_EVENT_NOTIFICATION) {
        /// The event.
        kind: FaceEventKind = nfd::FACE_EVENT_KIND,
        /// Id of the face.
        face_id: u64 = nfd::FACE_ID,
        /// Remote FaceUri.
        uri: String = nfd::URI,
        /// Local FaceUri.
        local_uri: String = nfd::LOCAL_URI,
        /// Local or non-local.
        scope: FaceScope = nfd::FACE_SCOPE,
        /// When the face is closed.
        persistency: FacePersistency = nfd::FACE_PERSISTENCY,
        /// Number of peers that the link reaches.
        link_type: LinkType = nfd::LINK_TYPE,
        /// Bits of [`face_flags`](super::numbers::face_flags).
        flags: u64 = nfd::FLAGS,
    }
}

impl FaceQueryFilter {
    /// Returns true if the face matches every field given.
    pub fn matches(&self, face: &FaceStatus) -> bool {
        let scheme_of = |uri: &str, scheme: &str| uri.split_once("://").is_some_and(|(found, _)| found == scheme);
        self.face_id.is_none_or(|id| id == face.face_id)
            && self
                .uri_scheme
                .as_deref()
                .is_none_or(|scheme| scheme_of(&face.uri, scheme) || scheme_of(&face.local_uri, scheme))
            && self.uri.as_deref().is_none_or(|uri| uri == face.uri)
            && self.local_uri.as_deref().is_none_or(|uri| uri == face.local_uri)
            && self.scope.is_none_or(|scope| scope == face.scope)
            && self.persistency.is_none_or(|persistency| persistency == face.persistency)
            && self.link_type.is_none_or(|link_type| link_type == face.link_type)
    }
}
