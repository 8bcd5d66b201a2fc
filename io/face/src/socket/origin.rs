//! Checks which web pages may open a WebSocket.
//!
//! A browser lets every page connect to this host, where the page would be a local application with all its rights. But
//! the browser sends the origin of the page (RFC 6455, section 10.2, and RFC 6454). So pages from other hosts are
//! refused unless the configuration lists their origin. Programs other than browsers send no Origin.

use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::http::header::ORIGIN;

use super::locality::is_loopback_origin;

/// Allows every origin, in the list of allowed origins.
const ANY: &str = "*";

/// Whether a handshake is allowed: every Origin header in it is a page of this host or in `allowed`.
pub(super) fn is_allowed(request: &Request, allowed: &[String]) -> bool {
    request.headers().get_all(ORIGIN).iter().all(|origin| {
        allowed
            .iter()
            .any(|one| one == ANY || origin.as_bytes().eq_ignore_ascii_case(one.trim_end_matches('/').as_bytes()))
            || origin.to_str().is_ok_and(is_loopback_origin)
    })
}

/// Returns the answer to a handshake that is not allowed.
pub(super) fn refusal() -> ErrorResponse {
    let text = "web pages from this origin may not connect: allow the origin in the configuration of the router\n";
    let mut response = ErrorResponse::new(Some(text.to_owned()));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(origins: &[&str], allowed: &[&str]) -> bool {
        let mut request = Request::new(());
        for origin in origins {
            request.headers_mut().append(ORIGIN, origin.parse().expect("header"));
        }
        let allowed: Vec<String> = allowed.iter().map(|&one| one.to_owned()).collect();
        is_allowed(&request, &allowed)
    }

    #[test]
    fn pages_of_this_host_and_programs_other_than_browsers_are_allowed() {
        assert!(allows(&[], &[]));
        for origin in [
            "http://localhost",
            "https://LOCALHOST:8443",
            "http://127.0.0.1:3000",
            "http://127.9.8.7",
            "http://[::1]",
            "http://[::1]:80",
        ] {
            assert!(allows(&[origin], &[]), "{origin}");
        }
    }

    #[test]
    fn other_pages_need_permission() {
        for origin in [
            "null",
            "",
            "localhost",
            "https://example.org",
            "http://192.0.2.1",
            "http://128.0.0.1",
            "http://[2001:db8::1]",
            "http://[::1",
            "http://[::1]x",
            "http://[::1]:x",
            "http://localhost.example.org",
            "http://127.0.0.1.example.org",
            "http://localhost:80.example.org",
            "http://localhost@example.org",
            "http://localhost/x",
            "http://localhost:",
            "file://localhost",
        ] {
            assert!(!allows(&[origin], &[]), "{origin}");
            assert!(allows(&[origin], &["*"]), "{origin}");
        }
        let list = ["https://example.org/", "null"];
        assert!(allows(&["https://example.org"], &list));
        assert!(allows(&["https://EXAMPLE.org"], &list));
        assert!(allows(&["null"], &list));
        for origin in ["http://example.org", "https://example.org:8443", "https://www.example.org"] {
            assert!(!allows(&[origin], &list), "{origin}");
        }
        assert!(!allows(&["http://localhost", "https://evil.example"], &list));
    }
}
