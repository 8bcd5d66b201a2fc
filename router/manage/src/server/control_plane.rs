//! The interface between management and the router around it.
//!
//! All methods are called on the control thread. A future completes when its operation has taken effect, so a command
//! that is answered with 200 is done.

use std::future::Future;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use namehop_client::nfd::{DispatchEntry, LatencyStatus, PowerStatus, WorkerStatus};
use namehop_engine::engine::{CsChange, CsInfo};
use namehop_engine::fib::{FibWriter, NextHop};
use namehop_engine::strategy::{StrategyInstance, StrategyRegistry};
use namehop_engine::trace::TraceRequest;
use namehop_face::FaceUri;
use namehop_face::capture::{CaptureRecorder, CaptureRequest};
use namehop_face::registry::{Face, FaceTable, FaceUpdate, RejectedProperties};
use namehop_face::socket::CreateError;
use namehop_packet::FaceId;
use namehop_wire::{Name, NameRef};

use crate::rib::Route;
use namehop_engine::engine::EngineStatus;

/// Why names were not moved to another worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    /// There is no worker with this number.
    #[error("there is no worker with this number; 'namehop status' lists them")]
    NoSuchWorker,
    /// The names were moved less than half a minute ago, and their former worker may have pending Interests.
    #[error("names of this entry were moved less than half a minute ago; retry later")]
    MovedLately,
    /// A worker has ended, so the router is ending.
    #[error("the router is stopping")]
    RouterEnds,
}

/// A change by command that may have to survive a restart.
#[derive(Debug)]
pub enum StateChange<'a> {
    /// A face was created.
    FaceCreated(&'a Face),
    /// Properties of a face were changed.
    FaceUpdated(&'a Face),
    /// A face will be destroyed.
    FaceDestroyed(&'a Face),
    /// A route will be added or replaced.
    RouteRegistered {
        /// Prefix of the route.
        prefix: NameRef<'a>,
        /// The route. Its expiry refers to a clock that ends with the process.
        route: &'a Route,
        /// Lifetime from now, in milliseconds; `None` = unlimited.
        lifetime_ms: Option<u64>,
    },
    /// A route will be removed.
    RouteUnregistered {
        /// Prefix of the route.
        prefix: NameRef<'a>,
        /// Face of the route.
        face: FaceId,
        /// Origin of the route.
        origin: u64,
    },
    /// A strategy will be chosen.
    StrategySet {
        /// Prefix of the choice.
        prefix: NameRef<'a>,
        /// Full name of the strategy.
        strategy: &'a Name,
    },
    /// The choice for this prefix will be removed.
    StrategyUnset(NameRef<'a>),
    /// A strategy will be loaded, or replace the loaded one with its name.
    StrategyLoaded {
        /// Its name component.
        name: &'a str,
        /// The object file.
        object: &'a [u8],
    },
    /// The loaded strategy with this name will be unloaded.
    StrategyUnloaded(&'a str),
    /// The Content Store will be configured.
    ContentStore(CsChange),
    /// Data under this prefix will be erased from the Content Store. A second tier on a disk that fails or stalls has
    /// to erase it later.
    CsErased(NameRef<'a>),
}

/// A change could not be saved, so its command must not be carried out. The text says why and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotSaved(pub String);

/// Why a command may not open a port. The text names the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortForbidden {
    /// The port reads or writes files.
    #[error("commands may not read or write files: add a [[port]] for {0} to the router's configuration")]
    File(FaceUri),
    /// The network interface is not listed.
    #[error(
        "commands may not use network interface {0}: list it in `interfaces` in section [ports] of the router's \
         configuration"
    )]
    Interface(String),
    /// The socket of the port is not in an allowed folder.
    #[error(
        "commands may not open {scheme} sockets in {}, only in existing folders in or below {}: choose one of these, \
         or list the folder in `memif_folders` in section [ports] of the router's configuration",
        .folder.display(), folder_list(.allowed)
    )]
    SocketFolder {
        /// Scheme of the port.
        scheme: &'static str,
        /// Folder of the socket.
        folder: PathBuf,
        /// The allowed folders.
        allowed: Vec<PathBuf>,
    },
}

fn folder_list(folders: &[PathBuf]) -> String {
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    if folders.is_empty() { "(none)".to_owned() } else { folders.join(", ") }
}

/// The router as management uses it.
pub trait ControlPlane: 'static {
    /// Returns the table of existing faces.
    fn faces(&self) -> &FaceTable;

    /// Checks whether a command may have this port opened. Commands with a listed key or the token of the HTTP API are
    /// checked for ports that read or write files only.
    ///
    /// # Errors
    /// [`PortForbidden`]: why not, and what to do.
    fn may_open_port(&self, port: &FaceUri) -> Result<(), PortForbidden>;

    /// Creates a face. `uri` is canonical.
    fn create_face(
        &self,
        uri: FaceUri,
        local_uri: Option<FaceUri>,
        properties: FaceUpdate,
    ) -> impl Future<Output = Result<Arc<Face>, CreateError>>;

    /// Changes properties of a face, all or none, in the table and wherever they take effect.
    fn update_face(&self, face: &Arc<Face>, change: FaceUpdate)
    -> impl Future<Output = Result<(), RejectedProperties>>;

    /// Closes a face. Does nothing if the face does not exist.
    fn destroy_face(&self, id: FaceId) -> impl Future<Output = ()>;

    /// Returns the addresses that the router listens on.
    fn channels(&self) -> Vec<FaceUri>;

    /// Runs `access` on the FIB. Calls must not be nested, and `access` may call no other method than
    /// [`next_hop_added`](Self::next_hop_added).
    fn with_fib<R>(&self, access: impl FnOnce(&mut FibWriter<StrategyInstance>) -> R) -> R;

    /// Runs `access` on the available strategies. Calls must not be nested.
    fn with_strategies<R>(&self, access: impl FnOnce(&mut StrategyRegistry) -> R) -> R;

    /// Reports that a prefix has a new next hop; pending Interests may be forwarded to it.
    fn next_hop_added(&self, prefix: NameRef<'_>, next_hop: NextHop);

    /// Returns the state of the Content Store.
    fn cs_info(&self) -> impl Future<Output = CsInfo>;

    /// Changes settings of the Content Store and returns its new state.
    fn configure_cs(&self, change: CsChange) -> impl Future<Output = CsInfo>;

    /// Erases up to `limit` Data under `prefix` from the Content Store; returns how many were erased.
    fn erase_cs(&self, prefix: Name, limit: usize) -> impl Future<Output = usize>;

    /// Returns counters and table sizes, and copies the engine's drops for each face into the counters of the face.
    fn engine_status(&self) -> impl Future<Output = EngineStatus>;

    /// Returns the status of each worker, indexed by worker.
    fn worker_statuses(&self) -> impl Future<Output = Vec<WorkerStatus>>;

    /// Returns the power of the host, where it is measured or estimated.
    fn power(&self) -> Option<PowerStatus>;

    /// Returns the entries of the name dispatch table that had packets recently, busiest first.
    fn dispatch_entries(&self) -> Vec<DispatchEntry>;

    /// Moves all names that share the dispatch entry of this name to another worker.
    fn move_name(&self, name: NameRef<'_>, worker: u64) -> impl Future<Output = Result<DispatchEntry, DispatchError>>;

    /// Starts tracing on all workers, or stops it (`None`). Each worker calls
    /// [`Management::traced`](super::Management::traced) for every traced packet.
    fn trace(&self, request: Option<TraceRequest>) -> impl Future<Output = ()>;

    /// Starts capturing frames on all workers, or stops it (`None`). Discards frames captured earlier.
    fn capture(&self, request: Option<CaptureRequest>) -> impl Future<Output = ()>;

    /// Calls `take` with the frames that each worker has captured since the last call.
    fn captured(&self, take: impl FnMut(&CaptureRecorder)) -> impl Future<Output = ()>;

    /// Starts measuring how long packets stay in the router, on average one packet in `one_in`, or stops it (`None`).
    /// Discards earlier measurements.
    fn sample_latency(&self, one_in: Option<NonZeroU32>) -> impl Future<Output = ()>;

    /// Returns the measured times that packets stayed in the router.
    fn latency(&self) -> impl Future<Output = LatencyStatus>;

    /// Saves a change if it has to survive a restart. Called before the change takes effect, so that every effect that
    /// is answered with success is saved. Where the outcome must be known first, it is called right after the change,
    /// and the caller undoes the change if saving fails.
    ///
    /// # Errors
    /// The change cannot be saved.
    fn save(&self, change: StateChange<'_>) -> Result<(), NotSaved>;

    /// Reverts the last [`save`](Self::save), because the change could not take effect.
    fn withdraw(&self);
}
