//! A usual packet as it lies in a ring between two workers: one cache line. Whatever has other link fields than nearly all packets have
//! goes another way.

use namehop_packet::{FaceId, Incoming, LinkFields, Outgoing, PacketBuffer, PacketKind, Stamp, Timestamp};
use namehop_table::prefetch::CACHE_LINE_BYTES;
use namehop_wire::lp::PitToken;

/// Tokens of forwarders have so many bytes at most; there may be longer ones.
const TOKEN_BYTES: usize = 8;

/// See the module's description.
#[repr(align(64))]
pub(super) struct Parcel {
    buffer: PacketBuffer,
    /// Since when it waits.
    pub(super) since: Timestamp,
    face: FaceId,
    /// The face that it came in on; of a packet to be sent that has one.
    incoming_face: FaceId,
    stamp: Stamp,
    /// The PIT token, and its length.
    token: [u8; TOKEN_BYTES],
    token_bytes: u8,
    /// Known before the packet's bytes have come to the receiver's processor.
    pub(super) kind: PacketKind,
    way: Way,
}

// A line, and so one that has the whole of it to itself.
const _: () = assert!(size_of::<Parcel>() == CACHE_LINE_BYTES);

/// What the receiver is to do with it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Incoming,
    Outgoing,
    /// As above, and it says where it came from.
    OutgoingFrom,
}

/// What was in it.
pub(super) enum Unpacked {
    Incoming(Incoming),
    Outgoing(Outgoing),
}

/// Whether there is no link field but those that a parcel has.
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
    /// Whether this packet fits into one.
    #[inline(always)]
    pub(super) fn takes_incoming(packet: &Incoming) -> bool {
        packet.fields.incoming_face_id.is_none() && is_usual(&packet.fields)
    }

    /// Whether this packet fits into one.
    #[inline(always)]
    pub(super) fn takes_outgoing(packet: &Outgoing) -> bool {
        is_usual(&packet.fields)
    }

    /// Of one that [fits](Self::takes_incoming).
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

    /// Of one that [fits](Self::takes_outgoing).
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

    /// The packet, marked as congested if that is to be.
    #[inline(always)]
    pub(super) fn unpack(self, is_congested: bool) -> Unpacked {
        let Parcel { buffer, face, incoming_face, stamp, token, token_bytes, kind, way, .. } = self;
        // It comes from another processor's cache while this one works on those before it.
        buffer.prefetch_to_change();
        let fields = LinkFields {
            // It was not longer when it was put in.
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
        let Unpacked::Incoming(packet) = parcel.unpack(false) else { panic!("it came in") };
        assert_eq!(format!("{packet:?}"), text);
        drop(packet);
        for incoming_face_id in [None, Some(FaceId(9))] {
            let fields = LinkFields { incoming_face_id, ..fields() };
            let packet = Outgoing { face: FaceId(4), kind: PacketKind::Interest, buffer: buffer(), fields };
            assert!(Parcel::takes_outgoing(&packet));
            let text = format!("{packet:?}");
            let Unpacked::Outgoing(mut packet) = Parcel::of_outgoing(packet, Timestamp(5)).unpack(true) else {
                panic!("it is to be sent")
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
