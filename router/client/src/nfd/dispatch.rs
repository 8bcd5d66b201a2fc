//! The assignment of names to workers: `ndt/list`. Namehop's own addition to the NFD management protocol. One item for
//! each entry of the name dispatch table that had packets recently.
//!
//! Forwarders without this dataset do not answer. The TLV-TYPE numbers are from the range for application use.

use namehop_wire::tlv::Writer;

use super::codec::{CodecError, DatasetItem, Fields, put_optional};

/// An entry of the name dispatch table, which assigns names to workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DispatchEntry {
    /// Index of the entry.
    pub entry: u64,
    /// The worker that owns its names.
    pub worker: u64,
    /// The previous owner, while it may still have pending Interests.
    pub former_worker: Option<u64>,
    /// True if names with more components have entries of their own.
    pub is_divided: bool,
    /// Packets per second, estimated from samples.
    pub packets_per_s: u64,
}

/// TLV-TYPE of one item.
const DISPATCH_ENTRY: u32 = 174;
const ENTRY: u32 = 175;
const WORKER: u32 = 176;
const FORMER_WORKER: u32 = 177;
const PACKETS_PER_S: u32 = 178;
const DIVIDED: u32 = 179;

impl DatasetItem for DispatchEntry {
    const TYPE: u32 = DISPATCH_ENTRY;

    fn encode_value(&self, writer: &mut Writer) {
        writer.nni(ENTRY, self.entry).nni(WORKER, self.worker);
        put_optional(writer, FORMER_WORKER, self.former_worker);
        writer.nni(PACKETS_PER_S, self.packets_per_s);
        put_optional(writer, DIVIDED, self.is_divided.then_some(1));
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(DispatchEntry {
            entry: fields.required_number(ENTRY, "entry")?,
            worker: fields.required_number(WORKER, "worker")?,
            former_worker: fields.number(FORMER_WORKER)?,
            is_divided: fields.number(DIVIDED)?.is_some_and(|number| number != 0),
            packets_per_s: fields.required_number(PACKETS_PER_S, "packets")?,
        })
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
