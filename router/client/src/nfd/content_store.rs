//! The Content Store: `cs/info`, with Namehop's own additions, which other programs ignore.

use namehop_wire::tlv::{Writer, types::nfd};

use super::CsDisk;
use super::codec::{CodecError, DatasetItem, Fields, put_optional_text};

// TLV-TYPEs of the additions: even, so that programs that do not know them ignore them, and from the range for
// application use.

/// The policy with its settings, in `cs/info` and `cs/config`.
pub(super) const CS_POLICY: u32 = 65_280;
const POLICY_COUNTERS: u32 = 65_282;
const INSERTIONS: u32 = 65_284;
const EVICTIONS: u32 = 65_286;
const REJECTIONS: u32 = 65_288;

/// The only element of `cs/info`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsInfo {
    /// Capacity in Data packets.
    pub capacity: u64,
    /// Bits of [`cs_flags`](super::numbers::cs_flags).
    pub flags: u64,
    /// Current number of Data packets.
    pub entries: u64,
    /// Interests that hit.
    pub hits: u64,
    /// Interests that missed.
    pub misses: u64,
    /// The policy with its settings. Namehop's own addition.
    pub policy: Option<String>,
    /// Counters of each policy that was in use. Namehop's own addition.
    pub by_policy: Vec<CsPolicyCounters>,
    /// The second tier, if there is one. Namehop's own addition.
    pub disk: Option<CsDisk>,
}

/// Counters of the Content Store under one policy, with any settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsPolicyCounters {
    /// The policy, without settings.
    pub policy: String,
    /// Interests that hit.
    pub hits: u64,
    /// Interests that missed.
    pub misses: u64,
    /// Data inserted.
    pub insertions: u64,
    /// Data evicted.
    pub evictions: u64,
    /// Data rejected by the policy.
    pub rejections: u64,
}

impl CsPolicyCounters {
    fn encode_value(&self, writer: &mut Writer) {
        writer
            .element(CS_POLICY, self.policy.as_bytes())
            .nni(nfd::N_HITS, self.hits)
            .nni(nfd::N_MISSES, self.misses)
            .nni(INSERTIONS, self.insertions)
            .nni(EVICTIONS, self.evictions)
            .nni(REJECTIONS, self.rejections);
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(CsPolicyCounters {
            policy: fields.required_text(CS_POLICY, "policy")?,
            hits: fields.required_number(nfd::N_HITS, "NHits")?,
            misses: fields.required_number(nfd::N_MISSES, "NMisses")?,
            insertions: fields.required_number(INSERTIONS, "insertions")?,
            evictions: fields.required_number(EVICTIONS, "evictions")?,
            rejections: fields.required_number(REJECTIONS, "rejections")?,
        })
    }
}

impl DatasetItem for CsInfo {
    const TYPE: u32 = nfd::CS_INFO;

    fn encode_value(&self, writer: &mut Writer) {
        writer
            .nni(nfd::CAPACITY, self.capacity)
            .nni(nfd::FLAGS, self.flags)
            .nni(nfd::N_CS_ENTRIES, self.entries)
            .nni(nfd::N_HITS, self.hits)
            .nni(nfd::N_MISSES, self.misses);
        put_optional_text(writer, CS_POLICY, self.policy.as_deref());
        for counters in &self.by_policy {
            writer.nested(POLICY_COUNTERS, |writer| counters.encode_value(writer));
        }
        if let Some(disk) = &self.disk {
            super::encode_item(disk, writer);
        }
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(CsInfo {
            capacity: fields.required_number(nfd::CAPACITY, "Capacity")?,
            flags: fields.required_number(nfd::FLAGS, "Flags")?,
            entries: fields.required_number(nfd::N_CS_ENTRIES, "NCsEntries")?,
            hits: fields.required_number(nfd::N_HITS, "NHits")?,
            misses: fields.required_number(nfd::N_MISSES, "NMisses")?,
            policy: fields.text(CS_POLICY, "policy")?,
            by_policy: fields.all(POLICY_COUNTERS).map(CsPolicyCounters::decode_value).collect::<Result<_, _>>()?,
            disk: fields.find(CsDisk::TYPE).map(CsDisk::decode_value).transpose()?,
        })
    }
}
