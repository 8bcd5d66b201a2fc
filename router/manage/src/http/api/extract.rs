//! Request input: bodies, queries and path parameters. Each has a limit, and errors are reported in JSON.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query as AxumQuery, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use futures_util::StreamExt;
use namehop_engine::strategy::program::MAX_OBJECT_FILE_BYTES;
use namehop_wire::Name;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{Api, Failure};

/// Maximum size of a JSON body, in bytes: the longest names fit.
const MAX_JSON_BYTES: usize = 64 << 10;
/// Timeout for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 5000 });

/// A JSON body.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Api> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &Api) -> Result<Self, Failure> {
        // A form on a web page of any site can send a POST, but never with this type.
        expect_type(request.headers(), "application/json")?;
        let bytes = read(request, MAX_JSON_BYTES, None).await?;
        let body = serde_json::from_slice(&bytes);
        body.map(JsonBody)
            .map_err(|error| Failure::bad_request(format!("the body is not valid for this request: {error}")))
    }
}

/// An object file.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
pub(super) struct FileBody(pub(super) Vec<u8>);

impl FromRequest<Api> for FileBody {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &Api) -> Result<Self, Failure> {
        expect_type(request.headers(), "application/octet-stream")?;
        let hint = "compile it without -g, or run llvm-strip -g on it";
        Ok(FileBody(read(request, MAX_OBJECT_FILE_BYTES, Some(hint)).await?))
    }
}

fn expect_type(headers: &HeaderMap, wanted: &str) -> Result<(), Failure> {
    let given = headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(wanted) {
        return Ok(());
    }
    let error = format!("the body must have 'Content-Type: {wanted}'");
    Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error, None))
}

async fn read(request: Request, max_bytes: usize, hint: Option<&str>) -> Result<Vec<u8>, Failure> {
    let too_long = || {
        let error = format!("the body is longer than {max_bytes} bytes, the maximum of this request");
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, error, hint)
    };
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > max_bytes as u64) {
        return Err(too_long());
    }
    let slow = || Failure::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time", None);
    let bytes = timeout(BODY_TIMEOUT, collect(request.into_body(), max_bytes)).await.map_err(|_| slow())?;
    bytes.map_err(|_| Failure::bad_request("the body ended early"))?.ok_or_else(too_long)
}

/// Collects the whole body; `None` if it is longer than `max_bytes`.
async fn collect(body: Body, max_bytes: usize) -> Result<Option<Vec<u8>>, axum::Error> {
    let (mut stream, mut bytes) = (body.into_data_stream(), Vec::new());
    while let Some(piece) = stream.next().await.transpose()? {
        if bytes.len() + piece.len() > max_bytes {
            return Ok(None);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Some(bytes))
}

/// The query part of the URI.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Api> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Failure> {
        match AxumQuery::try_from_uri(&parts.uri) {
            Ok(AxumQuery(query)) => Ok(Query(query)),
            Err(error) => Err(Failure::bad_request(error.body_text())),
        }
    }
}

/// A number or name in the path.
pub(super) struct InPath(pub(super) String);

impl InPath {
    /// Parses the parameter as a face id.
    pub(super) fn face_id(&self) -> Result<u64, Failure> {
        let number = self.0.parse().ok().filter(|number| *number > 0 && !self.0.starts_with('+'));
        number.ok_or_else(|| Failure::bad_request("a face number must be a whole number, at least 1"))
    }
}

impl FromRequestParts<Api> for InPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Failure> {
        match Path::from_request_parts(parts, api).await {
            Ok(Path(text)) => Ok(InPath(text)),
            Err(error) => Err(Failure::bad_request(error.body_text())),
        }
    }
}

/// Parses a name; `field` is named in the error.
pub(super) fn name(field: &str, text: &str) -> Result<Name, Failure> {
    text.parse().map_err(|error| Failure::bad_request(format!("{field}: {error}")))
}
