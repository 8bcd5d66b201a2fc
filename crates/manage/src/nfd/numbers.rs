//! Codes and bits of the NFD management protocol.

use std::borrow::Cow;
use std::fmt;

use namehop_forward::face;

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
}

/// Bits of a face's Flags.
pub mod face_flags {
    /// IncomingFaceId is sent, NextHopFaceId is honoured.
    pub const LOCAL_FIELDS: u64 = 1;
    /// NDNLPv2 link reliability.
    pub const RELIABILITY: u64 = 2;
    /// NDNLPv2 congestion marking.
    pub const CONGESTION_MARKING: u64 = 4;
    /// All bits with a meaning.
    pub const ALL: u64 = 7;
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
}

/// An enumeration whose members have a number on the wire and a name for people.
macro_rules! codes {
    ($(#[$meta:meta])* $name:ident { $($(#[$member_meta:meta])* $member:ident = $code:literal $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$member_meta])* $member = $code),+
        }

        impl $name {
            /// Every member.
            pub const ALL: &'static [$name] = &[$($name::$member),+];

            /// Number on the wire.
            pub const fn code(self) -> u64 {
                self as u64
            }

            /// Name for people.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$member => $text),+
                }
            }
        }

        impl TryFrom<u64> for $name {
            type Error = u64;
            fn try_from(code: u64) -> Result<Self, u64> {
                Self::ALL.iter().copied().find(|member| member.code() == code).ok_or(code)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

codes! {
    /// Whether the peer is on this computer.
    FaceScope {
        /// On another computer.
        NonLocal = 0 "non-local",
        /// On this computer.
        Local = 1 "local",
    }
}

codes! {
    /// When a face is closed.
    FacePersistency {
        /// On errors.
        Persistent = 0 "persistent",
        /// On errors, and when it was idle for long.
        OnDemand = 1 "on-demand",
        /// Only when somebody says so.
        Permanent = 2 "permanent",
    }
}

codes! {
    /// How many peers a face reaches.
    LinkType {
        /// One.
        PointToPoint = 0 "point-to-point",
        /// Several that all hear each other.
        MultiAccess = 1 "multi-access",
        /// Several that may not hear each other.
        AdHoc = 2 "ad-hoc",
    }
}

codes! {
    /// What happened to a face.
    FaceEventKind {
        /// It came into being.
        Created = 1 "created",
        /// It is gone.
        Destroyed = 2 "destroyed",
        /// It works again.
        Up = 3 "up",
        /// It stopped working.
        Down = 4 "down",
    }
}

impl From<face::FaceScope> for FaceScope {
    fn from(scope: face::FaceScope) -> Self {
        match scope {
            face::FaceScope::NonLocal => FaceScope::NonLocal,
            face::FaceScope::Local => FaceScope::Local,
        }
    }
}

impl From<face::LinkType> for LinkType {
    fn from(link_type: face::LinkType) -> Self {
        match link_type {
            face::LinkType::PointToPoint => LinkType::PointToPoint,
            face::LinkType::MultiAccess => LinkType::MultiAccess,
            face::LinkType::AdHoc => LinkType::AdHoc,
        }
    }
}
