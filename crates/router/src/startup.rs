//! Builds the parts of a router from its configuration: memory, tables, listeners.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::{debug, info};

use namehop_face::FaceUri;
use namehop_face::port::PortSet;
use namehop_face::registry::{FaceFlags, FaceParams, FacePersistency, FaceTable};
use namehop_face::ring::FrameRing;
use namehop_face::socket::{
    FaceEvent, ListenError, MulticastConfig, MulticastInterfaces, SocketConfig, SocketService, UnixListenerConfig,
};
use namehop_face::wake::Waker;
use namehop_forward::engine::{Engine, EngineConfig, EngineError};
use namehop_forward::fib::{FibError, FibWriter};
use namehop_forward::schedule::lookahead_for;
use namehop_forward::strategy::StrategyInstance;
use namehop_hash::HashKey;
use namehop_manage::authentication::{Rule, SecurityConfig, Signer, TrustConfig, TrustError};
use namehop_manage::http::HttpError;
use namehop_manage::readvertise::{DaemonSettings, Destination, GatewaySettings, IdentityError, SigningIdentity};
use namehop_packet::{BufferPool, FaceId, FaceScope};
use namehop_table::{HugePages, MemorySpeed, PageKind, make_memory_ready_ahead, table_memory, table_memory_by_pages};

use crate::config::{AutoNumber, Config, OriginText, Trust};
use crate::descriptors::{connections_for, raise_limit};
use crate::paths::{self, NoUsablePath};
use crate::ports::{PortContext, PortService};
use crate::state::{Journal, SavedState, StateError};
use crate::supervise::Supervisor;
use crate::worker::{Worker, WorkerHandle, WorkerRings};

/// Frames that fit into the rings between sockets and worker: some milliseconds of traffic at full speed.
const SOCKET_RING_FRAMES: usize = 8192;
/// Frames that fit into the rings between worker and control thread.
const CONTROL_RING_FRAMES: usize = 4096;
/// One in this many small buffers may wait on congested ports, so that the others stay available.
const QUEUED_SHARE: usize = 8;

/// Why a router cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No place for the socket or state file.
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
    /// The engine's tables do not fit into memory.
    #[error("{0}; choose smaller capacities in sections [forwarding] and [content_store]")]
    Engine(#[from] EngineError),
    /// The FIB does not fit into memory.
    #[error("memory for the FIB: {0}")]
    Fib(#[from] FibError),
    /// The HTTP server cannot listen.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// It was told to end before it had started.
    #[error("told to end while starting")]
    Stopped,
    /// The operating system refuses something else.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What it said.
        source: std::io::Error,
    },
}

/// All parts, ready to be put on their threads.
pub struct Parts {
    /// Serves sockets.
    pub sockets: SocketService,
    /// Opens and closes ports.
    pub ports: PortService,
    /// Forwards.
    pub worker: Worker,
    /// How the control thread talks to the worker.
    pub worker_handle: WorkerHandle,
    /// All rings.
    pub rings: WorkerRings,
    /// Packet memory.
    pub pool: BufferPool,
    /// All faces.
    pub faces: Arc<FaceTable>,
    /// What happens to faces.
    pub face_events: mpsc::UnboundedReceiver<FaceEvent>,
    /// The control thread's end of the FIB.
    pub fib: FibWriter<StrategyInstance>,
    /// Where changes are saved, unless that is off.
    pub journal: Option<Journal>,
    /// What was saved before.
    pub saved: SavedState,
}

/// Opens listeners and state file and makes all tables.
///
/// # Errors
/// The first thing that cannot be had; what was opened is closed again.
pub fn build(config: &Config, supervisor: &Supervisor) -> Result<Parts, StartError> {
    // Called between steps that take long, so that the router can be stopped while it starts.
    let check_not_ending = || if supervisor.is_ending() { Err(StartError::Stopped) } else { Ok(()) };
    config.memory.huge_pages.use_from_now_on();
    // Workers must not wait for the system to clear pages.
    make_memory_ready_ahead();
    let key = HashKey::random();
    let pool = BufferPool::new(config.forwarding.small_buffers, config.forwarding.large_buffers);
    let faces = Arc::new(FaceTable::with_limit(config.faces.max_faces));
    // Fragments of packets that never become whole must not take all memory for large packets.
    faces.set_reassembly_limit(config.forwarding.large_buffers / 4);
    insert_internal_face(&faces);

    let (worker_waker, sockets_waker, control_waker) =
        (Arc::new(Waker::new()), Arc::new(Waker::new()), Arc::new(Waker::new()));
    let rings = WorkerRings {
        from_sockets: Arc::new(FrameRing::new(SOCKET_RING_FRAMES, Arc::clone(&worker_waker))),
        to_sockets: Arc::new(FrameRing::new(SOCKET_RING_FRAMES, sockets_waker)),
        from_control: Arc::new(FrameRing::new(CONTROL_RING_FRAMES, Arc::clone(&worker_waker))),
        to_control: Arc::new(FrameRing::new(CONTROL_RING_FRAMES, Arc::clone(&control_waker))),
        to_control_from_neighbours: Arc::new(FrameRing::new(CONTROL_RING_FRAMES, control_waker)),
    };

    let (event_sender, face_events) = mpsc::unbounded_channel();
    let sockets = SocketService::new(
        socket_config(config)?,
        pool.clone(),
        Arc::clone(&faces),
        Arc::clone(&rings.from_sockets),
        Arc::clone(&rings.to_sockets),
        event_sender.clone(),
    )?;
    let marking = if config.faces.congestion_marking { FaceFlags::CONGESTION_MARKING } else { FaceFlags::default() };
    let (mut port_set, port_control) = PortSet::new(
        Arc::clone(&faces),
        event_sender.clone(),
        Arc::clone(&worker_waker),
        marking,
        config.faces.self_learning,
        Duration::from_secs(config.ports.idle_timeout_s),
    );
    port_set.limit_queues(config.forwarding.small_buffers / QUEUED_SHARE);

    check_not_ending()?;
    let (journal, saved) = if config.state.enabled {
        let (journal, saved) = Journal::open(&paths::state_file(&config.state.file)?)?;
        (Some(journal), saved)
    } else {
        (None, SavedState::default())
    };

    check_not_ending()?;
    let mut fib = FibWriter::new(key, StrategyInstance::default())?;
    for prefix in config.served_prefixes() {
        fib.dedicate(prefix.as_ref(), FaceId::INTERNAL)?;
    }
    check_not_ending()?;
    let engine = Engine::new(engine_config(config), fib.reader(), pool.clone(), key)?;
    check_not_ending()?;
    report_memory(config.memory.huge_pages);
    let (worker, worker_handle) =
        Worker::new(engine, pool.clone(), Arc::clone(&faces), rings.clone(), port_set, worker_waker);
    let context = PortContext {
        faces: Arc::clone(&faces),
        events: event_sender,
        pool: pool.clone(),
        control: port_control,
        worker: worker_handle.clone(),
    };
    let ports = PortService::new(context, config);
    Ok(Parts { sockets, ports, worker, worker_handle, rings, pool, faces, face_events, fib, journal, saved })
}

/// Logs on which pages the tables lie, and how they get faster ones where they have none that were set aside.
fn report_memory(wanted: HugePages) {
    let by_pages = table_memory_by_pages();
    for (pages, count, bytes) in &by_pages {
        info!("{pages}: {count} tables with {} MiB of address space", bytes.div_ceil(1 << 20));
    }
    let takes_reserved = !matches!(wanted, HugePages::Transparent | HugePages::Off);
    if takes_reserved && !by_pages.iter().any(|(pages, ..)| matches!(pages, PageKind::Huge1G | PageKind::Huge2M)) {
        info!("no table is on huge pages that were set aside; 'namehop setup' says how forwarding gets faster here");
    }
    for memory in table_memory() {
        debug!("table of {memory}");
    }
}

/// The face between engine and control thread.
fn insert_internal_face(faces: &FaceTable) {
    let mut params = FaceParams::new(FaceUri::Internal, FaceUri::Internal);
    params.scope = FaceScope::Local;
    params.persistency = FacePersistency::Permanent;
    params.allowed_persistencies = &[FacePersistency::Permanent];
    params.flags = FaceFlags::LOCAL_FIELDS;
    // The table is new, so the number is free.
    let _ = faces.insert_reserved(FaceId::INTERNAL, params);
}

fn socket_config(config: &Config) -> Result<SocketConfig, StartError> {
    let faces = &config.faces;
    let mut unix = Vec::new();
    if faces.unix.enabled {
        let path = paths::unix_socket(&faces.unix.path)?;
        // The mode was checked with the configuration.
        unix.push(UnixListenerConfig { path, mode: faces.unix.mode_bits().unwrap_or(0o666) });
    }
    let max_connections = connections_for(raise_limit());
    if max_connections < faces.max_faces {
        info!("file descriptors suffice for {max_connections} connections; more need a higher hard limit (ulimit -Hn)");
    }
    let interfaces = match faces.multicast.interfaces.as_slice() {
        [] => MulticastInterfaces::Off,
        [all] if all == "all" => MulticastInterfaces::All,
        names => MulticastInterfaces::Named(names.to_vec()),
    };
    Ok(SocketConfig {
        unix,
        tcp: faces.tcp.listen.clone(),
        udp: faces.udp.listen.clone(),
        websocket: faces.websocket.listen.clone(),
        allowed_origins: faces.websocket.allowed_origins.clone(),
        multicast: MulticastConfig { interfaces, is_ad_hoc: faces.multicast.ad_hoc, ..MulticastConfig::default() },
        max_faces: faces.max_faces,
        max_connections,
        strangers_per_address: faces.strangers_per_address,
        silent_timeout_ms: faces.silent_timeout_s.saturating_mul(1000),
        udp_idle_ms: faces.udp.idle_timeout_s.saturating_mul(1000),
        datagram_mtu_bytes: faces.udp.mtu,
        stream_queue_bytes: usize::try_from(faces.send_queue_bytes.0).unwrap_or(usize::MAX),
        all_stream_queues_bytes: usize::try_from(faces.all_send_queues_bytes.0).unwrap_or(usize::MAX),
        blocked_timeout_ms: faces.blocked_timeout_s.saturating_mul(1000),
        congestion_marking: faces.congestion_marking,
        self_learning: faces.self_learning,
        ..SocketConfig::without_listeners()
    })
}

fn engine_config(config: &Config) -> EngineConfig {
    let (forwarding, store) = (&config.forwarding, &config.content_store);
    EngineConfig {
        pit_capacity: forwarding.pit_capacity,
        cs: store.cs_config(),
        unsolicited: store.unsolicited,
        accept_unasked_data: forwarding.accept_unasked_data,
        dead_nonce_lifetime_ms: forwarding.dead_nonce_list_lifetime_ms,
        default_hop_limit: forwarding.default_hop_limit,
        producer_regions: forwarding.producer_regions.iter().map(|region| region.0.clone()).collect(),
        max_name_bytes: forwarding.max_name_bytes,
        long_name_bytes_per_s: forwarding.long_name_bytes_per_s,
        max_lifetime_ms: forwarding.max_interest_lifetime_ms,
        measurement_capacity: forwarding.measurement_capacity,
        lookahead: lookahead(forwarding.lookahead),
        ..EngineConfig::default()
    }
}

/// Packets to look at together ahead of their turn, as configured or as suits this machine's memory.
fn lookahead(configured: AutoNumber) -> usize {
    if let AutoNumber::Number(packets) = configured {
        info!("memory is fetched for {packets} packets together, as configured");
        return packets;
    }
    let Some(memory) = MemorySpeed::measure() else {
        let packets = EngineConfig::default().lookahead;
        info!("memory is fetched for {packets} packets together; its speed could not be measured");
        return packets;
    };
    let packets = lookahead_for(&memory);
    info!(
        "memory is fetched for {packets} packets together: it takes {:.0} ns for a line and has {:.0} lines under way",
        memory.latency_ns,
        memory.lines_in_flight()
    );
    packets
}

/// The settings of the management server's authenticator.
pub fn security_config(config: &Config) -> SecurityConfig {
    let trust =
        |trust: &Trust| TrustConfig { anchors: trust.anchors.clone(), certificates: trust.certificates.clone() };
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
    }
}

/// Routing daemon and gateway to which routes are announced.
///
/// # Errors
/// When the key for a gateway cannot be used.
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
