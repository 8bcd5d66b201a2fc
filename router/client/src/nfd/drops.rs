//! Dropped packets by reason: `status/drops`. Namehop's own addition to the NFD management protocol.
//!
//! Forwarders without this dataset do not answer. The TLV-TYPE numbers are from the range for application use.

use namehop_wire::tlv::types::nfd;

use super::record::records;

records! {
    /// Drops for one reason, in total or on one face.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct DropCount(128) {
        /// Id of the face; absent in the totals, which include destroyed faces.
        face_id: Option<u64> = nfd::FACE_ID,
        /// Part of the router: `link` or `engine`.
        layer: String = 129,
        /// Stable name in kebab case.
        reason: String = 130,
        /// Packets dropped.
        count: u64 = nfd::COUNT,
    }
}
