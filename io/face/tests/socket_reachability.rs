//! Tests of UDP peers that refuse datagrams or do not answer: their faces go down, and other peers of the same socket
//! lose nothing.

mod socket_support;

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use namehop_face::link_service::{LinkService, Reassembler};
use namehop_face::registry::FaceUpdate;
use namehop_face::socket::{FaceEvent, SocketConfig};
use namehop_packet::{IncomingBurst, Timestamp};
use namehop_wire::Interest;
use namehop_wire::lp::{KnowsPitTokens, LpHeader, NackReason, encode_packet};
use socket_support::*;
use tokio::net::UdpSocket;

fn udp_config() -> SocketConfig {
    let mut config = SocketConfig::without_listeners();
    config.udp = vec![loopback(), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))];
    config
}

fn any_port(of: SocketAddr) -> SocketAddr {
    if of.is_ipv4() { loopback() } else { SocketAddr::from((Ipv6Addr::LOCALHOST, 0)) }
}

async fn receives(socket: &UdpSocket, expected: &[u8]) {
    let mut got = vec![0; 10_000];
    let receiving = tokio::time::timeout(PATIENCE, socket.recv_from(&mut got));
    let (length, _) = receiving.await.expect("a datagram arrives in time").expect("datagram");
    assert_eq!(&got[..length], expected);
}

#[test]
fn a_peer_that_refuses_is_down_until_it_sends_or_some_seconds_are_over() {
    with_service(udp_config(), 256, async |mut service: Harness| {
        for scheme in ["udp4", "udp6"] {
            let server = service.address(scheme);
            let peer = UdpSocket::bind(any_port(server)).await.expect("bind");
            let other = UdpSocket::bind(any_port(server)).await.expect("bind");
            peer.send_to(&packet(5, 3), server).await.expect("send");
            let face = service.created().await;
            other.send_to(&packet(5, 3), server).await.expect("send");
            let other_face = service.created().await;
            let address = peer.local_addr().expect("address");
            drop(peer);

            // The refusal is known before the next packet, and does not affect other peers of the socket.
            let start = Instant::now();
            service.send(face.id(), &packet(6, 1));
            assert!(matches!(service.next_event().await, FaceEvent::Down(down) if down.id() == face.id()), "{scheme}");
            assert!(start.elapsed() < Duration::from_millis(500) && !face.is_up(), "{scheme}");
            for number in 0..20 {
                service.send(face.id(), &packet(6, 1));
                service.send(other_face.id(), &packet(6, number));
                receives(&other, &packet(6, number)).await;
            }
            assert!(other_face.is_up(), "{scheme}");

            // A packet from the peer brings it up at once.
            let peer = UdpSocket::bind(address).await.expect("bind");
            let start = Instant::now();
            peer.send_to(&packet(5, 4), server).await.expect("send");
            assert!(matches!(service.next_event().await, FaceEvent::Up(up) if up.id() == face.id()), "{scheme}");
            assert!(start.elapsed() < Duration::from_millis(500) && face.is_up(), "{scheme}");
            service.send(face.id(), &packet(6, 9));
            receives(&peer, &packet(6, 9)).await;

            // Without a packet the face comes up again after some seconds.
            drop(peer);
            // Errors are ignored for a second after a packet has disproved one.
            service.send(face.id(), &packet(6, 1));
            tokio::time::sleep(Duration::from_millis(1_100)).await;
            assert!(face.is_up() && service.events.is_empty(), "{scheme}");
            let start = Instant::now();
            service.send(face.id(), &packet(6, 1));
            assert!(matches!(service.next_event().await, FaceEvent::Down(_)), "{scheme}");
            assert!(matches!(service.next_event().await, FaceEvent::Up(_)), "{scheme}");
            let waited = start.elapsed();
            assert!((Duration::from_secs(2)..Duration::from_secs(6)).contains(&waited), "{scheme}: {waited:?}");
        }
    });
}

const QUESTION: [u8; KnowsPitTokens::FRAME_LEN] = KnowsPitTokens::Asks.frame();
const ANSWER: [u8; KnowsPitTokens::FRAME_LEN] = KnowsPitTokens::Tells.frame();

#[test]
fn a_configured_peer_that_refuses_is_probed_until_it_answers_or_refuses_no_more() {
    with_service(udp_config(), 256, async |mut service: Harness| {
        let server = service.address("udp4");
        let peer = UdpSocket::bind(any_port(server)).await.expect("bind");
        let address = peer.local_addr().expect("address");
        let face = service.create(&format!("udp4://{address}"), FaceUpdate::default()).await.expect("face");
        assert!(matches!(service.next_event().await, FaceEvent::Created(_)));
        drop(peer);
        for answers in [true, false] {
            service.send(face.id(), &packet(5, 1));
            assert!(matches!(service.next_event().await, FaceEvent::Down(_)), "{answers}");
            // Refused probes keep it down, for longer than a single refusal does.
            tokio::time::sleep(Duration::from_millis(4_500)).await;
            assert!(!face.is_up() && service.events.is_empty(), "{answers}");
            let peer = UdpSocket::bind(address).await.expect("bind");
            let back = Instant::now();
            receives(&peer, &QUESTION).await;
            assert!(back.elapsed() < Duration::from_secs(1), "{answers}");
            if answers {
                peer.send_to(&ANSWER, server).await.expect("send");
            }
            assert!(matches!(service.next_event().await, FaceEvent::Up(_)), "{answers}");
            assert_eq!(back.elapsed() < Duration::from_secs(2), answers);
            drop(peer);
            // Errors are ignored for a second after a packet has disproved one.
            tokio::time::sleep(Duration::from_millis(1_100)).await;
        }
    });
}

/// Returns how a peer answers when it is asked, and receives what it gets besides the question. A peer that is not a
/// Namehop answers the Interest, with HopLimit 0 as NFD does.
async fn answer_of(peer: &UdpSocket, is_namehop: bool) -> Vec<u8> {
    let mut interest = [0; 100];
    let (length, _) =
        tokio::time::timeout(PATIENCE, peer.recv_from(&mut interest)).await.expect("in time").expect("one");
    let decoded = Interest::decode(&interest[..length]).expect("an Interest");
    assert!(decoded.name.to_string().starts_with("/localhop/32=namehop-probe/") && decoded.hop_limit == Some(1));
    interest[length - 1] = 0;
    let header = LpHeader { nack: Some(NackReason::NO_ROUTE), ..LpHeader::default() };
    if is_namehop { ANSWER.to_vec() } else { encode_packet(&header, Some(&interest[..length])) }
}

/// Passes the next frame to the link service of its face, as the worker would. No packet may come out.
async fn process_frame(service: &Harness, link: &mut LinkService) {
    let frame = service.next_frame().await;
    let (mut reassembler, mut packets) = (Reassembler::new(0, 1), IncomingBurst::default());
    link.receive(Timestamp(0), frame.buffer, 0, &service.pool, &mut reassembler, &mut packets).expect("taken");
    assert!(packets.in_order().is_empty(), "the answer is for the link service only");
}

#[test]
fn a_configured_peer_that_has_answered_and_falls_silent_is_down_until_it_sends() {
    for is_namehop in [true, false] {
        let mut config = udp_config();
        config.blocked_timeout_ms = 1_000;
        with_service(config, 256, async |mut service: Harness| {
            let server = service.address("udp4");
            let peer = UdpSocket::bind(any_port(server)).await.expect("bind");
            let address = peer.local_addr().expect("address");
            let face = service.create(&format!("udp4://{address}"), FaceUpdate::default()).await.expect("face");
            assert!(matches!(service.next_event().await, FaceEvent::Created(_)));
            let mut link = LinkService::new(Arc::clone(&face), 0);
            // A peer that has never answered stays up.
            service.send(face.id(), &packet(5, 1));
            receives(&peer, &packet(5, 1)).await;
            receives(&peer, &QUESTION).await;
            let answer = answer_of(&peer, is_namehop).await;
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            assert!(face.is_up() && service.events.is_empty());
            peer.send_to(&answer, server).await.expect("send");
            process_frame(&service, &mut link).await;
            // A peer that is sent only answers also stays up, and is not asked.
            service.send(face.id(), &ANSWER);
            receives(&peer, &ANSWER).await;
            tokio::time::sleep(Duration::from_millis(2_000)).await;
            assert!(peer.try_recv(&mut [0; 100]).is_err());
            assert!(face.is_up() && service.events.is_empty());
            let start = Instant::now();
            service.send(face.id(), &packet(5, 2));
            assert!(matches!(service.next_event().await, FaceEvent::Down(_)));
            let waited = start.elapsed();
            assert!((Duration::from_millis(700)..Duration::from_millis(1_500)).contains(&waited), "{waited:?}");
            receives(&peer, &packet(5, 2)).await;
            receives(&peer, &QUESTION).await;
            if is_namehop {
                receives(&peer, &QUESTION).await;
            } else {
                let _ = answer_of(&peer, is_namehop).await;
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert!(!face.is_up(), "the face must stay down without a packet of the peer");
            peer.send_to(&answer, server).await.expect("send");
            assert!(matches!(service.next_event().await, FaceEvent::Up(_)));
        });
    }
}
