//! Packets that are built once and filled in, and a fast scan of received frames.
//!
//! Names are `<prefix>/<8 bytes of sequence number>`. The scan of received frames looks only at
//! what the generator needs; it is not a decoder and accepts frames that a decoder would refuse,
//! but never reads outside the frame.

use namehop_wire::MAX_PACKET_SIZE;
use namehop_wire::Name;
use namehop_wire::tlv::{Writer, put_header, read_var_number, types};

/// SignatureType 200, NullSignature (NDN packet specification, signature.rst): no forwarder looks
/// at signatures of Data, and hashing every packet would make the generator the bottleneck.
const NULL_SIGNATURE: u64 = 200;
/// Bytes that hold the sequence number in a name.
const SEQUENCE_BYTES: usize = 8;
/// Most bytes of LpPacket and PitToken headers in front of a Data.
const LP_OVERHEAD: usize = 4 + 2 + 32 + 4;

fn name_value(prefix: &Name) -> Vec<u8> {
    prefix.clone().append_generic([0u8; SEQUENCE_BYTES]).value().to_vec()
}

/// An Interest of which sequence number and nonce are filled in.
#[derive(Clone, Debug)]
pub(super) struct InterestTemplate {
    packet: Vec<u8>,
    name_bytes: usize,
    sequence_at: usize,
    nonce_at: usize,
}

impl InterestTemplate {
    pub(super) fn new(prefix: &Name, lifetime_ms: u64) -> Self {
        let name = name_value(prefix);
        let mut writer = Writer::new();
        writer.nested(types::INTEREST, |writer| {
            writer.element(types::NAME, &name);
            writer.element(types::NONCE, &[0; 4]);
            writer.nni(types::INTEREST_LIFETIME, lifetime_ms);
        });
        let packet = writer.into_vec();
        let mut lifetime = Writer::new();
        lifetime.nni(types::INTEREST_LIFETIME, lifetime_ms);
        let nonce_at = packet.len() - lifetime.len() - 4;
        // The nonce's TYPE and LENGTH stand between.
        let sequence_at = nonce_at - 2 - SEQUENCE_BYTES;
        Self { packet, name_bytes: name.len(), sequence_at, nonce_at }
    }

    pub(super) fn append(&self, out: &mut Vec<u8>, sequence: u64, nonce: u32) {
        let start = out.len();
        out.extend_from_slice(&self.packet);
        let packet = &mut out[start..];
        packet[self.sequence_at..self.sequence_at + SEQUENCE_BYTES].copy_from_slice(&sequence.to_be_bytes());
        packet[self.nonce_at..self.nonce_at + 4].copy_from_slice(&nonce.to_be_bytes());
    }

    /// The sequence number in a received name VALUE, when it is one of ours.
    pub(super) fn sequence(&self, name: &[u8]) -> Option<u64> {
        own_sequence(&self.packet, self.sequence_at, self.name_bytes, name)
    }
}

/// A Data of which the sequence number is filled in.
#[derive(Clone, Debug)]
pub(super) struct DataTemplate {
    packet: Vec<u8>,
    name_bytes: usize,
    sequence_at: usize,
}

impl DataTemplate {
    /// `None` when the packet would be larger than a forwarder carries.
    pub(super) fn new(prefix: &Name, payload_bytes: usize, freshness_ms: u64) -> Option<Self> {
        if payload_bytes > MAX_PACKET_SIZE {
            return None;
        }
        let name = name_value(prefix);
        let mut tail = Writer::new();
        if freshness_ms > 0 {
            tail.nested(types::META_INFO, |writer| {
                writer.nni(types::FRESHNESS_PERIOD, freshness_ms);
            });
        }
        tail.element(types::CONTENT, &vec![0x5A; payload_bytes]);
        tail.nested(types::SIGNATURE_INFO, |writer| {
            writer.nni(types::SIGNATURE_TYPE, NULL_SIGNATURE);
        });
        tail.element(types::SIGNATURE_VALUE, &[]);
        let mut writer = Writer::new();
        writer.nested(types::DATA, |writer| {
            writer.element(types::NAME, &name).raw(tail.as_slice());
        });
        let packet = writer.into_vec();
        let sequence_at = packet.len() - tail.len() - SEQUENCE_BYTES;
        (packet.len() + LP_OVERHEAD <= MAX_PACKET_SIZE).then_some(Self { packet, name_bytes: name.len(), sequence_at })
    }

    /// Appends the Data, inside an LpPacket that returns the token when there is one.
    pub(super) fn append(&self, out: &mut Vec<u8>, sequence: u64, pit_token: &[u8]) {
        if !pit_token.is_empty() {
            let token_len = 2 + pit_token.len();
            let mut header = [0; 16];
            let fragment_header = put_header(&mut header, types::LP_FRAGMENT, self.packet.len());
            let fragment_bytes = header;
            let length = put_header(&mut header, types::LP_PACKET, token_len + fragment_header + self.packet.len());
            out.extend_from_slice(&header[..length]);
            out.extend_from_slice(&[types::LP_PIT_TOKEN as u8, pit_token.len() as u8]);
            out.extend_from_slice(pit_token);
            out.extend_from_slice(&fragment_bytes[..fragment_header]);
        }
        let start = out.len() + self.sequence_at;
        out.extend_from_slice(&self.packet);
        out[start..start + SEQUENCE_BYTES].copy_from_slice(&sequence.to_be_bytes());
    }

    /// The sequence number in a received name VALUE, when it is one of ours.
    pub(super) fn sequence(&self, name: &[u8]) -> Option<u64> {
        own_sequence(&self.packet, self.sequence_at, self.name_bytes, name)
    }
}

/// Compares the name with that in the template but for the sequence number, which it gives.
fn own_sequence(packet: &[u8], sequence_at: usize, name_bytes: usize, name: &[u8]) -> Option<u64> {
    let (prefix, sequence) = name.split_last_chunk::<SEQUENCE_BYTES>()?;
    let expected = packet.get(sequence_at.checked_sub(prefix.len())?..sequence_at)?;
    (name.len() == name_bytes && prefix == expected).then_some(u64::from_be_bytes(*sequence))
}

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Interest,
    Data,
    Nack,
}

/// What the generator wants to know of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scanned<'a> {
    pub(super) kind: Kind,
    /// VALUE of the name.
    pub(super) name: &'a [u8],
    /// Empty when there is none.
    pub(super) pit_token: &'a [u8],
}

/// TYPE, VALUE and what follows of the element at the start of `bytes`.
fn element(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (typ, type_len) = read_var_number(bytes).ok()?;
    let (length, length_len) = read_var_number(bytes.get(type_len..)?).ok()?;
    let start = type_len + length_len;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    Some((typ, bytes.get(start..end)?, &bytes[end..]))
}

/// Looks at a complete frame. `None` for frames without a packet (IDLE) and for those it cannot read.
pub(super) fn scan(frame: &[u8]) -> Option<Scanned<'_>> {
    let (mut typ, mut value, _) = element(frame)?;
    let mut pit_token: &[u8] = &[];
    let mut nack = false;
    if typ == u64::from(types::LP_PACKET) {
        let mut headers = value;
        let fragment = loop {
            let (typ, value, rest) = element(headers)?;
            headers = rest;
            match u32::try_from(typ).ok()? {
                types::LP_PIT_TOKEN => pit_token = value,
                types::LP_NACK => nack = true,
                types::LP_FRAGMENT => break value,
                _ => {}
            }
        };
        (typ, value, _) = element(fragment)?;
    }
    let kind = match (u32::try_from(typ).ok()?, nack) {
        (types::INTEREST, false) => Kind::Interest,
        (types::INTEREST, true) => Kind::Nack,
        (types::DATA, false) => Kind::Data,
        _ => return None,
    };
    let (typ, name, _) = element(value)?;
    (typ == u64::from(types::NAME)).then_some(Scanned { kind, name, pit_token })
}
