//! ControlParameters: the request of a command and, in a response, its result.

use std::ops::BitOr;

use namehop_wire::Name;
use namehop_wire::tlv::{Writer, read_single_element, types};

use super::codec::{CodecError, Fields, put_name, put_optional, put_optional_text, put_strategy};
use super::content_store::CS_POLICY;
use types::nfd;

/// All fields that a command or its response can have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ControlParameters {
    /// Prefix.
    pub name: Option<Name>,
    /// Face; 0 = the face on which the command came in.
    pub face_id: Option<u64>,
    /// Remote FaceUri.
    pub uri: Option<String>,
    /// Local FaceUri.
    pub local_uri: Option<String>,
    /// Route origin, see [`super::numbers::origin`].
    pub origin: Option<u64>,
    /// Route or next-hop cost.
    pub cost: Option<u64>,
    /// Content Store capacity in packets.
    pub capacity: Option<u64>,
    /// Number of Data packets, or another number that the command defines.
    pub count: Option<u64>,
    /// Flag bits of the module.
    pub flags: Option<u64>,
    /// The flag bits to change.
    pub mask: Option<u64>,
    /// Strategy name.
    pub strategy: Option<Name>,
    /// Lifetime of a route, in milliseconds.
    pub expiration_period_ms: Option<u64>,
    /// Code of a [`FacePersistency`](super::FacePersistency).
    pub face_persistency: Option<u64>,
    /// Congestion marking interval, in nanoseconds.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Congestion threshold of the send queue, in bytes.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// MTU, in bytes.
    pub mtu_bytes: Option<u64>,
    /// Content Store policy with its settings. Namehop's own addition.
    pub policy: Option<String>,
}

/// A set of the fields of [`ControlParameters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FieldSet(u32);

impl FieldSet {
    /// The empty set.
    pub const NONE: FieldSet = FieldSet(0);
    /// Name.
    pub const NAME: FieldSet = FieldSet(1 << 0);
    /// FaceId.
    pub const FACE_ID: FieldSet = FieldSet(1 << 1);
    /// Uri.
    pub const URI: FieldSet = FieldSet(1 << 2);
    /// LocalUri.
    pub const LOCAL_URI: FieldSet = FieldSet(1 << 3);
    /// Origin.
    pub const ORIGIN: FieldSet = FieldSet(1 << 4);
    /// Cost.
    pub const COST: FieldSet = FieldSet(1 << 5);
    /// Capacity.
    pub const CAPACITY: FieldSet = FieldSet(1 << 6);
    /// Count.
    pub const COUNT: FieldSet = FieldSet(1 << 7);
    /// Flags.
    pub const FLAGS: FieldSet = FieldSet(1 << 8);
    /// Mask.
    pub const MASK: FieldSet = FieldSet(1 << 9);
    /// Strategy.
    pub const STRATEGY: FieldSet = FieldSet(1 << 10);
    /// ExpirationPeriod.
    pub const EXPIRATION_PERIOD: FieldSet = FieldSet(1 << 11);
    /// FacePersistency.
    pub const FACE_PERSISTENCY: FieldSet = FieldSet(1 << 12);
    /// BaseCongestionMarkingInterval.
    pub const BASE_CONGESTION_MARKING_INTERVAL: FieldSet = FieldSet(1 << 13);
    /// DefaultCongestionThreshold.
    pub const DEFAULT_CONGESTION_THRESHOLD: FieldSet = FieldSet(1 << 14);
    /// Mtu.
    pub const MTU: FieldSet = FieldSet(1 << 15);
    /// Policy.
    pub const POLICY: FieldSet = FieldSet(1 << 16);

    const NAMES: [&'static str; 17] = [
        "Name",
        "FaceId",
        "Uri",
        "LocalUri",
        "Origin",
        "Cost",
        "Capacity",
        "Count",
        "Flags",
        "Mask",
        "Strategy",
        "ExpirationPeriod",
        "FacePersistency",
        "BaseCongestionMarkingInterval",
        "DefaultCongestionThreshold",
        "Mtu",
        "Policy",
    ];

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
        Self::NAMES.into_iter().enumerate().filter(move |(bit, _)| self.0 >> bit & 1 == 1).map(|(_, name)| name)
    }
}

impl BitOr for FieldSet {
    type Output = FieldSet;
    fn bitor(self, other: FieldSet) -> FieldSet {
        self.with(other)
    }
}

impl ControlParameters {
    /// Returns the set of fields that are present.
    pub fn fields(&self) -> FieldSet {
        let present = [
            self.name.is_some(),
            self.face_id.is_some(),
            self.uri.is_some(),
            self.local_uri.is_some(),
            self.origin.is_some(),
            self.cost.is_some(),
            self.capacity.is_some(),
            self.count.is_some(),
            self.flags.is_some(),
            self.mask.is_some(),
            self.strategy.is_some(),
            self.expiration_period_ms.is_some(),
            self.face_persistency.is_some(),
            self.base_congestion_marking_interval_ns.is_some(),
            self.default_congestion_threshold_bytes.is_some(),
            self.mtu_bytes.is_some(),
            self.policy.is_some(),
        ];
        FieldSet(present.iter().enumerate().fold(0, |set, (bit, &there)| set | u32::from(there) << bit))
    }

    /// Appends the element.
    pub fn encode(&self, writer: &mut Writer) {
        writer.nested(nfd::CONTROL_PARAMETERS, |writer| {
            if let Some(name) = &self.name {
                put_name(writer, name);
            }
            put_optional(writer, nfd::FACE_ID, self.face_id);
            put_optional_text(writer, nfd::URI, self.uri.as_deref());
            put_optional_text(writer, nfd::LOCAL_URI, self.local_uri.as_deref());
            put_optional(writer, nfd::ORIGIN, self.origin);
            put_optional(writer, nfd::COST, self.cost);
            put_optional(writer, nfd::CAPACITY, self.capacity);
            put_optional(writer, nfd::COUNT, self.count);
            put_optional(writer, nfd::FLAGS, self.flags);
            put_optional(writer, nfd::MASK, self.mask);
            if let Some(strategy) = &self.strategy {
                put_strategy(writer, strategy);
            }
            put_optional(writer, nfd::EXPIRATION_PERIOD, self.expiration_period_ms);
            put_optional(writer, nfd::FACE_PERSISTENCY, self.face_persistency);
            put_optional(writer, nfd::BASE_CONGESTION_MARKING_INTERVAL, self.base_congestion_marking_interval_ns);
            put_optional(writer, nfd::DEFAULT_CONGESTION_THRESHOLD, self.default_congestion_threshold_bytes);
            put_optional(writer, nfd::MTU, self.mtu_bytes);
            put_optional_text(writer, CS_POLICY, self.policy.as_deref());
        });
    }

    /// Encodes the element.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(64);
        self.encode(&mut writer);
        writer.into_vec()
    }

    /// Decodes the complete element.
    pub fn decode(wire: &[u8]) -> Result<Self, CodecError> {
        let element = read_single_element(wire)?;
        if element.typ != nfd::CONTROL_PARAMETERS {
            return Err(CodecError::Missing("ControlParameters"));
        }
        Self::decode_value(element.value)
    }

    /// Decodes the TLV-VALUE of the element.
    pub fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(ControlParameters {
            name: fields.name()?,
            face_id: fields.number(nfd::FACE_ID)?,
            uri: fields.text(nfd::URI, "Uri")?,
            local_uri: fields.text(nfd::LOCAL_URI, "LocalUri")?,
            origin: fields.number(nfd::ORIGIN)?,
            cost: fields.number(nfd::COST)?,
            capacity: fields.number(nfd::CAPACITY)?,
            count: fields.number(nfd::COUNT)?,
            flags: fields.number(nfd::FLAGS)?,
            mask: fields.number(nfd::MASK)?,
            strategy: fields.strategy()?,
            expiration_period_ms: fields.number(nfd::EXPIRATION_PERIOD)?,
            face_persistency: fields.number(nfd::FACE_PERSISTENCY)?,
            base_congestion_marking_interval_ns: fields.number(nfd::BASE_CONGESTION_MARKING_INTERVAL)?,
            default_congestion_threshold_bytes: fields.number(nfd::DEFAULT_CONGESTION_THRESHOLD)?,
            mtu_bytes: fields.number(nfd::MTU)?,
            policy: fields.text(CS_POLICY, "Policy")?,
        })
    }
}
