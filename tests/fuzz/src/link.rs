//! The NDNLPv2 link service: with any frames at any time, it neither leaks buffers nor sends frames that exceed the
//! MTU.

use namehop_face::FaceUri;
use namehop_face::link_service::{LinkService, MAX_PARTIAL_PACKETS, Reassembler};
use namehop_face::registry::{FaceFlags, FaceParams, FaceTable};
use namehop_packet::{BufferPool, IncomingBurst, LinkFields, Outgoing, PacketKind, Timestamp};
use namehop_wire::MAX_PACKET_SIZE;

use crate::script::Events;

/// Each event is a received frame, a sent packet, or passing time; bits of the first event's kind select the options.
pub fn link_service(bytes: &[u8]) {
    let pool = BufferPool::new(512, 256);
    let options = bytes.first().copied().unwrap_or(0) >> 3;
    // A face over UDP discovers its path MTU.
    let uri = if options & 16 != 0 { "udp4://192.0.2.1:6363".parse().expect("a URI") } else { FaceUri::Internal };
    let mut params = FaceParams::new(uri.clone(), uri);
    params.is_datagram = options & 1 != 0;
    params.self_learning = options & 2 != 0;
    params.flags =
        FaceFlags(if options & 4 != 0 { FaceFlags::RELIABILITY.0 } else { 0 } | FaceFlags::CONGESTION_MARKING.0);
    params.link_mtu_bytes = if options & 8 != 0 { 64 } else { 1500 };
    let limit = if params.is_datagram { params.link_mtu_bytes } else { MAX_PACKET_SIZE };
    let face = FaceTable::new().insert(params).expect("an empty table has room");
    let mut service = LinkService::with_first_sequence(face, 0, 0);
    let mut reassembler = Reassembler::new(0, MAX_PARTIAL_PACKETS / 2);
    let mut now = Timestamp(0);
    let (mut incoming, mut frames, mut dropped) = (IncomingBurst::default(), Vec::new(), Vec::new());
    for (kind, bytes) in Events(bytes) {
        let Some(buffer) = pool.copy_of(bytes) else { continue };
        match kind & 7 {
            0..=3 => {
                let _ = service.receive(now, buffer, u64::from(kind & 1), &pool, &mut reassembler, &mut incoming);
            }
            4 | 5 => {
                let kind = if kind & 1 == 0 { PacketKind::Interest } else { PacketKind::Data };
                let packet = Outgoing { face: service.face().id(), kind, buffer, fields: LinkFields::default() };
                let _ = service.send(now, packet, bytes.len() * 100, &pool, &mut frames);
            }
            _ => now = now.plus_ms(bytes.len() as u64),
        }
        reassembler.expire(now);
        service.tick(now, &pool, &mut frames, &mut dropped);
        let deadline = service.next_deadline().min(reassembler.next_deadline());
        assert!(deadline > now, "a tick does what is due");
        assert!(reassembler.waiting() <= MAX_PARTIAL_PACKETS / 2);
        for packet in incoming.in_order().drain(..) {
            assert!(packet.buffer.bytes().len() <= MAX_PACKET_SIZE);
        }
        for frame in frames.drain(..) {
            assert!(frame.bytes().len() <= limit, "{} bytes on a link of {limit}", frame.bytes().len());
        }
        dropped.clear();
    }
    drop((service, reassembler));
    drop((incoming, frames, dropped));
    assert_eq!(pool.in_use(), 0, "buffers leaked");
}
