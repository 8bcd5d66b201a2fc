//! Status of the router as a whole: `status/general`.

use namehop_wire::tlv::types::nfd;

use super::record::records;

records! {
    /// The content of `status/general`, which has no outer element.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct GeneralStatus {
        /// Program and version.
        version: String = nfd::NFD_VERSION,
        /// Start of the router, in milliseconds since the Unix epoch.
        start_timestamp_ms: u64 = nfd::START_TIMESTAMP,
        /// Current time, in milliseconds since the Unix epoch.
        current_timestamp_ms: u64 = nfd::CURRENT_TIMESTAMP,
        /// Entries of the name table.
        name_tree_entries: u64 = nfd::N_NAME_TREE_ENTRIES,
        /// FIB prefixes.
        fib_entries: u64 = nfd::N_FIB_ENTRIES,
        /// PIT entries.
        pit_entries: u64 = nfd::N_PIT_ENTRIES,
        /// Strategy measurements.
        measurements_entries: u64 = nfd::N_MEASUREMENTS_ENTRIES,
        /// Content Store entries.
        cs_entries: u64 = nfd::N_CS_ENTRIES,
        /// Interests received.
        in_interests: u64 = nfd::N_IN_INTERESTS,
        /// Data received.
        in_data: u64 = nfd::N_IN_DATA,
        /// Nacks received.
        in_nacks: u64 = nfd::N_IN_NACKS,
        /// Interests sent.
        out_interests: u64 = nfd::N_OUT_INTERESTS,
        /// Data sent.
        out_data: u64 = nfd::N_OUT_DATA,
        /// Nacks sent.
        out_nacks: u64 = nfd::N_OUT_NACKS,
        /// PIT entries satisfied by Data.
        satisfied_interests: u64 = nfd::N_SATISFIED_INTERESTS => OrDefault,
        /// PIT entries that ended without Data.
        unsatisfied_interests: u64 = nfd::N_UNSATISFIED_INTERESTS => OrDefault,
    }
}
