//! Places of strangers, which are peers on other computers that came by themselves, and who of them gives way when all places are taken.
//!
//! Anybody can send a datagram or a frame, or open a connection, and whoever does gets a face. So strangers have a number of places, and
//! when all of them are taken, a new one gets the place of the stranger that has been idle longest:
//!
//! * Strangers that have sent nothing since their face was made lose theirs first, oldest first, so that a flood of packets
//!   with forged addresses replaces itself. A quarter of the places is for such new strangers even when all others are in use,
//!   so that a new one has time to show that it goes on sending.
//! * A stranger that is looked at and has sent packets since the last look is moved behind all others. So the list need not be
//!   kept in order of time, a packet costs no more than a note that it came, and each look is paid for by a packet.
//! * At most a quarter of the places changes hands in a second, spread over it. So a peer that sends a packet every few seconds
//!   cannot lose its place to any flood, a new one gets a place within a moment, and a flood costs a bounded part of the
//!   processor.
//!
//! Strangers of one Internet address (IPv6: of one network of 64 bits) have a limit of their own, beyond which they replace each other.

mod share;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use crate::list::{Linked, Links};
use share::{BY_ORIGIN, BY_USE, FRESH_FRACTION, OriginShare, Share};

/// Where strangers come from that count together: an IPv4 address or an IPv6 network of 64 bits, which is what one customer
/// of a provider gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    address: IpAddr,
    scope: u32,
}

impl Origin {
    /// Where `address` is.
    pub(crate) fn of(address: SocketAddr) -> Origin {
        match address {
            SocketAddr::V4(v4) => Origin { address: IpAddr::V4(*v4.ip()), scope: 0 },
            SocketAddr::V6(v6) => {
                let network = v6.ip().to_bits() & (u128::MAX << 64);
                Origin { address: IpAddr::V6(network.into()), scope: v6.scope_id() }
            }
        }
    }
}

/// Who has a place.
pub(crate) trait Occupant {
    /// Whether it is a stranger no more: somebody made its face persistent by command.
    fn is_known(&self) -> bool;
    /// Whether packets came in since it got its place, or since [`Occupant::forget_heard`].
    fn is_heard(&self) -> bool;
    /// From now on only packets to come count as heard.
    fn forget_heard(&mut self);
}

/// A place that was taken. It may be somebody else's by now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    at: u32,
    /// Tells apart those that had this node one after the other.
    generation: u64,
}

#[derive(Debug)]
struct Node<T> {
    /// That of the place; 0 for one that is free.
    generation: u64,
    share: usize,
    /// `None` when nothing is known of where it comes from that could not be forged.
    origin: Option<Origin>,
    occupant: Option<T>,
    since: Instant,
    /// In the list of those that packets came from since they were made.
    is_proven: bool,
    by_use: Links,
    by_origin: Links,
}

impl<T> Linked<BY_USE> for Node<T> {
    fn links(&mut self) -> &mut Links {
        &mut self.by_use
    }
}

impl<T> Linked<BY_ORIGIN> for Node<T> {
    fn links(&mut self) -> &mut Links {
        &mut self.by_origin
    }
}

/// All strangers, in shares of which each has places of its own.
#[derive(Debug)]
pub(crate) struct Strangers<T> {
    shares: Vec<Share>,
    per_origin: usize,
    origins: HashMap<Origin, OriginShare>,
    nodes: Vec<Node<T>>,
    free: Vec<u32>,
    generations: u64,
}

impl<T: Occupant> Strangers<T> {
    /// Without any, where the shares have so many places, and those of one origin so many, but one at least.
    pub(crate) fn new(limits: &[usize], per_origin: usize) -> Strangers<T> {
        Strangers {
            shares: limits.iter().map(|&limit| Share { limit, ..Share::default() }).collect(),
            per_origin: per_origin.max(1),
            origins: HashMap::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            generations: 0,
        }
    }

    /// Whether nobody has a place, and nothing is left of those that had.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.origins.is_empty() && self.free.len() == self.nodes.len()
    }

    /// How many have places of a share.
    pub(crate) fn len(&self, share: usize) -> usize {
        self.shares[share].len()
    }

    /// Whether more than half of the places of a share are taken.
    pub(crate) fn is_half_full(&self, share: usize) -> bool {
        self.shares[share].len() * 2 > self.shares[share].limit
    }

    /// Whether there is a place for one that comes from there.
    pub(crate) fn has_room(&self, share: usize, origin: Option<Origin>) -> bool {
        self.shares[share].len() < self.shares[share].limit && !self.is_origin_full(origin)
    }

    fn is_origin_full(&self, origin: Option<Origin>) -> bool {
        let same_origin = origin.and_then(|origin| self.origins.get(&origin));
        same_origin.is_some_and(|same_origin| same_origin.all.len() >= self.per_origin)
    }

    /// Gives a place to somebody; the caller has looked whether there is one.
    pub(crate) fn enter(&mut self, share: usize, origin: Option<Origin>, occupant: T) -> Place {
        self.generations += 1;
        let node = Node {
            generation: self.generations,
            share,
            origin,
            occupant: Some(occupant),
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
        self.shares[share].fresh.push_last(&mut self.nodes, at);
        if let Some(origin) = origin {
            self.origins.entry(origin).or_default().all.push_last(&mut self.nodes, at);
        }
        Place { at, generation: self.generations }
    }

    /// Who has a place, if it is still the one that got it.
    pub(crate) fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        let node = self.nodes.get_mut(place.at as usize).filter(|node| node.generation == place.generation)?;
        node.occupant.as_mut()
    }

    /// Takes a place back, if whoever got it still has it.
    pub(crate) fn leave(&mut self, place: Place) -> Option<T> {
        self.get_mut(place)?;
        self.take(place.at)
    }

    /// Takes somebody out of the lists.
    fn take(&mut self, at: u32) -> Option<T> {
        let node = &mut self.nodes[at as usize];
        node.generation = 0;
        let (share, origin, is_proven) = (node.share, node.origin, node.is_proven);
        let occupant = node.occupant.take();
        self.shares[share].list(is_proven).remove(&mut self.nodes, at);
        if let Some(origin) = origin
            && let Some(same_origin) = self.origins.get_mut(&origin)
        {
            same_origin.all.remove(&mut self.nodes, at);
            if same_origin.all.len() == 0 {
                self.origins.remove(&origin);
            }
        }
        self.free.push(at);
        occupant
    }

    /// Looks at a stranger at the front of a list: `true` when it was moved because packets came from it since the last
    /// look, or because it is a stranger no more.
    fn look(&mut self, at: u32) -> bool {
        let node = &mut self.nodes[at as usize];
        let Some(occupant) = &mut node.occupant else { return false };
        if occupant.is_known() {
            drop(self.take(at));
            return true;
        }
        if !occupant.is_heard() {
            return false;
        }
        if node.is_proven {
            // A stranger that was just found active counts as active once more, so that it does not lose its place at once.
            occupant.forget_heard();
        }
        let (share, origin) = (node.share, node.origin);
        let was_proven = std::mem::replace(&mut node.is_proven, true);
        let share = &mut self.shares[share];
        share.list(was_proven).remove(&mut self.nodes, at);
        share.proven.push_last(&mut self.nodes, at);
        if let Some(origin) = origin
            && let Some(same_origin) = self.origins.get_mut(&origin)
        {
            same_origin.all.remove(&mut self.nodes, at);
            same_origin.all.push_last(&mut self.nodes, at);
        }
        true
    }

    fn find_idle_longest(&mut self, share: usize) -> Option<u32> {
        loop {
            let share = &mut self.shares[share];
            let fresh_first = share.fresh.len() >= share.quarter() || share.proven.len() == 0;
            let at = share.list(!fresh_first).first()?;
            if !self.look(at) {
                return Some(at);
            }
        }
    }

    /// Takes its place from the stranger of a share that has been idle longest.
    pub(crate) fn evict_idle_longest(&mut self, share: usize) -> Option<T> {
        let at = self.find_idle_longest(share)?;
        self.take(at)
    }

    /// Takes its place from a stranger so that there is one for somebody who comes from there, so long after the start. `None` when
    /// nobody has to lose one.
    pub(crate) fn evict_for(&mut self, share: usize, origin: Option<Origin>, since_start: Duration) -> Option<T> {
        let at = match origin {
            Some(origin) if self.is_origin_full(Some(origin)) => self.find_idle_of_origin(origin, since_start),
            _ => {
                let at = self.find_idle_longest(share)?;
                let share = &mut self.shares[share];
                let limit = share.quarter();
                share.taken_over.allows(since_start, limit).then_some(at)
            }
        };
        at.and_then(|at| self.take(at))
    }

    fn find_idle_of_origin(&mut self, origin: Origin, since_start: Duration) -> Option<u32> {
        let limit = (self.per_origin / FRESH_FRACTION).max(1);
        loop {
            let at = self.origins.get(&origin)?.all.first()?;
            if !self.look(at) {
                return self.origins.get_mut(&origin)?.taken_over.allows(since_start, limit).then_some(at);
            }
        }
    }

    /// While more than half of the places of a share are taken, takes one from a stranger that has had it for so long and has never
    /// sent a packet.
    pub(crate) fn evict_silent(&mut self, share: usize, now: Instant, silence: Duration) -> Option<T> {
        while self.is_half_full(share) {
            let at = self.shares[share].fresh.first()?;
            if !self.look(at) {
                let is_silent = now.saturating_duration_since(self.nodes[at as usize].since) >= silence;
                return if is_silent { self.take(at) } else { None };
            }
        }
        None
    }
}
