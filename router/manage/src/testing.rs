//! An in-memory router for tests and fuzzing of the management server. Faces and FIB are real; everything else is
//! simulated and recorded.
//!
//! It starts with two faces: one of a local application and one of a neighbour. It forwards no packets.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use namehop_client::nfd::{DispatchEntry, LatencyStatus, PowerStatus, WorkerStatus};
use namehop_engine::engine::{CsChange, CsInfo, EngineStatus};
use namehop_engine::fib::{FibWriter, NextHop};
use namehop_engine::strategy::{StrategyInstance, StrategyRegistry};
use namehop_engine::trace::TraceRequest;
use namehop_face::FaceUri;
use namehop_face::capture::{CaptureClock, CaptureRecorder, CaptureRequest};
use namehop_face::registry::{Face, FaceParams, FacePersistency, FaceTable, FaceUpdate, RejectedProperties};
use namehop_face::socket::CreateError;
use namehop_hash::HashKey;
use namehop_packet::{FaceId, FaceScope};
use namehop_port::drivers::{Access, Driver};
use namehop_wire::{Name, NameRef};

use crate::server::{ControlPlane, DispatchError, NotSaved, PortForbidden, StateChange};

/// Face of a local application.
pub const APP: FaceId = FaceId(256);
/// Face of a neighbour.
pub const NEIGHBOUR: FaceId = FaceId(257);

/// The simulated router.
pub struct FakeRouter {
    faces: FaceTable,
    fib: RefCell<FibWriter<StrategyInstance>>,
    strategies: RefCell<StrategyRegistry>,
    /// Number of Data that `cs/erase` still finds, under any prefix.
    pub cached_data: Cell<usize>,
    /// Source of `status/general`, `status/drops` and `cs/info`.
    pub engine: Cell<EngineStatus>,
    /// Status of the workers.
    pub workers: RefCell<Vec<WorkerStatus>>,
    /// Entries of the name dispatch table. Every move applies to the first entry and fails if there is none.
    pub dispatch_entries: RefCell<Vec<DispatchEntry>>,
    /// Power of the host.
    pub power: RefCell<Option<PowerStatus>>,
    /// Times that packets stay in the router.
    pub latency: RefCell<LatencyStatus>,
    /// The requested trace.
    pub traced: RefCell<Option<TraceRequest>>,
    /// Recorder of the requested capture.
    pub captured: RefCell<Option<Box<CaptureRecorder>>>,
    /// Time after which a TCP connection attempt fails; every attempt fails.
    pub connect_time: Cell<Duration>,
    /// Next hops reported as new: prefix, face, cost.
    pub added_next_hops: RefCell<Vec<(String, u32, u64)>>,
    /// Saved changes, as text.
    pub changes: RefCell<Vec<String>>,
    /// True if saving fails, as on a full disk.
    pub cannot_save: Cell<bool>,
    /// True if there is no memory for another policy of the Content Store.
    pub has_no_memory: Cell<bool>,
}

fn uri(text: &str) -> FaceUri {
    text.parse().expect("a FaceUri")
}

/// Returns the parameters of a face to another host.
fn neighbour(remote: FaceUri) -> FaceParams {
    FaceParams {
        is_datagram: true,
        allowed_persistencies: &[FacePersistency::Persistent, FacePersistency::Permanent],
        ..FaceParams::new(remote, uri("udp4://192.0.2.2:6363"))
    }
}

impl Default for FakeRouter {
    fn default() -> Self {
        Self::with_faces(FaceTable::new())
    }
}

impl FakeRouter {
    /// Creates a router and inserts its two faces into an empty face table.
    ///
    /// # Panics
    /// When the table has no room for two faces.
    pub fn with_faces(faces: FaceTable) -> Self {
        let app =
            FaceParams { scope: FaceScope::Local, ..FaceParams::new(uri("fd://7"), uri("unix:///run/nfd/nfd.sock")) };
        let remote = neighbour(uri("udp4://192.0.2.1:6363"));
        assert_eq!([app, remote].map(|params| faces.insert(params).expect("room").id()), [APP, NEIGHBOUR]);
        let fib = FibWriter::new(HashKey::new(1, 2), StrategyInstance::default()).expect("a small FIB fits");
        let cs = CsInfo { capacity: 65536, admit: true, serve: true, ..CsInfo::default() };
        FakeRouter {
            faces,
            fib: RefCell::new(fib),
            strategies: RefCell::default(),
            cached_data: Cell::default(),
            engine: Cell::new(EngineStatus { cs, ..EngineStatus::default() }),
            workers: RefCell::default(),
            dispatch_entries: RefCell::default(),
            power: RefCell::default(),
            latency: RefCell::default(),
            traced: RefCell::default(),
            captured: RefCell::default(),
            connect_time: Cell::new(Duration::from_secs(4)),
            added_next_hops: RefCell::default(),
            changes: RefCell::default(),
            cannot_save: Cell::default(),
            has_no_memory: Cell::default(),
        }
    }

    /// Returns an existing face.
    pub fn face(&self, id: FaceId) -> Option<Arc<Face>> {
        self.faces.get(id)
    }
}

impl ControlPlane for FakeRouter {
    fn faces(&self) -> &FaceTable {
        &self.faces
    }

    fn may_open_port(&self, port: &FaceUri) -> Result<(), PortForbidden> {
        match Driver::access_to(port) {
            Some(Access::Socket(_)) => {
                let (scheme, folder) = (port.scheme(), "/run/ndn".into());
                Err(PortForbidden::SocketFolder { scheme, folder, allowed: Vec::new() })
            }
            _ => Ok(()),
        }
    }

    async fn create_face(
        &self,
        uri: FaceUri,
        _: Option<FaceUri>,
        properties: FaceUpdate,
    ) -> Result<Arc<Face>, CreateError> {
        if let Some(face) = self.faces.find_by_remote(&uri).into_iter().next() {
            return Err(CreateError::Exists(face));
        }
        match uri.scheme() {
            "ether" => return Err(CreateError::NotAcceptable("no Ethernet here".to_owned())),
            "tcp4" => {
                tokio::time::sleep(self.connect_time.get()).await;
                return Err(CreateError::Unreachable("the peer does not answer".to_owned()));
            }
            _ => {}
        }
        let params =
            FaceParams { persistency: properties.persistency.unwrap_or(FacePersistency::Persistent), ..neighbour(uri) };
        let face = self.faces.insert(params).map_err(|error| CreateError::Unreachable(error.to_string()))?;
        match face.update(&FaceUpdate { persistency: None, ..properties }) {
            Ok(()) => Ok(face),
            Err(error) => {
                self.faces.remove(face.id());
                Err(CreateError::NotAcceptable(error.to_string()))
            }
        }
    }

    async fn update_face(&self, face: &Arc<Face>, change: FaceUpdate) -> Result<(), RejectedProperties> {
        face.update(&change)
    }

    async fn destroy_face(&self, id: FaceId) {
        self.faces.remove(id);
    }

    fn channels(&self) -> Vec<FaceUri> {
        vec![uri("udp4://0.0.0.0:6363"), uri("unix:///run/nfd/nfd.sock")]
    }

    fn with_fib<R>(&self, access: impl FnOnce(&mut FibWriter<StrategyInstance>) -> R) -> R {
        access(&mut self.fib.borrow_mut())
    }

    fn with_strategies<R>(&self, access: impl FnOnce(&mut StrategyRegistry) -> R) -> R {
        access(&mut self.strategies.borrow_mut())
    }

    fn next_hop_added(&self, prefix: NameRef<'_>, next_hop: NextHop) {
        assert!(self.face(next_hop.face).is_some(), "the face {} of a next hop must exist", next_hop.face);
        self.added_next_hops.borrow_mut().push((prefix.to_string(), next_hop.face.0, next_hop.cost));
    }

    async fn cs_info(&self) -> CsInfo {
        self.engine.get().cs
    }

    async fn configure_cs(&self, change: CsChange) -> CsInfo {
        let mut engine = self.engine.get();
        engine.cs.capacity = change.capacity.unwrap_or(engine.cs.capacity);
        engine.cs.admit = change.admit.unwrap_or(engine.cs.admit);
        engine.cs.serve = change.serve.unwrap_or(engine.cs.serve);
        if !self.has_no_memory.get() {
            engine.cs.policy = change.policy.unwrap_or(engine.cs.policy);
        }
        self.engine.set(engine);
        engine.cs
    }

    async fn erase_cs(&self, _: Name, limit: usize) -> usize {
        let erased = self.cached_data.get().min(limit);
        self.cached_data.set(self.cached_data.get() - erased);
        erased
    }

    async fn worker_statuses(&self) -> Vec<WorkerStatus> {
        self.workers.borrow().clone()
    }

    fn power(&self) -> Option<PowerStatus> {
        self.power.borrow().clone()
    }

    fn dispatch_entries(&self) -> Vec<DispatchEntry> {
        self.dispatch_entries.borrow().clone()
    }

    async fn move_name(&self, _: NameRef<'_>, worker: u64) -> Result<DispatchEntry, DispatchError> {
        let mut entries = self.dispatch_entries.borrow_mut();
        let entry = entries.first_mut().ok_or(DispatchError::MovedLately)?;
        if worker >= self.workers.borrow().len() as u64 {
            return Err(DispatchError::NoSuchWorker);
        }
        entry.former_worker = Some(std::mem::replace(&mut entry.worker, worker));
        Ok(*entry)
    }

    async fn trace(&self, request: Option<TraceRequest>) {
        *self.traced.borrow_mut() = request;
    }

    async fn capture(&self, request: Option<CaptureRequest>) {
        let recorder = request.map(|request| CaptureRecorder::new(Arc::new(request), CaptureClock::new()));
        *self.captured.borrow_mut() = recorder;
    }

    async fn captured(&self, mut take: impl FnMut(&CaptureRecorder)) {
        // As with real workers, other commands may be handled before the frames arrive.
        tokio::task::yield_now().await;
        if let Some(recorder) = &mut *self.captured.borrow_mut() {
            take(recorder);
            recorder.clear();
        }
    }

    async fn sample_latency(&self, one_in: Option<NonZeroU32>) {
        *self.latency.borrow_mut() = LatencyStatus { one_in, ..LatencyStatus::default() };
    }

    async fn latency(&self) -> LatencyStatus {
        self.latency.borrow().clone()
    }

    async fn engine_status(&self) -> EngineStatus {
        self.engine.get()
    }

    fn save(&self, change: StateChange<'_>) -> Result<(), NotSaved> {
        if self.cannot_save.get() {
            return Err(NotSaved("the disk is full".to_owned()));
        }
        self.changes.borrow_mut().push(match change {
            StateChange::FaceCreated(face) => format!("created {}", face.remote_uri()),
            StateChange::FaceUpdated(face) => format!("updated {}", face.remote_uri()),
            StateChange::FaceDestroyed(face) => format!("destroyed {}", face.remote_uri()),
            StateChange::RouteRegistered { prefix, route, .. } => {
                format!("route {prefix} {} {}", route.face, route.cost)
            }
            StateChange::RouteUnregistered { prefix, face, origin } => format!("no route {prefix} {face} {origin}"),
            StateChange::StrategySet { prefix, strategy } => format!("strategy {prefix} {strategy}"),
            StateChange::StrategyUnset(prefix) => format!("no strategy {prefix}"),
            StateChange::StrategyLoaded { name, object } => format!("loaded {name} of {} bytes", object.len()),
            StateChange::StrategyUnloaded(name) => format!("unloaded {name}"),
            StateChange::ContentStore(change) => format!("cs {change:?}"),
            StateChange::CsErased(prefix) => format!("erased {prefix}"),
        });
        Ok(())
    }

    fn withdraw(&self) {
        self.changes.borrow_mut().pop();
    }
}
