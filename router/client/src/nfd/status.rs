//! Status of the router as a whole: `status/general`.

use namehop_wire::tlv::{Writer, types::nfd};

use super::codec::{CodecError, Fields};

/// The content of `status/general`, which has no outer element.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GeneralStatus {
    /// Program and version.
    pub version: String,
    /// Start of the router, in milliseconds since the Unix epoch.
    pub start_timestamp_ms: u64,
    /// Current time, in milliseconds since the Unix epoch.
    pub current_timestamp_ms: u64,
    /// Entries of the name table.
    pub name_tree_entries: u64,
    /// FIB prefixes.
    pub fib_entries: u64,
    /// PIT entries.
    pub pit_entries: u64,
    /// Strategy measurements.
    pub measurements_entries: u64,
    /// Content Store entries.
    pub cs_entries: u64,
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
    /// PIT entries satisfied by Data.
    pub satisfied_interests: u64,
    /// PIT entries that ended without Data.
    pub unsatisfied_interests: u64,
}

impl GeneralStatus {
    /// Encodes the content.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(128);
        writer
            .element(nfd::NFD_VERSION, self.version.as_bytes())
            .nni(nfd::START_TIMESTAMP, self.start_timestamp_ms)
            .nni(nfd::CURRENT_TIMESTAMP, self.current_timestamp_ms)
            .nni(nfd::N_NAME_TREE_ENTRIES, self.name_tree_entries)
            .nni(nfd::N_FIB_ENTRIES, self.fib_entries)
            .nni(nfd::N_PIT_ENTRIES, self.pit_entries)
            .nni(nfd::N_MEASUREMENTS_ENTRIES, self.measurements_entries)
            .nni(nfd::N_CS_ENTRIES, self.cs_entries)
            .nni(nfd::N_IN_INTERESTS, self.in_interests)
            .nni(nfd::N_IN_DATA, self.in_data)
            .nni(nfd::N_IN_NACKS, self.in_nacks)
            .nni(nfd::N_OUT_INTERESTS, self.out_interests)
            .nni(nfd::N_OUT_DATA, self.out_data)
            .nni(nfd::N_OUT_NACKS, self.out_nacks)
            .nni(nfd::N_SATISFIED_INTERESTS, self.satisfied_interests)
            .nni(nfd::N_UNSATISFIED_INTERESTS, self.unsatisfied_interests);
        writer.into_vec()
    }

    /// Decodes the content. The numbers of satisfied and unsatisfied Interests are 0 if a forwarder does not send them.
    pub fn decode(content: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(content)?;
        Ok(GeneralStatus {
            version: fields.required_text(nfd::NFD_VERSION, "NfdVersion")?,
            start_timestamp_ms: fields.required_number(nfd::START_TIMESTAMP, "StartTimestamp")?,
            current_timestamp_ms: fields.required_number(nfd::CURRENT_TIMESTAMP, "CurrentTimestamp")?,
            name_tree_entries: fields.required_number(nfd::N_NAME_TREE_ENTRIES, "NNameTreeEntries")?,
            fib_entries: fields.required_number(nfd::N_FIB_ENTRIES, "NFibEntries")?,
            pit_entries: fields.required_number(nfd::N_PIT_ENTRIES, "NPitEntries")?,
            measurements_entries: fields.required_number(nfd::N_MEASUREMENTS_ENTRIES, "NMeasurementsEntries")?,
            cs_entries: fields.required_number(nfd::N_CS_ENTRIES, "NCsEntries")?,
            in_interests: fields.required_number(nfd::N_IN_INTERESTS, "NInInterests")?,
            in_data: fields.required_number(nfd::N_IN_DATA, "NInData")?,
            in_nacks: fields.required_number(nfd::N_IN_NACKS, "NInNacks")?,
            out_interests: fields.required_number(nfd::N_OUT_INTERESTS, "NOutInterests")?,
            out_data: fields.required_number(nfd::N_OUT_DATA, "NOutData")?,
            out_nacks: fields.required_number(nfd::N_OUT_NACKS, "NOutNacks")?,
            satisfied_interests: fields.number(nfd::N_SATISFIED_INTERESTS)?.unwrap_or(0),
            unsatisfied_interests: fields.number(nfd::N_UNSATISFIED_INTERESTS)?.unwrap_or(0),
        })
    }
}
