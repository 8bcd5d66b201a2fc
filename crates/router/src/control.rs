//! The router as the management server sees it: the control thread's hold on faces, FIB, worker and saved state.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tracing::{error, warn};

use namehop_face::FaceUri;
use namehop_face::registry::{Face, FacePersistency, FaceTable, FaceUpdate, RejectedProperties};
use namehop_face::socket::{CreateError, SocketCommand};
use namehop_forward::engine::{CsInfo, CsSettings};
use namehop_forward::face::FaceId;
use namehop_forward::fib::{FibWriter, NextHop};
use namehop_forward::strategy::StrategyInstance;
use namehop_manage::nfd::numbers::origin;
use namehop_manage::rib::Route;
use namehop_manage::server::{ContentStoreChange, ContentStoreInfo, ControlPlane, EngineStatus, StateChange};
use namehop_wire::security::unix_time_ms;
use namehop_wire::{Name, NameRef};

use crate::ports::PortService;
use crate::state::{
    ContentStoreRecord, FaceRecord, Journal, Record, RouteKey, RouteRecord, RouteTerms, StrategyRecord, identity,
};
use crate::worker::{EngineSnapshot, WorkerHandle};

/// How long the creation of a face waits for its link, and how often it looks.
const CONNECT_PATIENCE: Duration = Duration::from_millis(300);
const CONNECT_LOOK: Duration = Duration::from_millis(2);

/// What the control thread holds. All methods run on that thread.
pub struct Control {
    faces: Arc<FaceTable>,
    sockets: mpsc::Sender<SocketCommand>,
    ports: PortService,
    worker: WorkerHandle,
    fib: RefCell<FibWriter<StrategyInstance>>,
    channels: Vec<FaceUri>,
    journal: RefCell<Option<Journal>>,
    journal_failed: Cell<bool>,
    /// Unix time at which the management clock, which route expiries are on, was 0.
    clock_start_unix_ms: u64,
}

impl Control {
    /// `channels` are the addresses listened on. Without a journal nothing outlives a restart.
    pub fn new(
        faces: Arc<FaceTable>,
        sockets: mpsc::Sender<SocketCommand>,
        ports: PortService,
        worker: WorkerHandle,
        fib: FibWriter<StrategyInstance>,
        channels: Vec<FaceUri>,
        journal: Option<Journal>,
    ) -> Self {
        Control {
            faces,
            sockets,
            ports,
            worker,
            fib: RefCell::new(fib),
            channels,
            journal: RefCell::new(journal),
            journal_failed: Cell::new(false),
            clock_start_unix_ms: unix_time_ms(),
        }
    }

    /// The worker.
    pub fn worker(&self) -> &WorkerHandle {
        &self.worker
    }

    /// Waits until the faces are there that the socket service makes by itself.
    pub async fn await_sockets(&self) {
        let (reply, answer) = oneshot::channel();
        // Without an answer the service has ended, and the router is about to.
        if self.sockets.send(SocketCommand::AwaitStart { reply }).await.is_ok() {
            let _ = answer.await;
        }
    }

    /// Opens the ports that the configuration names.
    pub async fn open_ports(&self) {
        self.ports.open_configured().await;
    }

    /// Closes all ports.
    pub async fn shut_down_ports(&self) {
        self.ports.shut_down().await;
    }

    async fn create_socket_face(
        &self,
        uri: FaceUri,
        local_uri: Option<FaceUri>,
        params: FaceUpdate,
    ) -> Result<Arc<Face>, CreateError> {
        let (reply, answer) = oneshot::channel();
        let command = SocketCommand::CreateFace { uri, local_uri, params, reply };
        self.sockets.send(command).await.map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())?
    }

    /// Ends the socket service.
    pub async fn shut_down_sockets(&self) {
        // It may have ended already, which is what is wanted.
        let _ = self.sockets.send(SocketCommand::Shutdown).await;
    }

    /// Has everything that was saved put on the disk.
    pub fn sync_state(&self) {
        if let Some(journal) = &*self.journal.borrow()
            && let Err(error) = journal.sync()
        {
            warn!(%error, "saved state may be lost when the computer fails");
        }
    }

    fn save(&self, record: &Record) {
        let Some(journal) = &mut *self.journal.borrow_mut() else { return };
        match journal.append(record) {
            Ok(()) => self.journal_failed.set(false),
            Err(error) => {
                // One line for a full disk, not one for each command.
                if !self.journal_failed.replace(true) {
                    error!(%error, "a change is in effect but could not be saved: it will not survive a restart");
                }
            }
        }
    }

    fn record_of(&self, change: StateChange<'_>) -> Option<Record> {
        match change {
            // Faces that were made by a connection are never on file. Those of UDP may have been permanent before.
            StateChange::FaceCreated(face) | StateChange::FaceUpdated(face) | StateChange::FaceDestroyed(face)
                if face.persistency() == FacePersistency::OnDemand
                    && !matches!(face.remote_uri(), FaceUri::Udp { .. }) =>
            {
                None
            }
            StateChange::FaceCreated(face) | StateChange::FaceUpdated(face) if is_permanent(face) => {
                Some(Record::Face(face_record(face)))
            }
            StateChange::FaceCreated(_) => None,
            StateChange::FaceUpdated(face) => Some(Record::FaceForgotten(face_identity(face))),
            StateChange::FaceDestroyed(face) => Some(Record::FaceRemoved(face_identity(face))),
            StateChange::RouteRegistered { prefix, route } => self.route_record(prefix, route).map(Record::Route),
            StateChange::RouteUnregistered { prefix, face, origin: origin::STATIC } => {
                self.route_key(prefix, face).map(Record::RouteRemoved)
            }
            StateChange::RouteUnregistered { .. } => None,
            StateChange::StrategySet { prefix, strategy } => Some(Record::Strategy(StrategyRecord {
                prefix: prefix.to_string(),
                strategy: strategy.as_ref().to_string(),
            })),
            StateChange::StrategyUnset(prefix) => Some(Record::StrategyRemoved(prefix.to_string())),
            StateChange::ContentStore(info) => Some(Record::ContentStore(ContentStoreRecord {
                capacity_packets: info.capacity,
                admit: info.admit,
                serve: info.serve,
            })),
        }
    }

    /// Static routes outlive a restart when their face can be made again.
    fn route_record(&self, prefix: NameRef<'_>, route: &Route) -> Option<RouteRecord> {
        if route.origin != origin::STATIC {
            return None;
        }
        Some(RouteRecord {
            key: self.route_key(prefix, route.face)?,
            terms: RouteTerms {
                cost: route.cost,
                flags: route.flags,
                expires_unix_ms: route.expires_at_ms.map(|at_ms| self.clock_start_unix_ms.saturating_add(at_ms)),
            },
        })
    }

    fn route_key(&self, prefix: NameRef<'_>, face: FaceId) -> Option<RouteKey> {
        let face = self.faces.get(face)?;
        (face.persistency() != FacePersistency::OnDemand).then(|| RouteKey {
            prefix: prefix.to_string(),
            face: face.remote_uri().to_string(),
            local: distinguishing_local_uri(&face),
        })
    }
}

fn stopping() -> CreateError {
    CreateError::Unreachable("the router is shutting down".to_owned())
}

fn is_permanent(face: &Face) -> bool {
    face.persistency() == FacePersistency::Permanent
}

/// The local URI, where faces of several interfaces may have the same remote one.
fn distinguishing_local_uri(face: &Face) -> Option<String> {
    let is_shared = face.remote_uri().is_multicast() || matches!(face.remote_uri(), FaceUri::Ethernet(_));
    is_shared.then(|| face.local_uri().to_string())
}

/// What tells the face apart in the saved state.
fn face_identity(face: &Face) -> String {
    identity(&face.remote_uri().to_string(), distinguishing_local_uri(face).as_deref()).into_owned()
}

fn face_record(face: &Face) -> FaceRecord {
    FaceRecord {
        uri: face.remote_uri().to_string(),
        local_uri: distinguishing_local_uri(face),
        persistency: face.persistency() as u64,
        flags: face.flags().0,
        mtu: face.is_datagram().then(|| face.mtu_bytes() as u64),
        base_congestion_marking_interval_ns: Some(face.base_congestion_marking_interval_ns()),
        default_congestion_threshold_bytes: Some(face.default_congestion_threshold_bytes()),
    }
}

/// State of the Content Store as management shows it.
pub fn content_store_info(info: &CsInfo) -> ContentStoreInfo {
    ContentStoreInfo {
        capacity: info.capacity as u64,
        admit: info.admit,
        serve: info.serve,
        entries: info.entries as u64,
        hits: info.hits,
        misses: info.misses,
    }
}

/// The engine as management shows it.
pub fn engine_status(snapshot: &EngineSnapshot) -> EngineStatus {
    EngineStatus {
        counters: snapshot.counters,
        name_entries: snapshot.sizes.pcct as u64,
        pit_entries: snapshot.sizes.pit as u64,
        cs_entries: snapshot.sizes.cs as u64,
        measurements_entries: snapshot.sizes.measurements as u64,
    }
}

impl ControlPlane for Control {
    fn faces(&self) -> &FaceTable {
        &self.faces
    }

    async fn create_face(
        &self,
        uri: FaceUri,
        local_uri: Option<FaceUri>,
        params: FaceUpdate,
    ) -> Result<Arc<Face>, CreateError> {
        let face = match PortService::serves(&uri) {
            true => self.ports.create_face(uri, local_uri, params).await?,
            false => self.create_socket_face(uri, local_uri, params).await?,
        };
        self.worker.add_face(Arc::clone(&face)).await.map_err(|_| stopping())?;
        // A permanent face to a live peer is up in a moment: whoever asked for it can use it then.
        let _ = timeout(CONNECT_PATIENCE, async {
            while !face.is_up() {
                sleep(CONNECT_LOOK).await;
            }
        })
        .await;
        Ok(face)
    }

    async fn update_face(&self, face: &Arc<Face>, change: FaceUpdate) -> Result<(), RejectedProperties> {
        face.update(&change)?;
        // Without a worker there is nobody who could notice.
        let _ = self.worker.update_face(face.id()).await;
        Ok(())
    }

    async fn destroy_face(&self, id: FaceId) {
        let (reply, answer) = oneshot::channel();
        let sent = self.sockets.send(SocketCommand::DestroyFace { id, reply }).await.is_ok();
        if (sent && answer.await == Ok(true)) || self.ports.destroy_face(id).await {
            let _ = self.worker.remove_face(id).await;
        }
    }

    fn channels(&self) -> Vec<FaceUri> {
        self.channels.clone()
    }

    fn with_fib<R>(&self, access: impl FnOnce(&mut FibWriter<StrategyInstance>) -> R) -> R {
        let mut fib = self.fib.borrow_mut();
        let result = access(&mut fib);
        fib.reclaim();
        result
    }

    fn next_hop_added(&self, prefix: NameRef<'_>, next_hop: NextHop) {
        self.worker.next_hop_added(prefix.to_owned(), next_hop);
    }

    async fn cs_info(&self) -> ContentStoreInfo {
        self.worker.cs_info().await.map(|info| content_store_info(&info)).unwrap_or_default()
    }

    async fn configure_cs(&self, change: ContentStoreChange) -> ContentStoreInfo {
        let settings = CsSettings {
            capacity: change.capacity.map(|capacity| usize::try_from(capacity).unwrap_or(usize::MAX)),
            admit: change.admit,
            serve: change.serve,
        };
        self.worker.cs_configure(settings).await.map(|info| content_store_info(&info)).unwrap_or_default()
    }

    async fn erase_cs(&self, prefix: Name, limit: usize) -> usize {
        self.worker.cs_erase(prefix, limit).await.unwrap_or(0)
    }

    async fn engine_status(&self) -> EngineStatus {
        self.worker.snapshot().await.map(|snapshot| engine_status(&snapshot)).unwrap_or_default()
    }

    fn state_changed(&self, change: StateChange<'_>) {
        if let Some(record) = self.record_of(change) {
            self.save(&record);
        }
    }
}
