//! Tests of link reliability, rule by rule.

use super::*;

fn decode(frame: &[u8]) -> LpPacket<'_> {
    LpPacket::decode(frame).expect("decodes")
}

fn acks_of(frame: &[u8]) -> Vec<u64> {
    decode(frame).acks().collect()
}

fn idle(acks: &[u64]) -> Vec<u8> {
    let header = LpHeader { acks, ..LpHeader::default() };
    encode_packet(&header, None)
}

fn tx_sequences(frames: &[Vec<u8>]) -> Vec<Option<u64>> {
    frames.iter().map(|frame| decode(frame).tx_sequence).collect()
}

impl Bench {
    fn send_numbered(&mut self, count: u8) -> Vec<Vec<u8>> {
        (0..count).flat_map(|seed| self.send(PacketKind::Data, &data_with(20, seed)).expect("sent")).collect()
    }

    fn acknowledge(&mut self, acks: &[u64]) {
        assert!(self.receive(&idle(acks)).expect("accepted").is_empty());
    }
}

#[test]
fn every_frame_carries_sequence_and_tx_sequence() {
    let mut bench = Bench::new(RELIABLE);
    let frames = bench.send(PacketKind::Interest, &hex(INTEREST)).expect("sent");
    let expected = "6425 51080000000000001000 FD0348080000000000000000 500D 050B07030801410A0401020304";
    assert_eq!(frames, [hex(expected)]);
    let frames = bench.send(PacketKind::Data, &hex(DATA)).expect("sent");
    let expected = "641F 51080000000000001001 FD0348080000000000000001 5007 06050703080141";
    assert_eq!(frames, [hex(expected)]);
    assert_eq!(bench.service.unacknowledged_frames(), 2);
    assert_eq!(bench.pool.in_use(), 2);
    bench.acknowledge(&[1, 0, 7]);
    assert_eq!(bench.pool.in_use(), 0);
    assert_eq!(bench.counters().acknowledged.get(), 2);
    assert_eq!(bench.next_deadline(), Timestamp::NEVER);
}

#[test]
fn received_frames_are_acknowledged_alone_after_5_ms() {
    let mut sender = Bench::new(RELIABLE);
    let mut receiver = Bench::new(RELIABLE);
    for (ms, frame) in sender.send_numbered(3).iter().enumerate() {
        receiver.now = Timestamp(0).plus_ms(ms as u64);
        assert_eq!(receiver.receive(frame).expect("accepted").len(), 1);
    }
    assert_eq!(receiver.next_deadline(), Timestamp(0).plus_ms(5));
    assert!(receiver.tick_at_ms(4).is_empty());
    let frames = receiver.tick_at_ms(5);
    let expected = "6424 FD0344080000000000000000 FD0344080000000000000001 FD0344080000000000000002";
    assert_eq!(frames, [hex(expected)]);
    assert_eq!(receiver.next_deadline(), Timestamp::NEVER);
    assert!(sender.receive(&frames[0]).expect("accepted").is_empty());
    assert_eq!(sender.service.unacknowledged_frames(), 0);
}

#[test]
fn packets_carry_acknowledgements_as_far_as_they_fit() {
    let mut sender = Bench::new(RELIABLE);
    let mut receiver = Bench::new(LinkOptions { mtu_bytes: 100, ..RELIABLE });
    for frame in sender.send_numbered(5) {
        receiver.receive(&frame).expect("accepted");
    }
    // 39 bytes of frame leave 61, of which 8 are reserved for longer lengths: four acknowledgements.
    let frames = receiver.send(PacketKind::Interest, &hex(INTEREST)).expect("sent");
    assert_eq!(acks_of(&frames[0]), [0, 1, 2, 3]);
    assert!(frames[0].len() <= 100);
    assert_eq!(decode(&frames[0]).fragment, Some(&hex(INTEREST)[..]));
    // A retransmission of the frame does not repeat them.
    let again = receiver.tick_at_ms(1000);
    assert_eq!(again.len(), 2);
    assert_eq!(acks_of(&again[0]), [] as [u64; 0]);
    assert_eq!(decode(&again[0]).tx_sequence, Some(1));
    assert_eq!(acks_of(&again[1]), [4]);
    // The last fragment of a packet carries them.
    receiver.receive(&sender.send_numbered(1)[0]).expect("accepted");
    let frames = receiver.send(PacketKind::Data, &data_with(90, 0)).expect("sent");
    assert_eq!(frames.len(), 2);
    assert_eq!((acks_of(&frames[0]).len(), acks_of(&frames[1])), (0, vec![5]));
    assert!(frames.iter().all(|frame| frame.len() <= 100));
}

#[test]
fn a_small_mtu_splits_idle_packets() {
    let mut sender = Bench::new(RELIABLE);
    let mut receiver = Bench::new(LinkOptions { mtu_bytes: 64, ..RELIABLE });
    for frame in sender.send_numbered(12) {
        receiver.receive(&frame).expect("accepted");
    }
    let frames = receiver.tick_at_ms(5);
    let acks: Vec<_> = frames.iter().map(|frame| acks_of(frame).len()).collect();
    assert_eq!(acks, [5, 5, 2]);
    assert!(frames.iter().all(|frame| frame.len() <= 64));
}

#[test]
fn three_later_acknowledgements_mean_loss() {
    let mut bench = Bench::new(RELIABLE);
    bench.send_numbered(5);
    bench.acknowledge(&[1, 2]);
    assert!(bench.tick().is_empty());
    assert!(bench.next_deadline() > bench.now);
    bench.acknowledge(&[4]);
    assert!(bench.next_deadline() <= bench.now);
    let again = bench.tick();
    assert_eq!(tx_sequences(&again), [Some(5)]);
    let lost = decode(&again[0]);
    assert_eq!((lost.sequence, lost.fragment), (Some(0x1000), Some(&data_with(20, 0)[..])));
    assert_eq!(bench.counters().retransmissions.get(), 1);
    // An acknowledgement of its old number is too late to count.
    bench.acknowledge(&[0]);
    assert_eq!(bench.service.unacknowledged_frames(), 2);
    bench.acknowledge(&[5, 3]);
    assert_eq!((bench.service.unacknowledged_frames(), bench.pool.in_use()), (0, 0));
}

#[test]
fn the_time_out_means_loss_and_backs_off() {
    let mut bench = Bench::new(RELIABLE);
    bench.send_numbered(2);
    assert_eq!(bench.next_deadline(), Timestamp(0).plus_ms(1000));
    assert!(bench.tick_at_ms(999).is_empty());
    assert_eq!(tx_sequences(&bench.tick_at_ms(1000)), [Some(2), Some(3)]);
    // These deadlines were set before the time-out doubled; later ones use the doubled time-out.
    assert_eq!(tx_sequences(&bench.tick_at_ms(2000)), [Some(4), Some(5)]);
    assert!(bench.tick_at_ms(3999).is_empty());
    assert_eq!(tx_sequences(&bench.tick_at_ms(4000)), [Some(6), Some(7)]);
}

#[test]
fn round_trips_are_measured_on_frames_sent_once() {
    let mut bench = Bench::new(RELIABLE);
    bench.send_numbered(1);
    bench.now = Timestamp(0).plus_ms(20);
    bench.acknowledge(&[0]);
    bench.send_numbered(1);
    // 20 + 4 * 10 is below the minimum.
    assert_eq!(bench.next_deadline(), Timestamp(0).plus_ms(220));
    assert_eq!(tx_sequences(&bench.tick_at_ms(220)), [Some(2)]);
    bench.now = Timestamp(0).plus_ms(419);
    bench.acknowledge(&[2]);
    bench.send_numbered(1);
    // No sample was taken from the retransmission, so the time-out stays doubled.
    assert_eq!(bench.next_deadline(), Timestamp(0).plus_ms(819));
}

#[test]
fn an_abandoned_interest_is_reported() {
    for (packet, mtu_bytes) in [(hex(INTEREST), 1500), ([&[5, 100][..], &[9; 100]].concat(), 70)] {
        let mut bench = Bench::new(LinkOptions { mtu_bytes, ..RELIABLE });
        let frames = bench.send(PacketKind::Interest, &packet).expect("sent");
        let mut resent = 0;
        while bench.next_deadline() != Timestamp::NEVER {
            bench.now = bench.next_deadline();
            resent += bench.tick().len();
        }
        assert_eq!(resent, frames.len() * usize::from(MAX_RETRANSMISSIONS));
        assert_eq!(bench.drops(LinkDrop::RetransmissionsExhausted), 1);
        assert_eq!(bench.dropped.len(), 1);
        assert_eq!(bench.dropped[0].buffer.bytes(), packet);
        assert_eq!(bench.dropped[0].face, bench.service.face().id());
        bench.dropped.clear();
        assert_eq!(bench.pool.in_use(), 0);
    }
}

#[test]
fn abandoned_data_and_nacks_are_not_reported() {
    let mut bench = Bench::new(RELIABLE);
    bench.send(PacketKind::Nack, &hex(INTEREST)).expect("sent");
    bench.send(PacketKind::Data, &hex(DATA)).expect("sent");
    while bench.next_deadline() != Timestamp::NEVER {
        bench.now = bench.next_deadline();
        bench.tick();
    }
    assert!(bench.dropped.is_empty());
    assert_eq!(bench.drops(LinkDrop::RetransmissionsExhausted), 2);
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn one_lost_fragment_takes_the_others_of_its_packet_along() {
    let mut bench = Bench::new(LinkOptions { mtu_bytes: 100, ..RELIABLE });
    let frames = bench.send(PacketKind::Data, &data_with(300, 1)).expect("sent");
    assert_eq!(tx_sequences(&frames), (0..frames.len() as u64).map(Some).collect::<Vec<_>>());
    bench.send(PacketKind::Data, &data_with(10, 2)).expect("another packet can be sent");
    let mut tries = 0;
    let mut last = frames.len() as u64;
    // Everything is retransmitted three times; the other packet is acknowledged at the end.
    while tries < 3 {
        bench.now = bench.next_deadline();
        let resent = bench.tick();
        assert_eq!(resent.len(), frames.len() + 1);
        last = decode(resent.last().expect("a retransmitted frame")).tx_sequence.expect("TxSequence");
        tries += 1;
    }
    bench.acknowledge(&[last]);
    bench.now = bench.next_deadline();
    assert!(bench.tick().is_empty());
    assert_eq!(bench.drops(LinkDrop::RetransmissionsExhausted), 1);
    assert_eq!((bench.service.unacknowledged_frames(), bench.pool.in_use()), (0, 0));
}

#[test]
fn duplicates_are_dropped_and_acknowledged_again() {
    let mut sender = Bench::new(RELIABLE);
    let mut receiver = Bench::new(RELIABLE);
    let first = sender.send_numbered(1);
    let again = sender.tick_at_ms(1000);
    receiver.receive(&first[0]).expect("accepted");
    receiver.now = Timestamp(0).plus_ms(1000);
    assert_eq!(receiver.receive(&again[0]).err(), Some(LinkDrop::DuplicateSequence));
    assert_eq!(acks_of(&receiver.tick_at_ms(1005)[0]), [0, 1]);
    // Much later the same number means that the peer has restarted.
    receiver.now = Timestamp(0).plus_ms(6000);
    assert_eq!(receiver.receive(&first[0]).expect("accepted").len(), 1);
}

#[test]
fn a_full_window_goes_on_without_protection() {
    let mut bench = Bench::new(RELIABLE);
    for _ in 0..MAX_UNACKNOWLEDGED {
        bench.send(PacketKind::Data, &hex(DATA)).expect("sent");
    }
    let frames = bench.send(PacketKind::Data, &hex(DATA)).expect("sent");
    assert_eq!(frames, [hex(DATA)]);
    let frames = bench.send(PacketKind::Data, &data_with(8796, 0)).expect("sent");
    assert_eq!(frames.len(), 1);
    bench.service.update(LinkOptions { mtu_bytes: 1500, ..RELIABLE });
    bench.acknowledge(&[0, 1, 2]);
    // Three slots are free, and seven fragments need seven.
    let frames = bench.send(PacketKind::Data, &data_with(8796, 0)).expect("sent");
    assert!(tx_sequences(&frames).iter().all(Option::is_none));
    assert_eq!(bench.counters().unprotected.get(), 2 + frames.len() as u64);
    assert_eq!(bench.service.unacknowledged_frames(), MAX_UNACKNOWLEDGED - 3);
    assert_eq!(bench.tick_at_ms(1000).len(), MAX_UNACKNOWLEDGED - 3);
    bench.service.update(DATAGRAM);
    assert_eq!((bench.service.unacknowledged_frames(), bench.pool.in_use()), (0, 0));
    assert_eq!(bench.next_deadline(), Timestamp::NEVER);
}

#[test]
fn a_full_window_can_send_its_frames_again() {
    let mut bench = Bench::new(RELIABLE);
    for _ in 0..MAX_UNACKNOWLEDGED {
        bench.send(PacketKind::Data, &hex(DATA)).expect("sent");
    }
    let again = bench.tick_at_ms(1000);
    assert_eq!(again.len(), MAX_UNACKNOWLEDGED);
    assert_eq!(decode(&again[0]).tx_sequence, Some(MAX_UNACKNOWLEDGED as u64));
    assert_eq!(bench.service.unacknowledged_frames(), MAX_UNACKNOWLEDGED);
}

#[test]
fn a_fragmented_interest_without_protected_frames_keeps_no_copy() {
    // Five buffers: the Interest, its three fragments, and the copy to report it.
    let mut bench = Bench::with_pool(LinkOptions { mtu_bytes: 70, ..RELIABLE }, BufferPool::new(4, 1));
    let interest = [&[5, 98][..], &[9; 98]].concat();
    assert_eq!(bench.send(PacketKind::Interest, &interest).expect("sent").len(), 3);
    assert_eq!(bench.counters().unprotected.get(), 3);
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn without_buffers_for_copies_frames_go_out_unprotected() {
    let mut bench = Bench::with_pool(RELIABLE, BufferPool::new(1, 1));
    let held = bench.pool.allocate(9000).expect("the pool has a large buffer");
    let frames = bench.send(PacketKind::Data, &hex(DATA)).expect("sent");
    assert_eq!(tx_sequences(&frames), [Some(0)]);
    assert_eq!(bench.counters().unprotected.get(), 1);
    assert_eq!(bench.service.unacknowledged_frames(), 0);
    drop(held);
    let frames = bench.send(PacketKind::Data, &hex(DATA)).expect("sent");
    assert_eq!(tx_sequences(&frames), [Some(1)]);
    // At first the pool is empty at retransmission.
    let held = bench.pool.allocate(10).expect("the pool has one more buffer");
    assert!(bench.tick_at_ms(1000).is_empty());
    assert_eq!(bench.next_deadline(), Timestamp(0).plus_ms(1200));
    drop(held);
    assert_eq!(tx_sequences(&bench.tick_at_ms(1200)), [Some(2)]);
}

#[test]
fn acknowledgements_wait_for_a_buffer() {
    let mut sender = Bench::new(RELIABLE);
    let mut receiver = Bench::with_pool(RELIABLE, BufferPool::new(1, 1));
    receiver.receive(&sender.send_numbered(1)[0]).expect("accepted");
    let held = [receiver.pool.allocate(9000), receiver.pool.allocate(10)];
    assert!(receiver.tick_at_ms(5).is_empty());
    assert_eq!(receiver.next_deadline(), Timestamp(0).plus_ms(10));
    drop(held);
    assert_eq!(acks_of(&receiver.tick_at_ms(10)[0]), [0]);
}

#[test]
fn the_oldest_of_too_many_acknowledgements_is_forgotten() {
    let mut receiver = Bench::new(RELIABLE);
    for tx_sequence in 0..MAX_PENDING_ACKS as u64 + 2 {
        let header = LpHeader { tx_sequence: Some(tx_sequence), ..LpHeader::default() };
        let frame = encode_packet(&header, Some(&hex(DATA)));
        assert_eq!(receiver.receive(&frame).expect("accepted").len(), 1);
    }
    let acks: Vec<u64> = receiver.tick_at_ms(5).iter().flat_map(|frame| acks_of(frame)).collect();
    assert_eq!(acks, (2..MAX_PENDING_ACKS as u64 + 2).collect::<Vec<_>>());
}
