//! The API with the in-memory router of [`crate::testing`]: without sockets, and over connections.

mod access;
mod commands;
mod described;
mod hostile;
mod pages;
mod ranges;
mod schema;
mod trace;

use std::rc::Rc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use namehop_wire::Name;
use serde_json::Value;
use tokio::task::{LocalSet, spawn_local};
use tower::ServiceExt;

use super::{Api, ApiToken, ROOT, router};
use crate::authentication::{Authenticator, SecurityConfig};
use crate::server::Management;
use crate::testing::FakeRouter;

/// Token of the tests.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Host header of the tests.
const HOST: &str = "localhost:9697";

/// A router and its API, called without a connection.
struct Scene {
    management: Rc<Management<FakeRouter>>,
    api: Router,
}

/// An answer.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the text of an error.
    #[track_caller]
    fn error(&self) -> String {
        let json = self.json();
        assert!(json["hint"].is_null() || json["hint"].is_string(), "{json}");
        json["error"].as_str().expect("an error").to_owned()
    }
}

impl Scene {
    fn new() -> Self {
        Self::with(Some(ApiToken::new(TOKEN)), false)
    }

    fn with(token: Option<ApiToken>, is_reading_guarded: bool) -> Self {
        let management = management();
        let (inside, answering) = management.inside();
        spawn_local(answering);
        Scene { management, api: router(Api::new(inside, token, is_reading_guarded)) }
    }

    fn router(&self) -> &FakeRouter {
        self.management.control()
    }

    /// Sends a request with only these headers and Host.
    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("host", HOST);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).expect("a request");
        let response = self.api.clone().oneshot(request).await.expect("infallible");
        let (status, headers) = (response.status(), response.headers().clone());
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body").to_vec();
        Answer { status, headers, body }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, &format!("{ROOT}{path}"), &[], Body::empty()).await
    }

    /// Sends a request with token and JSON body.
    async fn change(&self, method: Method, path: &str, body: &str) -> Answer {
        let authorization = format!("Bearer {TOKEN}");
        let headers = [("authorization", &*authorization), ("content-type", "application/json")];
        self.send(method, &format!("{ROOT}{path}"), &headers, body.to_owned()).await
    }

    fn changes(&self) -> Vec<String> {
        std::mem::take(&mut self.router().changes.borrow_mut())
    }
}

fn management() -> Rc<Management<FakeRouter>> {
    let authenticator =
        Authenticator::new(&SecurityConfig::default()).expect("settings without certificates are valid");
    Management::new(FakeRouter::default(), authenticator, |_| {})
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// Runs a test on a `LocalSet`, as the router needs.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, test);
}
