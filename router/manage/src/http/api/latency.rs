//! Times that packets stay in the router.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use namehop_client::nfd::names::module;
use namehop_client::nfd::{ControlParameters, LatencyStatus, decode_items};
use serde::Deserialize;
use utoipa::ToSchema;

use super::extract::JsonBody;
use super::{Api, Failure, answer};
use crate::views::LatencyView;

/// The share of packets to measure.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LatencySample {
    /// On average, one packet in this many is measured; 0 stops the measurement.
    one_in: u32,
}

/// Show how long packets stay in the router, from reception to transmission
#[utoipa::path(get, operation_id = "show_latency", path = "/latency", tag = "status",
    responses((status = 200, description = "As `namehop latency --json`", body = LatencyView)))]
pub(super) async fn show(State(api): State<Api>) -> Result<Response, Failure> {
    let statuses: Vec<LatencyStatus> = decode_items(&api.inside.dataset(module::STATUS, "latency").await?)?;
    let status = statuses.into_iter().next().ok_or_else(Failure::internal)?;
    answer::view(StatusCode::OK, &LatencyView::from(&status))
}

/// Start or stop measuring how long packets stay in the router
///
/// Earlier measurements are discarded.
#[utoipa::path(post, operation_id = "sample_latency", path = "/latency", tag = "status", request_body = LatencySample,
    responses((status = 200, description = "As `namehop latency --json`: nothing yet", body = LatencyView)))]
pub(super) async fn sample(
    State(api): State<Api>,
    JsonBody(wanted): JsonBody<LatencySample>,
) -> Result<Response, Failure> {
    let parameters = ControlParameters { count: Some(wanted.one_in.into()), ..ControlParameters::default() };
    answer::done(api.inside.command(module::LATENCY, "sample", parameters, Vec::new()).await?)?;
    show(State(api)).await
}
