//! Faces over sockets: Unix, TCP, UDP (unicast and multicast) and WebSocket, served by one thread.
//!
//! [`SocketService::new`] binds the sockets of every listener, so that a taken port or a missing permission is known at once; an address or
//! multicast interface that is not there yet is waited for. Peers are heard from [`SocketCommand::Open`] on, which comes when the router
//! can answer them: until then the Unix socket is not there, TCP connections are refused, and datagrams wait in the kernel.
//! [`SocketService::run`] serves them on a tokio `LocalSet`. Received packets go to the worker through one ring,
//! packets to send come through another; the worker may be a task on the same `LocalSet` or a thread of its own.
//!
//! How a packet comes in: a readable socket is read once (`stream`, `udp`), the bytes are cut into frames, each frame
//! is copied into a pool buffer and pushed to the ring, and the worker is woken once. How it goes out: `dispatch`
//! moves frames from the ring to per-face queues and then flushes each of these with one system call.
//!
//! A [`FaceEvent::Created`] is sent before the first frame of that face goes on the ring. Whoever passes the event on
//! to the worker by another way must expect that a frame may overtake it.

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
pub(crate) use framing::is_worth_a_face;
use listen::Bound;
use shared::Shared;

pub use config::{
    MulticastConfig, MulticastInterfaces, NDN_MULTICAST_V4, NDN_MULTICAST_V6, SocketConfig, UnixListenerConfig,
};
pub use datagram_io::kernel_drops;
pub use error::{CreateError, ListenError};
pub use listen::BoundTcp;
pub use locality::{is_loopback_origin, shows_no_proxy};

/// What the control thread asks of the service.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "commands are few and live for a moment")]
pub enum SocketCommand {
    /// Make a face (NFD management protocol, `faces/create`). A permanent TCP or WebSocket face is made at once, down,
    /// and comes up when its peer answers; a persistent one only when the peer answers in time.
    CreateFace {
        /// Address of the peer; must be canonical.
        uri: FaceUri,
        /// Address of this end, if one was asked for. No transport over sockets allows that.
        local_uri: Option<FaceUri>,
        /// Properties asked for.
        params: FaceUpdate,
        /// Gets the face or the reason.
        reply: oneshot::Sender<Result<Arc<Face>, CreateError>>,
    },
    /// Close a face.
    DestroyFace {
        /// Its number.
        id: FaceId,
        /// Gets whether it was a face of this service.
        reply: oneshot::Sender<bool>,
    },
    /// Measure latency with this recorder from now on, or not any more.
    SwapLatency {
        /// The new one.
        next: Option<Box<LatencyRecorder>>,
        /// Gets the one before.
        reply: oneshot::Sender<Option<Box<LatencyRecorder>>>,
    },
    /// Say when the multicast faces are made.
    AwaitStart {
        /// Gets word of it.
        reply: oneshot::Sender<()>,
    },
    /// Begin to listen, and to hear the peers of UDP sockets.
    Open {
        /// Gets what could not be opened, if anything.
        reply: oneshot::Sender<Result<(), ListenError>>,
    },
    /// Close everything and return from [`SocketService::run`].
    Shutdown,
}

/// What happened to a face.
#[derive(Debug, Clone)]
pub enum FaceEvent {
    /// It was made.
    Created(Arc<Face>),
    /// It is gone.
    Destroyed(Arc<Face>),
    /// Its link works again.
    Up(Arc<Face>),
    /// Its link is broken; the service tries to restore it.
    Down(Arc<Face>),
    /// Its link carries larger or smaller frames.
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
    /// When one cannot be bound; those bound before are closed again.
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

    /// Addresses listened on, with the ports that the kernel chose (NFD management protocol, `faces/channels`).
    pub fn local_uris(&self) -> Vec<FaceUri> {
        let unix = self.config.unix.iter().map(unix::local_uri);
        let tcp = self.tcp.iter().map(|bound| FaceUri::tcp(bound.local));
        let websocket = self.websocket.iter().map(|bound| FaceUri::web_socket(bound.local));
        let udp = self.udp.iter().map(|bound| FaceUri::udp(bound.local));
        let multicast = self.multicast.iter().map(multicast::Joined::local_uri);
        unix.chain(tcp).chain(websocket).chain(udp).chain(multicast).collect()
    }

    /// Serves all sockets and `commands` until told to shut down, or until nobody can send commands any more. Must be
    /// awaited inside a tokio `LocalSet` with I/O and time enabled.
    ///
    /// # Errors
    /// When the runtime cannot watch a socket, for want of file descriptors or memory.
    pub async fn run(self, mut commands: mpsc::Receiver<SocketCommand>) -> Result<(), ListenError> {
        let listened_on = [("TCP", &self.tcp), ("WebSocket", &self.websocket), ("UDP", &self.udp)];
        let listened_on = listened_on
            .into_iter()
            .flat_map(|(protocol, bound)| bound.iter().map(move |bound| (protocol, bound.local)))
            .collect();
        let shared = Rc::new(Shared::new(
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
                // None of these tasks ends by itself: without one of them the service would be there only in part.
                Some(_) = tasks.join_next() => {
                    let source = io::Error::other("one of its tasks ended by itself");
                    return Err(ListenError::System { action: "go on serving sockets", source });
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
                // Commands are taken only after that.
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

/// Sockets that are bound and do not listen yet.
struct Listeners {
    tcp: Vec<Bound>,
    websocket: Vec<Bound>,
}

impl Listeners {
    /// Begins to listen, on Unix sockets last: when their files are there, everything is.
    fn open(self, shared: &Rc<Shared>, tasks: &mut JoinSet<()>) -> Result<(), ListenError> {
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
