//! Faces over sockets: Unix, TCP, UDP (unicast and multicast) and WebSocket, served by one thread.
//!
//! [`SocketService::new`] binds the sockets of all listeners, so that a port in use or a missing permission is reported
//! at once. An address or multicast interface that does not exist yet is not an error: the service uses it as soon as
//! it appears.
//!
//! The service starts to listen at [`SocketCommand::Open`], which the router sends when it can answer peers. Until then
//! the Unix socket does not exist, TCP connections are refused, and datagrams wait in the kernel.
//!
//! [`SocketService::run`] serves the sockets on a tokio `LocalSet`. Received packets go to the worker through one ring,
//! packets to send come through another. The worker may be a task on the same `LocalSet` or another thread.
//!
//! Receiving: a readable socket is read once (`stream`, `udp`), and the bytes are cut into frames. Each frame is copied
//! into a pool buffer and pushed to the ring. Then the worker is woken once. Sending: `dispatch` moves frames from the
//! ring to per-face queues and then flushes each queue with one system call.
//!
//! [`FaceEvent::Created`] is sent before the first frame of that face is pushed to the ring. If the event reaches the
//! worker on another path, a frame may overtake it.

mod backlog;
mod config;
mod connected;
mod connection;
mod create;
mod datagram_io;
mod datagram_path;
mod dispatch;
mod error;
mod follow;
mod framing;
mod host;
mod inlet;
mod interfaces;
mod keep_alive;
mod listen;
mod locality;
mod mtu;
mod multicast;
mod origin;
mod outlet;
mod permits;
mod reachability;
mod send_buffer;
mod shared;
mod silence;
mod standing;
mod stream;
mod tcp;
mod udp;
mod unix;
mod watch;
mod websocket;

use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use namehop_packet::{BufferPool, FaceId};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::latency::LatencyRecorder;
use crate::registry::{Face, FaceTable, FaceUpdate};
use crate::ring::{FrameRing, SocketInlets};
use crate::uri::FaceUri;
use connection::InternetListener;
pub use framing::is_worth_a_face;
use listen::Bound;
use shared::ServiceState;

pub use config::{
    MulticastConfig, MulticastInterfaces, NDN_MULTICAST_V4, NDN_MULTICAST_V6, SocketConfig, UnixListenerConfig,
};
pub use datagram_io::kernel_drops;
pub use error::{CreateError, ListenError};
pub use listen::BoundTcp;
pub use locality::{is_loopback_origin, shows_no_proxy};

/// A command of the control thread to the service.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "commands are few and short-lived")]
pub enum SocketCommand {
    /// Create a face (NFD management protocol, `faces/create`). A permanent TCP or WebSocket face is created at once,
    /// down, and comes up when its peer answers. A persistent one is created only if the peer answers in time.
    CreateFace {
        /// Address of the peer; must be canonical.
        uri: FaceUri,
        /// Requested address of this end, if any. No socket transport supports it.
        local_uri: Option<FaceUri>,
        /// Requested properties.
        params: FaceUpdate,
        /// Receives the face, or the reason why it was not created.
        reply: oneshot::Sender<Result<Arc<Face>, CreateError>>,
    },
    /// Close a face.
    DestroyFace {
        /// Face id.
        id: FaceId,
        /// Receives whether it was a face of this service.
        reply: oneshot::Sender<bool>,
    },
    /// Replace the latency recorder; `None` stops measuring latency.
    SwapLatency {
        /// The new recorder.
        next: Option<Box<LatencyRecorder>>,
        /// Receives the previous recorder.
        reply: oneshot::Sender<Option<Box<LatencyRecorder>>>,
    },
    /// Report that the multicast faces exist.
    AwaitStart {
        /// Receives the report.
        reply: oneshot::Sender<()>,
    },
    /// Start to listen, and to receive on UDP sockets.
    Open {
        /// Receives the error of a listener that could not be opened.
        reply: oneshot::Sender<Result<(), ListenError>>,
    },
    /// Close everything and return from [`SocketService::run`].
    Shutdown,
}

/// A change of a face.
#[derive(Debug, Clone)]
pub enum FaceEvent {
    /// The face was created.
    Created(Arc<Face>),
    /// The face was closed.
    Destroyed(Arc<Face>),
    /// The link of the face works again.
    Up(Arc<Face>),
    /// The link of the face is broken; the service tries to restore it.
    Down(Arc<Face>),
    /// The link of the face carries larger or smaller frames than before.
    Changed(Arc<Face>),
}

/// The socket service, ready to run.
pub struct SocketService {
    config: SocketConfig,
    pool: BufferPool,
    faces: Arc<FaceTable>,
    to_workers: SocketInlets,
    from_worker: Arc<FrameRing>,
    events: mpsc::UnboundedSender<FaceEvent>,
    tcp: Vec<Bound>,
    websocket: Vec<Bound>,
    udp: Vec<Bound>,
    multicast: Vec<multicast::Joined>,
}

impl SocketService {
    /// Binds the socket of every listener of `config`.
    ///
    /// # Errors
    /// When a socket cannot be bound; the sockets bound so far are closed.
    pub fn new(
        config: SocketConfig,
        pool: BufferPool,
        faces: Arc<FaceTable>,
        to_workers: SocketInlets,
        from_worker: Arc<FrameRing>,
        events: mpsc::UnboundedSender<FaceEvent>,
    ) -> Result<Self, ListenError> {
        config.unix.iter().try_for_each(unix::check)?;
        let (mut tcp, mut websocket, mut udp) = (Vec::new(), Vec::new(), Vec::new());
        for &address in &config.tcp {
            tcp.extend(listen::tcp("TCP", address)?);
        }
        for &address in &config.websocket {
            websocket.extend(listen::tcp("WebSocket", address)?);
        }
        for &address in &config.udp {
            udp.extend(listen::udp(address, &config)?);
        }
        let multicast = multicast::join(&config)?;
        Ok(SocketService { config, pool, faces, to_workers, from_worker, events, tcp, websocket, udp, multicast })
    }

    /// Returns the addresses listened on, with the ports that the kernel chose (NFD management protocol,
    /// `faces/channels`).
    pub fn local_uris(&self) -> Vec<FaceUri> {
        let unix = self.config.unix.iter().map(unix::local_uri);
        let tcp = self.tcp.iter().map(|bound| FaceUri::tcp(bound.local));
        let websocket = self.websocket.iter().map(|bound| FaceUri::web_socket(bound.local));
        let udp = self.udp.iter().map(|bound| FaceUri::udp(bound.local));
        let multicast = self.multicast.iter().map(multicast::Joined::local_uri);
        unix.chain(tcp).chain(websocket).chain(udp).chain(multicast).collect()
    }

    /// Serves all sockets and `commands` until [`SocketCommand::Shutdown`], or until all senders of commands are
    /// dropped. Must be awaited inside a tokio `LocalSet` with I/O and time enabled.
    ///
    /// # Errors
    /// When the runtime cannot watch a socket because file descriptors or memory have run out. Also when a task of the
    /// service has ended.
    // Boxed, so that this crate compiles the service, with its own optimisation, and not the crate that awaits it.
    pub fn run(
        self,
        commands: mpsc::Receiver<SocketCommand>,
    ) -> Pin<Box<dyn Future<Output = Result<(), ListenError>>>> {
        Box::pin(self.serve(commands))
    }

    async fn serve(self, mut commands: mpsc::Receiver<SocketCommand>) -> Result<(), ListenError> {
        let listened_on = [("TCP", &self.tcp), ("WebSocket", &self.websocket), ("UDP", &self.udp)];
        let listened_on = listened_on
            .into_iter()
            .flat_map(|(protocol, bound)| bound.iter().map(move |bound| (protocol, bound.local)))
            .collect();
        let shared = Rc::new(ServiceState::new(
            self.config,
            self.pool,
            self.faces,
            self.to_workers,
            self.from_worker,
            self.events,
            listened_on,
        ));
        let mut tasks = JoinSet::new();
        let watched = |source| ListenError::System { action: "watch a socket for events", source };
        for bound in self.udp {
            let limit_bytes = shared.config.datagram_queue_bytes;
            let channel = udp::Channel::new(bound.socket, bound.local, udp::Audience::Anybody, limit_bytes);
            shared.channels.borrow_mut().push(channel.map_err(watched)?);
        }
        if shared.config.multicast.interfaces != MulticastInterfaces::Off {
            let memberships = multicast::Memberships::open(&shared, self.multicast).map_err(watched)?;
            tasks.spawn_local(memberships.keep());
        }
        let mut listeners = Some(Listeners { tcp: self.tcp, websocket: self.websocket });
        tasks.spawn_local(follow::follow(Rc::clone(&shared)));
        tasks.spawn_local(silence::run(Rc::clone(&shared)));
        tasks.spawn_local(keep_alive::run(Rc::clone(&shared)));
        tasks.spawn_local(dispatch::run(Rc::clone(&shared)));
        loop {
            let command = tokio::select! {
                command = commands.recv() => command,
                // None of these tasks ends by itself. Without one of them the service would work only in part.
                Some(_) = tasks.join_next() => {
                    let source = io::Error::other("a task ended unexpectedly");
                    return Err(ListenError::System { action: "continue to serve sockets", source });
                }
            };
            let Some(command) = command else { break };
            match command {
                SocketCommand::CreateFace { uri, local_uri, params, reply } => {
                    create::create(&shared, uri, local_uri.as_ref(), params, reply);
                }
                SocketCommand::DestroyFace { id, reply } => {
                    let _ = reply.send(shared.close(id));
                }
                SocketCommand::SwapLatency { next, reply } => {
                    let _ = reply.send(LatencyRecorder::swap(&mut shared.latency.borrow_mut(), next));
                }
                // Commands are received only after the multicast faces exist, so this can be answered at once.
                SocketCommand::AwaitStart { reply } => drop(reply.send(())),
                SocketCommand::Open { reply } => {
                    let opened = listeners.take().map_or(Ok(()), |listeners| listeners.open(&shared, &mut tasks));
                    let _ = reply.send(opened);
                }
                SocketCommand::Shutdown => break,
            }
        }
        tasks.shutdown().await;
        shared.close_all();
        Ok(())
    }
}

/// Sockets that are bound but do not listen yet.
struct Listeners {
    tcp: Vec<Bound>,
    websocket: Vec<Bound>,
}

impl Listeners {
    /// Starts to listen, on Unix sockets last: when their files exist, all other listeners work.
    fn open(self, shared: &Rc<ServiceState>, tasks: &mut JoinSet<()>) -> Result<(), ListenError> {
        let listening = |protocol, bound: Bound, loopback_is_local| {
            let listening =
                bound.listen(shared.config.backlog).and_then(|()| TcpListener::from_std(bound.socket.into()));
            let socket = listening.map_err(|error| ListenError::internet(protocol, bound.local, error))?;
            Ok(InternetListener { socket, loopback_is_local })
        };
        for bound in self.tcp {
            let listener = listening("TCP", bound, shared.config.tcp_is_local)?;
            tasks.spawn_local(tcp::accept(Rc::clone(shared), listener, tcp::serve_accepted));
        }
        for bound in self.websocket {
            let listener = listening("WebSocket", bound, shared.config.websocket_is_local)?;
            tasks.spawn_local(tcp::accept(Rc::clone(shared), listener, websocket::serve_accepted));
        }
        for channel in shared.channels.borrow().iter() {
            tasks.spawn_local(udp::receive(Rc::clone(shared), Rc::clone(channel)));
            tasks.spawn_local(udp::expire(Rc::clone(shared), Rc::clone(channel)));
        }
        for config in &shared.config.unix {
            let bound = unix::listen(config, shared.config.backlog)?.watch();
            let bound = bound.map_err(|source| ListenError::System { action: "watch a socket for events", source })?;
            tasks.spawn_local(unix::keep(Rc::clone(shared), bound));
        }
        Ok(())
    }
}

impl fmt::Debug for SocketService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketService").field("local_uris", &self.local_uris()).finish_non_exhaustive()
    }
}
