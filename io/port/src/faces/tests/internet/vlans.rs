//! Tests of ports as hosts in several networks on one link: with addresses in VLANs, and untagged.

use super::*;
use crate::encapsulation::arp;

const LOCAL: &str = "dev://test0?vlan=7&ip=192.0.2.1&port=6363";

/// Adds the tag of VLAN 7 to a frame as it is sent.
fn sent_in_vlan(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0x00, 0x00, 0x07], &frame[12..]].concat()
}

#[test]
fn the_same_addresses_are_those_of_different_hosts_in_different_vlans() {
    let mut bench = bench_with_vlan();
    let plain = bench.face_on(0, "dev://test0", udp_peer(OTHER.into()));
    let tagged = bench.face_on(0, "dev://test0", peer("udp4://192.0.2.2:6363", LOCAL));
    let tunnel = bench.face_on(0, "dev://test0", peer("vxlan4://192.0.2.2?vni=7", "dev://test0?vlan=7&ip=192.0.2.1"));
    assert_eq!(tagged.local_uri().to_string(), LOCAL);
    assert_eq!(
        (plain.mtu_bytes(), tagged.mtu_bytes(), tunnel.mtu_bytes()),
        (1472, 1472, 1450),
        "a VLAN tag must not reduce the MTU"
    );
    // Each next hop is requested in its own network, and an answer counts only there.
    let question = arp::question((HERE, OWN), OTHER, None);
    let mut questions = bench.poll_after(0);
    questions.sort_by_key(Vec::len);
    assert_eq!(questions, [question.to_vec(), sent_in_vlan(&question)]);
    bench.receive_control(in_vlan(&arp_answer(PEER, OTHER)));
    assert_eq!((plain.next_hop(), tagged.next_hop()), (None, Some(PEER)));
    bench.receive_control(arp_answer(UNKNOWN, OTHER));
    assert_eq!((plain.next_hop(), tagged.next_hop()), (Some(UNKNOWN), Some(PEER)));
    let (untagged, in_seven) = (bench.send_one(&plain).remove(0), bench.send_one(&tagged).remove(0));
    assert_eq!((&untagged[..6], &in_seven[..6]), (&UNKNOWN[..], &PEER[..]));
    assert_eq!(in_seven[12..18], [0x81, 0x00, 0x00, 0x07, 0x08, 0x00]);
    assert_eq!(in_seven[18..], untagged[14..]);
    assert_eq!(bench.send_one(&tunnel)[0][54..60], NDN_GROUP, "the inner frame goes to the NDN group");

    let datagram = datagram(OTHER, 6363, 6363, &INTEREST);
    for frame in [in_vlan(&datagram), in_vlan(&datagram)] {
        let frames = bench.receive(frame);
        assert_eq!((frames[0].face, frames[0].buffer.bytes()), (tagged.id(), &INTEREST[..]));
    }
    assert_eq!(bench.receive(datagram.clone())[0].face, plain.id());
    // A VLAN without addresses has no host.
    let mut elsewhere = in_vlan(&datagram);
    elsewhere[15] = 8;
    assert!(bench.receive(elsewhere).is_empty());
    assert_eq!((bench.dropped(LinkDrop::NotNdnFrame), bench.total_drops()), (1, 1));

    // One face is removed, and the others stay.
    let id = tagged.id();
    bench.ask(move |control| control.remove_face(id).expect("removed"));
    assert!(bench.receive(in_vlan(&datagram)).is_empty());
    assert_eq!(bench.receive(datagram)[0].face, plain.id());
    assert_eq!(bench.dropped(LinkDrop::UnknownSender), 1);
}

#[test]
fn questions_are_answered_in_the_vlan_where_they_were_asked() {
    let mut bench = bench_with_vlan();
    let question = Arp { is_reply: false, sender: PEER, sender_ip: OTHER, target: [0; 6], target_ip: OWN };
    let answer = question.answer(HERE).to_frame(&PEER);
    assert_eq!(bench.receive_control(in_vlan(&question.to_frame(&BROADCAST))), [sent_in_vlan(&answer)]);
    assert_eq!(bench.receive_control(question.to_frame(&BROADCAST).to_vec()), [answer.to_vec()]);
    let question = neighbour_discovery::question((PEER, OTHER_V6), OWN_V6, None);
    let answer = neighbour_discovery::answer(HERE, OWN_V6, (PEER, OTHER_V6));
    assert_eq!(bench.receive_control(in_vlan(&question)), [sent_in_vlan(&answer)]);

    // An echo reply keeps the tag with its priority.
    let mut message = vec![8, 0, 0, 0, 0x12, 0x34, 0, 1, 7, 7];
    let checksum = Checksum::new().bytes(&message).finish();
    message[2..4].copy_from_slice(&checksum);
    let mut ping = datagram(OTHER, 0, 0, &[0; 2]);
    ping.truncate(34);
    ping[23] = 1;
    ping[24..26].fill(0);
    let checksum = Checksum::new().bytes(&ping[14..34]).finish();
    ping[24..26].copy_from_slice(&checksum);
    ping.extend(message);
    let pong = bench.receive_control(in_vlan(&ping)).remove(0);
    assert_eq!(pong[..18], [&PEER[..], &HERE, &[0x81, 0x00, 0x60, 0x07, 0x08, 0x00]].concat());
    assert_eq!((&pong[30..38], pong[38], pong.len()), (&[192, 0, 2, 1, 192, 0, 2, 2][..], 0, 64));
    assert_eq!(bench.total_drops(), 0);
}

#[test]
fn unknown_senders_make_faces_in_the_vlans_that_admit_them() {
    let mut bench = bench(0);
    let network = |tag: Option<u16>, on_demand| PortNetwork {
        vlan: tag.map(vlan),
        on_demand,
        addresses: vec!["192.0.2.1/24".parse().expect("address")],
        gateways: vec![],
    };
    let networks = vec![network(None, false), network(Some(7), true), network(Some(8), false)];
    let params = PortParams { networks, max_on_demand_faces: 2, ..bench.params(0, PortNetwork::default()) };
    bench.ask(move |control| control.add(PortId(0), params).expect("added"));
    let of_udp = datagram(OTHER, 7000, 6363, &INTEREST);
    let of_ethernet = |tag| super::tagged(HERE, PEER, tag, &INTEREST);
    let mut in_eight = in_vlan(&of_udp);
    in_eight[15] = 8;
    for refused in [of_udp.clone(), in_eight, of_ethernet(8), frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST)] {
        let before = bench.dropped(LinkDrop::UnknownSender);
        assert!(bench.receive(refused).is_empty());
        assert_eq!(bench.dropped(LinkDrop::UnknownSender), before + 1);
    }
    for (frame, remote, local) in [
        (in_vlan(&of_udp), "udp4://192.0.2.2:7000", LOCAL),
        (of_ethernet(7), "ether://[02:00:00:00:00:02]", "dev://test0?vlan=7"),
    ] {
        let made = bench.receive(frame)[0].face;
        let face = bench.table.get(made).expect("made");
        assert_eq!((face.remote_uri().to_string().as_str(), face.local_uri().to_string().as_str()), (remote, local));
    }
    bench.flush();
    assert_eq!(bench.pool.in_use(), 0);
}
