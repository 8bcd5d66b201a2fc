//! One port of a worker, and the classification of received frames.

use std::ops::Range;
use std::sync::atomic::Ordering;

use namehop_packet::{FaceId, PacketBuffer, PortQueue, Timestamp};

use super::bypass::Bypass;
use super::internet::Internet;
use super::queues::Share;
use super::send_queue::SendQueue;
use super::unsolicited::UnsolicitedSenders;
use super::{FaceHeader, FaceRecords, PortNetwork, PortParams};
use crate::encapsulation::vlan::Carried;
use crate::encapsulation::{Header, LastDatagram, Peer};
use namehop_face::address::{MacAddress, VlanId};
use namehop_face::peers::PeerTable;
use namehop_face::wait_watch::WaitWatch;

/// A port in use.
pub(super) struct Port {
    pub(super) params: PortParams,
    /// Its faces directly over Ethernet, or the single face of a bare link.
    pub(super) faces: PeerTable<FaceId, Peer>,
    /// Its Internet hosts, one in each network where it has addresses.
    pub(super) hosts: Vec<Internet>,
    /// On-demand faces of unknown senders.
    pub(super) unsolicited: UnsolicitedSenders,
    /// Frames to send.
    pub(super) waiting: SendQueue,
    /// The kernel's share of the link.
    pub(super) bypass: Option<Bypass>,
    /// This worker's share of the port.
    pub(super) share: Share,
    /// Frames received on further queues and forwarded to this worker, which has the port.
    pub(super) handed_in: Vec<PacketBuffer>,
    /// Frames received on this worker's queue so far.
    pub(super) received_frames: u64,
    pub(super) sent_frames: u64,
    /// Measures how long frames wait in this worker's queue.
    pub(super) watch: WaitWatch,
}

/// The face of a received frame, and the number that distinguishes the senders to a multicast group.
pub(super) type Owner = (FaceId, u64);

/// Header and face of the last frame of a burst that belonged to a face. Consecutive frames usually come from one
/// sender, so this saves a lookup.
pub(super) enum Last {
    /// There is none.
    None,
    /// Directly over Ethernet, or on a bare link.
    Link(Header, Owner),
    /// Over the Internet.
    Datagram(LastDatagram, Owner),
}

/// What a received frame is.
pub(super) enum Arrival<P> {
    /// A packet for a face.
    Packet(P),
    /// The buffer now holds the port's own answer, which is to be sent.
    Answer,
    /// A message to the port itself, which has been processed.
    Nothing,
}

impl Port {
    pub(super) fn new(params: PortParams, share: Share) -> Port {
        let is_first = matches!(share, Share::First { .. });
        let has_addresses = |network: &&PortNetwork| !network.addresses.is_empty();
        let hosts = params.networks.iter().filter(has_addresses);
        let hosts = hosts.map(|network| Internet::new(network.clone(), params.address, is_first)).collect();
        let (faces, waiting) = (PeerTable::new(), SendQueue::default());
        let unsolicited = UnsolicitedSenders::new(params.max_on_demand_faces, params.max_unsolicited_per_address);
        Port {
            params,
            faces,
            hosts,
            unsolicited,
            waiting,
            bypass: None,
            share,
            handed_in: Vec::new(),
            received_frames: 0,
            sent_frames: 0,
            watch: WaitWatch::default(),
        }
    }

    /// Returns the number of the host that handles the frame; `None` if the frame is not an Internet frame, or if the
    /// port has no addresses in its network.
    #[inline]
    pub(super) fn host_of(&self, frame: &[u8]) -> Option<u16> {
        if self.hosts.is_empty() {
            return None;
        }
        let carried = Carried::read(frame).filter(Internet::handles)?;
        // There are only a few hosts.
        self.hosts.iter().position(|host| host.vlan() == carried.vlan).map(|host| host as u16)
    }

    /// Returns the owner of a frame that belongs to a face, and the range of its packet, which may include padding at
    /// the end.
    #[inline]
    pub(super) fn known_owner(&self, frame: &[u8], last: &mut Last) -> Option<(Owner, Range<usize>)> {
        let remembered = match last {
            Last::Link(header, owner) if header.is_on(frame) => Some((*owner, header.length()..frame.len())),
            Last::Datagram(header, owner) => header.payload_of(frame).map(|packet| (*owner, packet)),
            Last::Link(..) | Last::None => None,
        };
        if remembered.is_some() {
            return remembered;
        }
        if let Some(host) = self.host_of(frame) {
            let internet = self.hosts.get(usize::from(host))?;
            let (key, packet) = internet.datagram(frame)?;
            let owner = (internet.face_of(&key)?, 0);
            if let Some(headers) = internet.remember(frame, &key, packet.start) {
                *last = Last::Datagram(headers, owner);
            }
            return Some((owner, packet));
        }
        let received = self.params.framing.read(frame, &self.params.address).ok()?;
        let owner = (*self.faces.get(&received.peer)?, received.endpoint);
        *last = Last::Link(received.header, owner);
        Some((owner, received.header.length()..frame.len()))
    }

    /// Returns the host with this number.
    pub(super) fn host(&mut self, number: u16) -> Option<&mut Internet> {
        self.hosts.get_mut(usize::from(number))
    }

    /// Whether unknown senders may create faces in a VLAN, or untagged.
    pub(super) fn admits_unsolicited(&self, vlan: Option<VlanId>) -> bool {
        self.params.networks.iter().any(|network| network.on_demand && network.vlan == vlan)
    }

    /// Sets the send queue length of all faces of this port to 0.
    pub(super) fn clear_backlog(&self, faces: &mut impl FaceRecords) {
        for &id in self.faces.values() {
            if let Some((face, _)) = faces.get(id) {
                face.send_queue_bytes.store(0, Ordering::Relaxed);
            }
        }
        for face in self.hosts.iter().flat_map(Internet::faces) {
            face.send_queue_bytes.store(0, Ordering::Relaxed);
        }
    }

    /// Sets whether the link works, and resolves next hops again.
    #[cold]
    pub(super) fn change_state(&mut self, is_up: bool, now: Timestamp) {
        self.params.is_up = is_up;
        let address = self.params.address;
        self.hosts.iter_mut().for_each(|host| host.restart(now, address));
    }

    /// Takes a queue into use. If the hardware address of the port changes, the headers of all faces get the new one
    /// and next hops are resolved again. If it is the same, next hops stay known, because the link need not have been
    /// interrupted.
    pub(super) fn give_queue(
        &mut self,
        queue: Option<Box<dyn PortQueue>>,
        address: MacAddress,
        now: Timestamp,
        faces: &mut impl FaceRecords,
    ) {
        self.params.queue = queue;
        if self.params.address == address {
            return;
        }
        self.params.address = address;
        for &id in self.faces.values() {
            if let Some((_, output)) = faces.get(id)
                && let FaceHeader::Link(header) = &mut output.header
            {
                *header = Header::new(header.peer(), &address);
            }
        }
        self.hosts.iter_mut().for_each(|host| host.restart(now, address));
    }
}
