//! The limit of faces over sockets, and which faces are closed for others when it is reached.
//!
//! Each face holds a permit, and so does a WebSocket connection from before its handshake on. Anybody who can send a datagram
//! or open a connection asks for one. Some permits are reserved for applications on this computer and for faces made by
//! configuration or command, so that the router can be used and looked at whatever comes in from the network. The others are
//! for strangers: peers on other computers that came by themselves. Half of those are for peers that send datagrams, whose
//! addresses may be forged, and half for peers that connect. When strangers hold all their permits, a new one gets the permit of
//! one that is idle: see [`strangers`](crate::strangers).

mod request;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

use super::config::SocketConfig;
use crate::registry::{Face, FacePersistency, places_of_strangers};
use crate::strangers::{Occupant, Place, Strangers};

pub(super) use request::{Activity, PermitRequest, Transport};

/// Who holds a permit.
#[derive(Debug)]
pub(super) enum Holder {
    /// Not known yet.
    Unknown,
    /// A connection whose handshake is under way, served by this task.
    Handshake(AbortHandle),
    /// A face.
    Face(Arc<Face>),
}

/// A stranger with its permit.
#[derive(Debug)]
struct Stranger {
    transport: Transport,
    holder: Holder,
    activity: Rc<Activity>,
}

impl Occupant for Stranger {
    fn is_known(&self) -> bool {
        matches!(&self.holder, Holder::Face(face) if face.persistency() != FacePersistency::OnDemand)
    }

    fn is_heard(&self) -> bool {
        self.activity.is_heard()
    }

    fn forget_heard(&mut self) {
        self.activity.forget_heard();
    }
}

#[derive(Debug)]
struct State {
    started: Instant,
    limit: usize,
    max_connections: usize,
    silence: Duration,
    taken: usize,
    connections: usize,
    /// With a share for each transport.
    strangers: Strangers<Stranger>,
}

/// All permits.
#[derive(Debug)]
pub(super) struct Permits(RefCell<State>);

impl Permits {
    /// All permits free, as many as configured.
    pub(super) fn new(config: &SocketConfig) -> Rc<Permits> {
        let limit = config.max_faces.saturating_sub(config.max_strangers_on_ports);
        let strangers = places_of_strangers(config.max_faces).saturating_sub(config.max_strangers_on_ports);
        let limits = [strangers - strangers / 2, (strangers / 2).min(config.max_connections / 2)];
        Rc::new(Permits(RefCell::new(State {
            started: Instant::now(),
            limit,
            max_connections: config.max_connections,
            silence: Duration::from_millis(config.silent_timeout_ms),
            taken: 0,
            connections: 0,
            strangers: Strangers::new(&limits, config.strangers_per_address),
        })))
    }

    /// Takes a permit, if one is free for `request`.
    pub(super) fn take(self: &Rc<Self>, request: &PermitRequest) -> Option<Permit> {
        let mut state = self.0.borrow_mut();
        if !state.has_room(request) {
            return None;
        }
        let (transport, activity) = (request.transport, Rc::new(Activity::default()));
        let place = request.stranger.map(|origin| {
            let stranger = Stranger { transport, holder: Holder::Unknown, activity: Rc::clone(&activity) };
            state.strangers.enter(transport as usize, Some(origin), stranger)
        });
        state.taken += 1;
        state.connections += usize::from(transport == Transport::Connection);
        Some(Permit { permits: Rc::clone(self), transport, place, activity })
    }

    /// Whether a permit is free for `request`.
    pub(super) fn has_room(&self, request: &PermitRequest) -> bool {
        self.0.borrow().has_room(request)
    }

    /// Takes the permit of a stranger back so that there is one for `request`; the caller closes what held it. `None` when
    /// nobody has to lose one.
    pub(super) fn take_back(&self, request: &PermitRequest) -> Option<Holder> {
        let mut state = self.0.borrow_mut();
        let since_start = state.started.elapsed();
        state.take_back(request, since_start)
    }

    /// Takes the permit of a stranger's connection back because file descriptors have run out.
    pub(super) fn take_back_connection(&self) -> Option<Holder> {
        let mut state = self.0.borrow_mut();
        let stranger = state.strangers.evict_idle_longest(Transport::Connection as usize)?;
        Some(state.end(stranger))
    }

    /// While strangers have more than half of their connections, takes the permit of one back that was made longer ago than the
    /// configured time and has never sent a packet.
    pub(super) fn take_back_silent(&self, now: Instant) -> Option<Holder> {
        let mut state = self.0.borrow_mut();
        let silence = state.silence;
        let stranger = state.strangers.evict_silent(Transport::Connection as usize, now, silence)?;
        Some(state.end(stranger))
    }
}

impl State {
    fn is_full(&self, transport: Transport) -> bool {
        self.taken >= self.limit || (transport == Transport::Connection && self.connections >= self.max_connections)
    }

    fn has_room(&self, request: &PermitRequest) -> bool {
        let has_place =
            request.stranger.is_none() || self.strangers.has_room(request.transport as usize, request.stranger);
        has_place && !self.is_full(request.transport)
    }

    fn give_back(&mut self, transport: Transport) {
        self.taken -= 1;
        self.connections -= usize::from(transport == Transport::Connection);
    }

    /// Frees the permit of somebody who has no place among the strangers any more.
    fn end(&mut self, stranger: Stranger) -> Holder {
        stranger.activity.end();
        self.give_back(stranger.transport);
        stranger.holder
    }

    fn take_back(&mut self, request: &PermitRequest, since_start: Duration) -> Option<Holder> {
        let stranger = match request.stranger {
            Some(origin) => self.strangers.evict_for(request.transport as usize, Some(origin), since_start),
            None => {
                // For known peers, as many strangers lose their permits as necessary.
                let [datagrams, connections] = [Transport::Datagram, Transport::Connection]
                    .map(|transport| self.strangers.len(transport as usize));
                let helps = request.transport == Transport::Datagram || self.connections < self.max_connections;
                let of_datagrams = helps && datagrams > connections;
                let transport = if of_datagrams { Transport::Datagram } else { Transport::Connection };
                self.strangers.evict_idle_longest(transport as usize)
            }
        }?;
        Some(self.end(stranger))
    }
}

/// A permit that was taken; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Permit {
    permits: Rc<Permits>,
    transport: Transport,
    /// A stranger's place.
    place: Option<Place>,
    activity: Rc<Activity>,
}

impl Permit {
    /// Where the use of this permit is noted.
    pub(super) fn activity(&self) -> &Rc<Activity> {
        &self.activity
    }

    /// Notes who holds this permit: what has to be closed when it is taken back.
    pub(super) fn set_holder(&self, holder: Holder) {
        let Some(place) = self.place else { return };
        if let Some(stranger) = self.permits.0.borrow_mut().strangers.get_mut(place) {
            stranger.holder = holder;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.permits.0.borrow_mut();
        match self.place.and_then(|place| state.strangers.leave(place)) {
            Some(stranger) => drop(state.end(stranger)),
            // It was taken over.
            None if self.activity.has_ended() => {}
            // A known peer, perhaps one that was a stranger.
            None => state.give_back(self.transport),
        }
    }
}

#[cfg(test)]
mod tests;
