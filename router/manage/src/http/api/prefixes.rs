//! Routes, and the FIB that results from them.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use namehop_client::nfd::names::module;
use namehop_client::nfd::numbers::{origin, route_flags};
use namehop_client::nfd::{ControlParameters, FibEntry, RibEntry, Route};
use namehop_engine::fib::FibCursor;
use namehop_wire::Name;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::extract::{JsonBody, Query, name};
use super::page::{Page, cursor, has_digits, limit, walk};
use super::{Api, Failure, answer};
use crate::rib::Cursor;
use crate::server::TableCursor;
use crate::views::{FibView, RouteView};

/// Filter and page of a list of FIB entries.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FibQuery {
    /// Only entries under this name.
    prefix: Option<String>,
    /// Approximate number of entries in a page: 1 to 1000; default 1000. A page may have a few more, or fewer.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the previous page.
    #[param(pattern = "^[0-9]{1,20}$")]
    after: Option<String>,
}

/// Filter and page of a list of routes.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RoutesQuery {
    /// Only routes under this name.
    prefix: Option<String>,
    /// Only routes to this face.
    face_id: Option<u64>,
    /// Only routes of this origin: `app`, `client`, `static`, `nlsr` and so on, or a number.
    #[param(pattern = "^(app|autoreg|client|autoconf|nlsr|prefixann|static|[0-9]{1,19})$")]
    origin: Option<String>,
    /// Approximate number of routes in a page: 1 to 1000; default 1000. A page may have a few more, or fewer.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the previous page.
    #[param(pattern = "^[0-9]{1,20}$")]
    after: Option<String>,
}

/// A route to add.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRoute {
    /// Prefix.
    prefix: String,
    /// Id of the next hop's face.
    #[schema(minimum = 1)]
    face_id: u64,
    /// Origin: `app`, `client`, `static` (the default, which survives a restart), `nlsr` and so on, or a number.
    #[schema(pattern = "^(app|autoreg|client|autoconf|nlsr|prefixann|static|[0-9]{1,19})$")]
    origin: Option<String>,
    /// Lower is better; default 0.
    #[serde(default)]
    cost: u64,
    /// `child-inherit` (the default), `capture`, both separated by a comma, or `none`.
    #[schema(pattern = "^(child-inherit|capture|none|[0-9]{1,19})(,(child-inherit|capture|none|[0-9]{1,19}))*$")]
    flags: Option<String>,
    /// Lifetime; unlimited if absent.
    expires_ms: Option<u64>,
}

/// Key of a route.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RouteQuery {
    /// Prefix.
    prefix: String,
    /// Id of the next hop's face.
    #[param(minimum = 1)]
    face_id: u64,
    /// Origin; default `static`.
    #[param(pattern = "^(app|autoreg|client|autoconf|nlsr|prefixann|static|[0-9]{1,19})$")]
    origin: Option<String>,
}

/// List FIB entries with their next hops, in the order of the table
///
/// Every entry that exists from the first page to the last is listed. Some are listed twice if the table grows
/// meanwhile.
#[utoipa::path(get, operation_id = "list_fib", path = "/fib", tag = "prefixes", params(FibQuery),
    responses((status = 200, description = "As `namehop fib list --json`, in pages", body = Page<FibView>)))]
pub(super) async fn fib(State(api): State<Api>, Query(query): Query<FibQuery>) -> Result<Response, Failure> {
    let (limit, prefix) = (limit(query.limit)?, query.prefix.map(|prefix| name("prefix", &prefix)).transpose()?);
    let from = cursor(query.after.as_deref())?.map_or(FibCursor::default(), FibCursor::from_number);
    let _permit = api.list_permit().await;
    let page = walk(&api, TableCursor::Fib(from), limit, |entry: FibEntry, entries| {
        if is_under(&entry.name, prefix.as_ref()) {
            entries.push(entry);
        }
    });
    let page = page.await?;
    let faces = page.items.iter().flat_map(|entry| entry.next_hops.iter().map(|hop| hop.face_id));
    let uris = api.inside.remote_uris(without_repetition(faces)).await?;
    answer::made(move || {
        let items: Vec<FibView> = page.items.iter().map(|entry| FibView::new(entry, &uris)).collect();
        Ok(Page { items, next: page.next })
    })
    .await
}

/// List routes, in the order of the table
#[utoipa::path(get, operation_id = "list_routes", path = "/routes", tag = "prefixes", params(RoutesQuery),
    responses((status = 200, description = "As `namehop route list --json`, in pages", body = Page<RouteView>)))]
pub(super) async fn routes(State(api): State<Api>, Query(query): Query<RoutesQuery>) -> Result<Response, Failure> {
    let (limit, prefix) = (limit(query.limit)?, query.prefix.map(|prefix| name("prefix", &prefix)).transpose()?);
    let wanted_origin = query.origin.as_deref().map(|text| origin_of(Some(text))).transpose()?;
    let from = cursor(query.after.as_deref())?.map_or(Cursor::default(), Cursor::from_number);
    let _permit = api.list_permit().await;
    let page = walk(&api, TableCursor::Rib(from), limit, |entry: RibEntry, routes| {
        if is_under(&entry.name, prefix.as_ref()) {
            let is_wanted = |route: &&Route| {
                query.face_id.is_none_or(|face| route.face_id == face)
                    && wanted_origin.is_none_or(|origin| route.origin == origin)
            };
            routes.extend(entry.routes.iter().filter(is_wanted).map(|route| RouteView::new(&entry.name, route)));
        }
    });
    let mut page = page.await?;
    let uris = api.inside.remote_uris(without_repetition(page.items.iter().map(|route| route.face_id))).await?;
    answer::made(move || {
        for route in &mut page.items {
            route.remote_uri = uris.get(&route.face_id).cloned();
        }
        Ok(page)
    })
    .await
}

/// Add a route, or replace the one with the same prefix, face and origin
#[utoipa::path(put, operation_id = "add_route", path = "/routes", tag = "prefixes", request_body = NewRoute,
    responses((status = 200, description = "As `namehop route add --json`", body = RouteView)))]
pub(super) async fn add_route(
    State(api): State<Api>,
    JsonBody(route): JsonBody<NewRoute>,
) -> Result<Response, Failure> {
    let flags = route.flags.as_deref().map(flags_of).transpose()?;
    let prefix = name("prefix", &route.prefix)?;
    let parameters = ControlParameters {
        name: Some(prefix.clone()),
        face_id: Some(route.face_id),
        origin: Some(origin_of(route.origin.as_deref())?),
        cost: Some(route.cost),
        flags: Some(flags.unwrap_or(route_flags::CHILD_INHERIT)),
        expiration_period_ms: route.expires_ms,
        ..ControlParameters::default()
    };
    let done = answer::done(api.inside.command(module::RIB, "register", parameters, Vec::new()).await?)?;
    let added = Route {
        face_id: done.face_id.unwrap_or(route.face_id),
        origin: done.origin.unwrap_or(origin::STATIC),
        cost: done.cost.unwrap_or(route.cost),
        flags: done.flags.unwrap_or(route_flags::CHILD_INHERIT),
        expiration_period_ms: done.expiration_period_ms,
    };
    answer::view(StatusCode::OK, &RouteView::new(done.name.as_ref().unwrap_or(&prefix), &added))
}

/// Remove a route
#[utoipa::path(delete, operation_id = "remove_route", path = "/routes", tag = "prefixes", params(RouteQuery),
    responses((status = 204, description = "There is no such route, or no longer")))]
pub(super) async fn remove_route(State(api): State<Api>, Query(route): Query<RouteQuery>) -> Result<Response, Failure> {
    let parameters = ControlParameters {
        name: Some(name("prefix", &route.prefix)?),
        face_id: Some(route.face_id),
        origin: Some(origin_of(route.origin.as_deref())?),
        ..ControlParameters::default()
    };
    answer::done(api.inside.command(module::RIB, "unregister", parameters, Vec::new()).await?)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn origin_of(text: Option<&str>) -> Result<u64, Failure> {
    let text = text.unwrap_or("static");
    origin::from_name(text)
        .filter(|_| is_word_or_number(text))
        .ok_or_else(|| Failure::bad_request(format!("origin: '{text}' is neither a number nor the name of an origin")))
}

fn flags_of(text: &str) -> Result<u64, Failure> {
    let wrong = |word: &str| Failure::bad_request(format!("flags: '{word}' is not a route flag"));
    if let Some(word) = text.split(',').find(|word| !is_word_or_number(word)) {
        return Err(wrong(word));
    }
    route_flags::from_words(text).map_err(wrong)
}

/// Returns true for a word, or for a number as in the description: without a sign, at most 19 digits.
fn is_word_or_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase()) || has_digits(text, 19)
}

fn is_under(name: &Name, prefix: Option<&Name>) -> bool {
    prefix.is_none_or(|prefix| prefix.is_prefix_of(name.as_ref()))
}

fn without_repetition(faces: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut faces: Vec<u64> = faces.collect();
    faces.sort_unstable();
    faces.dedup();
    faces
}
