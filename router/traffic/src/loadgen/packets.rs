//! Packet templates, and a fast scan of received frames.
//!
//! Names are `<prefix>/<8 bytes of sequence number>`. The scan parses only what the generator needs. It is not a
//! decoder and accepts frames that a decoder would reject, but it never reads outside the frame.

use namehop_wire::builder::InterestBuilder;
use namehop_wire::lp::NackReason;
use namehop_wire::tlv::{Writer, decode_nni, put_header, read_var_number, types};
use namehop_wire::{ComponentRef, Data, Interest, MAX_PACKET_SIZE, Name};

use super::LoadError;
use super::producer::DataShape;
use super::requests::Pattern;

/// SignatureType 200, NullSignature (NDN packet specification, signature.rst). Forwarders do not verify signatures of
/// Data, and hashing every packet would make the generator the bottleneck.
const NULL_SIGNATURE: u64 = 200;
/// Bytes of the sequence number in a name.
const SEQUENCE_BYTES: usize = 8;
/// Bytes of an implicit digest in a name.
const DIGEST_BYTES: usize = 32;
/// Maximum bytes of LpPacket and PitToken headers before a Data.
const LP_OVERHEAD: usize = 4 + 2 + 32 + 4;

/// Returns the name of the Interest with this number: the prefix and a component of 8 bytes, most significant first.
pub fn numbered_name(prefix: &Name, sequence: u64) -> Name {
    prefix.clone().append_generic(sequence.to_be_bytes())
}

/// An encoded Interest; sequence number, nonce and, if requested, implicit digest are patched in.
#[derive(Clone, Debug)]
pub(super) struct InterestTemplate {
    packet: Vec<u8>,
    name_at: usize,
    sequence_at: usize,
    nonce_at: usize,
    /// Prefix and template of the Data with the digest to use in names.
    digest: Option<(Name, DataTemplate)>,
    /// Whether names of Data and Nacks may have components after the sequence number.
    may_be_longer: bool,
}

impl InterestTemplate {
    /// # Errors
    /// Fails if the Interest, or the Data with the requested digest, does not fit into a packet.
    pub(super) fn new(pattern: &Pattern) -> Result<Self, LoadError> {
        let too_long =
            || LoadError::Configuration(format!("Interests for {} are too long for a packet", pattern.prefix));
        let mut name = numbered_name(&pattern.prefix, 0);
        if pattern.digest_of.is_some() {
            name = name.append(ComponentRef::implicit_digest(&[0; DIGEST_BYTES]));
        }
        let build = |nonce: u32| {
            let mut builder = InterestBuilder::new(&name)
                .can_be_prefix(pattern.can_be_prefix)
                .must_be_fresh(pattern.must_be_fresh)
                .nonce(nonce)
                .lifetime_ms(pattern.lifetime.as_millis() as u64);
            for delegation in &pattern.forwarding_hint {
                builder = builder.forwarding_hint(delegation);
            }
            if let Some(hop_limit) = pattern.hop_limit {
                builder = builder.hop_limit(hop_limit);
            }
            builder.build().map_err(|_| too_long())
        };
        let (packet, other) = (build(0)?, build(u32::MAX)?);
        // Packets that differ only in the nonce show its offset.
        let nonce_at = packet.iter().zip(&other).position(|(one, other)| one != other).ok_or_else(too_long)?;
        let value = Interest::decode(&packet).map_err(|_| too_long())?.name.value();
        let name_at = value.as_ptr() as usize - packet.as_ptr() as usize;
        let digest = match &pattern.digest_of {
            Some(shape) => {
                Some((pattern.prefix.clone(), DataTemplate::new(&numbered_name(&pattern.prefix, 0), shape)?))
            }
            None => None,
        };
        let sequence_at = name_at + numbered_name(&pattern.prefix, 0).value().len() - SEQUENCE_BYTES;
        let may_be_longer = pattern.can_be_prefix || digest.is_some();
        Ok(Self { packet, name_at, sequence_at, nonce_at, digest, may_be_longer })
    }

    pub(super) fn append(&self, out: &mut Vec<u8>, sequence: u64, nonce: u32) {
        let start = out.len();
        out.extend_from_slice(&self.packet);
        let packet = &mut out[start..];
        packet[self.sequence_at..self.sequence_at + SEQUENCE_BYTES].copy_from_slice(&sequence.to_be_bytes());
        packet[self.nonce_at..self.nonce_at + 4].copy_from_slice(&nonce.to_be_bytes());
        if let Some((prefix, template)) = &self.digest {
            let mut data = Vec::new();
            template.append(&mut data, numbered_name(prefix, sequence).value(), &[]);
            if let Ok(data) = Data::decode(&data) {
                // TYPE and LENGTH of the component are in between.
                let digest_at = self.sequence_at + SEQUENCE_BYTES + 2;
                packet[digest_at..digest_at + DIGEST_BYTES].copy_from_slice(&data.implicit_digest());
            }
        }
    }

    /// Returns the sequence number in a received name VALUE if it matches this template.
    pub(super) fn sequence(&self, name: &[u8]) -> Option<u64> {
        let rest = name.strip_prefix(&self.packet[self.name_at..self.sequence_at])?;
        let (sequence, rest) = rest.split_first_chunk::<SEQUENCE_BYTES>()?;
        (rest.is_empty() || self.may_be_longer).then_some(u64::from_be_bytes(*sequence))
    }
}

/// An encoded Data; the name is patched in.
#[derive(Clone, Debug)]
pub(super) struct DataTemplate {
    /// VALUE of the components after the Interest's name.
    suffix: Vec<u8>,
    /// The elements after the name.
    tail: Vec<u8>,
}

impl DataTemplate {
    /// Creates a template. `name` is an example of the names to answer, for checking the size.
    ///
    /// # Errors
    /// Fails if the packet would exceed the maximum packet size.
    pub(super) fn new(name: &Name, shape: &DataShape) -> Result<Self, LoadError> {
        let too_long =
            || LoadError::Configuration(format!("a payload of {} bytes does not fit in a packet", shape.payload_bytes));
        if shape.payload_bytes > MAX_PACKET_SIZE {
            return Err(too_long());
        }
        let mut tail = Writer::new();
        if shape.freshness_ms > 0 {
            tail.nested(types::META_INFO, |writer| {
                writer.nni(types::FRESHNESS_PERIOD, shape.freshness_ms);
            });
        }
        tail.element(types::CONTENT, &vec![0x5A; shape.payload_bytes]);
        tail.nested(types::SIGNATURE_INFO, |writer| {
            writer.nni(types::SIGNATURE_TYPE, NULL_SIGNATURE);
        });
        tail.element(types::SIGNATURE_VALUE, &[]);
        let template = Self { suffix: shape.suffix.value().to_vec(), tail: tail.into_vec() };
        if template.append(&mut Vec::new(), name.value(), &[]) { Ok(template) } else { Err(too_long()) }
    }

    /// Appends the Data that answers `name`, inside an LpPacket with the PIT token if there is one. Returns false if it
    /// would exceed the maximum packet size.
    pub(super) fn append(&self, out: &mut Vec<u8>, name: &[u8], pit_token: &[u8]) -> bool {
        let name_bytes = name.len() + self.suffix.len();
        let (mut name_header, mut data_header) = ([0; 16], [0; 16]);
        let name_header_bytes = put_header(&mut name_header, types::NAME, name_bytes);
        let value_bytes = name_header_bytes + name_bytes + self.tail.len();
        let data_header_bytes = put_header(&mut data_header, types::DATA, value_bytes);
        let packet_bytes = data_header_bytes + value_bytes;
        if packet_bytes + LP_OVERHEAD > MAX_PACKET_SIZE {
            return false;
        }
        append_token(out, pit_token, &[], packet_bytes);
        out.extend_from_slice(&data_header[..data_header_bytes]);
        out.extend_from_slice(&name_header[..name_header_bytes]);
        out.extend_from_slice(name);
        out.extend_from_slice(&self.suffix);
        out.extend_from_slice(&self.tail);
        true
    }
}

/// Appends the LpPacket header of a packet of this many bytes: the PIT token, if there is one, and `fields`. Appends
/// nothing if both are empty.
fn append_token(out: &mut Vec<u8>, pit_token: &[u8], fields: &[u8], packet_bytes: usize) {
    if pit_token.is_empty() && fields.is_empty() {
        return;
    }
    let token_bytes = if pit_token.is_empty() { 0 } else { 2 + pit_token.len() };
    let (mut header, mut fragment) = ([0; 16], [0; 16]);
    let fragment_bytes = put_header(&mut fragment, types::LP_FRAGMENT, packet_bytes);
    let value_bytes = token_bytes + fields.len() + fragment_bytes + packet_bytes;
    let length = put_header(&mut header, types::LP_PACKET, value_bytes);
    out.extend_from_slice(&header[..length]);
    if !pit_token.is_empty() {
        out.extend_from_slice(&[types::LP_PIT_TOKEN as u8, pit_token.len() as u8]);
        out.extend_from_slice(pit_token);
    }
    out.extend_from_slice(fields);
    out.extend_from_slice(&fragment[..fragment_bytes]);
}

/// Encodes the Nack field of an LpPacket.
pub(super) fn nack_field(reason: NackReason) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.nested(types::LP_NACK, |writer| {
        if reason != NackReason::NONE {
            writer.nni(types::LP_NACK_REASON, reason.0);
        }
    });
    writer.into_vec()
}

/// Appends the Nack for `interest`; `field` is from [`nack_field`].
pub(super) fn append_nack(out: &mut Vec<u8>, field: &[u8], interest: &[u8], pit_token: &[u8]) {
    append_token(out, pit_token, field, interest.len());
    out.extend_from_slice(interest);
}

/// Returns the name VALUE without an implicit digest at its end: the name of the requested Data.
pub(super) fn without_digest(name: &[u8]) -> &[u8] {
    const COMPONENT: [u8; 2] = [types::IMPLICIT_SHA256_DIGEST_COMPONENT as u8, DIGEST_BYTES as u8];
    match name.len().checked_sub(2 + DIGEST_BYTES) {
        // The last 34 bytes may be part of a longer component; only parsing all components can tell.
        Some(at) if name[at..].starts_with(&COMPONENT) && is_component_start(name, at) => &name[..at],
        _ => name,
    }
}

fn is_component_start(name: &[u8], at: usize) -> bool {
    let mut rest = name;
    while name.len() - rest.len() < at {
        match element(rest) {
            Some((_, _, after)) => rest = after,
            None => return false,
        }
    }
    name.len() - rest.len() == at
}

/// Type of the packet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Interest,
    Data,
    Nack,
}

/// Fields of a frame that the generator needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scanned<'a> {
    pub(super) kind: Kind,
    /// VALUE of the name.
    pub(super) name: &'a [u8],
    /// PIT token; empty if there is none.
    pub(super) pit_token: &'a [u8],
    /// Reason of a Nack.
    pub(super) nack_reason: NackReason,
    /// Whether the frame has a CongestionMark.
    pub(super) is_marked: bool,
    /// The Interest or Data element.
    pub(super) packet: &'a [u8],
}

/// Parses the element at the start of `bytes`. Returns its TYPE, its VALUE, and the remaining bytes.
fn element(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (typ, type_len) = read_var_number(bytes).ok()?;
    let (length, length_len) = read_var_number(bytes.get(type_len..)?).ok()?;
    let start = type_len + length_len;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    Some((typ, bytes.get(start..end)?, &bytes[end..]))
}

/// Scans a complete frame. Returns `None` for frames without a packet (IDLE) and for unreadable ones.
pub(super) fn scan(frame: &[u8]) -> Option<Scanned<'_>> {
    let (mut typ, mut value, _) = element(frame)?;
    let mut pit_token: &[u8] = &[];
    let mut nack = None;
    let (mut is_marked, mut packet) = (false, frame);
    if typ == u64::from(types::LP_PACKET) {
        let mut headers = value;
        let fragment = loop {
            let (typ, value, rest) = element(headers)?;
            headers = rest;
            match u32::try_from(typ).ok()? {
                types::LP_PIT_TOKEN => pit_token = value,
                types::LP_NACK => nack = Some(nack_reason(value)),
                types::LP_CONGESTION_MARK => is_marked = decode_nni(value).is_ok_and(|mark| mark > 0),
                types::LP_FRAGMENT => break value,
                _ => {}
            }
        };
        packet = fragment;
        (typ, value, _) = element(fragment)?;
    }
    let kind = match (u32::try_from(typ).ok()?, nack.is_some()) {
        (types::INTEREST, false) => Kind::Interest,
        (types::INTEREST, true) => Kind::Nack,
        (types::DATA, false) => Kind::Data,
        _ => return None,
    };
    let (typ, name, _) = element(value)?;
    let nack_reason = nack.unwrap_or(NackReason::NONE);
    (typ == u64::from(types::NAME)).then_some(Scanned { kind, name, pit_token, nack_reason, is_marked, packet })
}

/// Returns the reason in a Nack field.
fn nack_reason(value: &[u8]) -> NackReason {
    match element(value) {
        Some((typ, reason, _)) if typ == u64::from(types::LP_NACK_REASON) => {
            decode_nni(reason).map_or(NackReason::NONE, NackReason)
        }
        _ => NackReason::NONE,
    }
}
