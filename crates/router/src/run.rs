//! `namehop run`: a router from start to end in this process.

use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tracing::{debug, error, info};

use namehop_face::ring::{Frame, FrameRing};
use namehop_face::socket::FaceEvent;
use namehop_face::{FaceUri, LinkDrop};
use namehop_forward::buffer::{BufferPool, PacketBuffer};
use namehop_forward::engine::EngineEvent;
use namehop_forward::face::FaceId;
use namehop_manage::authentication::Authenticator;
use namehop_manage::metrics::MetricsServer;
use namehop_manage::server::Management;

use crate::config::{Config, ConfigError};
use crate::control::Control;
use crate::ports::RouterPool;
use crate::startup::{self, Parts, StartError};
use crate::{fib_file, logging, metrics, restore};

/// Commands that may wait for the socket service.
const SOCKET_COMMANDS: usize = 256;
/// Frames that the control thread takes from its ring at once.
const CONTROL_BURST: usize = 256;

/// How to run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Configuration file; the defaults without one.
    pub config: Option<PathBuf>,
}

/// Why a router did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The log filter is wrong.
    #[error("{0}")]
    Log(String),
    /// Something that the router needs cannot be had.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The forwarding thread ended by itself.
    #[error("the forwarding thread ended unexpectedly; the log says more")]
    ForwardingEnded,
}

/// Runs a router until it is told to stop by SIGINT or SIGTERM.
///
/// # Errors
/// Why it could not start. Nothing is left behind then.
pub fn run(options: &RunOptions) -> Result<(), RunError> {
    let config = match &options.config {
        Some(file) => Config::load(file)?,
        None => Config::default(),
    };
    logging::start(&config.log).map_err(RunError::Log)?;
    let control_runtime = new_runtime()?;
    // Before there is anything that a signal could leave behind, such as the socket file.
    let (mut interrupt, mut terminate) = {
        let _context = control_runtime.enter();
        (signal(SignalKind::interrupt()).map_err(signals)?, signal(SignalKind::terminate()).map_err(signals)?)
    };
    let authenticator = Authenticator::new(&startup::security_config(&config)).map_err(StartError::Trust)?;
    let parts = startup::build(&config)?;

    let Parts { sockets, ports, worker, worker_handle, rings, pool, faces, face_events, fib, journal, saved } = parts;
    let channels = sockets.local_uris();
    let metrics = match config.metrics.enabled {
        true => {
            Some(control_runtime.block_on(MetricsServer::bind(config.metrics.listen)).map_err(StartError::Metrics)?)
        }
        false => None,
    };
    let (socket_commands, socket_inbox) = mpsc::channel(SOCKET_COMMANDS);
    let (ended_sender, mut ended) = mpsc::channel::<()>(1);
    let processor = config.ports.worker_processor;
    let forwarding = thread::Builder::new()
        .name("forwarding".to_owned())
        .spawn(move || {
            // Dropped when this thread ends, however it ends.
            let _ended = ended_sender;
            LocalSet::new().block_on(&new_runtime()?, async move {
                let sockets = tokio::task::spawn_local(sockets.run(socket_inbox));
                match worker.serve(processor).await {
                    // The sockets were told to end before the worker.
                    Ok(()) => match sockets.await {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => error!(%error, "the socket service ended"),
                        Err(error) => error!(%error, "the socket service ended by itself"),
                    },
                    Err(error) => error!(%error, "forwarding has ended"),
                }
            });
            Ok::<(), RunError>(())
        })
        .map_err(|source| StartError::System { what: "cannot start the forwarding thread", source })?;

    LocalSet::new().block_on(&control_runtime, async move {
        let to_worker = Arc::clone(&rings.from_control);
        let output = {
            let (pool, ring, faces) = (pool.clone(), Arc::clone(&to_worker), Arc::clone(&faces));
            move |frame: Vec<u8>| {
                if let Err(reason) = send_to_worker(&pool, &ring, &frame) {
                    faces.link_drops().add(reason, 1);
                }
            }
        };
        let control = Control::new(faces, socket_commands, ports, worker_handle, fib, channels.clone(), journal);
        let management = Management::new(control, authenticator, output);
        tokio::task::spawn_local(Rc::clone(&management).run());
        tokio::task::spawn_local(follow_faces(Rc::clone(&management), face_events));
        restore::apply(&management, &config, saved).await;
        if let Some(file) = config.fib.file {
            tokio::task::spawn_local(fib_file::load(Rc::clone(&management), file));
        }
        announce(&channels, metrics.as_ref().map(MetricsServer::local_address));
        if let Some(server) = metrics {
            metrics::serve(server, &management);
        }

        let mut frames = Vec::with_capacity(CONTROL_BURST);
        let from_worker = &rings.to_control;
        let waker = Arc::clone(from_worker.waker());
        let result = loop {
            tokio::select! {
                biased;
                _ = interrupt.recv() => break Ok(()),
                _ = terminate.recv() => break Ok(()),
                _ = ended.recv() => break Err(RunError::ForwardingEnded),
                () = waker.wait(|| !from_worker.is_empty() || management.control().worker().has_events()) => {
                    from_worker.pop_burst(&mut frames, CONTROL_BURST);
                    for frame in frames.drain(..) {
                        management.receive(frame.buffer.bytes());
                    }
                    while let Some(event) = management.control().worker().next_event() {
                        engine_event(&management, event);
                    }
                    // Commands that wait for other threads go on in tasks of their own.
                    tokio::task::yield_now().await;
                }
            }
        };
        info!("shutting down");
        management.control().sync_state();
        management.control().shut_down_ports().await;
        management.control().shut_down_sockets().await;
        management.control().worker().shutdown();
        result
    })?;
    match forwarding.join() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(RunError::ForwardingEnded),
    }
}

/// A single-threaded runtime, one for each of the router's threads.
fn new_runtime() -> Result<runtime::Runtime, StartError> {
    let system = |source| StartError::System { what: "cannot start the asynchronous runtime", source };
    runtime::Builder::new_current_thread().enable_all().build().map_err(system)
}

fn signals(source: std::io::Error) -> RunError {
    RunError::Start(StartError::System { what: "cannot watch for signals", source })
}

/// Puts an answer of the management server into the worker's ring.
fn send_to_worker(
    pool: &RouterPool,
    ring: &FrameRing<<RouterPool as BufferPool>::Buffer>,
    frame: &[u8],
) -> Result<(), LinkDrop> {
    let buffer = pool.copy_of(frame).ok_or(LinkDrop::NoBuffer)?;
    let pushed = ring.push(Frame { face: FaceId::INTERNAL, endpoint: 0, buffer });
    ring.wake();
    pushed.map_err(|_| LinkDrop::ReceiveRingFull)
}

/// Passes on what happens to faces, one by one in a task of its own: a flood of connections must not keep commands
/// waiting.
async fn follow_faces(management: Rc<Management<Control>>, mut events: mpsc::UnboundedReceiver<FaceEvent>) {
    while let Some(event) = events.recv().await {
        let worker = management.control().worker();
        match &event {
            FaceEvent::Created(face) => worker.face_created(Arc::clone(face)),
            FaceEvent::Destroyed(face) => worker.face_destroyed(face.id()),
            FaceEvent::Up(_) | FaceEvent::Down(_) => {}
        }
        management.face_event(&event);
    }
}

fn engine_event(management: &Rc<Management<Control>>, event: EngineEvent) {
    match event {
        EngineEvent::RouteLearned { face, announcement } => match management.learn_route(&announcement, face) {
            Ok(prefix) => info!(%prefix, %face, "route learned from a prefix announcement"),
            Err(error) => debug!(%face, %error, "a prefix announcement was not taken"),
        },
        EngineEvent::RouteForgotten { prefix, face } => {
            management.forget_learned_route(prefix.as_ref(), face);
        }
        EngineEvent::AnnouncementWanted { request, name } => {
            let announcement = management.find_announcement(name.as_ref());
            management.control().worker().announcement_reply(request, announcement);
        }
    }
}

/// Tells the person at the terminal where the router is.
fn announce(channels: &[FaceUri], metrics: Option<std::net::SocketAddr>) {
    let mut text = format!("Namehop {} is running\n", env!("CARGO_PKG_VERSION"));
    for channel in channels {
        text.push_str(&format!("  listening on  {channel}\n"));
    }
    if let Some(address) = metrics {
        text.push_str(&format!("  metrics at    http://{address}/metrics\n"));
    }
    match channels.iter().find(|channel| matches!(channel, FaceUri::Unix(_))) {
        Some(unix) => text.push_str(&format!("Applications find it with\n  export NDN_CLIENT_TRANSPORT={unix}\n")),
        None => text.push_str("There is no Unix socket: applications need a transport line of their own.\n"),
    }
    // A closed standard output is no reason to stop forwarding.
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}
