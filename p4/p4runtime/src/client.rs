//! The operator's client: requests at the control socket of a running program, one after the other.

use std::io;
use std::path::Path;

use http::uri::PathAndQuery;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;
use tower::util::BoxService;

use crate::fates;
use crate::info::P4Info;
use crate::message::get_forwarding_pipeline_config_request::ResponseType;
use crate::message::{
    Entity, GetForwardingPipelineConfigRequest, GetForwardingPipelineConfigResponse, ReadRequest, ReadResponse, Update,
    WriteRequest, WriteResponse,
};
use crate::operator::{SetMirrorRequest, SetMirrorResponse, TakeReportsRequest, TakeReportsResponse};

/// Maximum size of a response, in bytes: the p4info of a large program.
const RESPONSE_BYTES: usize = 256 << 20;

type Connection = BoxService<http::Request<Body>, http::Response<Incoming>, hyper::Error>;

/// Why a write has failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The whole request was refused, or the connection failed.
    #[error("{}", .0.message())]
    Request(Status),
    /// Some updates have failed. The results are in the order of the updates; the last ones may be missing.
    #[error("{}", first_message(.0))]
    Updates(Vec<Result<(), Status>>),
}

/// The message of the first update that has failed.
fn first_message(results: &[Result<(), Status>]) -> &str {
    results.iter().find_map(|result| result.as_ref().err()).map_or("an update has failed", Status::message)
}

/// A connection to the control socket of a running program. Its methods block.
pub struct Client {
    runtime: Runtime,
    grpc: Grpc<Connection>,
}

impl Client {
    /// Connects to a control socket.
    ///
    /// # Errors
    /// Fails if no program listens at the socket, or if this user may not open it.
    pub fn connect(socket: &Path) -> io::Result<Client> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (sender, connection) = runtime.block_on(async {
            let stream = UnixStream::connect(socket).await?;
            let made = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
            made.map_err(io::Error::other)
        })?;
        // The requests tell of its errors.
        runtime.spawn(async { drop(connection.await) });
        let service = tower::service_fn(move |request| {
            let mut sender = sender.clone();
            async move {
                sender.ready().await?;
                sender.send_request(request).await
            }
        });
        let grpc = Grpc::with_origin(BoxService::new(service), http::Uri::from_static("http://localhost"));
        Ok(Client { runtime, grpc: grpc.max_decoding_message_size(RESPONSE_BYTES) })
    }

    /// Sends a request with one response.
    fn unary<Q, R>(&mut self, path: &'static str, request: Q) -> Result<R, Status>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        let Client { runtime, grpc } = self;
        runtime.block_on(async {
            grpc.ready().await.map_err(lost)?;
            let codec = ProstCodec::<Q, R>::default();
            Ok(grpc.unary(Request::new(request), PathAndQuery::from_static(path), codec).await?.into_inner())
        })
    }

    /// Returns the p4info of the program.
    ///
    /// # Errors
    /// Fails if the connection fails.
    pub fn p4info(&mut self) -> Result<P4Info, Status> {
        let response_type = ResponseType::P4infoAndCookie as i32;
        let request = GetForwardingPipelineConfigRequest { response_type, ..Default::default() };
        let answer: GetForwardingPipelineConfigResponse =
            self.unary("/p4.v1.P4Runtime/GetForwardingPipelineConfig", request)?;
        let info = answer.config.and_then(|config| config.p4info);
        info.ok_or_else(|| Status::internal("the program has no p4info"))
    }

    /// Makes updates in their order, as the operator. Each one that can be made is made.
    ///
    /// # Errors
    /// Returns the result of each update if some have failed.
    pub fn write(&mut self, updates: Vec<Update>) -> Result<(), WriteError> {
        let request = WriteRequest { updates, ..WriteRequest::default() };
        let done: Result<WriteResponse, _> = self.unary("/p4.v1.P4Runtime/Write", request);
        done.map(drop).map_err(|status| match fates::results(&status) {
            Some(results) => WriteError::Updates(results),
            None => WriteError::Request(status),
        })
    }

    /// Reads what matches an entity. Calls a function with each entity that is found.
    ///
    /// # Errors
    /// Fails if the request is refused, or if the connection fails.
    pub fn read(&mut self, entity: Entity, each: &mut dyn FnMut(Entity)) -> Result<(), Status> {
        let Client { runtime, grpc } = self;
        runtime.block_on(async {
            grpc.ready().await.map_err(lost)?;
            let request = Request::new(ReadRequest { entities: vec![entity], ..ReadRequest::default() });
            let path = PathAndQuery::from_static("/p4.v1.P4Runtime/Read");
            let codec = ProstCodec::<ReadRequest, ReadResponse>::default();
            let mut parts = grpc.server_streaming(request, path, codec).await?.into_inner();
            while let Some(part) = parts.message().await? {
                part.entities.into_iter().for_each(&mut *each);
            }
            Ok(())
        })
    }

    /// Sets the destination of the copies of a clone session.
    ///
    /// # Errors
    /// Fails if the request is refused, or if the connection fails.
    pub fn set_mirror(&mut self, request: SetMirrorRequest) -> Result<(), Status> {
        self.unary("/namehop.p4.v1.Operator/SetMirror", request).map(|SetMirrorResponse {}| ())
    }

    /// Takes waiting digests, `most` at most.
    ///
    /// # Errors
    /// Fails if the connection fails.
    pub fn take_reports(&mut self, most: u32) -> Result<TakeReportsResponse, Status> {
        self.unary("/namehop.p4.v1.Operator/TakeReports", TakeReportsRequest { most })
    }
}

fn lost(error: hyper::Error) -> Status {
    Status::unavailable(format!("the connection to the program failed: {error}"))
}
