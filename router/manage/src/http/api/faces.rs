//! Faces.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use namehop_client::nfd::names::module;
use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{ControlParameters, ControlResponse, FaceQueryFilter, FaceStatus, decode_items};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::extract::{InPath, JsonBody, Query};
use super::page::{Page, cursor, limit};
use super::{Api, Failure, answer};
use crate::requests::{FaceProperties, explain_refused};
use crate::views::{ChangedFaceView, FaceView};

/// Filter and page of a list of faces.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FacesQuery {
    /// Only faces with this remote address.
    remote: Option<String>,
    /// Only faces with this local address.
    local: Option<String>,
    /// Only faces with this scheme in their remote or local address.
    scheme: Option<String>,
    /// Maximum number of faces in a page: 1 to 1000; default 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the previous page.
    #[param(pattern = "^[0-9]{1,20}$")]
    after: Option<String>,
}

/// A face to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewFace {
    /// Remote address, numeric and with a port, such as `udp4://192.0.2.1:6363`.
    uri: String,
    /// Local address, for faces that need one, such as `dev://INTERFACE`.
    local_uri: Option<String>,
    /// Properties of the face.
    #[serde(flatten)]
    properties: FaceProperties,
}

/// List faces with their packet counts, in order of their ids
#[utoipa::path(get, operation_id = "list_faces", path = "/faces", tag = "faces", params(FacesQuery),
    responses((status = 200, description = "As `namehop face list --json`, in pages", body = Page<FaceView>)))]
pub(super) async fn list(State(api): State<Api>, Query(query): Query<FacesQuery>) -> Result<Response, Failure> {
    let (limit, after) = (limit(query.limit)?, cursor(query.after.as_deref())?);
    let filter = FaceQueryFilter {
        uri: query.remote,
        local_uri: query.local,
        uri_scheme: query.scheme,
        ..FaceQueryFilter::default()
    };
    let _permit = api.list_permit().await;
    let content = api.inside.faces(filter).await?;
    answer::made(move || {
        let mut faces: Vec<FaceStatus> = decode_items(&content)?;
        faces.retain(|face| after.is_none_or(|after| face.face_id > after));
        faces.sort_unstable_by_key(|face| face.face_id);
        let next = (faces.len() > limit).then(|| faces[limit - 1].face_id.to_string());
        faces.truncate(limit);
        Ok(Page { items: faces.into_iter().map(FaceView::from).collect(), next })
    })
    .await
}

/// Show one face
#[utoipa::path(get, operation_id = "show_face", path = "/faces/{id}", tag = "faces",
    params(("id" = u64, Path, minimum = 1, description = "Number of the face")),
    responses((status = 200, description = "As `namehop face show --json`", body = FaceView)))]
pub(super) async fn show(State(api): State<Api>, id: InPath) -> Result<Response, Failure> {
    answer::view(StatusCode::OK, &FaceView::from(find(&api, id.face_id()?).await?))
}

/// Create a face, or return the existing one
#[utoipa::path(post, operation_id = "create_face", path = "/faces", tag = "faces", request_body = NewFace,
    responses((status = 201, description = "It was created", body = ChangedFaceView),
              (status = 200, description = "It exists, and was not changed", body = ChangedFaceView)))]
pub(super) async fn create(State(api): State<Api>, JsonBody(face): JsonBody<NewFace>) -> Result<Response, Failure> {
    let parameters =
        ControlParameters { uri: Some(face.uri), local_uri: face.local_uri, ..face.properties.parameters() };
    let response = api.inside.command(module::FACES, "create", parameters, Vec::new()).await?;
    if response.code == status_code::CONFLICT {
        let existing = response.parameters()?;
        if existing.face_id.is_some() {
            return answer::view(StatusCode::OK, &ChangedFaceView::new(existing, Some(false)));
        }
    }
    let done = answer::done(response)?;
    answer::view(StatusCode::CREATED, &ChangedFaceView::new(done, Some(true)))
}

/// Change properties of a face, all of them or none
#[utoipa::path(patch, operation_id = "change_face", path = "/faces/{id}", tag = "faces",
    params(("id" = u64, Path, minimum = 1, description = "Number of the face")),
    request_body = FaceProperties,
    responses((status = 200, description = "As `namehop face update --json`", body = ChangedFaceView)))]
pub(super) async fn change(
    State(api): State<Api>,
    id: InPath,
    JsonBody(properties): JsonBody<FaceProperties>,
) -> Result<Response, Failure> {
    let parameters = ControlParameters { face_id: Some(id.face_id()?), ..properties.parameters() };
    let response = api.inside.command(module::FACES, "update", parameters, Vec::new()).await?;
    if response.code == status_code::CONFLICT {
        return Err(why_refused(&response));
    }
    answer::view(StatusCode::OK, &ChangedFaceView::new(answer::done(response)?, None))
}

/// Destroy a face and its routes
#[utoipa::path(delete, operation_id = "destroy_face", path = "/faces/{id}", tag = "faces",
    params(("id" = u64, Path, minimum = 1, description = "Number of the face")),
    responses((status = 204, description = "It is gone")))]
pub(super) async fn destroy(State(api): State<Api>, id: InPath) -> Result<Response, Failure> {
    let id = id.face_id()?;
    find(&api, id).await?;
    let parameters = ControlParameters { face_id: Some(id), ..ControlParameters::default() };
    answer::done(api.inside.command(module::FACES, "destroy", parameters, Vec::new()).await?)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn find(api: &Api, id: u64) -> Result<FaceStatus, Failure> {
    let filter = FaceQueryFilter { face_id: Some(id), ..FaceQueryFilter::default() };
    let found: Vec<FaceStatus> = decode_items(&api.inside.faces(filter).await?)?;
    found.into_iter().next().ok_or_else(|| {
        let hint = "GET /api/v1/faces lists the existing faces";
        Failure::new(StatusCode::NOT_FOUND, format!("there is no face {id}"), Some(hint))
    })
}

fn why_refused(response: &ControlResponse) -> Failure {
    let refused = response.parameters().unwrap_or_default();
    let reasons = explain_refused(&refused).join("; ");
    Failure::new(StatusCode::CONFLICT, &response.text, Some(&*reasons).filter(|reasons| !reasons.is_empty()))
}
