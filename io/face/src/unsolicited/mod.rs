//! Slots for unsolicited peers on other hosts, and which of them is evicted when all slots are in use.
//!
//! Anyone can send a datagram or a frame, or open a connection, and gets a face by doing so. So the number of
//! unsolicited peers is limited. When all slots are in use, a new unsolicited peer evicts the one that has been idle
//! longest:
//!
//! * Unsolicited peers that have sent nothing since their face was created are evicted first, oldest first. So a flood
//!   of packets with forged addresses replaces itself. A quarter of the slots is reserved for such new unsolicited
//!   peers even when all others are in use. So a new one has time to show that it continues to send.
//! * If an unsolicited peer is checked for eviction and has sent packets since the last check, it moves to the end of
//!   the list. So the list need not be kept in order of time, and a packet costs only a flag or counter update. Each
//!   check of an active unsolicited peer is paid for by one of its packets.
//! * At most a quarter of the slots changes owner in a second, spread over that second. So a peer that sends a packet
//!   every few seconds cannot lose its slot to any flood. A new one gets a slot within a moment, and a flood costs a
//!   bounded part of the CPU time.
//!
//! Unsolicited peers of one Internet address (IPv6: of one /64 network) have a limit of their own, beyond which they
//! evict each other.

mod share;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use crate::list::{Linked, Links};
use share::{BY_ORIGIN, BY_USE, FRESH_FRACTION, OriginShare, Share};

/// The origin of unsolicited peers that count together: an IPv4 address or an IPv6 /64 network, which is what one
/// customer of a provider gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin {
    address: IpAddr,
    scope: u32,
}

impl Origin {
    /// Returns the origin of `address`.
    pub fn of(address: SocketAddr) -> Origin {
        match address {
            SocketAddr::V4(v4) => Origin { address: IpAddr::V4(*v4.ip()), scope: 0 },
            SocketAddr::V6(v6) => {
                let network = v6.ip().to_bits() & (u128::MAX << 64);
                Origin { address: IpAddr::V6(network.into()), scope: v6.scope_id() }
            }
        }
    }
}

/// The owner of a slot.
pub trait Occupant {
    /// Whether the owner is not an unsolicited peer any more, because a command has made its face persistent.
    fn is_known(&self) -> bool;
    /// Whether packets arrived since it got its slot, or since [`Occupant::forget_heard`].
    fn is_heard(&self) -> bool;
    /// Resets [`Occupant::is_heard`].
    fn forget_heard(&mut self);
}

/// Handle of a taken slot. The slot may have another owner by now.
#[derive(Debug, Clone, Copy)]
pub struct SlotHandle {
    at: u32,
    /// Distinguishes the successive owners of this node.
    generation: u64,
}

#[derive(Debug)]
struct Node<T> {
    /// Generation of the slot's handle; 0 while it is free.
    generation: u64,
    share: usize,
    /// `None` if the peer has no address that is hard to forge.
    origin: Option<Origin>,
    occupant: Option<T>,
    since: Instant,
    /// In the list of unsolicited peers that have sent packets since their face was created.
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

/// All unsolicited peers, divided into shares with slots of their own.
#[derive(Debug)]
pub struct UnsolicitedPeers<T> {
    shares: Vec<Share>,
    per_origin: usize,
    origins: HashMap<Origin, OriginShare>,
    nodes: Vec<Node<T>>,
    free: Vec<u32>,
    generations: u64,
}

impl<T: Occupant> UnsolicitedPeers<T> {
    /// Creates an empty set. `limits` are the slots of each share, `per_origin` is the limit for one origin, at least
    /// one.
    pub fn new(limits: &[usize], per_origin: usize) -> UnsolicitedPeers<T> {
        UnsolicitedPeers {
            shares: limits.iter().map(|&limit| Share { limit, ..Share::default() }).collect(),
            per_origin: per_origin.max(1),
            origins: HashMap::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            generations: 0,
        }
    }

    /// Whether the set is empty and all its slots are free.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.origins.is_empty() && self.free.len() == self.nodes.len()
    }

    /// Returns the number of used slots of a share.
    pub fn len(&self, share: usize) -> usize {
        self.shares[share].len()
    }

    /// Whether more than half of the slots of a share are in use.
    pub fn is_half_full(&self, share: usize) -> bool {
        self.shares[share].len() * 2 > self.shares[share].limit
    }

    /// Whether a slot is free for an unsolicited peer of this origin.
    pub fn has_room(&self, share: usize, origin: Option<Origin>) -> bool {
        self.shares[share].len() < self.shares[share].limit && !self.is_origin_full(origin)
    }

    fn is_origin_full(&self, origin: Option<Origin>) -> bool {
        let same_origin = origin.and_then(|origin| self.origins.get(&origin));
        same_origin.is_some_and(|same_origin| same_origin.all.len() >= self.per_origin)
    }

    /// Gives a slot to an unsolicited peer; the caller has checked that one is free.
    pub fn enter(&mut self, share: usize, origin: Option<Origin>, occupant: T) -> SlotHandle {
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
        SlotHandle { at, generation: self.generations }
    }

    /// Returns the owner of a slot, if the slot still has the owner of this handle.
    pub fn get_mut(&mut self, handle: SlotHandle) -> Option<&mut T> {
        let node = self.nodes.get_mut(handle.at as usize).filter(|node| node.generation == handle.generation)?;
        node.occupant.as_mut()
    }

    /// Frees a slot, if it still has the owner of this handle.
    pub fn leave(&mut self, handle: SlotHandle) -> Option<T> {
        self.get_mut(handle)?;
        self.take(handle.at)
    }

    /// Removes an unsolicited peer from the lists.
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

    /// Checks the peer at the front of a list. Returns `true` if it was moved because it has sent packets since the
    /// last check, or removed because it is not an unsolicited peer any more.
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
            // An unsolicited peer found active for the first time counts as active once more, so that it is not evicted
            // at once.
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

    /// Evicts the peer of a share that has been idle longest.
    pub fn evict_idle_longest(&mut self, share: usize) -> Option<T> {
        let at = self.find_idle_longest(share)?;
        self.take(at)
    }

    /// Evicts an unsolicited peer so that a slot becomes free for a new one of this origin. `since_start` is the time
    /// since the start, for the rate limit. Returns `None` if no unsolicited peer has to be evicted now.
    pub fn evict_for(&mut self, share: usize, origin: Option<Origin>, since_start: Duration) -> Option<T> {
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

    /// While more than half of the slots of a share are in use, evicts an unsolicited peer that got its slot at least
    /// `silence` ago and has sent nothing since.
    pub fn evict_silent(&mut self, share: usize, now: Instant, silence: Duration) -> Option<T> {
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
