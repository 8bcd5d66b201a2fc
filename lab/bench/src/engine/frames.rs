//! Templates of packets: Ethernet frames with NDNLPv2 and an Interest or Data, of which only name, Nonce and PIT token
//! change. On the stripped path frames have no NDNLPv2 header.

use namehop_face::address::MacAddress;
use namehop_orders::Order;
use namehop_packet::PacketBuffer;
use namehop_port::encapsulation::{ETHERTYPE_NDN, HEADER_BYTES};
use namehop_wire::lp::LpPacket;
use namehop_wire::tlv::{Writer, types};

use crate::schedule::EngineParameters;
use crate::workload::Workload;

/// Length of the PIT tokens of both sides, in bytes.
pub(super) const TOKEN_BYTES: usize = 8;
const NONCE_BYTES: usize = 4;
const FRESHNESS_MS: u64 = 10_000;
/// Size of HMAC and digest signatures, in bytes.
const SIGNATURE_BYTES: usize = 32;

/// A frame to be copied and filled in. Offsets are from its start.
pub(super) struct Template {
    bytes: Vec<u8>,
    /// Offset of the token; `None` without NDNLPv2.
    token_at: Option<usize>,
    name_at: usize,
    nonce_at: usize,
}

/// Header between Ethernet header and packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum LinkHeaders {
    /// NDNLPv2 with a PIT token.
    Token,
    /// Nothing.
    Absent,
}

impl LinkHeaders {
    /// The headers expected by an engine if this order handles its bursts.
    pub(super) fn of(order: &Order) -> Self {
        if order.is_stripped() { LinkHeaders::Absent } else { LinkHeaders::Token }
    }
}

/// PIT token of a packet, as a number.
pub(super) type Token = u64;

impl Template {
    /// Creates a template of Interests.
    pub(super) fn interest(name_bytes: usize, can_be_prefix: bool, headers: LinkHeaders) -> Self {
        let mut packet = Writer::new();
        packet.nested(types::INTEREST, |packet| {
            packet.element(types::NAME, &vec![0; name_bytes]);
            if can_be_prefix {
                packet.element(types::CAN_BE_PREFIX, &[]);
            }
            packet.element(types::NONCE, &[0; NONCE_BYTES]);
        });
        // The Nonce is last, after its TLV-TYPE and TLV-LENGTH; before these is the name, or CanBePrefix, which has no
        // TLV-VALUE.
        let packet = packet.into_vec();
        let nonce_at = packet.len() - NONCE_BYTES;
        let name_at = nonce_at - if can_be_prefix { 4 } else { 2 } - name_bytes;
        Template::framed(&packet, (name_at, nonce_at), headers)
    }

    /// Creates a template of Data with `payload_bytes` bytes of content.
    pub(super) fn data(workload: &Workload, payload_bytes: usize, headers: LinkHeaders) -> Self {
        let packet = data_packet(workload.name_bytes(), payload_bytes);
        let mut rest = Writer::new();
        data_behind_name(&mut rest, payload_bytes);
        let name_at = packet.len() - rest.len() - workload.name_bytes();
        Template::framed(&packet, (name_at, 0), headers)
    }

    fn framed(packet: &[u8], (name_at, nonce_at): (usize, usize), headers: LinkHeaders) -> Self {
        let link = match headers {
            LinkHeaders::Token => {
                let mut link = Writer::new();
                link.nested(types::LP_PACKET, |link| {
                    link.element(types::LP_PIT_TOKEN, &[0; TOKEN_BYTES]);
                    link.element(types::LP_FRAGMENT, packet);
                });
                link.into_vec()
            }
            LinkHeaders::Absent => packet.to_vec(),
        };
        let packet_at = HEADER_BYTES + link.len() - packet.len();
        // TLV-TYPE and TLV-LENGTH of the fragment are between token and packet.
        let mut fragment_header = Writer::new();
        fragment_header.element(types::LP_FRAGMENT, packet);
        let token_at = match headers {
            LinkHeaders::Token => Some(packet_at - (fragment_header.len() - packet.len()) - TOKEN_BYTES),
            LinkHeaders::Absent => None,
        };
        let mut bytes = Vec::with_capacity(HEADER_BYTES + link.len());
        // Space for two addresses.
        bytes.resize(HEADER_BYTES - size_of_val(&ETHERTYPE_NDN), 0);
        bytes.extend_from_slice(&ETHERTYPE_NDN.to_be_bytes());
        bytes.extend_from_slice(&link);
        Template { bytes, token_at, name_at: packet_at + name_at, nonce_at: packet_at + nonce_at }
    }

    /// Size of each frame in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Writes the next frame into an empty mbuf; `None` if it is too small. `write_name` writes the TLV-VALUE of the
    /// name to the start of its argument.
    #[inline]
    pub(super) fn fill(
        &mut self,
        (to, from): (MacAddress, MacAddress),
        write_name: impl FnOnce(&mut [u8]),
        token: Token,
        nonce: Option<u32>,
        mut frame: PacketBuffer,
    ) -> Option<PacketBuffer> {
        self.bytes[..to.len()].copy_from_slice(&to);
        self.bytes[to.len()..][..from.len()].copy_from_slice(&from);
        write_name(&mut self.bytes[self.name_at..]);
        if let Some(token_at) = self.token_at {
            self.bytes[token_at..][..TOKEN_BYTES].copy_from_slice(&token.to_be_bytes());
        }
        if let Some(nonce) = nonce {
            self.bytes[self.nonce_at..][..NONCE_BYTES].copy_from_slice(&nonce.to_be_bytes());
        }
        frame.append(self.bytes.len())?.copy_from_slice(&self.bytes);
        Some(frame)
    }
}

fn data_behind_name(data: &mut Writer, payload_bytes: usize) {
    data.nested(types::META_INFO, |meta| {
        meta.nni(types::FRESHNESS_PERIOD, FRESHNESS_MS);
    });
    data.element(types::CONTENT, &vec![0x2A; payload_bytes]);
    data.nested(types::SIGNATURE_INFO, |info| {
        info.nni(types::SIGNATURE_TYPE, 0);
    });
    data.element(types::SIGNATURE_VALUE, &[0; SIGNATURE_BYTES]);
}

fn data_packet(name_bytes: usize, payload_bytes: usize) -> Vec<u8> {
    let mut packet = Writer::new();
    packet.nested(types::DATA, |data| {
        data.element(types::NAME, &vec![0; name_bytes]);
        data_behind_name(data, payload_bytes);
    });
    packet.into_vec()
}

/// Size of the Data packets in bytes.
pub(super) fn data_bytes(parameters: &EngineParameters) -> usize {
    let workload = parameters.workload;
    data_packet(workload.components * (2 + workload.component_bytes), parameters.payload_bytes).len()
}

/// Returns the last bytes of a frame: the Nonce of an Interest, also inside a Nack; 0 for Data, because its signature
/// is zeros.
#[inline]
pub(super) fn nonce_of(frame: &PacketBuffer) -> u32 {
    frame.bytes().last_chunk().map_or(0, |nonce| u32::from_be_bytes(*nonce))
}

/// Returns the PIT token of a frame that the router sent.
#[inline]
pub(super) fn token_of(frame: &PacketBuffer) -> Option<Token> {
    let link = LpPacket::decode(frame.bytes().get(HEADER_BYTES..)?).ok()?;
    let token = link.pit_token;
    (token.len() == TOKEN_BYTES).then(|| u64::from_be_bytes(token.first_bytes()))
}
