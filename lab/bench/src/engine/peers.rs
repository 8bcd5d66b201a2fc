//! The peers on the worker's two links.
//!
//! In sorted traffic the peers of the first link are consumers, and the peers of the second link are producers. In
//! mixed traffic all peers are both: names requested by a peer of one link are served by a peer of the other link.

use namehop_face::address::MacAddress;
use namehop_face::registry::FaceTable;
use namehop_packet::FaceId;

use super::rig;
use crate::schedule::{EngineParameters, Traffic};

/// Number of links of the worker.
pub(super) const LINKS: usize = 2;

/// A peer: its link, and its number on that link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) link: usize,
    pub(super) number: usize,
}

impl Peer {
    /// MAC address of the peer.
    pub(super) fn address(self) -> MacAddress {
        [2, 0, 1, self.link as u8, (self.number >> 8) as u8, self.number as u8]
    }
}

/// Address of the worker's port on a link.
pub(super) fn port_address(link: usize) -> MacAddress {
    [2, 0, 0, link as u8, 0, 0]
}

/// MAC address of the additional peer on the first link that sends floods.
pub(super) const FLOOD_PEER: MacAddress = [2, 0, 2, 0, 0, 0];

/// Assignment of prefixes to peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peers {
    on_each_link: usize,
    both_ways: bool,
}

impl Peers {
    pub(super) fn of(parameters: &EngineParameters) -> Self {
        Peers { on_each_link: parameters.peers.max(1), both_ways: parameters.traffic == Traffic::Mixed }
    }

    /// All peers, link by link.
    pub(super) fn all(self) -> impl Iterator<Item = Peer> {
        (0..LINKS).flat_map(move |link| (0..self.on_each_link).map(move |number| Peer { link, number }))
    }

    /// Returns the peer that serves a prefix.
    #[inline]
    pub(super) fn upstream(self, prefix: u64) -> Peer {
        let place = (prefix % (LINKS * self.on_each_link) as u64) as usize;
        match self.both_ways {
            true => Peer { link: place % LINKS, number: place / LINKS },
            false => Peer { link: LINKS - 1, number: place % self.on_each_link },
        }
    }

    /// Returns a peer that requests names below a prefix, selected by `draw`.
    #[inline]
    pub(super) fn downstream(self, prefix: u64, draw: u64) -> Peer {
        Peer { link: LINKS - 1 - self.upstream(prefix).link, number: (draw % self.on_each_link as u64) as usize }
    }

    /// Face ids of the peers, by link and number. Every new face table assigns ids in this order.
    pub(super) fn faces(self) -> [Vec<FaceId>; LINKS] {
        let table = FaceTable::new();
        let mut faces: [Vec<FaceId>; LINKS] = Default::default();
        for peer in self.all() {
            let inserted = rig::insert_face(&table, peer.link, peer.address());
            faces[peer.link].push(inserted.map_or(FaceId::INVALID, |face| face.id()));
        }
        faces
    }
}
