//! The limit of faces over sockets, and which faces are closed for others when it is reached.
//!
//! Each face holds a permit, and so does a WebSocket connection from before its handshake on. Anybody who can send a datagram
//! or open a connection asks for one. Some permits are reserved for applications on this computer and for faces made by
//! configuration or command, so that the router can be used and looked at whatever comes in from the network. The others are
//! for strangers: peers on other computers that came by themselves. Half of those are for peers that send datagrams, whose
//! addresses may be forged, and half for peers that connect.
//!
//! When strangers hold all their permits, a new one gets the permit of the stranger that has been idle longest:
//!
//! * Strangers that have sent nothing since their face was made lose theirs first, oldest first, so that a flood of datagrams
//!   with forged addresses replaces itself. A quarter of the permits is for such new strangers even when all others are in use,
//!   so that a new one has time to show that it goes on sending.
//! * A stranger that is looked at and has sent packets since the last look is moved behind all others. So the list need not be
//!   kept in order of time, a packet costs no more than a note that it came, and each look is paid for by a packet.
//! * At most a quarter of the permits changes hands in a second, spread over it. So a peer that sends a packet every few seconds
//!   cannot lose its permit to any flood, a new one gets a permit within a moment, and a flood costs a bounded part of the
//!   processor.
//!
//! Strangers of one address (IPv6: of one network of 64 bits) have a limit of their own, beyond which they replace each other.

mod request;
mod share;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

use super::config::SocketConfig;
use crate::list::{Linked, Links};
use crate::registry::{Face, FacePersistency, places_of_strangers};
use share::{FRESH_FRACTION, OriginShare, Share};

pub(super) use request::{Activity, Origin, PermitRequest, Transport};

/// Kinds of lists: by transport, and by origin.
const BY_USE: usize = 0;
const BY_ORIGIN: usize = 1;

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

/// A stranger's permit.
#[derive(Debug)]
struct Node {
    /// Tells apart those that had this node one after the other.
    generation: u64,
    transport: Transport,
    origin: Origin,
    holder: Holder,
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
    origins: HashMap<Origin, OriginShare>,
    nodes: Vec<Node>,
    free: Vec<u32>,
    generations: u64,
}

/// All permits.
#[derive(Debug)]
pub(super) struct Permits(RefCell<State>);

impl Permits {
    /// All permits free, as many as configured.
    pub(super) fn new(config: &SocketConfig) -> Rc<Permits> {
        let limit = config.max_faces.saturating_sub(config.max_strangers_on_ports);
        let strangers = places_of_strangers(config.max_faces).saturating_sub(config.max_strangers_on_ports);
        let share = |limit| Share { limit, ..Share::default() };
        Rc::new(Permits(RefCell::new(State {
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

    /// Takes a permit, if one is free for `request`.
    pub(super) fn take(self: &Rc<Self>, request: &PermitRequest) -> Option<Permit> {
        let mut state = self.0.borrow_mut();
        if !state.has_room(request) {
            return None;
        }
        let activity = Rc::new(Activity::default());
        let node = request.stranger.map(|origin| state.enter(request.transport, origin, &activity));
        state.taken += 1;
        state.connections += usize::from(request.transport == Transport::Connection);
        Some(Permit { permits: Rc::clone(self), transport: request.transport, node, activity })
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
        let at = state.find_victim(request, since_start)?;
        Some(state.evict(at))
    }

    /// Takes the permit of a stranger's connection back because file descriptors have run out.
    pub(super) fn take_back_connection(&self) -> Option<Holder> {
        let mut state = self.0.borrow_mut();
        let at = state.idle_longest(Transport::Connection)?;
        Some(state.evict(at))
    }

    /// While strangers have more than half of their connections, takes the permit of one back that was made longer ago than the
    /// configured time and has never sent a packet.
    pub(super) fn take_back_silent(&self, now: Instant) -> Option<Holder> {
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

    fn has_room(&self, request: &PermitRequest) -> bool {
        let Some(origin) = &request.stranger else { return !self.is_full(request.transport) };
        let share = &self.shares[request.transport as usize];
        let of_origin = self.origins.get(origin).map_or(0, |same_origin| same_origin.all.len());
        !self.is_full(request.transport) && share.len() < share.limit && of_origin < self.per_origin
    }

    fn enter(&mut self, transport: Transport, origin: Origin, activity: &Rc<Activity>) -> (u32, u64) {
        self.generations += 1;
        let node = Node {
            generation: self.generations,
            transport,
            origin,
            holder: Holder::Unknown,
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

    /// Takes a stranger out of the lists. Its permit stays taken.
    fn forget(&mut self, at: u32) -> Holder {
        let node = &mut self.nodes[at as usize];
        node.generation = 0;
        let (transport, origin, is_proven) = (node.transport, node.origin, node.is_proven);
        let holder = std::mem::replace(&mut node.holder, Holder::Unknown);
        let share = &mut self.shares[transport as usize];
        share.list(is_proven).remove(&mut self.nodes, at);
        if let Some(same_origin) = self.origins.get_mut(&origin) {
            same_origin.all.remove(&mut self.nodes, at);
            if same_origin.all.len() == 0 {
                self.origins.remove(&origin);
            }
        }
        self.free.push(at);
        holder
    }

    fn give_back(&mut self, transport: Transport) {
        self.taken -= 1;
        self.connections -= usize::from(transport == Transport::Connection);
    }

    /// Frees the permit of a stranger.
    fn evict(&mut self, at: u32) -> Holder {
        let node = &self.nodes[at as usize];
        node.activity.end();
        self.give_back(node.transport);
        self.forget(at)
    }

    /// Looks at a stranger at the front of a list: `true` when it was moved because packets came from it since the last
    /// look, or because it is a stranger no more.
    fn look(&mut self, at: u32) -> bool {
        let node = &mut self.nodes[at as usize];
        if matches!(&node.holder, Holder::Face(face) if face.persistency() != FacePersistency::OnDemand) {
            // Somebody made it persistent by command.
            self.forget(at);
            return true;
        }
        if !node.activity.is_heard() {
            return false;
        }
        if node.is_proven {
            // A stranger that was just found active counts as active once more, so that it does not lose its permit at once.
            node.activity.forget_heard();
        }
        let (transport, origin) = (node.transport, node.origin);
        let was_proven = std::mem::replace(&mut node.is_proven, true);
        let share = &mut self.shares[transport as usize];
        share.list(was_proven).remove(&mut self.nodes, at);
        share.proven.push_last(&mut self.nodes, at);
        if let Some(same_origin) = self.origins.get_mut(&origin) {
            same_origin.all.remove(&mut self.nodes, at);
            same_origin.all.push_last(&mut self.nodes, at);
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

    fn find_victim(&mut self, request: &PermitRequest, since_start: Duration) -> Option<u32> {
        let Some(origin) = request.stranger else {
            // For known peers, as many strangers lose their permits as necessary.
            let [datagrams, connections] = self.shares.each_ref().map(Share::len);
            let helps = request.transport == Transport::Datagram || self.connections < self.max_connections;
            let of_datagrams = helps && datagrams > connections;
            return self.idle_longest(if of_datagrams { Transport::Datagram } else { Transport::Connection });
        };
        if self.origins.get(&origin).is_some_and(|same_origin| same_origin.all.len() >= self.per_origin) {
            let limit = (self.per_origin / FRESH_FRACTION).max(1);
            loop {
                let same_origin = self.origins.get_mut(&origin)?;
                let at = same_origin.all.first()?;
                if !self.look(at) {
                    let allowed = self.origins.get_mut(&origin)?.taken_over.allows(since_start, limit);
                    return allowed.then_some(at);
                }
            }
        }
        let at = self.idle_longest(request.transport)?;
        let share = &mut self.shares[request.transport as usize];
        let limit = share.quarter();
        share.taken_over.allows(since_start, limit).then_some(at)
    }
}

/// A permit that was taken; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Permit {
    permits: Rc<Permits>,
    transport: Transport,
    /// A stranger's node, with its generation.
    node: Option<(u32, u64)>,
    activity: Rc<Activity>,
}

impl Permit {
    /// Where the use of this permit is noted.
    pub(super) fn activity(&self) -> &Rc<Activity> {
        &self.activity
    }

    /// Notes who holds this permit: what has to be closed when it is taken back.
    pub(super) fn set_holder(&self, holder: Holder) {
        let Some((at, generation)) = self.node else { return };
        let mut state = self.permits.0.borrow_mut();
        let node = &mut state.nodes[at as usize];
        if node.generation == generation {
            node.holder = holder;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.permits.0.borrow_mut();
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
