//! The gRPC server: its listeners, connections and their limits.

use std::convert::Infallible;
use std::future;
use std::io;
use std::net::{SocketAddr, TcpListener as Listener};
use std::os::unix::net::UnixListener as Socket;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, tcp, unix};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic::body::Body;

use crate::device::Device;
use crate::dispatch::{Shared, dispatch};
use crate::places::{Answer, Place, Places};
use crate::service::{Caller, Service};
use crate::stream;

/// Maximum number of connections of a listener, and of concurrent requests per connection.
const MOST_CONNECTIONS: usize = 16;
const MOST_REQUESTS: u32 = 16;
/// Time limit of a new connection to send its first bytes.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// Time limit for closing a connection that has lost its place.
const GOODBYE_TIME: Duration = Duration::from_secs(1);
/// The connection preface of HTTP/2.
const HELLO: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Pause after an accept failed for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(20);
/// Interval of HTTP/2 keep-alive pings, and time limit of their answers.
const ALIVE_EVERY: Duration = Duration::from_secs(30);
const ALIVE_TIME: Duration = Duration::from_secs(30);
/// Maximum size of a request's headers, and of data buffered for sending, in bytes.
const HEADER_BYTES: u32 = 16 << 10;
const SEND_BYTES: usize = 256 << 10;

/// Where a server listens.
#[derive(Default)]
pub struct Listeners {
    /// The address for controllers.
    pub controllers: Option<SocketAddr>,
    /// The operator's socket. A client that can open it may write without being a primary controller, so the access
    /// rights of its file are the operator's credentials.
    pub operator: Option<Socket>,
}

/// A server; it stops on drop.
pub struct Server {
    /// The address for controllers, if it listens on one.
    pub address: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens and serves in a separate thread.
    ///
    /// # Errors
    /// Fails if the address is in use, or not an address of this host.
    pub fn start<D: Device>(listeners: Listeners, device: D) -> io::Result<Server> {
        let controllers = listeners.controllers.map(listen).transpose()?;
        let address = controllers.as_ref().map(Listener::local_addr).transpose()?;
        let operator = listeners.operator;
        operator.as_ref().map(|operator| operator.set_nonblocking(true)).transpose()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let service = Service::new(device);
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("p4runtime".to_owned()).spawn(move || {
            runtime.block_on(async {
                // These fail only without a runtime.
                let controllers = controllers.and_then(|listener| TcpListener::from_std(listener).ok());
                let operator = operator.and_then(|listener| UnixListener::from_std(listener).ok());
                tokio::select! {
                    () = accept(controllers, Shared::new(&service, Caller::Controller)) => {}
                    () = accept(operator, Shared::new(&service, Caller::Operator)) => {}
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

fn listen(address: SocketAddr) -> io::Result<Listener> {
    let listening = Listener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listening.map_err(|error| io::Error::other(format!("cannot serve P4Runtime at {address}: {error}")))
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

/// A listener for connections of one kind.
trait Accept {
    type Reader: AsyncRead + Send + Unpin + 'static;
    type Writer: AsyncWrite + Send + Unpin + 'static;

    /// Accepts the next connection.
    async fn connection(&self) -> io::Result<(Self::Reader, Self::Writer)>;
}

impl Accept for TcpListener {
    type Reader = tcp::OwnedReadHalf;
    type Writer = tcp::OwnedWriteHalf;

    async fn connection(&self) -> io::Result<(Self::Reader, Self::Writer)> {
        let (connection, _) = self.accept().await?;
        // Send packets to the controller at once instead of collecting them (Nagle's algorithm).
        let _ = connection.set_nodelay(true);
        Ok(connection.into_split())
    }
}

impl Accept for UnixListener {
    type Reader = unix::OwnedReadHalf;
    type Writer = unix::OwnedWriteHalf;

    async fn connection(&self) -> io::Result<(Self::Reader, Self::Writer)> {
        Ok(self.accept().await?.0.into_split())
    }
}

/// Accepts connections. Never returns.
async fn accept<A: Accept, D: Device>(listener: Option<A>, shared: Arc<Shared<D>>) {
    let Some(listener) = listener else { return future::pending().await };
    let places = Arc::new(Places::new(MOST_CONNECTIONS));
    loop {
        let Ok((reader, writer)) = listener.connection().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Close a connection for which there is no place.
        let Some(place) = places.take() else { continue };
        let (shared, places) = (Arc::clone(&shared), Arc::clone(&places));
        tokio::spawn(async move {
            let reader = tokio::select! {
                reader = greeted(reader) => reader,
                () = place.left() => None,
            };
            if let Some(reader) = reader {
                serve(tokio::io::join(reader, writer), shared, &place).await;
            }
            places.give_back(&place);
        });
    }
}

/// Waits for the HTTP/2 preface. Returns the reader with the preface in front; `None` if the client does not send it in
/// time.
async fn greeted<R: AsyncRead + Unpin>(mut reader: R) -> Option<impl AsyncRead + Unpin> {
    let hello = async {
        let (mut seen, mut count) = ([0; HELLO.len()], 0);
        while count < HELLO.len() {
            match reader.read(&mut seen[count..]).await {
                Ok(0) | Err(_) => return false,
                Ok(more) => count += more,
            }
            if seen[..count] != HELLO[..count] {
                return false;
            }
        }
        true
    };
    let is_welcome = timeout(HELLO_TIME, hello).await.unwrap_or(false);
    is_welcome.then(|| HELLO.as_slice().chain(reader))
}

async fn serve<D: Device>(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    shared: Arc<Shared<D>>,
    place: &Arc<Place>,
) {
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
