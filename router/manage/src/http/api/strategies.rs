//! Strategies: the choices for prefixes, the available strategies, and loaded programs.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use namehop_client::nfd::names::module;
use namehop_client::nfd::{ControlParameters, LoadedStrategy, StrategyChoice, decode_items};
use namehop_engine::strategy::{STRATEGIES, registry};
use namehop_wire::Name;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::extract::{FileBody, InPath, JsonBody, Query, name};
use super::page::{Page, limit};
use super::{Api, Failure, answer};
use crate::views::{StrategyChoiceView, StrategyView};

/// Filter and page of a list of strategy choices.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChoicesQuery {
    /// Only choices under this name.
    prefix: Option<String>,
    /// Maximum number of choices in a page: 1 to 1000; default 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the previous page.
    after: Option<String>,
}

/// A strategy choice.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewChoice {
    /// Prefix.
    prefix: String,
    /// Name of the strategy, optionally with parameters. A name without a leading '/' is under
    /// `/localhost/nfd/strategy`.
    strategy: String,
}

/// Key of a strategy choice.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChoiceQuery {
    /// Prefix.
    prefix: String,
}

/// Options for loading a program.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct LoadQuery {
    /// Name of the strategy, instead of the one in the file.
    name: Option<String>,
}

/// A loaded program.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct LoadedView {
    /// Name of the strategy.
    name: String,
}

/// List strategy choices, in order of their prefixes
#[utoipa::path(get, operation_id = "list_strategies", path = "/strategies", tag = "strategies",
    params(ChoicesQuery),
    responses((
        status = 200, description = "As `namehop strategy list --json`, in pages", body = Page<StrategyChoiceView>
    )))]
pub(super) async fn chosen(State(api): State<Api>, Query(query): Query<ChoicesQuery>) -> Result<Response, Failure> {
    let limit = limit(query.limit)?;
    let prefix = query.prefix.map(|prefix| name("prefix", &prefix)).transpose()?;
    let after = query.after.map(|after| name("after", &after)).transpose()?;
    let _permit = api.list_permit().await;
    let content = api.inside.dataset(module::STRATEGY_CHOICE, "list").await?;
    answer::made(move || {
        let mut choices: Vec<StrategyChoice> = decode_items(&content)?;
        choices.retain(|choice| {
            prefix.as_ref().is_none_or(|prefix| prefix.is_prefix_of(choice.name.as_ref()))
                && after.as_ref().is_none_or(|after| choice.name > *after)
        });
        choices.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        let next = (choices.len() > limit).then(|| choices[limit - 1].name.to_string());
        choices.truncate(limit);
        Ok(Page { items: choices.iter().map(StrategyChoiceView::from).collect::<Vec<_>>(), next })
    })
    .await
}

/// Choose the strategy of a prefix
#[utoipa::path(put, operation_id = "choose_strategy", path = "/strategies", tag = "strategies",
    request_body = NewChoice,
    responses((status = 200, description = "As `namehop strategy set --json`", body = StrategyChoiceView)))]
pub(super) async fn choose(State(api): State<Api>, JsonBody(choice): JsonBody<NewChoice>) -> Result<Response, Failure> {
    let prefix = name("prefix", &choice.prefix)?;
    let strategy = registry::full_name(&choice.strategy);
    let strategy = strategy.map_err(|error| Failure::bad_request(format!("strategy: {error}")))?;
    let parameters = ControlParameters {
        name: Some(prefix.clone()),
        strategy: Some(strategy.clone()),
        ..ControlParameters::default()
    };
    let done = answer::done(api.inside.command(module::STRATEGY_CHOICE, "set", parameters, Vec::new()).await?)?;
    let choice = StrategyChoice { name: done.name.unwrap_or(prefix), strategy: done.strategy.unwrap_or(strategy) };
    answer::view(StatusCode::OK, &StrategyChoiceView::from(&choice))
}

/// Make a prefix follow the choice of a shorter one
#[utoipa::path(delete, operation_id = "unset_strategy", path = "/strategies", tag = "strategies", params(ChoiceQuery),
    responses((status = 204, description = "It has no choice of its own, or no longer")))]
pub(super) async fn unset(State(api): State<Api>, Query(choice): Query<ChoiceQuery>) -> Result<Response, Failure> {
    let parameters = ControlParameters { name: Some(name("prefix", &choice.prefix)?), ..ControlParameters::default() };
    answer::done(api.inside.command(module::STRATEGY_CHOICE, "unset", parameters, Vec::new()).await?)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// List the available strategies: built-in and loaded ones
#[utoipa::path(get, operation_id = "list_available_strategies", path = "/strategies/available", tag = "strategies",
    responses((status = 200, description = "All of them", body = Vec<StrategyView>)))]
pub(super) async fn available(State(api): State<Api>) -> Result<Response, Failure> {
    let loaded = api.inside.dataset(module::STRATEGY_CHOICE, "loaded").await?;
    let loaded: Vec<LoadedStrategy> = decode_items(&loaded)?;
    let all = STRATEGIES.iter().map(StrategyView::from).chain(loaded.into_iter().map(StrategyView::from));
    answer::view(StatusCode::OK, &all.collect::<Vec<_>>())
}

/// Load a strategy, or replace a loaded one
///
/// The body is an eBPF object file, compiled by clang from C. The router verifies it and compiles it to native code if
/// possible. Prefixes that have chosen a strategy of this name switch to the new one.
#[utoipa::path(post, operation_id = "load_strategy", path = "/strategies/loaded", tag = "strategies", params(LoadQuery),
    request_body(content = FileBody, content_type = "application/octet-stream", description = "The object file"),
    responses((status = 200, description = "It is loaded", body = LoadedView)))]
pub(super) async fn load(
    State(api): State<Api>,
    Query(query): Query<LoadQuery>,
    FileBody(object): FileBody,
) -> Result<Response, Failure> {
    let name = query.name.map(|name| Name::new().append_generic(name));
    let parameters = ControlParameters { name, ..ControlParameters::default() };
    let done = answer::done(api.inside.command(module::STRATEGY_CHOICE, "load", parameters, object).await?)?;
    let name = done.name.unwrap_or_default().to_string().trim_start_matches('/').to_owned();
    answer::view(StatusCode::OK, &LoadedView { name })
}

/// Unload a strategy that no prefix has chosen
#[utoipa::path(delete, operation_id = "unload_strategy", path = "/strategies/loaded/{name}", tag = "strategies",
    params(("name" = String, Path, description = "Name of the strategy")),
    responses((status = 204, description = "It is unloaded")))]
pub(super) async fn unload(State(api): State<Api>, InPath(name): InPath) -> Result<Response, Failure> {
    let parameters = ControlParameters { name: Some(Name::new().append_generic(name)), ..ControlParameters::default() };
    answer::done(api.inside.command(module::STRATEGY_CHOICE, "unload", parameters, Vec::new()).await?)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
