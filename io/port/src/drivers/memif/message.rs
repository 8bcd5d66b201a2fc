//! Messages of memif's control protocol, version 2.0: 128 bytes each, in the byte order of the host.
//!
//! Both ends are on one host. The client offers memory; the server accepts it. Fields that Namehop does not use (names,
//! secrets, private headers) are written as zeros and ignored on receipt.

/// Length of every message.
pub(super) const MESSAGE_BYTES: usize = 128;
/// The only supported protocol version, 2.0.
pub(super) const VERSION: u16 = 0x0200;
/// Largest ring, as a power of two.
pub(super) const MAX_LOG2_SLOTS: u8 = 14;
/// Maximum number of memory regions of one link.
pub(super) const MAX_REGIONS: u16 = 16;
/// Mode of Ethernet frames. NDN peers use this mode for bare packets too.
const MODE_ETHERNET: u8 = 0;
/// Flag of an offered ring: from client to server.
const CLIENT_TO_SERVER: u16 = 1;

/// Location of a ring in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RingLocation {
    /// Number of its region.
    pub(super) region: u16,
    /// Offset of its first byte in the region.
    pub(super) offset: u32,
    /// Number of slots, as a power of two.
    pub(super) log2_slots: u8,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// The last message was understood.
    Ack,
    /// Server: what it supports.
    Hello { min_version: u16, max_version: u16, max_log2_slots: u8 },
    /// Client: which link it wants.
    Init { version: u16, id: u32, is_ethernet: bool },
    /// Client: a memory region; its descriptor is attached.
    AddRegion { index: u16, bytes: u64 },
    /// Client: a ring; its eventfd is attached.
    AddRing { is_to_server: bool, index: u16, place: RingLocation },
    /// Client: all regions and rings have been sent.
    Connect,
    /// Server: the link is up.
    Connected,
    /// Either end: the link ends, with a reason.
    Disconnect { reason: String },
}

impl Message {
    /// Encodes this message.
    pub(super) fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let kind: u16 = match self {
            Message::Ack => 1,
            Message::Hello { min_version, max_version, max_log2_slots } => {
                put(2, b"namehop");
                put(34, &min_version.to_ne_bytes());
                put(36, &max_version.to_ne_bytes());
                put(38, &(MAX_REGIONS - 1).to_ne_bytes());
                // One ring in each direction: the largest index is 0.
                put(44, &[*max_log2_slots]);
                2
            }
            Message::Init { version, id, .. } => {
                put(2, &version.to_ne_bytes());
                put(4, &id.to_ne_bytes());
                put(8, &[MODE_ETHERNET]);
                put(33, b"namehop");
                3
            }
            Message::AddRegion { index, bytes } => {
                put(2, &index.to_ne_bytes());
                put(4, &bytes.to_ne_bytes());
                4
            }
            Message::AddRing { is_to_server, index, place } => {
                put(2, &(if *is_to_server { CLIENT_TO_SERVER } else { 0 }).to_ne_bytes());
                put(4, &index.to_ne_bytes());
                put(6, &place.region.to_ne_bytes());
                put(8, &place.offset.to_ne_bytes());
                put(12, &[place.log2_slots]);
                5
            }
            Message::Connect => {
                put(2, b"namehop");
                6
            }
            Message::Connected => {
                put(2, b"namehop");
                7
            }
            Message::Disconnect { reason } => {
                let length = reason.len().min(95);
                put(6, &reason.as_bytes()[..length]);
                8
            }
        };
        bytes[..2].copy_from_slice(&kind.to_ne_bytes());
        bytes
    }

    /// Decodes a message; `None` if its type is unknown.
    pub(super) fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Option<Message> {
        let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| u32::from_ne_bytes(std::array::from_fn(|index| bytes[at + index]));
        Some(match number(0) {
            1 => Message::Ack,
            2 => Message::Hello { min_version: number(34), max_version: number(36), max_log2_slots: bytes[44] },
            3 => Message::Init { version: number(2), id: long(4), is_ethernet: bytes[8] == MODE_ETHERNET },
            4 => Message::AddRegion {
                index: number(2),
                bytes: u64::from_ne_bytes(std::array::from_fn(|index| bytes[4 + index])),
            },
            5 => Message::AddRing {
                is_to_server: number(2) & CLIENT_TO_SERVER != 0,
                index: number(4),
                place: RingLocation { region: number(6), offset: long(8), log2_slots: bytes[12] },
            },
            6 => Message::Connect,
            7 => Message::Connected,
            8 => {
                let text = bytes[6..102].split(|&byte| byte == 0).next().unwrap_or_default();
                Message::Disconnect { reason: String::from_utf8_lossy(text).into_owned() }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_survive_encoding() {
        let place = RingLocation { region: 3, offset: 0x12345678, log2_slots: 10 };
        for message in [
            Message::Ack,
            Message::Hello { min_version: VERSION, max_version: 0x0300, max_log2_slots: 14 },
            Message::Init { version: VERSION, id: 77, is_ethernet: true },
            Message::AddRegion { index: 1, bytes: 1 << 40 },
            Message::AddRing { is_to_server: true, index: 0, place },
            Message::AddRing { is_to_server: false, index: 2, place },
            Message::Connect,
            Message::Connected,
            Message::Disconnect { reason: "no such link".to_owned() },
        ] {
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
        // A reason of any length.
        let bytes = Message::Disconnect { reason: "x".repeat(500) }.encode();
        assert_eq!(Message::decode(&bytes), Some(Message::Disconnect { reason: "x".repeat(95) }));
    }

    proptest! {
        #[test]
        fn reading_arbitrary_bytes_never_panics(head in any::<[u8; 16]>(), rest in any::<u8>()) {
            let mut bytes = [rest; MESSAGE_BYTES];
            bytes[..16].copy_from_slice(&head);
            bytes[1] = 0;
            bytes[0] %= 10;
            let _ = Message::decode(&bytes);
        }
    }
}
