//! PathMtuProbe: a header field specific to Namehop, by which a sender finds out how large the frames are that reach
//! its peer (datagram packetization layer path MTU discovery, RFC 8899).
//!
//! The field stands in an LpPacket without Fragment. Its VALUE is one byte, 1 for a probe and 0 for an answer, and four
//! bytes that identify the probe; further bytes are padding. A peer that does not know the field ignores it, because
//! NDNLPv2 allows to ignore its TYPE.

use crate::MAX_PACKET_SIZE;
use crate::tlv::types;

/// First byte of VALUE.
const PROBES: u8 = 1;
const ANSWERS: u8 = 0;
/// Length of VALUE without padding.
const VALUE_LEN: usize = 5;
/// First byte of a LENGTH of three bytes.
const LONG: u8 = 253;

/// A PathMtuProbe field; the number identifies the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathMtuProbe {
    /// The peer shall answer with the same number.
    Probe(u32),
    /// The probe with this number has arrived.
    Answer(u32),
}

impl PathMtuProbe {
    /// Length of [`PathMtuProbe::answer`] in bytes.
    pub const ANSWER_LEN: usize = 6 + VALUE_LEN;
    /// Length in bytes of the shortest frame that [`PathMtuProbe::write_probe`] writes: the shortest with a LENGTH of
    /// three bytes in both elements.
    pub const MIN_PROBE_LEN: usize = 10 + 253;

    const TYPE: [u8; 3] = {
        let [high, low] = (types::LP_PATH_MTU_PROBE as u16).to_be_bytes();
        [253, high, low]
    };

    /// Returns the frame that answers the probe with this number: an LpPacket with this field and no Fragment.
    pub const fn answer(number: u32) -> [u8; Self::ANSWER_LEN] {
        let [t, u, v] = Self::TYPE;
        let [a, b, c, d] = number.to_be_bytes();
        [types::LP_PACKET as u8, Self::ANSWER_LEN as u8 - 2, t, u, v, VALUE_LEN as u8, ANSWERS, a, b, c, d]
    }

    /// Returns true if the frame is an [`answer`](PathMtuProbe::answer), without decoding it.
    pub fn is_answer(frame: &[u8]) -> bool {
        let [expected @ .., _, _, _, _] = Self::answer(0);
        frame.len() == Self::ANSWER_LEN && frame.starts_with(&expected)
    }

    /// Returns the number of a probe, if the frame is one that [`PathMtuProbe::write_probe`] has written.
    pub fn probe_number(frame: &[u8]) -> Option<u32> {
        const LP_PACKET: u8 = types::LP_PACKET as u8;
        let [LP_PACKET, LONG, _, _, t, u, v, LONG, _, _, PROBES, number @ ..] = *frame.first_chunk::<15>()? else {
            return None;
        };
        ([t, u, v] == Self::TYPE).then_some(u32::from_be_bytes(number))
    }

    /// Fills `frame` with a probe of its length: an LpPacket with this field and no Fragment.
    ///
    /// # Panics
    /// If the length is not from [`MIN_PROBE_LEN`](PathMtuProbe::MIN_PROBE_LEN) to [`MAX_PACKET_SIZE`].
    pub fn write_probe(number: u32, frame: &mut [u8]) {
        assert!((Self::MIN_PROBE_LEN..=MAX_PACKET_SIZE).contains(&frame.len()), "the length of a probe");
        let [outer, inner] = [4, 10].map(|header_len| (frame.len() - header_len) as u16).map(u16::to_be_bytes);
        let [t, u, v] = Self::TYPE;
        let [a, b, c, d] = number.to_be_bytes();
        let start = [
            [types::LP_PACKET as u8, LONG, outer[0], outer[1]],
            [t, u, v, LONG],
            [inner[0], inner[1], PROBES, a],
            [b, c, d, 0],
        ];
        frame.fill(0);
        frame[..16].copy_from_slice(start.as_flattened());
    }

    /// Decodes VALUE; `None` for a VALUE without meaning, which is ignored.
    pub(super) fn from_value(value: &[u8]) -> Option<Self> {
        let (&[kind, a, b, c, d], _) = value.split_first_chunk::<VALUE_LEN>()?;
        let number = u32::from_be_bytes([a, b, c, d]);
        match kind {
            PROBES => Some(PathMtuProbe::Probe(number)),
            ANSWERS => Some(PathMtuProbe::Answer(number)),
            _ => None,
        }
    }
}
