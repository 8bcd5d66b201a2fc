//! IPv6 neighbour discovery (RFC 4861): solicitations and advertisements. Routes are configured, so router
//! advertisements and redirects are ignored.

use std::net::{IpAddr, Ipv6Addr};

use namehop_packet::Checksum;

use super::ethernet::HEADER_BYTES as ETHERNET_BYTES;
use super::ip::{Datagram, ETHERTYPE_IPV6, IPV6_BYTES, PROTOCOL_ICMPV6, pseudo_header, v6_header};
use namehop_face::address::{MacAddress, is_group};
use namehop_face::counters::LinkDrop;

/// Types of ICMPv6.
pub(crate) const SOLICITATION: u8 = 135;
pub(crate) const ADVERTISEMENT: u8 = 136;
/// Length of a message without options.
const MESSAGE_BYTES: usize = 24;
/// Length of the option with a hardware address.
const OPTION_BYTES: usize = 8;
/// Length of sent frames, which always have that option.
pub(crate) const FRAME_BYTES: usize = ETHERNET_BYTES + IPV6_BYTES + MESSAGE_BYTES + OPTION_BYTES;
/// Options: hardware address of the sender of a solicitation, and of the target of an advertisement.
const SOURCE_ADDRESS: u8 = 1;
const TARGET_ADDRESS: u8 = 2;
/// Only neighbours can send packets with this hop limit, because each router decrements it.
const HOP_LIMIT: u8 = 255;
/// Flags of an advertisement: it answers a solicitation, and overrides the known address.
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
/// The group of all nodes on the link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);

/// A neighbour discovery message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// Asks for the hardware address of the target.
    Solicitation {
        target: Ipv6Addr,
        /// `None` if the sender checks whether an address is in use.
        source: Option<MacAddress>,
    },
    /// Announces the hardware address of the target.
    Advertisement {
        target: Ipv6Addr,
        /// May be `None` in an answer to a unicast solicitation.
        address: Option<MacAddress>,
        is_solicited: bool,
    },
}

impl Message {
    /// Reads a message of one of the two types from the packet in a frame. The checksum must be checked already.
    ///
    /// # Errors
    /// [`LinkDrop::BadNeighbourMessage`] if it fails the checks of RFC 4861 sections 7.1.1 and 7.1.2.
    pub(crate) fn read(frame: &[u8], packet: &Datagram) -> Result<Message, LinkDrop> {
        Message::parse(frame, packet).ok_or(LinkDrop::BadNeighbourMessage)
    }

    fn parse(frame: &[u8], packet: &Datagram) -> Option<Message> {
        let bytes = frame.get(packet.payload.clone())?;
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (packet.source, packet.destination) else { return None };
        let (message, options) = bytes.split_first_chunk::<MESSAGE_BYTES>()?;
        let mut target = [0; 16];
        target.copy_from_slice(&message[8..]);
        let target = Ipv6Addr::from(target);
        if packet.hop_limit != HOP_LIMIT || message[1] != 0 || target.is_multicast() {
            return None;
        }
        match message[0] {
            SOLICITATION => {
                let address = hardware_address(options, SOURCE_ADDRESS)?;
                let is_sound = !source.is_unspecified() || (address.is_none() && destination == solicited_node(target));
                is_sound.then_some(Message::Solicitation { target, source: address })
            }
            ADVERTISEMENT => {
                let address = hardware_address(options, TARGET_ADDRESS)?;
                let is_solicited = message[4] & SOLICITED != 0;
                let is_sound = !(destination.is_multicast() && is_solicited);
                is_sound.then_some(Message::Advertisement { target, address, is_solicited })
            }
            _ => None,
        }
    }
}

/// Searches the options for a hardware address. Returns `None` if an option has length 0 or is truncated.
fn hardware_address(mut options: &[u8], wanted: u8) -> Option<Option<MacAddress>> {
    let mut found = None;
    while !options.is_empty() {
        let [kind, units, ..] = *options else { return None };
        let bytes = usize::from(units) * OPTION_BYTES;
        if bytes == 0 {
            return None;
        }
        let (option, rest) = options.split_at_checked(bytes)?;
        if kind == wanted {
            let address: MacAddress = *option[2..].first_chunk()?;
            if units != 1 || is_group(&address) || address == [0; 6] {
                return None;
            }
            found = Some(address);
        }
        options = rest;
    }
    Some(found)
}

/// Returns the solicited-node multicast group of this address (RFC 4291 section 2.7.1).
pub(crate) fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 1, 0xFF00 | u16::from(a), u16::from_be_bytes([b, c]))
}

/// Returns the Ethernet group of an IPv6 multicast group (RFC 2464 section 7).
pub fn ethernet_group(group: Ipv6Addr) -> MacAddress {
    let [.., a, b, c, d] = group.octets();
    [0x33, 0x33, a, b, c, d]
}

/// Returns the Ethernet group that receives solicitations for an address.
pub fn solicitation_group(address: Ipv6Addr) -> MacAddress {
    ethernet_group(solicited_node(address))
}

/// Builds the frame that requests the hardware address of a neighbour: multicast, or to the last known address.
pub(crate) fn question(
    local: (MacAddress, Ipv6Addr),
    neighbour: Ipv6Addr,
    asked: Option<MacAddress>,
) -> [u8; FRAME_BYTES] {
    let (destination, to) = match asked {
        Some(address) => (neighbour, address),
        None => (solicited_node(neighbour), solicitation_group(neighbour)),
    };
    frame((to, destination), local, [SOLICITATION, 0], neighbour, SOURCE_ADDRESS)
}

/// Builds the advertisement of `target` at this hardware address. `asking` is the sender of the solicitation: hardware
/// address and IPv6 address. If the latter is unspecified, because the sender checks whether the address is in use, the
/// answer goes to all nodes.
pub(crate) fn answer(local: MacAddress, target: Ipv6Addr, asking: (MacAddress, Ipv6Addr)) -> [u8; FRAME_BYTES] {
    let (to, flags) = match asking {
        (_, source) if source.is_unspecified() => ((ethernet_group(ALL_NODES), ALL_NODES), OVERRIDE),
        asking => (asking, SOLICITED | OVERRIDE),
    };
    frame(to, (local, target), [ADVERTISEMENT, flags], target, TARGET_ADDRESS)
}

fn frame(
    to: (MacAddress, Ipv6Addr),
    from: (MacAddress, Ipv6Addr),
    [kind, flags]: [u8; 2],
    target: Ipv6Addr,
    option: u8,
) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..ETHERNET_BYTES].copy_from_slice(&ETHERTYPE_IPV6.to_be_bytes());
    let (ip, message) = frame[ETHERNET_BYTES..].split_at_mut(IPV6_BYTES);
    ip.copy_from_slice(&v6_header(from.1, to.1, PROTOCOL_ICMPV6));
    ip[4..6].copy_from_slice(&(message.len() as u16).to_be_bytes());
    ip[7] = HOP_LIMIT;
    (message[0], message[4]) = (kind, flags);
    message[8..MESSAGE_BYTES].copy_from_slice(&target.octets());
    (message[MESSAGE_BYTES], message[MESSAGE_BYTES + 1]) = (option, 1);
    message[MESSAGE_BYTES + 2..].copy_from_slice(&from.0);
    let checksum = icmp_sum(from.1.into(), to.1.into(), message).finish();
    message[2..4].copy_from_slice(&checksum);
    frame
}

/// Returns the sum for the checksum of an ICMPv6 message.
pub(crate) fn icmp_sum(source: IpAddr, destination: IpAddr, message: &[u8]) -> Checksum {
    // At most the payload length of IPv6, which has 16 bits.
    pseudo_header(source, destination, PROTOCOL_ICMPV6).number(message.len() as u16).bytes(message)
}
