//! The dispatch of requests to the service, with limits of size and time.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;
use tonic::server::{Grpc, UnaryService};

use crate::codec::BoundedCodec;
use crate::device::Device;
use crate::large::{Measured, Turn};
use crate::message::CapabilitiesRequest;
use crate::operator::TakeReportsRequest;
use crate::places::Busy;
use crate::service::{Caller, Service};
use crate::stream;

/// Maximum size of a request, in bytes.
pub(crate) const REQUEST_BYTES: usize = 16 << 20;
/// Maximum size of a stream message and of a `Read`, in bytes: for a stream, a packet with its metadata.
const STREAM_BYTES: usize = 64 << 10;
/// Maximum memory that the lists of a decoded request or stream message take, in bytes. An entry with one key and one
/// parameter takes less than ten times its encoded size, and the entities of a `Read` less than sixteen times.
pub(crate) const REQUEST_MEMORY: usize = 10 * REQUEST_BYTES;
const STREAM_MEMORY: usize = 16 * STREAM_BYTES;
/// Maximum number of large requests, and of requests that are executed, at a time; further ones wait.
const LARGE_REQUESTS: usize = 4;
const WORKERS: usize = 4;
/// Maximum number of reads that make a part of their answers at the same time. The others wait for their turn, in
/// order, so that a flood of reads delays a read and never has it refused. A read that waits for its client has no
/// turn. The server's limits of connections and requests bound the number of reads.
const READS_AT_ONCE: usize = 4;
/// Time limit of a request from its headers to its response.
const REQUEST_TIME: Duration = Duration::from_secs(60);

/// State that all connections of a listener share. Each listener has its own limits, so that a flood of controllers
/// does not delay the operator.
pub(crate) struct Shared<D> {
    service: Arc<Service<D>>,
    caller: Caller,
    large: Arc<Semaphore>,
    workers: Arc<Semaphore>,
    reads: Arc<Semaphore>,
}

impl<D: Device> Shared<D> {
    /// Makes the state of a listener for callers of one kind.
    pub(crate) fn new(service: &Arc<Service<D>>, caller: Caller) -> Arc<Shared<D>> {
        Arc::new(Shared {
            service: Arc::clone(service),
            caller,
            large: Arc::new(Semaphore::new(LARGE_REQUESTS)),
            workers: Arc::new(Semaphore::new(WORKERS)),
            reads: Arc::new(Semaphore::new(READS_AT_ONCE)),
        })
    }
}

/// A function that answers one message with one message.
struct Unary<F> {
    function: F,
    busy: Arc<Busy>,
}

impl<F, A, R, Q> UnaryService<Q> for Unary<F>
where
    F: FnMut(Q) -> A,
    A: Future<Output = Result<R, Status>>,
{
    type Response = R;
    type Future = Answered<A>;

    fn call(&mut self, request: tonic::Request<Q>) -> Self::Future {
        self.busy.begin();
        Answered(Box::pin((self.function)(request.into_inner())))
    }
}

/// Wraps the function's result into a response.
struct Answered<A>(std::pin::Pin<Box<A>>);

impl<A, R> Future for Answered<A>
where
    A: Future<Output = Result<R, Status>>,
{
    type Output = Result<tonic::Response<R>, Status>;

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        self.0.as_mut().poll(context).map(|result| result.map(tonic::Response::new))
    }
}

/// Runs blocking work outside of the server's thread.
async fn aside<R: Send + 'static>(
    workers: Arc<Semaphore>,
    work: impl FnOnce() -> Result<R, Status> + Send + 'static,
) -> Result<R, Status> {
    let turn = workers.acquire_owned().await;
    let done = tokio::task::spawn_blocking(move || {
        // Held until the work ends, even if the client has gone.
        let _turn = turn;
        work()
    });
    let done = done.await;
    done.unwrap_or_else(|_| Err(Status::internal("the request handler panicked; please report this")))
}

/// Answers a request.
pub(crate) async fn dispatch<D: Device>(
    request: Request<Incoming>,
    shared: &Shared<D>,
    busy: &Arc<Busy>,
) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let (service, caller) = (Arc::clone(&shared.service), shared.caller);
    if path == "/p4.v1.P4Runtime/StreamChannel" {
        let mut grpc = Grpc::new(BoundedCodec::new(STREAM_MEMORY)).max_decoding_message_size(STREAM_BYTES);
        return grpc.streaming(stream::Channel(service, Arc::clone(busy)), request).await;
    }
    if path == "/p4.v1.P4Runtime/Read" {
        let read = stream::Read { service, caller, busy: Arc::clone(busy), turns: Arc::clone(&shared.reads) };
        let mut grpc = Grpc::new(BoundedCodec::new(STREAM_MEMORY)).max_decoding_message_size(STREAM_BYTES);
        return in_time(grpc.server_streaming(read, request)).await;
    }
    let workers = Arc::clone(&shared.workers);
    // Kept until the request is answered.
    let turn = Arc::new(Turn::default());
    let request = request.map(|body| Measured::new(body, Arc::clone(&shared.large), Arc::clone(&turn)));
    macro_rules! unary {
        ($function:expr) => {{
            let mut grpc = Grpc::new(BoundedCodec::new(REQUEST_MEMORY)).max_decoding_message_size(REQUEST_BYTES);
            in_time(grpc.unary(Unary { function: $function, busy: Arc::clone(busy) }, request)).await
        }};
    }
    match (&*path, caller) {
        ("/p4.v1.P4Runtime/Write", _) => unary!(move |request| {
            let service = Arc::clone(&service);
            aside(Arc::clone(&workers), move || service.write(&request, caller))
        }),
        ("/p4.v1.P4Runtime/SetForwardingPipelineConfig", _) => unary!(move |request| {
            let service = Arc::clone(&service);
            aside(Arc::clone(&workers), move || service.set_pipeline(&request))
        }),
        ("/p4.v1.P4Runtime/GetForwardingPipelineConfig", _) => unary!(move |request| {
            let answer = service.get_pipeline(request, caller);
            async { answer }
        }),
        ("/p4.v1.P4Runtime/Capabilities", _) => {
            unary!(|_: CapabilitiesRequest| async { Ok(Service::<D>::capabilities()) })
        }
        ("/namehop.p4.v1.Operator/SetMirror", Caller::Operator) => unary!(move |request| {
            let service = Arc::clone(&service);
            aside(Arc::clone(&workers), move || service.set_mirror(&request))
        }),
        ("/namehop.p4.v1.Operator/TakeReports", Caller::Operator) => unary!(move |request: TakeReportsRequest| {
            let service = Arc::clone(&service);
            aside(Arc::clone(&workers), move || Ok(service.device.take_reports(request.most)))
        }),
        _ => unknown(&path),
    }
}

fn unknown(path: &str) -> Response<Body> {
    Status::unimplemented(format!("P4Runtime has no method {path}")).into_http()
}

async fn in_time(answer: impl Future<Output = Response<Body>>) -> Response<Body> {
    let late = || Status::deadline_exceeded("the request did not arrive or was not answered in time").into_http();
    timeout(REQUEST_TIME, answer).await.unwrap_or_else(|_| late())
}
