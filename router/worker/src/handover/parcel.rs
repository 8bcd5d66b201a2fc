//! A usual packet in a ring between two workers: exactly one cache line. Packets with uncommon link fields go through
//! the other ring.

use namehop_packet::{FaceId, Incoming, LinkFields, Outgoing, PacketBuffer, PacketKind, Stamp, Timestamp};
use namehop_table::prefetch::CACHE_LINE_BYTES;
use namehop_wire::lp::PitToken;

/// Longest PIT token in a parcel, in bytes. Tokens of forwarders are not longer; tokens of other peers may be.
const TOKEN_BYTES: usize = 8;

/// One cache line with the buffer and the common link fields of a packet.
#[repr(align(64))]
pub(super) struct Parcel {
    buffer: PacketBuffer,
    /// When the packet was enqueued.
    pub(super) since: Timestamp,
    face: FaceId,
    /// The incoming face of a packet to be sent; meaningful for [`Way::OutgoingFrom`] only.
    incoming_face: FaceId,
    stamp: Stamp,
    /// The PIT token; `token_bytes` is its length.
    token: [u8; TOKEN_BYTES],
    token_bytes: u8,
    /// Stored here so that the receiver knows it before the packet's bytes are in its cache.
    pub(super) kind: PacketKind,
    way: Way,
}

// Exactly one line, with the alignment above, so no two parcels share one.
const _: () = assert!(size_of::<Parcel>() == CACHE_LINE_BYTES);

/// How the receiver handles the packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Incoming,
    Outgoing,
    /// To be sent, with its incoming face.
    OutgoingFrom,
}

/// The packet that a parcel held.
pub(super) enum Unpacked {
    Incoming(Incoming),
    Outgoing(Outgoing),
}

/// Returns whether a parcel can hold all link fields of the packet.
#[inline(always)]
fn is_usual(fields: &LinkFields) -> bool {
    let LinkFields {
        pit_token,
        nack,
        congestion_mark,
        incoming_face_id: _,
        next_hop_face_id,
        no_cache,
        non_discovery,
        announcement,
        stamp: _,
    } = fields;
    let has_other = nack.is_some() | next_hop_face_id.is_some() | announcement.is_some();
    !(has_other | *no_cache | *non_discovery) && *congestion_mark == 0 && pit_token.as_slice().len() <= TOKEN_BYTES
}

impl Parcel {
    /// Returns whether a received packet fits into a parcel.
    #[inline(always)]
    pub(super) fn takes_incoming(packet: &Incoming) -> bool {
        packet.fields.incoming_face_id.is_none() && is_usual(&packet.fields)
    }

    /// Returns whether a packet to be sent fits into a parcel.
    #[inline(always)]
    pub(super) fn takes_outgoing(packet: &Outgoing) -> bool {
        is_usual(&packet.fields)
    }

    /// Creates the parcel of a packet that [fits](Self::takes_incoming).
    #[inline(always)]
    pub(super) fn of_incoming(packet: Incoming, since: Timestamp, kind: PacketKind) -> Parcel {
        let Incoming { face, buffer, fields: LinkFields { pit_token, stamp, .. } } = packet;
        Parcel {
            buffer,
            since,
            face,
            incoming_face: FaceId::default(),
            stamp,
            token: pit_token.first_bytes(),
            token_bytes: pit_token.as_slice().len() as u8,
            kind,
            way: Way::Incoming,
        }
    }

    /// Creates the parcel of a packet that [fits](Self::takes_outgoing).
    #[inline(always)]
    pub(super) fn of_outgoing(packet: Outgoing, since: Timestamp) -> Parcel {
        let Outgoing { face, kind, buffer, fields: LinkFields { pit_token, stamp, incoming_face_id, .. } } = packet;
        let way = if incoming_face_id.is_some() { Way::OutgoingFrom } else { Way::Outgoing };
        Parcel {
            buffer,
            since,
            face,
            incoming_face: incoming_face_id.unwrap_or_default(),
            stamp,
            token: pit_token.first_bytes(),
            token_bytes: pit_token.as_slice().len() as u8,
            kind,
            way,
        }
    }

    /// Returns the packet, marked as congested if `is_congested`.
    #[inline(always)]
    pub(super) fn unpack(self, is_congested: bool) -> Unpacked {
        let Parcel { buffer, face, incoming_face, stamp, token, token_bytes, kind, way, .. } = self;
        // The buffer's lines come from another core's cache while this worker handles earlier packets.
        buffer.prefetch_to_change();
        let fields = LinkFields {
            // Tokens longer than `TOKEN_BYTES` were never put into a parcel.
            pit_token: PitToken::short(token, token_bytes.into()).unwrap_or_default(),
            stamp,
            congestion_mark: is_congested.into(),
            incoming_face_id: (way == Way::OutgoingFrom).then_some(incoming_face),
            ..LinkFields::default()
        };
        match way {
            Way::Incoming => Unpacked::Incoming(Incoming { face, buffer, fields }),
            Way::Outgoing | Way::OutgoingFrom => Unpacked::Outgoing(Outgoing { face, kind, buffer, fields }),
        }
    }
}

#[cfg(test)]
mod tests {
    use namehop_packet::BufferPool;
    use namehop_wire::lp::NackReason;

    use super::*;

    fn fields() -> LinkFields {
        LinkFields {
            pit_token: PitToken::short([7; 8], 8).expect("a token"),
            stamp: Stamp::at(4_000),
            ..LinkFields::default()
        }
    }

    #[test]
    fn usual_packets_come_out_as_they_went_in() {
        let pool = BufferPool::new(4, 1);
        let buffer = || pool.copy_of(b"packet").expect("a buffer");
        let packet = Incoming { face: FaceId(3), buffer: buffer(), fields: fields() };
        assert!(Parcel::takes_incoming(&packet));
        let text = format!("{packet:?}");
        let parcel = Parcel::of_incoming(packet, Timestamp(5), PacketKind::Data);
        assert_eq!((parcel.since, parcel.kind), (Timestamp(5), PacketKind::Data));
        let Unpacked::Incoming(packet) = parcel.unpack(false) else {
            panic!("an incoming packet must unpack as incoming")
        };
        assert_eq!(format!("{packet:?}"), text);
        drop(packet);
        for incoming_face_id in [None, Some(FaceId(9))] {
            let fields = LinkFields { incoming_face_id, ..fields() };
            let packet = Outgoing { face: FaceId(4), kind: PacketKind::Interest, buffer: buffer(), fields };
            assert!(Parcel::takes_outgoing(&packet));
            let text = format!("{packet:?}");
            let Unpacked::Outgoing(mut packet) = Parcel::of_outgoing(packet, Timestamp(5)).unpack(true) else {
                panic!("an outgoing packet must unpack as outgoing")
            };
            assert_eq!(std::mem::take(&mut packet.fields.congestion_mark), 1);
            assert_eq!(format!("{packet:?}"), text);
        }
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn packets_with_other_fields_do_not_fit() {
        let pool = BufferPool::new(4, 1);
        let buffer = || pool.copy_of(b"packet").expect("a buffer");
        let unusual: [fn(&mut LinkFields, PacketBuffer); 7] = [
            |fields, _| fields.pit_token = PitToken::from_slice(&[7; 9]).expect("a token"),
            |fields, _| fields.nack = Some(NackReason::CONGESTION),
            |fields, _| fields.congestion_mark = 1,
            |fields, _| fields.next_hop_face_id = Some(0),
            |fields, _| fields.no_cache = true,
            |fields, _| fields.non_discovery = true,
            |fields, buffer| fields.announcement = Some(buffer),
        ];
        for change in unusual {
            let mut fields = fields();
            change(&mut fields, buffer());
            let packet = Incoming { face: FaceId(3), buffer: buffer(), fields };
            assert!(!Parcel::takes_incoming(&packet), "{packet:?}");
            let Incoming { face, buffer, fields } = packet;
            assert!(!Parcel::takes_outgoing(&Outgoing { face, kind: PacketKind::Nack, buffer, fields }));
        }
        let local = LinkFields { incoming_face_id: Some(FaceId(1)), ..fields() };
        assert!(!Parcel::takes_incoming(&Incoming { face: FaceId(3), buffer: buffer(), fields: local }));
    }
}
