//! Tests of PIT tokens: which Interests carry this router's, and how two sides detect that both know them.

use namehop_packet::LinkType;
use namehop_wire::lp::{KnowsPitTokens, NackReason};

use super::*;
use crate::registry::{FacePersistency, FaceUpdate, PitTokenMode};

/// PIT token AABBCCDD on the Interest and on the Data.
const INTEREST_WITH_TOKEN: &str = "6415 6204AABBCCDD 500D 050B07030801410A0401020304";
const DATA_WITH_TOKEN: &str = "640F 6204AABBCCDD 5007 06050703080141";
const NACK_WITH_TOKEN: &str = "6419 6204AABBCCDD FD032000 500D 050B07030801410A0401020304";
/// With a token of six bytes, as ndnd sends.
const INTEREST_OF_NDND: &str = "6417 6206000000000001 500D 050B07030801410A0401020304";
/// KnowsPitTokens in a packet without Fragment, and before a Fragment.
const ASKS: &str = "6405 FD03B80101";
const TELLS: &str = "6405 FD03B80100";
const TELLS_WITH_INTEREST: &str = "6414 FD03B80100 500D 050B07030801410A0401020304";

/// A face created by this side.
fn made() -> FaceParams {
    FaceParams::new(FaceUri::Null, FaceUri::Null)
}

/// A face created by the peer.
fn on_demand() -> FaceParams {
    FaceParams { persistency: FacePersistency::OnDemand, ..made() }
}

fn group() -> FaceParams {
    FaceParams { link_type: LinkType::MultiAccess, ..made() }
}

fn bench(params: FaceParams, options: LinkOptions) -> Bench {
    Bench::of_face(&FaceTable::new(), params, options, BufferPool::new(400, 40))
}

/// Returns the frames of a packet with a token.
fn sent(bench: &mut Bench, kind: PacketKind) -> Vec<Vec<u8>> {
    let packet = hex(if kind == PacketKind::Data { DATA } else { INTEREST });
    let pit_token = PitToken::from_slice(&hex("AABBCCDD")).expect("a token");
    let fields = LinkFields { pit_token, ..LinkFields::default() };
    bench.send_with(kind, &packet, fields, 0).expect("sent")
}

#[test]
fn an_interest_carries_a_token_once_the_peer_has_shown_that_it_knows_tokens() {
    use PitTokenMode::{Auto, Off, On};
    let with_token = [hex(INTEREST_WITH_TOKEN)];
    let (bare, asking) = ([hex(INTEREST)], [hex(ASKS), hex(INTEREST)]);
    // Face, mode, previously received packet, frames of the Interest.
    let table: Vec<(FaceParams, PitTokenMode, &str, &[Vec<u8>])> = vec![
        (made(), Auto, "", &asking),
        (made(), Auto, INTEREST, &asking),
        (made(), Auto, DATA, &asking),
        (made(), Auto, INTEREST_WITH_TOKEN, &with_token),
        (made(), Auto, DATA_WITH_TOKEN, &with_token),
        (made(), Auto, NACK_WITH_TOKEN, &with_token),
        (made(), Auto, INTEREST_OF_NDND, &asking),
        (on_demand(), Auto, INTEREST_OF_NDND, &bare),
        (made(), Auto, TELLS, &with_token),
        (made(), Auto, TELLS_WITH_INTEREST, &with_token),
        (made(), Auto, ASKS, &with_token),
        (made(), On, "", &with_token),
        (made(), Off, "", &bare),
        (made(), Off, DATA_WITH_TOKEN, &bare),
        (on_demand(), Auto, "", &bare),
        (on_demand(), Auto, INTEREST, &bare),
        (on_demand(), Auto, INTEREST_WITH_TOKEN, &with_token),
        (on_demand(), Auto, DATA_WITH_TOKEN, &with_token),
        (on_demand(), Auto, TELLS, &with_token),
        (on_demand(), On, "", &with_token),
        (on_demand(), Off, TELLS, &bare),
        (group(), Auto, "", &bare),
        (group(), Auto, DATA_WITH_TOKEN, &bare),
        (group(), Auto, ASKS, &bare),
        (group(), On, DATA_WITH_TOKEN, &bare),
    ];
    for (params, mode, came, expected) in table {
        for options in [PLAIN, DATAGRAM, LinkOptions { mtu_bytes: 100, ..DATAGRAM }] {
            let what = format!("{:?} {:?} {mode:?} after {came}", params.link_type, params.persistency);
            let mut bench = bench(FaceParams { flags: mode.flags(), ..params.clone() }, options);
            if !came.is_empty() {
                let _ = bench.receive(&hex(came)).expect(&what);
            }
            assert_eq!(sent(&mut bench, PacketKind::Interest), expected, "{what}");
            let frames: usize = expected.iter().map(Vec::len).sum();
            let counted = &bench.counters().sent;
            assert_eq!(
                (counted.frames.get() as usize, counted.bytes.get() as usize),
                (expected.len(), frames),
                "{what}"
            );
            assert_eq!(counted.interests.packets.get(), 1, "{what}");
        }
    }
}

#[test]
fn reliability_and_fragments_carry_no_token_either() {
    let mut reliable = bench(made(), RELIABLE);
    let frames = sent(&mut reliable, PacketKind::Interest);
    assert_eq!(frames[0], hex(ASKS));
    let packet = LpPacket::decode(&frames[1]).expect("decodes");
    assert_eq!((packet.pit_token, packet.tx_sequence.is_some()), (PitToken::empty(), true));
    let _ = reliable.receive(&hex(TELLS)).expect("taken");
    let frames = sent(&mut reliable, PacketKind::Interest);
    assert!(!LpPacket::decode(&frames[0]).expect("decodes").pit_token.is_empty());

    let mut small = bench(made(), LinkOptions { mtu_bytes: 64, ..DATAGRAM });
    let mut interest = hex("0500 0703080141 0A0401020304 2464");
    interest.resize(interest.len() + 0x64, 7);
    interest[1] = interest.len() as u8 - 2;
    let pit_token = PitToken::from_slice(&hex("AABBCCDD")).expect("a token");
    let fields = LinkFields { pit_token, ..LinkFields::default() };
    let frames = small.send_with(PacketKind::Interest, &interest, fields, 0).expect("sent");
    assert!(frames.len() > 3 && frames[0] == hex(ASKS), "{frames:?}");
    assert!(frames.iter().all(|frame| LpPacket::decode(frame).expect("decodes").pit_token.is_empty()));
}

#[test]
fn the_tokens_of_the_peer_come_back_on_every_face() {
    for params in [made(), on_demand(), group()] {
        for mode in [PitTokenMode::Auto, PitTokenMode::On, PitTokenMode::Off] {
            let mut bench = bench(FaceParams { flags: mode.flags(), ..params.clone() }, PLAIN);
            assert_eq!(sent(&mut bench, PacketKind::Data), [hex(DATA_WITH_TOKEN)], "{mode:?}");
            assert_eq!(sent(&mut bench, PacketKind::Nack), [hex(NACK_WITH_TOKEN)], "{mode:?}");
        }
    }
}

#[test]
fn a_question_is_answered_once_and_an_answer_not_at_all() {
    // Face, received frame, answer.
    let table = [
        (on_demand(), ASKS, vec![hex(TELLS)]),
        (made(), ASKS, vec![hex(TELLS)]),
        (on_demand(), TELLS, vec![]),
        (on_demand(), INTEREST_WITH_TOKEN, vec![]),
        (group(), ASKS, vec![]),
    ];
    for (params, came, answer) in table {
        let mut bench = bench(params, PLAIN);
        let packets = bench.receive(&hex(came)).expect("taken");
        assert_eq!(packets.len(), usize::from(came == INTEREST_WITH_TOKEN));
        drop(packets);
        assert_eq!(bench.next_deadline() == Timestamp::NEVER, answer.is_empty(), "{came}");
        assert_eq!(bench.tick(), answer, "{came}");
        assert_eq!((bench.next_deadline(), bench.tick()), (Timestamp::NEVER, vec![]), "{came}");
        assert_eq!(bench.pool.in_use(), 0);
    }
}

#[test]
fn a_wanted_question_is_asked_once_by_the_home_worker_and_its_answer_noted() {
    let table = FaceTable::new();
    table.set_workers(2);
    let params = FaceParams { home_worker: Some(0), ..made() };
    let mut bench = Bench::of_face(&table, params, PLAIN, BufferPool::new(400, 40));
    let _ = bench.receive(&hex(TELLS)).expect("taken");
    let face = Arc::clone(bench.service.face());
    assert!(face.take_answered() && !face.take_answered());
    let _ = bench.receive(&hex(ASKS)).expect("taken");
    assert_eq!(
        (bench.tick(), face.take_answered()),
        (vec![hex(TELLS)], false),
        "a question must not count as an answer"
    );
    face.want_question();
    assert_eq!(bench.next_deadline(), Timestamp::NEVER, "the question is sent at the next update of the options");
    let mut other = LinkService::new(Arc::clone(&face), 1);
    other.update(PLAIN);
    assert_eq!(other.next_deadline(), Timestamp::NEVER, "only the home worker asks");
    bench.service.update(PLAIN);
    assert_eq!((bench.next_deadline(), bench.tick()), (Timestamp::default(), vec![hex(ASKS)]));
    bench.service.update(PLAIN);
    assert_eq!((bench.next_deadline(), bench.tick()), (Timestamp::NEVER, vec![]));
}

#[test]
fn a_peer_that_is_not_known_as_a_namehop_gets_an_interest_with_the_question() {
    let mut bench = bench(made(), RELIABLE);
    let face = Arc::clone(bench.service.face());
    face.want_question();
    bench.service.update(RELIABLE);
    let frames = bench.tick();
    let [question, interest] = &frames[..] else { panic!("two frames: {frames:?}") };
    assert_eq!((question, bench.counters().sent.interests.packets.get()), (&hex(ASKS), 0));
    // As NFD returns it, in a frame with other fields, and from a peer with link reliability.
    let mut returned = interest.clone();
    let last = returned.len() - 1;
    returned[last] = 0;
    let header = LpHeader {
        sequence: Some(1),
        tx_sequence: Some(1),
        pit_token: PitToken::from_slice(&hex("AABB")).expect("a token"),
        nack: Some(NackReason::NO_ROUTE),
        congestion_mark: Some(1),
        ..LpHeader::default()
    };
    let nack = encode_packet(&header, Some(&returned));
    assert!(bench.receive(&nack).expect("taken").is_empty() && face.take_answered());
    assert_eq!((bench.counters().received.nacks.packets.get(), bench.counters().received.frames.get()), (0, 1));
    // Without an Interest on the way, the Nack is one of the network layer.
    let header = LpHeader { sequence: Some(2), tx_sequence: Some(2), ..header };
    assert_eq!(bench.receive(&encode_packet(&header, Some(&returned))).expect("taken").len(), 1);
    assert!(!face.take_answered());
}

#[test]
fn two_sides_find_out_about_each_other() {
    let (mut maker, mut other) = (bench(made(), DATAGRAM), bench(on_demand(), DATAGRAM));
    for frame in sent(&mut maker, PacketKind::Interest) {
        let _ = other.receive(&frame).expect("taken");
    }
    for frame in other.tick() {
        let _ = maker.receive(&frame).expect("taken");
    }
    for bench in [&mut maker, &mut other] {
        assert_eq!(sent(bench, PacketKind::Interest), [hex(INTEREST_WITH_TOKEN)]);
        assert_eq!(bench.next_deadline(), Timestamp::NEVER, "nothing is left to send");
    }
}

#[test]
fn workers_share_what_is_known_and_ask_once() {
    let faces = FaceTable::new();
    faces.set_workers(2);
    let mut first = Bench::of_face(&faces, made(), PLAIN, BufferPool::new(40, 4));
    let mut second = Bench { service: LinkService::new(Arc::clone(first.service.face()), 1), ..bench(made(), PLAIN) };
    assert_eq!(sent(&mut first, PacketKind::Interest), [hex(ASKS), hex(INTEREST)]);
    assert_eq!(sent(&mut second, PacketKind::Interest), [hex(INTEREST)]);
    let _ = second.receive(&hex(DATA_WITH_TOKEN)).expect("taken");
    assert_eq!(sent(&mut first, PacketKind::Interest), [hex(INTEREST_WITH_TOKEN)]);
}

#[test]
fn what_a_peer_has_shown_is_forgotten_with_its_link_and_modes_change() {
    let mut bench = bench(made(), PLAIN);
    let face = Arc::clone(bench.service.face());
    let _ = bench.receive(&hex(TELLS)).expect("taken");
    assert_eq!(sent(&mut bench, PacketKind::Interest), [hex(INTEREST_WITH_TOKEN)]);
    face.set_up(false);
    // From the closed connection.
    let _ = bench.receive(&hex(DATA_WITH_TOKEN)).expect("taken");
    face.set_up(true);
    assert_eq!(sent(&mut bench, PacketKind::Interest), [hex(ASKS), hex(INTEREST)]);
    face.set_up(true);
    let mask = FaceFlags::PIT_TOKENS.0;
    for (flags, expected) in [
        (FaceFlags::PIT_TOKENS_ON, INTEREST_WITH_TOKEN),
        (FaceFlags::PIT_TOKENS_OFF, INTEREST),
        (FaceFlags::default(), INTEREST),
    ] {
        face.update(&FaceUpdate { flags, flags_mask: mask, ..FaceUpdate::default() }).expect("allowed");
        assert_eq!(sent(&mut bench, PacketKind::Interest), [hex(expected)], "{flags:?}");
    }
    assert_eq!(KnowsPitTokens::Asks.frame()[..], hex(ASKS));
}
