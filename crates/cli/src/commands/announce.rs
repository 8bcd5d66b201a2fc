//! Whether the prefix that a producer registers is for this computer or for the whole network.

use clap::Args;
use namehop_manage::nfd::numbers::origin;
use namehop_traffic::endpoint::RouteOptions;

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
    /// The route to register.
    pub fn route(&self) -> RouteOptions {
        RouteOptions { origin: self.announce.then_some(origin::CLIENT), ..RouteOptions::default() }
    }
}
