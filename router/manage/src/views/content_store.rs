//! Views of the Content Store.

use serde::Serialize;
use utoipa::ToSchema;

use super::CsDiskView;
use crate::nfd::numbers::cs_flags;
use crate::nfd::{ControlParameters, CsInfo, CsPolicyCounters};

/// Settings and use of the Content Store.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CsInfoView {
    /// Most Data that it holds.
    pub capacity_packets: u64,
    /// What enters and what leaves, with settings that are not the usual ones; `null` where the forwarder does not tell.
    #[schema(required)]
    pub policy: Option<String>,
    /// Data that it holds.
    pub entries: u64,
    /// Data is taken in.
    pub admit: bool,
    /// Interests are answered.
    pub serve: bool,
    /// Interests answered.
    pub hits: u64,
    /// Interests that it could not answer.
    pub misses: u64,
    /// Hits by lookups, 0 to 1; `null` before the first lookup.
    #[schema(required)]
    pub hit_ratio: Option<f64>,
    /// What it did under each policy that it had since the router started; empty where the forwarder does not tell.
    pub by_policy: Vec<CsPolicyView>,
    /// The second tier; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<CsDiskView>,
}

/// What the Content Store did under one policy.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CsPolicyView {
    /// The policy, with any settings.
    pub policy: String,
    /// Interests answered.
    pub hits: u64,
    /// Interests that it could not answer.
    pub misses: u64,
    /// Data that entered.
    pub insertions: u64,
    /// Data that left to make room.
    pub evictions: u64,
    /// Data that the policy did not let in.
    pub rejections: u64,
}

impl From<CsPolicyCounters> for CsPolicyView {
    fn from(counters: CsPolicyCounters) -> Self {
        let CsPolicyCounters { policy, hits, misses, insertions, evictions, rejections } = counters;
        CsPolicyView { policy, hits, misses, insertions, evictions, rejections }
    }
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
            by_policy: info.by_policy.into_iter().map(CsPolicyView::from).collect(),
            disk: info.disk.map(CsDiskView::from),
        }
    }
}

/// Data removed by a command.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CsErasureView {
    /// Under this prefix.
    pub prefix: String,
    /// Packets.
    pub erased: u64,
}

/// Settings of the Content Store after a command changed some.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CsConfigView {
    /// Most Data that it holds.
    #[schema(required)]
    pub capacity_packets: Option<u64>,
    /// Data is taken in.
    #[schema(required)]
    pub admit: Option<bool>,
    /// Interests are answered.
    #[schema(required)]
    pub serve: Option<bool>,
    /// What enters and what leaves; `null` where the forwarder does not tell.
    #[schema(required)]
    pub policy: Option<String>,
    /// What was asked for, when the forwarder does not give all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_capacity_packets: Option<u64>,
    /// What to do about that.
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
                "the router has room for {given} packets in its cache and not for {requested}; for more, raise \
                 capacity_packets and capacity_bytes in section [content_store] of its configuration and start it again"
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
