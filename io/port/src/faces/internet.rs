//! A port as an Internet host, in a VLAN or untagged: its faces over UDP and VXLAN, the resolution of their next hops,
//! and its own answers.
//!
//! The host has the configured addresses, and does not check whether another host uses them. It answers requests for
//! these addresses (ARP, neighbour discovery) and echo requests. Each answer reuses the buffer of its request and goes
//! back to the sender. The host requests the hardware addresses of its faces' next hops only.
//!
//! Outgoing frames start with the header of their face. While the next hop is not resolved, a few frames wait for it,
//! for a short time.

mod receive;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use namehop_packet::{BufferPool, FaceId, PacketBuffer, Timestamp};

use super::neighbour::{Due, Neighbour};
use super::network::PortNetwork;
use crate::encapsulation::arp::{self, ETHERTYPE_ARP};
use crate::encapsulation::ip::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use crate::encapsulation::udp::Header;
use crate::encapsulation::vlan::{self, Carried};
use crate::encapsulation::{
    Flow, InternetKey, InternetPeer, LastDatagram, SourcePort, Tunnel, entropy, neighbour_discovery,
};
use namehop_face::address::{MacAddress, VlanId};
use namehop_face::counters::{LinkDrop, LinkDropCounters};
use namehop_face::peers::PeerTable;
use namehop_face::registry::Face;
use namehop_face::uri::DEFAULT_PORT;

/// Maximum number of frames that wait for all next hops of a port together.
const MAX_WAITING: usize = 256;
/// Shortest time between two checks of all next hops.
const TICK_MS: u64 = 10;

/// Send state of a face.
struct Output {
    face: Arc<Face>,
    peer: InternetPeer,
    header: Header,
    /// The address to resolve; `None` if the hardware address is configured.
    next_hop: Option<IpAddr>,
    is_resolved: bool,
}

/// The Internet side of a port in one network.
pub(super) struct Internet {
    network: PortNetwork,
    local: MacAddress,
    /// Whether this worker resolves next hops. If not, another worker does it and stores the addresses in the faces.
    finds_next_hops: bool,
    faces: PeerTable<FaceId, InternetKey>,
    /// Number of faces that accept any source port, or any inner sender of an encapsulation.
    of_any_sender: usize,
    /// Number of faces that accept one sender only, by the key that they have in common with a face for any sender.
    of_one_sender: PeerTable<usize, InternetKey>,
    outputs: Vec<Option<Output>>,
    /// Free indices of `outputs`.
    free: Vec<u32>,
    /// Number of UDP faces at each local port.
    local_ports: HashMap<u16, usize>,
    neighbours: HashMap<IpAddr, Neighbour>,
    /// Not later than the earliest due time of a neighbour.
    next_due: Timestamp,
    /// Total number of frames that wait for next hops.
    waiting: usize,
}

impl Internet {
    /// Creates a host with these addresses and this hardware address. `finds_next_hops`: whether this worker resolves
    /// next hops.
    pub(super) fn new(network: PortNetwork, local: MacAddress, finds_next_hops: bool) -> Internet {
        Internet {
            network,
            local,
            finds_next_hops,
            faces: PeerTable::new(),
            of_any_sender: 0,
            of_one_sender: PeerTable::new(),
            outputs: Vec::new(),
            free: Vec::new(),
            local_ports: HashMap::new(),
            neighbours: HashMap::new(),
            next_due: Timestamp::NEVER,
            waiting: 0,
        }
    }

    /// Whether this module handles the protocol that a frame carries.
    #[inline]
    pub(super) fn handles(carried: &Carried) -> bool {
        matches!(carried.ethertype, ETHERTYPE_IPV4 | ETHERTYPE_IPV6 | ETHERTYPE_ARP)
    }

    /// Returns the VLAN of the host.
    #[inline]
    pub(super) fn vlan(&self) -> Option<VlanId> {
        self.network.vlan
    }

    /// Returns when [`Internet::tick`] has to be called next.
    pub(super) fn next_due(&self) -> Timestamp {
        self.next_due
    }

    /// Returns the faces of the host.
    pub(super) fn faces(&self) -> impl Iterator<Item = &Face> {
        self.outputs.iter().flatten().map(|output| &*output.face)
    }

    /// Returns the face for the datagrams of this peer.
    #[inline]
    pub(super) fn face_of(&self, key: &InternetKey) -> Option<FaceId> {
        let exact = self.faces.get(key);
        let found =
            if exact.is_none() && self.of_any_sender > 0 { self.faces.get(&key.of_any_sender()) } else { exact };
        found.copied()
    }

    /// Returns the headers of a face's datagram, for comparison with the next one; see [`LastDatagram`]. The packet
    /// starts at `start` in the frame.
    pub(super) fn remember(&self, frame: &[u8], key: &InternetKey, start: usize) -> Option<LastDatagram> {
        let common = key.of_any_sender();
        let has_any_port =
            self.of_any_sender > 0 && self.faces.get(&common).is_some() && self.of_one_sender.get(&common).is_none();
        LastDatagram::new(frame, key, vlan::header_bytes(self.vlan()), start, has_any_port)
    }

    /// Counts one face more or less with this key.
    fn count(&mut self, key: &InternetKey, is_more: bool) {
        if let Flow::Udp { local, .. } = key.flow {
            let at_port = self.local_ports.entry(local).or_default();
            *at_port = if is_more { *at_port + 1 } else { at_port.saturating_sub(1) };
            if *at_port == 0 {
                self.local_ports.remove(&local);
            }
        }
        let common = key.of_any_sender();
        if *key == common {
            self.of_any_sender = if is_more { self.of_any_sender + 1 } else { self.of_any_sender - 1 };
            return;
        }
        let before = self.of_one_sender.get(&common).copied().unwrap_or(0);
        match if is_more { before + 1 } else { before.saturating_sub(1) } {
            0 => drop(self.of_one_sender.remove(&common)),
            now => self.of_one_sender.insert(common, now),
        }
    }

    /// Returns the peer for a face to an unknown sender.
    ///
    /// # Errors
    /// The reason why there can be no such face.
    pub(super) fn unsolicited(&self, key: &InternetKey) -> Result<InternetPeer, LinkDrop> {
        let Flow::Udp { local: local_port, remote: Some(remote_port) } = key.flow else {
            return Err(LinkDrop::UnknownSender);
        };
        if local_port != DEFAULT_PORT {
            let is_used = self.local_ports.contains_key(&local_port);
            return Err(if is_used { LinkDrop::UnknownSender } else { LinkDrop::UnknownPort });
        }
        if remote_port == 0 || self.network.next_hop(key.remote).is_none() {
            return Err(LinkDrop::UnknownSender);
        }
        let tunnel = Tunnel::Udp { local_port, remote_port, source_port: SourcePort::Fixed };
        Ok(InternetPeer { vlan: self.vlan(), local: key.local, remote: key.remote, tunnel, next_hop: None })
    }

    /// Adds a face and returns its index in the outputs. The next tick requests the address of its next hop.
    pub(super) fn add(&mut self, now: Timestamp, face: &Arc<Face>, peer: InternetPeer) -> u32 {
        let key = peer.key();
        self.faces.insert(key, face.id());
        self.count(&key, true);
        let number = self.free.pop().unwrap_or_else(|| {
            self.outputs.push(None);
            // The number of faces is limited to less than that.
            (self.outputs.len() - 1) as u32
        });
        let mut header = peer.header(&self.local);
        let is_looked_for = peer.next_hop.is_none() && self.finds_next_hops;
        let next_hop = if is_looked_for { self.network.next_hop(peer.remote) } else { None };
        let mut address = peer.next_hop;
        if let Some(next_hop) = next_hop {
            let neighbour = self.neighbours.entry(next_hop).or_insert_with(|| Neighbour::new(now));
            neighbour.outputs.push(number);
            address = neighbour.address();
            self.next_due = self.next_due.min(neighbour.due());
        }
        if let Some(address) = address {
            header.set_next_hop(&address);
        }
        let is_resolved = address.is_some();
        if self.finds_next_hops {
            face.set_next_hop(address);
        }
        self.outputs[number as usize] = Some(Output { face: Arc::clone(face), peer, header, next_hop, is_resolved });
        number
    }

    /// Removes the face at this index, and its frames that wait for the next hop.
    pub(super) fn remove(&mut self, output_index: u32) {
        let Some(Output { face, peer, next_hop, .. }) =
            self.outputs.get_mut(output_index as usize).and_then(Option::take)
        else {
            return;
        };
        self.free.push(output_index);
        let key = peer.key();
        self.count(&key, false);
        if self.faces.get(&key) == Some(&face.id()) {
            self.faces.remove(&key);
        }
        let Some(next_hop) = next_hop else { return };
        let Some(neighbour) = self.neighbours.get_mut(&next_hop) else { return };
        let before = neighbour.waiting.len();
        neighbour.waiting.retain(|(output, _)| *output != output_index);
        let lost = before - neighbour.waiting.len();
        self.waiting -= lost;
        drops_of(&face).add(LinkDrop::LinkDown, lost as u64);
        neighbour.outputs.retain(|output| *output != output_index);
        if neighbour.outputs.is_empty() {
            self.neighbours.remove(&next_hop);
        }
    }

    /// Resolves all next hops again, because the link was interrupted or the port has another hardware address.
    pub(super) fn restart(&mut self, now: Timestamp, local: MacAddress) {
        self.local = local;
        for output in self.outputs.iter_mut().flatten() {
            output.header.set_local(&local);
            output.is_resolved = output.next_hop.is_none() && output.peer.next_hop.is_some();
            if self.finds_next_hops && !output.is_resolved {
                output.face.set_next_hop(None);
            }
        }
        for neighbour in self.neighbours.values_mut() {
            neighbour.forget(now);
            self.next_due = now;
        }
        self.give_up_waiting(None, LinkDrop::LinkDown);
    }

    /// Whether frames of the face at this index can be sent at once. Used where another worker resolves next hops.
    #[inline]
    pub(super) fn is_ready(&mut self, output_index: u32) -> bool {
        let Some(Some(output)) = self.outputs.get_mut(output_index as usize) else { return false };
        let next_hop = output.face.next_hop();
        if let Some(address) = &next_hop {
            output.header.set_next_hop(address);
        }
        output.is_resolved = next_hop.is_some();
        output.is_resolved
    }

    /// Drops the frames that wait for one next hop, or for all of them.
    fn give_up_waiting(&mut self, next_hop: Option<IpAddr>, reason: LinkDrop) {
        for (address, neighbour) in &mut self.neighbours {
            if next_hop.is_none_or(|next_hop| next_hop == *address) {
                self.waiting -= neighbour.waiting.len();
                for (output_index, _) in neighbour.waiting.drain(..) {
                    if let Some(Some(output)) = self.outputs.get(output_index as usize) {
                        drops_of(&output.face).add(reason, 1);
                    }
                }
            }
        }
    }

    /// Puts headers on frames of the face at this index; drops are counted in `drops`. Frames that have to wait for the
    /// next hop are moved out of `frames`, or dropped and counted.
    pub(super) fn put_on(
        &mut self,
        output_index: u32,
        frames: &mut Vec<PacketBuffer>,
        drops: &LinkDropCounters,
        pool: &BufferPool,
    ) {
        let Some(Some(output)) = self.outputs.get_mut(output_index as usize) else {
            drops.add(LinkDrop::LinkDown, frames.len() as u64);
            frames.clear();
            return;
        };
        let is_by_name = output.peer.has_ports_by_name();
        let mut port = entropy::FIRST_PORT;
        frames.retain_mut(|frame| {
            if is_by_name {
                // The fragments of a packet follow each other; the name is in the first one.
                port = entropy::source_port(frame.bytes()).unwrap_or(port);
            }
            let has_header = output.header.put_on(is_by_name.then_some(port), frame, pool);
            if !has_header {
                drops.add(LinkDrop::NoBuffer, 1);
            }
            has_header
        });
        if output.is_resolved {
            return;
        }
        let neighbour = output.next_hop.and_then(|next_hop| self.neighbours.get_mut(&next_hop));
        if let Some(neighbour) = neighbour {
            let room = neighbour.room().min(MAX_WAITING.saturating_sub(self.waiting)).min(frames.len());
            neighbour.waiting.extend(frames.drain(..room).map(|frame| (output_index, frame)));
            self.waiting += room;
        }
        drops.add(LinkDrop::NextHopUnresolved, frames.len() as u64);
        frames.clear();
    }

    /// Sends due requests to next hops, and drops the frames that wait for silent ones. Requests are added to `out`.
    pub(super) fn tick(&mut self, now: Timestamp, pool: &BufferPool, out: &mut Vec<PacketBuffer>) {
        if now < self.next_due {
            return;
        }
        let mut next_due = Timestamp::NEVER;
        let mut silent = Vec::new();
        for (&next_hop, neighbour) in &mut self.neighbours {
            let due = neighbour.tick(now);
            next_due = next_due.min(neighbour.due());
            let asked = match due {
                Some(Due::Ask(asked)) => asked,
                Some(Due::AskAndGiveUp) => {
                    silent.push(next_hop);
                    None
                }
                None => continue,
            };
            let with_tag = |question: &[u8]| {
                let mut frame = pool.allocate(question.len() + vlan::TAG_BYTES)?;
                vlan::append_with_tag(&mut frame, question, self.network.vlan).then_some(frame)
            };
            let question = match (next_hop, self.network.source_for(next_hop)) {
                (IpAddr::V4(next_hop), Some(IpAddr::V4(own))) => {
                    with_tag(&arp::question((self.local, own), next_hop, asked))
                }
                (IpAddr::V6(next_hop), Some(IpAddr::V6(own))) => {
                    with_tag(&neighbour_discovery::question((self.local, own), next_hop, asked))
                }
                _ => None,
            };
            // If there is no buffer, the request is sent later, as if it had been lost.
            out.extend(question);
        }
        self.next_due = next_due.max(now.plus_ms(TICK_MS));
        for next_hop in silent {
            self.give_up_waiting(Some(next_hop), LinkDrop::NextHopUnresolved);
            for &output_index in self.neighbours.get(&next_hop).map_or(&[][..], |neighbour| &neighbour.outputs) {
                if let Some(Some(output)) = self.outputs.get_mut(output_index as usize) {
                    output.is_resolved = false;
                    output.face.set_next_hop(None);
                }
            }
        }
    }
}

/// Returns the drop counters of the worker that has the port of the face, which is this worker.
fn drops_of(face: &Face) -> &LinkDropCounters {
    &face.counters.worker(face.home_worker()).link_drops
}
