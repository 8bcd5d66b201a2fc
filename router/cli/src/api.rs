//! Requests to a router's HTTP API, for what management commands over a socket cannot do.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::failure::{Failure, FailureKind};

/// Maximum size of an answer in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Options for the HTTP API and its token.
#[derive(Args, Debug)]
pub struct ApiArgs {
    /// Load over the HTTP API, with the token in this file
    ///
    /// The router creates the file next to its state file and prints its path at start. Only the router's user and root
    /// can read it.
    #[arg(long, value_name = "FILE", help_heading = "HTTP API")]
    token: Option<PathBuf>,
    /// Address of the HTTP API
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:9697",
        requires = "token",
        help_heading = "HTTP API"
    )]
    api: SocketAddr,
}

/// A client of the HTTP API.
pub struct Api {
    address: SocketAddr,
    /// Value of the Authorization header.
    authorization: HeaderValue,
}

impl ApiArgs {
    /// Returns the API client if a token is given.
    pub fn api(&self) -> Result<Option<Api>, Failure> {
        let Some(path) = &self.token else { return Ok(None) };
        let fault = |error: &dyn std::fmt::Display| Failure::failed(format!("token {}: {error}", path.display()));
        let token = fs::read_to_string(path).map_err(|error| fault(&error))?;
        let mut authorization = HeaderValue::try_from(format!("Bearer {}", token.trim()))
            .map_err(|_| fault(&"the file must contain one line of printable ASCII characters"))?;
        authorization.set_sensitive(true);
        Ok(Some(Api { address: self.api, authorization }))
    }
}

impl Api {
    /// Posts a file to a path below `/api/v1` and returns the JSON of the answer.
    pub async fn post_file(&self, path: &str, file: Vec<u8>) -> Result<Value, Failure> {
        let unreachable = |error: &dyn std::fmt::Display| {
            Failure::new(FailureKind::NoForwarder, format!("no answer from the HTTP API at {}: {error}", self.address))
        };
        let stream = TcpStream::connect(self.address).await.map_err(|error| unreachable(&error))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&error))?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("/api/v1{path}"))
            .header(HOST, self.address.to_string())
            .header(AUTHORIZATION, self.authorization.clone())
            .header(CONTENT_TYPE, "application/octet-stream")
            .body(Full::new(Bytes::from(file)))
            .map_err(Failure::usage)?;
        // The connection task runs concurrently and ends with the exchange.
        tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(|error| unreachable(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
        let answer: Value =
            serde_json::from_slice(&body.map_err(|error| unreachable(&error))?.to_bytes()).unwrap_or_default();
        if status.is_success() {
            return Ok(answer);
        }
        let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
        let error = text("error").unwrap_or_else(|| status.to_string());
        let said = [error].into_iter().chain(text("hint")).collect::<Vec<_>>();
        Err(Failure::reported(FailureKind::Failed, said.join("; ")))
    }
}
