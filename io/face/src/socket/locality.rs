//! Whether a peer is an application of this host.
//!
//! An application can send commands to the router, reaches `/localhost` and has reserved faces that unsolicited peers
//! cannot take. A loopback address alone does not prove an application: connections through a proxy on this host also
//! come from a loopback address. So each listener declares whether its loopback peers are applications
//! ([`SocketConfig::tcp_is_local`], [`SocketConfig::websocket_is_local`]), and a request with proxy header fields is
//! never from an application.
//!
//! [`SocketConfig::tcp_is_local`]: super::SocketConfig::tcp_is_local
//! [`SocketConfig::websocket_is_local`]: super::SocketConfig::websocket_is_local

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use namehop_packet::FaceScope;
use tokio_tungstenite::tungstenite::http::HeaderMap;
use tokio_tungstenite::tungstenite::http::header::HOST;

/// Header fields that proxies add to requests: RFC 7239, RFC 9110 section 7.6.3, RFC 8586, and fields that widely used
/// servers and networks add.
const PROXY_FIELDS: [&str; 11] = [
    "forwarded",
    "via",
    "cdn-loop",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-proxyuser-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
    "fly-client-ip",
];
/// Prefixes of further header fields of proxies, for example `X-Forwarded-For`.
const PROXY_PREFIXES: [&str; 3] = ["x-forwarded", "x-original-", "x-envoy-"];

/// Returns the scope of a TCP connection: local if loopback peers are applications and both ends are loopback
/// addresses.
pub(super) fn scope(loopback_is_local: bool, peer: SocketAddr, local: SocketAddr) -> FaceScope {
    let is_loopback = peer.ip().is_loopback() && local.ip().is_loopback();
    if loopback_is_local && is_loopback { FaceScope::Local } else { FaceScope::NonLocal }
}

/// Whether an HTTP request is addressed to a loopback host and has no header field of a proxy.
///
/// This is necessary for a request from this host, but not sufficient: a proxy can omit these fields and set `Host`.
pub fn shows_no_proxy(headers: &HeaderMap) -> bool {
    let is_of_proxy =
        |name: &str| PROXY_FIELDS.contains(&name) || PROXY_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let asks_for_loopback = headers.get_all(HOST).iter().all(|host| host.to_str().is_ok_and(is_loopback_authority));
    asks_for_loopback && !headers.keys().any(|name| is_of_proxy(name.as_str()))
}

/// Whether `host` or `host:port` is `localhost` or a loopback address.
pub(super) fn is_loopback_authority(authority: &str) -> bool {
    let (is_loopback, rest) = if let Some(bracketed) = authority.strip_prefix('[') {
        let Some((host, rest)) = bracketed.split_once(']') else { return false };
        (host.parse().is_ok_and(|address: Ipv6Addr| address.is_loopback()), rest)
    } else {
        let (host, rest) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
        let is_address = host.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback());
        (is_address || host.eq_ignore_ascii_case("localhost"), rest)
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    is_loopback && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
}

/// Whether an origin of web pages (`scheme://host:port`, RFC 6454) is this host. The origin `null` is not, because any
/// page can have it.
pub fn is_loopback_origin(origin: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    is_web && is_loopback_authority(authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (name.parse().expect("name"), value.parse().expect("value"))).collect()
    }

    #[test]
    fn both_ends_are_loopback_and_the_listener_says_so() {
        let [loopback, v6, other] =
            ["127.0.0.1:1", "[::1]:2", "192.0.2.1:3"].map(|text| text.parse::<SocketAddr>().expect("address"));
        for peer in [loopback, v6] {
            assert_eq!(scope(true, peer, peer), FaceScope::Local);
            assert_eq!(scope(false, peer, peer), FaceScope::NonLocal);
            assert_eq!(scope(true, peer, other), FaceScope::NonLocal);
            assert_eq!(scope(true, other, peer), FaceScope::NonLocal);
        }
    }

    #[test]
    fn requests_for_loopback_without_fields_of_proxies_show_none() {
        for host in ["localhost", "LocalHost:9696", "127.0.0.1:9696", "127.0.1.1", "[::1]:9696"] {
            assert!(
                shows_no_proxy(&headers(&[("host", host), ("user-agent", "x"), ("x-requested-with", "y")])),
                "{host}"
            );
        }
        assert!(shows_no_proxy(&HeaderMap::new()));
    }

    #[test]
    fn fields_of_proxies_and_other_hosts_show_a_proxy() {
        for name in PROXY_FIELDS.into_iter().chain([
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-original-host",
            "x-envoy-external-address",
        ]) {
            for value in ["", "127.0.0.1", "for=[::1]"] {
                assert!(!shows_no_proxy(&headers(&[("host", "localhost"), (name, value)])), "{name}");
            }
        }
        for host in ["", "router.example", "192.0.2.1:9696", "localhost.example", "[2001:db8::1]", "0.0.0.0", "x:y"] {
            assert!(!shows_no_proxy(&headers(&[("host", host)])), "{host}");
            assert!(!shows_no_proxy(&headers(&[("host", "localhost"), ("host", host)])), "{host}");
        }
    }
}
