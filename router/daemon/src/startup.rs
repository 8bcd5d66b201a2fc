//! Builds the parts of a router from its configuration: memory, tables, listeners.

mod workers;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::{debug, info};

use namehop_config::token_file::TokenError;
use namehop_config::{Auto, Config, OriginText, Trust};
use namehop_disk::DiskCache;
use namehop_engine::dispatch::NameDispatch;
use namehop_engine::engine::EngineError;
use namehop_engine::fib::{FibError, FibWriter};
use namehop_engine::strategy::StrategyInstance;
use namehop_face::FaceUri;
use namehop_face::registry::{FaceFlags, FaceParams, FacePersistency, FaceTable};
use namehop_face::ring::{FrameInlet, FrameRing, SocketInlets};
use namehop_face::socket::{
    FaceEvent, ListenError, MulticastConfig, MulticastInterfaces, SocketConfig, SocketService, UnixListenerConfig,
};
use namehop_hash::{DispatchKey, HashKey};
use namehop_manage::authentication::{Anchor, Rule, SecurityConfig, Signer, TrustConfig, TrustError};
use namehop_manage::http::HttpError;
use namehop_manage::readvertise::{DaemonSettings, Destination, GatewaySettings, IdentityError, SigningIdentity};
use namehop_manage::rib::RouteLimits;
use namehop_packet::{BufferPool, FaceId, FaceScope};
use namehop_port::faces::PortControls;
use namehop_table::{HugePages, PageKind, Readiness, make_memory_ready_ahead, table_memory, table_memory_by_pages};

use crate::descriptors::{connections_for, raise_limit};
use crate::memory_budget::Bounds;
use crate::paths::{self, NoUsablePath};
use crate::placement::worker_count;
use crate::ports::{PortContext, PortService};
use crate::state::{Journal, SavedState, StateError};
use crate::supervise::Supervisor;
use namehop_worker::{Worker, WorkerHandles, WorkerRings};

use workers::{SharedParts, create_workers, inlet, rings, start_disk};

/// The reason why a router cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No usable path for the socket or state file.
    #[error(transparent)]
    NoUsablePath(#[from] NoUsablePath),
    /// A listener cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The state file cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A certificate file cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The key for a gateway cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The token of the HTTP API cannot be used.
    #[error(transparent)]
    Token(TokenError),
    /// The engine's tables do not fit into memory.
    #[error("{0}; choose smaller capacities in sections [forwarding] and [content_store]")]
    Engine(#[from] EngineError),
    /// The second tier of the Content Store cannot be used.
    #[error("cannot open the disk cache ([content_store.disk]): {0}")]
    Disk(#[from] namehop_disk::OpenError),
    /// The FIB does not fit into memory.
    #[error("cannot allocate the FIB: {0}")]
    Fib(#[from] FibError),
    /// The HTTP server cannot listen.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The router was told to end before it had started.
    #[error("stopped while starting")]
    Stopped,
    /// Another error of the operating system.
    #[error("{what}: {source}")]
    System {
        /// The attempted action.
        what: &'static str,
        /// Error of the system.
        source: std::io::Error,
    },
}

/// All parts, ready to run on their threads.
pub struct RouterParts {
    /// Serves sockets.
    pub sockets: SocketService,
    /// The workers, which forward packets.
    pub workers: Vec<Worker>,
    /// The second tier of the Content Store; `None` if not configured.
    pub disk: Option<DiskCache>,
    /// The parts of the control thread.
    pub control: ControlParts,
}

/// The parts of the control thread.
pub struct ControlParts {
    /// Opens and closes ports.
    pub ports: PortService,
    /// Handles to the workers.
    pub handles: WorkerHandles,
    /// The rings of the first worker; all workers share the rings that lead away from it.
    pub rings: WorkerRings,
    /// Inlet to all workers.
    pub from_control: FrameInlet,
    /// The name dispatch table: which worker owns which names.
    pub dispatch: Arc<NameDispatch>,
    /// Packet buffers.
    pub pool: BufferPool,
    /// All faces.
    pub faces: Arc<FaceTable>,
    /// Events of faces.
    pub face_events: mpsc::UnboundedReceiver<FaceEvent>,
    /// The writer's end of the FIB.
    pub fib: FibWriter<StrategyInstance>,
    /// The state file; `None` if saving is disabled.
    pub journal: Option<Journal>,
    /// The saved state at the start.
    pub saved: SavedState,
    /// Local URIs of the listeners.
    pub channels: Vec<FaceUri>,
}

/// Opens the state file, creates all tables, and binds the listeners' sockets, which do not listen yet.
///
/// # Errors
/// The first resource that is not available; everything opened is closed again.
pub fn build(config: &Config, bounds: &Bounds, supervisor: &Supervisor) -> Result<RouterParts, StartError> {
    // Called between slow steps, so that the router can be stopped while it starts.
    let check_not_ending = || if supervisor.is_ending() { Err(StartError::Stopped) } else { Ok(()) };
    prepare_memory(config);
    let key = HashKey::random();
    let pool = BufferPool::new(bounds.small_buffers, bounds.large_buffers);
    let faces = create_face_table(config, bounds);
    let rings = rings(faces.workers());
    let components = config.forwarding.dispatch_components;
    let dispatch = Arc::new(NameDispatch::new(faces.workers(), components, DispatchKey::random()));
    let (events, face_events) = mpsc::unbounded_channel();
    let sockets = bind_sockets(config, bounds, &pool, &faces, (&rings, &dispatch), &events)?;
    check_not_ending()?;
    let (journal, saved) = open_state(config)?;
    check_not_ending()?;
    let fib = create_fib(config, key)?;
    check_not_ending()?;
    let shared = SharedParts { pool: &pool, faces: &faces, rings: &rings, dispatch: &dispatch, events: &events };
    let (mut workers, handles, port_controls) = create_workers(config, bounds, &shared, &fib, key, check_not_ending)?;
    let disk = match &config.content_store.disk {
        Some(disk) => Some(start_disk(disk, key, &mut workers, &rings, &dispatch, &saved)?),
        None => None,
    };
    report_memory(config.memory.huge_pages);
    let context = PortContext {
        faces: Arc::clone(&faces),
        events,
        pool: pool.clone(),
        control: PortControls::new(port_controls),
        workers: handles.clone(),
    };
    let control = ControlParts {
        ports: PortService::new(context, config, bounds),
        handles,
        from_control: inlet_of(&rings, &dispatch, |rings| &rings.from_control),
        rings: rings[0].clone(),
        dispatch,
        pool,
        faces,
        face_events,
        fib,
        journal,
        saved,
        channels: sockets.local_uris(),
    };
    Ok(RouterParts { sockets, workers, disk, control })
}

/// Chooses the pages of tables, and when they are made ready.
fn prepare_memory(config: &Config) {
    config.memory.huge_pages.use_from_now_on();
    // Workers must not wait while the kernel clears pages. With sockets only, the kernel's socket buffers hold packets
    // during such waits, so pages may be made ready later.
    make_memory_ready_ahead(if config.has_ports() { Readiness::BeforeUse } else { Readiness::AfterFewUses });
}

/// Creates the face table with the internal face.
fn create_face_table(config: &Config, bounds: &Bounds) -> Arc<FaceTable> {
    let faces = Arc::new(FaceTable::with_limit(bounds.max_faces));
    // Incomplete packets must not take all large buffers.
    faces.set_reassembly_limit(bounds.large_buffers / 4);
    faces.set_workers(worker_count(config));
    insert_internal_face(&faces);
    if faces.workers() > 1 {
        info!("forwarding with {} workers", faces.workers());
    }
    faces
}

/// Returns the inlet to one ring of each worker.
fn inlet_of(
    rings: &[WorkerRings],
    dispatch: &Arc<NameDispatch>,
    ring: fn(&WorkerRings) -> &Arc<FrameRing>,
) -> FrameInlet {
    inlet(dispatch, rings.iter().map(ring).cloned().collect())
}

/// Binds the sockets of the listeners.
fn bind_sockets(
    config: &Config,
    bounds: &Bounds,
    pool: &BufferPool,
    faces: &Arc<FaceTable>,
    (rings, dispatch): (&[WorkerRings], &Arc<NameDispatch>),
    events: &mpsc::UnboundedSender<FaceEvent>,
) -> Result<SocketService, StartError> {
    let inlets = SocketInlets {
        streams: inlet_of(rings, dispatch, |rings| &rings.from_streams),
        datagrams: inlet_of(rings, dispatch, |rings| &rings.from_datagrams),
    };
    let config = socket_config(config, bounds)?;
    let to_sockets = Arc::clone(&rings[0].to_sockets);
    Ok(SocketService::new(config, pool.clone(), Arc::clone(faces), inlets, to_sockets, events.clone())?)
}

/// Opens and locks the state file, and reads it.
fn open_state(config: &Config) -> Result<(Option<Journal>, SavedState), StartError> {
    if !config.state.enabled {
        return Ok((None, SavedState::default()));
    }
    let (journal, saved) = Journal::open(&paths::state_file(&config.state.file)?)?;
    Ok((Some(journal), saved))
}

/// Creates the FIB with the prefixes under which the router itself answers.
fn create_fib(config: &Config, key: HashKey) -> Result<FibWriter<StrategyInstance>, StartError> {
    let mut fib = FibWriter::new(key, StrategyInstance::default())?;
    for prefix in config.served_prefixes() {
        fib.dedicate(prefix.as_ref(), FaceId::INTERNAL)?;
    }
    Ok(fib)
}

/// Logs the page sizes of the tables, and a hint if no table is on reserved huge pages.
fn report_memory(wanted: HugePages) {
    let by_pages = table_memory_by_pages();
    for (pages, count, bytes) in &by_pages {
        info!("{pages}: {count} tables with {} MiB of address space", bytes.div_ceil(1 << 20));
    }
    let takes_reserved = !matches!(wanted, HugePages::Transparent | HugePages::Off);
    if takes_reserved && !by_pages.iter().any(|(pages, ..)| matches!(pages, PageKind::Huge1G | PageKind::Huge2M)) {
        info!("no table uses reserved huge pages; 'namehop setup' shows how to make forwarding faster on this host");
    }
    for memory in table_memory() {
        debug!("table of {memory}");
    }
}

/// Inserts the face between the engine and the control thread.
fn insert_internal_face(faces: &FaceTable) {
    let mut params = FaceParams::new(FaceUri::Internal, FaceUri::Internal);
    params.scope = FaceScope::Local;
    params.persistency = FacePersistency::Permanent;
    params.allowed_persistencies = &[FacePersistency::Permanent];
    params.flags = FaceFlags::LOCAL_FIELDS.union(FaceFlags::PIT_TOKENS_ON);
    // The table is new, so the id is free.
    let _ = faces.insert_reserved(FaceId::INTERNAL, params);
}

fn socket_config(config: &Config, bounds: &Bounds) -> Result<SocketConfig, StartError> {
    let faces = &config.faces;
    let mut unix = Vec::new();
    if faces.unix.enabled {
        let path = paths::unix_socket(&faces.unix.path)?;
        // The mode was checked with the configuration.
        unix.push(UnixListenerConfig { path, mode: faces.unix.mode_bits().unwrap_or(0o666) });
    }
    let max_connections = connections_for(raise_limit());
    if max_connections < bounds.max_faces {
        info!("file descriptors allow {max_connections} connections; for more, raise the hard limit (ulimit -Hn)");
    }
    let interfaces = match faces.multicast.interfaces.as_slice() {
        [] => MulticastInterfaces::Off,
        [all] if all == "all" => MulticastInterfaces::All,
        names => MulticastInterfaces::Named(names.to_vec()),
    };
    Ok(SocketConfig {
        unix,
        tcp: faces.tcp.listen.clone(),
        tcp_is_local: faces.tcp.local,
        udp: faces.udp.listen.clone(),
        websocket: faces.websocket.listen.clone(),
        websocket_is_local: faces.websocket.is_local(),
        allowed_origins: faces.websocket.allowed_origins.clone(),
        multicast: MulticastConfig { interfaces, is_ad_hoc: faces.multicast.ad_hoc, ..MulticastConfig::default() },
        max_faces: bounds.max_faces,
        max_unsolicited_on_ports: config.max_unsolicited_on_ports(bounds.max_faces),
        max_connections,
        max_unsolicited_per_address: faces.strangers_per_address,
        silent_timeout_ms: faces.silent_timeout_s.saturating_mul(1000),
        udp_idle_ms: faces.udp.idle_timeout_s.saturating_mul(1000),
        datagram_mtu_bytes: match faces.udp.mtu {
            Auto::Auto => None,
            Auto::Value(bytes) => Some(bytes),
        },
        stream_queue_bytes: usize::try_from(faces.send_queue_bytes.0).unwrap_or(usize::MAX),
        all_stream_queues_bytes: bounds.all_send_queues_bytes,
        blocked_timeout_ms: faces.blocked_timeout_s.saturating_mul(1000),
        congestion_marking: faces.congestion_marking,
        self_learning: faces.self_learning,
        pit_tokens: faces.pit_tokens.into(),
        ..SocketConfig::without_listeners()
    })
}

/// Returns the settings of the management server's authenticator.
pub fn security_config(config: &Config, bounds: &Bounds) -> SecurityConfig {
    let trust = |trust: &Trust| TrustConfig {
        anchors: trust.anchors.iter().map(Anchor::from).collect(),
        certificates: trust.certificates.clone(),
    };
    SecurityConfig {
        rules: config
            .management
            .authorizations
            .iter()
            .map(|rule| Rule {
                signer: match rule.certificate.as_str() {
                    "any" => Signer::Any,
                    file => Signer::Certificate(file.into()),
                },
                modules: rule.modules.clone(),
            })
            .collect(),
        localhop: trust(&config.management.localhop),
        prefix_announcements: trust(&config.management.prefix_announcements),
        remote_routes: RouteLimits {
            per_face: config.management.max_remote_routes_per_face,
            remote: bounds.max_remote_routes,
            total: bounds.max_routes,
        },
    }
}

/// Returns the routing daemon and the gateway to which routes are announced.
///
/// # Errors
/// The key for the gateway cannot be used.
pub fn readvertise_destinations(config: &Config) -> Result<Vec<Destination>, StartError> {
    let (daemon, gateway) = (&config.routing.daemon, &config.routing.gateway);
    let numbers = |origins: &[OriginText]| origins.iter().map(|origin| origin.0).collect();
    let mut destinations = Vec::new();
    if daemon.enabled {
        destinations.push(Destination::daemon(DaemonSettings { origins: numbers(&daemon.origins) }));
    }
    if let (Some(key), Some(certificate)) = (&gateway.key, &gateway.certificate) {
        destinations.push(Destination::gateway(GatewaySettings {
            signing: SigningIdentity::load(key, certificate)?,
            origins: numbers(&gateway.origins),
            cost: gateway.cost,
            refresh: Duration::from_secs(gateway.refresh_s),
        }));
    }
    Ok(destinations)
}
