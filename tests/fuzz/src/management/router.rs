//! The router that management works on: real faces and a real FIB, nothing behind them.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use namehop_face::FaceUri;
use namehop_face::registry::{Face, FaceParams, FacePersistency, FaceTable, FaceUpdate, RejectedProperties};
use namehop_face::socket::CreateError;
use namehop_forward::face::{FaceId, FaceScope};
use namehop_forward::fib::{FibWriter, NextHop};
use namehop_forward::strategy::StrategyInstance;
use namehop_hash::HashKey;
use namehop_manage::server::{ContentStoreChange, ContentStoreInfo, ControlPlane, EngineStatus, StateChange};
use namehop_wire::{Name, NameRef};

/// The face of a local application.
pub const APP: FaceId = FaceId(256);
/// The face of a neighbour.
pub const NEIGHBOUR: FaceId = FaceId(257);

const MAX_FACES: usize = 8;

pub struct Router {
    faces: FaceTable,
    fib: RefCell<FibWriter<StrategyInstance>>,
    cs: Cell<ContentStoreInfo>,
}

fn uri(text: &str) -> FaceUri {
    text.parse().expect("a FaceUri")
}

fn neighbour(remote: FaceUri) -> FaceParams {
    FaceParams {
        is_datagram: true,
        allowed_persistencies: &[FacePersistency::Persistent, FacePersistency::Permanent],
        ..FaceParams::new(remote, uri("udp4://192.0.2.2:6363"))
    }
}

impl Router {
    pub fn new() -> Self {
        let fib = FibWriter::new(HashKey { k0: 1, k1: 2 }, StrategyInstance::default()).expect("a small FIB fits");
        let router = Router { faces: FaceTable::with_limit(MAX_FACES), fib: RefCell::new(fib), cs: Cell::default() };
        let app =
            FaceParams { scope: FaceScope::Local, ..FaceParams::new(uri("fd://7"), uri("unix:///run/nfd/nfd.sock")) };
        let remote = neighbour(uri("udp4://192.0.2.1:6363"));
        assert_eq!([app, remote].map(|params| router.faces.insert(params).expect("room").id()), [APP, NEIGHBOUR]);
        router
    }

    pub fn face(&self, id: FaceId) -> Option<Arc<Face>> {
        self.faces.get(id)
    }
}

impl ControlPlane for Router {
    fn faces(&self) -> &FaceTable {
        &self.faces
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

    fn next_hop_added(&self, _: NameRef<'_>, next_hop: NextHop) {
        assert!(self.face(next_hop.face).is_some(), "a next hop on {}, which is not there", next_hop.face);
    }

    async fn cs_info(&self) -> ContentStoreInfo {
        self.cs.get()
    }

    async fn configure_cs(&self, change: ContentStoreChange) -> ContentStoreInfo {
        let old = self.cs.get();
        self.cs.set(ContentStoreInfo {
            capacity: change.capacity.unwrap_or(old.capacity),
            admit: change.admit.unwrap_or(old.admit),
            serve: change.serve.unwrap_or(old.serve),
            ..old
        });
        self.cs.get()
    }

    async fn erase_cs(&self, _: Name, limit: usize) -> usize {
        limit.min(3)
    }

    async fn engine_status(&self) -> EngineStatus {
        EngineStatus::default()
    }

    fn state_changed(&self, _: StateChange<'_>) {}
}
