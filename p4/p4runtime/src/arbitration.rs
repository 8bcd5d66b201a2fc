//! Arbitration of controllers: in each role, the connected controller with the highest election id is the primary one
//! and may change the device; the others may only read.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;
use tonic::{Code, Status};

use crate::generated::google::rpc;
use crate::message::stream_message_response::Update as Event;
use crate::message::{self, MasterArbitrationUpdate, StreamMessageResponse, Uint128};

/// Maximum number of concurrent controller streams.
pub const MOST_STREAMS: usize = 16;
/// Maximum number of roles with a remembered highest election id; roles without controllers make room for new ones.
const MOST_ROLES: usize = 64;
/// Maximum length of a role's name, in bytes.
const LONGEST_NAME: usize = 256;

/// A message to a controller, or the error that ends its stream.
pub type Answer = Result<StreamMessageResponse, Status>;

/// Identifies a role: by name, or by number as in earlier versions of the specification. The default role has neither.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Role {
    /// 0 if the role has no number.
    pub id: u64,
    /// Empty if the role has no name.
    pub name: String,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.id, &*self.name) {
            (0, "") => f.write_str("the default role"),
            (0, name) => write!(f, "role '{}'", name.escape_default()),
            (id, "") => write!(f, "role {id}"),
            (id, name) => write!(f, "role {id} '{}'", name.escape_default()),
        }
    }
}

/// A connected controller. Dropping this ends its stream.
struct Client {
    /// Set by its first arbitration; until then, nothing is sent to it.
    role: Option<Role>,
    election_id: Option<Uint128>,
    sender: Sender<Answer>,
    /// Dropping it tells the stream to end.
    _presence: oneshot::Sender<()>,
}

/// State of a role.
#[derive(Clone, Copy, Default)]
struct Standing {
    primary: Option<u64>,
    /// The highest election id that a controller has ever used.
    highest: Option<Uint128>,
}

#[derive(Default)]
struct State {
    clients: BTreeMap<u64, Client>,
    next: u64,
    roles: BTreeMap<Role, Standing>,
}

impl State {
    /// The controllers of a role.
    fn clients_of(&self, role: &Role) -> Vec<u64> {
        let all = self.clients.iter().filter(|(_, client)| client.role.as_ref() == Some(role));
        all.map(|(number, _)| *number).collect()
    }

    /// Makes room for one more role.
    fn make_room(&mut self) {
        if self.roles.len() >= MOST_ROLES {
            // One is found, because there are fewer streams than roles.
            let unused = self.roles.keys().find(|role| self.clients_of(role).is_empty()).cloned();
            if let Some(role) = unused {
                self.roles.remove(&role);
            }
        }
    }

    fn primaries(&self) -> impl Iterator<Item = (u64, &Client)> {
        let numbers = self.roles.values().filter_map(|standing| standing.primary);
        numbers.filter_map(|number| Some((number, self.clients.get(&number)?)))
    }
}

/// The connected controllers.
pub struct Arbiter {
    device_id: u64,
    state: Mutex<State>,
}

impl Arbiter {
    /// Makes the state of a device without controllers.
    pub fn new(device_id: u64) -> Arbiter {
        Arbiter { device_id, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a controller that has opened a stream. Returns its number.
    ///
    /// # Errors
    /// Fails if there are too many streams.
    pub fn join(&self, sender: Sender<Answer>, presence: oneshot::Sender<()>) -> Result<u64, Status> {
        let mut state = self.state();
        if state.clients.len() >= MOST_STREAMS {
            // The oldest stream without an arbitration is evicted; the numbers rise.
            let silent = state.clients.iter().find(|(_, client)| client.role.is_none()).map(|(number, _)| *number);
            let Some(silent) = silent else {
                let message = format!("all {MOST_STREAMS} controller streams are in use; close one of them");
                return Err(Status::resource_exhausted(message));
            };
            self.dismiss(&mut state, silent, Some(Status::resource_exhausted("another stream replaced this one")));
        }
        state.next += 1;
        let number = state.next;
        state.clients.insert(number, Client { role: None, election_id: None, sender, _presence: presence });
        Ok(number)
    }

    /// Processes an arbitration: the controller's role and election id.
    ///
    /// # Errors
    /// Returns the error that ends its stream.
    pub fn arbitrate(&self, client: u64, update: &MasterArbitrationUpdate) -> Result<(), Status> {
        let role = wanted_role(update)?;
        let mut state = self.state();
        let Some(known) = state.clients.get(&client) else { return Ok(()) };
        let is_first = known.role.is_none();
        if update.device_id != self.device_id {
            let message =
                format!("there is no device {}; the id of this device is {}", update.device_id, self.device_id);
            return Err(if is_first { Status::not_found(message) } else { Status::failed_precondition(message) });
        }
        if let Some(other) = known.role.as_ref().filter(|other| **other != role) {
            let message = format!("this stream has {other}: open another stream for {role}");
            return Err(Status::failed_precondition(message));
        }
        let id = update.election_id.filter(|id| *id != Uint128::default());
        let others = state.clients.iter().filter(|(number, _)| **number != client);
        let mut others = others.filter(|(_, other)| other.role.as_ref() == Some(&role));
        if id.is_some() && others.any(|(_, other)| other.election_id == id) {
            return Err(Status::invalid_argument("another controller has this election id; use a different one"));
        }
        if !state.roles.contains_key(&role) {
            state.make_room();
        }
        let Some(known) = state.clients.get_mut(&client) else { return Ok(()) };
        known.role = Some(role.clone());
        known.election_id = id;
        let standing = state.roles.entry(role.clone()).or_default();
        let was = standing.primary;
        if standing.primary == Some(client) && id < standing.highest {
            standing.primary = None;
        }
        if id.is_some() && id >= standing.highest {
            *standing = Standing { primary: Some(client), highest: id };
        }
        let changes = standing.primary != was || was == Some(client);
        let to = if changes { state.clients_of(&role) } else { vec![client] };
        self.tell(&mut state, &role, &to);
        Ok(())
    }

    /// Tells controllers of a role their current status.
    fn tell(&self, state: &mut State, role: &Role, to: &[u64]) {
        let mut gone = Vec::new();
        let standing = state.roles.get(role).copied().unwrap_or_default();
        for number in to {
            let Some(client) = state.clients.get(number) else { continue };
            let (code, text) = match standing.primary {
                Some(primary) if primary == *number => (Code::Ok, ""),
                Some(_) => (Code::AlreadyExists, "another controller is primary"),
                None => (Code::NotFound, "there is no primary controller"),
            };
            let status = rpc::Status { code: code as i32, message: text.to_owned(), details: Vec::new() };
            let named = Some(role).filter(|role| **role != Role::default());
            let event = MasterArbitrationUpdate {
                device_id: self.device_id,
                role: named.map(|role| message::Role { id: role.id, config: None, name: role.name.clone() }),
                election_id: standing.highest,
                status: Some(status),
            };
            let answer = StreamMessageResponse { update: Some(Event::Arbitration(event)) };
            if client.sender.try_send(Ok(answer)).is_err() {
                // It does not read, or has disconnected.
                gone.push(*number);
            }
        }
        for number in gone {
            self.remove(state, number);
        }
    }

    fn remove(&self, state: &mut State, client: u64) {
        let Some(Client { role: Some(role), .. }) = state.clients.remove(&client) else { return };
        let Some(standing) = state.roles.get_mut(&role).filter(|standing| standing.primary == Some(client)) else {
            return;
        };
        standing.primary = None;
        let others = state.clients_of(&role);
        self.tell(state, &role, &others);
    }

    /// Removes a controller that has disconnected, or that has to go for this reason.
    pub fn leave(&self, client: u64, reason: Option<Status>) {
        self.dismiss(&mut self.state(), client, reason);
    }

    fn dismiss(&self, state: &mut State, client: u64, reason: Option<Status>) {
        if let (Some(client), Some(reason)) = (state.clients.get(&client), reason) {
            // A controller that does not read learns of it by the end of the stream.
            let _ = client.sender.try_send(Err(reason));
        }
        self.remove(state, client);
    }

    /// Checks that controllers have been connected in this role; the default role always exists.
    ///
    /// # Errors
    /// Fails if there were none.
    pub fn check_role(&self, role: &Role) -> Result<(), Status> {
        if *role == Role::default() || self.state().roles.contains_key(role) {
            return Ok(());
        }
        Err(Status::not_found(format!("there is no {role}: open a stream with it, or omit the role")))
    }

    /// True if role and election id belong to a primary controller.
    pub fn is_primary(&self, role: &Role, election_id: Option<Uint128>) -> bool {
        let state = self.state();
        let primary = state.roles.get(role).and_then(|standing| state.clients.get(&standing.primary?));
        primary.is_some_and(|primary| primary.election_id == election_id)
    }

    /// True if this stream belongs to a primary controller.
    pub fn has_primary_stream(&self, client: u64) -> bool {
        self.state().primaries().any(|(number, _)| number == client)
    }

    /// State of the primary controllers. All get the same messages, so one controller with a full queue blocks all.
    pub fn ready(&self) -> Primaries {
        let state = self.state();
        let mut readiness = Primaries::None;
        for (number, client) in state.primaries() {
            if client.sender.capacity() == 0 {
                return Primaries::Full(number);
            }
            readiness = Primaries::Ready;
        }
        readiness
    }

    /// Sends an event to all primary controllers. Call it only after `ready` returned `Ready`, with no other sender in
    /// between.
    pub fn send_to_primaries(&self, event: &Event) {
        let primaries: Vec<u64> = self.state().primaries().map(|(number, _)| number).collect();
        primaries.into_iter().for_each(|number| self.send(number, event.clone()));
    }

    /// Sends an event to a controller, which must have room in its queue.
    pub fn send(&self, client: u64, event: Event) {
        let mut state = self.state();
        let Some(known) = state.clients.get(&client) else { return };
        let answer = StreamMessageResponse { update: Some(event) };
        if let Err(TrySendError::Closed(_)) = known.sender.try_send(Ok(answer)) {
            self.remove(&mut state, client);
        }
    }
}

/// The role of an arbitration.
fn wanted_role(update: &MasterArbitrationUpdate) -> Result<Role, Status> {
    let Some(message::Role { id, config, name }) = &update.role else { return Ok(Role::default()) };
    if config.is_some() {
        return Err(Status::invalid_argument(
            "role configs are not supported: omit the config, and the role has all permissions",
        ));
    }
    if name.len() > LONGEST_NAME {
        return Err(Status::invalid_argument(format!("the name of a role has more than {LONGEST_NAME} bytes")));
    }
    Ok(Role { id: *id, name: name.clone() })
}

/// State of the controllers that receive a program's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Primaries {
    /// There are none.
    None,
    /// All have room for a message.
    Ready,
    /// The queue of this controller is full.
    Full(u64),
}
