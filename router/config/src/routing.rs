//! Section `[routing]`: announcing routes to a routing daemon and to a gateway.

use std::path::PathBuf;

use namehop_client::nfd::numbers::origin;

use crate::settings::settings;
use crate::values::OriginText;

settings! {
    /// Announcing routes to others.
    pub section Routing {
        one daemon: RoutingDaemon;
        one gateway: RoutingGateway;
    }
}

settings! {
    /// A local routing daemon that listens at /localhost/nlsr, as NLSR and ndn-dv do. The router announces prefixes to
    /// it, and it tells other routers. Without a daemon this costs nothing.
    pub section RoutingDaemon {
        /// Whether the router announces prefixes to it.
        pub enabled: bool = true;
        /// Origins of announced routes: app, autoreg, client, autoconf, prefixann, static, or a number in quotes.
        /// Applications and end hosts use "client" for prefixes that the whole network should know, and "app" for
        /// prefixes of this host only.
        pub origins: Vec<OriginText> = vec![OriginText(origin::CLIENT)];
    }
}

settings! {
    /// An end host becomes reachable by registering a prefix at a gateway. The gateway is the router that its route for
    /// /localhop/nfd, or else its default route, leads to. The prefix is the identity of a key. It stays registered
    /// while routes exist for names under it. The gateway must trust the key (`[management.localhop]` there).
    pub section RoutingGateway {
        /// Private key that signs the commands. Without a key the router registers nothing. `namehop key generate`
        /// makes this file and the next.
        pub key: Option<PathBuf> = None, example "\"/etc/namehop/host.key\"",
            serde(skip_serializing_if = "Option::is_none");
        /// Certificate of the key.
        pub certificate: Option<PathBuf> = None, example "\"/etc/namehop/host.ndncert\"",
            serde(skip_serializing_if = "Option::is_none");
        /// Origins of the routes that count.
        pub origins: Vec<OriginText> = vec![OriginText(origin::APP), OriginText(origin::CLIENT)];
        /// Cost of the route at the gateway.
        pub cost: u64 = 15, in 0..=1 << 32;
        /// Registration interval in seconds. The gateway removes the route after twelve intervals without a
        /// registration.
        pub refresh_s: u64 = 25, in 1..=86_400;
    }
}
