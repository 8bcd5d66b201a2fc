//! A tiny forwarder for tests. It connects consumers and producers inside one process, so that clients can be tested
//! without a router.
//!
//! It learns prefixes from `rib/register` commands, which it always grants. It answers Interests without a route with
//! Nack NoRoute, carries PIT tokens, and can drop Interests and mark Data on purpose. It is not a router: it has no
//! cache, no aggregation, no time-outs and no limits.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namehop_wire::builder::{DataBuilder, InterestBuilder};
use namehop_wire::lp::{LpPacket, NackReason, PitToken};
use namehop_wire::security::DigestSigner;
use namehop_wire::tlv::{Reader, Writer, types};
use namehop_wire::{Interest, Name};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixListener;

use crate::endpoint::frames::{Batch, FrameReader, Outgoing};
use crate::endpoint::{Endpoint, LpFields, write_lp};

/// Faults that the forwarder makes on purpose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Drops every n-th forwarded Interest; 0 = none.
    pub lose_every: u64,
    /// Puts a CongestionMark on every n-th returned Data; 0 = none.
    pub mark_every: u64,
    /// Sends every n-th returned Data twice; 0 = none.
    pub duplicate_every: u64,
    /// Number of Interests sent to a producer before the answer to its `rib/register` command; their Data is ignored.
    pub early_requests: u64,
}

struct Waiting {
    face: usize,
    pit_token: PitToken,
}

#[derive(Default)]
struct State {
    faults: Faults,
    faces: Vec<Arc<Outgoing>>,
    routes: Vec<(Name, usize)>,
    /// Prefixes of `rib/unregister` commands.
    unregistered: Vec<Name>,
    /// Pending Interests, by the PIT token sent to the producer.
    waiting: HashMap<u64, Waiting>,
    next_token: u64,
    interests: u64,
    data: u64,
}

/// The forwarder. Clones share its state.
#[derive(Clone, Default)]
pub struct Loopback {
    state: Arc<Mutex<State>>,
}

impl Loopback {
    /// Creates a forwarder without faces.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a forwarder with faults.
    pub fn with_faults(faults: Faults) -> Self {
        let hub = Self::new();
        hub.lock().faults = faults;
        hub
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects a new client and returns its endpoint.
    pub fn endpoint(&self) -> Endpoint {
        let (near, far) = tokio::io::duplex(1 << 20);
        self.attach(far);
        Endpoint::from_stream(near)
    }

    /// Returns the registered prefixes with the indices of their faces.
    pub fn routes(&self) -> Vec<(Name, usize)> {
        self.lock().routes.clone()
    }

    /// Returns the prefixes of all `rib/unregister` commands so far.
    pub fn unregistered(&self) -> Vec<Name> {
        self.lock().unregistered.clone()
    }

    /// Returns the number of Interests forwarded so far.
    pub fn forwarded_interests(&self) -> u64 {
        self.lock().interests
    }

    /// Accepts clients on a Unix socket until the runtime stops.
    ///
    /// # Errors
    /// Fails if the socket cannot be created.
    pub fn listen(&self, path: &Path) -> std::io::Result<()> {
        let listener = UnixListener::bind(path)?;
        let hub = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                hub.attach(stream);
            }
        });
        Ok(())
    }

    fn attach(&self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let outgoing = Arc::new(Outgoing::default());
        let face = {
            let mut state = self.lock();
            state.faces.push(Arc::clone(&outgoing));
            state.faces.len() - 1
        };
        let (reader, mut writer) = tokio::io::split(stream);
        let hub = self.clone();
        let queue = Arc::clone(&outgoing);
        tokio::spawn(async move {
            let mut frames = FrameReader::new(reader);
            while let Ok(true) = frames.fill().await {
                while let Ok(Some(frame)) = frames.next_frame() {
                    hub.lock().receive(face, frame);
                }
            }
            hub.lock().routes.retain(|(_, to)| *to != face);
            queue.close();
        });
        tokio::spawn(async move {
            let mut batch = Batch::default();
            while outgoing.take(&mut batch).await {
                if writer.write_all(&batch.bytes).await.is_err() {
                    return;
                }
                batch.clear();
            }
        });
    }
}

impl State {
    fn receive(&mut self, face: usize, frame: &[u8]) {
        let Ok(packet) = LpPacket::decode(frame) else { return };
        let Some(fragment) = packet.fragment else { return };
        if let Ok(interest) = Interest::decode(fragment) {
            match packet.nack {
                None => self.interest(face, fragment, &interest, packet.pit_token),
                Some(_) => self.answer(packet.pit_token, fragment, packet.nack),
            }
        } else {
            self.answer(packet.pit_token, fragment, None);
        }
    }

    fn interest(&mut self, face: usize, packet: &[u8], interest: &Interest<'_>, pit_token: PitToken) {
        if let Some(answer) = self.command(face, interest) {
            self.send(face, LpFields { pit_token, ..LpFields::default() }, &answer);
            return;
        }
        let routes = self.routes.iter().filter(|(prefix, to)| *to != face && prefix.is_prefix_of(interest.name));
        let Some(to) = routes.max_by_key(|(prefix, _)| prefix.len()).map(|(_, to)| *to) else {
            let nack = Some(NackReason::NO_ROUTE);
            self.send(face, LpFields { pit_token, nack, ..LpFields::default() }, packet);
            return;
        };
        self.interests += 1;
        if self.faults.lose_every > 0 && self.interests.is_multiple_of(self.faults.lose_every) {
            return;
        }
        let number = self.next_token;
        self.next_token += 1;
        self.waiting.insert(number, Waiting { face, pit_token });
        let Some(pit_token) = PitToken::from_slice(&number.to_be_bytes()) else { return };
        self.send(to, LpFields { pit_token, ..LpFields::default() }, packet);
    }

    fn answer(&mut self, token: PitToken, packet: &[u8], nack: Option<NackReason>) {
        let Ok(number) = token.as_slice().try_into().map(u64::from_be_bytes) else { return };
        let Some(waiting) = self.waiting.remove(&number) else { return };
        self.data += 1;
        let every = |n: u64| n > 0 && self.data.is_multiple_of(n);
        let congestion_mark = u64::from(nack.is_none() && every(self.faults.mark_every));
        let copies = if every(self.faults.duplicate_every) { 2 } else { 1 };
        for _ in 0..copies {
            self.send(waiting.face, LpFields { pit_token: waiting.pit_token, nack, congestion_mark }, packet);
        }
    }

    fn send(&self, face: usize, fields: LpFields, packet: &[u8]) {
        if let Some(outgoing) = self.faces.get(face) {
            outgoing.push(|writer| write_lp(writer, &fields, packet));
        }
    }

    /// Grants `rib/register` and `rib/unregister`; returns `None` for any other Interest.
    fn command(&mut self, face: usize, interest: &Interest<'_>) -> Option<Vec<u8>> {
        let module = "/localhost/nfd/rib".parse::<Name>().ok()?;
        if !module.is_prefix_of(interest.name) {
            return None;
        }
        let verb = interest.name.get(3)?;
        let parameters = Reader::new(interest.name.get(4)?.value).read_typed(types::nfd::CONTROL_PARAMETERS).ok()?;
        let prefix = Reader::new(parameters.value).read_typed(types::NAME).ok()?;
        let prefix = namehop_wire::NameRef::from_value(prefix.value).ok()?.to_owned();
        self.routes.retain(|route| *route != (prefix.clone(), face));
        let code = match verb.value {
            b"register" => {
                for number in 0..self.faults.early_requests {
                    let name = prefix.clone().append_generic(number.to_be_bytes());
                    self.send(face, LpFields::default(), &InterestBuilder::new(name).nonce(1).build().ok()?);
                }
                self.routes.push((prefix, face));
                200
            }
            b"unregister" => {
                self.unregistered.push(prefix);
                200
            }
            _ => 501,
        };
        let mut response = Writer::new();
        response.nested(types::nfd::CONTROL_RESPONSE, |writer| {
            writer.nni(types::nfd::STATUS_CODE, code).element(types::nfd::STATUS_TEXT, b"OK").raw(parameters.wire);
        });
        let data = DataBuilder::new(interest.name).content(response.as_slice()).sign(&DigestSigner).ok()?;
        Some(data)
    }
}
