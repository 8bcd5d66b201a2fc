//! What `namehop face` prints: all properties of a face, and what a command did to one.

use std::time::Duration;

use namehop_manage::nfd::numbers::face_flags;
use namehop_manage::nfd::{ControlParameters, FacePersistency, FaceStatus};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, or_dash, properties};
use crate::printable;
use crate::units::{show_duration, show_expiry, show_switch};

/// A face with all its properties.
#[derive(Serialize)]
pub(super) struct FaceView<'a> {
    face_id: u64,
    remote_uri: &'a str,
    local_uri: &'a str,
    scope: String,
    persistency: String,
    link_type: String,
    expiration_ms: Option<u64>,
    mtu_bytes: Option<u64>,
    local_fields: bool,
    reliability: bool,
    congestion_marking: bool,
    congestion_interval_ns: Option<u64>,
    congestion_threshold_bytes: Option<u64>,
    in_interests: u64,
    in_data: u64,
    in_nacks: u64,
    in_bytes: u64,
    out_interests: u64,
    out_data: u64,
    out_nacks: u64,
    out_bytes: u64,
}

impl<'a> From<&'a FaceStatus> for FaceView<'a> {
    fn from(face: &'a FaceStatus) -> Self {
        let flag = |bit| face.flags & bit != 0;
        Self {
            face_id: face.face_id,
            remote_uri: &face.uri,
            local_uri: &face.local_uri,
            scope: face.scope.to_string(),
            persistency: face.persistency.to_string(),
            link_type: face.link_type.to_string(),
            expiration_ms: face.expiration_period_ms,
            mtu_bytes: face.mtu_bytes,
            local_fields: flag(face_flags::LOCAL_FIELDS),
            reliability: flag(face_flags::RELIABILITY),
            congestion_marking: flag(face_flags::CONGESTION_MARKING),
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
        }
    }
}

impl FaceView<'_> {
    /// For people.
    pub(super) fn describe(&self) -> String {
        let expires = self.expiration_ms.map(show_expiry);
        let interval = self.congestion_interval_ns.map(|ns| show_duration(Duration::from_nanos(ns)));
        properties(&[
            ("Face", self.face_id.to_string()),
            ("Remote address", self.remote_uri.to_owned()),
            ("Local address", self.local_uri.to_owned()),
            ("Scope", self.scope.clone()),
            ("Link type", self.link_type.clone()),
            ("Persistency", self.persistency.clone()),
            ("Expires in", or_dash(expires)),
            ("MTU (bytes)", or_dash(self.mtu_bytes)),
            ("Local fields", show_switch(self.local_fields)),
            ("Reliability", show_switch(self.reliability)),
            ("Congestion marking", show_switch(self.congestion_marking)),
            ("Congestion interval", or_dash(interval)),
            ("Congestion threshold (bytes)", or_dash(self.congestion_threshold_bytes)),
            ("Interests", format!("{} in, {} out", self.in_interests, self.out_interests)),
            ("Data", format!("{} in, {} out", self.in_data, self.out_data)),
            ("Nacks", format!("{} in, {} out", self.in_nacks, self.out_nacks)),
            ("Bytes", format!("{} in, {} out", self.in_bytes, self.out_bytes)),
        ])
    }
}

/// What a command did to a face.
#[derive(Serialize)]
pub(super) struct ChangedFace {
    face_id: Option<u64>,
    remote_uri: Option<String>,
    local_uri: Option<String>,
    created: Option<bool>,
    persistency: Option<String>,
    local_fields: Option<bool>,
    reliability: Option<bool>,
    congestion_marking: Option<bool>,
    mtu_bytes: Option<u64>,
}

impl ChangedFace {
    pub(super) fn new(parameters: ControlParameters, created: Option<bool>) -> Self {
        let flag = |bit| parameters.flags.map(|flags| flags & bit != 0);
        let persistency = parameters.face_persistency;
        let persistency = persistency.and_then(|code| FacePersistency::try_from(code).ok());
        Self {
            created,
            persistency: persistency.map(|persistency| persistency.to_string()),
            local_fields: flag(face_flags::LOCAL_FIELDS),
            reliability: flag(face_flags::RELIABILITY),
            congestion_marking: flag(face_flags::CONGESTION_MARKING),
            face_id: parameters.face_id,
            remote_uri: parameters.uri,
            local_uri: parameters.local_uri,
            mtu_bytes: parameters.mtu_bytes,
        }
    }

    pub(super) fn print(&self, json: bool, what: &str) -> Result<(), Failure> {
        if json {
            return output::json(self);
        }
        let remote = self.remote_uri.as_ref().map(|uri| format!(" to {}", printable::in_line(uri))).unwrap_or_default();
        output::line(format!("face {}{remote} {what}", or_dash(self.face_id)))
    }
}
