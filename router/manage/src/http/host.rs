//! Checks the Host header against DNS rebinding.
//!
//! A web page can make its own name resolve to this host, and could then read the router's answers as its own. So a
//! request must name an address or one of this router's names as its host.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::api::Failure;
use super::is_for_api;

/// Forwards requests with an allowed host, and refuses others.
pub(super) async fn check(allowed: Arc<Vec<String>>, request: Request, next: Next) -> Response {
    // Browsers always send a Host header; old clients may not.
    let mut hosts = request.headers().get_all(HOST).iter();
    if hosts.all(|host| host.to_str().is_ok_and(|host| is_allowed(host, &allowed))) {
        return next.run(request).await;
    }
    let text = "this server does not answer to that host name: use an IP address or localhost, or list the name in \
                `allowed_hosts` in section [metrics]\n";
    match is_for_api(&request) {
        true => Failure::other_host(text.trim_end()).into_response(),
        false => (StatusCode::MISDIRECTED_REQUEST, text).into_response(),
    }
}

/// Returns true if this host is the router. All addresses are allowed, because only names can be made to resolve
/// elsewhere.
fn is_allowed(host: &str, allowed: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => {
            return rest.split_once(']').is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok());
        }
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    name.parse::<Ipv4Addr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || allowed.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_listed_names_are_allowed() {
        let allowed = ["router.example".to_owned()];
        for host in [
            "localhost",
            "LocalHost:9697",
            "localhost.",
            "127.0.0.1",
            "127.0.0.1:9697",
            "192.0.2.1",
            "[::1]",
            "[::1]:9697",
            "router.example",
            "Router.Example:80",
        ] {
            assert!(is_allowed(host, &allowed), "{host}");
        }
        for host in [
            "",
            ":",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "router.example.evil",
            "[evil]",
            "[::1",
            "2130706433x",
            "evil.example:9697",
            "sub.localhost",
        ] {
            assert!(!is_allowed(host, &allowed), "{host}");
        }
        assert!(is_allowed("anything", &["*".to_owned()]));
    }
}
