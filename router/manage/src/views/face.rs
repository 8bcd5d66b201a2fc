//! Views of faces.

use namehop_client::nfd::numbers::face_flags;
use namehop_client::nfd::{Code, ControlParameters, FaceStatus};
use namehop_face::registry::PitTokenMode;
use namehop_face::{FaceFlags, FacePersistency};
use serde::Serialize;
use utoipa::ToSchema;

/// A face with all its properties and packet counts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FaceView {
    /// Id of the face.
    pub face_id: u64,
    /// Remote address.
    pub remote_uri: String,
    /// Local address.
    pub local_uri: String,
    /// `local` or `non-local`.
    pub scope: &'static str,
    /// `on-demand`, `persistent` or `permanent`.
    pub persistency: &'static str,
    /// `point-to-point`, `multi-access` or `ad-hoc`.
    pub link_type: &'static str,
    /// True if the link is up; `null` if the router does not report it.
    #[schema(required)]
    pub is_up: Option<bool>,
    /// Time until the face is closed if no packet arrives; `null` if it does not expire.
    #[schema(required)]
    pub expiration_ms: Option<u64>,
    /// Maximum size of a frame; `null` if there is no limit.
    #[schema(required)]
    pub mtu_bytes: Option<u64>,
    /// True if the router sends IncomingFaceId and obeys NextHopFaceId.
    pub local_fields: bool,
    /// True if NDNLPv2 link reliability is used.
    pub reliability: bool,
    /// True if NDNLPv2 congestion marking is used.
    pub congestion_marking: bool,
    /// True if NDNLPv2 IDLE packets are sent periodically.
    pub keep_alive: bool,
    /// When Interests carry this router's PIT token: `on`, `off`, or `auto` (once the peer has shown that it supports
    /// PIT tokens).
    pub pit_tokens: &'static str,
    /// Time for which the queue must exceed the threshold before packets are marked.
    #[schema(required)]
    pub congestion_interval_ns: Option<u64>,
    /// Queue length from which packets are marked.
    #[schema(required)]
    pub congestion_threshold_bytes: Option<u64>,
    /// Interests received.
    pub in_interests: u64,
    /// Data received.
    pub in_data: u64,
    /// Nacks received.
    pub in_nacks: u64,
    /// Bytes received.
    pub in_bytes: u64,
    /// Interests sent.
    pub out_interests: u64,
    /// Data sent.
    pub out_data: u64,
    /// Nacks sent.
    pub out_nacks: u64,
    /// Bytes sent.
    pub out_bytes: u64,
}

impl From<FaceStatus> for FaceView {
    fn from(face: FaceStatus) -> Self {
        let flag = |bit| face.flags & bit != 0;
        Self {
            face_id: face.face_id,
            scope: face.scope.name(),
            persistency: face.persistency.name(),
            link_type: face.link_type.name(),
            is_up: face.is_up,
            expiration_ms: face.expiration_period_ms,
            mtu_bytes: face.mtu_bytes,
            local_fields: flag(face_flags::LOCAL_FIELDS),
            reliability: flag(face_flags::RELIABILITY),
            congestion_marking: flag(face_flags::CONGESTION_MARKING),
            keep_alive: flag(face_flags::KEEP_ALIVE),
            pit_tokens: pit_tokens(face.flags),
            congestion_interval_ns: face.base_congestion_marking_interval_ns,
            congestion_threshold_bytes: face.default_congestion_threshold_bytes,
            in_interests: face.in_interests,
            in_data: face.in_data,
            in_nacks: face.in_nacks,
            in_bytes: face.in_bytes,
            out_interests: face.out_interests,
            out_data: face.out_data,
            out_nacks: face.out_nacks,
            out_bytes: face.out_bytes,
            remote_uri: face.uri,
            local_uri: face.local_uri,
        }
    }
}

/// Returns the PIT token setting in a face's Flags.
fn pit_tokens(flags: u64) -> &'static str {
    match PitTokenMode::of(FaceFlags(flags)).unwrap_or_default() {
        PitTokenMode::Auto => "auto",
        PitTokenMode::On => "on",
        PitTokenMode::Off => "off",
    }
}

/// Properties of a face in the response to a command.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ChangedFaceView {
    /// Id of the face.
    #[schema(required)]
    pub face_id: Option<u64>,
    /// Remote address.
    #[schema(required)]
    pub remote_uri: Option<String>,
    /// Local address.
    #[schema(required)]
    pub local_uri: Option<String>,
    /// True if the command created the face, false if the face existed; `null` for other commands.
    #[schema(required)]
    pub created: Option<bool>,
    /// `on-demand`, `persistent` or `permanent`.
    #[schema(required)]
    pub persistency: Option<&'static str>,
    /// True if the router sends IncomingFaceId and obeys NextHopFaceId.
    #[schema(required)]
    pub local_fields: Option<bool>,
    /// True if NDNLPv2 link reliability is used.
    #[schema(required)]
    pub reliability: Option<bool>,
    /// True if NDNLPv2 congestion marking is used.
    #[schema(required)]
    pub congestion_marking: Option<bool>,
    /// True if NDNLPv2 IDLE packets are sent periodically.
    #[schema(required)]
    pub keep_alive: Option<bool>,
    /// When Interests carry this router's PIT token: `on`, `off`, or `auto` (once the peer has shown that it supports
    /// PIT tokens).
    #[schema(required)]
    pub pit_tokens: Option<&'static str>,
    /// Maximum size of a frame.
    #[schema(required)]
    pub mtu_bytes: Option<u64>,
}

impl ChangedFaceView {
    /// Creates the view from the parameters in the response to `faces/create` or `faces/update`.
    pub fn new(parameters: ControlParameters, created: Option<bool>) -> Self {
        let flag = |bit| parameters.flags.map(|flags| flags & bit != 0);
        let persistency = parameters.face_persistency.and_then(FacePersistency::from_code);
        Self {
            created,
            persistency: persistency.map(FacePersistency::name),
            local_fields: flag(face_flags::LOCAL_FIELDS),
            reliability: flag(face_flags::RELIABILITY),
            congestion_marking: flag(face_flags::CONGESTION_MARKING),
            keep_alive: flag(face_flags::KEEP_ALIVE),
            pit_tokens: parameters.flags.map(pit_tokens),
            face_id: parameters.face_id,
            remote_uri: parameters.uri,
            local_uri: parameters.local_uri,
            mtu_bytes: parameters.mtu_bytes,
        }
    }
}
