//! Answers: views in JSON, and errors in JSON with hints.

use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{CodecError, ControlParameters, ControlResponse};
use serde::Serialize;
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use crate::server::RouterEnds;

/// Content-Type of all answers.
const JSON: &str = "application/json";

/// An error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct ErrorView {
    /// What is wrong.
    error: String,
    /// What to do about it; `null` if `error` says so, or nothing can be done.
    #[schema(required)]
    hint: Option<String>,
}

/// An error answer.
#[derive(Debug)]
pub(in super::super) struct Failure {
    status: StatusCode,
    view: ErrorView,
}

impl Failure {
    pub(super) fn new(status: StatusCode, error: impl Into<String>, hint: Option<&str>) -> Self {
        Failure { status, view: ErrorView { error: error.into(), hint: hint.map(str::to_owned) } }
    }

    pub(super) fn bad_request(error: impl Into<String>) -> Self {
        Failure::new(StatusCode::BAD_REQUEST, error, None)
    }

    pub(super) fn internal() -> Self {
        Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal error: cannot create the answer",
            Some("see the router's log"),
        )
    }

    /// The request comes from a page of another site.
    pub(super) fn other_site() -> Self {
        let error = "this request comes from a web page of another site";
        Failure::new(
            StatusCode::FORBIDDEN,
            error,
            Some("send it from a program, without the headers Origin and Sec-Fetch-Site"),
        )
    }

    pub(super) fn unauthorized(is_wrong: bool) -> Self {
        let error = if is_wrong { "the token is wrong" } else { "this request needs the API token" };
        let hint = "send 'Authorization: Bearer TOKEN'; the router prints at its start which file holds the token";
        Failure::new(StatusCode::UNAUTHORIZED, error, Some(hint))
    }

    pub(super) fn no_token() -> Self {
        let hint = "the router's log shows the reason; set `token_file` in section [api] of its configuration";
        Failure::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "this request needs the API token, and this router has none",
            Some(hint),
        )
    }

    pub(super) fn no_such_path() -> Self {
        let hint = "GET /api/v1/openapi.json describes all requests";
        Failure::new(StatusCode::NOT_FOUND, "there is no such path", Some(hint))
    }

    pub(super) fn no_such_method() -> Self {
        let hint = "GET /api/v1/openapi.json describes all requests";
        Failure::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not support this method", Some(hint))
    }

    pub(in super::super) fn other_host(text: &str) -> Self {
        Failure::new(StatusCode::MISDIRECTED_REQUEST, text, None)
    }
}

impl From<RouterEnds> for Failure {
    fn from(error: RouterEnds) -> Self {
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string(), None)
    }
}

impl From<CodecError> for Failure {
    fn from(_: CodecError) -> Self {
        // Only the router's own messages are decoded, so this is an internal error.
        Failure::internal()
    }
}

impl From<ControlResponse> for Failure {
    /// Converts the response to a command that was not carried out.
    fn from(response: ControlResponse) -> Self {
        let (status, hint) = match response.code {
            status_code::BAD_REQUEST => (StatusCode::BAD_REQUEST, None),
            status_code::FORBIDDEN => (StatusCode::FORBIDDEN, None),
            status_code::NOT_FOUND => (StatusCode::NOT_FOUND, None),
            status_code::CONFLICT => (StatusCode::CONFLICT, None),
            status_code::GONE => (StatusCode::UNPROCESSABLE_ENTITY, Some("GET /api/v1/faces lists the existing faces")),
            status_code::NOT_ACCEPTABLE | status_code::PREFIX_TOO_LONG => (StatusCode::UNPROCESSABLE_ENTITY, None),
            status_code::TIMEOUT => (StatusCode::GATEWAY_TIMEOUT, None),
            status_code::INSUFFICIENT_STORAGE => (StatusCode::INSUFFICIENT_STORAGE, None),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, None),
        };
        Failure::new(status, response.text, hint)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = view(self.status, &self.view).unwrap_or_else(|_| self.status.into_response());
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"namehop\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Returns the resulting parameters of a command, or an error if it was not carried out.
pub(super) fn done(response: ControlResponse) -> Result<ControlParameters, Failure> {
    if response.code == status_code::OK { Ok(response.parameters()?) } else { Err(response.into()) }
}

/// Creates a short answer.
pub(super) fn view(status: StatusCode, view: &impl Serialize) -> Result<Response, Failure> {
    let text = serde_json::to_vec(view).map_err(|_| Failure::internal())?;
    Ok((status, [(CONTENT_TYPE, JSON)], text).into_response())
}

/// Creates an answer that may be long. It is built and serialized on a thread for blocking work, so the control thread
/// does not wait.
pub(super) async fn made<T: Serialize>(
    make: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<Response, Failure> {
    let writing = spawn_blocking(move || make().and_then(|made| view(StatusCode::OK, &made)));
    writing.await.unwrap_or_else(|_| Err(Failure::internal()))
}
