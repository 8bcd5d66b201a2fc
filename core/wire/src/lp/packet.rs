//! Decoding link-layer packets. Assumes nothing about the frame.

use super::{CACHE_POLICY_NO_CACHE, KnowsPitTokens, NackReason, PathMtuProbe, PitToken};
use crate::tlv::{self, Element, Reader, decode_nni, types};
use crate::{DecodeError, MAX_PACKET_SIZE};

/// A valid link-layer packet. Fields that are absent are `None`, `false` or empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LpPacket<'a> {
    /// Sequence: number of the fragment on this link.
    pub sequence: Option<u64>,
    /// FragIndex: position of the fragment in its network-layer packet; absent means 0.
    pub frag_index: Option<u64>,
    /// FragCount: number of fragments of the network-layer packet; absent means 1.
    pub frag_count: Option<u64>,
    /// PitToken.
    pub pit_token: PitToken,
    /// Nack: the fragment is the rejected Interest.
    pub nack: Option<NackReason>,
    /// IncomingFaceId (local fields).
    pub incoming_face_id: Option<u64>,
    /// NextHopFaceId (local fields).
    pub next_hop_face_id: Option<u64>,
    /// CachePolicyType inside CachePolicy: [`CACHE_POLICY_NO_CACHE`].
    pub cache_policy: Option<u64>,
    /// CongestionMark; 0 is not congested.
    pub congestion_mark: Option<u64>,
    /// TxSequence: number of the transmission (link reliability).
    pub tx_sequence: Option<u64>,
    /// NonDiscovery (self-learning).
    pub non_discovery: bool,
    /// PrefixAnnouncement: the complete Data element (self-learning).
    pub prefix_announcement: Option<&'a [u8]>,
    /// KnowsPitTokens, a field specific to Namehop.
    pub knows_pit_tokens: Option<KnowsPitTokens>,
    /// PathMtuProbe, a field specific to Namehop. `None` if its VALUE has no meaning.
    pub path_mtu_probe: Option<PathMtuProbe>,
    /// Fragment: a network-layer packet or a part of one; absent in an IDLE packet. It ends at the end of the frame,
    /// so its offset is the frame's length minus its own.
    pub fragment: Option<&'a [u8]>,
    /// The Ack elements, which are adjacent because fields are ordered by type.
    acks: &'a [u8],
}

/// Bytes of a complete Ack element: TYPE 3, LENGTH 1, VALUE 8.
const ACK_LEN: usize = 12;

impl<'a> LpPacket<'a> {
    /// Decodes a link-layer packet that fills `frame`. A bare Interest or Data decodes to a packet with only a
    /// fragment.
    ///
    /// # Errors
    /// When the frame breaks a rule of NDNLPv2 or of TLV. The fragment itself is not examined.
    pub fn decode(frame: &'a [u8]) -> Result<Self, DecodeError> {
        if frame.len() > MAX_PACKET_SIZE {
            return Err(DecodeError::TooLong);
        }
        let outer = tlv::read_single_element(frame)?;
        let mut packet = LpPacket::default();
        match outer.typ {
            types::INTEREST | types::DATA => packet.fragment = Some(frame),
            types::LP_PACKET => packet.read_fields(outer.value)?,
            _ => return Err(DecodeError::UnexpectedType),
        }
        Ok(packet)
    }

    /// Iterates over the numbers of the Acks in order (link reliability).
    pub fn acks(&self) -> Acks<'a> {
        Acks { elements: self.acks }
    }

    fn read_fields(&mut self, value: &'a [u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(value);
        let mut last_type = 0;
        while !reader.is_empty() {
            let start = reader.position();
            let element = reader.read_element()?;
            // The Fragment has the smallest number but is last, so nothing may follow it.
            let in_order = match element.typ {
                _ if last_type == types::LP_FRAGMENT => false,
                types::LP_FRAGMENT => true,
                types::LP_ACK => last_type <= types::LP_ACK,
                typ => last_type < typ,
            };
            if !in_order {
                return Err(DecodeError::LinkHeaderOrder);
            }
            last_type = element.typ;
            if element.typ == types::LP_ACK {
                fixed_number(element.value)?;
                let acks_start = start - self.acks.len();
                self.acks = &value[acks_start..reader.position()];
            } else {
                self.read_field(&element)?;
            }
        }
        Ok(())
    }

    fn read_field(&mut self, element: &Element<'a>) -> Result<(), DecodeError> {
        let value = element.value;
        match element.typ {
            types::LP_FRAGMENT => self.fragment = Some(value),
            types::LP_SEQUENCE => self.sequence = Some(fixed_number(value)?),
            types::LP_FRAG_INDEX => self.frag_index = Some(decode_nni(value)?),
            types::LP_FRAG_COUNT => self.frag_count = Some(decode_nni(value)?),
            types::LP_PIT_TOKEN => {
                let token = PitToken::from_slice(value).filter(|token| !token.is_empty());
                self.pit_token = token.ok_or(DecodeError::BadLength)?;
            }
            types::LP_NACK => {
                let code = only_number(value, types::LP_NACK_REASON)?;
                self.nack = Some(code.map_or(NackReason::NONE, NackReason));
            }
            types::LP_INCOMING_FACE_ID => self.incoming_face_id = Some(decode_nni(value)?),
            types::LP_NEXT_HOP_FACE_ID => self.next_hop_face_id = Some(decode_nni(value)?),
            types::LP_CACHE_POLICY => match only_number(value, types::LP_CACHE_POLICY_TYPE)? {
                Some(CACHE_POLICY_NO_CACHE) => self.cache_policy = Some(CACHE_POLICY_NO_CACHE),
                Some(_) => return Err(DecodeError::BadValue),
                None => return Err(DecodeError::MissingElement),
            },
            types::LP_CONGESTION_MARK => self.congestion_mark = Some(decode_nni(value)?),
            types::LP_TX_SEQUENCE => self.tx_sequence = Some(fixed_number(value)?),
            types::LP_NON_DISCOVERY if value.is_empty() => self.non_discovery = true,
            types::LP_NON_DISCOVERY => return Err(DecodeError::BadLength),
            types::LP_PREFIX_ANNOUNCEMENT => {
                if tlv::read_single_element(value)?.typ != types::DATA {
                    return Err(DecodeError::UnexpectedType);
                }
                self.prefix_announcement = Some(value);
            }
            types::LP_KNOWS_PIT_TOKENS => self.knows_pit_tokens = Some(KnowsPitTokens::from_value(value)),
            types::LP_PATH_MTU_PROBE => self.path_mtu_probe = PathMtuProbe::from_value(value),
            typ if is_ignorable(typ) => {}
            _ => return Err(DecodeError::UnknownLinkHeader),
        }
        Ok(())
    }
}

/// Returns true if an unknown header field of this type may be ignored (NDNLPv2 "Packet Format").
const fn is_ignorable(typ: u32) -> bool {
    800 <= typ && typ <= 959 && typ & 0b11 == 0
}

fn fixed_number(value: &[u8]) -> Result<u64, DecodeError> {
    value.try_into().map(u64::from_be_bytes).map_err(|_| DecodeError::BadLength)
}

/// Returns the number in the element of type `typ` inside a field, under the same rule for unknown types as for
/// fields.
fn only_number(value: &[u8], typ: u32) -> Result<Option<u64>, DecodeError> {
    let mut reader = Reader::new(value);
    let mut number = None;
    while !reader.is_empty() {
        let element = reader.read_element()?;
        if element.typ == typ && number.is_none() {
            number = Some(decode_nni(element.value)?);
        } else if !is_ignorable(element.typ) {
            return Err(DecodeError::UnknownLinkHeader);
        }
    }
    Ok(number)
}

/// Iterator over the numbers of the Acks of a packet.
#[derive(Debug, Clone)]
pub struct Acks<'a> {
    elements: &'a [u8],
}

impl Iterator for Acks<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (ack, rest) = self.elements.split_first_chunk::<ACK_LEN>()?;
        self.elements = rest;
        let [_, _, _, _, number @ ..] = *ack;
        Some(u64::from_be_bytes(number))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.elements.len() / ACK_LEN, Some(self.elements.len() / ACK_LEN))
    }
}

impl ExactSizeIterator for Acks<'_> {}
