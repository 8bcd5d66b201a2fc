//! Tests of path MTU discovery on a face: which faces probe, what they send, and how workers share the result.

use namehop_packet::LinkType;
use namehop_wire::lp::PathMtuProbe;

use super::*;
use crate::registry::{FacePersistency, FaceUpdate};

const ASKS: &str = "6405 FD03B80101";
const TELLS: &str = "6405 FD03B80100";

fn uri(text: &str) -> FaceUri {
    text.parse().expect("URI")
}

fn udp() -> FaceParams {
    let (link_mtu_bytes, base_mtu_bytes) = (1472, Some(1252));
    let params = FaceParams::new(uri("udp4://192.0.2.1:6363"), uri("udp4://192.0.2.2:6363"));
    FaceParams { is_datagram: true, link_mtu_bytes, base_mtu_bytes, ..params }
}

/// A face to a peer that has shown that it is a Namehop.
fn bench(params: FaceParams) -> Bench {
    let mut bench = Bench::of_face(&FaceTable::new(), params, DATAGRAM, BufferPool::new(400, 40));
    let options = bench.service.face().link_options();
    bench.service.update(options);
    let _ = bench.receive(&hex(TELLS)).expect("taken");
    bench
}

/// Returns the size and the number of the only frame, which must be a probe.
fn probe_in(frames: &[Vec<u8>]) -> (usize, u32) {
    let [frame] = frames else { panic!("one frame: {frames:?}") };
    (frame.len(), PathMtuProbe::probe_number(frame).expect("a probe"))
}

#[test]
fn datagram_faces_with_one_peer_probe_if_their_base_is_known() {
    let group = FaceParams { link_type: LinkType::MultiAccess, ..udp() };
    let stream = FaceParams { is_datagram: false, ..udp() };
    let link = FaceParams { base_mtu_bytes: None, ..udp() };
    for (params, expected) in [(udp(), 1252), (group, u16::MAX), (stream, u16::MAX), (link, u16::MAX)] {
        let face = FaceTable::new().insert(params).expect("face");
        assert_eq!(LinkService::new(face, 0).large_above_bytes, expected);
    }
}

#[test]
fn a_large_frame_is_followed_by_a_probe_of_the_mtu() {
    let mut bench = bench(udp());
    bench.send(PacketKind::Data, &data_with(1200, 0)).expect("sent");
    assert_eq!((bench.next_deadline(), bench.tick()), (Timestamp::NEVER, vec![]), "the base passes every path");
    bench.send(PacketKind::Data, &data_with(1400, 0)).expect("sent");
    assert_eq!(bench.next_deadline(), Timestamp::default());
    let (bytes, number) = probe_in(&bench.tick());
    assert_eq!(bytes, 1472);
    let _ = bench.receive(&PathMtuProbe::answer(number)).expect("taken");
    assert_eq!(bench.tick_at_ms(20), Vec::<Vec<u8>>::new());
    bench.send(PacketKind::Data, &data_with(1400, 0)).expect("sent");
    assert!(bench.tick_at_ms(15_000).is_empty());
    assert_eq!(probe_in(&bench.tick_at_ms(15_020)).0, 1472);
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn a_narrower_path_gets_smaller_fragments() {
    let mut bench = bench(udp());
    // A packet for fragments counts, too.
    bench.send(PacketKind::Data, &data_with(5000, 0)).expect("sent");
    for ms in [0, 1000, 2000] {
        assert_eq!(probe_in(&bench.tick_at_ms(ms)).0, 1472);
    }
    let (bytes, number) = probe_in(&bench.tick_at_ms(3000));
    assert_eq!(bytes, 1252);
    let face = Arc::clone(bench.service.face());
    assert_eq!(face.mtu_bytes(), 1472);
    let _ = bench.receive(&PathMtuProbe::answer(number.wrapping_add(1))).expect("taken");
    assert_eq!(bench.tick_at_ms(3010), Vec::<Vec<u8>>::new(), "the number of another probe is no answer");
    let _ = bench.receive(&PathMtuProbe::answer(number)).expect("taken");
    bench.now = Timestamp(0).plus_ms(3020);
    let mut frames = Vec::new();
    assert!(bench.service.tick(bench.now, &bench.pool, &mut frames, &mut bench.dropped), "the MTU has changed");
    assert_eq!((face.mtu_bytes(), face.max_mtu_bytes(), frames.len()), (1252, 1472, 1));
    bench.service.update(face.link_options());
    let frames = bench.send(PacketKind::Data, &data_with(5000, 0)).expect("sent");
    assert!(frames.iter().all(|frame| frame.len() <= 1252) && frames.len() == 5);
    // Another path.
    face.set_link_mtu_bytes(1400);
    assert_eq!(face.mtu_bytes(), 1400);
    assert!(bench.service.tick(bench.now, &bench.pool, &mut Vec::new(), &mut bench.dropped), "the limit is gone");
    bench.service.update(face.link_options());
    bench.send(PacketKind::Data, &data_with(5000, 0)).expect("sent");
    assert_eq!(probe_in(&bench.tick_at_ms(4000)).0, 1400);
    face.set_up(false);
    assert_eq!(bench.tick_at_ms(60_000), Vec::<Vec<u8>>::new(), "the peer may be another program");
}

#[test]
fn an_operator_limits_the_probes() {
    let mut bench = bench(udp());
    let face = Arc::clone(bench.service.face());
    face.update(&FaceUpdate { mtu_bytes: Some(1300), ..FaceUpdate::default() }).expect("allowed");
    bench.service.update(face.link_options());
    bench.send(PacketKind::Data, &data_with(5000, 0)).expect("sent");
    assert_eq!(probe_in(&bench.tick()).0, 1300);
    assert_eq!(face.requested_mtu_bytes(), Some(1300));
}

#[test]
fn only_a_namehop_is_probed_and_only_made_faces_ask() {
    for (persistency, asked) in [(FacePersistency::Persistent, vec![hex(ASKS)]), (FacePersistency::OnDemand, vec![])] {
        let params = FaceParams { persistency, ..udp() };
        let mut bench = Bench::of_face(&FaceTable::new(), params, DATAGRAM, BufferPool::new(400, 40));
        bench.send(PacketKind::Data, &data_with(1400, 0)).expect("sent");
        assert_eq!(bench.tick(), asked);
        // A token of the peer shows nothing about probes.
        let _ = bench.receive(&hex("640F 6204AABBCCDD 5007 06050703080141")).expect("taken");
        bench.send(PacketKind::Data, &data_with(1400, 0)).expect("sent");
        assert_eq!(bench.tick(), Vec::<Vec<u8>>::new());
        let _ = bench.receive(&hex(TELLS)).expect("taken");
        bench.send(PacketKind::Data, &data_with(1400, 0)).expect("sent");
        assert_eq!(probe_in(&bench.tick()).0, 1472);
    }
}

#[test]
fn the_home_worker_probes_for_all_workers() {
    let table = FaceTable::new();
    table.set_workers(2);
    let params = FaceParams { home_worker: Some(0), ..udp() };
    let mut home = Bench::of_face(&table, params, DATAGRAM, BufferPool::new(400, 40));
    let face = Arc::clone(home.service.face());
    let mut other = Bench { service: LinkService::new(Arc::clone(&face), 1), ..bench(udp()) };
    let _ = home.receive(&hex(TELLS)).expect("taken");
    other.send(PacketKind::Data, &data_with(1400, 0)).expect("sent");
    assert_eq!((home.next_deadline(), other.next_deadline()), (Timestamp::NEVER, Timestamp::default()));
    let mut frames = Vec::new();
    let (now, pool) = (other.now, &other.pool);
    assert!(other.service.tick(now, pool, &mut frames, &mut other.dropped), "the home worker is told");
    assert!(frames.is_empty() && other.next_deadline() == Timestamp::NEVER);
    for bench in [&mut home, &mut other] {
        bench.service.update(face.link_options());
    }
    assert_eq!(other.next_deadline(), Timestamp::NEVER);
    let (_, number) = probe_in(&home.tick());
    let _ = home.receive(&PathMtuProbe::answer(number)).expect("taken");
    assert!(home.tick().is_empty());
    other.send(PacketKind::Data, &data_with(1400, 0)).expect("sent");
    assert_eq!(other.next_deadline(), Timestamp::NEVER, "the home worker looks by itself");
    assert_eq!(probe_in(&home.tick_at_ms(15_000)).0, 1472);
}

#[test]
fn a_probe_is_answered_on_links_with_one_peer() {
    let mut probe = vec![0; 1400];
    PathMtuProbe::write_probe(0x0102_0304, &mut probe);
    let answer = PathMtuProbe::answer(0x0102_0304).to_vec();
    let made = FaceParams::new(FaceUri::Null, FaceUri::Null);
    let group = FaceParams { link_type: LinkType::MultiAccess, ..made.clone() };
    for (params, expected) in [(udp(), vec![answer.clone()]), (made, vec![answer.clone()]), (group, vec![])] {
        let mut bench = Bench::of_face(&FaceTable::new(), params, DATAGRAM, BufferPool::new(400, 40));
        let packets = bench.receive(&probe).expect("taken");
        assert!(packets.is_empty());
        assert_eq!(bench.tick(), expected);
        assert_eq!((bench.next_deadline(), bench.tick()), (Timestamp::NEVER, vec![]));
        let _ = bench.receive(&answer).expect("taken");
        assert_eq!((bench.next_deadline(), bench.tick()), (Timestamp::NEVER, vec![]));
        assert_eq!(bench.service.face().answers_sent(), expected.len() as u64);
    }
    let mut bench = bench(udp());
    let mut answers_in = |second: u64| -> usize {
        bench.now = Timestamp(0).plus_ms(second * 1000);
        let each = (0..100).map(|_| {
            let _ = bench.receive(&probe).expect("taken");
            bench.tick().len()
        });
        each.sum()
    };
    assert_eq!([1, 2].map(&mut answers_in), [32, 32]);
}
