//! The limit of faces over sockets, and which faces are evicted when it is reached.
//!
//! Each face holds a permit; a WebSocket connection holds one from the start of its handshake. Anyone who can send a
//! datagram or open a connection requests one. Some permits are reserved for applications on this host and for faces
//! created by configuration or command. So the router can be used and inspected under any load from the network. The
//! others are for unsolicited peers on other hosts. Half of them are for peers that send datagrams,
//! where addresses may be forged, and half for peers that connect. When unsolicited peers hold all their permits, a new
//! one evicts one that is idle: see [`unsolicited`](crate::unsolicited).

mod request;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

use super::config::SocketConfig;
use crate::registry::{Face, FacePersistency, max_unsolicited_faces};
use crate::unsolicited::{Occupant, SlotHandle, UnsolicitedPeers};

pub(super) use request::{Activity, PermitRequest, Transport};

/// The holder of a permit.
#[derive(Debug)]
pub(super) enum Holder {
    /// The face has not been created yet.
    Unknown,
    /// A connection during its handshake, served by this task.
    Handshake(AbortHandle),
    /// A face.
    Face(Arc<Face>),
}

/// An unsolicited peer that holds a permit.
#[derive(Debug)]
struct PermitOwner {
    transport: Transport,
    holder: Holder,
    activity: Rc<Activity>,
}

impl Occupant for PermitOwner {
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
struct PermitState {
    started: Instant,
    limit: usize,
    max_connections: usize,
    silence: Duration,
    taken: usize,
    connections: usize,
    /// One share for each transport.
    unsolicited: UnsolicitedPeers<PermitOwner>,
}

/// All permits of the socket service.
#[derive(Debug)]
pub(super) struct Permits(RefCell<PermitState>);

impl Permits {
    /// Creates the configured number of permits, all free.
    pub(super) fn new(config: &SocketConfig) -> Rc<Permits> {
        let limit = config.max_faces.saturating_sub(config.max_unsolicited_on_ports);
        let unsolicited = max_unsolicited_faces(config.max_faces).saturating_sub(config.max_unsolicited_on_ports);
        let limits = [unsolicited - unsolicited / 2, (unsolicited / 2).min(config.max_connections / 2)];
        Rc::new(Permits(RefCell::new(PermitState {
            started: Instant::now(),
            limit,
            max_connections: config.max_connections,
            silence: Duration::from_millis(config.silent_timeout_ms),
            taken: 0,
            connections: 0,
            unsolicited: UnsolicitedPeers::new(&limits, config.max_unsolicited_per_address),
        })))
    }

    /// Takes a permit, if one is free for `request`.
    pub(super) fn take(self: &Rc<Self>, request: &PermitRequest) -> Option<Permit> {
        let mut state = self.0.borrow_mut();
        if !state.has_room(request) {
            return None;
        }
        let (transport, activity) = (request.transport, Rc::new(Activity::default()));
        let slot = request.unsolicited.map(|origin| {
            let unsolicited = PermitOwner { transport, holder: Holder::Unknown, activity: Rc::clone(&activity) };
            state.unsolicited.enter(transport as usize, Some(origin), unsolicited)
        });
        state.taken += 1;
        state.connections += usize::from(transport == Transport::Connection);
        Some(Permit { permits: Rc::clone(self), transport, slot, activity })
    }

    /// Whether a permit is free for `request`.
    pub(super) fn has_room(&self, request: &PermitRequest) -> bool {
        self.0.borrow().has_room(request)
    }

    /// Evicts an unsolicited peer so that a permit becomes free for `request`; the caller closes the returned holder.
    /// Returns `None` if no unsolicited peer has to lose its permit.
    pub(super) fn take_back(&self, request: &PermitRequest) -> Option<Holder> {
        let mut state = self.0.borrow_mut();
        let since_start = state.started.elapsed();
        state.take_back(request, since_start)
    }

    /// Evicts the connection of an unsolicited peer because file descriptors have run out; the caller closes the
    /// returned holder.
    pub(super) fn take_back_connection(&self) -> Option<Holder> {
        let mut state = self.0.borrow_mut();
        let unsolicited = state.unsolicited.evict_idle_longest(Transport::Connection as usize)?;
        Some(state.end(unsolicited))
    }

    /// If unsolicited peers hold more than half of their connections, evicts one that is older than `silent_timeout_ms`
    /// and has never sent a packet.
    pub(super) fn take_back_silent(&self, now: Instant) -> Option<Holder> {
        let mut state = self.0.borrow_mut();
        let silence = state.silence;
        let unsolicited = state.unsolicited.evict_silent(Transport::Connection as usize, now, silence)?;
        Some(state.end(unsolicited))
    }
}

impl PermitState {
    fn is_full(&self, transport: Transport) -> bool {
        self.taken >= self.limit || (transport == Transport::Connection && self.connections >= self.max_connections)
    }

    fn has_room(&self, request: &PermitRequest) -> bool {
        let has_slot =
            request.unsolicited.is_none() || self.unsolicited.has_room(request.transport as usize, request.unsolicited);
        has_slot && !self.is_full(request.transport)
    }

    fn give_back(&mut self, transport: Transport) {
        self.taken -= 1;
        self.connections -= usize::from(transport == Transport::Connection);
    }

    /// Frees the permit of an unsolicited peer that has been removed from the lists.
    fn end(&mut self, unsolicited: PermitOwner) -> Holder {
        unsolicited.activity.end();
        self.give_back(unsolicited.transport);
        unsolicited.holder
    }

    fn take_back(&mut self, request: &PermitRequest, since_start: Duration) -> Option<Holder> {
        let unsolicited = match request.unsolicited {
            Some(origin) => self.unsolicited.evict_for(request.transport as usize, Some(origin), since_start),
            None => {
                // A configured peer or an application may evict any number of unsolicited peers.
                let [datagrams, connections] = [Transport::Datagram, Transport::Connection]
                    .map(|transport| self.unsolicited.len(transport as usize));
                let helps = request.transport == Transport::Datagram || self.connections < self.max_connections;
                let of_datagrams = helps && datagrams > connections;
                let transport = if of_datagrams { Transport::Datagram } else { Transport::Connection };
                self.unsolicited.evict_idle_longest(transport as usize)
            }
        }?;
        Some(self.end(unsolicited))
    }
}

/// A permit in use; dropping it frees it.
#[derive(Debug)]
pub(super) struct Permit {
    permits: Rc<Permits>,
    transport: Transport,
    /// The peer's entry; `None` for a configured peer or an application.
    slot: Option<SlotHandle>,
    activity: Rc<Activity>,
}

impl Permit {
    /// Returns where the packets of the face are noted.
    pub(super) fn activity(&self) -> &Rc<Activity> {
        &self.activity
    }

    /// Sets the holder, which has to be closed when the permit is evicted.
    pub(super) fn set_holder(&self, holder: Holder) {
        let Some(slot) = self.slot else { return };
        if let Some(unsolicited) = self.permits.0.borrow_mut().unsolicited.get_mut(slot) {
            unsolicited.holder = holder;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.permits.0.borrow_mut();
        match self.slot.and_then(|slot| state.unsolicited.leave(slot)) {
            Some(unsolicited) => drop(state.end(unsolicited)),
            // The permit was evicted and freed.
            None if self.activity.has_ended() => {}
            // A configured peer or an application, perhaps one that was an unsolicited peer.
            None => state.give_back(self.transport),
        }
    }
}

#[cfg(test)]
mod tests;
