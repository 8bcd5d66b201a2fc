//! Tests of the face that a received frame belongs to, and of frames without a face.

use namehop_packet::LinkType;
use proptest::prelude::*;

use super::*;

#[test]
fn a_frame_reaches_the_face_of_its_sender_without_header_and_padding() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let face = bench.face(PEER);
    let frames = bench.receive(frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST));
    assert_eq!(frames.len(), 1);
    assert_eq!((frames[0].face, frames[0].endpoint), (face.id(), 0));
    assert_eq!(frames[0].buffer.bytes(), INTEREST);
    assert_eq!(face.link_type(), LinkType::PointToPoint);
}

#[test]
fn group_frames_reach_the_multicast_face_with_a_number_for_each_sender() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let (unicast, group) = (bench.face(PEER), bench.face(NDN_GROUP));
    let mut endpoints = Vec::new();
    for sender in [PEER, UNKNOWN, PEER] {
        let frames = bench.receive(frame(NDN_GROUP, sender, ETHERTYPE_NDN, &INTEREST));
        assert_eq!(frames[0].face, group.id());
        endpoints.push(frames[0].endpoint);
    }
    assert_eq!(endpoints[0], endpoints[2]);
    assert_ne!(endpoints[0], endpoints[1]);
    assert_eq!(bench.receive(frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST))[0].face, unicast.id());
    assert_eq!(group.link_type(), LinkType::MultiAccess);
}

#[test]
fn one_peer_is_another_one_in_each_vlan() {
    let mut bench = Bench::new(Framing::Ethernet, 1);
    let untagged = bench.face(PEER);
    let [seven, eight, group] = [Peer::Vlan(PEER, vlan(7)), Peer::Vlan(PEER, vlan(8)), Peer::Vlan(NDN_GROUP, vlan(7))]
        .map(|peer| bench.face_on(0, "dev://test0", peer));
    assert_eq!(seven.remote_uri(), untagged.remote_uri());
    assert_eq!(seven.local_uri().to_string(), "dev://test0?vlan=7");
    assert_eq!((seven.mtu_bytes(), group.link_type()), (1500, LinkType::MultiAccess));
    // A priority in the upper bits of the tag does not change the VLAN.
    let burst = [
        tagged(HERE, PEER, 7, &INTEREST),
        tagged(HERE, PEER, 0xE007, &INTEREST),
        frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST),
        tagged(HERE, PEER, 8, &INTEREST),
        tagged(NDN_GROUP, PEER, 7, &INTEREST),
        tagged(HERE, PEER, 7, &INTEREST),
    ];
    bench.wire().incoming.extend(burst);
    let mut frames = Vec::new();
    assert!(bench.set.receive(bench.now, &mut frames, &mut bench.records, &bench.pool));
    let owners: Vec<_> = frames.iter().map(|frame| frame.face).collect();
    let expected = [&seven, &seven, &untagged, &eight, &group, &seven].map(|face| face.id());
    assert_eq!(owners, expected);
    assert!(frames.iter().all(|frame| frame.buffer.bytes() == INTEREST));

    for (bytes, reason) in [
        (tagged(HERE, PEER, 9, &INTEREST), LinkDrop::UnknownSender),
        (tagged(HERE, UNKNOWN, 7, &INTEREST), LinkDrop::UnknownSender),
        (tagged(NDN_GROUP, PEER, 8, &INTEREST), LinkDrop::UnknownGroup),
        (tagged(UNKNOWN, PEER, 7, &INTEREST), LinkDrop::ForeignFrame),
        (tagged(HERE, PEER, 4095, &INTEREST), LinkDrop::NotNdnFrame),
        (tagged(HERE, PEER, 0, &INTEREST), LinkDrop::NotNdnFrame),
        (tagged(HERE, PEER, 7, &INTEREST)[..17].to_vec(), LinkDrop::NotNdnFrame),
        (tagged(HERE, PEER, 7, &INTEREST)[..20].to_vec(), LinkDrop::MalformedFrame),
    ] {
        let before = bench.dropped(reason);
        assert!(bench.receive(bytes).is_empty(), "{reason:?}");
        assert_eq!(bench.dropped(reason), before + 1, "{reason:?}");
    }
    let id = seven.id();
    bench.ask(move |control| control.remove_face(id).expect("removed"));
    assert!(bench.receive(tagged(HERE, PEER, 7, &INTEREST)).is_empty());
    assert_eq!(bench.receive(tagged(HERE, PEER, 8, &INTEREST))[0].face, eight.id());
}

#[test]
fn senders_that_take_turns_in_one_burst_are_told_apart() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    let [peer, other, group] = [PEER, UNKNOWN, NDN_GROUP].map(|address| bench.face(address).id());
    let elsewhere = [0x02, 0, 0, 0, 0, 0x09];
    let burst = [(HERE, PEER), (HERE, PEER), (NDN_GROUP, PEER), (elsewhere, PEER), (HERE, UNKNOWN), (HERE, PEER)];
    let cut_off = frame(HERE, PEER, ETHERTYPE_NDN, &[5, 200]);
    let incoming = burst.map(|(destination, source)| frame(destination, source, ETHERTYPE_NDN, &INTEREST));
    bench.wire().incoming.extend(incoming.into_iter().chain([cut_off]));
    let mut frames = Vec::new();
    assert!(bench.set.receive(bench.now, &mut frames, &mut bench.records, &bench.pool));
    let owners: Vec<_> = frames.iter().map(|frame| (frame.face, frame.endpoint != 0)).collect();
    assert_eq!(owners, [(peer, false), (peer, false), (group, true), (other, false), (peer, false)]);
    assert!(frames.iter().all(|frame| frame.buffer.bytes() == INTEREST));
    assert_eq!((bench.dropped(LinkDrop::ForeignFrame), bench.dropped(LinkDrop::MalformedFrame)), (1, 1));
}

#[test]
fn frames_without_a_face_are_dropped_under_their_reason() {
    let mut bench = Bench::new(Framing::Ethernet, 0);
    bench.face(PEER);
    let other_group = [0x33, 0x33, 0, 0, 0, 1];
    let mut too_long = INTEREST;
    too_long[1] = 200;
    for (bytes, reason) in [
        (frame(HERE, PEER, 0x0800, &INTEREST), LinkDrop::NotNdnFrame),
        (frame([0xFF; 6], PEER, 0x0806, &[]), LinkDrop::NotNdnFrame),
        (vec![1, 2, 3], LinkDrop::NotNdnFrame),
        (frame(other_group, PEER, ETHERTYPE_NDN, &INTEREST), LinkDrop::UnknownGroup),
        (frame(UNKNOWN, PEER, ETHERTYPE_NDN, &INTEREST), LinkDrop::ForeignFrame),
        (frame(HERE, NDN_GROUP, ETHERTYPE_NDN, &INTEREST), LinkDrop::ForeignFrame),
        (frame(HERE, UNKNOWN, ETHERTYPE_NDN, &INTEREST), LinkDrop::UnknownSender),
        (frame(HERE, PEER, ETHERTYPE_NDN, &too_long), LinkDrop::MalformedFrame),
        (frame(HERE, PEER, ETHERTYPE_NDN, &[]), LinkDrop::MalformedFrame),
    ] {
        let before = bench.dropped(reason);
        assert!(bench.receive(bytes).is_empty(), "{reason:?}");
        assert_eq!(bench.dropped(reason), before + 1, "{reason:?}");
    }
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn a_new_mtu_of_the_link_applies_to_unsolicited_peers() {
    let mut bench = Bench::new(Framing::Ethernet, 2);
    let mtu_of_sender = |bench: &mut Bench, sender| {
        let id = bench.receive(frame(HERE, sender, ETHERTYPE_NDN, &INTEREST))[0].face;
        bench.table.get(id).expect("made").mtu_bytes()
    };
    assert_eq!(mtu_of_sender(&mut bench, UNKNOWN), 1500);
    let queue = bench.ask(|control| control.take_queue(PortId(0))).expect("answered");
    bench.ask(move |control| control.give_queue(PortId(0), queue, HERE, 1300)).expect("the worker takes the queue");
    assert_eq!(mtu_of_sender(&mut bench, PEER), 1300);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every frame is a packet of a face or a counted drop.
    #[test]
    fn arbitrary_frames_are_packets_or_counted(
        is_bare in any::<bool>(),
        payloads in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..120)), 1..20),
    ) {
        let framing = if is_bare { Framing::Bare } else { Framing::Ethernet };
        let mut bench = Bench::new(framing, 2);
        bench.face(PEER);
        let count = payloads.len() as u64;
        for (has_header, payload) in payloads {
            let bytes = if has_header { frame(HERE, PEER, ETHERTYPE_NDN, &payload) } else { payload };
            bench.wire().incoming.push(bytes);
        }
        let mut frames = Vec::new();
        prop_assert!(bench.set.receive(bench.now, &mut frames, &mut bench.records, &bench.pool));
        let dropped: u64 = LinkDrop::ALL.iter().map(|&reason| bench.dropped(reason)).sum();
        prop_assert_eq!(frames.len() as u64 + dropped, count);
        for frame in frames {
            prop_assert!(namehop_wire::tlv::read_single_element(frame.buffer.bytes()).is_ok());
        }
    }
}
