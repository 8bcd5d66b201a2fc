//! Codes and bits of the NFD management protocol.

use std::borrow::Cow;

use namehop_face::FacePersistency;
use namehop_packet::{FaceScope, LinkType};

/// Most bytes that the object file of a strategy may have.
pub use namehop_engine::strategy::program::MAX_OBJECT_FILE_BYTES;

/// Most bytes of it that fit into a command, which is one packet of up to 8,800 with the name, the parameters and a signature. Longer
/// files come over HTTP or are named in the configuration: were they cut into commands, the router would have to keep the pieces that
/// anybody sends and never completes.
pub const MAX_COMMAND_FILE_BYTES: usize = 8_000;

/// Most packets of one trace (`trace/start`), which wait in the router until they are taken.
pub const MAX_TRACED_PACKETS: u64 = 1_000;

/// Status codes of a ControlResponse.
pub mod status_code {
    /// Done.
    pub const OK: u64 = 200;
    /// The command is malformed, or its parameters are not those of the command.
    pub const BAD_REQUEST: u64 = 400;
    /// The commander may not do this, or the prefix announcement cannot be verified.
    pub const FORBIDDEN: u64 = 403;
    /// The face or strategy does not exist.
    pub const NOT_FOUND: u64 = 404;
    /// The protocol is not supported, or cannot do what the parameters ask for.
    pub const NOT_ACCEPTABLE: u64 = 406;
    /// The face exists, properties are invalid, or the strategy refuses its parameters.
    pub const CONFLICT: u64 = 409;
    /// The next hop's face does not exist.
    pub const GONE: u64 = 410;
    /// The prefix has too many components.
    pub const PREFIX_TOO_LONG: u64 = 414;
    /// The router failed.
    pub const INTERNAL_ERROR: u64 = 500;
    /// The peer did not answer in time.
    pub const TIMEOUT: u64 = 504;
    /// Other computers have registered as many routes as they may.
    pub const INSUFFICIENT_STORAGE: u64 = 507;
}

/// Bits of a face's Flags.
pub mod face_flags {
    /// IncomingFaceId is sent, NextHopFaceId is honoured.
    pub const LOCAL_FIELDS: u64 = 1;
    /// NDNLPv2 link reliability.
    pub const RELIABILITY: u64 = 2;
    /// NDNLPv2 congestion marking.
    pub const CONGESTION_MARKING: u64 = 4;
    /// IDLE packets of NDNLPv2 are sent now and then. NFD does not have this bit, nor the next two.
    pub const KEEP_ALIVE: u64 = 0x100;
    /// Interests carry this router's PIT token.
    pub const PIT_TOKENS_ON: u64 = 0x200;
    /// Interests never carry it. Neither bit: they do once the peer has shown that it knows PIT tokens.
    pub const PIT_TOKENS_OFF: u64 = 0x400;
    /// All bits with a meaning.
    pub const ALL: u64 = 7 | KEEP_ALIVE | PIT_TOKENS_ON | PIT_TOKENS_OFF;
}

/// Bits of the Content Store's Flags.
pub mod cs_flags {
    /// Data is taken in.
    pub const ADMIT: u64 = 1;
    /// Interests are answered.
    pub const SERVE: u64 = 2;
}

/// Who made a route.
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
    /// Somebody by hand.
    pub const STATIC: u64 = 255;

    /// Name of an origin, or its number where it has none.
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

    /// The origin with this name or number.
    pub fn from_name(text: &str) -> Option<u64> {
        [APP, AUTOREG, CLIENT, AUTOCONF, NLSR, PREFIX_ANNOUNCEMENT, STATIC]
            .into_iter()
            .find(|&known| name(known) == text)
            .or_else(|| text.parse().ok())
    }
}

/// Bits of a route's Flags.
pub mod route_flags {
    /// The route also applies to longer names.
    pub const CHILD_INHERIT: u64 = 1;
    /// Routes of shorter names do not apply here.
    pub const CAPTURE: u64 = 2;

    const WORDS: [(u64, &str); 2] = [(CHILD_INHERIT, "child-inherit"), (CAPTURE, "capture")];

    /// The bits as words with commas between them, those without a meaning as one number; `none` when there are none.
    pub fn words(flags: u64) -> String {
        let known = WORDS.into_iter().filter(|(bit, _)| flags & bit != 0);
        let mut words: Vec<String> = known.map(|(_, word)| word.to_owned()).collect();
        let other = flags & !(CHILD_INHERIT | CAPTURE);
        if other != 0 {
            words.push(other.to_string());
        }
        if words.is_empty() { "none".to_owned() } else { words.join(",") }
    }

    /// The bits that these words stand for: the inverse of [`words`].
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

/// An enumeration whose members have a number on the wire and a name for people.
pub trait Code: Copy + 'static {
    /// Every member.
    const ALL: &'static [Self];

    /// Number on the wire.
    fn code(self) -> u64;

    /// Name for people.
    fn name(self) -> &'static str;

    /// The member with this number.
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

codes! { FaceScope { NonLocal = 0 "non-local", Local = 1 "local" } }
codes! { FacePersistency { Persistent = 0 "persistent", OnDemand = 1 "on-demand", Permanent = 2 "permanent" } }
codes! { LinkType { PointToPoint = 0 "point-to-point", MultiAccess = 1 "multi-access", AdHoc = 2 "ad-hoc" } }
codes! { FaceEventKind { Created = 1 "created", Destroyed = 2 "destroyed", Up = 3 "up", Down = 4 "down" } }

/// What happened to a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaceEventKind {
    /// It came into being.
    Created,
    /// It is gone.
    Destroyed,
    /// It works again.
    Up,
    /// It stopped working.
    Down,
}
