//! Views of prefixes: routes, FIB entries and strategy choices.

use std::collections::HashMap;

use namehop_client::nfd::numbers::{origin, route_flags};
use namehop_client::nfd::{FibEntry, Route, StrategyChoice};
use namehop_wire::Name;
use serde::Serialize;
use utoipa::ToSchema;

/// A route.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RouteView {
    /// Prefix.
    pub prefix: String,
    /// Id of the next hop's face.
    pub face_id: u64,
    /// Remote address of the face. In lists only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_uri: Option<String>,
    /// Origin: `app`, `client`, `static`, `nlsr` and so on, or a number.
    pub origin: String,
    /// Lower is better.
    pub cost: u64,
    /// `child-inherit`, `capture`, both separated by a comma, `none`, or other bits as a number.
    pub flags: String,
    /// Remaining lifetime; `null` if the route does not expire.
    #[schema(required)]
    pub expires_ms: Option<u64>,
}

impl RouteView {
    /// Creates the view of a route of `prefix`, without the remote address of its face.
    pub fn new(prefix: &Name, route: &Route) -> Self {
        Self {
            prefix: prefix.to_string(),
            face_id: route.face_id,
            remote_uri: None,
            origin: origin::name(route.origin).into_owned(),
            cost: route.cost,
            flags: route_flags::words(route.flags),
            expires_ms: route.expiration_period_ms,
        }
    }
}

/// One next hop of a FIB entry.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct NextHopView {
    /// Id of the face.
    pub face_id: u64,
    /// Remote address of the face; `null` if the face no longer exists.
    #[schema(required)]
    pub remote_uri: Option<String>,
    /// Lower is better.
    pub cost: u64,
}

/// A FIB entry.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FibView {
    /// Prefix.
    pub prefix: String,
    /// Next hops of its Interests, lowest cost first.
    pub nexthops: Vec<NextHopView>,
}

impl FibView {
    /// Creates the view of an entry. `remote_uris` holds the remote addresses of faces by id.
    pub fn new(entry: &FibEntry, remote_uris: &HashMap<u64, String>) -> Self {
        let view = |hop: &namehop_client::nfd::NextHopRecord| NextHopView {
            face_id: hop.face_id,
            remote_uri: remote_uris.get(&hop.face_id).cloned(),
            cost: hop.cost,
        };
        Self { prefix: entry.name.to_string(), nexthops: entry.next_hops.iter().map(view).collect() }
    }
}

/// The strategy chosen for a prefix.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StrategyChoiceView {
    /// Prefix.
    pub prefix: String,
    /// Name of the strategy, with its version and parameters.
    pub strategy: String,
}

impl From<&StrategyChoice> for StrategyChoiceView {
    fn from(choice: &StrategyChoice) -> Self {
        Self { prefix: choice.name.to_string(), strategy: choice.strategy.to_string() }
    }
}
