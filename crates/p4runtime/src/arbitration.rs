//! Who may change the device: of all controllers that are connected the one with the highest election id is the primary one, and the
//! others only read.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;
use tonic::{Code, Status};

use crate::message::{self, Arbitration, StreamEvent, StreamResponse, Uint128};

/// Streams of controllers at once.
pub const MOST_STREAMS: usize = 16;

/// What goes to a controller.
pub type Answer = Result<StreamResponse, Status>;

/// A controller that is connected. Its stream ends when this is dropped.
struct Client {
    /// It has taken part; others are told nothing yet.
    takes_part: bool,
    election_id: Option<Uint128>,
    sender: Sender<Answer>,
    /// The other end sees that this is gone.
    _presence: oneshot::Sender<()>,
}

#[derive(Default)]
struct State {
    clients: BTreeMap<u64, Client>,
    next: u64,
    primary: Option<u64>,
    /// The highest election id that was ever named.
    highest: Option<Uint128>,
}

/// All controllers that are connected.
pub struct Arbiter {
    device_id: u64,
    state: Mutex<State>,
}

impl Arbiter {
    /// Of a device without controllers.
    pub fn new(device_id: u64) -> Arbiter {
        Arbiter { device_id, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A controller has opened a stream. Gives its number here.
    ///
    /// # Errors
    /// When there are too many.
    pub fn join(&self, sender: Sender<Answer>, presence: oneshot::Sender<()>) -> Result<u64, Status> {
        let mut state = self.state();
        if state.clients.len() >= MOST_STREAMS {
            let message = format!("there are {MOST_STREAMS} streams of controllers already; end one of them");
            return Err(Status::resource_exhausted(message));
        }
        state.next += 1;
        let number = state.next;
        state.clients.insert(number, Client { takes_part: false, election_id: None, sender, _presence: presence });
        Ok(number)
    }

    /// A controller says by which election id it takes part.
    ///
    /// # Errors
    /// What ends its stream.
    pub fn arbitrate(&self, client: u64, update: &Arbitration) -> Result<(), Status> {
        if update.device_id != self.device_id {
            let message = format!("there is no device {}; this one has number {}", update.device_id, self.device_id);
            return Err(Status::not_found(message));
        }
        if update.role.as_ref().is_some_and(|role| role.id != 0 || !role.name.is_empty()) {
            return Err(Status::unimplemented(
                "there is only the default role, which may do everything: leave the role out",
            ));
        }
        let mut state = self.state();
        let id = update.election_id.filter(|id| *id != Uint128::default());
        let taken = |(number, other): (&u64, &Client)| *number != client && id.is_some() && other.election_id == id;
        if state.clients.iter().any(taken) {
            return Err(Status::invalid_argument("another controller has this election id; choose another one"));
        }
        let Some(known) = state.clients.get_mut(&client) else { return Ok(()) };
        known.takes_part = true;
        known.election_id = id;
        let was = state.primary;
        if state.primary == Some(client) && id < state.highest {
            state.primary = None;
        }
        if id.is_some() && id >= state.highest {
            state.highest = id;
            state.primary = Some(client);
        }
        if state.primary == was && was != Some(client) {
            self.tell(&mut state, &[client]);
        } else {
            let all: Vec<u64> = state.clients.keys().copied().collect();
            self.tell(&mut state, &all);
        }
        Ok(())
    }

    /// Tells controllers what they are now.
    fn tell(&self, state: &mut State, to: &[u64]) {
        let mut gone = Vec::new();
        for number in to {
            let Some(client) = state.clients.get(number).filter(|client| client.takes_part) else { continue };
            let (code, text) = match state.primary {
                Some(primary) if primary == *number => (Code::Ok, ""),
                Some(_) => (Code::AlreadyExists, "another controller is the primary one"),
                None => (Code::NotFound, "there is no primary controller"),
            };
            let status = message::Status { code: code as i32, message: text.to_owned(), details: Vec::new() };
            let election_id = state.highest;
            let event = Arbitration { device_id: self.device_id, role: None, election_id, status: Some(status) };
            let answer = StreamResponse { event: Some(StreamEvent::Arbitration(event)) };
            if client.sender.try_send(Ok(answer)).is_err() {
                // It does not read, or is gone.
                gone.push(*number);
            }
        }
        for number in gone {
            self.remove(state, number);
        }
    }

    fn remove(&self, state: &mut State, client: u64) {
        state.clients.remove(&client);
        if state.primary == Some(client) {
            state.primary = None;
            let all: Vec<u64> = state.clients.keys().copied().collect();
            self.tell(state, &all);
        }
    }

    /// A controller is gone, or is to go, for this reason.
    pub fn leave(&self, client: u64, reason: Option<Status>) {
        let mut state = self.state();
        if let (Some(client), Some(reason)) = (state.clients.get(&client), reason) {
            // Whoever does not read learns it from the end of the stream.
            let _ = client.sender.try_send(Err(reason));
        }
        self.remove(&mut state, client);
    }

    /// Whether a request with this election id is from the primary controller.
    pub fn is_primary(&self, election_id: Option<Uint128>) -> bool {
        let state = self.state();
        let primary = state.primary.and_then(|primary| state.clients.get(&primary));
        primary.is_some_and(|primary| primary.election_id == election_id)
    }

    /// Whether this stream is that of the primary controller.
    pub fn has_primary_stream(&self, client: u64) -> bool {
        self.state().primary == Some(client)
    }

    /// The primary controller, if there is one that is ready for more.
    pub fn ready(&self) -> Primary {
        let state = self.state();
        let Some((number, client)) = state.primary.and_then(|number| Some((number, state.clients.get(&number)?)))
        else {
            return Primary::None;
        };
        if client.sender.capacity() > 0 { Primary::Ready(number) } else { Primary::Full(number) }
    }

    /// Sends something to a controller, for which it has to be ready; nobody else may send to it in between.
    pub fn send(&self, client: u64, event: StreamEvent) {
        let mut state = self.state();
        let Some(known) = state.clients.get(&client) else { return };
        let answer = StreamResponse { event: Some(event) };
        if let Err(TrySendError::Closed(_)) = known.sender.try_send(Ok(answer)) {
            self.remove(&mut state, client);
        }
    }
}

/// Who gets what a program sends to its controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Primary {
    /// Nobody.
    None,
    /// It takes more.
    Ready(u64),
    /// It has not read what it was sent.
    Full(u64),
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{Receiver, channel};
    use tokio::sync::oneshot;
    use tonic::Code;

    use super::{Answer, Arbiter, MOST_STREAMS, Primary};
    use crate::message::{Arbitration, Role, StreamEvent, Uint128};

    fn join(arbiter: &Arbiter) -> (u64, Receiver<Answer>, oneshot::Receiver<()>) {
        let (sender, receiver) = channel(2);
        let (presence, gone) = oneshot::channel();
        (arbiter.join(sender, presence).expect("there is room"), receiver, gone)
    }

    fn update(low: u64) -> Arbitration {
        let election_id = Some(Uint128 { high: 0, low }).filter(|_| low > 0);
        Arbitration { device_id: 1, role: None, election_id, status: None }
    }

    /// The code and election id of all that a controller was told.
    fn told(receiver: &mut Receiver<Answer>) -> Vec<(Code, u64)> {
        let mut all = Vec::new();
        while let Ok(Ok(answer)) = receiver.try_recv() {
            let Some(StreamEvent::Arbitration(event)) = answer.event else { panic!("an arbitration") };
            let code = Code::from_i32(event.status.expect("a status").code);
            all.push((code, event.election_id.map_or(0, |id| id.low)));
        }
        all
    }

    #[test]
    fn the_highest_election_id_is_primary_and_nobody_below_takes_over() {
        let arbiter = Arbiter::new(1);
        let (first, mut to_first, _one) = join(&arbiter);
        let (second, mut to_second, _two) = join(&arbiter);
        let (third, mut to_third, _three) = join(&arbiter);
        arbiter.arbitrate(first, &update(5)).expect("first");
        assert_eq!(told(&mut to_first), [(Code::Ok, 5)]);
        arbiter.arbitrate(third, &update(0)).expect("without an id");
        assert_eq!(told(&mut to_third), [(Code::AlreadyExists, 5)]);
        arbiter.arbitrate(second, &update(3)).expect("second");
        assert_eq!((told(&mut to_second), told(&mut to_first).len()), (vec![(Code::AlreadyExists, 5)], 0));
        let id = |low| Some(Uint128 { high: 0, low });
        assert!(arbiter.is_primary(id(5)) && !arbiter.is_primary(id(3)) && !arbiter.is_primary(None));
        assert_eq!(arbiter.arbitrate(second, &update(5)).expect_err("taken").code(), Code::InvalidArgument);
        arbiter.leave(first, None);
        assert_eq!(told(&mut to_second), [(Code::NotFound, 5)]);
        assert!(!arbiter.is_primary(id(5)) && !arbiter.is_primary(None));
        // An id below the highest one that was ever named does not become primary.
        arbiter.arbitrate(second, &update(4)).expect("second");
        told(&mut to_third);
        assert_eq!((told(&mut to_second), arbiter.ready()), (vec![(Code::NotFound, 5)], Primary::None));
        arbiter.arbitrate(second, &update(5)).expect("second");
        assert_eq!((told(&mut to_second), arbiter.ready()), (vec![(Code::Ok, 5)], Primary::Ready(second)));
        // The primary one steps down.
        arbiter.arbitrate(second, &update(2)).expect("second");
        assert_eq!((told(&mut to_second), arbiter.ready()), (vec![(Code::NotFound, 5)], Primary::None));
    }

    #[test]
    fn whoever_does_not_read_is_cut_off() {
        let arbiter = Arbiter::new(1);
        let (slow, _kept, mut gone) = join(&arbiter);
        arbiter.arbitrate(slow, &update(1)).expect("first");
        assert!(gone.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty));
        arbiter.arbitrate(slow, &update(2)).expect("it has room");
        assert_eq!(arbiter.ready(), Primary::Full(slow));
        arbiter.arbitrate(slow, &update(3)).expect("it is cut off");
        assert!(gone.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed));
        assert_eq!(arbiter.ready(), Primary::None);
    }

    #[test]
    fn other_devices_roles_and_too_many_are_refused() {
        let arbiter = Arbiter::new(1);
        let (client, _receiver, _gone) = join(&arbiter);
        let other = Arbitration { device_id: 2, ..update(1) };
        assert_eq!(arbiter.arbitrate(client, &other).expect_err("no device").code(), Code::NotFound);
        let role = Arbitration { role: Some(Role { id: 0, name: "x".into() }), ..update(1) };
        assert_eq!(arbiter.arbitrate(client, &role).expect_err("no role").code(), Code::Unimplemented);
        let kept: Vec<_> = (1..MOST_STREAMS).map(|_| join(&arbiter)).collect();
        let (sender, _receiver) = channel(1);
        let refused = arbiter.join(sender, oneshot::channel().0).expect_err("too many");
        assert_eq!((refused.code(), kept.len()), (Code::ResourceExhausted, MOST_STREAMS - 1));
    }
}
