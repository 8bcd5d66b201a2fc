//! The control thread: it owns the management server, starts it in steps, serves it, and stops the router in steps.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tracing::info;

use namehop_config::Config;
use namehop_config::token_file::TokenFile;
use namehop_disk::DiskCache;
use namehop_face::registry::FaceTable;
use namehop_face::ring::{Frame, FrameInlet};
use namehop_face::socket::{FaceEvent, SocketCommand};
use namehop_face::{FaceUri, LinkDrop};
use namehop_manage::authentication::Authenticator;
use namehop_manage::http::{BoundHttp, HttpServer};
use namehop_manage::readvertise::Destination;
use namehop_manage::server::{ControlPlane, Management};
use namehop_packet::{BufferPool, FaceId};

use super::announce::{announce, notify_service_manager};
use super::serve::serve;
use crate::balancing::Balancing;
use crate::control::Control;
use crate::memory_budget::Bounds;
use crate::port_policy::PortPolicy;
use crate::saving::Saving;
use crate::startup::{ControlParts, StartError};
use crate::state::SavedState;
use crate::supervise::Supervisor;
use crate::{api_token, fib_file, metrics, power, restore};
use namehop_worker::fault_point;

/// Time between two checks for a changed time of day or a removed state file.
const SAVING_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The HTTP server's socket, which does not listen yet, and the token of its API.
pub(super) struct HttpParts {
    bound: Option<BoundHttp>,
    token: Option<TokenFile>,
}

impl HttpParts {
    /// Binds the socket, and reads or creates the token, as far as the configuration enables them.
    pub(super) fn prepare(config: &Config) -> Result<HttpParts, StartError> {
        let (has_server, has_api) = (config.metrics.enabled, config.metrics.enabled && config.api.enabled);
        let bound = has_server.then(|| BoundHttp::new(config.metrics.listen)).transpose().map_err(StartError::Http)?;
        let token = if has_api { api_token::of(config).map_err(StartError::Token)? } else { None };
        Ok(HttpParts { bound, token })
    }
}

/// What the control thread needs to start.
pub(super) struct ControlThread {
    pub(super) config: Config,
    pub(super) bounds: Bounds,
    pub(super) supervisor: Supervisor,
    pub(super) authenticator: Authenticator,
    pub(super) destinations: Vec<Destination>,
    pub(super) parts: ControlParts,
    pub(super) http: HttpParts,
    pub(super) socket_commands: mpsc::Sender<SocketCommand>,
}

impl ControlThread {
    /// Starts management, serves it until the router ends, and stops the parts that it controls.
    ///
    /// # Errors
    /// The reason why the router cannot start.
    pub(super) async fn run(self, disk: Option<&DiskCache>) -> Result<(), StartError> {
        let ControlThread { config, bounds, supervisor, authenticator, destinations, parts, http, socket_commands } =
            self;
        let ControlParts {
            ports,
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
            channels,
        } = parts;
        let output = output(pool, Arc::clone(&faces), from_control);
        let cs = config.content_store.cs_config(bounds.capacity_packets, bounds.capacity_bytes);
        let keeps_disk = config.content_store.disk.as_ref().is_some_and(|disk| disk.keep);
        let erasures = disk.filter(|_| keeps_disk).map(DiskCache::watch_erasures);
        let saving = Saving::new(Arc::clone(&faces), journal, &saved, cs, erasures);
        let workers = (handles, Balancing::new(dispatch, config.forwarding.rebalance));
        let policy = PortPolicy::new(&config);
        let control = Control::new(faces, socket_commands, ports, policy, workers, fib, channels.clone(), saving);
        let management = Management::new(control, authenticator, output);
        management.readvertise_to(destinations);
        spawn_tasks(&management, face_events, &config, &supervisor);
        let started = tokio::select! {
            biased;
            _ = supervisor.ended() => Ok(()),
            started = start(&management, config, saved, http, &channels, &supervisor) => started,
        };
        if started.is_ok() {
            serve(&management, &rings, &supervisor).await;
        }
        stop(&management, &supervisor).await;
        started
    }
}

/// Returns the function that sends packets of the management server to the workers.
fn output(pool: BufferPool, faces: Arc<FaceTable>, from_control: FrameInlet) -> impl Fn(Vec<u8>) + 'static {
    move |frame: Vec<u8>| {
        if let Err(reason) = send_to_workers(&pool, &from_control, &frame) {
            faces.link_drops().add(reason, 1);
        }
    }
}

/// Enqueues a packet of the management server to the worker that owns it.
fn send_to_workers(pool: &BufferPool, inlet: &FrameInlet, frame: &[u8]) -> Result<(), LinkDrop> {
    let buffer = pool.copy_of(frame).ok_or(LinkDrop::NoBuffer)?;
    let pushed = inlet.push(Frame::new(FaceId::INTERNAL, 0, buffer));
    inlet.wake();
    pushed.map_err(|_| LinkDrop::ReceiveRingFull)
}

/// Starts the tasks that run as long as the router.
fn spawn_tasks(
    management: &Rc<Management<Control>>,
    face_events: mpsc::UnboundedReceiver<FaceEvent>,
    config: &Config,
    supervisor: &Supervisor,
) {
    let expiring = Rc::clone(management).run();
    spawn_local(supervisor.clone().watch_endless("management task", expiring));
    let following = follow_faces(Rc::clone(management), face_events);
    spawn_local(supervisor.clone().watch_endless("face events task", following));
    let checking = check_saving(Rc::clone(management));
    spawn_local(supervisor.clone().watch_endless("saving task", checking));
    if management.control().workers().count() > 1 {
        let management = Rc::clone(management);
        let balancing = async move { management.control().balance().await };
        spawn_local(supervisor.clone().watch_endless("balancing task", balancing));
    }
    if let Some(meter) = power::meter(&config.power) {
        let management = Rc::clone(management);
        let watching = async move { power::watch(meter, management.control()).await };
        spawn_local(supervisor.clone().watch_endless("power meter", watching));
    }
}

/// Applies configured and saved settings, and opens the listeners last, when all parts are able to answer.
async fn start(
    management: &Rc<Management<Control>>,
    config: Config,
    saved: SavedState,
    http: HttpParts,
    channels: &[FaceUri],
    supervisor: &Supervisor,
) -> Result<(), StartError> {
    fault_point("restoring");
    let restored = management.control().saving().description(&saved);
    restore::apply(management, &config, saved).await;
    if let Some(file) = config.fib.file.clone() {
        // This task ends when the file is loaded.
        spawn_local(fib_file::load(Rc::clone(management), file));
    }
    // All workers have answered when this returns.
    management.control().sample_latency(NonZeroU32::new(config.metrics.latency_sample)).await;
    management.control().open_sockets().await?;
    let HttpParts { bound, token } = http;
    let server = bound.map(BoundHttp::listen).transpose()?;
    announce(channels, restored, server.as_ref().map(HttpServer::local_address), &config.api, token.as_ref());
    if let Some(server) = server {
        serve_http(server, token, management, &config, supervisor);
    }
    notify_service_manager(NotifyState::Ready);
    Ok(())
}

/// Starts the HTTP server, with the API if the configuration enables it.
fn serve_http(
    server: HttpServer,
    token: Option<TokenFile>,
    management: &Rc<Management<Control>>,
    config: &Config,
    supervisor: &Supervisor,
) {
    let mut server = server.allow_hosts(config.metrics.allowed_hosts.clone());
    if config.api.enabled {
        let (inside, answering) = management.inside();
        spawn_local(supervisor.clone().watch_endless("API task", answering));
        server = server.with_api(inside, token.map(|token| token.token), config.api.local);
    }
    metrics::serve(server, management, supervisor.clone());
}

/// Saves what is not saved yet, and closes ports and sockets.
async fn stop(management: &Rc<Management<Control>>, supervisor: &Supervisor) {
    info!("shutting down");
    notify_service_manager(NotifyState::Stopping);
    supervisor.expect_ends();
    let control = management.control();
    save_pending(control);
    control.saving().sync();
    control.shut_down_ports().await;
    control.shut_down_sockets().await;
}

/// Saves, from time to time, what no command saves.
async fn check_saving(management: Rc<Management<Control>>) {
    loop {
        tokio::time::sleep(SAVING_CHECK_INTERVAL).await;
        save_pending(management.control());
    }
}

/// Saves a changed time of day, a removed state file, and erasures that the disk has recorded.
fn save_pending(control: &Control) {
    control.saving().follow_clock();
    control.saving().restore_if_missing();
    control.saving().follow_erasures();
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
