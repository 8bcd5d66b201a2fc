//! ARP (RFC 826) for IPv4 over Ethernet: requests for a hardware address, and replies.

use std::net::Ipv4Addr;

use super::ethernet::MIN_FRAME_BYTES;
use namehop_face::address::{MacAddress, is_group};
use namehop_face::counters::LinkDrop;

/// Ethernet type.
pub(crate) const ETHERTYPE_ARP: u16 = 0x0806;
/// Hardware type Ethernet, protocol type IPv4, and the lengths of their addresses.
const KINDS: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];
const REQUEST: u16 = 1;
const REPLY: u16 = 2;
/// Length of a message, without Ethernet header.
const ARP_BYTES: usize = 28;
/// The broadcast address.
const BROADCAST: MacAddress = [0xFF; 6];

/// An ARP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arp {
    /// A reply, not a request.
    pub(crate) is_reply: bool,
    pub(crate) sender: MacAddress,
    /// Unspecified if the sender probes whether an address is in use (RFC 5227).
    pub(crate) sender_ip: Ipv4Addr,
    pub(crate) target: MacAddress,
    pub(crate) target_ip: Ipv4Addr,
}

impl Arp {
    /// Reads the ARP message that begins at `start` in a frame with the Ethernet type of ARP.
    ///
    /// # Errors
    /// [`LinkDrop::BadNeighbourMessage`].
    pub(crate) fn read(frame: &[u8], start: usize) -> Result<Arp, LinkDrop> {
        let message = frame.get(start..).and_then(<[u8]>::first_chunk::<ARP_BYTES>);
        let message = message.ok_or(LinkDrop::BadNeighbourMessage)?;
        let [k0, k1, k2, k3, k4, k5, high, low, a, b, c, d, e, f, g, h, i, j, u, v, w, x, y, z, l, m, n, o] = *message;
        let operation = u16::from_be_bytes([high, low]);
        let sender = [a, b, c, d, e, f];
        let is_sound = [k0, k1, k2, k3, k4, k5] == KINDS
            && matches!(operation, REQUEST | REPLY)
            && !is_group(&sender)
            && sender != [0; 6];
        is_sound
            .then(|| Arp {
                is_reply: operation == REPLY,
                sender,
                sender_ip: Ipv4Addr::new(g, h, i, j),
                target: [u, v, w, x, y, z],
                target_ip: Ipv4Addr::new(l, m, n, o),
            })
            .ok_or(LinkDrop::BadNeighbourMessage)
    }

    /// Builds the frame with this message.
    pub(crate) fn to_frame(self, destination: &MacAddress) -> [u8; MIN_FRAME_BYTES] {
        let mut frame = [0; MIN_FRAME_BYTES];
        let operation = if self.is_reply { REPLY } else { REQUEST };
        let parts: [&[u8]; 9] = [
            destination,
            &self.sender,
            &ETHERTYPE_ARP.to_be_bytes(),
            &KINDS,
            &operation.to_be_bytes(),
            &self.sender,
            &self.sender_ip.octets(),
            &self.target,
            &self.target_ip.octets(),
        ];
        let mut at = 0;
        for part in parts {
            frame[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        frame
    }

    /// Returns the reply to this request, from the host that has the requested address.
    pub(crate) fn answer(&self, local: MacAddress) -> Arp {
        Arp { is_reply: true, sender: local, sender_ip: self.target_ip, target: self.sender, target_ip: self.sender_ip }
    }
}

/// Builds the frame that requests the hardware address of a neighbour: broadcast, or to the last known address.
pub(crate) fn question(
    local: (MacAddress, Ipv4Addr),
    neighbour: Ipv4Addr,
    asked: Option<MacAddress>,
) -> [u8; MIN_FRAME_BYTES] {
    let question = Arp {
        is_reply: false,
        sender: local.0,
        sender_ip: local.1,
        target: asked.unwrap_or([0; 6]),
        target_ip: neighbour,
    };
    question.to_frame(&asked.unwrap_or(BROADCAST))
}
