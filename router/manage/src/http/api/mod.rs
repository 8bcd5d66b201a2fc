//! `/api/v1`: reads and changes the router's state, in JSON.
//!
//! A verb or dataset of the management protocol carries out each request (through [`Inside`]). Answers have the form of
//! [`views`](crate::views), as with `--json` on the command line. A request is a function in the file of its resource,
//! with its OpenAPI description as an attribute, and a name in [`described_routes`].
//!
//! | file | contents |
//! |---|---|
//! | `access` | access control: the token, and no pages of other sites |
//! | `extract` | bodies, queries and path parameters, with their limits |
//! | `answer` | answers and errors |
//! | `page` | lists in pages |
//! | `faces`, `prefixes`, `strategies`, `tables`, `status`, `trace`, `latency` | the resources |

mod access;
mod answer;
mod description;
mod extract;
mod faces;
mod latency;
mod page;
mod prefixes;
mod status;
mod strategies;
mod tables;
mod trace;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::is_for_api;
use crate::server::Inside;
pub use access::ApiToken;
pub(super) use answer::Failure;
pub use description::description;

/// Common prefix of all paths.
pub(super) const ROOT: &str = "/api/v1";

/// Maximum number of lists built at the same time; further requests wait.
const MAX_LISTS: usize = 4;

/// State shared by all requests.
#[derive(Debug, Clone)]
pub(super) struct Api {
    inside: Inside,
    /// `None` if there is no token; then no request can change anything.
    token: Option<Arc<ApiToken>>,
    /// True if every read request needs the token. If false, only read requests with signs of a proxy need it.
    is_reading_guarded: bool,
    lists: Arc<Semaphore>,
}

impl Api {
    pub(super) fn new(inside: Inside, token: Option<ApiToken>, is_reading_guarded: bool) -> Self {
        Api { inside, token: token.map(Arc::new), is_reading_guarded, lists: Arc::new(Semaphore::new(MAX_LISTS)) }
    }

    /// Waits for permission to build a list, which is held until the returned permit is dropped.
    async fn list_permit(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.lists).acquire_owned().await.ok()
    }
}

/// Returns all requests with their descriptions.
fn described_routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(status::show))
        .routes(routes!(faces::list, faces::create))
        .routes(routes!(faces::show, faces::change, faces::destroy))
        .routes(routes!(prefixes::fib))
        .routes(routes!(prefixes::routes, prefixes::add_route, prefixes::remove_route))
        .routes(routes!(strategies::chosen, strategies::choose, strategies::unset))
        .routes(routes!(strategies::available))
        .routes(routes!(strategies::load))
        .routes(routes!(strategies::unload))
        .routes(routes!(tables::cs, tables::configure_cs))
        .routes(routes!(tables::erase_cs))
        .routes(routes!(tables::ndt))
        .routes(routes!(tables::move_name))
        .routes(routes!(trace::trace))
        .routes(routes!(latency::show, latency::sample))
        .routes(routes!(openapi))
}

/// Creates the router for all paths below [`ROOT`]; other paths give 404.
pub(super) fn router(api: Api) -> Router {
    let (routes, _) = OpenApiRouter::new().nest(ROOT, described_routes()).split_for_parts();
    routes
        .fallback(async |request: Request| match is_for_api(&request) {
            true => Failure::no_such_path().into_response(),
            false => StatusCode::NOT_FOUND.into_response(),
        })
        .method_not_allowed_fallback(async || Failure::no_such_method())
        .layer(from_fn_with_state(api.clone(), access::check))
        .with_state(api)
}

/// Describe all requests
#[utoipa::path(get, operation_id = "describe", path = "/openapi.json", tag = "status",
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value)))]
async fn openapi(State(_): State<Api>) -> Result<Response, Failure> {
    answer::made(|| Ok(description())).await
}
