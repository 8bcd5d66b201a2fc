//! The Content Store, and the name dispatch table.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use namehop_client::nfd::names::module;
use namehop_client::nfd::{ControlParameters, CsInfo, DispatchEntry, decode_items};
use serde::Deserialize;
use utoipa::ToSchema;

use super::extract::{JsonBody, name};
use super::{Api, Failure, answer};
use crate::requests::CsSettings;
use crate::views::{CsConfigView, CsErasureView, CsInfoView, DispatchMoveView};

/// Data to erase.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Erasure {
    /// Prefix of the Data.
    prefix: String,
    /// Maximum number of packets; unlimited if absent.
    #[schema(minimum = 1)]
    count: Option<u64>,
}

/// Names to move to another worker.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Move {
    /// One of the names. Names with the same first components (two by default) move with it.
    name: String,
    /// Index of the worker.
    worker: u64,
}

/// Show capacity, policy and entries of the Content Store, and its counters for each policy
#[utoipa::path(get, operation_id = "show_cs", path = "/cs", tag = "tables",
    responses((status = 200, description = "As `namehop cs info --json`", body = CsInfoView)))]
pub(super) async fn cs(State(api): State<Api>) -> Result<Response, Failure> {
    let infos: Vec<CsInfo> = decode_items(&api.inside.dataset(module::CS, "info").await?)?;
    let info = infos.into_iter().next().ok_or_else(Failure::internal)?;
    answer::view(StatusCode::OK, &CsInfoView::from(info))
}

/// Change capacity or policy, or enable or disable admitting and serving
#[utoipa::path(post, operation_id = "configure_cs", path = "/cs", tag = "tables", request_body = CsSettings,
    responses((status = 200, description = "As `namehop cs config --json`", body = CsConfigView)))]
pub(super) async fn configure_cs(
    State(api): State<Api>,
    JsonBody(settings): JsonBody<CsSettings>,
) -> Result<Response, Failure> {
    let Some(parameters) = settings.parameters() else {
        return Err(Failure::bad_request("nothing to change: give capacity_packets, policy, admit or serve"));
    };
    let done = answer::done(api.inside.command(module::CS, "config", parameters, Vec::new()).await?)?;
    answer::view(StatusCode::OK, &CsConfigView::new(&done, settings.capacity_packets))
}

/// Erase Data under a prefix from the Content Store
#[utoipa::path(post, operation_id = "erase_cs", path = "/cs/erase", tag = "tables", request_body = Erasure,
    responses((status = 200, description = "As `namehop cs erase --json`", body = CsErasureView)))]
pub(super) async fn erase_cs(
    State(api): State<Api>,
    JsonBody(erasure): JsonBody<Erasure>,
) -> Result<Response, Failure> {
    let prefix = name("prefix", &erasure.prefix)?;
    let mut erased: u64 = 0;
    loop {
        let parameters = ControlParameters {
            name: Some(prefix.clone()),
            count: erasure.count.map(|count| count.saturating_sub(erased)),
            ..ControlParameters::default()
        };
        let done = answer::done(api.inside.command(module::CS, "erase", parameters, Vec::new()).await?)?;
        let count = done.count.unwrap_or(0);
        erased += count;
        // One command erases a limited number of packets. Capacity in the response means that more remain.
        let more = done.capacity.is_some() && count > 0;
        if !more || erasure.count.is_some_and(|limit| erased >= limit) {
            return answer::view(StatusCode::OK, &CsErasureView { prefix: prefix.to_string(), erased });
        }
    }
}

/// List the entries of the name dispatch table that had packets in the last seconds, busiest first
#[utoipa::path(get, operation_id = "list_ndt", path = "/ndt", tag = "tables",
    responses((
        status = 200, description = "As `namehop ndt list --json`: 1024 of them at most", body = Vec<DispatchEntry>
    )))]
pub(super) async fn ndt(State(api): State<Api>) -> Result<Response, Failure> {
    let entries: Vec<DispatchEntry> = decode_items(&api.inside.dataset(module::NDT, "list").await?)?;
    answer::view(StatusCode::OK, &entries)
}

/// Move the names with the same first components as this one to another worker
#[utoipa::path(post, operation_id = "move_name", path = "/ndt/move", tag = "tables", request_body = Move,
    responses((status = 200, description = "As `namehop ndt move --json`", body = DispatchMoveView)))]
pub(super) async fn move_name(State(api): State<Api>, JsonBody(wanted): JsonBody<Move>) -> Result<Response, Failure> {
    let name = name("name", &wanted.name)?;
    let text = name.to_string();
    let parameters = ControlParameters { name: Some(name), count: Some(wanted.worker), ..ControlParameters::default() };
    let done = answer::done(api.inside.command(module::NDT, "move", parameters, Vec::new()).await?)?;
    answer::view(StatusCode::OK, &DispatchMoveView { name: text, worker: done.count.unwrap_or(wanted.worker) })
}
