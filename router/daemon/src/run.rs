//! `namehop run`: runs a router in this process, from start to end.

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use tokio::runtime;
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio::time::sleep_until;
use tracing::{debug, info, warn};

use namehop_disk::DiskCache;
use namehop_engine::engine::EngineEvent;
use namehop_face::ring::{Frame, FrameInlet};
use namehop_face::socket::FaceEvent;
use namehop_face::{FaceUri, LinkDrop};
use namehop_manage::authentication::Authenticator;
use namehop_manage::http::{BoundHttp, HttpServer};
use namehop_manage::server::{ControlPlane, Management};
use namehop_packet::{BufferPool, FaceId};

use crate::balancing::Balancing;
use crate::config::{self, Config, ConfigError};
use crate::control::Control;
use crate::logging::{self, LogError};
use crate::memory_budget::Budget;
use crate::neighbours::NeighbourQueue;
use crate::port_policy::PortPolicy;
use crate::saving::Saving;
use crate::startup::{self, RouterParts, StartError};
use crate::supervise::{Supervisor, fault_point};
use crate::token_file::TokenFile;
use crate::worker::WorkerRings;

use crate::{api_token, command_times, fib_file, metrics, placement, power, restore, worker};

/// Most commands that are queued for the socket service.
const SOCKET_COMMANDS: usize = 256;
/// Time between two checks for a changed time of day or a removed state file.
const SAVING_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Most frames that the control thread dequeues from its ring at once.
const CONTROL_BURST: usize = 256;
/// Most commands of neighbours, and events of engines, that the control thread handles before it serves local
/// applications again. Each may need a signature verification, which takes some tenths of a millisecond.
const MAX_OTHERS_AT_ONCE: usize = 8;

/// Options of `namehop run`.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Configuration file; `None` for the defaults.
    pub config: Option<PathBuf>,
}

/// The reason why a router did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Logging cannot start.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A resource that the router needs is not available.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A part of the router failed, so the router ended.
    #[error("the router ended because of a fault: {0}")]
    Fault(String),
}

/// Runs a router until it is told to stop by SIGINT, SIGTERM or SIGHUP, or until a part of it fails.
///
/// # Errors
/// The reason why the router could not start, or the part that failed. Nothing is left behind then except the saved
/// state.
pub fn run(options: &RunOptions) -> Result<(), RunError> {
    // Start before creating anything that a signal could leave behind, such as the socket file.
    let supervisor = Supervisor::start()
        .map_err(|source| StartError::System { what: "cannot watch for signals and faults", source })?;
    let result = run_supervised(options, &supervisor);
    let result = match (result, supervisor.first_fault()) {
        // The fault is the reason; other errors followed from it.
        (_, Some(fault)) => Err(RunError::Fault(fault)),
        // The router was told to end while it started.
        (Err(RunError::Start(StartError::Stopped)), None) => Ok(()),
        (result, None) => result,
    };
    logging::flush();
    result
}

fn run_supervised(options: &RunOptions, supervisor: &Supervisor) -> Result<(), RunError> {
    let config = match &options.config {
        Some(file) => Config::load(file)?,
        None => Config::default(),
    };
    logging::start(&config.log)?;
    let budget = Budget::of_host(&config);
    budget.log();
    let bounds = budget.bounds;
    let control_runtime = new_runtime()?;
    let mut authenticator =
        Authenticator::new(&startup::security_config(&config, &bounds)).map_err(StartError::Trust)?;
    let destinations = startup::readvertise_destinations(&config)?;
    let parts = startup::build(&config, &bounds, supervisor)?;
    // The state file is locked now, so no other router uses the file beside it.
    if authenticator.checks_times()
        && let Some(record) = command_times::record(&config)
    {
        authenticator.remember_times(record);
    }

    let RouterParts {
        sockets,
        ports,
        workers,
        handles,
        rings,
        from_control,
        dispatch,
        pool,
        faces,
        face_events,
        fib,
        journal,
        saved,
        disk,
    } = parts;
    let channels = sockets.local_uris();
    let metrics = match config.metrics.enabled {
        true => Some(BoundHttp::new(config.metrics.listen).map_err(StartError::Http)?),
        false => None,
    };
    let token = match config.metrics.enabled && config.api.enabled {
        true => api_token::of(&config).map_err(StartError::Token)?,
        false => None,
    };
    let (socket_commands, socket_inbox) = mpsc::channel(SOCKET_COMMANDS);
    let cpus = placement::worker_cpus(&config, workers.len());
    let idling = worker::Idling::of(&config.forwarding);
    let (watching_sockets, watching_worker) = (supervisor.clone(), supervisor.clone());
    let forwarding = thread::Builder::new()
        .name("forwarding".to_owned())
        .spawn(move || {
            let runtime = match new_runtime() {
                Ok(runtime) => runtime,
                Err(error) => return watching_worker.fault(error.to_string()),
            };
            LocalSet::new().block_on(&runtime, async move {
                let sockets = watching_sockets.watch("socket service", sockets.run(socket_inbox));
                let sockets = tokio::task::spawn_local(sockets);
                watching_worker.watch("forwarding worker", worker::serve(workers, cpus, idling)).await;
                // The sockets were told to end before the worker; their result is already reported.
                let _ = sockets.await;
            });
        })
        .map_err(|source| StartError::System { what: "cannot start the forwarding thread", source })?;

    let cs = config.content_store.cs_config(bounds.capacity_packets, bounds.capacity_bytes);
    let (watching, workers_to_end) = (supervisor.clone(), handles.clone());
    let keeps_disk = config.content_store.disk.as_ref().is_some_and(|disk| disk.keep);
    let erasures = disk.as_ref().filter(|_| keeps_disk).map(DiskCache::watch_erasures);
    let control = async move {
        let supervisor = watching;
        let output = {
            let (pool, faces) = (pool.clone(), Arc::clone(&faces));
            move |frame: Vec<u8>| {
                if let Err(reason) = send_to_workers(&pool, &from_control, &frame) {
                    faces.link_drops().add(reason, 1);
                }
            }
        };
        let saving = Saving::new(Arc::clone(&faces), journal, &saved, cs, erasures);
        let policy = PortPolicy::new(&config);
        let workers = (handles, Balancing::new(dispatch, config.forwarding.rebalance));
        let control = Control::new(faces, socket_commands, ports, policy, workers, fib, channels.clone(), saving);
        let management = Management::new(control, authenticator, output);
        management.readvertise_to(destinations);
        let expiring = Rc::clone(&management).run();
        tokio::task::spawn_local(supervisor.clone().watch_endless("management task", expiring));
        let following = follow_faces(Rc::clone(&management), face_events);
        tokio::task::spawn_local(supervisor.clone().watch_endless("face events task", following));
        let saving_owner = Rc::clone(&management);
        let check_saving = async move {
            loop {
                tokio::time::sleep(SAVING_CHECK_INTERVAL).await;
                saving_owner.control().saving().follow_clock();
                saving_owner.control().saving().restore_if_missing();
                saving_owner.control().saving().follow_erasures();
            }
        };
        tokio::task::spawn_local(supervisor.clone().watch_endless("saving task", check_saving));
        if management.control().workers().count() > 1 {
            let management = Rc::clone(&management);
            let balancing = async move { management.control().balance().await };
            tokio::task::spawn_local(supervisor.clone().watch_endless("balancing task", balancing));
        }
        if let Some(meter) = power::meter(&config.power) {
            let management = Rc::clone(&management);
            let watching = async move { power::watch(meter, management.control()).await };
            tokio::task::spawn_local(supervisor.clone().watch_endless("power meter", watching));
        }
        let starting = async {
            fault_point("restoring");
            let restored = management.control().saving().description(&saved);
            restore::apply(&management, &config, saved).await;
            if let Some(file) = config.fib.file {
                // This task ends when the file is loaded.
                tokio::task::spawn_local(fib_file::load(Rc::clone(&management), file));
            }
            // All workers have answered when this returns.
            management.control().sample_latency(NonZeroU32::new(config.metrics.latency_sample)).await;
            // The router opens its listeners last, when all parts are able to answer.
            management.control().open_sockets().await?;
            let metrics = metrics.map(BoundHttp::listen).transpose()?;
            announce(&channels, restored, metrics.as_ref().map(HttpServer::local_address), &config.api, token.as_ref());
            if let Some(server) = metrics {
                let server = server.allow_hosts(config.metrics.allowed_hosts.clone());
                let server = match config.api.enabled {
                    true => {
                        let (inside, answering) = management.inside();
                        tokio::task::spawn_local(supervisor.clone().watch_endless("API task", answering));
                        server.with_api(inside, token.map(|token| token.token), config.api.local)
                    }
                    false => server,
                };
                metrics::serve(server, &management, supervisor.clone());
            }
            notify_service_manager(NotifyState::Ready);
            Ok(())
        };
        let started: Result<(), StartError> = tokio::select! {
            biased;
            _ = supervisor.ended() => Ok(()),
            started = starting => started,
        };
        if started.is_ok() {
            serve(&management, &rings, &supervisor).await;
        }
        info!("shutting down");
        notify_service_manager(NotifyState::Stopping);
        supervisor.expect_ends();
        management.control().saving().follow_clock();
        management.control().saving().restore_if_missing();
        management.control().saving().follow_erasures();
        management.control().saving().sync();
        management.control().shut_down_ports().await;
        management.control().shut_down_sockets().await;
        started
    };
    // The supervisor already knows of a panic here. The control thread is gone then, and with it the command channel of
    // the sockets, which end for this reason.
    let started = panic::catch_unwind(AssertUnwindSafe(|| LocalSet::new().block_on(&control_runtime, control)));
    supervisor.expect_ends();
    workers_to_end.shutdown();
    let _ = forwarding.join();
    // Writes the last Data that the workers have evicted.
    disk.into_iter().for_each(DiskCache::stop);
    Ok(started.unwrap_or(Ok(()))?)
}

/// Serves management commands and events of the engines until the router ends.
async fn serve(management: &Rc<Management<Control>>, rings: &WorkerRings, supervisor: &Supervisor) {
    let mut frames = Vec::with_capacity(CONTROL_BURST);
    let (from_worker, from_neighbours) = (&rings.to_control, &rings.to_control_from_neighbours);
    let mut neighbours = NeighbourQueue::new(Instant::now());
    let waker = Arc::clone(from_worker.waker());
    let has_work =
        || !from_worker.is_empty() || !from_neighbours.is_empty() || management.control().workers().has_events();
    let ended = supervisor.ended();
    tokio::pin!(ended);
    loop {
        let next_command_at = neighbours.next_command_at(Instant::now());
        tokio::select! {
            biased;
            _ = &mut ended => break,
            () = waker.wait(has_work) => {}
            () = sleep_until(next_command_at.unwrap_or_else(Instant::now).into()), if next_command_at.is_some() => {}
        }
        from_worker.pop_burst(&mut frames, CONTROL_BURST);
        for frame in frames.drain(..) {
            management.receive(frame.buffer.bytes());
        }
        from_neighbours.pop_burst(&mut frames, from_neighbours.capacity());
        for frame in frames.drain(..) {
            if let Some((face, _)) = neighbours.push(frame.face, frame.buffer) {
                count_refused(management.control(), face);
            }
        }
        let now = Instant::now();
        for buffer in std::iter::from_fn(|| neighbours.pop(now)).take(MAX_OTHERS_AT_ONCE) {
            management.receive(buffer.bytes());
        }
        let next_event = || management.control().workers().next_event();
        for (worker, event) in std::iter::from_fn(next_event).take(MAX_OTHERS_AT_ONCE) {
            engine_event(management, worker, event);
        }
        // Commands that wait for other threads continue in their own tasks.
        tokio::task::yield_now().await;
    }
}

/// Creates a single-threaded runtime; each of the router's threads with tasks has its own.
fn new_runtime() -> Result<runtime::Runtime, StartError> {
    let system = |source| StartError::System { what: "cannot start the asynchronous runtime", source };
    runtime::Builder::new_current_thread().enable_all().build().map_err(system)
}

/// Enqueues a packet of the management server to the worker that owns it.
fn send_to_workers(pool: &BufferPool, inlet: &FrameInlet, frame: &[u8]) -> Result<(), LinkDrop> {
    let buffer = pool.copy_of(frame).ok_or(LinkDrop::NoBuffer)?;
    let pushed = inlet.push(Frame::new(FaceId::INTERNAL, 0, buffer));
    inlet.wake();
    pushed.map_err(|_| LinkDrop::ReceiveRingFull)
}

/// Counts a command of a neighbour that was dropped because the queue is full.
fn count_refused(control: &Control, face: FaceId) {
    match control.faces().get(face) {
        Some(face) => face.counters.count_transport_drop(LinkDrop::TooManyCommands),
        None => control.faces().link_drops().add(LinkDrop::TooManyCommands, 1),
    }
}

/// Forwards events of faces to workers and management, one by one in a separate task: a flood of connections must not
/// delay commands.
async fn follow_faces(management: Rc<Management<Control>>, mut events: mpsc::UnboundedReceiver<FaceEvent>) {
    while let Some(event) = events.recv().await {
        let workers = management.control().workers();
        match &event {
            // On a single worker, ports add and remove their faces themselves. Other workers need the event.
            FaceEvent::Created(face) | FaceEvent::Destroyed(face)
                if face.remote_uri().is_on_port(Some(&face.local_uri())) && workers.count() == 1 => {}
            FaceEvent::Created(face) => workers.face_created(face),
            FaceEvent::Destroyed(face) => workers.face_destroyed(face.id()),
            FaceEvent::Changed(face) | FaceEvent::Up(face) | FaceEvent::Down(face) => workers.face_changed(face.id()),
        }
        management.face_event(&event);
    }
}

fn engine_event(management: &Rc<Management<Control>>, worker: usize, event: EngineEvent) {
    match event {
        EngineEvent::RouteLearned { face, announcement } => match management.learn_route(&announcement, face) {
            Ok(prefix) => info!(%prefix, %face, "route learned from a prefix announcement"),
            Err(error) => debug!(%face, %error, "prefix announcement rejected"),
        },
        EngineEvent::RouteForgotten { prefix, face } => {
            management.forget_learned_route(prefix.as_ref(), face);
        }
        EngineEvent::LimitReached { reason, face } => {
            let setting = reason.setting().unwrap_or_default();
            warn!(%face, %reason, "packets are dropped at a limit; to avoid this, raise {setting} in [forwarding]");
        }
        EngineEvent::Traced(trace) => management.traced(worker, &trace),
        EngineEvent::AnnouncementWanted { request, name } => {
            let announcement = management.find_announcement(name.as_ref());
            management.control().workers().announcement_reply(worker, request, announcement);
        }
    }
}

/// Reports the progress to systemd, if a unit of `Type=notify` started the router.
fn notify_service_manager(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        warn!(%error, "cannot notify the service manager");
    }
}

/// Prints the addresses of the router for the user at the terminal.
fn announce(
    channels: &[FaceUri],
    restored: Option<String>,
    metrics: Option<SocketAddr>,
    api: &config::Api,
    token: Option<&TokenFile>,
) {
    let mut text = format!("Namehop {} is running\n", env!("CARGO_PKG_VERSION"));
    for channel in channels {
        text.push_str(&format!("  listening on  {channel}\n"));
    }
    if let Some(restored) = restored {
        text.push_str(&format!("  restored      {restored}\n"));
    }
    if let Some(address) = metrics {
        text.push_str(&format!("  metrics at    http://{address}/metrics\n"));
        if api.enabled {
            let token = token.map(|token| format!(", token in {}", token.path.display())).unwrap_or_default();
            text.push_str(&format!("  API at        http://{address}/api/v1{token}\n"));
        }
    }
    match channels.iter().find(|channel| matches!(channel, FaceUri::Unix(_))) {
        Some(unix) => text.push_str(&format!("Applications find it with\n  export NDN_CLIENT_TRANSPORT={unix}\n")),
        None => text.push_str("There is no Unix socket: set `transport` in each application's client.conf.\n"),
    }
    // On a separate thread: neither a closed standard output nor one without a reader may stop the router.
    let _ = thread::Builder::new().name("announcement".to_owned()).spawn(move || {
        let mut output = std::io::stdout().lock();
        let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    });
}
