//! The assignment of names to workers: `ndt/list`. Namehop's own addition to the NFD management protocol. One item for
//! each entry of the name dispatch table that had packets recently.
//!
//! Forwarders without this dataset do not answer. The TLV-TYPE numbers are from the range for application use.

use serde::Serialize;
use utoipa::ToSchema;

use super::record::records;

records! {
    /// An entry of the name dispatch table, which assigns names to workers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
    pub struct DispatchEntry(174) {
        /// Index of the entry.
        entry: u64 = 175,
        /// The worker that owns its names.
        worker: u64 = 176,
        /// The previous owner, while it may still have pending Interests; `null` if the entry was not moved recently.
        #[schema(required)]
        former_worker: Option<u64> = 177,
        /// True if names with more components have entries of their own, to spread them over several workers.
        #[serde(rename = "divided")]
        is_divided: bool = 179 => OrDefault,
        /// Packets per second, estimated from samples of the last seconds.
        packets_per_s: u64 = 178,
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::{decode_items, encode_items};
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written() {
        let moved =
            DispatchEntry { entry: 65_535, worker: 1, former_worker: Some(0), is_divided: true, packets_per_s: 640 };
        let entries = [moved, DispatchEntry { former_worker: None, is_divided: false, ..moved }];
        assert_eq!(decode_items::<DispatchEntry>(&encode_items(entries)), Ok(entries.to_vec()));
    }
}
