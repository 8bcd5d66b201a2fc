//! Tests of sending: header fields by table, congestion marks, packets that are too large.

use namehop_wire::lp::{NackReason, PitToken};
use namehop_wire::{InterestBuilder, Name};

use super::*;

fn fields() -> LinkFields {
    LinkFields::default()
}

#[test]
fn headers_are_written_byte_for_byte() {
    let local = LinkOptions { local_fields: true, ..PLAIN };
    let learning = LinkOptions { self_learning: true, ..PLAIN };
    let token = PitToken::from_slice(&hex("AABBCCDD")).expect("token");
    let announcement = || Some(Bench::new(PLAIN).buffer(&[6, 1, 7]));
    let everything = || LinkFields {
        pit_token: token,
        congestion_mark: 3,
        incoming_face_id: Some(FaceId(300)),
        next_hop_face_id: Some(7),
        non_discovery: true,
        announcement: announcement(),
        ..fields()
    };
    use PacketKind::{Data, Interest, Nack};
    // Description, options, kind, fields, frame.
    let table: Vec<(&str, LinkOptions, PacketKind, LinkFields, &str)> = vec![
        ("no header needed", PLAIN, Interest, fields(), "050B 0703080141 0A0401020304"),
        (
            "PIT token",
            PLAIN,
            Interest,
            LinkFields { pit_token: token, ..fields() },
            "6415 6204AABBCCDD 500D 050B07030801410A0401020304",
        ),
        (
            "Nack with reason",
            PLAIN,
            Nack,
            LinkFields { nack: Some(NackReason::NO_ROUTE), ..fields() },
            "6418 FD032005FD03210196 500D 050B07030801410A0401020304",
        ),
        ("Nack without reason", PLAIN, Nack, fields(), "6413 FD032000 500D 050B07030801410A0401020304"),
        (
            "local fields on",
            local,
            Data,
            LinkFields { incoming_face_id: Some(FaceId(254)), ..fields() },
            "640E FD032C01FE 5007 06050703080141",
        ),
        (
            "local fields off",
            PLAIN,
            Data,
            LinkFields { incoming_face_id: Some(FaceId(254)), ..fields() },
            "0605 0703080141",
        ),
        (
            "CachePolicy",
            PLAIN,
            Data,
            LinkFields { no_cache: true, ..fields() },
            "6412 FD033405FD03350101 5007 06050703080141",
        ),
        (
            "self-learning on",
            learning,
            Interest,
            LinkFields { non_discovery: true, ..fields() },
            "6413 FD034C00 500D 050B07030801410A0401020304",
        ),
        (
            "announcement",
            learning,
            Data,
            LinkFields { announcement: announcement(), ..fields() },
            "6410 FD035003060107 5007 06050703080141",
        ),
        (
            "all fields, on a plain face",
            PLAIN,
            Interest,
            everything(),
            "641A 6204AABBCCDD FD03400103 500D 050B07030801410A0401020304",
        ),
        (
            "all fields, on a local face",
            local,
            Interest,
            everything(),
            "6420 6204AABBCCDD FD032C02012C FD03400103 500D 050B07030801410A0401020304",
        ),
        ("no header needed on a datagram link", DATAGRAM, Interest, fields(), "050B 0703080141 0A0401020304"),
    ];
    for (what, options, kind, fields, expected) in table {
        let mut bench = Bench::new(options);
        let packet = hex(if kind == Data { DATA } else { INTEREST });
        let frames = bench.send_with(kind, &packet, fields, 0).expect(what);
        assert_eq!(frames, [hex(expected)], "{what}");
        let sent = &bench.counters().sent;
        assert_eq!(sent.kind(kind).packets.get(), 1, "{what}");
        assert_eq!(sent.kind(kind).bytes.get() as usize, packet.len(), "{what}");
        assert_eq!((sent.frames.get(), sent.bytes.get() as usize), (1, frames[0].len()));
    }
}

#[test]
fn the_header_goes_into_the_headroom_and_a_long_one_into_a_new_buffer() {
    let mut bench = Bench::new(LinkOptions { self_learning: true, ..PLAIN });
    for announcement_bytes in [0, 90, 200] {
        let announcement = data_with(announcement_bytes, 1);
        let fields = LinkFields { announcement: Some(bench.buffer(&announcement)), ..fields() };
        let packet = data_with(500, 2);
        let frames = bench.send_with(PacketKind::Data, &packet, fields, 0).expect("sent");
        let decoded = LpPacket::decode(&frames[0]).expect("decodes");
        assert_eq!(decoded.prefix_announcement, Some(&announcement[..]));
        assert_eq!(decoded.fragment, Some(&packet[..]));
    }
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn an_interest_without_room_for_the_token_goes_without_it() {
    let mut bench = Bench::new(PLAIN);
    let parameters = vec![7; 8742];
    let builder = InterestBuilder::new("/big".parse::<Name>().expect("a name")).nonce(1);
    let interest = builder.application_parameters(parameters).build().expect("an Interest");
    assert!((8795..=8800).contains(&interest.len()), "{}", interest.len());
    let fields = LinkFields { pit_token: PitToken::from_slice(b"12345678").expect("a token"), ..fields() };
    let frames = bench.send_with(PacketKind::Interest, &interest, fields, 0).expect("sent");
    assert_eq!(frames, [interest]);
}

#[test]
fn a_stream_carries_whole_packets_up_to_the_limit() {
    let mut bench = Bench::new(LinkOptions { mtu_bytes: 1500, ..PLAIN });
    let largest = data_with(8796, 0);
    assert_eq!(largest.len(), 8800);
    assert_eq!(bench.send(PacketKind::Data, &largest).expect("fits"), std::slice::from_ref(&largest));
    let marked = LinkFields { congestion_mark: 1, ..fields() };
    let refused = bench.send_with(PacketKind::Data, &largest, marked, 0);
    assert_eq!(refused, Err(LinkDrop::PacketTooLong));
    assert_eq!(bench.drops(LinkDrop::PacketTooLong), 1);
    assert_eq!(bench.counters().sent.data.packets.get(), 1);
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn an_empty_pool_drops_the_packet_and_leaves_nothing_behind() {
    let mut bench = Bench::with_pool(LinkOptions { mtu_bytes: 500, ..DATAGRAM }, BufferPool::new(2, 2));
    // The packet takes one large buffer; its 18 fragments would need more than the three that are left.
    let refused = bench.send(PacketKind::Data, &data_with(8000, 0));
    assert_eq!(refused, Err(LinkDrop::NoBuffer));
    assert_eq!(bench.pool.in_use(), 0);
    assert_eq!(bench.counters().sent.frames.get(), 0);
}

fn marks(bench: &mut Bench, at_ms: u64, queue_bytes: usize, carried: u64) -> Option<u64> {
    bench.now = Timestamp(0).plus_ms(at_ms);
    let fields = LinkFields { congestion_mark: carried, ..fields() };
    let frames = bench.send_with(PacketKind::Data, &hex(DATA), fields, queue_bytes).expect("sent");
    LpPacket::decode(&frames[0]).expect("decodes").congestion_mark
}

#[test]
fn a_long_queue_marks_packets_and_carried_marks_stay() {
    let mut bench = Bench::new(LinkOptions { congestion_marking: true, ..PLAIN });
    assert_eq!(marks(&mut bench, 0, 65_537, 0), None);
    assert_eq!(marks(&mut bench, 99, 65_537, 0), None);
    assert_eq!(marks(&mut bench, 100, 65_537, 0), Some(1));
    assert_eq!(marks(&mut bench, 101, 65_537, 0), None);
    assert_eq!(marks(&mut bench, 171, 65_537, 5), Some(5));
    assert_eq!(bench.counters().congestion_marks.get(), 1);
    assert_eq!(marks(&mut bench, 300, 65_536, 0), None);
    assert_eq!(marks(&mut bench, 301, 65_537, 0), None);
    bench.service.update(PLAIN);
    assert_eq!(marks(&mut bench, 900, 1 << 30, 0), None);
    assert_eq!(marks(&mut bench, 900, 0, 7), Some(7));
}
