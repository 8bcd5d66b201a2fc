//! The limit of faces over sockets, and who gives way when it is reached.
//!
//! Anybody who can send a datagram or open a connection makes a face. A part of the places is kept for applications on
//! this computer and for faces made by configuration or command, so that the router can be used and looked at whatever
//! comes in from the network. The rest is for strangers, one half for those that send datagrams, whose addresses may be
//! forged, and one for those that connect. WebSocket connections hold a place from before their handshake.
//!
//! When strangers have all their places, a new one gets that of the stranger that has been idle longest:
//!
//! * Those that nothing more came from since they were made go first, oldest first, so that a flood of datagrams with forged
//!   addresses replaces itself. A quarter of the places is for them even when all others are in use, so that who is new has
//!   the time to show that it goes on.
//! * A look at a stranger that packets came from since the last look puts it behind all others. So finding the victim takes no
//!   list in order of time, nothing is done for a packet but noting it, and each look is paid for by a packet.
//! * No more than a quarter of the places is taken over in a second, spread over it. So whoever sends a packet every few seconds
//!   cannot lose its place to any flood, who is new gets one within a moment, and a flood costs a bounded part of the processor.
//!
//! Strangers of one address (IPv6: of one network of 64 bits) have a limit of their own, beyond which they replace each other.

mod guest;
mod share;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

use super::config::SocketConfig;
use crate::list::{Linked, Links};
use crate::registry::{Face, FacePersistency};
use share::{FRESH_FRACTION, Neighbours, Share};

pub(super) use guest::{Activity, Guest, Origin, Transport};

/// One in so many places is kept from strangers.
const KEPT_FRACTION: usize = 4;
/// No fewer are kept, unless that were more than half.
const LEAST_KEPT: usize = 16;

/// Kinds of lists: by transport, and by origin.
const BY_USE: usize = 0;
const BY_ORIGIN: usize = 1;

/// Who has a place.
#[derive(Debug)]
pub(super) enum Occupant {
    /// Not said yet.
    Unknown,
    /// A connection whose handshake is under way, served by this task.
    Handshake(AbortHandle),
    /// A face.
    Face(Arc<Face>),
}

/// A stranger's place.
#[derive(Debug)]
struct Node {
    /// Tells apart those that had this node one after the other.
    generation: u64,
    transport: Transport,
    origin: Origin,
    occupant: Occupant,
    activity: Rc<Activity>,
    since: Instant,
    /// In the list of those that packets came from since they were made.
    is_proven: bool,
    by_use: Links,
    by_origin: Links,
}

impl Linked<BY_USE> for Node {
    fn links(&mut self) -> &mut Links {
        &mut self.by_use
    }
}

impl Linked<BY_ORIGIN> for Node {
    fn links(&mut self) -> &mut Links {
        &mut self.by_origin
    }
}

#[derive(Debug)]
struct State {
    started: Instant,
    limit: usize,
    max_connections: usize,
    per_origin: usize,
    silence: Duration,
    taken: usize,
    connections: usize,
    /// By transport.
    shares: [Share; 2],
    origins: HashMap<Origin, Neighbours>,
    nodes: Vec<Node>,
    free: Vec<u32>,
    generations: u64,
}

/// All places.
#[derive(Debug)]
pub(super) struct Places(RefCell<State>);

impl Places {
    /// All places free, as many as configured.
    pub(super) fn new(config: &SocketConfig) -> Rc<Places> {
        let limit = config.max_faces;
        let kept = (limit / KEPT_FRACTION).max(LEAST_KEPT).min(limit / 2);
        let strangers = limit - kept;
        let share = |limit| Share { limit, ..Share::default() };
        Rc::new(Places(RefCell::new(State {
            started: Instant::now(),
            limit,
            max_connections: config.max_connections,
            per_origin: config.strangers_per_address.max(1),
            silence: Duration::from_millis(config.silent_timeout_ms),
            taken: 0,
            connections: 0,
            shares: [share(strangers - strangers / 2), share((strangers / 2).min(config.max_connections / 2))],
            origins: HashMap::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            generations: 0,
        })))
    }

    /// Takes a place, if one is free for `guest`.
    pub(super) fn take(self: &Rc<Self>, guest: &Guest) -> Option<Place> {
        let mut state = self.0.borrow_mut();
        if !state.has_room(guest) {
            return None;
        }
        let activity = Rc::new(Activity::default());
        let node = guest.stranger.map(|origin| state.enter(guest.transport, origin, &activity));
        state.taken += 1;
        state.connections += usize::from(guest.transport == Transport::Connection);
        Some(Place { places: Rc::clone(self), transport: guest.transport, node, activity })
    }

    /// Whether a place is free for `guest`.
    pub(super) fn has_room(&self, guest: &Guest) -> bool {
        self.0.borrow().has_room(guest)
    }

    /// Has a stranger give its place up so that there is one for `guest`; the caller closes what the stranger had. `None`
    /// when nobody is to give way.
    pub(super) fn take_over(&self, guest: &Guest) -> Option<Occupant> {
        let mut state = self.0.borrow_mut();
        let since_start = state.started.elapsed();
        let at = state.find_victim(guest, since_start)?;
        Some(state.evict(at))
    }

    /// Has a stranger's connection give way because file descriptors have run out.
    pub(super) fn give_up_connection(&self) -> Option<Occupant> {
        let mut state = self.0.borrow_mut();
        let at = state.idle_longest(Transport::Connection)?;
        Some(state.evict(at))
    }

    /// While strangers have more than half of their connections, has one give way that has never sent a packet for the
    /// configured time.
    pub(super) fn give_up_silent(&self, now: Instant) -> Option<Occupant> {
        let mut state = self.0.borrow_mut();
        loop {
            let share = &state.shares[Transport::Connection as usize];
            if share.len() * 2 <= share.limit {
                return None;
            }
            let at = share.fresh.first()?;
            if state.look(at) {
                continue;
            }
            let is_silent = now.saturating_duration_since(state.nodes[at as usize].since) >= state.silence;
            return is_silent.then(|| state.evict(at));
        }
    }
}

impl State {
    fn is_full(&self, transport: Transport) -> bool {
        self.taken >= self.limit || (transport == Transport::Connection && self.connections >= self.max_connections)
    }

    fn has_room(&self, guest: &Guest) -> bool {
        let Some(origin) = &guest.stranger else { return !self.is_full(guest.transport) };
        let share = &self.shares[guest.transport as usize];
        let of_origin = self.origins.get(origin).map_or(0, |neighbours| neighbours.all.len());
        !self.is_full(guest.transport) && share.len() < share.limit && of_origin < self.per_origin
    }

    fn enter(&mut self, transport: Transport, origin: Origin, activity: &Rc<Activity>) -> (u32, u64) {
        self.generations += 1;
        let node = Node {
            generation: self.generations,
            transport,
            origin,
            occupant: Occupant::Unknown,
            activity: Rc::clone(activity),
            since: Instant::now(),
            is_proven: false,
            by_use: Links::NOWHERE,
            by_origin: Links::NOWHERE,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        let share = &mut self.shares[transport as usize];
        share.fresh.push_last(&mut self.nodes, at);
        self.origins.entry(origin).or_default().all.push_last(&mut self.nodes, at);
        (at, self.generations)
    }

    /// Takes a stranger out of the lists. Its place stays taken.
    fn forget(&mut self, at: u32) -> Occupant {
        let node = &mut self.nodes[at as usize];
        node.generation = 0;
        let (transport, origin, is_proven) = (node.transport, node.origin, node.is_proven);
        let occupant = std::mem::replace(&mut node.occupant, Occupant::Unknown);
        let share = &mut self.shares[transport as usize];
        share.list(is_proven).remove(&mut self.nodes, at);
        if let Some(neighbours) = self.origins.get_mut(&origin) {
            neighbours.all.remove(&mut self.nodes, at);
            if neighbours.all.len() == 0 {
                self.origins.remove(&origin);
            }
        }
        self.free.push(at);
        occupant
    }

    fn give_back(&mut self, transport: Transport) {
        self.taken -= 1;
        self.connections -= usize::from(transport == Transport::Connection);
    }

    /// Frees the place of a stranger.
    fn evict(&mut self, at: u32) -> Occupant {
        let node = &self.nodes[at as usize];
        node.activity.end();
        self.give_back(node.transport);
        self.forget(at)
    }

    /// Looks at a stranger at the front of a list: `true` when it was moved because packets came from it since the last
    /// look, or because it is a stranger no more.
    fn look(&mut self, at: u32) -> bool {
        let node = &mut self.nodes[at as usize];
        if matches!(&node.occupant, Occupant::Face(face) if face.persistency() != FacePersistency::OnDemand) {
            // Somebody made it persistent by command.
            self.forget(at);
            return true;
        }
        if !node.activity.is_heard() {
            return false;
        }
        if node.is_proven {
            // Who has just proved itself counts as heard once more, so that it does not give way to the next one at once.
            node.activity.forget_heard();
        }
        let (transport, origin) = (node.transport, node.origin);
        let was_proven = std::mem::replace(&mut node.is_proven, true);
        let share = &mut self.shares[transport as usize];
        share.list(was_proven).remove(&mut self.nodes, at);
        share.proven.push_last(&mut self.nodes, at);
        if let Some(neighbours) = self.origins.get_mut(&origin) {
            neighbours.all.remove(&mut self.nodes, at);
            neighbours.all.push_last(&mut self.nodes, at);
        }
        true
    }

    /// The stranger that has been idle longest, of this transport.
    fn idle_longest(&mut self, transport: Transport) -> Option<u32> {
        loop {
            let share = &mut self.shares[transport as usize];
            let fresh_first = share.fresh.len() >= share.quarter() || share.proven.len() == 0;
            let at = share.list(!fresh_first).first()?;
            if !self.look(at) {
                return Some(at);
            }
        }
    }

    fn find_victim(&mut self, guest: &Guest, since_start: Duration) -> Option<u32> {
        let Some(origin) = guest.stranger else {
            // For those that are known, as many strangers give way as need be.
            let [datagrams, connections] = self.shares.each_ref().map(Share::len);
            let helps = guest.transport == Transport::Datagram || self.connections < self.max_connections;
            let of_datagrams = helps && datagrams > connections;
            return self.idle_longest(if of_datagrams { Transport::Datagram } else { Transport::Connection });
        };
        if self.origins.get(&origin).is_some_and(|neighbours| neighbours.all.len() >= self.per_origin) {
            let limit = (self.per_origin / FRESH_FRACTION).max(1);
            loop {
                let neighbours = self.origins.get_mut(&origin)?;
                let at = neighbours.all.first()?;
                if !self.look(at) {
                    let allowed = self.origins.get_mut(&origin)?.taken_over.allows(since_start, limit);
                    return allowed.then_some(at);
                }
            }
        }
        let at = self.idle_longest(guest.transport)?;
        let share = &mut self.shares[guest.transport as usize];
        let limit = share.quarter();
        share.taken_over.allows(since_start, limit).then_some(at)
    }
}

/// A place that was taken; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Place {
    places: Rc<Places>,
    transport: Transport,
    /// A stranger's node, with its generation.
    node: Option<(u32, u64)>,
    activity: Rc<Activity>,
}

impl Place {
    /// Where the use of this place is noted.
    pub(super) fn activity(&self) -> &Rc<Activity> {
        &self.activity
    }

    /// Says who has this place, and so what is to be closed when it is taken over.
    pub(super) fn occupy(&self, occupant: Occupant) {
        let Some((at, generation)) = self.node else { return };
        let mut state = self.places.0.borrow_mut();
        let node = &mut state.nodes[at as usize];
        if node.generation == generation {
            node.occupant = occupant;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.0.borrow_mut();
        match self.node {
            Some((at, generation)) if state.nodes[at as usize].generation == generation => drop(state.evict(at)),
            // It was taken over.
            _ if self.activity.has_ended() => {}
            // A known peer, perhaps one that was a stranger.
            _ => state.give_back(self.transport),
        }
    }
}

#[cfg(test)]
mod tests;
