//! Registration of a producer's prefix, on this host only or for the whole network.

use std::time::Duration;

use clap::Args;
use namehop_client::endpoint::{CommandError, Endpoint, RouteOptions};
use namehop_client::nfd::numbers::origin;
use namehop_wire::Name;
use tokio::time::timeout;

/// How long a producer waits at its end for the forwarder to remove its route.
const UNREGISTER_TIMEOUT: Duration = Duration::from_secs(1);

/// Options of the prefix registration.
#[derive(Args, Debug)]
pub struct AnnounceArgs {
    /// Announce the prefix to other routers, through the routing daemon of the forwarder
    ///
    /// Registers the prefix with origin client; forwarders pass such routes to their routing daemon.
    #[arg(long)]
    announce: bool,
}

impl AnnounceArgs {
    fn route(&self) -> RouteOptions {
        RouteOptions { origin: self.announce.then_some(origin::CLIENT), ..RouteOptions::default() }
    }

    /// Registers a route for `prefix` to this connection.
    pub async fn register(&self, endpoint: &Endpoint, prefix: &Name) -> Result<(), CommandError> {
        endpoint.register_route(prefix, &self.route()).await
    }

    /// Removes the route before the program exits. Otherwise the forwarder sends Interests here until it detects the
    /// closed connection, which takes minutes over UDP.
    pub async fn unregister(&self, endpoint: &Endpoint, prefix: &Name) {
        // The program exits anyway, whether the forwarder refuses or does not answer.
        let _ = timeout(UNREGISTER_TIMEOUT, endpoint.unregister_route(prefix, &self.route())).await;
    }
}
