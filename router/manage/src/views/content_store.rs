//! Views of the Content Store.

use namehop_client::nfd::numbers::cs_flags;
use namehop_client::nfd::{ControlParameters, CsDisk, CsInfo, CsPolicyCounters};
use serde::Serialize;
use utoipa::ToSchema;

/// Settings and counters of the Content Store.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CsInfoView {
    /// Capacity in Data packets.
    pub capacity_packets: u64,
    /// The policy, with settings that differ from their defaults; `null` if the forwarder does not report it.
    #[schema(required)]
    pub policy: Option<String>,
    /// Current number of Data packets.
    pub entries: u64,
    /// True if Data is admitted.
    pub admit: bool,
    /// True if Interests are answered.
    pub serve: bool,
    /// Interests that hit.
    pub hits: u64,
    /// Interests that missed.
    pub misses: u64,
    /// Hits per lookup, 0 to 1; `null` before the first lookup.
    #[schema(required)]
    pub hit_ratio: Option<f64>,
    /// Counters of each policy in use since the router started; empty if the forwarder does not report them.
    pub by_policy: Vec<CsPolicyCounters>,
    /// The second tier; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<CsDisk>,
}

impl From<CsInfo> for CsInfoView {
    fn from(info: CsInfo) -> Self {
        let lookups = info.hits.saturating_add(info.misses);
        Self {
            capacity_packets: info.capacity,
            policy: info.policy,
            entries: info.entries,
            admit: info.flags & cs_flags::ADMIT != 0,
            serve: info.flags & cs_flags::SERVE != 0,
            hits: info.hits,
            misses: info.misses,
            hit_ratio: (lookups > 0).then(|| info.hits as f64 / lookups as f64),
            by_policy: info.by_policy,
            disk: info.disk,
        }
    }
}

/// Data erased by a command.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CsErasureView {
    /// Prefix of the Data.
    pub prefix: String,
    /// Number of packets.
    pub erased: u64,
}

/// Settings of the Content Store after a command.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CsConfigView {
    /// Capacity in Data packets.
    #[schema(required)]
    pub capacity_packets: Option<u64>,
    /// True if Data is admitted.
    #[schema(required)]
    pub admit: Option<bool>,
    /// True if Interests are answered.
    #[schema(required)]
    pub serve: Option<bool>,
    /// The policy; `null` if the forwarder does not report it.
    #[schema(required)]
    pub policy: Option<String>,
    /// The requested capacity, if the forwarder does not provide all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_capacity_packets: Option<u64>,
    /// How to get the requested capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl CsConfigView {
    /// Creates the view from the parameters in the response to `cs/config`, which requested `requested_capacity`.
    pub fn new(done: &ControlParameters, requested_capacity: Option<u64>) -> Self {
        let flag = |bit| done.flags.map(|flags| flags & bit != 0);
        let missing = requested_capacity.filter(|&requested| done.capacity.is_some_and(|given| given < requested));
        let warning = missing.zip(done.capacity).map(|(requested, given)| {
            format!(
                "the router's cache has room for {given} packets, not for {requested}; for more, raise \
                 capacity_packets and capacity_bytes in section [content_store] of its configuration and restart it"
            )
        });
        Self {
            capacity_packets: done.capacity,
            admit: flag(cs_flags::ADMIT),
            serve: flag(cs_flags::SERVE),
            policy: done.policy.clone(),
            requested_capacity_packets: missing,
            warning,
        }
    }
}
