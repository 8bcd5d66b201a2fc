//! Tests of ports as Internet hosts: the requests they answer, and the datagrams they accept.

mod bursts;
mod next_hops;
mod vlans;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use namehop_packet::Checksum;
use proptest::prelude::*;

use super::*;
use crate::encapsulation::arp::Arp;
use crate::encapsulation::neighbour_discovery;
use crate::encapsulation::udp::{Ends, Header as UdpHeader};
use namehop_face::registry::FacePersistency;

const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 254);
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const OWN_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1);
const OTHER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 2);
const BROADCAST: MacAddress = [0xFF; 6];

fn bench(max_on_demand_faces: usize) -> Bench {
    let addresses = ["192.0.2.1/24", "2001:db8::1/64"].map(|text| text.parse().expect(text)).to_vec();
    let network = PortNetwork { addresses, gateways: vec![GATEWAY.into()], ..PortNetwork::default() };
    Bench::with_addresses(Framing::Ethernet, max_on_demand_faces, network)
}

/// A bench with the same addresses in VLAN 7, which is another network.
fn bench_with_vlan() -> Bench {
    let mut bench = bench(0);
    let params = bench.params(0, PortNetwork::default());
    let network = PortNetwork {
        addresses: ["192.0.2.1/24", "2001:db8::1/64"].map(|text| text.parse().expect(text)).to_vec(),
        gateways: vec![GATEWAY.into()],
        ..PortNetwork::default()
    };
    let in_vlan = PortNetwork { vlan: Some(vlan(7)), ..network.clone() };
    let params = PortParams { networks: vec![network, in_vlan], ..params };
    bench.ask(move |control| control.add(PortId(0), params).expect("added"));
    bench
}

/// Adds the tag of VLAN 7, with a priority, to a frame.
fn in_vlan(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0x00, 0x60, 0x07], &frame[12..]].concat()
}

fn peer(remote: &str, local: &str) -> FacePeer {
    FacePeer::of(&parse_uri(remote).expect(remote), &parse_uri(local).expect(local)).expect("a face of a port")
}

fn udp_peer(remote: IpAddr) -> FacePeer {
    match remote {
        IpAddr::V4(remote) => peer(&format!("udp4://{remote}:6363"), "dev://test0?ip=192.0.2.1&port=6363"),
        IpAddr::V6(remote) => peer(&format!("udp6://[{remote}]:6363"), "dev://test0?ip=2001:db8::1&port=6363"),
    }
}

/// A received datagram.
pub(super) fn datagram(source: impl Into<IpAddr>, source_port: u16, destination_port: u16, payload: &[u8]) -> Vec<u8> {
    let source = source.into();
    let destination = if source.is_ipv4() { IpAddr::V4(OWN) } else { IpAddr::V6(OWN_V6) };
    let header = UdpHeader::new(&Ends { source, destination, source_port, destination_port }, &PEER, None, &[], None);
    let pool = BufferPool::new(1, 1);
    let mut frame = pool.copy_of(payload).expect("buffer");
    assert!(header.put_on(None, &mut frame, &pool));
    let mut frame = frame.bytes().to_vec();
    frame[..6].copy_from_slice(&HERE);
    frame
}

fn arp_answer(sender: MacAddress, sender_ip: Ipv4Addr) -> Vec<u8> {
    Arp { is_reply: true, sender, sender_ip, target: HERE, target_ip: OWN }.to_frame(&HERE).to_vec()
}

impl Bench {
    /// Runs one poll iteration `ms` later; returns the sent frames.
    fn poll_after(&mut self, ms: u64) -> Vec<Vec<u8>> {
        self.now = self.now.plus_ms(ms);
        let mut frames = Vec::new();
        self.set.receive(self.now, &mut frames, &mut self.records, &self.pool);
        self.flush();
        std::mem::take(&mut self.wire().sent)
    }

    /// Receives a frame for the port itself; returns the sent frames.
    fn receive_control(&mut self, frame: Vec<u8>) -> Vec<Vec<u8>> {
        assert!(self.receive(frame).is_empty());
        self.flush();
        std::mem::take(&mut self.wire().sent)
    }

    fn send_one(&mut self, face: &Face) -> Vec<Vec<u8>> {
        self.send(face, &INTEREST);
        self.flush();
        std::mem::take(&mut self.wire().sent)
    }

    /// Answers the port's request for the next hop, so that the face can send.
    fn resolve(&mut self, next_hop: impl Into<IpAddr>, address: MacAddress) {
        assert!(!self.poll_after(1_000).is_empty(), "a question");
        match next_hop.into() {
            IpAddr::V4(next_hop) => self.receive_control(arp_answer(address, next_hop)),
            IpAddr::V6(next_hop) => {
                self.receive_control(neighbour_discovery::answer(address, next_hop, (HERE, OWN_V6)).to_vec())
            }
        };
    }

    fn total_drops(&self) -> u64 {
        LinkDrop::ALL.iter().map(|&reason| self.dropped(reason)).sum()
    }
}

#[test]
fn requests_for_an_address_of_the_port_are_answered() {
    let mut bench = bench(0);
    let ask = |target_ip, sender_ip| Arp { is_reply: false, sender: PEER, sender_ip, target: [0; 6], target_ip };
    let answers = bench.receive_control(ask(OWN, OTHER).to_frame(&BROADCAST).to_vec());
    assert_eq!(answers, [ask(OWN, OTHER).answer(HERE).to_frame(&PEER).to_vec()]);
    assert_eq!(
        bench.receive_control(ask(OWN, Ipv4Addr::UNSPECIFIED).to_frame(&BROADCAST).to_vec()).len(),
        1,
        "an address probe must be answered, because the address is in use"
    );
    let question = |asked| neighbour_discovery::question((PEER, OTHER_V6), OWN_V6, asked).to_vec();
    for question in [question(None), question(Some(HERE))] {
        let answers = bench.receive_control(question);
        assert_eq!(answers, [neighbour_discovery::answer(HERE, OWN_V6, (PEER, OTHER_V6)).to_vec()]);
    }
    assert_eq!(bench.total_drops(), 0);
    for (frame, reason) in [
        (ask(REMOTE, OTHER).to_frame(&BROADCAST).to_vec(), LinkDrop::ForeignFrame),
        (ask(OWN, OTHER).to_frame(&UNKNOWN).to_vec(), LinkDrop::ForeignFrame),
        (ask(OTHER, OWN).to_frame(&BROADCAST).to_vec(), LinkDrop::NeighbourConflict),
        (ask(OWN, OTHER).to_frame(&BROADCAST)[..41].to_vec(), LinkDrop::BadNeighbourMessage),
        (neighbour_discovery::question((PEER, OTHER_V6), OTHER_V6, Some(HERE)).to_vec(), LinkDrop::ForeignFrame),
    ] {
        let before = bench.dropped(reason);
        assert!(bench.receive_control(frame).is_empty());
        assert_eq!(bench.dropped(reason), before + 1, "{reason:?}");
    }
}

#[test]
fn datagrams_reach_the_face_of_their_sender() {
    let mut bench = bench(0);
    let local = "dev://test0?ip=192.0.2.1&port=6363";
    let fixed = bench.face_on(0, "dev://test0", peer("udp4://192.0.2.2:6363", local));
    let other_port = bench.face_on(0, "dev://test0", peer("udp4://192.0.2.2:7000", local));
    let by_name =
        bench.face_on(0, "dev://test0", peer("udp4://198.51.100.7:6363", &format!("{local}&source_port=name")));
    let v6 = bench.face_on(0, "dev://test0", udp_peer(OTHER_V6.into()));
    let ethernet = bench.face(PEER);
    let burst = [
        (datagram(OTHER, 6363, 6363, &INTEREST), &fixed),
        (frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST), &ethernet),
        (datagram(OTHER, 7000, 6363, &INTEREST), &other_port),
        (datagram(REMOTE, 50_000, 6363, &INTEREST), &by_name),
        (datagram(REMOTE, 60_000, 6363, &INTEREST), &by_name),
        (datagram(OTHER_V6, 6363, 6363, &INTEREST), &v6),
    ];
    let expected: Vec<_> = burst.iter().map(|(_, face)| face.id()).collect();
    bench.wire().incoming.extend(burst.map(|(frame, _)| frame));
    let mut frames = Vec::new();
    assert!(bench.set.receive(bench.now, &mut frames, &mut bench.records, &bench.pool));
    assert_eq!(frames.iter().map(|frame| frame.face).collect::<Vec<_>>(), expected);
    assert!(frames.iter().all(|frame| frame.buffer.bytes() == INTEREST));
    frames.clear();
    assert_eq!((by_name.mtu_bytes(), v6.remote_uri().to_string().as_str()), (1472, "udp6://[2001:db8::2]:6363"));

    let mut fragment = datagram(OTHER, 6363, 6363, &INTEREST);
    fragment[20] = 0x20;
    fragment[24..26].fill(0);
    let checksum = Checksum::new().bytes(&fragment[14..34]).finish();
    fragment[24..26].copy_from_slice(&checksum);
    let mut damaged = datagram(OTHER, 6363, 6363, &INTEREST);
    damaged[50] ^= 1;
    let mut to_other = datagram(OTHER, 6363, 6363, &INTEREST);
    to_other[..6].copy_from_slice(&UNKNOWN);
    let mut to_all = datagram(OTHER, 6363, 6363, &INTEREST);
    to_all[..6].copy_from_slice(&BROADCAST);
    for (frame, reason) in [
        (datagram(OTHER, 7001, 6363, &INTEREST), LinkDrop::UnknownSender),
        (datagram(GATEWAY, 6363, 6363, &INTEREST), LinkDrop::UnknownSender),
        (datagram(OTHER, 6363, 53, &INTEREST), LinkDrop::UnknownPort),
        (datagram(OTHER, 6363, 4789, &[8, 0, 0, 0, 0, 0, 1, 0]), LinkDrop::MalformedFrame),
        (datagram(Ipv4Addr::BROADCAST, 6363, 6363, &INTEREST), LinkDrop::NotNdnFrame),
        (datagram(OTHER, 6363, 6363, &[5, 200]), LinkDrop::MalformedFrame),
        (datagram(OTHER, 6363, 6363, &[]), LinkDrop::MalformedFrame),
        (fragment, LinkDrop::IpFragment),
        (damaged, LinkDrop::BadChecksum),
        (to_other, LinkDrop::ForeignFrame),
        (to_all, LinkDrop::ForeignFrame),
    ] {
        let before = bench.dropped(reason);
        assert!(bench.receive(frame).is_empty());
        assert_eq!(bench.dropped(reason), before + 1, "{reason:?}");
    }
    let id = by_name.id();
    bench.ask(move |control| control.remove_face(id).expect("removed"));
    assert!(bench.receive(datagram(REMOTE, 50_000, 6363, &INTEREST)).is_empty());
    assert_eq!(bench.receive(datagram(OTHER, 6363, 6363, &INTEREST))[0].face, fixed.id());
    // The requests for the next hops are sent.
    bench.flush();
    assert_eq!(bench.pool.in_use(), 0);
}

#[test]
fn vxlan_faces_are_told_apart_by_network_and_inner_sender() {
    let mut bench = bench(0);
    let local = "dev://test0?ip=192.0.2.1";
    let [seven, eight, one] = ["vni=7", "vni=8", "vni=8&inner=02:00:00:00:00:03"]
        .map(|text| bench.face_on(0, "dev://test0", peer(&format!("vxlan4://192.0.2.2?{text}"), local)));
    assert_eq!(seven.mtu_bytes(), 1500 - 20 - 8 - 22);
    assert_eq!(one.remote_uri().to_string(), "vxlan4://192.0.2.2?vni=8&inner=02:00:00:00:00:03");
    bench.resolve(OTHER, PEER);
    let inside = |vni: u8, destination: MacAddress, source: MacAddress, ethertype: u16| {
        [&[8, 0, 0, 0, 0, 0, vni, 0], &destination[..], &source, &ethertype.to_be_bytes(), &INTEREST].concat()
    };
    for (payload, face) in [
        (inside(7, NDN_GROUP, PEER, ETHERTYPE_NDN), &seven),
        (inside(8, NDN_GROUP, PEER, ETHERTYPE_NDN), &eight),
        (inside(8, HERE, UNKNOWN, ETHERTYPE_NDN), &one),
    ] {
        let frames = bench.receive(datagram(OTHER, 55_555, 4789, &payload));
        assert_eq!((frames[0].face, frames[0].buffer.bytes()), (face.id(), &INTEREST[..]));
    }
    for (payload, reason) in [
        (inside(9, HERE, PEER, ETHERTYPE_NDN), LinkDrop::UnknownSender),
        (inside(7, UNKNOWN, PEER, ETHERTYPE_NDN), LinkDrop::ForeignFrame),
        (inside(7, HERE, PEER, 0x0800), LinkDrop::NotNdnFrame),
        (inside(7, HERE, PEER, ETHERTYPE_NDN)[..21].to_vec(), LinkDrop::MalformedFrame),
        ([&[0], &inside(7, HERE, PEER, ETHERTYPE_NDN)[1..]].concat(), LinkDrop::MalformedFrame),
    ] {
        let before = bench.dropped(reason);
        assert!(bench.receive(datagram(OTHER, 55_555, 4789, &payload)).is_empty());
        assert_eq!(bench.dropped(reason), before + 1, "{reason:?}");
    }
    let sent = bench.send_one(&one);
    assert_eq!(sent[0][42..50], [8, 0, 0, 0, 0, 0, 8, 0]);
    assert_eq!(sent[0][50..64], [&UNKNOWN[..], &HERE, &ETHERTYPE_NDN.to_be_bytes()].concat());
    assert_eq!(bench.send_one(&seven)[0][50..56], NDN_GROUP);
}

#[test]
fn unknown_senders_make_udp_faces_where_that_is_allowed() {
    let mut bench = bench(1);
    let first = bench.receive(datagram(OTHER, 7000, 6363, &INTEREST));
    let face = bench.table.get(first[0].face).expect("made");
    assert_eq!(face.remote_uri().to_string(), "udp4://192.0.2.2:7000");
    assert_eq!(face.local_uri().to_string(), "dev://test0?ip=192.0.2.1&port=6363");
    assert_eq!((face.persistency(), face.mtu_bytes()), (FacePersistency::OnDemand, 1472));
    assert!(bench.receive(datagram(OTHER, 7001, 6363, &[1, 0])).is_empty());
    assert_eq!(bench.dropped(LinkDrop::NotNdnFrame), 1, "an invalid packet must not create a face");
    assert!(bench.receive(datagram(OTHER, 7000, 6364, &INTEREST)).is_empty());
    assert_eq!(bench.dropped(LinkDrop::UnknownPort), 1, "only the NDN port accepts unsolicited peers");
    let unreachable: Ipv6Addr = "2001:db8:1::1".parse().expect("address");
    assert!(bench.receive(datagram(unreachable, 7000, 6363, &INTEREST)).is_empty());
    assert_eq!(bench.dropped(LinkDrop::UnknownSender), 1, "a sender without a return route must be refused");
}

#[test]
fn frames_of_one_name_have_one_source_port() {
    let mut bench = bench(0);
    let local = "dev://test0?ip=192.0.2.1&port=6363&source_port=name";
    let face = bench.face_on(0, "dev://test0", peer("udp4://192.0.2.2:6363", local));
    bench.resolve(OTHER, PEER);
    let mut packets: Vec<_> = Vec::new();
    for byte in [0x41, 0x42, 0x41] {
        let mut packet = INTEREST;
        packet[6] = byte;
        packets.push(bench.pool.copy_of(&packet).expect("buffer"));
    }
    // The second fragment of the last packet, which has no name of its own.
    let part = [0x64, 0x15, 0x51, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0x52, 1, 1, 0x53, 1, 2, 0x50, 3, 1, 2, 3];
    packets.push(bench.pool.copy_of(&part).expect("buffer"));
    bench.send_frames(&face, &mut packets);
    bench.flush();
    let ports: Vec<_> = bench.wire().sent.iter().map(|frame| u16::from_be_bytes([frame[34], frame[35]])).collect();
    assert!(ports.iter().all(|port| *port >= 49_152));
    assert!(ports[0] == ports[2] && ports[2] == ports[3] && ports[0] != ports[1], "{ports:?}");
}

#[test]
fn what_is_sent_to_a_face_that_its_port_knows_no_more_is_counted() {
    let mut bench = bench(0);
    let face = bench.face_on(0, "dev://test0", udp_peer(OTHER.into()));
    for network in [
        PortNetwork { addresses: vec!["192.0.2.1/24".parse().expect("address")], ..PortNetwork::default() },
        PortNetwork::default(),
    ] {
        let before = face.counters.link_drop(LinkDrop::LinkDown);
        let params = bench.params(0, network);
        bench.ask(move |control| control.add(PortId(0), params).expect("added"));
        assert!(bench.send_one(&face).is_empty());
        assert_eq!((face.counters.link_drop(LinkDrop::LinkDown), bench.pool.in_use()), (before + 1, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// For arbitrary frames, whole or damaged, nothing panics and no buffer stays in use.
    #[test]
    fn arbitrary_frames_of_the_internet_leave_nothing_behind(
        frames in prop::collection::vec(
            (
                0_usize..8,
                any::<bool>(),
                prop::collection::vec((0_usize..100, any::<u8>()), 0..4),
                prop::collection::vec(any::<u8>(), 0..80),
            ),
            1..20,
        ),
    ) {
        let mut bench = bench_with_vlan();
        let face = bench.face_on(0, "dev://test0", udp_peer(OTHER.into()));
        bench.face_on(0, "dev://test0", udp_peer(OTHER_V6.into()));
        let tagged = peer("udp4://192.0.2.2:6363", "dev://test0?vlan=7&ip=192.0.2.1&port=6363");
        let tagged = bench.face_on(0, "dev://test0", tagged);
        bench.send_one(&face);
        bench.send_one(&tagged);
        for (kind, is_tagged, changes, payload) in frames {
            let mut frame = match kind {
                0 => datagram(OTHER, 6363, 6363, &payload),
                1 => datagram(OTHER_V6, 6363, 6363, &payload),
                2 => datagram(OTHER, 6363, 4789, &payload),
                3 => arp_answer(PEER, OTHER),
                4 => neighbour_discovery::answer(PEER, OTHER_V6, (HERE, OWN_V6)).to_vec(),
                5 => neighbour_discovery::question((PEER, OTHER_V6), OWN_V6, None).to_vec(),
                6 => frame(HERE, PEER, 0x0800, &payload),
                _ => frame(HERE, PEER, 0x86DD, &payload),
            };
            if is_tagged {
                frame = in_vlan(&frame);
            }
            for (at, value) in changes {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            bench.wire().incoming.push(frame);
            bench.poll_after(100);
        }
        bench.ask(|control| control.set_state(PortId(0), false));
        bench.set.apply_changes(&mut bench.records);
        prop_assert_eq!(bench.pool.in_use(), 0);
    }
}
