//! Ethernet II headers around NDN frames, and the padding behind them.

use namehop_packet::PacketBuffer;
use namehop_wire::tlv::frame_length;

use crate::counters::LinkDrop;

/// Ethernet type of NDN.
pub const ETHERTYPE_NDN: u16 = 0x8624;
/// The NDN multicast group (NFD).
pub const NDN_GROUP: MacAddress = [0x01, 0x00, 0x5E, 0x00, 0x17, 0xAA];
/// Destination, source and type.
pub const HEADER_BYTES: usize = 14;
/// The shortest frame, without its check sequence; shorter packets are padded with zeros.
pub const MIN_FRAME_BYTES: usize = 60;

/// A hardware address.
pub type MacAddress = [u8; 6];

/// Whether the address is that of a multicast group (or the broadcast address).
pub const fn is_group(address: &MacAddress) -> bool {
    address[0] & 1 == 1
}

/// The header of NDN frames from `source` to `destination`.
pub(super) fn encode(destination: &MacAddress, source: &MacAddress) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..6].copy_from_slice(destination);
    header[6..12].copy_from_slice(source);
    header[12..].copy_from_slice(&ETHERTYPE_NDN.to_be_bytes());
    header
}

/// Destination and source of an NDN frame; `None` when it is a frame of another type, or too short for a header.
pub(super) fn decode(frame: &[u8]) -> Option<(MacAddress, MacAddress)> {
    let (header, _) = frame.split_first_chunk::<HEADER_BYTES>()?;
    let (addresses, ethertype) = header.split_first_chunk::<12>()?;
    if ethertype != ETHERTYPE_NDN.to_be_bytes() {
        return None;
    }
    let (destination, source) = addresses.split_first_chunk::<6>()?;
    Some((*destination, source.try_into().ok()?))
}

/// Cuts off what follows the one TLV element at the front: the padding of a short frame.
///
/// # Errors
/// [`LinkDrop::MalformedFrame`] when there is no whole element.
#[inline]
pub(super) fn cut_padding(buffer: &mut PacketBuffer) -> Result<(), LinkDrop> {
    match frame_length(buffer.bytes()) {
        Ok(Some(length)) if length <= buffer.bytes().len() => {
            buffer.truncate(length);
            Ok(())
        }
        _ => Err(LinkDrop::MalformedFrame),
    }
}

/// Pads a frame to the shortest there may be. A buffer without room for that has a frame that is long enough.
#[inline]
pub(super) fn pad(frame: &mut PacketBuffer) {
    let missing = MIN_FRAME_BYTES.saturating_sub(frame.bytes().len());
    if missing > 0
        && let Some(padding) = frame.append(missing)
    {
        padding.fill(0);
    }
}
