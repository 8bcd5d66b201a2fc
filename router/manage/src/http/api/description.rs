//! The OpenAPI description: the descriptions of the requests, and the parts that all requests share.

use utoipa::Number;
use utoipa::openapi::path::{HttpMethod, Operation, PathItem};
use utoipa::openapi::schema::{ArrayItems, KnownFormat, Object, SchemaFormat};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, ResponseBuilder, Schema};
use utoipa_axum::router::OpenApiRouter;

use super::answer::ErrorView;
use super::{ROOT, described_routes};

/// The start of the description.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Namehop",
        description = "Looking at a Namehop router and changing it. Answers have the same form as \
                       `namehop ... --json`. Requests that change something need the router's token, \
                       `Authorization: Bearer ...`; where the router listens beyond loopback, all do.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(ErrorView)),
    tags(
        (name = "status", description = "The router as a whole"),
        (name = "faces", description = "Connections to other routers and to applications"),
        (name = "prefixes", description = "Routes, and the FIB that follows from them"),
        (name = "strategies", description = "How Interests are forwarded"),
        (name = "tables", description = "The cache, and which names belong to which worker"),
    ),
)]
struct Frame;

/// Name of the security scheme.
const TOKEN: &str = "token";

/// Returns the description of all requests, as served at `/api/v1/openapi.json`.
pub fn description() -> OpenApi {
    let frame = <Frame as utoipa::OpenApi>::openapi();
    let mut whole = OpenApiRouter::with_openapi(frame).nest(ROOT, described_routes()).into_openapi();
    for item in whole.paths.paths.values_mut() {
        for (method, operation) in operations(item) {
            complete(&method, operation);
        }
    }
    if let Some(components) = whole.components.as_mut() {
        if let Some(RefOr::T(Schema::Object(properties))) = components.schemas.get_mut("FaceProperties") {
            // A request for a new face adds other properties to these, so their schema must not forbid additional ones.
            properties.additional_properties = None;
        }
        components.schemas.values_mut().for_each(complete_schema);
        components.add_security_scheme(TOKEN, SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
    whole
}

/// Iterates over the operations of a path.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (HttpMethod, &mut Operation)> {
    [
        (HttpMethod::Get, &mut item.get),
        (HttpMethod::Put, &mut item.put),
        (HttpMethod::Post, &mut item.post),
        (HttpMethod::Patch, &mut item.patch),
        (HttpMethod::Delete, &mut item.delete),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Adds the parts that all operations share: errors and the token.
fn complete(method: &HttpMethod, operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter {
            parameter.schema.iter_mut().for_each(complete_schema);
        }
    }
    let error = Content::new(Some(Ref::from_schema_name("ErrorView")));
    let response = ResponseBuilder::new()
        .description(
            "What is wrong, and what to do. 400: the request is malformed; 401: the token is missing or wrong; 403: \
             the request comes from a page of another site; 404: it does not exist; 408: the request did not arrive in \
             time; 409: it is in conflict with the router's state; 413: the body is too long; 415: the Content-Type is \
             wrong for this request; 421: the Host header names another host; 422: the router cannot do this; 500: the \
             router failed; 503: the router is stopping, or has no token; 504: the peer of a face does not answer; \
             507: the number of routes has reached its limit",
        )
        .content("application/json", error);
    operation.responses.responses.insert("default".to_owned(), response.build().into());
    let needed = SecurityRequirement::new(TOKEN, Vec::<String>::new());
    // Reading needs no token if the router listens on loopback only.
    operation.security = Some(match method {
        HttpMethod::Get => vec![SecurityRequirement::default(), needed],
        _ => vec![needed],
    });
}

/// Sets format and maximum of unsigned integers: `int64` alone would end at half of their range.
fn complete_schema(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            complete_integer(object);
            object.properties.values_mut().for_each(complete_schema);
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                complete_schema(items);
            }
        }
        Schema::OneOf(parts) => parts.items.iter_mut().for_each(complete_schema),
        Schema::AllOf(parts) => parts.items.iter_mut().for_each(complete_schema),
        Schema::AnyOf(parts) => parts.items.iter_mut().for_each(complete_schema),
        _ => {}
    }
}

fn complete_integer(object: &mut Object) {
    let (format, maximum) = match object.format {
        Some(SchemaFormat::KnownFormat(KnownFormat::Int64)) => ("uint64", usize::MAX),
        Some(SchemaFormat::KnownFormat(KnownFormat::Int32)) => ("uint32", u32::MAX as usize),
        _ => return,
    };
    // Signed integers have no minimum.
    if object.minimum.is_some() {
        object.format = Some(SchemaFormat::Custom(format.to_owned()));
        object.maximum.get_or_insert(Number::UInt(maximum));
    }
}
