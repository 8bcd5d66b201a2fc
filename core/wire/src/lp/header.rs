//! Writing link-layer packets: everything before the fragment, so that it can be prepended to a packet in place.

use super::{NackReason, PitToken};
use crate::tlv::{Nni, element_len, put_header, types};

/// Header fields to write. Fields that are `None`, `false` or empty are omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LpHeader<'a> {
    /// Sequence.
    pub sequence: Option<u64>,
    /// FragIndex.
    pub frag_index: Option<u64>,
    /// FragCount.
    pub frag_count: Option<u64>,
    /// PitToken.
    pub pit_token: PitToken,
    /// Nack.
    pub nack: Option<NackReason>,
    /// IncomingFaceId.
    pub incoming_face_id: Option<u64>,
    /// NextHopFaceId.
    pub next_hop_face_id: Option<u64>,
    /// CachePolicyType inside CachePolicy.
    pub cache_policy: Option<u64>,
    /// CongestionMark.
    pub congestion_mark: Option<u64>,
    /// Acks, in the order to write them.
    pub acks: &'a [u64],
    /// TxSequence.
    pub tx_sequence: Option<u64>,
    /// NonDiscovery.
    pub non_discovery: bool,
    /// PrefixAnnouncement: the complete Data element.
    pub prefix_announcement: Option<&'a [u8]>,
}

impl LpHeader<'_> {
    /// Returns true if no field is set. Then the packet is sent bare, without an LpPacket around it.
    pub fn is_empty(&self) -> bool {
        *self == LpHeader::default()
    }

    /// Length of all fields in bytes.
    pub fn fields_len(&self) -> usize {
        let mut total = 0;
        self.for_each_field(|typ, value| total += element_len(typ, value.len()));
        total
    }

    /// Calls `emit` with TYPE and VALUE of each field, in increasing order of TYPE.
    fn for_each_field(&self, mut emit: impl FnMut(u32, &[u8])) {
        // The pattern names all fields, so that the compiler reports a new field that is not written here.
        let LpHeader {
            sequence,
            frag_index,
            frag_count,
            pit_token,
            nack,
            incoming_face_id,
            next_hop_face_id,
            cache_policy,
            congestion_mark,
            acks,
            tx_sequence,
            non_discovery,
            prefix_announcement,
        } = *self;
        if let Some(sequence) = sequence {
            emit(types::LP_SEQUENCE, &sequence.to_be_bytes());
        }
        if let Some(index) = frag_index {
            emit(types::LP_FRAG_INDEX, Nni::new(index).as_slice());
        }
        if let Some(count) = frag_count {
            emit(types::LP_FRAG_COUNT, Nni::new(count).as_slice());
        }
        if !pit_token.is_empty() {
            emit(types::LP_PIT_TOKEN, pit_token.as_slice());
        }
        match nack {
            Some(NackReason::NONE) => emit(types::LP_NACK, &[]),
            Some(reason) => emit_nested(&mut emit, types::LP_NACK, types::LP_NACK_REASON, reason.code()),
            None => {}
        }
        if let Some(face) = incoming_face_id {
            emit(types::LP_INCOMING_FACE_ID, Nni::new(face).as_slice());
        }
        if let Some(face) = next_hop_face_id {
            emit(types::LP_NEXT_HOP_FACE_ID, Nni::new(face).as_slice());
        }
        if let Some(policy) = cache_policy {
            emit_nested(&mut emit, types::LP_CACHE_POLICY, types::LP_CACHE_POLICY_TYPE, policy);
        }
        if let Some(mark) = congestion_mark {
            emit(types::LP_CONGESTION_MARK, Nni::new(mark).as_slice());
        }
        for ack in acks {
            emit(types::LP_ACK, &ack.to_be_bytes());
        }
        if let Some(sequence) = tx_sequence {
            emit(types::LP_TX_SEQUENCE, &sequence.to_be_bytes());
        }
        if non_discovery {
            emit(types::LP_NON_DISCOVERY, &[]);
        }
        if let Some(announcement) = prefix_announcement {
            emit(types::LP_PREFIX_ANNOUNCEMENT, announcement);
        }
    }
}

/// Emits a field with one element in its VALUE, which holds a number.
fn emit_nested(emit: &mut impl FnMut(u32, &[u8]), outer: u32, inner: u32, number: u64) {
    let number = Nni::new(number);
    let number = number.as_slice();
    // TYPE 3, LENGTH 1 and at most 8 bytes.
    let mut element = [0; 12];
    let header_len = put_header(&mut element, inner, number.len());
    let length = header_len + number.len();
    element[header_len..length].copy_from_slice(number);
    emit(outer, &element[..length]);
}

/// Length of the header of a fragment of `fragment_len` bytes: TYPE and LENGTH of the LpPacket, the fields, TYPE and
/// LENGTH of the Fragment.
pub fn header_len(fields: &LpHeader<'_>, fragment_len: usize) -> usize {
    let value_len = fields.fields_len() + element_len(types::LP_FRAGMENT, fragment_len);
    element_len(types::LP_PACKET, value_len) - fragment_len
}

/// Writes the header of a fragment of `fragment_len` bytes at the start of `out`, and returns its length, which is
/// [`header_len`]. The fragment follows directly.
///
/// # Panics
/// When `out` is shorter than [`header_len`].
pub fn encode_header(fields: &LpHeader<'_>, fragment_len: usize, out: &mut [u8]) -> usize {
    let value_len = fields.fields_len() + element_len(types::LP_FRAGMENT, fragment_len);
    let written = put_fields(fields, value_len, out);
    written + put_header(&mut out[written..], types::LP_FRAGMENT, fragment_len)
}

/// Length of an IDLE packet in bytes: one with fields and no fragment.
pub fn idle_len(fields: &LpHeader<'_>) -> usize {
    element_len(types::LP_PACKET, fields.fields_len())
}

/// Writes an IDLE packet at the start of `out` and returns its length, which is [`idle_len`].
///
/// # Panics
/// When `out` is shorter than [`idle_len`].
pub fn encode_idle(fields: &LpHeader<'_>, out: &mut [u8]) -> usize {
    put_fields(fields, fields.fields_len(), out)
}

/// Returns a complete frame in a new vector: bare when there are no fields, IDLE when there is no fragment.
pub fn encode_packet(fields: &LpHeader<'_>, fragment: Option<&[u8]>) -> Vec<u8> {
    let Some(fragment) = fragment else {
        let mut frame = vec![0; idle_len(fields)];
        encode_idle(fields, &mut frame);
        return frame;
    };
    if fields.is_empty() {
        return fragment.to_vec();
    }
    let header_len = header_len(fields, fragment.len());
    let mut frame = vec![0; header_len + fragment.len()];
    encode_header(fields, fragment.len(), &mut frame);
    frame[header_len..].copy_from_slice(fragment);
    frame
}

fn put_fields(fields: &LpHeader<'_>, value_len: usize, out: &mut [u8]) -> usize {
    let mut written = put_header(out, types::LP_PACKET, value_len);
    fields.for_each_field(|typ, value| {
        written += put_header(&mut out[written..], typ, value.len());
        out[written..written + value.len()].copy_from_slice(value);
        written += value.len();
    });
    written
}
