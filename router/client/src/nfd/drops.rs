//! Dropped packets by reason: `status/drops`. Namehop's own addition to the NFD management protocol.
//!
//! Forwarders without this dataset do not answer. The TLV-TYPE numbers are from the range for application use.

use namehop_wire::tlv::{Writer, types::nfd};

use super::codec::{CodecError, DatasetItem, Fields, put_optional};

/// Drops for one reason, in total or on one face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropCount {
    /// Id of the face; absent in the totals, which include destroyed faces.
    pub face_id: Option<u64>,
    /// Part of the router: `link` or `engine`.
    pub layer: String,
    /// Stable name in kebab case.
    pub reason: String,
    /// Packets dropped.
    pub count: u64,
}

/// TLV-TYPE of one item.
const DROP_COUNT: u32 = 128;
const LAYER: u32 = 129;
const REASON: u32 = 130;

impl DatasetItem for DropCount {
    const TYPE: u32 = DROP_COUNT;

    fn encode_value(&self, writer: &mut Writer) {
        put_optional(writer, nfd::FACE_ID, self.face_id);
        writer.element(LAYER, self.layer.as_bytes()).element(REASON, self.reason.as_bytes());
        writer.nni(nfd::COUNT, self.count);
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(DropCount {
            face_id: fields.number(nfd::FACE_ID)?,
            layer: fields.required_text(LAYER, "Layer")?,
            reason: fields.required_text(REASON, "Reason")?,
            count: fields.required_number(nfd::COUNT, "Count")?,
        })
    }
}
