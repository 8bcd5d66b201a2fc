//! Codes and bits of the NFD management protocol.

use std::borrow::Cow;

use namehop_face::FacePersistency;
use namehop_packet::{FaceScope, LinkType};
use namehop_wire::tlv::{Writer, decode_nni};

use super::codec::CodecError;
use super::cs_disk::DiskState;
use super::record::{FieldId, Value};

/// Maximum size of an object file in a command, in bytes. A command is one packet of at most 8,800 bytes, which also
/// holds the name, the parameters and a signature. Larger files are uploaded over HTTP or named in the configuration.
/// Commands do not carry fragments of files, because the router would have to keep the fragments of uploads that are
/// never completed.
pub const MAX_COMMAND_FILE_BYTES: usize = 8_000;

/// Maximum number of packets in one trace (`trace/start`). They wait in the router until they are read.
pub const MAX_TRACED_PACKETS: u64 = 1_000;

/// Status codes of a ControlResponse.
pub mod status_code {
    /// The command was carried out.
    pub const OK: u64 = 200;
    /// The command is malformed, or does not take these parameters.
    pub const BAD_REQUEST: u64 = 400;
    /// The requester is not authorized, or the prefix announcement cannot be verified.
    pub const FORBIDDEN: u64 = 403;
    /// The face, strategy, trace, capture or worker does not exist.
    pub const NOT_FOUND: u64 = 404;
    /// The protocol is not supported, or cannot satisfy the parameters.
    pub const NOT_ACCEPTABLE: u64 = 406;
    /// The face exists, properties are invalid, the strategy rejects its parameters, or another command is in conflict.
    pub const CONFLICT: u64 = 409;
    /// The next hop's face does not exist.
    pub const GONE: u64 = 410;
    /// The prefix has too many components.
    pub const PREFIX_TOO_LONG: u64 = 414;
    /// The router failed to carry out the command.
    pub const INTERNAL_ERROR: u64 = 500;
    /// The peer did not answer in time.
    pub const TIMEOUT: u64 = 504;
    /// The number of routes has reached its limit.
    pub const INSUFFICIENT_STORAGE: u64 = 507;
}

/// Bits of the Flags of a face.
pub mod face_flags {
    /// The router sends IncomingFaceId and obeys NextHopFaceId.
    pub const LOCAL_FIELDS: u64 = 1;
    /// NDNLPv2 link reliability.
    pub const RELIABILITY: u64 = 2;
    /// NDNLPv2 congestion marking.
    pub const CONGESTION_MARKING: u64 = 4;
    /// The router sends NDNLPv2 IDLE packets periodically. This bit and the next two are Namehop's own additions.
    pub const KEEP_ALIVE: u64 = 0x100;
    /// Interests always carry this router's PIT token.
    pub const PIT_TOKENS_ON: u64 = 0x200;
    /// Interests never carry the token. With neither bit, they carry it once the peer has shown support for PIT tokens.
    pub const PIT_TOKENS_OFF: u64 = 0x400;
    /// All bits with a meaning.
    pub const ALL: u64 = 7 | KEEP_ALIVE | PIT_TOKENS_ON | PIT_TOKENS_OFF;
}

/// Bits of the Flags of the Content Store.
pub mod cs_flags {
    /// The Content Store admits Data.
    pub const ADMIT: u64 = 1;
    /// The Content Store answers Interests.
    pub const SERVE: u64 = 2;
}

/// Origins of routes.
pub mod origin {
    use super::Cow;

    /// An application.
    pub const APP: u64 = 0;
    /// Automatic registration for on-demand faces.
    pub const AUTOREG: u64 = 64;
    /// A client of this gateway.
    pub const CLIENT: u64 = 65;
    /// Automatic configuration.
    pub const AUTOCONF: u64 = 66;
    /// The NLSR routing daemon.
    pub const NLSR: u64 = 128;
    /// A prefix announcement.
    pub const PREFIX_ANNOUNCEMENT: u64 = 129;
    /// Static configuration by an operator.
    pub const STATIC: u64 = 255;

    /// Returns the name of an origin, or its number if it has none.
    pub fn name(origin: u64) -> Cow<'static, str> {
        Cow::Borrowed(match origin {
            APP => "app",
            AUTOREG => "autoreg",
            CLIENT => "client",
            AUTOCONF => "autoconf",
            NLSR => "nlsr",
            PREFIX_ANNOUNCEMENT => "prefixann",
            STATIC => "static",
            other => return Cow::Owned(other.to_string()),
        })
    }

    /// Returns the origin with this name or number.
    pub fn from_name(text: &str) -> Option<u64> {
        [APP, AUTOREG, CLIENT, AUTOCONF, NLSR, PREFIX_ANNOUNCEMENT, STATIC]
            .into_iter()
            .find(|&known| name(known) == text)
            .or_else(|| text.parse().ok())
    }
}

/// Bits of the Flags of a route.
pub mod route_flags {
    /// The route also applies to longer names.
    pub const CHILD_INHERIT: u64 = 1;
    /// Routes of shorter names do not apply to this name.
    pub const CAPTURE: u64 = 2;

    const WORDS: [(u64, &str); 2] = [(CHILD_INHERIT, "child-inherit"), (CAPTURE, "capture")];

    /// Returns the names of the bits, separated by commas, with unknown bits as one number; `none` if no bit is set.
    pub fn words(flags: u64) -> String {
        let known = WORDS.into_iter().filter(|(bit, _)| flags & bit != 0);
        let mut words: Vec<String> = known.map(|(_, word)| word.to_owned()).collect();
        let other = flags & !(CHILD_INHERIT | CAPTURE);
        if other != 0 {
            words.push(other.to_string());
        }
        if words.is_empty() { "none".to_owned() } else { words.join(",") }
    }

    /// Parses a list of bit names; the inverse of [`words`].
    ///
    /// # Errors
    /// The first word that is neither known nor a number.
    pub fn from_words(text: &str) -> Result<u64, &str> {
        text.split(',').filter(|word| !word.is_empty()).try_fold(0, |flags, word| {
            let known = WORDS.into_iter().find(|&(_, known)| known == word).map(|(bit, _)| bit);
            let bits = match known {
                None if word == "none" => 0,
                None => word.parse().map_err(|_| word)?,
                Some(bit) => bit,
            };
            Ok(flags | bits)
        })
    }
}

/// An enumeration with a number on the wire and a display name for each member.
pub trait Code: Copy + 'static {
    /// All members.
    const ALL: &'static [Self];

    /// Number on the wire.
    fn code(self) -> u64;

    /// Display name.
    fn name(self) -> &'static str;

    /// Returns the member with this number.
    fn from_code(code: u64) -> Option<Self> {
        Self::ALL.iter().copied().find(|member| member.code() == code)
    }
}

macro_rules! codes {
    ($type:ident { $($member:ident = $code:literal $text:literal),+ $(,)? }) => {
        impl Code for $type {
            const ALL: &'static [$type] = &[$($type::$member),+];

            fn code(self) -> u64 {
                match self {
                    $($type::$member => $code),+
                }
            }

            fn name(self) -> &'static str {
                match self {
                    $($type::$member => $text),+
                }
            }
        }
    };
}

/// Enumerations in messages. An unknown number is an error.
macro_rules! code_values {
    ($($type:ident),+) => {$(
        impl Value for $type {
            fn write(&self, writer: &mut Writer, typ: u32) {
                writer.nni(typ, self.code());
            }

            fn read(value: &[u8], field: FieldId) -> Result<Self, CodecError> {
                $type::from_code(decode_nni(value)?).ok_or(CodecError::UnknownValue(field.name))
            }
        }
    )+};
}

codes! { FaceScope { NonLocal = 0 "non-local", Local = 1 "local" } }
codes! { FacePersistency { Persistent = 0 "persistent", OnDemand = 1 "on-demand", Permanent = 2 "permanent" } }
codes! { LinkType { PointToPoint = 0 "point-to-point", MultiAccess = 1 "multi-access", AdHoc = 2 "ad-hoc" } }
codes! { DiskState { Starting = 0 "starting", Working = 1 "working", Stalled = 2 "stalled", Failed = 3 "failed" } }
codes! { FaceEventKind { Created = 1 "created", Destroyed = 2 "destroyed", Up = 3 "up", Down = 4 "down" } }

code_values!(FaceScope, FacePersistency, LinkType, FaceEventKind);

/// The kinds of face events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaceEventKind {
    /// The face was created.
    Created,
    /// The face was destroyed.
    Destroyed,
    /// The link is up again.
    Up,
    /// The link went down.
    Down,
}
