//! The second tier of the Content Store in `cs/info`: Namehop's own addition.

use namehop_wire::tlv::{Writer, decode_nni};
use serde::Serialize;
use utoipa::ToSchema;

use super::codec::CodecError;
use super::numbers::Code;
use super::record::{FieldId, Value, records};

/// TLV-TYPE of the element. It is even, so that programs that do not know it ignore it, and from the range for
/// application use. The same holds for its fields.
pub(super) const CS_DISK: u32 = 65_290;

records! {
    /// The second tier of the Content Store, on disk.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
    pub struct CsDisk {
        /// State of the device.
        state: DiskState = 65_292 => OrDefault,
        /// Capacity for packets.
        capacity_bytes: u64 = 65_294 => OrDefault,
        /// Part of the capacity that was ever written.
        used_bytes: u64 = 65_296 => OrDefault,
        /// Read requests.
        reads: u64 = 65_298 => OrDefault,
        /// Write requests, each with a batch of packets.
        writes: u64 = 65_300 => OrDefault,
        /// Bytes written.
        written_bytes: u64 = 65_302 => OrDefault,
        /// Requests that ended with an error.
        errors: u64 = 65_304 => OrDefault,
        /// Packets found damaged on the disk.
        checksum_failures: u64 = 65_306 => OrDefault,
        /// Number of times that the disk did not answer for one second.
        stalls: u64 = 65_308 => OrDefault,
        /// Data moved from memory to the disk.
        stored: u64 = 65_310 => OrDefault,
        /// Data evicted from memory without being written, because the disk was behind or did not work.
        not_stored: u64 = 65_312 => OrDefault,
        /// Lookups that found their Data.
        hits: u64 = 65_314 => OrDefault,
        /// Lookups that did not find their Data, although the index had the name.
        misses: u64 = 65_316 => OrDefault,
        /// Lookups that took longer than `read_timeout_ms`.
        timeouts: u64 = 65_318 => OrDefault,
        /// Lookups skipped because too many were in progress.
        busy: u64 = 65_320 => OrDefault,
        /// Interests that are waiting for the disk.
        waiting: u64 = 65_322 => OrDefault,
        /// Workers with erasures of Data that the disk has not recorded yet; the state file records them until then.
        erasing_workers: u64 = 65_324 => OrDefault,
    }
}

/// State of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskState {
    /// The device is being scanned for contents from before the start.
    #[default]
    Starting,
    /// Data is written and looked up.
    Working,
    /// A request takes too long; no further request is made until it ends.
    Stalled,
    /// The device reported an error; it is retried after a pause.
    Failed,
}

/// A state that this version does not know is read as `Starting`.
impl Value for DiskState {
    fn write(&self, writer: &mut Writer, typ: u32) {
        writer.nni(typ, self.code());
    }

    fn read(value: &[u8], _: FieldId) -> Result<Self, CodecError> {
        Ok(DiskState::from_code(decode_nni(value)?).unwrap_or_default())
    }
}
