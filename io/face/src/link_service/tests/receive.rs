//! Tests of receiving: one table row for each rule on header fields.

use super::*;

const LOCAL: LinkOptions = LinkOptions { local_fields: true, ..PLAIN };
const LEARNING: LinkOptions = LinkOptions { self_learning: true, ..PLAIN };

/// Builds a frame of header fields (between the LpPacket's LENGTH and the Fragment) and a packet.
fn frame(fields: &str, packet: &str) -> Vec<u8> {
    let packet = hex(packet);
    let mut value = hex(fields);
    value.extend([0x50, packet.len() as u8]);
    value.extend(packet);
    let mut frame = vec![0x64, value.len() as u8];
    frame.extend(value);
    frame
}

#[test]
fn packets_that_break_a_rule_are_dropped_by_its_name() {
    use LinkDrop::*;
    // Description, options, header fields, packet, reason.
    let table: &[(&str, LinkOptions, &str, &str, LinkDrop)] = &[
        ("NextHopFaceId, local fields off", PLAIN, "FD033002012C", INTEREST, NextHopNotAllowed),
        ("NextHopFaceId on Data", LOCAL, "FD033002012C", DATA, NextHopOnWrongPacket),
        ("NextHopFaceId on Nack", LOCAL, "FD032000 FD033002012C", INTEREST, NextHopOnWrongPacket),
        ("CachePolicy on Interest", PLAIN, "FD033405FD03350101", INTEREST, CachePolicyOnWrongPacket),
        ("CachePolicy on Nack", PLAIN, "FD032000 FD033405FD03350101", INTEREST, CachePolicyOnWrongPacket),
        ("CachePolicyType 2", PLAIN, "FD033405FD03350102", DATA, MalformedHeader),
        ("Nack on Data", PLAIN, "FD032005FD03210196", DATA, NackOnData),
        ("NonDiscovery on Data", LEARNING, "FD034C00", DATA, NonDiscoveryOnWrongPacket),
        ("NonDiscovery on Nack", PLAIN, "FD032000 FD034C00", INTEREST, NonDiscoveryOnWrongPacket),
        ("PrefixAnnouncement on Interest", LEARNING, "FD0350020600", INTEREST, AnnouncementOnWrongPacket),
        ("PrefixAnnouncement with self-learning off", PLAIN, "FD0350020600", INTEREST, AnnouncementOnWrongPacket),
        ("PrefixAnnouncement on Nack", PLAIN, "FD032000 FD0350020600", INTEREST, AnnouncementOnWrongPacket),
        ("unknown header, two low bits 01", PLAIN, "FD033900", INTEREST, MalformedHeader),
        ("unknown header outside 800-959", PLAIN, "5800", INTEREST, MalformedHeader),
        ("headers out of order", PLAIN, "FD03400101 6201AA", INTEREST, MalformedHeader),
        ("a repeated header", PLAIN, "6201AA 6201AB", INTEREST, MalformedHeader),
        ("PitToken of 0 bytes", PLAIN, "6200", INTEREST, MalformedHeader),
        ("Sequence of 4 bytes", PLAIN, "510400000001", INTEREST, MalformedHeader),
        ("neither Interest nor Data", PLAIN, "", "0703080141", NotInterestOrData),
        ("nested LpPacket", PLAIN, "", "64025000", NotInterestOrData),
        ("the fragment is longer than its packet", PLAIN, "", "0605 0703080141 00", NotInterestOrData),
        ("the fragment is shorter than its packet", PLAIN, "", "0606 0703080141", NotInterestOrData),
        ("an empty fragment", PLAIN, "", "", NotInterestOrData),
        ("a fragment on a stream", PLAIN, "51080000000000000001 520100 530102", DATA, FragmentOnStreamLink),
    ];
    for (what, options, fields, packet, reason) in table {
        let mut bench = Bench::new(*options);
        let result = bench.receive(&frame(fields, packet));
        assert_eq!(result.err(), Some(*reason), "{what}");
        assert_eq!(bench.drops(*reason), 1, "{what}");
        assert_eq!(bench.counters().received.frames.get(), 1);
        let received = &bench.counters().received;
        let packets = [&received.interests, &received.data, &received.nacks];
        assert!(packets.iter().all(|kind| kind.packets.get() == 0), "{what}");
        assert_eq!(bench.pool.in_use(), 0, "{what}");
    }
}

#[test]
fn bytes_that_are_no_frame_are_dropped() {
    for (bytes, reason) in [
        ("", LinkDrop::MalformedHeader),
        ("00", LinkDrop::MalformedHeader),
        ("6405 50", LinkDrop::MalformedHeader),
        ("6402 5000 00", LinkDrop::MalformedHeader),
        ("0703080141", LinkDrop::MalformedHeader),
        ("050B0703", LinkDrop::NotInterestOrData),
        ("0605 0703080141 00", LinkDrop::NotInterestOrData),
    ] {
        let mut bench = Bench::new(PLAIN);
        assert_eq!(bench.receive(&hex(bytes)).err(), Some(reason), "{bytes}");
    }
}

/// Returns the only packet in the frame.
fn receive_one(options: LinkOptions, bytes: &[u8]) -> (PacketKind, Vec<u8>, LinkFields) {
    let mut bench = Bench::new(options);
    let mut packets = bench.receive(bytes).expect("accepted");
    assert_eq!(packets.len(), 1);
    let Incoming { face, buffer, fields } = packets.remove(0);
    assert_eq!(face, bench.service.face().id());
    let received = &bench.counters().received;
    let kinds = [PacketKind::Interest, PacketKind::Data, PacketKind::Nack];
    let counted = kinds.into_iter().filter(|&kind| received.kind(kind).packets.get() == 1);
    let [kind] = counted.collect::<Vec<_>>()[..] else {
        panic!("one packet kind must be counted once");
    };
    assert_eq!(received.kind(kind).bytes.get() as usize, buffer.bytes().len());
    assert_eq!(received.bytes.get() as usize, bytes.len());
    (kind, buffer.bytes().to_vec(), fields)
}

#[test]
fn bare_packets_have_no_fields() {
    let (kind, packet, fields) = receive_one(PLAIN, &hex(INTEREST));
    assert_eq!((kind, packet), (PacketKind::Interest, hex(INTEREST)));
    assert_eq!(format!("{fields:?}"), format!("{:?}", LinkFields::default()));
    let (kind, packet, _) = receive_one(PLAIN, &hex(DATA));
    assert_eq!((kind, packet), (PacketKind::Data, hex(DATA)));
}

#[test]
fn fields_are_attached_to_the_packet() {
    let (kind, packet, fields) =
        receive_one(LOCAL, &frame("6204AABBCCDD FD032C0105 FD033002012C FD03400102", INTEREST));
    assert_eq!((kind, packet), (PacketKind::Interest, hex(INTEREST)));
    assert_eq!(fields.pit_token.as_slice(), hex("AABBCCDD"));
    assert_eq!(fields.incoming_face_id, None, "IncomingFaceId from a peer is ignored");
    assert_eq!(fields.next_hop_face_id, Some(300));
    assert_eq!(fields.congestion_mark, 2);

    let nack = hex("6418 FD032005FD03210196 500D 050B07030801410A0401020304");
    let (kind, packet, fields) = receive_one(PLAIN, &nack);
    assert_eq!((kind, packet), (PacketKind::Nack, hex(INTEREST)));
    assert_eq!(fields.nack.map(|reason| reason.code()), Some(150));
    let (kind, _, fields) = receive_one(PLAIN, &frame("FD032000", INTEREST));
    assert_eq!((kind, fields.nack.map(|reason| reason.code())), (PacketKind::Nack, Some(0)));

    // CachePolicy is honoured even without local fields.
    let (_, _, fields) = receive_one(PLAIN, &frame("FD033405FD03350101", DATA));
    assert!(fields.no_cache);
    // Sequence, Acks and TxSequence have no effect without reliability; an unknown header that may be ignored is
    // ignored.
    let odd = "51080000000000000001 FD03380100 FD0344080000000000000009 FD0348080000000000000005";
    let (kind, _, fields) = receive_one(PLAIN, &frame(odd, INTEREST));
    assert_eq!((kind, fields.congestion_mark), (PacketKind::Interest, 0));
}

#[test]
fn self_learning_fields_are_ignored_unless_enabled() {
    let (_, _, fields) = receive_one(LEARNING, &frame("FD034C00", INTEREST));
    assert!(fields.non_discovery);
    let (_, _, fields) = receive_one(PLAIN, &frame("FD034C00", INTEREST));
    assert!(!fields.non_discovery);
    let (_, _, fields) = receive_one(LEARNING, &frame("FD035003060107", DATA));
    assert_eq!(fields.announcement.map(|copy| copy.bytes().to_vec()), Some(vec![6, 1, 7]));
    let (_, _, fields) = receive_one(PLAIN, &frame("FD035003060107", DATA));
    assert!(fields.announcement.is_none());
}

#[test]
fn data_is_delivered_even_without_a_buffer_for_its_announcement() {
    let mut bench = Bench::with_pool(LEARNING, BufferPool::new(1, 1));
    let held = bench.pool.allocate(9000).expect("the pool has a large buffer");
    let packets = bench.receive(&frame("FD035003060107", DATA)).expect("accepted");
    assert!(packets[0].fields.announcement.is_none());
    drop(held);
}

#[test]
fn idle_packets_deliver_nothing() {
    for options in [PLAIN, RELIABLE] {
        let mut bench = Bench::new(options);
        for idle in ["6400", "640C FD0344080000000000000009", "640C FD0348080000000000000009"] {
            assert!(bench.receive(&hex(idle)).expect("accepted").is_empty());
        }
        assert_eq!(bench.counters().received.frames.get(), 3);
        assert_eq!(bench.next_deadline(), Timestamp::NEVER, "nothing may be acknowledged");
    }
}
