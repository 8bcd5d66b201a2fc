//! Who may ask.
//!
//! A loopback port can be reached by every user of the host, by every web page that a user has open, and by other hosts through a proxy.
//! So changes need a secret, and reading needs it where the request may come from another host. A browser is answered only when it asks
//! for itself or for a page of this server, and no answer lets another site read it (CORS).

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use namehop_face::socket::shows_no_proxy;
use ring::hmac;

use super::{Api, Failure, is_for_api};

/// What browsers say of where a request comes from (W3C Fetch Metadata Request Headers).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The secret that whoever changes the router has to know. Only a keyed digest of it is kept.
#[derive(Debug, Clone)]
pub struct ApiToken {
    key: hmac::Key,
    digest: hmac::Tag,
}

impl ApiToken {
    /// From the secret as it stands behind `Bearer`.
    pub fn new(secret: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"namehop API token");
        ApiToken { digest: hmac::sign(&key, secret.as_bytes()), key }
    }

    /// Whether this is the secret. Takes the same time wherever the difference is.
    fn is(&self, secret: &[u8]) -> bool {
        hmac::verify(&self.key, secret, self.digest.as_ref()).is_ok()
    }
}

/// Passes on what is allowed.
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

/// Refuses requests that a page of another site has a browser send.
fn check_site(headers: &HeaderMap) -> Result<(), Failure> {
    let is_own_site = |site: &HeaderValue| site == "same-origin" || site == "none";
    // The Host is known to be this router's.
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_own_origin = |origin: &HeaderValue| {
        let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://")).filter(|(scheme, _)| {
            // Before the router there may be a proxy with TLS.
            ["http", "https"].contains(scheme)
        });
        authority.is_some_and(|(_, authority)| host.is_some_and(|host| host.eq_ignore_ascii_case(authority)))
    };
    let is_own =
        headers.get_all(SEC_FETCH_SITE).iter().all(is_own_site) && headers.get_all(ORIGIN).iter().all(is_own_origin);
    if is_own { Ok(()) } else { Err(Failure::other_site()) }
}

/// Asks for the token where it is needed. One that is given must be right, whether it is needed or not.
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

/// What stands behind `Bearer` (RFC 6750).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, secret) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| secret.trim_ascii())
}
