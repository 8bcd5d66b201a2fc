//! The management server with a small simulated router: all its answers conform to the protocol.

mod answers;
mod requests;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use namehop_client::nfd::names::module;
use namehop_face::registry::FaceTable;
use namehop_face::socket::FaceEvent;
use namehop_manage::authentication::{Authenticator, Rule, SecurityConfig, Signer, TrustConfig};
use namehop_manage::server::Management;
use namehop_manage::testing::{APP, FakeRouter, NEIGHBOUR};
use namehop_packet::{FaceId, FaceScope};
use namehop_wire::Interest;
use namehop_wire::lp::{self, LpHeader, LpPacket, PitToken};
use tokio::task::{LocalSet, spawn_local};

use crate::script::Events;
use answers::Answer;
use requests::Request;

/// Most events of one input.
const MAX_EVENTS: usize = 100;
/// Maximum number of faces of the router.
const MAX_FACES: usize = 8;
/// Data in its cache: more than one command erases.
const CACHED_DATA: usize = 600;
/// Length of the PIT tokens of Interests that this check creates; other frames have their own tokens.
const TOKEN_BYTES: usize = 5;

/// Bits of the first byte, which select the permissions.
mod option {
    /// Commands must be signed by the trusted key.
    pub const RULES: u8 = 1;
    /// There are trust anchors, for `/localhop` and for prefix announcements.
    pub const ANCHORS: u8 = 2;
}

/// The first byte selects the permissions. The events are frames, Interests, commands, passing time, and face events.
pub fn management(bytes: &[u8]) {
    let Some((&options, script)) = bytes.split_first() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    LocalSet::new().block_on(&runtime.expect("a runtime"), run(options, script));
}

fn security(options: u8) -> SecurityConfig {
    let anchor = Path::new(env!("CARGO_MANIFEST_DIR")).join("trust-anchor.ndncert");
    let mut security = SecurityConfig::default();
    if options & option::RULES != 0 {
        let modules = [module::FACES, module::FIB, module::RIB, module::STRATEGY_CHOICE].map(str::to_owned).to_vec();
        security.rules = vec![Rule { signer: Signer::Certificate(anchor.clone()), modules }];
    }
    if options & option::ANCHORS != 0 {
        let trust = TrustConfig { anchors: vec![anchor.into()], certificates: None };
        security.localhop = trust.clone();
        security.prefix_announcements = trust;
    }
    security
}

/// The server, with the Interests given to it and the frames that it sent.
struct Scene {
    management: Rc<Management<FakeRouter>>,
    sent: Rc<RefCell<Vec<Vec<u8>>>>,
    /// Interests given to the server; the PIT token holds the index.
    asked: Vec<Vec<u8>>,
    has_anchors: bool,
}

async fn run(options: u8, script: &[u8]) {
    let sent = Rc::new(RefCell::new(Vec::new()));
    let output = Rc::clone(&sent);
    let authenticator = Authenticator::new(&security(options)).expect("the certificate is good");
    let router = FakeRouter::with_faces(FaceTable::with_limit(MAX_FACES));
    router.cached_data.set(CACHED_DATA);
    // The clock stands still while an answer is pending.
    router.connect_time.set(Duration::ZERO);
    let management = Management::new(router, authenticator, move |frame| output.borrow_mut().push(frame));
    spawn_local(Rc::clone(&management).run());
    let mut scene = Scene { management, sent, asked: Vec::new(), has_anchors: options & option::ANCHORS != 0 };
    for (kind, bytes) in Events(script).take(MAX_EVENTS) {
        scene.happen(kind, bytes).await;
    }
}

impl Scene {
    /// Executes an event. The lowest three bits of `kind` select the event, and bits 5 and 6 the face.
    async fn happen(&mut self, kind: u8, bytes: &[u8]) {
        let face = [APP, NEIGHBOUR, FaceId(1), FaceId(258)][usize::from(kind >> 5 & 3)];
        let mut must_answer = None;
        match kind & 7 {
            0 => {
                let is_ours =
                    LpPacket::decode(bytes).is_ok_and(|packet| packet.pit_token.as_slice().len() == TOKEN_BYTES);
                if !is_ours {
                    self.management.receive(bytes);
                }
            }
            6 => tokio::time::advance(Duration::from_millis(100 * bytes.len() as u64)).await,
            7 => {
                if let Some(face) = self.management.control().face(face) {
                    self.management.face_event(&match bytes.len() % 4 {
                        0 => FaceEvent::Created(face),
                        1 => FaceEvent::Up(face),
                        2 => FaceEvent::Down(face),
                        _ => FaceEvent::Destroyed(face),
                    });
                }
            }
            _ => {
                if let Some(Request { interest, is_command }) = requests::make(kind, bytes, self.asked.len() as u64) {
                    let index = self.asked.len();
                    if is_command && self.takes_commands(&interest, face) {
                        must_answer = Some(index);
                    }
                    self.give(&interest, face, index);
                    self.asked.push(interest);
                }
            }
        }
        // The clock only moves when all tasks wait, so all work is done when this returns.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let answers: Vec<_> = self.sent.take().iter().map(|frame| Answer::read(frame).check(&self.asked)).collect();
        if let Some(index) = must_answer {
            let count = answers.iter().filter(|&&answered| answered == Some(index)).count();
            let name = Interest::decode(&self.asked[index]).expect("an Interest").name.to_string();
            assert_eq!(count, 1, "answers to a command of {} bytes: {name:.200}", self.asked[index].len());
        }
    }

    /// Returns whether a well-formed command from this face gets an answer, positive or negative.
    fn takes_commands(&self, interest: &[u8], face: FaceId) -> bool {
        let name = Interest::decode(interest).expect("an Interest").name;
        if name.get(0).is_some_and(|component| component.value == b"localhop") {
            return self.has_anchors && name.get(2).is_some_and(|component| component.value == module::RIB.as_bytes());
        }
        self.management.control().face(face).is_some_and(|face| face.scope() == FaceScope::Local)
    }

    fn give(&self, interest: &[u8], face: FaceId, index: usize) {
        let [.., a, b, c, d] = (index as u64).to_be_bytes();
        let token = [b'#', a, b, c, d];
        let header = LpHeader {
            incoming_face_id: Some(face.0.into()),
            pit_token: PitToken::from_slice(&token).expect("a short token"),
            ..LpHeader::default()
        };
        self.management.receive(&lp::encode_packet(&header, Some(interest)));
    }
}
