//! `GET /metrics`: the counters of the router in the OpenMetrics text format, which Prometheus reads.
//!
//! The text is rendered on a thread for blocking work, so that thousands of faces do not delay the control thread.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use tokio::sync::Semaphore;

use super::Snapshots;
use crate::metrics::render;

/// Content-Type of the OpenMetrics text format.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Maximum number of concurrent renderings; further requests wait.
const MAX_RENDERING: usize = 4;

pub(super) fn handler(snapshots: Snapshots) -> MethodRouter {
    let limit = Arc::new(Semaphore::new(MAX_RENDERING));
    get(move || answer(Arc::clone(&snapshots), Arc::clone(&limit)))
}

async fn answer(snapshots: Snapshots, limit: Arc<Semaphore>) -> Response {
    // The semaphore is never closed. The permit is held until the text is rendered, even if the client has gone.
    let permit = limit.acquire_owned().await;
    let text = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        render(&snapshots())
    });
    match text.await {
        Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "cannot collect the metrics\n").into_response(),
    }
}
