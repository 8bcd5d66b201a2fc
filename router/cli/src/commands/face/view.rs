//! Output of `namehop face`: the properties of a face, and the result of a command.

use std::time::Duration;

use namehop_manage::views::{ChangedFaceView, FaceView};

use crate::failure::Failure;
use crate::output::{self, or_dash, properties};
use crate::printable;
use crate::units::{show_duration, show_expiry, show_switch};

/// Formats all properties of a face.
pub(super) fn describe(face: &FaceView) -> String {
    let expires = face.expiration_ms.map(show_expiry);
    let interval = face.congestion_interval_ns.map(|ns| show_duration(Duration::from_nanos(ns)));
    properties(&[
        ("Face", face.face_id.to_string()),
        ("Remote address", face.remote_uri.clone()),
        ("Local address", face.local_uri.clone()),
        ("Scope", face.scope.to_owned()),
        ("Link type", face.link_type.to_owned()),
        ("Persistency", face.persistency.to_owned()),
        ("Link", show_link(face.is_up).to_owned()),
        ("Expires in", or_dash(expires)),
        ("MTU (bytes)", or_dash(face.mtu_bytes)),
        ("Local fields", show_switch(face.local_fields)),
        ("Reliability", show_switch(face.reliability)),
        ("Congestion marking", show_switch(face.congestion_marking)),
        ("Keep-alive", show_switch(face.keep_alive)),
        ("PIT tokens", face.pit_tokens.to_owned()),
        ("Congestion interval", or_dash(interval)),
        ("Congestion threshold (bytes)", or_dash(face.congestion_threshold_bytes)),
        ("Interests", format!("{} in, {} out", face.in_interests, face.out_interests)),
        ("Data", format!("{} in, {} out", face.in_data, face.out_data)),
        ("Nacks", format!("{} in, {} out", face.in_nacks, face.out_nacks)),
        ("Bytes", format!("{} in, {} out", face.in_bytes, face.out_bytes)),
    ])
}

/// Formats the state of a link.
pub(super) fn show_link(is_up: Option<bool>) -> &'static str {
    match is_up {
        Some(true) => "up",
        Some(false) => "down",
        None => "-",
    }
}

/// Prints the result of a command on a face.
pub(super) fn print_changed(face: &ChangedFaceView, json: bool, what: &str) -> Result<(), Failure> {
    if json {
        return output::json(face);
    }
    let remote = face.remote_uri.as_ref().map(|uri| format!(" to {}", printable::in_line(uri))).unwrap_or_default();
    output::line(format!("face {}{remote} {what}", or_dash(face.face_id)))
}
