//! The management server against a small router in memory: real faces and a real FIB, everything else pretended.

mod announcements;
mod cs;
mod datasets;
mod dispatch;
mod events;
mod faces;
mod fib;
mod rib;
mod strategy_choice;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use namehop_face::FaceUri;
use namehop_face::registry::{Face, FaceFlags, FaceParams, FacePersistency, FaceTable, FaceUpdate, RejectedProperties};
use namehop_face::socket::CreateError;
use namehop_forward::face::{FaceId, FaceScope};
use namehop_forward::fib::{FibWriter, NextHop};
use namehop_forward::strategy::StrategyInstance;
use namehop_hash::HashKey;
use namehop_wire::builder::InterestSignatureOptions;
use namehop_wire::lp::{self, LpHeader, LpPacket, PitToken};
use namehop_wire::security::{DigestSigner, Signer, unix_time_ms};
use namehop_wire::{Data, InterestBuilder, Name, NameRef};
use tokio::task::LocalSet;

use super::*;
use crate::authentication::SecurityConfig;
use crate::nfd::{ControlParameters, ControlResponse, names};

/// A local application's face; the first that a [`FakeRouter`] has.
pub(crate) const APP: u64 = 256;
/// A neighbour's face; the second.
pub(crate) const NEIGHBOUR: u64 = 257;

pub(crate) struct FakeRouter {
    pub(crate) faces: FaceTable,
    fib: RefCell<FibWriter<StrategyInstance>>,
    cs: Cell<ContentStoreInfo>,
    erasable: Cell<usize>,
    engine: Cell<EngineStatus>,
    added: RefCell<Vec<(String, u32, u64)>>,
    changes: RefCell<Vec<String>>,
}

pub(crate) fn uri(text: &str) -> FaceUri {
    text.parse().expect("a FaceUri")
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

impl FakeRouter {
    fn new() -> Self {
        let key = HashKey { k0: 1, k1: 2 };
        let router = FakeRouter {
            faces: FaceTable::new(),
            fib: RefCell::new(FibWriter::new(key, StrategyInstance::default()).expect("a FIB")),
            cs: Cell::new(ContentStoreInfo { capacity: 65536, admit: true, serve: true, ..Default::default() }),
            erasable: Cell::new(0),
            engine: Cell::default(),
            added: RefCell::default(),
            changes: RefCell::default(),
        };
        let app =
            FaceParams { scope: FaceScope::Local, ..FaceParams::new(uri("fd://7"), uri("unix:///run/nfd/nfd.sock")) };
        assert_eq!(u64::from(router.faces.insert(app).expect("room").id().0), APP);
        let neighbour = FaceParams {
            is_datagram: true,
            allowed_persistencies: &[FacePersistency::Persistent, FacePersistency::Permanent],
            ..FaceParams::new(uri("udp4://192.0.2.1:6363"), uri("udp4://192.0.2.2:6363"))
        };
        assert_eq!(u64::from(router.faces.insert(neighbour).expect("room").id().0), NEIGHBOUR);
        router
    }
}

impl ControlPlane for FakeRouter {
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
        match uri.scheme() {
            "ether" => return Err(CreateError::NotAcceptable("no Ethernet here".to_owned())),
            "tcp4" => {
                tokio::time::sleep(Duration::from_secs(4)).await;
                return Err(CreateError::Unreachable("the peer does not answer".to_owned()));
            }
            _ => {}
        }
        let params = FaceParams {
            is_datagram: true,
            persistency: properties.persistency.unwrap_or(FacePersistency::Persistent),
            ..FaceParams::new(uri, super::tests::uri("udp4://192.0.2.2:6363"))
        };
        let face = self.faces.insert(params).expect("room");
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

    fn next_hop_added(&self, prefix: NameRef<'_>, next_hop: NextHop) {
        self.added.borrow_mut().push((prefix.to_string(), next_hop.face.0, next_hop.cost));
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
        let erased = self.erasable.get().min(limit);
        self.erasable.set(self.erasable.get() - erased);
        erased
    }

    async fn engine_status(&self) -> EngineStatus {
        self.engine.get()
    }

    fn state_changed(&self, change: StateChange<'_>) {
        self.changes.borrow_mut().push(match change {
            StateChange::FaceCreated(face) => format!("created {}", face.remote_uri()),
            StateChange::FaceUpdated(face) => format!("updated {}", face.remote_uri()),
            StateChange::FaceDestroyed(face) => format!("destroyed {}", face.remote_uri()),
            StateChange::RouteRegistered { prefix, route } => format!("route {prefix} {} {}", route.face, route.cost),
            StateChange::RouteUnregistered { prefix, face, origin } => format!("no route {prefix} {face} {origin}"),
            StateChange::StrategySet { prefix, strategy } => format!("strategy {prefix} {strategy}"),
            StateChange::StrategyUnset(prefix) => format!("no strategy {prefix}"),
            StateChange::ContentStore(info) => format!("cs {}", info.capacity),
        });
    }
}

/// A server, and everything it sent.
pub(crate) struct Fixture {
    pub(crate) management: Rc<Management<FakeRouter>>,
    sent: Rc<RefCell<Vec<Vec<u8>>>>,
}

/// One thing the server sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) token: Vec<u8>,
    no_cache: bool,
    pub(crate) packet: Vec<u8>,
}

impl Sent {
    fn data(&self) -> Data<'_> {
        Data::decode(&self.packet).expect("a Data")
    }

    fn response(&self) -> ControlResponse {
        ControlResponse::decode(self.data().content).expect("a ControlResponse")
    }
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with_security(&SecurityConfig::default())
    }

    fn with_security(security: &SecurityConfig) -> Self {
        let sent = Rc::new(RefCell::new(Vec::new()));
        let output = Rc::clone(&sent);
        let authenticator = Authenticator::new(security).expect("certificates");
        let management =
            Management::new(FakeRouter::new(), authenticator, move |frame| output.borrow_mut().push(frame));
        Fixture { management, sent }
    }

    pub(crate) fn router(&self) -> &FakeRouter {
        self.management.control()
    }

    /// Gives the server an Interest as the engine would.
    pub(crate) fn give(&self, interest: &[u8], face: u64, token: &[u8]) {
        let header = LpHeader {
            incoming_face_id: Some(face),
            pit_token: PitToken::from_slice(token).expect("a short token"),
            ..LpHeader::default()
        };
        self.management.receive(&lp::encode_packet(&header, Some(interest)));
    }

    /// Takes what was sent since the last time.
    pub(crate) fn take(&self) -> Vec<Sent> {
        let frames = std::mem::take(&mut *self.sent.borrow_mut());
        frames.iter().map(|frame| Self::open(frame)).collect()
    }

    /// Takes what was sent with this token, if anything was.
    pub(crate) fn take_by_token(&self, token: &[u8]) -> Option<Sent> {
        let mut frames = self.sent.borrow_mut();
        let has_token = |frame: &Vec<u8>| LpPacket::decode(frame).expect("a frame").pit_token.as_slice() == token;
        let position = frames.iter().position(has_token)?;
        Some(Self::open(&frames.remove(position)))
    }

    fn open(frame: &[u8]) -> Sent {
        let packet = LpPacket::decode(frame).expect("a frame");
        Sent {
            token: packet.pit_token.as_slice().to_vec(),
            no_cache: packet.cache_policy == Some(1),
            packet: packet.fragment.expect("a packet").to_vec(),
        }
    }

    fn take_one(&self) -> Sent {
        let mut sent = self.take();
        assert_eq!(sent.len(), 1, "exactly one answer");
        sent.remove(0)
    }

    /// Sends a command from the application's face and waits for the answer.
    async fn command(&self, module: &str, verb: &str, parameters: &ControlParameters) -> ControlResponse {
        self.command_from(APP, module, verb, parameters).await
    }

    async fn command_from(
        &self,
        face: u64,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> ControlResponse {
        let interest = signed_command(names::localhost(), module, verb, &parameters.to_vec(), &DigestSigner);
        self.give(&interest, face, b"token");
        let sent = self.wait_for_one().await;
        assert_eq!(sent.token, b"token");
        let name = namehop_wire::Interest::decode(&interest).expect("an Interest").name;
        assert_eq!(sent.data().name, name, "the answer has the name of the command");
        assert_eq!(sent.data().freshness_ms, Some(1000));
        sent.response()
    }

    async fn wait_for_one(&self) -> Sent {
        for _ in 0..100 {
            if !self.sent.borrow().is_empty() {
                return self.take_one();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("no answer");
    }

    /// The next hops of a FIB entry as (face, cost), by cost.
    pub(crate) fn fib(&self, prefix: &str) -> Vec<(u32, u64)> {
        let prefix = name(prefix);
        self.router().with_fib(|fib| {
            fib.nexthops(prefix.as_ref()).iter().map(|next_hop| (next_hop.face.0, next_hop.cost)).collect()
        })
    }

    fn changes(&self) -> Vec<String> {
        std::mem::take(&mut self.router().changes.borrow_mut())
    }
}

fn signed_command(prefix: Name, module: &str, verb: &str, parameters: &[u8], signer: &dyn Signer) -> Vec<u8> {
    let name = prefix.append_generic(module).append_generic(verb).append_generic(parameters);
    InterestBuilder::new(name).nonce(1).sign(signer, &options()).expect("signed")
}

fn options() -> InterestSignatureOptions {
    InterestSignatureOptions { nonce: Some([1; 8]), time_ms: Some(unix_time_ms()), sequence: None }
}

/// Runs a test on a `LocalSet` with a clock that moves only when everybody waits.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), test);
}

/// Parameters with only a name.
fn named(prefix: &str) -> ControlParameters {
    ControlParameters { name: Some(name(prefix)), ..ControlParameters::default() }
}

/// Flags of a face, set where `mask` says.
fn flags(face: &Face) -> FaceFlags {
    face.flags()
}
