//! The gRPC server: connections, their limits, and which function answers which request.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener as Listener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;
use tonic::server::{Grpc, UnaryService};
use tonic_prost::ProstCodec;

use crate::device::Device;
use crate::large::{Measured, Turn};
use crate::places::{Answer, Busy, Place, Places};
use crate::service::Service;
use crate::stream;

/// Connections at once, and requests of each.
const MOST_CONNECTIONS: usize = 16;
const MOST_REQUESTS: u32 = 16;
/// The largest request.
const REQUEST_BYTES: usize = 16 << 20;
/// The largest message of a stream: a packet with its metadata.
pub(crate) const STREAM_BYTES: usize = 64 << 10;
/// Requests of many bytes at once, and requests that are carried out at once; further ones wait.
const LARGE_REQUESTS: usize = 4;
const WORKERS: usize = 4;
/// How long a request may take to come and be answered, and whoever connects to say anything.
const REQUEST_TIME: Duration = Duration::from_secs(60);
const HELLO_TIME: Duration = Duration::from_secs(10);
/// How long a connection that has lost its place may take to end.
const GOODBYE_TIME: Duration = Duration::from_secs(1);
/// What connections of HTTP/2 begin with.
const HELLO: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Between two looks whether it is there; and when there are no file descriptors.
const PAUSE: Duration = Duration::from_millis(20);
/// Connections are asked whether they live.
const ALIVE_EVERY: Duration = Duration::from_secs(30);
const ALIVE_TIME: Duration = Duration::from_secs(30);
/// The largest headers of a request, and memory for what was not sent yet.
const HEADER_BYTES: u32 = 16 << 10;
const SEND_BYTES: usize = 256 << 10;

/// A server, which ends when this is dropped.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens and serves from now on, in a thread of its own.
    ///
    /// # Errors
    /// When the address is in use, or not one of this machine.
    pub fn start<D: Device>(address: SocketAddr, device: D) -> io::Result<Server> {
        let named = |error: io::Error| io::Error::other(format!("cannot serve P4Runtime at {address}: {error}"));
        let listener = Listener::bind(address).map_err(named)?;
        listener.set_nonblocking(true).map_err(named)?;
        let address = listener.local_addr().map_err(named)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(named)?;
        let service = Service::new(device);
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("p4runtime".to_owned()).spawn(move || {
            runtime.block_on(async {
                // Fails only when there is no runtime.
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = accept(listener, &service) => {}
                    () = stream::pump(Arc::clone(&service)) => {}
                    _ = stopped => {}
                }
            });
            // Requests that are being carried out do not keep the program from ending.
            runtime.shutdown_background();
        })?;
        Ok(Server { address, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It tells nobody why it failed, if it did.
            let _ = thread.join();
        }
    }
}

/// What all connections share.
struct Shared<D> {
    service: Arc<Service<D>>,
    large: Arc<Semaphore>,
    workers: Arc<Semaphore>,
}

async fn accept<D: Device>(listener: TcpListener, service: &Arc<Service<D>>) {
    let places = Arc::new(Places::new(MOST_CONNECTIONS));
    let shared = Arc::new(Shared {
        service: Arc::clone(service),
        large: Arc::new(Semaphore::new(LARGE_REQUESTS)),
        workers: Arc::new(Semaphore::new(WORKERS)),
    });
    loop {
        let Ok((connection, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // A connection for which there is no place is closed at once.
        let Some(place) = places.take() else { continue };
        let (shared, places) = (Arc::clone(&shared), Arc::clone(&places));
        tokio::spawn(async move {
            let is_welcome = tokio::select! {
                says_hello = says_hello(&connection) => says_hello,
                () = place.left() => false,
            };
            if is_welcome {
                serve(connection, shared, &place).await;
            }
            places.give_back(&place);
        });
    }
}

/// Whether the other end speaks HTTP/2, and does so in time.
async fn says_hello(connection: &TcpStream) -> bool {
    let mut seen = [0; HELLO.len()];
    let hello = async {
        loop {
            match connection.peek(&mut seen).await {
                Ok(0) | Err(_) => return false,
                Ok(count) if seen[..count] != HELLO[..count] => return false,
                Ok(count) if count == HELLO.len() => return true,
                Ok(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    timeout(HELLO_TIME, hello).await.unwrap_or(false)
}

async fn serve<D: Device>(connection: TcpStream, shared: Arc<Shared<D>>, place: &Arc<Place>) {
    // Packets for the controller are not kept for company.
    let _ = connection.set_nodelay(true);
    let of_request = Arc::clone(place);
    let answer = hyper::service::service_fn(move |request| {
        let (shared, busy) = (Arc::clone(&shared), of_request.request());
        async move {
            let answer = dispatch(request, &shared, &busy).await;
            Ok::<_, Infallible>(answer.map(|body| Body::new(Answer { body, _busy: busy })))
        }
    });
    let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_REQUESTS)
        .max_header_list_size(HEADER_BYTES)
        .max_send_buf_size(SEND_BYTES)
        .keep_alive_interval(ALIVE_EVERY)
        .keep_alive_timeout(ALIVE_TIME);
    let served = builder.serve_connection(TokioIo::new(connection), answer);
    tokio::pin!(served);
    // A connection that breaks is no concern of others.
    tokio::select! {
        _ = served.as_mut() => {}
        () = place.left() => {
            // Its client is told that it may connect again, and that nothing it has sent since was done.
            served.as_mut().graceful_shutdown();
            let _ = timeout(GOODBYE_TIME, served).await;
        }
    }
}

/// A function that answers one message with another.
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

/// The answer of such a function in the form that is sent.
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

/// Does something that takes a while beside the thread of the server.
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
    done.unwrap_or_else(|_| Err(Status::internal("the request failed; please report this")))
}

async fn dispatch<D: Device>(request: Request<Incoming>, shared: &Shared<D>, busy: &Arc<Busy>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let service = Arc::clone(&shared.service);
    let Some(method) = path.strip_prefix("/p4.v1.P4Runtime/") else { return unknown(&path) };
    if method == "StreamChannel" {
        let mut grpc = Grpc::new(ProstCodec::default()).max_decoding_message_size(STREAM_BYTES);
        return grpc.streaming(stream::Channel(service, Arc::clone(busy)), request).await;
    }
    if method == "Read" {
        let mut grpc = Grpc::new(ProstCodec::default()).max_decoding_message_size(STREAM_BYTES);
        return in_time(grpc.server_streaming(stream::Read(service, Arc::clone(busy)), request)).await;
    }
    let workers = Arc::clone(&shared.workers);
    // Kept until the request is answered.
    let turn = Arc::new(Turn::default());
    let request = request.map(|body| Measured::new(body, Arc::clone(&shared.large), Arc::clone(&turn)));
    macro_rules! unary {
        ($function:expr) => {{
            let mut grpc = Grpc::new(ProstCodec::default()).max_decoding_message_size(REQUEST_BYTES);
            in_time(grpc.unary(Unary { function: $function, busy: Arc::clone(busy) }, request)).await
        }};
    }
    match method {
        "Write" => unary!(move |request| {
            let service = Arc::clone(&service);
            aside(Arc::clone(&workers), move || service.write(&request))
        }),
        "SetForwardingPipelineConfig" => unary!(move |request| {
            let service = Arc::clone(&service);
            aside(Arc::clone(&workers), move || service.set_pipeline(&request))
        }),
        "GetForwardingPipelineConfig" => unary!(move |request| {
            let answer = service.get_pipeline(request);
            async { answer }
        }),
        "Capabilities" => unary!(|_: crate::message::Nothing| async { Ok(Service::<D>::capabilities()) }),
        _ => unknown(&path),
    }
}

fn unknown(path: &str) -> Response<Body> {
    Status::unimplemented(format!("there is no method {path}; this is P4Runtime")).into_http()
}

async fn in_time(answer: impl Future<Output = Response<Body>>) -> Response<Body> {
    let late = || Status::deadline_exceeded("the request did not come, or was not answered, in time").into_http();
    timeout(REQUEST_TIME, answer).await.unwrap_or_else(|_| late())
}
