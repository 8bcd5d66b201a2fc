//! Messages about faces: status, channels, the query filter, and event notifications.

use namehop_face::FacePersistency;
use namehop_packet::{FaceScope, LinkType};
use namehop_wire::tlv::{Writer, read_single_element, types::nfd};

use super::codec::{CodecError, DatasetItem, Fields, put_optional, put_optional_text};
use super::numbers::{Code, FaceEventKind};

/// TLV-TYPE of `is_up` in a face's status; other programs ignore this number.
const FACE_UP: u32 = 65_286;

/// One face in `faces/list` and `faces/query`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceStatus {
    /// Id of the face.
    pub face_id: u64,
    /// Remote FaceUri.
    pub uri: String,
    /// Local FaceUri.
    pub local_uri: String,
    /// Time until an idle on-demand face is closed, in milliseconds.
    pub expiration_period_ms: Option<u64>,
    /// Local or non-local.
    pub scope: FaceScope,
    /// When the face is closed.
    pub persistency: FacePersistency,
    /// Number of peers that the link reaches.
    pub link_type: LinkType,
    /// Congestion marking interval, in nanoseconds.
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Congestion threshold of the send queue, in bytes.
    pub default_congestion_threshold_bytes: Option<u64>,
    /// MTU, in bytes; absent if there is no limit.
    pub mtu_bytes: Option<u64>,
    /// Interests received.
    pub in_interests: u64,
    /// Data received.
    pub in_data: u64,
    /// Nacks received.
    pub in_nacks: u64,
    /// Interests sent.
    pub out_interests: u64,
    /// Data sent.
    pub out_data: u64,
    /// Nacks sent.
    pub out_nacks: u64,
    /// Bytes received.
    pub in_bytes: u64,
    /// Bytes sent.
    pub out_bytes: u64,
    /// Bits of [`face_flags`](super::numbers::face_flags).
    pub flags: u64,
    /// True if the link is up. Namehop's own addition, absent from other routers.
    pub is_up: Option<bool>,
}

impl DatasetItem for FaceStatus {
    const TYPE: u32 = nfd::FACE_STATUS;

    fn encode_value(&self, writer: &mut Writer) {
        writer
            .nni(nfd::FACE_ID, self.face_id)
            .element(nfd::URI, self.uri.as_bytes())
            .element(nfd::LOCAL_URI, self.local_uri.as_bytes());
        put_optional(writer, nfd::EXPIRATION_PERIOD, self.expiration_period_ms);
        writer
            .nni(nfd::FACE_SCOPE, self.scope.code())
            .nni(nfd::FACE_PERSISTENCY, self.persistency.code())
            .nni(nfd::LINK_TYPE, self.link_type.code());
        put_optional(writer, nfd::BASE_CONGESTION_MARKING_INTERVAL, self.base_congestion_marking_interval_ns);
        put_optional(writer, nfd::DEFAULT_CONGESTION_THRESHOLD, self.default_congestion_threshold_bytes);
        put_optional(writer, nfd::MTU, self.mtu_bytes);
        writer
            .nni(nfd::N_IN_INTERESTS, self.in_interests)
            .nni(nfd::N_IN_DATA, self.in_data)
            .nni(nfd::N_IN_NACKS, self.in_nacks)
            .nni(nfd::N_OUT_INTERESTS, self.out_interests)
            .nni(nfd::N_OUT_DATA, self.out_data)
            .nni(nfd::N_OUT_NACKS, self.out_nacks)
            .nni(nfd::N_IN_BYTES, self.in_bytes)
            .nni(nfd::N_OUT_BYTES, self.out_bytes)
            .nni(nfd::FLAGS, self.flags);
        put_optional(writer, FACE_UP, self.is_up.map(u64::from));
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(FaceStatus {
            face_id: fields.required_number(nfd::FACE_ID, "FaceId")?,
            uri: fields.required_text(nfd::URI, "Uri")?,
            local_uri: fields.required_text(nfd::LOCAL_URI, "LocalUri")?,
            expiration_period_ms: fields.number(nfd::EXPIRATION_PERIOD)?,
            scope: fields.required_code(nfd::FACE_SCOPE, "FaceScope")?,
            persistency: fields.required_code(nfd::FACE_PERSISTENCY, "FacePersistency")?,
            link_type: fields.required_code(nfd::LINK_TYPE, "LinkType")?,
            base_congestion_marking_interval_ns: fields.number(nfd::BASE_CONGESTION_MARKING_INTERVAL)?,
            default_congestion_threshold_bytes: fields.number(nfd::DEFAULT_CONGESTION_THRESHOLD)?,
            mtu_bytes: fields.number(nfd::MTU)?,
            in_interests: fields.required_number(nfd::N_IN_INTERESTS, "NInInterests")?,
            in_data: fields.required_number(nfd::N_IN_DATA, "NInData")?,
            in_nacks: fields.required_number(nfd::N_IN_NACKS, "NInNacks")?,
            out_interests: fields.required_number(nfd::N_OUT_INTERESTS, "NOutInterests")?,
            out_data: fields.required_number(nfd::N_OUT_DATA, "NOutData")?,
            out_nacks: fields.required_number(nfd::N_OUT_NACKS, "NOutNacks")?,
            in_bytes: fields.required_number(nfd::N_IN_BYTES, "NInBytes")?,
            out_bytes: fields.required_number(nfd::N_OUT_BYTES, "NOutBytes")?,
            flags: fields.required_number(nfd::FLAGS, "Flags")?,
            is_up: fields.number(FACE_UP)?.map(|up| up != 0),
        })
    }
}

/// One listener in `faces/channels`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelStatus {
    /// FaceUri that the router listens on.
    pub local_uri: String,
}

impl DatasetItem for ChannelStatus {
    const TYPE: u32 = nfd::CHANNEL_STATUS;

    fn encode_value(&self, writer: &mut Writer) {
        writer.element(nfd::LOCAL_URI, self.local_uri.as_bytes());
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        Ok(ChannelStatus { local_uri: Fields::parse(value)?.required_text(nfd::LOCAL_URI, "LocalUri")? })
    }
}

/// Filter of `faces/query`: faces match if they match every field given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FaceQueryFilter {
    /// Id of the face.
    pub face_id: Option<u64>,
    /// Scheme of the remote or local FaceUri.
    pub uri_scheme: Option<String>,
    /// Remote FaceUri.
    pub uri: Option<String>,
    /// Local FaceUri.
    pub local_uri: Option<String>,
    /// Local or non-local.
    pub scope: Option<FaceScope>,
    /// When the face is closed.
    pub persistency: Option<FacePersistency>,
    /// Number of peers that the link reaches.
    pub link_type: Option<LinkType>,
}

impl FaceQueryFilter {
    /// Encodes the element: the TLV-VALUE of the name component after `faces/query`.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.nested(nfd::FACE_QUERY_FILTER, |writer| {
            put_optional(writer, nfd::FACE_ID, self.face_id);
            put_optional_text(writer, nfd::URI_SCHEME, self.uri_scheme.as_deref());
            put_optional_text(writer, nfd::URI, self.uri.as_deref());
            put_optional_text(writer, nfd::LOCAL_URI, self.local_uri.as_deref());
            put_optional(writer, nfd::FACE_SCOPE, self.scope.map(FaceScope::code));
            put_optional(writer, nfd::FACE_PERSISTENCY, self.persistency.map(FacePersistency::code));
            put_optional(writer, nfd::LINK_TYPE, self.link_type.map(LinkType::code));
        });
        writer.into_vec()
    }

    /// Decodes the complete element.
    pub fn decode(wire: &[u8]) -> Result<Self, CodecError> {
        let element = read_single_element(wire)?;
        if element.typ != nfd::FACE_QUERY_FILTER {
            return Err(CodecError::Missing("FaceQueryFilter"));
        }
        let fields = Fields::parse(element.value)?;
        Ok(FaceQueryFilter {
            face_id: fields.number(nfd::FACE_ID)?,
            uri_scheme: fields.text(nfd::URI_SCHEME, "UriScheme")?,
            uri: fields.text(nfd::URI, "Uri")?,
            local_uri: fields.text(nfd::LOCAL_URI, "LocalUri")?,
            scope: fields.code(nfd::FACE_SCOPE, "FaceScope")?,
            persistency: fields.code(nfd::FACE_PERSISTENCY, "FacePersistency")?,
            link_type: fields.code(nfd::LINK_TYPE, "LinkType")?,
        })
    }

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

/// One event of the stream `faces/events`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceEventNotification {
    /// The event.
    pub kind: FaceEventKind,
    /// Id of the face.
    pub face_id: u64,
    /// Remote FaceUri.
    pub uri: String,
    /// Local FaceUri.
    pub local_uri: String,
    /// Local or non-local.
    pub scope: FaceScope,
    /// When the face is closed.
    pub persistency: FacePersistency,
    /// Number of peers that the link reaches.
    pub link_type: LinkType,
    /// Bits of [`face_flags`](super::numbers::face_flags).
    pub flags: u64,
}

impl FaceEventNotification {
    /// Encodes the element.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(96);
        writer.nested(nfd::FACE_EVENT_NOTIFICATION, |writer| {
            writer
                .nni(nfd::FACE_EVENT_KIND, self.kind.code())
                .nni(nfd::FACE_ID, self.face_id)
                .element(nfd::URI, self.uri.as_bytes())
                .element(nfd::LOCAL_URI, self.local_uri.as_bytes())
                .nni(nfd::FACE_SCOPE, self.scope.code())
                .nni(nfd::FACE_PERSISTENCY, self.persistency.code())
                .nni(nfd::LINK_TYPE, self.link_type.code())
                .nni(nfd::FLAGS, self.flags);
        });
        writer.into_vec()
    }

    /// Decodes the complete element.
    pub fn decode(wire: &[u8]) -> Result<Self, CodecError> {
        let element = read_single_element(wire)?;
        if element.typ != nfd::FACE_EVENT_NOTIFICATION {
            return Err(CodecError::Missing("FaceEventNotification"));
        }
        let fields = Fields::parse(element.value)?;
        Ok(FaceEventNotification {
            kind: fields.required_code(nfd::FACE_EVENT_KIND, "FaceEventKind")?,
            face_id: fields.required_number(nfd::FACE_ID, "FaceId")?,
            uri: fields.required_text(nfd::URI, "Uri")?,
            local_uri: fields.required_text(nfd::LOCAL_URI, "LocalUri")?,
            scope: fields.required_code(nfd::FACE_SCOPE, "FaceScope")?,
            persistency: fields.required_code(nfd::FACE_PERSISTENCY, "FacePersistency")?,
            link_type: fields.required_code(nfd::LINK_TYPE, "LinkType")?,
            flags: fields.required_number(nfd::FLAGS, "Flags")?,
        })
    }
}
