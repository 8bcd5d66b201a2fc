//! Headers of the Internet as bytes: tables of what goes out and what comes in, and arbitrary bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use namehop_packet::{BufferPool, Checksum, PacketBuffer};
use proptest::prelude::*;

use super::arp::{self, Arp};
use super::ethernet::HEADER_BYTES as ETHERNET_BYTES;
use super::ip::{Datagram, PROTOCOL_UDP};
use super::neighbour_discovery::{self, Message};
use super::tunnel::TunnelPeer;
use super::tunnel::vxlan::KIND as VXLAN;
use super::udp::{self, Ends, Header};
use super::vlan::Carried;

use super::*;

const HERE: MacAddress = [2, 0, 0, 0, 0, 1];
const THERE: MacAddress = [2, 0, 0, 0, 0, 2];
/// Interest `/A`.
const INTEREST: [u8; 13] = [0x05, 0x0B, 0x07, 0x03, 0x08, 0x01, 0x41, 0x0A, 0x04, 1, 2, 3, 4];

fn ends(source: &str, destination: &str) -> Ends {
    let address = |text: &str| text.parse::<IpAddr>().expect("address");
    let (source_port, destination_port) = (6363, 6364);
    Ends { source: address(source), destination: address(destination), source_port, destination_port }
}

fn with_header(ends: &Ends, source_port: Option<u16>, packet: &[u8]) -> PacketBuffer {
    let pool = BufferPool::new(4, 4);
    let mut frame = pool.copy_of(packet).expect("buffer");
    let mut header = Header::new(ends, &HERE, None, &[], None);
    header.set_next_hop(&THERE);
    assert!(header.put_on(source_port, &mut frame, &pool));
    frame
}

#[test]
fn udp_over_ipv4_goes_out_as_specified() {
    let frame = with_header(&ends("192.0.2.1", "192.0.2.2"), None, &INTEREST);
    let expected_header = [
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, // Ethernet
        0x45, 0, 0, 41, 0, 0, 0x40, 0, 64, 17, 0xB6, 0xC0, 192, 0, 2, 1, 192, 0, 2,
        2, // IPv4: may not be fragmented
        0x18, 0xDB, 0x18, 0xDC, 0, 21, 0xEA, 0xEB, // UDP
    ];
    assert_eq!(frame.bytes()[..14], expected_header[..14]);
    // The checksums were computed by another program for these bytes.
    assert_eq!(frame.bytes()[14..42], expected_header[14..]);
    assert_eq!(frame.bytes()[42..55], INTEREST);
    assert_eq!(frame.bytes()[55..], [0; 5], "the frame must be padded to the minimum length");
}

#[test]
fn udp_over_ipv6_goes_out_as_specified() {
    let frame = with_header(&ends("2001:db8::1", "2001:db8::2"), Some(50_000), &INTEREST);
    let bytes = frame.bytes();
    assert_eq!(bytes[12..22], [0x86, 0xDD, 0x60, 0, 0, 0, 0, 21, 17, 64]);
    assert_eq!(bytes[22..38], "2001:db8::1".parse::<Ipv6Addr>().expect("address").octets());
    assert_eq!(bytes[38..54], "2001:db8::2".parse::<Ipv6Addr>().expect("address").octets());
    assert_eq!(bytes[54..60], [0xC3, 0x50, 0x18, 0xDC, 0, 21]);
    let sum = Checksum::new().bytes(&bytes[22..54]).number(17).number(21);
    assert!(bytes[60..62] != [0, 0] && sum.bytes(&bytes[54..]).is_whole());
    assert_eq!(bytes[62..], INTEREST);
}

#[test]
fn in_a_vlan_the_tag_stands_in_front_of_the_type() {
    let vlan = VlanId::new(0x0102).expect("a VLAN");
    for (ends, ethertype) in
        [(ends("192.0.2.1", "192.0.2.2"), [0x08, 0x00]), (ends("2001:db8::1", "2001:db8::2"), [0x86, 0xDD])]
    {
        let pool = BufferPool::new(4, 4);
        let mut frame = pool.copy_of(&INTEREST).expect("buffer");
        let mut header = Header::new(&ends, &HERE, Some(vlan), &[], None);
        header.set_next_hop(&THERE);
        assert!(header.put_on(None, &mut frame, &pool));
        let plain = with_header(&ends, None, &INTEREST);
        let (bytes, plain) = (frame.bytes(), plain.bytes());
        assert_eq!(bytes[..12], plain[..12]);
        assert_eq!(bytes[12..18], [0x81, 0x00, 0x01, 0x02, ethertype[0], ethertype[1]]);
        assert_eq!(bytes[18..], plain[14..], "the padding must be the same as without the tag");
        let carried = Carried::read(bytes).expect("a type");
        assert_eq!((carried.vlan, carried.start()), (Some(vlan), 18));
    }
}

#[test]
fn vxlan_goes_out_without_checksum_over_ipv4_and_with_one_over_ipv6() {
    for (remote, local, header_bytes) in [("192.0.2.2", "192.0.2.1", 64), ("2001:db8::2", "2001:db8::1", 84)] {
        let parse = |text: &str| text.parse::<IpAddr>().expect("address");
        let tunnel = Tunnel::Inside(TunnelPeer { kind: &VXLAN, network: 0x01_02_03, inner: Some(THERE) });
        let peer = InternetPeer { vlan: None, local: parse(local), remote: parse(remote), tunnel, next_hop: None };
        let pool = BufferPool::new(4, 4);
        let mut frame = pool.copy_of(&INTEREST).expect("buffer");
        assert!(peer.header(&HERE).put_on(Some(50_000), &mut frame, &pool));
        let bytes = frame.bytes();
        let udp = &bytes[header_bytes - 30..];
        assert_eq!(udp[..4], [0xC3, 0x50, 0x12, 0xB5]);
        assert_eq!(udp[6..8] == [0, 0], remote.contains('.'));
        assert_eq!(udp[8..16], [8, 0, 0, 0, 1, 2, 3, 0]);
        assert_eq!(udp[16..30], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0x24]);
        assert_eq!(udp[30..], INTEREST);
    }
}

#[test]
fn what_goes_out_comes_in_and_damage_is_found() {
    for ends in [ends("192.0.2.1", "192.0.2.2"), ends("2001:db8::1", "2001:db8::2")] {
        let read = |bytes: &[u8]| {
            let packet = if ends.source.is_ipv4() {
                Datagram::read_v4(bytes, ETHERNET_BYTES)
            } else {
                Datagram::read_v6(bytes, ETHERNET_BYTES)
            }?;
            Ok::<_, LinkDrop>((packet.source, packet.destination, udp::read(bytes, &packet)?))
        };
        let frame = with_header(&ends, None, &INTEREST).bytes().to_vec();
        let (source, destination, datagram) = read(&frame).expect("a complete packet");
        assert_eq!((source, destination), (ends.source, ends.destination));
        assert_eq!((datagram.source_port, datagram.destination_port), (6363, 6364));
        assert_eq!(frame[datagram.payload.clone()], INTEREST);
        for at in 14..datagram.payload.end {
            let mut damaged = frame.clone();
            damaged[at] ^= 0x10;
            // IPv6 has no checksum of its own: class, flow label, protocol and hop limit are not protected.
            let is_unprotected = ends.source.is_ipv6() && matches!(at, 15..=17 | 20 | 21);
            assert!(read(&damaged).is_err() || is_unprotected, "byte {at}");
        }
        for length in 0..datagram.payload.end {
            assert!(read(&frame[..length]).is_err(), "{length} bytes");
        }
    }
}

#[test]
fn packets_that_are_not_whole_are_dropped_under_their_reason() {
    let v4 = with_header(&ends("192.0.2.1", "192.0.2.2"), None, &INTEREST).bytes().to_vec();
    let v6 = with_header(&ends("2001:db8::1", "2001:db8::2"), None, &INTEREST).bytes().to_vec();
    let changed = |frame: &[u8], changes: &[(usize, u8)]| {
        let mut frame = frame.to_vec();
        changes.iter().for_each(|&(at, value)| frame[at] = value);
        // Restores the checksum, so that it is not the reason for a refusal.
        if frame[12] == 0x08 {
            frame[24..26].fill(0);
            let header_bytes = usize::from(frame[14] & 0xF).clamp(5, 10) * 4;
            let checksum = Checksum::new().bytes(&frame[14..14 + header_bytes]).finish();
            frame[24..26].copy_from_slice(&checksum);
        }
        frame
    };
    for (changes, reason) in [
        (&[(20, 0x20)][..], LinkDrop::IpFragment),
        (&[(21, 1)], LinkDrop::IpFragment),
        (&[(14, 0x55)], LinkDrop::MalformedFrame),
        (&[(14, 0x44)], LinkDrop::MalformedFrame),
        (&[(14, 0x4F)], LinkDrop::MalformedFrame),
        (&[(17, 19)], LinkDrop::MalformedFrame),
        (&[(16, 1)], LinkDrop::MalformedFrame),
    ] {
        assert_eq!(Datagram::read_v4(&changed(&v4, changes), ETHERNET_BYTES), Err(reason), "{changes:?}");
    }
    assert!(
        Datagram::read_v4(&changed(&v4, &[(20, 0x00)]), ETHERNET_BYTES).is_ok(),
        "the bit that forbids fragments is optional"
    );
    let mut damaged = v4.clone();
    damaged[24] ^= 1;
    assert_eq!(Datagram::read_v4(&damaged, ETHERNET_BYTES), Err(LinkDrop::BadChecksum));
    for (changes, reason) in
        [((20, 44), LinkDrop::IpFragment), ((14, 0x40), LinkDrop::MalformedFrame), ((18, 1), LinkDrop::MalformedFrame)]
    {
        assert_eq!(Datagram::read_v6(&changed(&v6, &[changes]), ETHERNET_BYTES), Err(reason), "{changes:?}");
    }
    let read = |frame: &[u8]| udp::read(frame, &Datagram::read_v4(frame, ETHERNET_BYTES).expect("IPv4")).map(|_| ());
    assert_eq!(read(&changed(&v4, &[(40, 0), (41, 0)])), Ok(()), "IPv4 allows UDP without a checksum");
    for (changes, reason) in [
        (&[(39, 7)][..], LinkDrop::MalformedFrame),
        (&[(39, 22)], LinkDrop::MalformedFrame),
        (&[(54, 9)], LinkDrop::BadChecksum),
    ] {
        assert_eq!(read(&changed(&v4, changes)), Err(reason), "{changes:?}");
    }
    let read = |frame: &[u8]| udp::read(frame, &Datagram::read_v6(frame, ETHERNET_BYTES).expect("IPv6")).map(|_| ());
    assert_eq!(read(&changed(&v6, &[(60, 0), (61, 0)])), Err(LinkDrop::BadChecksum), "IPv6 requires a UDP checksum");
    assert_eq!(
        read(&changed(&v6, &[(60, 0), (61, 0), (56, 0x12), (57, 0xB5)])),
        Ok(()),
        "VXLAN over IPv6 may omit the UDP checksum"
    );
}

#[test]
fn arp_is_read_as_it_is_written() {
    let (own, other) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
    let question = arp::question((HERE, own), other, None);
    assert_eq!(question[..14], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 0, 1, 0x08, 0x06]);
    assert_eq!(question[14..24], [0, 1, 8, 0, 6, 4, 0, 1, 2, 0]);
    let read = Arp::read(&question, ETHERNET_BYTES).expect("a question");
    assert_eq!(read, Arp { is_reply: false, sender: HERE, sender_ip: own, target: [0; 6], target_ip: other });
    assert_eq!(arp::question((HERE, own), other, Some(THERE))[..6], THERE);
    let answer = read.answer(THERE).to_frame(&HERE);
    let expected = Arp { is_reply: true, sender: THERE, sender_ip: other, target: HERE, target_ip: own };
    assert_eq!(Arp::read(&answer, ETHERNET_BYTES), Ok(expected));
    for (at, value) in [(15, 2), (16, 9), (18, 8), (19, 6), (21, 3), (22, 1)] {
        let mut wrong = answer;
        wrong[at] = value;
        assert_eq!(Arp::read(&wrong, ETHERNET_BYTES), Err(LinkDrop::BadNeighbourMessage), "byte {at}");
    }
    assert_eq!(Arp::read(&answer[..41], ETHERNET_BYTES), Err(LinkDrop::BadNeighbourMessage));
}

#[test]
fn neighbour_discovery_is_read_as_it_is_written_and_checked() {
    let [own, other] = ["2001:db8::1:2:3", "2001:db8::4:5:6"].map(|text| text.parse::<Ipv6Addr>().expect("address"));
    let read = |frame: &[u8]| {
        let packet = Datagram::read_v6(frame, ETHERNET_BYTES)?;
        icmp::read_type(frame, &packet)?;
        Message::read(frame, &packet)
    };
    let question = neighbour_discovery::question((HERE, own), other, None);
    assert_eq!(question[..6], [0x33, 0x33, 0xFF, 5, 0, 6]);
    assert_eq!(read(&question), Ok(Message::Solicitation { target: other, source: Some(HERE) }));
    let to_one = neighbour_discovery::question((HERE, own), other, Some(THERE));
    assert_eq!((&to_one[..6], read(&to_one).is_ok()), (&THERE[..], true));
    let answer = neighbour_discovery::answer(THERE, other, (HERE, own));
    let expected = Message::Advertisement { target: other, address: Some(THERE), is_solicited: true };
    assert_eq!((&answer[..6], read(&answer)), (&HERE[..], Ok(expected)));
    let to_all = neighbour_discovery::answer(THERE, other, (HERE, Ipv6Addr::UNSPECIFIED));
    let expected = Message::Advertisement { target: other, address: Some(THERE), is_solicited: false };
    assert_eq!((&to_all[..6], read(&to_all)), (&[0x33, 0x33, 0, 0, 0, 1][..], Ok(expected)));

    let damaged = |frame: &[u8], at: usize, value: u8, sums: bool| {
        let mut frame = frame.to_vec();
        frame[at] = value;
        if sums {
            frame[56..58].fill(0);
            let sum = Checksum::new().bytes(&frame[22..54]).number(58).number(32).bytes(&frame[54..]).finish();
            frame[56..58].copy_from_slice(&sum);
        }
        read(&frame)
    };
    for (at, value) in [(21, 254), (55, 1), (78, 9), (79, 0), (79, 2), (80, 1), (62, 0xFF)] {
        let result = damaged(&question, at, value, true);
        let is_other_option = at == 78 && result == Ok(Message::Solicitation { target: other, source: None });
        assert!(result == Err(LinkDrop::BadNeighbourMessage) || is_other_option, "byte {at}: {result:?}");
    }
    assert_eq!(damaged(&question, 70, 1, false), Err(LinkDrop::BadChecksum));
}

#[test]
fn an_echo_request_becomes_its_answer() {
    let ping = [8, 0, 0, 0, 0x12, 0x34, 0, 1, b'p', b'i', b'n'];
    for ends in [ends("192.0.2.2", "192.0.2.1"), ends("2001:db8::2", "2001:db8::1")] {
        let is_v4 = ends.source.is_ipv4();
        let mut frame = with_header(&ends, None, &[0; 3]).bytes().to_vec();
        let start = if is_v4 { 34 } else { 54 };
        let mut message = ping;
        if is_v4 {
            frame[23] = 1;
            frame[24..26].fill(0);
            let checksum = Checksum::new().bytes(&frame[14..34]).finish();
            frame[24..26].copy_from_slice(&checksum);
            let checksum = Checksum::new().bytes(&message).finish();
            message[2..4].copy_from_slice(&checksum);
        } else {
            (frame[20], message[0]) = (58, 128);
            let checksum = neighbour_discovery::icmp_sum(ends.source, ends.destination, &message).finish();
            message[2..4].copy_from_slice(&checksum);
        }
        frame[start..start + 11].copy_from_slice(&message);
        let read = |bytes: &[u8]| {
            let packet =
                if is_v4 { Datagram::read_v4(bytes, ETHERNET_BYTES) } else { Datagram::read_v6(bytes, ETHERNET_BYTES) }
                    .expect("a complete packet");
            let kind = icmp::read_type(bytes, &packet).expect("a complete packet");
            (packet, kind)
        };
        let mut buffer = BufferPool::new(1, 1).copy_of(&frame).expect("buffer");
        let (packet, kind) = read(buffer.bytes());
        assert!(icmp::is_echo_request(&packet, kind));
        icmp::answer(&mut buffer, &packet);
        let (answer, kind) = read(buffer.bytes());
        assert_eq!((answer.source, answer.destination), (ends.destination, ends.source));
        assert_eq!(kind, if is_v4 { 0 } else { 129 });
        assert!(!icmp::is_echo_request(&answer, kind), "an echo reply must not be answered");
        assert_eq!((&buffer.bytes()[..6], &buffer.bytes()[6..12]), (&HERE[..], &THERE[..]));
        assert_eq!(buffer.bytes()[answer.payload.start + 4..answer.payload.end], ping[4..]);
        assert!(buffer.bytes().len() >= 60);
    }
}

#[test]
fn a_frame_without_headroom_gets_its_header_in_another_buffer() {
    let pool = BufferPool::new(4, 4);
    let mut frame = pool.copy_of(&INTEREST).expect("buffer");
    while frame.prepend(1).is_some() {}
    let length = frame.bytes().len();
    frame.bytes_mut().fill(7);
    let header = Header::new(&ends("192.0.2.1", "192.0.2.2"), &HERE, None, &[], None);
    assert!(header.put_on(None, &mut frame, &pool));
    let packet = Datagram::read_v4(frame.bytes(), ETHERNET_BYTES).expect("a complete packet");
    assert_eq!(udp::read(frame.bytes(), &packet).expect("a complete packet").payload.len(), length);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_of_any_length_and_content_have_right_checksums(
        packet in prop::collection::vec(any::<u8>(), 0..2000),
        is_v4 in any::<bool>(),
        source_port in any::<Option<u16>>(),
    ) {
        let ends = if is_v4 { ends("192.0.2.1", "198.51.100.2") } else { ends("2001:db8::1", "2001:db8::2") };
        let frame = with_header(&ends, source_port, &packet);
        let read = if is_v4 { Datagram::read_v4 } else { Datagram::read_v6 };
        let read = read(frame.bytes(), ETHERNET_BYTES).expect("a complete packet");
        prop_assert_eq!(read.protocol, PROTOCOL_UDP);
        let datagram = udp::read(frame.bytes(), &read).expect("a complete packet");
        prop_assert_eq!(datagram.source_port, source_port.unwrap_or(6363));
        prop_assert_eq!(&frame.bytes()[datagram.payload], &packet[..]);
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let packets = [Datagram::read_v4(&bytes, ETHERNET_BYTES), Datagram::read_v6(&bytes, ETHERNET_BYTES)];
        for packet in packets.into_iter().flatten() {
            prop_assert!(packet.payload.end <= bytes.len());
            if let Ok(datagram) = udp::read(&bytes, &packet) {
                prop_assert!(datagram.payload.end <= packet.payload.end);
                let _ = (VXLAN.read)(&bytes[datagram.payload], &HERE);
            }
            let _ = Message::read(&bytes, &packet);
        }
        let _ = Arp::read(&bytes, ETHERNET_BYTES);
        let _ = entropy::source_port(&bytes);
    }
}
