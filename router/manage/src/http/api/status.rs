//! Status of the router as a whole.

use axum::extract::State;
use axum::response::Response;
use namehop_client::nfd::names::module;
use namehop_client::nfd::{CsInfo, GeneralStatus, Record, decode_items};

use super::{Api, Failure, answer};
use crate::views::{OwnDatasets, StatusView};

/// Show version, uptime, table sizes, packet counts, and dropped packets by reason
#[utoipa::path(get, operation_id = "show_status", path = "/status", tag = "status",
    responses((status = 200, description = "As `namehop status --json`", body = StatusView)))]
pub(super) async fn show(State(api): State<Api>) -> Result<Response, Failure> {
    let _permit = api.list_permit().await;
    let general = api.inside.dataset(module::STATUS, "general").await?;
    let drops = api.inside.dataset(module::STATUS, "drops").await?;
    let readvertise = api.inside.dataset(module::STATUS, "readvertise").await?;
    let workers = api.inside.dataset(module::STATUS, "workers").await?;
    let power = api.inside.dataset(module::STATUS, "power").await?;
    let content_store = api.inside.dataset(module::CS, "info").await?;
    answer::made(move || {
        let (drops, readvertise, workers, power) =
            (decode_items(&drops)?, decode_items(&readvertise)?, decode_items(&workers)?, decode_items(&power)?);
        let general = GeneralStatus::from_content(&general)?;
        let content_store: Vec<CsInfo> = decode_items(&content_store)?;
        let own = OwnDatasets {
            drops: &drops,
            readvertise: &readvertise,
            workers: &workers,
            power: power.first(),
            cs_disk: content_store.first().and_then(|info| info.disk),
        };
        Ok(StatusView::new(general, Some(own)))
    })
    .await
}
