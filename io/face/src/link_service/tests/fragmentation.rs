//! Tests of fragmentation and reassembly: byte tables, and every rule on fragments.

use namehop_wire::lp::{NackReason, PitToken};

use super::*;

fn small_mtu(mtu_bytes: u16) -> LinkOptions {
    LinkOptions { mtu_bytes, ..DATAGRAM }
}

fn fragment(sequence: u64, index: u64, count: u64, payload: &[u8]) -> Vec<u8> {
    let header =
        LpHeader { sequence: Some(sequence), frag_index: Some(index), frag_count: Some(count), ..LpHeader::default() };
    encode_packet(&header, Some(payload))
}

#[test]
fn fragments_are_written_byte_for_byte() {
    let mut bench = Bench::new(small_mtu(64));
    let packet = data_with(60, 0);
    let fields = LinkFields { pit_token: PitToken::from_slice(&[0xAA]).expect("token"), ..LinkFields::default() };
    let frames = bench.send_with(PacketKind::Data, &packet, fields, 0).expect("sent");
    // Reserved: 4 for both TYPE and LENGTH, 10 Sequence, 4 FragIndex, 4 FragCount, 3 PitToken in fragment 0.
    assert_eq!(frames.len(), 2);
    let mut first = hex("643C 51080000000000001000 520100 530102 6201AA 5027");
    first.extend(&packet[..39]);
    assert_eq!(frames[0], first);
    let mut second = hex("6429 51080000000000001001 520101 530102 5017");
    second.extend(&packet[39..]);
    assert_eq!(frames[1], second);
    assert_eq!(bench.counters().sent.frames.get(), 2);
    assert_eq!(bench.counters().sent.data.packets.get(), 1);

    // The next packet continues the Sequence numbers.
    let frames = bench.send(PacketKind::Data, &data_with(100, 0)).expect("sent");
    assert_eq!(LpPacket::decode(&frames[0]).expect("decodes").sequence, Some(0x1002));
}

#[test]
fn a_packet_is_cut_only_when_it_must_be() {
    let packet = data_with(62, 0);
    for (mtu, count) in [(64, 1), (63, 2)] {
        let mut bench = Bench::new(small_mtu(mtu));
        let frames = bench.send(PacketKind::Data, &packet).expect("sent");
        assert_eq!(frames.len(), count, "MTU {mtu}");
    }
}

#[test]
fn the_largest_packet_crosses_the_smallest_mtu() {
    for options in [small_mtu(64), LinkOptions { mtu_bytes: 64, ..RELIABLE }] {
        let mut sender = Bench::new(options);
        let mut receiver = Bench::new(options);
        let packet = data_with(8796, 9);
        let fields = LinkFields { pit_token: PitToken::from_slice(&[5; 10]).expect("token"), ..LinkFields::default() };
        let frames = sender.send_with(PacketKind::Data, &packet, fields, 0).expect("sent");
        assert!(frames.len() as u64 <= MAX_FRAGMENTS);
        let mut packets = Vec::new();
        for frame in &frames {
            assert!(frame.len() <= 64);
            packets.extend(receiver.receive(frame).expect("accepted"));
        }
        assert_eq!(packets.len(), 1);
        assert_eq!(packets[0].buffer.bytes(), packet);
        assert_eq!(packets[0].fields.pit_token.as_slice(), [5; 10]);
    }
}

#[test]
fn what_cannot_be_sent_is_dropped_by_name() {
    let mut bench = Bench::new(LinkOptions { mtu_bytes: 64, ..RELIABLE });
    let fields = LinkFields { pit_token: PitToken::from_slice(&[5; 32]).expect("token"), ..LinkFields::default() };
    let refused = bench.send_with(PacketKind::Data, &data_with(100, 0), fields, 0);
    assert_eq!(refused, Err(LinkDrop::HeaderTooLong));

    let mut bench = Bench::new(small_mtu(30));
    let refused = bench.send(PacketKind::Data, &data_with(8000, 0));
    assert_eq!(refused, Err(LinkDrop::TooManyFragments));
    let mut bench = Bench::new(small_mtu(5));
    let refused = bench.send(PacketKind::Data, &data_with(8000, 0));
    assert_eq!(refused, Err(LinkDrop::HeaderTooLong));
}

#[test]
fn bad_fragments_are_dropped_by_name_and_the_partial_packet_stays() {
    let packet = hex(INTEREST);
    let (first, rest) = packet.split_at(5);
    let without_sequence =
        encode_packet(&LpHeader { frag_index: Some(1), frag_count: Some(2), ..LpHeader::default() }, Some(rest));
    let table = [
        ("FragIndex = FragCount", fragment(12, 2, 2, rest), LinkDrop::FragIndexOutOfRange),
        ("FragCount 0", fragment(10, 0, 0, rest), LinkDrop::FragIndexOutOfRange),
        ("FragCount 401", fragment(11, 1, 401, rest), LinkDrop::TooManyFragments),
        ("huge numbers", fragment(1, u64::MAX - 1, u64::MAX, rest), LinkDrop::TooManyFragments),
        ("no Sequence", without_sequence, LinkDrop::MissingSequence),
        ("no payload", fragment(11, 1, 2, &[]), LinkDrop::EmptyFragment),
        ("another FragCount", fragment(11, 1, 3, rest), LinkDrop::FragCountMismatch),
        ("the same FragIndex", fragment(10, 0, 2, first), LinkDrop::DuplicateFragment),
    ];
    for (what, bad, reason) in table {
        let mut bench = Bench::new(DATAGRAM);
        assert!(bench.receive(&fragment(10, 0, 2, first)).expect("first").is_empty());
        assert_eq!(bench.receive(&bad).err(), Some(reason), "{what}");
        assert_eq!(bench.partial_packets(), 1, "{what}");
        let packets = bench.receive(&fragment(11, 1, 2, rest)).expect("last");
        assert_eq!(packets[0].buffer.bytes(), packet, "{what}");
        drop(packets);
        assert_eq!((bench.partial_packets(), bench.pool.in_use()), (0, 0));
        assert_eq!(bench.next_deadline(), Timestamp::NEVER);
    }
}

#[test]
fn fragments_of_different_peers_and_messages_do_not_mix() {
    let mut bench = Bench::new(DATAGRAM);
    let packets = [hex(INTEREST), data_with(11, 3), data_with(11, 4)];
    let from = |which: usize| if which == 1 { 77 } else { 5 };
    let first = |which: usize| if which == 2 { u64::MAX } else { 500 };
    for (which, packet) in packets.iter().enumerate() {
        let bytes = fragment(first(which), 0, 2, &packet[..6]);
        assert!(bench.receive_from(from(which), &bytes).expect("first").is_empty());
    }
    assert_eq!(bench.partial_packets(), 3);
    for which in [2, 0, 1] {
        let bytes = fragment(first(which).wrapping_add(1), 1, 2, &packets[which][6..]);
        let out = bench.receive_from(from(which), &bytes).expect("second");
        assert_eq!(out[0].buffer.bytes(), packets[which]);
    }
}

#[test]
fn headers_count_on_fragment_0_only() {
    let packet = hex(INTEREST);
    let header = |index: u64, mark| LpHeader {
        sequence: Some(40 + index),
        frag_index: Some(index),
        frag_count: Some(2),
        congestion_mark: Some(mark),
        nack: (index == 0).then_some(NackReason::CONGESTION),
        next_hop_face_id: (index == 1).then_some(9),
        ..LpHeader::default()
    };
    let mut bench = Bench::new(DATAGRAM);
    let second = encode_packet(&header(1, 8), Some(&packet[4..]));
    assert!(bench.receive(&second).expect("the second fragment is accepted first").is_empty());
    let first = encode_packet(&header(0, 6), Some(&packet[..4]));
    let out = bench.receive(&first).expect("first");
    assert_eq!(out[0].buffer.bytes(), packet);
    assert_eq!(out[0].fields.congestion_mark, 6);
    assert_eq!(out[0].fields.nack, Some(NackReason::CONGESTION));
    assert_eq!(bench.counters().received.nacks.packets.get(), 1);
}

#[test]
fn rules_hold_for_the_whole_packet_after_reassembly() {
    let packet = data_with(30, 0);
    let mut bench = Bench::new(DATAGRAM);
    let header = LpHeader {
        sequence: Some(1),
        frag_index: Some(0),
        frag_count: Some(2),
        nack: Some(NackReason::NONE),
        ..LpHeader::default()
    };
    bench.receive(&encode_packet(&header, Some(&packet[..9]))).expect("first");
    let result = bench.receive(&fragment(2, 1, 2, &packet[9..]));
    assert_eq!(result.err(), Some(LinkDrop::NackOnData));
    bench.receive(&fragment(10, 0, 2, &packet[..9])).expect("first");
    let result = bench.receive(&fragment(11, 1, 2, &packet[8..]));
    assert_eq!(result.err(), Some(LinkDrop::NotInterestOrData));
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn a_partial_packet_lives_500_ms_after_its_newest_fragment() {
    let mut bench = Bench::new(DATAGRAM);
    let packet = data_with(30, 0);
    bench.receive(&fragment(1, 0, 3, &packet[..10])).expect("fragment 0");
    assert_eq!(bench.next_deadline(), Timestamp(0).plus_ms(500));
    bench.tick_at_ms(499);
    bench.receive(&fragment(2, 1, 3, &packet[10..20])).expect("fragment 1");
    bench.tick_at_ms(998);
    assert_eq!(bench.partial_packets(), 1);
    assert_eq!(bench.next_deadline(), Timestamp(0).plus_ms(999));
    bench.tick_at_ms(999);
    assert_eq!((bench.partial_packets(), bench.pool.in_use()), (0, 0));
    assert_eq!(bench.drops(LinkDrop::ReassemblyTimeout), 1);
    assert_eq!(bench.next_deadline(), Timestamp::NEVER);
    assert!(bench.receive(&fragment(3, 2, 3, &packet[20..])).expect("2").is_empty());
}

#[test]
fn the_partial_packet_that_waited_longest_makes_room() {
    let mut bench = Bench::new(DATAGRAM);
    let packet = data_with(30, 0);
    for message in 0..MAX_PARTIAL_PACKETS as u64 {
        bench.now = Timestamp(1000 + message);
        bench.receive(&fragment(message * 10, 0, 3, &packet[..10])).expect("first");
    }
    // Message 0 is refreshed, so message 1 is now the oldest.
    bench.now = Timestamp(5000);
    bench.receive(&fragment(1, 1, 3, &packet[10..20])).expect("another fragment of message 0");
    bench.receive(&fragment(10_000, 0, 2, &packet[..10])).expect("a fragment above the limit evicts a partial packet");
    assert_eq!(bench.partial_packets(), MAX_PARTIAL_PACKETS);
    assert_eq!(bench.drops(LinkDrop::ReassemblyEvicted), 1);
    assert_eq!(bench.receive(&fragment(2, 2, 3, &packet[20..])).expect("message 0").len(), 1);
    bench.receive(&fragment(11, 1, 3, &packet[10..20])).expect("the reassembly starts again");
    assert!(bench.receive(&fragment(12, 2, 3, &packet[20..])).expect("lacks 0").is_empty());
    assert_eq!(
        bench.receive(&fragment(10_001, 1, 2, &packet[10..])).expect("the last fragment of the newest message").len(),
        1
    );
    assert_eq!(bench.pool.in_use(), bench.partial_packets());
}

#[test]
fn more_than_the_largest_packet_is_not_gathered() {
    let mut bench = Bench::new(DATAGRAM);
    let payload = [0; 4000];
    bench.receive(&fragment(1, 0, 3, &payload)).expect("fragment 0");
    bench.receive(&fragment(2, 1, 3, &payload)).expect("fragment 1");
    let result = bench.receive(&fragment(3, 2, 3, &payload));
    assert_eq!(result.err(), Some(LinkDrop::ReassembledTooLong));
    assert_eq!((bench.partial_packets(), bench.pool.in_use()), (0, 0));
}

#[test]
fn without_buffers_fragments_are_dropped() {
    let mut bench = Bench::with_pool(DATAGRAM, BufferPool::new(4, 1));
    let packet = data_with(30, 0);
    let large = [0; 1500];
    bench.receive(&fragment(20, 0, 3, &large)).expect("the fragment uses the large buffer");
    let result = bench.receive(&fragment(30, 0, 3, &large));
    assert_eq!(result.err(), Some(LinkDrop::NoBuffer));
    // A small packet takes a small buffer, and a second one to reorder its fragments.
    bench.receive(&fragment(1, 1, 2, &packet[10..])).expect("a small fragment");
    assert_eq!(bench.receive(&fragment(0, 0, 2, &packet[..10])).expect("complete").len(), 1);
    // A packet that becomes larger than estimated from its first received fragment needs a larger buffer.
    bench.receive(&fragment(41, 1, 2, &large[..100])).expect("a small fragment");
    assert_eq!(bench.receive(&fragment(40, 0, 2, &[0; 2000])).err(), Some(LinkDrop::NoBuffer));
    assert_eq!(bench.partial_packets(), 1);
}

#[test]
fn a_partial_packet_grows_when_its_shortest_fragment_comes_first() {
    let packet = data_with(8000, 7);
    let mut bench = Bench::new(DATAGRAM);
    bench.receive(&fragment(2, 2, 3, &packet[8000..])).expect("last");
    bench.receive(&fragment(1, 1, 3, &packet[4000..8000])).expect("the middle fragment");
    let out = bench.receive(&fragment(0, 0, 3, &packet[..4000])).expect("first");
    assert_eq!(out[0].buffer.bytes(), packet);
    drop(out);
    assert_eq!((bench.partial_packets(), bench.pool.in_use()), (0, 0));
}

/// Several faces with one reassembler.
struct SharedBench {
    pool: BufferPool,
    now: Timestamp,
    services: Vec<LinkService>,
    reassembler: Reassembler,
}

impl SharedBench {
    fn new(faces: usize, limit: usize) -> Self {
        let table = FaceTable::new();
        let services = (0..faces).map(|_| {
            let face = table.insert(FaceParams::new(FaceUri::Null, FaceUri::Null)).expect("face");
            let mut service = LinkService::with_first_sequence(face, 0, 0);
            service.update(DATAGRAM);
            service
        });
        SharedBench {
            pool: BufferPool::new(100, 100),
            now: Timestamp(0),
            services: services.collect(),
            reassembler: Reassembler::new(0, limit),
        }
    }

    /// Returns the number of packets that this fragment completes.
    fn receive(&mut self, face: usize, sequence: u64, index: u64, payload: &[u8]) -> usize {
        self.now.0 += 1;
        let frame = self.pool.copy_of(&fragment(sequence, index, 2, payload)).expect("buffer");
        let mut out = IncomingBurst::default();
        let result = self.services[face].receive(self.now, frame, 0, &self.pool, &mut self.reassembler, &mut out);
        result.expect("accepted");
        out.in_order().len()
    }

    fn waiting(&self) -> Vec<usize> {
        self.services.iter().map(|service| self.reassembler.waiting_of(service.face().id())).collect()
    }

    fn evicted(&self) -> Vec<u64> {
        let drops = self.services.iter().map(|service| &service.counters().link_drops);
        drops.map(|drops| drops.get(LinkDrop::ReassemblyEvicted)).collect()
    }
}

#[test]
fn a_flood_of_first_fragments_costs_only_the_peers_that_send_it() {
    let mut bench = SharedBench::new(5, 20);
    let packet = data_with(30, 0);
    let modest = 4;
    let mut received = 0;
    for message in 0..100 {
        for flooder in 0..modest {
            bench.receive(flooder, message * 10, 0, &packet[..10]);
        }
        if message % 4 == 0 {
            bench.receive(modest, message * 10, 0, &packet[..10]);
            bench.receive(modest, message * 10 + 5, 0, &packet[..10]);
        } else if message % 4 == 3 {
            received += bench.receive(modest, (message - 3) * 10 + 1, 1, &packet[10..]);
            received += bench.receive(modest, (message - 3) * 10 + 6, 1, &packet[10..]);
        }
        assert!(bench.reassembler.waiting() <= 20);
    }
    assert_eq!(received, 50, "no packet of the modest peer may be lost, whatever the four others send");
    assert_eq!(bench.evicted()[modest], 0);
    assert_eq!(bench.waiting()[modest], 0);
    let evicted: u64 = bench.evicted().iter().sum();
    assert_eq!(
        evicted + bench.reassembler.waiting() as u64,
        400,
        "every lost packet must be counted on its ingress face"
    );
}

#[test]
fn with_more_peers_than_slots_the_oldest_partial_packet_is_evicted() {
    let mut bench = SharedBench::new(4, 3);
    let packet = data_with(30, 0);
    for face in 0..4 {
        bench.receive(face, 10, 0, &packet[..10]);
    }
    assert_eq!((bench.waiting(), bench.evicted()), (vec![0, 1, 1, 1], vec![1, 0, 0, 0]));
    assert_eq!(bench.receive(3, 11, 1, &packet[10..]), 1, "consecutive fragments must be reassembled");
    // One slot is free. Then a face with the most slots evicts its own oldest packet.
    bench.receive(1, 20, 0, &packet[..10]);
    bench.receive(1, 30, 0, &packet[..10]);
    assert_eq!((bench.waiting(), bench.evicted()), (vec![0, 2, 1, 0], vec![1, 1, 0, 0]));
}

#[test]
fn removed_faces_and_timeouts_release_slots_and_buffers() {
    let mut bench = SharedBench::new(2, 10);
    let packet = data_with(30, 0);
    for message in 0..3 {
        bench.receive(0, message * 10, 0, &packet[..10]);
    }
    bench.receive(1, 10, 0, &packet[..10]);
    bench.reassembler.forget(bench.services[0].face().id());
    assert_eq!((bench.waiting(), bench.pool.in_use()), (vec![0, 1], 1));
    assert_eq!(bench.services[0].counters().link_drops.get(LinkDrop::LinkDown), 3);
    bench.reassembler.expire(bench.now.plus_ms(REASSEMBLY_TIMEOUT_MS));
    assert_eq!((bench.waiting(), bench.pool.in_use()), (vec![0, 0], 0));
    assert_eq!(bench.services[1].counters().link_drops.get(LinkDrop::ReassemblyTimeout), 1);
    assert_eq!(bench.reassembler.next_deadline(), Timestamp::NEVER);
}
