//! Whether the prefix that a producer registers is for this computer or for the whole network.

use std::time::Duration;

use clap::Args;
use namehop_manage::nfd::numbers::origin;
use namehop_traffic::endpoint::{CommandError, Endpoint, RouteOptions};
use namehop_wire::Name;
use tokio::time::timeout;

/// How long the end of a producer waits for the forwarder to remove its route.
const UNREGISTER_TIMEOUT: Duration = Duration::from_secs(1);

/// How the prefix is registered.
#[derive(Args, Debug)]
pub struct AnnounceArgs {
    /// Make the prefix known to other routers, where a routing daemon runs beside the forwarder
    ///
    /// It is registered with origin client, which forwarders tell their routing daemon of.
    #[arg(long)]
    announce: bool,
}

impl AnnounceArgs {
    fn route(&self) -> RouteOptions {
        RouteOptions { origin: self.announce.then_some(origin::CLIENT), ..RouteOptions::default() }
    }

    /// Has the forwarder send Interests under `prefix` here.
    pub async fn register(&self, endpoint: &Endpoint, prefix: &Name) -> Result<(), CommandError> {
        endpoint.register_route(prefix, &self.route()).await
    }

    /// Takes that back before the program ends. Otherwise the forwarder would send Interests here until it notices that the
    /// connection is gone, which over UDP takes minutes.
    pub async fn unregister(&self, endpoint: &Endpoint, prefix: &Name) {
        // The program ends all the same: a refusal, or no answer, changes nothing for whoever started it.
        let _ = timeout(UNREGISTER_TIMEOUT, endpoint.unregister_route(prefix, &self.route())).await;
    }
}
