//! ControlParameters: the request of a command and, in a response, its result.

use std::ops::BitOr;

use namehop_wire::Name;
use namehop_wire::tlv::types::{self, nfd};

use super::content_store::CS_POLICY;
use super::record::records;

/// Declares the fields of [`ControlParameters`]: name and type in the struct, TYPE, constant in [`FieldSet`], name in
/// the specification. All are optional.
macro_rules! control_parameters {
    ($($(#[$about:meta])* $field:ident: $type:ty = $typ:expr, $set:ident $text:literal;)*) => {
        records! {
            /// All fields that a command or its response can have.
            #[derive(Debug, Clone, PartialEq, Eq, Default)]
            pub struct ControlParameters(nfd::CONTROL_PARAMETERS) {
                $($(#[$about])* $field: Option<$type> = $typ,)*
            }
        }

        impl ControlParameters {
            /// Returns the set of fields that are present.
            pub fn fields(&self) -> FieldSet {
                FieldSet::NONE$(.with(if self.$field.is_some() { FieldSet::$set } else { FieldSet::NONE }))*
            }
        }

        /// The numbers of the fields in a set.
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "named as the constants")]
        enum Bit { $($set),* }

        impl FieldSet {
            $(
                #[doc = $text]
                pub const $set: FieldSet = FieldSet(1 << Bit::$set as u32);
            )*

            const NAMES: &[&str] = &[$($text),*];
        }
    };
}

control_parameters! {
    /// Prefix.
    name: Name = types::NAME, NAME "Name";
    /// Face; 0 = the face on which the command came in.
    face_id: u64 = nfd::FACE_ID, FACE_ID "FaceId";
    /// Remote FaceUri.
    uri: String = nfd::URI, URI "Uri";
    /// Local FaceUri.
    local_uri: String = nfd::LOCAL_URI, LOCAL_URI "LocalUri";
    /// Route origin, see [`super::numbers::origin`].
    origin: u64 = nfd::ORIGIN, ORIGIN "Origin";
    /// Route or next-hop cost.
    cost: u64 = nfd::COST, COST "Cost";
    /// Content Store capacity in packets.
    capacity: u64 = nfd::CAPACITY, CAPACITY "Capacity";
    /// Number of Data packets, or another number that the command defines.
    count: u64 = nfd::COUNT, COUNT "Count";
    /// Flag bits of the module.
    flags: u64 = nfd::FLAGS, FLAGS "Flags";
    /// The flag bits to change.
    mask: u64 = nfd::MASK, MASK "Mask";
    /// Strategy name.
    strategy: Name = nfd::STRATEGY, STRATEGY "Strategy";
    /// Lifetime of a route, in milliseconds.
    expiration_period_ms: u64 = nfd::EXPIRATION_PERIOD, EXPIRATION_PERIOD "ExpirationPeriod";
    /// Code of a [`FacePersistency`](super::FacePersistency).
    face_persistency: u64 = nfd::FACE_PERSISTENCY, FACE_PERSISTENCY "FacePersistency";
    /// Congestion marking interval, in nanoseconds.
    base_congestion_marking_interval_ns: u64 = nfd::BASE_CONGESTION_MARKING_INTERVAL,
        BASE_CONGESTION_MARKING_INTERVAL "BaseCongestionMarkingInterval";
    /// Congestion threshold of the send queue, in bytes.
    default_congestion_threshold_bytes: u64 = nfd::DEFAULT_CONGESTION_THRESHOLD,
        DEFAULT_CONGESTION_THRESHOLD "DefaultCongestionThreshold";
    /// MTU, in bytes.
    mtu_bytes: u64 = nfd::MTU, MTU "Mtu";
    /// Content Store policy with its settings. Namehop's own addition.
    policy: String = CS_POLICY, POLICY "Policy";
}

/// A set of the fields of [`ControlParameters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FieldSet(u32);

impl FieldSet {
    /// The empty set.
    pub const NONE: FieldSet = FieldSet(0);

    /// Returns the union; usable in constants.
    pub const fn with(self, other: FieldSet) -> FieldSet {
        FieldSet(self.0 | other.0)
    }

    /// Returns true if all fields of `other` are in this set.
    pub const fn contains(self, other: FieldSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the fields of this set that are not in `other`.
    pub const fn without(self, other: FieldSet) -> FieldSet {
        FieldSet(self.0 & !other.0)
    }

    /// Iterates over the names of the fields in the set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().copied().enumerate().filter(move |(bit, _)| self.0 >> bit & 1 == 1).map(|(_, name)| name)
    }
}

impl BitOr for FieldSet {
    type Output = FieldSet;
    fn bitor(self, other: FieldSet) -> FieldSet {
        self.with(other)
    }
}
