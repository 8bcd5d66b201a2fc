//! Access control.
//!
//! Every user of the host, every web page that a user has open, and other hosts through a proxy can reach a loopback
//! port. So changes need a secret, and reading needs it if the request may come from another host. A browser is
//! answered only if its user or a page of this server sends the request, and no answer lets another site read it
//! (CORS).

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use namehop_face::socket::shows_no_proxy;
use ring::hmac;

use super::{Api, Failure, is_for_api};

/// Header in which browsers report the origin of a request (W3C Fetch Metadata Request Headers).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The secret that is required to change the router. Only a keyed digest of it is kept.
#[derive(Debug, Clone)]
pub struct ApiToken {
    key: hmac::Key,
    digest: hmac::Tag,
}

impl ApiToken {
    /// Creates the token from the secret, as it follows `Bearer`.
    pub fn new(secret: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"namehop API token");
        ApiToken { digest: hmac::sign(&key, secret.as_bytes()), key }
    }

    /// Returns true if this is the secret. The comparison takes constant time.
    fn is(&self, secret: &[u8]) -> bool {
        hmac::verify(&self.key, secret, self.digest.as_ref()).is_ok()
    }
}

/// Forwards allowed requests, and refuses others.
pub(super) async fn check(State(api): State<Api>, request: Request, next: Next) -> Response {
    if !is_for_api(&request) {
        return next.run(request).await;
    }
    let allowed = check_site(request.headers()).and_then(|()| check_token(&api, request.method(), request.headers()));
    let mut response = match allowed {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Refuses requests that a page of another site sends through a browser.
fn check_site(headers: &HeaderMap) -> Result<(), Failure> {
    let is_own_site = |site: &HeaderValue| site == "same-origin" || site == "none";
    // The Host header was already checked to name this router.
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_own_origin = |origin: &HeaderValue| {
        let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://")).filter(|(scheme, _)| {
            // A TLS proxy may stand in front of the router.
            ["http", "https"].contains(scheme)
        });
        authority.is_some_and(|(_, authority)| host.is_some_and(|host| host.eq_ignore_ascii_case(authority)))
    };
    let is_own =
        headers.get_all(SEC_FETCH_SITE).iter().all(is_own_site) && headers.get_all(ORIGIN).iter().all(is_own_origin);
    if is_own { Ok(()) } else { Err(Failure::other_site()) }
}

/// Checks the token if it is required or given. A given token must be correct even if none is required.
fn check_token(api: &Api, method: &Method, headers: &HeaderMap) -> Result<(), Failure> {
    let is_reading = matches!(*method, Method::GET | Method::HEAD);
    let mut given = headers.get_all(AUTHORIZATION).iter();
    match (given.next(), given.next()) {
        (None, _) if is_reading && !api.is_reading_guarded && shows_no_proxy(headers) => Ok(()),
        (given, None) => {
            let Some(token) = &api.token else { return Err(Failure::no_token()) };
            let secret = given.and_then(|given| bearer(given.as_bytes()));
            if secret.is_some_and(|secret| token.is(secret)) {
                Ok(())
            } else {
                Err(Failure::unauthorized(given.is_some()))
            }
        }
        (_, Some(_)) => Err(Failure::unauthorized(true)),
    }
}

/// Returns the credentials after `Bearer` (RFC 6750).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, secret) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| secret.trim_ascii())
}
