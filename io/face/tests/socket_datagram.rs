//! Tests of UDP faces: on demand, created, multicast; batches, noise, idle time-out.

mod socket_support;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use namehop_face::registry::FaceUpdate;
use namehop_face::socket::{CreateError, MulticastInterfaces, NDN_MULTICAST_V4, NDN_MULTICAST_V6, SocketConfig};
use namehop_face::{FaceFlags, FacePersistency, FaceUri, LinkDrop};
use namehop_packet::{FaceScope, LinkType};
use socket_support::*;
use socket2::{Domain, InterfaceIndexOrAddress, Socket, Type};
use tokio::net::UdpSocket;

fn udp_config() -> SocketConfig {
    let mut config = SocketConfig::without_listeners();
    config.udp = vec![loopback(), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))];
    config
}

async fn client(of: SocketAddr) -> UdpSocket {
    let address = if of.is_ipv4() { loopback() } else { SocketAddr::from((Ipv6Addr::LOCALHOST, 0)) };
    UdpSocket::bind(address).await.expect("bind")
}

/// Receives one datagram from `from`.
async fn expect_datagram(socket: &UdpSocket, from: SocketAddr, expected: &[u8]) {
    let mut got = vec![0; 10_000];
    let receiving = socket.recv_from(&mut got);
    let (length, sender) =
        tokio::time::timeout(PATIENCE, receiving).await.expect("a datagram arrives in time").expect("datagram");
    assert_eq!(&got[..length], expected);
    assert_eq!(sender, from);
}

#[test]
fn peers_get_faces_on_demand_and_answers_from_the_listening_port() {
    with_service(udp_config(), 256, async |mut service: Harness| {
        service.start_echo();
        for scheme in ["udp4", "udp6"] {
            let server = service.address(scheme);
            let (left, right) = (client(server).await, client(server).await);
            for length in [0, 20, 1400, 8796] {
                left.send_to(&packet(6, length), server).await.expect("send");
                expect_datagram(&left, server, &packet(6, length)).await;
                right.send_to(&packet(5, length / 2), server).await.expect("send");
                expect_datagram(&right, server, &packet(5, length / 2)).await;
            }
            let face = service.created().await;
            assert_eq!(face.scope(), FaceScope::NonLocal);
            assert_eq!(face.link_type(), LinkType::PointToPoint);
            assert_eq!(face.persistency(), FacePersistency::OnDemand);
            assert_eq!(face.remote_uri(), &FaceUri::udp(left.local_addr().expect("address")));
            assert_eq!(*face.local_uri(), FaceUri::udp(server));
            assert!(face.is_datagram());
            assert_eq!(face.mtu_bytes(), 8800);
            assert!(face.expiration_period_ms().is_some());
            assert_eq!(face.send_queue_bytes.load(Ordering::Relaxed), 0);
            service.created().await;
        }
    });
}

#[test]
fn bursts_are_received_and_sent_whole() {
    with_service(udp_config(), 1024, async |mut service: Harness| {
        service.start_echo();
        let server = service.address("udp4");
        let peer = client(server).await;
        for round in 0..5 {
            // More than one batch, less than the smallest kernel buffer.
            for number in 0..150 {
                peer.send_to(&packet(5, number + round), server).await.expect("send");
            }
            for number in 0..150 {
                expect_datagram(&peer, server, &packet(5, number + round)).await;
            }
        }
        assert_eq!(service.faces.len(), 1);
    });
}

#[test]
fn noise_is_counted_and_makes_no_face() {
    with_service(udp_config(), 256, async |mut service: Harness| {
        service.start_echo();
        let server = service.address("udp4");
        let peer = client(server).await;
        peer.send_to(b"", server).await.expect("send");
        peer.send_to(b"hello", server).await.expect("send");
        eventually("invalid datagrams are counted", || service.faces.link_drops().get(LinkDrop::NotNdnFrame) == 2)
            .await;
        assert!(service.faces.is_empty());
        peer.send_to(&packet(5, 3), server).await.expect("send");
        expect_datagram(&peer, server, &packet(5, 3)).await;
        let face = service.created().await;
        // Two elements in one datagram, a truncated one, an oversized one.
        peer.send_to(&[packet(5, 3), packet(5, 3)].concat(), server).await.expect("send");
        peer.send_to(&packet(5, 3)[..4], server).await.expect("send");
        peer.send_to(&packet(6, 8797), server).await.expect("send");
        peer.send_to(&packet(6, 20_000), server).await.expect("send");
        eventually("invalid datagrams are counted", || {
            face.counters.link_drop(LinkDrop::MalformedFrame) == 2
                && face.counters.link_drop(LinkDrop::FrameTooLong) == 2
        })
        .await;
        peer.send_to(&packet(5, 4), server).await.expect("send");
        expect_datagram(&peer, server, &packet(5, 4)).await;
    });
}

#[test]
fn a_full_ring_drops_datagrams_with_a_count() {
    with_service(udp_config(), 4, async |mut service: Harness| {
        let server = service.address("udp4");
        let peer = client(server).await;
        for number in 0..10 {
            peer.send_to(&packet(5, number), server).await.expect("send");
        }
        let face = service.created().await;
        eventually("drops are counted", || face.counters.link_drop(LinkDrop::ReceiveRingFull) == 6).await;
        for number in 0..4 {
            assert_eq!(service.next_frame().await.buffer.bytes(), packet(5, number));
        }
    });
}

#[test]
fn idle_on_demand_faces_close_between_one_and_two_periods() {
    let mut config = udp_config();
    config.udp_idle_ms = 300;
    with_service(config, 256, async |mut service: Harness| {
        service.start_echo();
        let server = service.address("udp4");
        let (idle, busy) = (client(server).await, client(server).await);
        idle.send_to(&packet(5, 1), server).await.expect("send");
        let started = Instant::now();
        let idle_face = service.created().await;
        busy.send_to(&packet(5, 1), server).await.expect("send");
        let busy_face = service.created().await;
        let kept = service.create("udp4://127.0.0.1:9", FaceUpdate::default()).await.expect("created");
        service.created().await;
        loop {
            busy.send_to(&packet(5, 1), server).await.expect("send");
            tokio::time::sleep(Duration::from_millis(20)).await;
            if service.faces.get(idle_face.id()).is_none() {
                break;
            }
            assert!(started.elapsed() < PATIENCE);
        }
        let age = started.elapsed();
        assert!(age >= Duration::from_millis(290), "closed after {age:?}");
        service.destroyed(&idle_face).await;
        assert!(service.faces.get(busy_face.id()).is_some());
        assert!(busy_face.expiration_period_ms().is_some_and(|left| left <= 300));
        service.destroyed(&busy_face).await;
        assert!(service.faces.get(kept.id()).is_some(), "persistent faces must stay");
        assert_eq!(kept.expiration_period_ms(), None);
        // The peer may come back later.
        idle.send_to(&packet(5, 2), server).await.expect("send");
        let again = service.created().await;
        assert_ne!(again.id(), idle_face.id());
    });
}

#[test]
fn a_created_face_shares_the_listening_socket() {
    with_service(udp_config(), 256, async |mut service: Harness| {
        let server = service.address("udp4");
        let peer = client(server).await;
        let remote = peer.local_addr().expect("address");
        let params = FaceUpdate {
            persistency: Some(FacePersistency::Permanent),
            flags: FaceFlags::RELIABILITY,
            flags_mask: FaceFlags::RELIABILITY.0,
            mtu_bytes: Some(1200),
            base_congestion_marking_interval_ns: Some(7),
            default_congestion_threshold_bytes: Some(8),
        };
        let face = service.create(&format!("udp4://{remote}"), params).await.expect("created");
        assert_eq!(service.created().await.id(), face.id());
        assert_eq!(face.persistency(), FacePersistency::Permanent);
        assert_eq!(*face.local_uri(), FaceUri::udp(server));
        assert_eq!(face.mtu_bytes(), 1200);
        assert!(face.flags().contains(FaceFlags::RELIABILITY.union(FaceFlags::CONGESTION_MARKING)));
        assert_eq!(face.base_congestion_marking_interval_ns(), 7);
        assert!(service.send(face.id(), &packet(5, 33)));
        expect_datagram(&peer, server, &packet(5, 33)).await;
        peer.send_to(&packet(6, 34), server).await.expect("send");
        assert_eq!(service.next_frame().await.face, face.id());
        match service.create(&format!("udp4://{remote}"), FaceUpdate::default()).await {
            Err(CreateError::Exists(existing)) => assert_eq!(existing.id(), face.id()),
            other => panic!("expected a conflict, got {other:?}"),
        }
        assert!(service.destroy(face.id()).await);
        service.destroyed(&face).await;
        // Now the peer is unsolicited again.
        peer.send_to(&packet(6, 35), server).await.expect("send");
        assert_ne!(service.created().await.id(), face.id());
    });
}

#[test]
fn a_wildcard_channel_shows_the_address_that_reaches_the_peer() {
    let mut config = SocketConfig::without_listeners();
    config.udp = vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))];
    with_service(config, 256, async |mut service: Harness| {
        service.start_echo();
        let port = service.address("udp4").port();
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let peer = client(server).await;
        peer.send_to(&packet(5, 3), server).await.expect("send");
        expect_datagram(&peer, server, &packet(5, 3)).await;
        assert_eq!(*service.created().await.local_uri(), FaceUri::udp(server));
        let made = service.create("udp4://127.0.0.1:9", FaceUpdate::default()).await.expect("created");
        assert_eq!(*made.local_uri(), FaceUri::udp(server));
    });
}

#[test]
fn a_refused_datagram_costs_only_itself() {
    let mut config = udp_config();
    config.datagram_queue_bytes = 20_000;
    with_service(config, 256, async |mut service: Harness| {
        let server = service.address("udp4");
        let peer = client(server).await;
        let remote = peer.local_addr().expect("address");
        let good = service.create(&format!("udp4://{remote}"), FaceUpdate::default()).await.expect("created");
        // A socket bound to the loopback address cannot send to the limited broadcast address.
        let bad = service.create("udp4://255.255.255.255:9", FaceUpdate::default()).await;
        let bad = match bad {
            Ok(face) => face,
            Err(CreateError::Unreachable(_)) => return,
            Err(other) => panic!("unexpected {other}"),
        };
        service.send(good.id(), &packet(5, 1));
        service.send(bad.id(), &packet(5, 2));
        service.send(good.id(), &packet(5, 3));
        expect_datagram(&peer, server, &packet(5, 1)).await;
        expect_datagram(&peer, server, &packet(5, 3)).await;
        assert_eq!(bad.counters.link_drop(LinkDrop::SendFailed), 1);
        assert_eq!(bad.send_queue_bytes.load(Ordering::Relaxed), 0);
        // More than the channel may hold at once.
        for _ in 0..4 {
            service.send(good.id(), &packet(6, 8000));
        }
        for _ in 0..2 {
            expect_datagram(&peer, server, &packet(6, 8000)).await;
        }
        assert_eq!(good.counters.link_drop(LinkDrop::SendQueueFull), 2);
        service.created().await;
    });
}

fn multicast_config() -> SocketConfig {
    let mut config = SocketConfig::without_listeners();
    config.multicast.interfaces = MulticastInterfaces::Named(vec!["lo".to_owned()]);
    config
}

/// Creates a neighbour on the loopback "link": a socket that has joined the group there.
fn neighbour(group: SocketAddr) -> UdpSocket {
    let socket = Socket::new(Domain::for_address(group), Type::DGRAM.nonblocking(), None).expect("socket");
    socket.set_reuse_address(true).expect("address reuse can be set");
    match group {
        SocketAddr::V4(v4) => {
            socket.bind(&group.into()).expect("bind");
            socket.join_multicast_v4_n(v4.ip(), &InterfaceIndexOrAddress::Index(1)).expect("join");
            socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).expect("interface");
        }
        SocketAddr::V6(v6) => {
            socket.set_only_v6(true).expect("IPv6 only can be set");
            socket.bind(&group.into()).expect("bind");
            socket.join_multicast_v6(v6.ip(), 1).expect("join");
            socket.set_multicast_if_v6(1).expect("interface");
        }
    }
    UdpSocket::from_std(socket.into()).expect("runtime")
}

#[test]
fn multicast_faces_hear_and_reach_the_group() {
    let mut config = multicast_config();
    // Ports that a forwarder on this host does not use.
    config.multicast.group_v4 = Some(SocketAddrV4::new(NDN_MULTICAST_V4, 45_363));
    config.multicast.group_v6 = Some(SocketAddrV6::new(NDN_MULTICAST_V6, 45_363, 0, 0));
    with_service(config, 256, async |mut service: Harness| {
        let groups: [SocketAddr; 2] = [
            SocketAddrV4::new(NDN_MULTICAST_V4, 45_363).into(),
            SocketAddrV6::new(NDN_MULTICAST_V6, 45_363, 0, 1).into(),
        ];
        let faces = [service.created().await, service.created().await];
        for ((group, scheme), face) in groups.into_iter().zip(["udp4+dev", "udp6+dev"]).zip(faces) {
            assert_eq!(face.remote_uri(), &FaceUri::udp(group));
            assert_eq!(face.local_uri().to_string(), format!("{scheme}://lo:45363"));
            assert_eq!(face.link_type(), LinkType::MultiAccess);
            assert_eq!(face.scope(), FaceScope::NonLocal);
            assert_eq!(face.persistency(), FacePersistency::Permanent);
            let neighbour = neighbour(group);
            let incoming = packet(5, 21);
            if let Err(error) = neighbour.send_to(&incoming, group).await {
                // Most hosts have no route for IPv6 multicast over the loopback interface.
                assert_eq!(error.kind(), std::io::ErrorKind::NetworkUnreachable);
                assert!(service.send(face.id(), &incoming));
                eventually("the failure is counted", || face.counters.link_drop(LinkDrop::SendFailed) == 1).await;
                continue;
            }
            // On the loopback interface every socket also receives what it has sent itself.
            let endpoint = loop {
                let frame = service.next_frame().await;
                if frame.face == face.id() {
                    assert_eq!(frame.buffer.bytes(), incoming);
                    break frame.endpoint;
                }
            };
            assert_ne!(endpoint, 0, "the sender must be distinguished from others");
            let outgoing = packet(6, 22);
            assert!(service.send(face.id(), &outgoing));
            let mut got = vec![0; 100];
            loop {
                let receiving = neighbour.recv_from(&mut got);
                let (length, _) = tokio::time::timeout(PATIENCE, receiving)
                    .await
                    .expect("a datagram arrives in time")
                    .expect("datagram");
                if got[..length] == outgoing {
                    break;
                }
                assert_eq!(&got[..length], incoming);
            }
            assert!(service.destroy(face.id()).await);
            service.destroyed(&face).await;
        }
    });
}

#[test]
fn multicast_faces_are_ad_hoc_where_the_configuration_says_so() {
    let mut config = multicast_config();
    config.multicast.group_v4 = Some(SocketAddrV4::new(NDN_MULTICAST_V4, 45_364));
    config.multicast.group_v6 = None;
    config.multicast.is_ad_hoc = true;
    with_service(config, 256, async |mut service: Harness| {
        assert_eq!(service.created().await.link_type(), LinkType::AdHoc);
    });
}

#[test]
fn a_multicast_interface_that_does_not_exist_yet_is_waited_for() {
    let mut config = multicast_config();
    config.multicast.interfaces = MulticastInterfaces::Named(vec!["nosuch0".to_owned(), "lo".to_owned()]);
    with_service(config, 256, async |mut service: Harness| {
        for _ in 0..2 {
            assert_eq!(
                service.created().await.local_uri().to_string().rsplit_once(':').expect("port").0.rsplit('/').next(),
                Some("lo")
            );
        }
    });
}

#[test]
fn faces_with_keep_alive_send_idle_packets() {
    let mut config = udp_config();
    config.keep_alive_ms = 30;
    with_service(config, 256, async |service: Harness| {
        let peer = client(service.address("udp4")).await;
        let uri = FaceUri::udp(peer.local_addr().expect("address"));
        let permanent = FaceUpdate { persistency: Some(FacePersistency::Permanent), ..FaceUpdate::default() };
        let face = service.create(&uri.to_string(), permanent).await.expect("face");
        // A path within the host is never forgotten, so it needs no keep-alives.
        assert!(!face.flags().contains(FaceFlags::KEEP_ALIVE));
        let on =
            FaceUpdate { flags: FaceFlags::KEEP_ALIVE, flags_mask: FaceFlags::KEEP_ALIVE.0, ..FaceUpdate::default() };
        face.update(&on).expect("keep-alive can be enabled");
        for _ in 0..3 {
            expect_datagram(&peer, service.address("udp4"), &[100, 0]).await;
        }
        face.update(&FaceUpdate { flags: FaceFlags::default(), ..on }).expect("keep-alive can be disabled");
        let mut got = [0; 10];
        let quiet =
            async { while tokio::time::timeout(Duration::from_millis(200), peer.recv(&mut got)).await.is_ok() {} };
        tokio::time::timeout(PATIENCE, quiet).await.expect("the datagrams end");
    });
}
