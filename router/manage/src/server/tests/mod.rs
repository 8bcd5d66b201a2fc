//! The management server with the in-memory router of [`crate::testing`].

mod announcements;
mod capture;
mod client;
mod cs;
mod datasets;
mod dispatch;
mod events;
mod faces;
mod fib;
mod latency;
mod loaded;
mod loaded_strategies;
mod ndt;
mod readvertise;
mod rib;
mod saving;
mod strategy_choice;
mod trace;

use namehop_client::nfd::{ControlParameters, ControlResponse, Element, names};
use namehop_packet::FaceId;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use namehop_face::FaceUri;
use namehop_face::registry::{Face, FaceFlags, FaceParams, FacePersistency};
use namehop_wire::builder::InterestSignatureOptions;
use namehop_wire::lp::{self, LpHeader, LpPacket, PitToken};
use namehop_wire::security::{DigestSigner, Signer, unix_time_ms};
use namehop_wire::{Data, InterestBuilder, Name};
use tokio::task::LocalSet;

use super::*;
use crate::authentication::SecurityConfig;
use crate::testing::{self, FakeRouter};

/// Id of the local application's face.
pub(crate) const APP: u64 = testing::APP.0 as u64;
/// Id of the neighbour's face.
pub(crate) const NEIGHBOUR: u64 = testing::NEIGHBOUR.0 as u64;

pub(crate) fn uri(text: &str) -> FaceUri {
    text.parse().expect("a FaceUri")
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// A server, and the frames that it sent.
pub(crate) struct Fixture {
    pub(crate) management: Rc<Management<FakeRouter>>,
    sent: Rc<RefCell<Vec<Vec<u8>>>>,
}

/// One packet that the server sent.
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
            Management::new(FakeRouter::default(), authenticator, move |frame| output.borrow_mut().push(frame));
        Fixture { management, sent }
    }

    pub(crate) fn router(&self) -> &FakeRouter {
        self.management.control()
    }

    /// Passes an Interest to the server as the engine would.
    pub(crate) fn give(&self, interest: &[u8], face: u64, token: &[u8]) {
        let header = LpHeader {
            incoming_face_id: Some(face),
            pit_token: PitToken::from_slice(token).expect("a short token"),
            ..LpHeader::default()
        };
        self.management.receive(&lp::encode_packet(&header, Some(interest)));
    }

    /// Takes the packets sent since the last call.
    pub(crate) fn take(&self) -> Vec<Sent> {
        let frames = std::mem::take(&mut *self.sent.borrow_mut());
        frames.iter().map(|frame| Self::open(frame)).collect()
    }

    /// Takes the packet sent with this token, if there is one.
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
        assert_eq!(sent.len(), 1, "there must be exactly one answer");
        sent.remove(0)
    }

    /// Sends a command from the application's face and waits for the response.
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
        panic!("the command must be answered");
    }

    /// Returns the next hops of a FIB entry as (face, cost), in order of cost.
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

/// Returns options with a later time than all before: of two commands in one millisecond, the second is a replay.
fn options() -> InterestSignatureOptions {
    static LAST_MS: Mutex<u64> = Mutex::new(0);
    let mut last_ms = LAST_MS.lock().unwrap_or_else(PoisonError::into_inner);
    *last_ms = unix_time_ms().max(*last_ms + 1);
    InterestSignatureOptions { nonce: Some([1; 8]), time_ms: Some(*last_ms), sequence: None }
}

/// Runs a test on a `LocalSet` with a clock that advances only when all tasks wait.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), test);
}

/// Returns parameters with only a name.
fn named(prefix: &str) -> ControlParameters {
    ControlParameters { name: Some(name(prefix)), ..ControlParameters::default() }
}

fn flags(face: &Face) -> FaceFlags {
    face.flags()
}
