//! The Content Store: `cs/info`, with Namehop's own additions, which other programs ignore.

use namehop_wire::tlv::types::nfd;
use serde::Serialize;
use utoipa::ToSchema;

use super::cs_disk::{CS_DISK, CsDisk};
use super::record::records;

// TLV-TYPEs of the additions: even, so that programs that do not know them ignore them, and from the range for
// application use.

/// The policy with its settings, in `cs/info` and `cs/config`.
pub(super) const CS_POLICY: u32 = 65_280;

records! {
    /// The only element of `cs/info`.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct CsInfo(nfd::CS_INFO) {
        /// Capacity in Data packets.
        capacity: u64 = nfd::CAPACITY,
        /// Bits of [`cs_flags`](super::numbers::cs_flags).
        flags: u64 = nfd::FLAGS,
        /// Current number of Data packets.
        entries: u64 = nfd::N_CS_ENTRIES,
        /// Interests that hit.
        hits: u64 = nfd::N_HITS,
        /// Interests that missed.
        misses: u64 = nfd::N_MISSES,
        /// The policy with its settings. Namehop's own addition.
        policy: Option<String> = CS_POLICY,
        /// Counters of each policy that was in use. Namehop's own addition.
        by_policy: Vec<CsPolicyCounters> = 65_282,
        /// The second tier, if there is one. Namehop's own addition.
        disk: Option<CsDisk> = CS_DISK,
    }

    /// Counters of the Content Store under one policy, with any settings.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
    pub struct CsPolicyCounters {
        /// Name of the policy; its counters cover all settings.
        policy: String = CS_POLICY,
        /// Interests that hit.
        hits: u64 = nfd::N_HITS,
        /// Interests that missed.
        misses: u64 = nfd::N_MISSES,
        /// Data inserted.
        insertions: u64 = 65_284,
        /// Data evicted.
        evictions: u64 = 65_286,
        /// Data rejected by the policy.
        rejections: u64 = 65_288,
    }
}
