//! Requests in the words of users and programs, converted to parameters of commands: the same on the command line and
//! over HTTP.
//!
//! [`views`](crate::views) use the same words.

use namehop_client::nfd::numbers::{cs_flags, face_flags};
use namehop_client::nfd::{Code, ControlParameters, FieldSet};
use namehop_face::FacePersistency;
use namehop_face::registry::PitTokenMode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// When a face is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Persistency {
    /// After some time without traffic, or when the connection fails.
    OnDemand,
    /// By a command, or when the router ends.
    Persistent,
    /// By a command. The router creates it again after a restart.
    Permanent,
}

impl From<Persistency> for FacePersistency {
    fn from(persistency: Persistency) -> Self {
        match persistency {
            Persistency::OnDemand => FacePersistency::OnDemand,
            Persistency::Persistent => FacePersistency::Persistent,
            Persistency::Permanent => FacePersistency::Permanent,
        }
    }
}

/// When Interests on a face carry this router's PIT token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PitTokens {
    /// Once the peer has shown that it supports PIT tokens.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl From<PitTokens> for PitTokenMode {
    fn from(tokens: PitTokens) -> Self {
        match tokens {
            PitTokens::Auto => PitTokenMode::Auto,
            PitTokens::On => PitTokenMode::On,
            PitTokens::Off => PitTokenMode::Off,
        }
    }
}

/// Configurable properties of a face. Absent ones keep their values, or the router chooses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FaceProperties {
    /// When the face is closed.
    pub persistency: Option<Persistency>,
    /// Send IncomingFaceId, and obey NextHopFaceId.
    pub local_fields: Option<bool>,
    /// Use NDNLPv2 link reliability.
    pub reliability: Option<bool>,
    /// Use NDNLPv2 congestion marking.
    pub congestion_marking: Option<bool>,
    /// Send NDNLPv2 IDLE packets periodically, on UDP sockets.
    pub keep_alive: Option<bool>,
    /// When Interests carry this router's PIT token.
    pub pit_tokens: Option<PitTokens>,
    /// Time for which the queue must exceed the threshold before packets are marked.
    pub congestion_interval_ns: Option<u64>,
    /// Queue length from which packets are marked.
    pub congestion_threshold_bytes: Option<u64>,
    /// Maximum size of a frame.
    pub mtu_bytes: Option<u64>,
}

impl FaceProperties {
    /// Converts to the parameters of `faces/create` and `faces/update`.
    pub fn parameters(&self) -> ControlParameters {
        let (flags, mask) = flags_and_mask(&[
            (face_flags::LOCAL_FIELDS, self.local_fields),
            (face_flags::RELIABILITY, self.reliability),
            (face_flags::CONGESTION_MARKING, self.congestion_marking),
            (face_flags::KEEP_ALIVE, self.keep_alive),
            (face_flags::PIT_TOKENS_ON, self.pit_tokens.map(|tokens| tokens == PitTokens::On)),
            (face_flags::PIT_TOKENS_OFF, self.pit_tokens.map(|tokens| tokens == PitTokens::Off)),
        ]);
        ControlParameters {
            flags,
            mask,
            face_persistency: self.persistency.map(|persistency| FacePersistency::from(persistency).code()),
            base_congestion_marking_interval_ns: self.congestion_interval_ns,
            default_congestion_threshold_bytes: self.congestion_threshold_bytes,
            mtu_bytes: self.mtu_bytes,
            ..ControlParameters::default()
        }
    }
}

/// Explains why a face refuses these properties, one line for each.
pub fn explain_refused(refused: &ControlParameters) -> Vec<&'static str> {
    let fields = refused.fields();
    [
        (FieldSet::FACE_PERSISTENCY, "persistency: faces of this kind do not support it"),
        (
            FieldSet::FLAGS,
            "flags: local fields are for applications on this host, reliability and PIT tokens for links to one peer, \
             keep-alive for UDP sockets",
        ),
        (FieldSet::BASE_CONGESTION_MARKING_INTERVAL, "congestion interval: must be longer than 0"),
        (FieldSet::MTU, "MTU: must be 64 bytes or more; stream links have none"),
    ]
    .into_iter()
    .filter(|(field, _)| fields.contains(*field))
    .map(|(_, reason)| reason)
    .collect()
}

/// Settings of the Content Store. Absent ones keep their values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CsSettings {
    /// Maximum number of Data packets, as far as its memory (`capacity_bytes` in the configuration) allows.
    pub capacity_packets: Option<u64>,
    /// Admit Data.
    pub admit: Option<bool>,
    /// Answer Interests.
    pub serve: Option<bool>,
    /// The policy with settings: `lru`, `filter:threshold=3`.
    pub policy: Option<String>,
}

impl CsSettings {
    /// Converts to the parameters of `cs/config`; `None` if no setting is given.
    pub fn parameters(&self) -> Option<ControlParameters> {
        let (flags, mask) = flags_and_mask(&[(cs_flags::ADMIT, self.admit), (cs_flags::SERVE, self.serve)]);
        let parameters = ControlParameters {
            capacity: self.capacity_packets,
            flags,
            mask,
            policy: self.policy.clone(),
            ..ControlParameters::default()
        };
        (parameters != ControlParameters::default()).then_some(parameters)
    }
}

/// Returns Flags and Mask of a command that switches bits on and off; `None` for both if no bit is given.
fn flags_and_mask(switches: &[(u64, Option<bool>)]) -> (Option<u64>, Option<u64>) {
    let (mut flags, mut mask) = (0, 0);
    for &(bit, switch) in switches {
        if let Some(on) = switch {
            mask |= bit;
            flags |= if on { bit } else { 0 };
        }
    }
    ((mask != 0).then_some(flags), (mask != 0).then_some(mask))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_chosen_becomes_a_parameter() {
        assert_eq!(FaceProperties::default().parameters(), ControlParameters::default());
        let chosen = FaceProperties {
            persistency: Some(Persistency::Permanent),
            local_fields: Some(false),
            reliability: Some(true),
            pit_tokens: Some(PitTokens::Off),
            mtu_bytes: Some(1400),
            ..FaceProperties::default()
        };
        let expected = ControlParameters {
            face_persistency: Some(2),
            flags: Some(face_flags::RELIABILITY | face_flags::PIT_TOKENS_OFF),
            mask: Some(
                face_flags::RELIABILITY
                    | face_flags::LOCAL_FIELDS
                    | face_flags::PIT_TOKENS_ON
                    | face_flags::PIT_TOKENS_OFF,
            ),
            mtu_bytes: Some(1400),
            ..ControlParameters::default()
        };
        assert_eq!(chosen.parameters(), expected);
        assert_eq!(CsSettings::default().parameters(), None);
        let off = CsSettings { serve: Some(false), ..CsSettings::default() };
        let expected =
            ControlParameters { flags: Some(0), mask: Some(cs_flags::SERVE), ..ControlParameters::default() };
        assert_eq!(off.parameters(), Some(expected));
    }

    #[test]
    fn every_property_that_a_face_refuses_is_explained() {
        let refused = ControlParameters { mtu_bytes: Some(1), flags: Some(1), ..ControlParameters::default() };
        let lines = explain_refused(&refused);
        assert!(lines.len() == 2 && lines[0].starts_with("flags") && lines[1].starts_with("MTU"), "{lines:?}");
    }
}
