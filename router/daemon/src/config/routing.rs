//! Section `[routing]`: announcing routes to a routing daemon and to a gateway.

use std::path::PathBuf;

use namehop_client::nfd::numbers::origin;
use serde::{Deserialize, Serialize};

use super::values::OriginText;

/// `[routing]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Routing {
    /// Announcing to a routing daemon on this host.
    pub daemon: RoutingDaemon,
    /// Announcing to a gateway.
    pub gateway: RoutingGateway,
}

/// `[routing.daemon]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingDaemon {
    /// Whether routes are announced.
    pub enabled: bool,
    /// Origins of the routes that are announced.
    pub origins: Vec<OriginText>,
}

impl Default for RoutingDaemon {
    fn default() -> Self {
        RoutingDaemon { enabled: true, origins: vec![OriginText(origin::CLIENT)] }
    }
}

/// `[routing.gateway]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingGateway {
    /// Private key that signs the commands; without it nothing is announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Certificate of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Origins of the routes that are announced.
    pub origins: Vec<OriginText>,
    /// Cost of the route at the gateway.
    pub cost: u64,
    /// Seconds between two registrations of a route.
    pub refresh_s: u64,
}

impl Default for RoutingGateway {
    fn default() -> Self {
        let origins = vec![OriginText(origin::APP), OriginText(origin::CLIENT)];
        RoutingGateway { key: None, certificate: None, origins, cost: 15, refresh_s: 25 }
    }
}
