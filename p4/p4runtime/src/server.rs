//! The gRPC server: connections, their limits, and the dispatch of requests.

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

use crate::codec::BoundedCodec;
use crate::device::Device;
use crate::large::{Measured, Turn};
use crate::message::CapabilitiesRequest;
use crate::places::{Answer, Busy, Place, Places};
use crate::service::Service;
use crate::stream;

/// Maximum number of connections, and of concurrent requests per connection.
const MOST_CONNECTIONS: usize = 16;
const MOST_REQUESTS: u32 = 16;
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
/// Time limit of a request from its headers to its response, and of a new connection to send its first bytes.
const REQUEST_TIME: Duration = Duration::from_secs(60);
const HELLO_TIME: Duration = Duration::from_secs(10);
/// Time limit for closing a connection that has lost its place.
const GOODBYE_TIME: Duration = Duration::from_secs(1);
/// The connection preface of HTTP/2.
const HELLO: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Pause between two checks for the preface, and after an accept failed for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(20);
/// Interval of HTTP/2 keep-alive pings, and time limit of their answers.
const ALIVE_EVERY: Duration = Duration::from_secs(30);
const ALIVE_TIME: Duration = Duration::from_secs(30);
/// Maximum size of a request's headers, and of data buffered for sending, in bytes.
const HEADER_BYTES: u32 = 16 << 10;
const SEND_BYTES: usize = 256 << 10;

/// A server; it stops on drop.
pub struct Server {
    /// The address that it listens on.
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens and serves in a separate thread.
    ///
    /// # Errors
    /// Fails if the address is in use, or not an address of this host.
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
                // Fails only without a runtime.
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = accept(listener, &service) => {}
                    () = stream::pump(Arc::clone(&service)) => {}
                    _ = stopped => {}
                }
            });
            // Do not wait for requests that are being executed.
            runtime.shutdown_background();
        })?;
        Ok(Server { address, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already printed.
            let _ = thread.join();
        }
    }
}

/// State that all connections share.
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
        // Close a connection for which there is no place.
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

/// True if the client sends the HTTP/2 preface in time.
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
    // Send packets to the controller at once instead of collecting them (Nagle's algorithm).
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
    // An error of one connection does not affect others.
    tokio::select! {
        _ = served.as_mut() => {}
        () = place.left() => {
            // Tells the client that requests sent from now on are not executed, and that it may reconnect.
            served.as_mut().graceful_shutdown();
            let _ = timeout(GOODBYE_TIME, served).await;
        }
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

async fn dispatch<D: Device>(request: Request<Incoming>, shared: &Shared<D>, busy: &Arc<Busy>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let service = Arc::clone(&shared.service);
    let Some(method) = path.strip_prefix("/p4.v1.P4Runtime/") else { return unknown(&path) };
    if method == "StreamChannel" {
        let mut grpc = Grpc::new(BoundedCodec::new(STREAM_MEMORY)).max_decoding_message_size(STREAM_BYTES);
        return grpc.streaming(stream::Channel(service, Arc::clone(busy)), request).await;
    }
    if method == "Read" {
        let mut grpc = Grpc::new(BoundedCodec::new(STREAM_MEMORY)).max_decoding_message_size(STREAM_BYTES);
        return in_time(grpc.server_streaming(stream::Read(service, Arc::clone(busy)), request)).await;
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
        "Capabilities" => unary!(|_: CapabilitiesRequest| async { Ok(Service::<D>::capabilities()) }),
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
