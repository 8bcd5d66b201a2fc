//! UDP peers that refuse datagrams: their faces are down for some seconds, and other peers of the same socket lose nothing.

mod socket_support;

use std::net::{Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use namehop_face::socket::{FaceEvent, SocketConfig};
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
    let (length, _) = receiving.await.expect("in time").expect("datagram");
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

            // Its refusal is known before the next packet, and concerns no other peer of the socket.
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

            // Without one it is used again after some seconds.
            drop(peer);
            // Errors are not believed for a second after they were wrong.
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
