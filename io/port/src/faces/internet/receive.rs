//! Handling of received Internet frames: datagrams are assigned to faces, requests are answered in place, answers are
//! stored.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

use namehop_packet::{PacketBuffer, Timestamp};

use super::Internet;
use crate::encapsulation::arp::Arp;
use crate::encapsulation::ip::{
    Datagram, ETHERTYPE_IPV4, ETHERTYPE_IPV6, PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_UDP,
};
use crate::encapsulation::neighbour_discovery::{self, ADVERTISEMENT, Message, SOLICITATION, solicited_node};
use crate::encapsulation::tunnel::{Inside, TunnelKind};
use crate::encapsulation::vlan::{self, Carried};
use crate::encapsulation::{Flow, InternetKey, icmp, udp};
use crate::faces::neighbour::{Heard, Neighbour};
use crate::faces::single::Arrival;
use namehop_face::address::{MacAddress, is_group};
use namehop_face::counters::LinkDrop;

/// For a datagram: its key, and the range of its packet in the frame.
type InternetArrival = Arrival<(InternetKey, Range<usize>)>;

impl Internet {
    /// Classifies a received frame of this network, of a protocol that [`Internet::handles`]. Frames that waited for an
    /// answer are added to `out`.
    ///
    /// # Errors
    /// The drop reason.
    pub(in crate::faces) fn receive(
        &mut self,
        now: Timestamp,
        frame: &mut PacketBuffer,
        out: &mut Vec<PacketBuffer>,
    ) -> Result<InternetArrival, LinkDrop> {
        let bytes = frame.bytes();
        let (Some(destination), Some(source)) = (hardware_address(bytes, 0), hardware_address(bytes, 6)) else {
            return Err(LinkDrop::MalformedFrame);
        };
        let is_to_group = is_group(&destination);
        if !is_to_group && destination != self.local || is_group(&source) {
            return Err(LinkDrop::ForeignFrame);
        }
        let packet = match Carried::read(bytes) {
            Some(carried @ Carried { ethertype: ETHERTYPE_IPV4, .. }) => Datagram::read_v4(bytes, carried.start())?,
            Some(carried @ Carried { ethertype: ETHERTYPE_IPV6, .. }) => Datagram::read_v6(bytes, carried.start())?,
            _ => return self.receive_arp(now, frame, is_to_group, out),
        };
        let is_mine = self.network.has(packet.destination);
        match packet.protocol {
            PROTOCOL_UDP if is_mine && !is_to_group && is_of_one_host(packet.source) => {
                self.receive_udp(bytes, &packet)
            }
            PROTOCOL_ICMPV6 if packet.source.is_ipv6() && (is_mine || self.is_solicited(packet.destination)) => {
                match icmp::read_type(bytes, &packet)? {
                    SOLICITATION | ADVERTISEMENT => self.receive_discovery(now, frame, &packet, out),
                    kind => self.receive_echo(kind, frame, &packet, is_mine && !is_to_group),
                }
            }
            PROTOCOL_ICMP if packet.source.is_ipv4() && is_mine => {
                let kind = icmp::read_type(bytes, &packet)?;
                self.receive_echo(kind, frame, &packet, !is_to_group)
            }
            _ if is_mine && !is_to_group => Err(LinkDrop::NotNdnFrame),
            _ => Err(LinkDrop::ForeignFrame),
        }
    }

    /// Returns the key of a datagram and the range of its packet, if the frame is a datagram to this host; changes
    /// nothing.
    pub(in crate::faces) fn datagram(&self, frame: &[u8]) -> Option<(InternetKey, Range<usize>)> {
        let (destination, source) = (hardware_address(frame, 0)?, hardware_address(frame, 6)?);
        let carried = Carried::read(frame)?;
        let packet = match carried.ethertype {
            ETHERTYPE_IPV4 => Datagram::read_v4(frame, carried.start()),
            ETHERTYPE_IPV6 => Datagram::read_v6(frame, carried.start()),
            _ => return None,
        };
        let packet = packet.ok().filter(|packet| packet.protocol == PROTOCOL_UDP)?;
        let is_for_me = destination == self.local && self.network.has(packet.destination);
        if !is_for_me || is_group(&source) || !is_of_one_host(packet.source) {
            return None;
        }
        match self.receive_udp(frame, &packet) {
            Ok(Arrival::Packet(datagram)) => Some(datagram),
            _ => None,
        }
    }

    #[inline]
    fn receive_udp(&self, bytes: &[u8], packet: &Datagram) -> Result<InternetArrival, LinkDrop> {
        let datagram = udp::read(bytes, packet)?;
        let mut inside = datagram.payload;
        let flow = if let Some(kind) = TunnelKind::at(datagram.destination_port) {
            let Inside { network, source } = (kind.read)(&bytes[inside.clone()], &self.local)?;
            inside.start += kind.header_bytes;
            Flow::Inside { port: kind.port, network, inner: source }
        } else {
            Flow::Udp { local: datagram.destination_port, remote: Some(datagram.source_port) }
        };
        let key = InternetKey { local: packet.destination, remote: packet.source, flow };
        Ok(Arrival::Packet((key, inside)))
    }

    fn receive_echo(
        &self,
        kind: u8,
        frame: &mut PacketBuffer,
        packet: &Datagram,
        is_for_me_alone: bool,
    ) -> Result<InternetArrival, LinkDrop> {
        if !icmp::is_echo_request(packet, kind) {
            return Err(LinkDrop::NotNdnFrame);
        }
        if !is_for_me_alone || !is_of_one_host(packet.source) {
            return Err(LinkDrop::ForeignFrame);
        }
        icmp::answer(frame, packet);
        Ok(Arrival::Answer)
    }

    fn receive_arp(
        &mut self,
        now: Timestamp,
        frame: &mut PacketBuffer,
        is_to_group: bool,
        out: &mut Vec<PacketBuffer>,
    ) -> Result<InternetArrival, LinkDrop> {
        let message = Arp::read(frame.bytes(), vlan::header_bytes(self.vlan()))?;
        let (sender, is_for_me) = (IpAddr::V4(message.sender_ip), self.network.has(message.target_ip.into()));
        if self.network.has(sender) {
            // Another host uses an address of this port.
            return Err(LinkDrop::NeighbourConflict);
        }
        let is_answer = message.is_reply && is_for_me && !is_to_group && message.target == self.local;
        let claims = message.sender_ip != Ipv4Addr::UNSPECIFIED;
        if is_answer {
            self.hear(sender, out, |neighbour| neighbour.answered(now, Some(message.sender)))?;
        } else if claims && (is_for_me || message.sender_ip == message.target_ip) {
            self.hear(sender, out, |neighbour| neighbour.claimed(now, message.sender))?;
        } else if !is_for_me {
            return Err(LinkDrop::ForeignFrame);
        }
        if message.is_reply || !is_for_me {
            return Ok(Arrival::Nothing);
        }
        self.replace(frame, &message.answer(self.local).to_frame(&message.sender))
    }

    fn receive_discovery(
        &mut self,
        now: Timestamp,
        frame: &mut PacketBuffer,
        packet: &Datagram,
        out: &mut Vec<PacketBuffer>,
    ) -> Result<InternetArrival, LinkDrop> {
        let IpAddr::V6(source) = packet.source else { return Err(LinkDrop::BadNeighbourMessage) };
        let sender = hardware_address(frame.bytes(), 6).ok_or(LinkDrop::BadNeighbourMessage)?;
        let message = Message::read(frame.bytes(), packet)?;
        if self.network.has(packet.source) {
            return Err(LinkDrop::NeighbourConflict);
        }
        match message {
            Message::Solicitation { target, source: address } => {
                if !self.network.has(target.into()) {
                    return Err(LinkDrop::ForeignFrame);
                }
                if let Some(address) = address {
                    self.hear(source.into(), out, |neighbour| neighbour.claimed(now, address))?;
                }
                let answer = neighbour_discovery::answer(self.local, target, (address.unwrap_or(sender), source));
                self.replace(frame, &answer)
            }
            Message::Advertisement { target, address, is_solicited } => {
                if self.network.has(target.into()) {
                    return Err(LinkDrop::NeighbourConflict);
                }
                self.hear(target.into(), out, |neighbour| match address {
                    address if is_solicited => neighbour.answered(now, address),
                    Some(address) => neighbour.claimed(now, address),
                    None => Heard::Nothing,
                })?;
                Ok(Arrival::Nothing)
            }
        }
    }

    /// Passes a message about a next hop to its record; messages about other hosts are ignored.
    fn hear(
        &mut self,
        next_hop: IpAddr,
        out: &mut Vec<PacketBuffer>,
        report: impl FnOnce(&mut Neighbour) -> Heard,
    ) -> Result<(), LinkDrop> {
        let Some(neighbour) = self.neighbours.get_mut(&next_hop) else { return Ok(()) };
        let heard = report(neighbour);
        self.next_due = self.next_due.min(neighbour.due());
        match heard {
            Heard::Nothing => {}
            Heard::Conflict => return Err(LinkDrop::NeighbourConflict),
            Heard::Resolved(address) => {
                self.waiting -= neighbour.waiting.len();
                for (_, mut frame) in neighbour.waiting.drain(..) {
                    frame.bytes_mut()[..6].copy_from_slice(&address);
                    out.push(frame);
                }
                for &output_index in &neighbour.outputs {
                    if let Some(Some(output)) = self.outputs.get_mut(output_index as usize) {
                        output.header.set_next_hop(&address);
                        output.is_resolved = true;
                        output.face.set_next_hop(Some(address));
                    }
                }
            }
        }
        Ok(())
    }

    /// Replaces the request in the buffer by its answer.
    fn replace(&self, frame: &mut PacketBuffer, answer: &[u8]) -> Result<InternetArrival, LinkDrop> {
        frame.truncate(0);
        let has_room = vlan::append_with_tag(frame, answer, self.vlan());
        has_room.then_some(Arrival::Answer).ok_or(LinkDrop::NoBuffer)
    }

    /// Whether `group` is the solicited-node group of one of the port's addresses.
    fn is_solicited(&self, group: IpAddr) -> bool {
        self.network.addresses.iter().any(|own| match own.address {
            IpAddr::V6(address) => group == IpAddr::V6(solicited_node(address)),
            IpAddr::V4(_) => false,
        })
    }
}

/// Whether an address can be that of a single sender.
fn is_of_one_host(address: IpAddr) -> bool {
    !address.is_unspecified()
        && !address.is_multicast()
        && !address.is_loopback()
        && address != IpAddr::V4(Ipv4Addr::BROADCAST)
}

fn hardware_address(frame: &[u8], at: usize) -> Option<MacAddress> {
    frame.get(at..)?.first_chunk().copied()
}
