//! Tests that the fast path of nearly all packets has the same result as the general one, in both directions.

use proptest::prelude::*;

use super::properties::{nearly_frame, option_mix};
use super::*;

/// Two link services in the same state, one for each path.
struct Ways {
    shorter: Bench,
    longer: Bench,
}

impl Ways {
    fn new(options: LinkOptions) -> Ways {
        let pool = BufferPool::new(4000, 400);
        Ways { shorter: Bench::with_pool(options, pool.clone()), longer: Bench::with_pool(options, pool) }
    }

    fn wait(&mut self, ms: u64) {
        self.shorter.now = self.shorter.now.plus_ms(ms);
        self.longer.now = self.shorter.now;
    }

    /// Returns the results of both paths, with all counters, for comparison.
    fn receive(&mut self, frame: &[u8]) -> [(Vec<Incoming>, String); 2] {
        let Ways { shorter, longer } = self;
        let (mut given, mut given_longer) = (IncomingBurst::default(), IncomingBurst::default());
        let result = {
            let buffer = shorter.buffer(frame);
            shorter.service.receive(shorter.now, buffer, 0, &shorter.pool, &mut shorter.reassembler, &mut given)
        };
        let buffer = longer.buffer(frame);
        let result_longer = longer.service.receive_other(
            longer.now,
            buffer,
            0,
            &longer.pool,
            &mut longer.reassembler,
            &mut given_longer,
        );
        let (given, given_longer) = (std::mem::take(given.in_order()), std::mem::take(given_longer.in_order()));
        let seen = |given: &[Incoming], result, bench: &Bench| {
            let packets: Vec<_> = given.iter().map(|packet| (packet.buffer.bytes(), &packet.fields)).collect();
            format!("{packets:?} {result:?} {:?}", bench.counters())
        };
        let texts = [seen(&given, result, shorter), seen(&given_longer, result_longer, longer)];
        let [text, text_longer] = texts;
        [(given, text), (given_longer, text_longer)]
    }

    fn send(&mut self, packets: [Outgoing; 2], queue_bytes: usize) -> [String; 2] {
        let Ways { shorter, longer } = self;
        let [packet, mut packet_longer] = packets;
        let (mut frames, mut frames_longer) = (Vec::new(), Vec::new());
        let result = shorter.service.send(shorter.now, packet, queue_bytes, &shorter.pool, &mut frames);
        longer.service.mark(longer.now, &mut packet_longer.fields, queue_bytes);
        let result_longer = longer.service.send_other(longer.now, packet_longer, &longer.pool, &mut frames_longer);
        let seen = |frames: &[PacketBuffer], result, bench: &Bench| {
            let frames: Vec<_> = frames.iter().map(PacketBuffer::bytes).collect();
            format!("{frames:?} {result:?} {:?}", bench.counters())
        };
        [seen(&frames, result, shorter), seen(&frames_longer, result_longer, longer)]
    }
}

/// Returns the packet to send that corresponds to a received one.
fn turned_around(packet: Incoming) -> Outgoing {
    let kind = match (packet.buffer.bytes()[0], packet.fields.nack) {
        (_, Some(_)) => PacketKind::Nack,
        (6, None) => PacketKind::Data,
        _ => PacketKind::Interest,
    };
    let mut fields = packet.fields;
    fields.incoming_face_id = Some(FaceId(300));
    Outgoing { face: packet.face, kind, buffer: packet.buffer, fields }
}

/// Packets with a PIT token of any length, or bare: the cases of the fast path.
fn usual_frame() -> impl Strategy<Value = Vec<u8>> {
    let packet = prop_oneof![Just(hex(INTEREST)), (0_usize..2000).prop_map(|bytes| data_with(bytes, 3))];
    (packet, proptest::collection::vec(any::<u8>(), 0..=32)).prop_map(|(packet, token)| {
        let pit_token = PitToken::from_slice(&token).expect("at most 32 bytes");
        encode_packet(&LpHeader { pit_token, ..LpHeader::default() }, Some(&packet))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn both_ways_end_alike(
        options in option_mix(),
        frames in proptest::collection::vec(prop_oneof![usual_frame(), nearly_frame()], 1..20),
        queue_bytes in prop_oneof![Just(0), Just(100_000)],
    ) {
        let mut ways = Ways::new(options);
        for frame in &frames {
            ways.wait(60);
            let [(given, seen), (given_longer, seen_longer)] = ways.receive(frame);
            prop_assert_eq!(seen, seen_longer);
            for (packet, packet_longer) in given.into_iter().zip(given_longer) {
                let [seen, seen_longer] = ways.send([packet, packet_longer].map(turned_around), queue_bytes);
                prop_assert_eq!(seen, seen_longer);
            }
        }
    }
}
