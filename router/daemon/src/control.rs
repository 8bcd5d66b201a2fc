//! The control plane as the management server sees it: access to faces, FIB, workers and saved state.

use std::cell::RefCell;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use namehop_client::nfd::{DispatchEntry, LatencyStatus, PowerStatus, WorkerStatus};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use namehop_engine::engine::EngineStatus;
use namehop_engine::engine::{CsChange, CsInfo};
use namehop_engine::fib::{FibWriter, NextHop};
use namehop_engine::strategy::{StrategyInstance, StrategyRegistry};
use namehop_engine::trace::TraceRequest;
use namehop_face::FaceUri;
use namehop_face::capture::{CaptureRecorder, CaptureRequest};
use namehop_face::registry::{Face, FaceTable, FaceUpdate, RejectedProperties};
use namehop_face::socket::{CreateError, ListenError, SocketCommand};
use namehop_manage::server::{ControlPlane, DispatchError, NotSaved, PortForbidden, StateChange};
use namehop_packet::FaceId;
use namehop_wire::{Name, NameRef};

use crate::balancing::Balancing;
use crate::capture::Capture;
use crate::latency::Latency;
use crate::port_policy::PortPolicy;
use crate::ports::PortService;
use crate::saving::Saving;
use namehop_worker::WorkerHandles;

/// Longest time for which creating a face waits until its link is up, and the interval of checks.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(300);
const CONNECT_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The objects that the control thread owns. All methods run on that thread.
pub struct Control {
    faces: Arc<FaceTable>,
    sockets: mpsc::Sender<SocketCommand>,
    ports: PortService,
    port_policy: PortPolicy,
    workers: WorkerHandles,
    balancing: Balancing,
    fib: RefCell<FibWriter<StrategyInstance>>,
    strategies: RefCell<StrategyRegistry>,
    channels: Vec<FaceUri>,
    saving: Saving,
    power: RefCell<Option<PowerStatus>>,
    latency: Latency,
    capture: Capture,
}

impl Control {
    /// Creates the control plane. `channels` are the addresses that the router listens on.
    #[expect(clippy::too_many_arguments, reason = "the parts of a router have different types")]
    pub fn new(
        faces: Arc<FaceTable>,
        sockets: mpsc::Sender<SocketCommand>,
        ports: PortService,
        port_policy: PortPolicy,
        (workers, balancing): (WorkerHandles, Balancing),
        fib: FibWriter<StrategyInstance>,
        channels: Vec<FaceUri>,
        saving: Saving,
    ) -> Self {
        Control {
            faces,
            capture: Capture::new(workers.clone()),
            latency: Latency::new(sockets.clone(), workers.clone()),
            sockets,
            ports,
            port_policy,
            workers,
            balancing,
            fib: RefCell::new(fib),
            strategies: RefCell::default(),
            channels,
            saving,
            power: RefCell::default(),
        }
    }

    /// Returns the handles of the workers.
    pub fn workers(&self) -> &WorkerHandles {
        &self.workers
    }

    /// Balances the load of the workers until they end.
    pub async fn balance(&self) {
        self.balancing.run(&self.workers).await;
    }

    /// Sets the latest power measurement of the host.
    pub fn set_power(&self, power: Option<PowerStatus>) {
        self.power.replace(power);
    }

    /// Waits until the socket service has created the faces of its configuration.
    pub async fn await_sockets(&self) {
        let (reply, answer) = oneshot::channel();
        // Without an answer the service has ended, and the router is about to end.
        if self.sockets.send(SocketCommand::AwaitStart { reply }).await.is_ok() {
            let _ = answer.await;
        }
    }

    /// Commands the socket service to open its listeners.
    ///
    /// # Errors
    /// A listener could not be opened.
    pub async fn open_sockets(&self) -> Result<(), ListenError> {
        let (reply, answer) = oneshot::channel();
        // Without an answer the service has ended, and the router is about to end.
        match self.sockets.send(SocketCommand::Open { reply }).await {
            Ok(()) => answer.await.unwrap_or(Ok(())),
            Err(_) => Ok(()),
        }
    }

    /// Opens the configured ports.
    pub async fn open_ports(&self) {
        self.port_policy.make_folders_of_configured_ports();
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
        // Fails if the service has ended already.
        let _ = self.sockets.send(SocketCommand::Shutdown).await;
    }

    /// Returns the state of saving.
    pub fn saving(&self) -> &Saving {
        &self.saving
    }
}

fn stopping() -> CreateError {
    CreateError::Unreachable("the router is shutting down".to_owned())
}

fn is_udp_on_port(face: &Face) -> bool {
    matches!(face.remote_uri(), FaceUri::Udp { .. }) && face.local_uri().options().is_some()
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
        // A UDP face on a port may have been created with a local URI; a request without one means the same face.
        if local_uri.is_none()
            && let Some(face) = self.faces.find_by_remote(&uri).into_iter().find(|face| is_udp_on_port(face))
        {
            return Err(CreateError::Exists(face));
        }
        let face = match uri.is_on_port(local_uri.as_ref()) {
            true => {
                self.port_policy.make_folder_for(local_uri.as_ref().unwrap_or(&uri));
                self.ports.create_face(uri, local_uri, params).await?
            }
            false => self.create_socket_face(uri, local_uri, params).await?,
        };
        self.workers.add_face(Arc::clone(&face)).await.map_err(|_| stopping())?;
        // A permanent face to a live peer is up within moments; waiting lets the client use it at once.
        let _ = timeout(CONNECT_TIMEOUT, async {
            while !face.is_up() {
                sleep(CONNECT_POLL_INTERVAL).await;
            }
        })
        .await;
        Ok(face)
    }

    fn may_open_port(&self, port: &FaceUri) -> Result<(), PortForbidden> {
        self.port_policy.check(port)
    }

    async fn update_face(&self, face: &Arc<Face>, change: FaceUpdate) -> Result<(), RejectedProperties> {
        face.update(&change)?;
        // Fails only if a worker has ended.
        let _ = self.workers.update_face(face.id()).await;
        Ok(())
    }

    async fn destroy_face(&self, id: FaceId) {
        let (reply, answer) = oneshot::channel();
        let sent = self.sockets.send(SocketCommand::DestroyFace { id, reply }).await.is_ok();
        if sent && answer.await == Ok(true) || self.ports.destroy_face(id).await {
            // Fails only if a worker has ended.
            let _ = self.workers.remove_face(id).await;
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

    fn with_strategies<R>(&self, access: impl FnOnce(&mut StrategyRegistry) -> R) -> R {
        access(&mut self.strategies.borrow_mut())
    }

    fn next_hop_added(&self, prefix: NameRef<'_>, next_hop: NextHop) {
        self.workers.next_hop_added(&prefix.to_owned(), next_hop);
    }

    async fn cs_info(&self) -> CsInfo {
        self.workers.cs_info().await.unwrap_or_default()
    }

    async fn configure_cs(&self, change: CsChange) -> CsInfo {
        self.workers.cs_configure(change).await.unwrap_or_default()
    }

    async fn erase_cs(&self, prefix: Name, limit: usize) -> usize {
        let _erasing = self.saving.erasing_now();
        self.workers.cs_erase(prefix, limit).await.unwrap_or(0)
    }

    async fn worker_statuses(&self) -> Vec<WorkerStatus> {
        self.workers.statuses().await.unwrap_or_default()
    }

    fn power(&self) -> Option<PowerStatus> {
        self.power.borrow().clone()
    }

    fn dispatch_entries(&self) -> Vec<DispatchEntry> {
        self.balancing.entries()
    }

    async fn move_name(&self, name: NameRef<'_>, worker: u64) -> Result<DispatchEntry, DispatchError> {
        self.balancing.move_name(&self.workers, name, worker).await
    }

    async fn trace(&self, request: Option<TraceRequest>) {
        // A worker that has ended traces nothing.
        let _ = self.workers.trace(request).await;
    }

    async fn capture(&self, request: Option<CaptureRequest>) {
        self.capture.set(request).await;
    }

    async fn captured(&self, take: impl FnMut(&CaptureRecorder)) {
        self.capture.collect(take).await;
    }

    async fn sample_latency(&self, one_in: Option<NonZeroU32>) {
        self.latency.sample(one_in).await;
    }

    async fn latency(&self) -> LatencyStatus {
        self.latency.status().await
    }

    async fn engine_status(&self) -> EngineStatus {
        self.workers.snapshot().await.unwrap_or_default()
    }

    fn save(&self, change: StateChange<'_>) -> Result<(), NotSaved> {
        self.saving.save(change)
    }

    fn withdraw(&self) {
        self.saving.withdraw();
    }
}
