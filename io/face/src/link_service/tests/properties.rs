//! Property tests with arbitrary sizes, losses and bytes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use namehop_wire::lp::NackReason;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// What the link does with a frame: its position in the order of arrival, and the number of copies that arrive.
type Fate = (u16, u8);

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let copies = prop_oneof![1 => Just(0_u8), 30 => Just(1), 3 => Just(2)];
    proptest::collection::vec((any::<u16>(), copies), 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn reassembly_gives_back_the_packet_or_nothing(
        mtu_bytes in prop_oneof![64_u16..200, 64_u16..=8800],
        content_bytes in prop_oneof![0_usize..300, 0_usize..=8796],
        token in proptest::collection::vec(any::<u8>(), 0..8),
        in_order in any::<bool>(),
        fates in fates(),
    ) {
        let options = LinkOptions { mtu_bytes, ..DATAGRAM };
        let mut sender = Bench::new(options);
        let mut receiver = Bench::new(options);
        let packet = data_with(content_bytes, 7);
        let pit_token = PitToken::from_slice(&token).expect("short token");
        let fields = LinkFields { pit_token, congestion_mark: 1, ..LinkFields::default() };
        let frames = sender.send_with(PacketKind::Data, &packet, fields, 0).expect("sent");
        prop_assert!(frames.iter().all(|frame| frame.len() <= mtu_bytes.into()));

        let fate = |index: usize| fates[index % fates.len()];
        let mut arrivals: Vec<usize> = (0..frames.len())
            .flat_map(|index| std::iter::repeat_n(index, usize::from(fate(index).1)))
            .collect();
        if !in_order {
            arrivals.sort_by_key(|&index| fate(index).0);
        }
        let mut packets = Vec::new();
        for index in arrivals {
            // Duplicates are refused by name, or begin a partial packet that never completes.
            if let Ok(out) = receiver.receive(&frames[index]) {
                packets.extend(out);
            }
        }
        let lost = (0..frames.len()).any(|index| fate(index).1 == 0);
        let most = if frames.len() == 1 { 2 } else { 1 + usize::from(!lost) };
        prop_assert!(packets.len() <= most);
        prop_assert_eq!(packets.is_empty(), lost);
        for received in &packets {
            prop_assert_eq!(received.buffer.bytes(), &packet[..]);
            prop_assert_eq!(received.fields.pit_token, pit_token);
            prop_assert_eq!(received.fields.congestion_mark, 1);
        }
        drop(packets);
        receiver.tick_at_ms(501);
        prop_assert_eq!(receiver.pool.in_use() + sender.pool.in_use(), 0);
    }
}

/// Time in nanoseconds, serial number, receiving end, bytes.
type Arrival = (u64, usize, usize, Vec<u8>);

/// Two ends and the frames in flight between them, in virtual time.
struct Simulation {
    ends: [Bench; 2],
    under_way: BinaryHeap<Reverse<Arrival>>,
    serial: usize,
    /// Delay in microseconds and whether the frame is lost, used in turn.
    disturbances: Vec<(u32, bool)>,
    /// Number of losses of the frame with this Sequence from this end.
    losses: HashMap<(usize, u64), u8>,
    /// Whether reliability can repair every loss: frames stay in order, no frame is lost more often than it can be
    /// retransmitted, and acknowledgements are not lost. A late frame would look lost until it is abandoned.
    is_repairable: bool,
    delivered: HashMap<(usize, Vec<u8>), usize>,
}

impl Simulation {
    fn transmit(&mut self, from: usize, frames: Vec<Vec<u8>>) {
        for frame in frames {
            let (mut delay_us, mut lost) = self.disturbances[self.serial % self.disturbances.len()];
            self.serial += 1;
            if self.is_repairable {
                delay_us = 5000;
            }
            if self.is_repairable && lost {
                let packet = LpPacket::decode(&frame).expect("decodes");
                lost = match packet.sequence.filter(|_| packet.acks().len() == 0) {
                    None => false,
                    Some(sequence) => {
                        let losses = self.losses.entry((from, sequence)).or_default();
                        *losses += 1;
                        *losses <= MAX_RETRANSMISSIONS
                    }
                };
            }
            if !lost {
                let arrival = self.ends[from].now.0 + u64::from(delay_us) * 1000;
                let event = (arrival, self.serial, 1 - from, frame);
                self.under_way.push(Reverse(event));
            }
        }
    }

    fn run_until(&mut self, end_of_time: Timestamp) {
        loop {
            let arrival = self.under_way.peek().map_or(u64::MAX, |event| event.0.0);
            let timers = [0, 1].map(|end| self.ends[end].next_deadline().0);
            let next = arrival.min(timers[0]).min(timers[1]);
            if next > end_of_time.0 {
                return;
            }
            for end in &mut self.ends {
                end.now = end.now.max(Timestamp(next));
            }
            if arrival == next {
                let Some(Reverse((_, _, end, frame))) = self.under_way.pop() else {
                    return;
                };
                for packet in self.ends[end].receive(&frame).unwrap_or_default() {
                    let key = (end, packet.buffer.bytes().to_vec());
                    *self.delivered.entry(key).or_default() += 1;
                }
            }
            for end in 0..2 {
                let frames = self.ends[end].tick();
                self.transmit(end, frames);
            }
        }
    }
}

fn disturbances() -> impl Strategy<Value = Vec<(u32, bool)>> {
    let lost = prop_oneof![3 => Just(false), 1 => Just(true)];
    proptest::collection::vec((100_u32..30_000, lost), 7..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn reliability_delivers_or_reports(
        disturbances in disturbances(),
        packets in proptest::collection::vec((any::<bool>(), any::<bool>(), 3_usize..600, 0_u64..4000), 1..60),
        mtu_bytes in 80_u16..400,
        is_repairable in any::<bool>(),
    ) {
        let options = LinkOptions { mtu_bytes, ..RELIABLE };
        let mut simulation = Simulation {
            ends: [Bench::new(options), Bench::new(options)],
            under_way: BinaryHeap::new(),
            serial: 0,
            disturbances,
            losses: HashMap::new(),
            is_repairable,
            delivered: HashMap::new(),
        };
        let mut sent = Vec::new();
        for (number, (end, is_interest, bytes, wait_us)) in packets.into_iter().enumerate() {
            let (end, kind) = (usize::from(end), if is_interest { PacketKind::Interest } else { PacketKind::Data });
            let mut packet = data_with(bytes, 0);
            let last = packet.len() - 1;
            packet[last] = number as u8;
            packet[0] = if is_interest { 5 } else { 6 };
            let frames = simulation.ends[end].send(kind, &packet).expect("sent");
            let is_fragmented = frames.len() > 1;
            simulation.transmit(end, frames);
            sent.push((end, is_interest, packet, is_fragmented));
            let pause = Timestamp(simulation.ends[0].now.0 + wait_us * 1000);
            simulation.run_until(pause);
        }
        simulation.run_until(Timestamp(u64::MAX - 1));

        for (end, is_interest, packet, is_fragmented) in &sent {
            let (here, there) = (&simulation.ends[*end], &simulation.ends[1 - end]);
            let count = simulation.delivered.get(&(1 - end, packet.clone())).copied().unwrap_or(0);
            let reported = here.dropped.iter().any(|dropped| dropped.buffer.bytes() == packet);
            let given_up = here.drops(LinkDrop::RetransmissionsExhausted);
            // The peer may drop a partial packet before a lost fragment is retransmitted: it waits for half a second,
            // but the first time-out takes a whole one.
            let timed_out = *is_fragmented && there.drops(LinkDrop::ReassemblyTimeout) > 0;
            prop_assert!(count > 0 || given_up > 0 || timed_out, "a packet was lost without a reason");
            prop_assert!(!is_interest || count > 0 || reported || timed_out, "an Interest was lost without a report");
            prop_assert!(*is_interest || !reported);
            if is_repairable {
                prop_assert!(count == 1 || count == 0 && timed_out, "delivered {} times", count);
                prop_assert_eq!(given_up, 0);
            }
        }
        for end in &mut simulation.ends {
            prop_assert_eq!(end.service.unacknowledged_frames(), 0);
            prop_assert_eq!(end.next_deadline(), Timestamp::NEVER);
            end.dropped.clear();
            prop_assert_eq!(end.pool.in_use(), 0);
        }
    }
}

pub(super) fn option_mix() -> impl Strategy<Value = LinkOptions> {
    (any::<[bool; 5]>(), 64_u16..9000).prop_map(
        |([is_datagram, local_fields, reliability, congestion_marking, self_learning], mtu_bytes)| LinkOptions {
            mtu_bytes,
            is_datagram,
            local_fields,
            reliability,
            congestion_marking,
            self_learning,
            ..PLAIN
        },
    )
}

/// Frames that are nearly correct: random fields around a random fragment, with some bytes changed.
pub(super) fn nearly_frame() -> impl Strategy<Value = Vec<u8>> {
    let numbers = (
        proptest::option::of(0_u64..8),
        proptest::option::of(0_u64..5),
        proptest::option::of(0_u64..5),
        proptest::option::of(0_u64..3),
        proptest::option::of(0_u64..20),
        proptest::collection::vec(0_u64..20, 0..4),
    );
    let rest = (
        any::<[bool; 4]>(),
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(Some),
            (0_usize..300).prop_map(|bytes| Some(data_with(bytes, 1))),
            Just(Some(hex(INTEREST))),
            Just(None),
        ],
        proptest::collection::vec((any::<Index>(), any::<u8>()), 0..3),
    );
    (numbers, rest).prop_map(|((sequence, frag_index, frag_count, mark, tx_sequence, acks), rest)| {
        let ([next_hop, nack, non_discovery, announce], fragment, changes) = rest;
        let header = LpHeader {
            sequence,
            frag_index,
            frag_count,
            congestion_mark: mark,
            tx_sequence,
            acks: &acks,
            next_hop_face_id: next_hop.then_some(5),
            nack: nack.then_some(NackReason::DUPLICATE),
            non_discovery,
            prefix_announcement: announce.then_some(&[6, 1, 0]),
            ..LpHeader::default()
        };
        let mut frame = encode_packet(&header, fragment.as_deref());
        for (offset, value) in changes {
            if !frame.is_empty() {
                let offset = offset.index(frame.len());
                frame[offset] = value;
            }
        }
        frame
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_frames_neither_panic_nor_leak(
        options in option_mix(),
        frames in proptest::collection::vec(
            prop_oneof![4 => nearly_frame(), 1 => proptest::collection::vec(any::<u8>(), 0..60)],
            0..60,
        ),
        small_pool in any::<bool>(),
        echo in any::<bool>(),
    ) {
        let pool = if small_pool { BufferPool::new(3, 2) } else { BufferPool::new(4000, 400) };
        let mut bench = Bench::with_pool(options, pool);
        for frame in &frames {
            bench.now = Timestamp(bench.now.0 + 1_000_000);
            let Some(buffer) = bench.pool.copy_of(frame) else { continue };
            let mut out = IncomingBurst::default();
            let result = bench.service.receive(bench.now, buffer, 0, &bench.pool, &mut bench.reassembler, &mut out);
            let out = out.in_order();
            prop_assert!(result.is_ok() || out.is_empty());
            let mut sent = Vec::new();
            for packet in out.drain(..).filter(|_| echo) {
                let kind = match (packet.buffer.bytes()[0], packet.fields.nack) {
                    (6, _) => PacketKind::Data,
                    (_, Some(_)) => PacketKind::Nack,
                    _ => PacketKind::Interest,
                };
                let Incoming { face, buffer, fields } = packet;
                let packet = Outgoing { face, kind, buffer, fields };
                let _ = bench.service.send(bench.now, packet, 100_000, &bench.pool, &mut sent);
            }
            for frame in &sent {
                prop_assert!(LpPacket::decode(frame.bytes()).is_ok());
                prop_assert!(!options.is_datagram || frame.bytes().len() <= options.mtu_bytes.into());
            }
            drop(sent);
            bench.tick();
        }
        let mut rounds = 0;
        while bench.next_deadline() != Timestamp::NEVER {
            bench.now = bench.now.max(bench.next_deadline());
            bench.tick();
            rounds += 1;
            prop_assert!(rounds < 10_000, "the links must become idle");
        }
        bench.dropped.clear();
        prop_assert_eq!(bench.pool.in_use(), 0);
    }
}
