//! Tests of the receive queues of UDP peers in good standing, which a flood of others does not fill.

mod socket_support;

use std::cell::Cell;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use namehop_face::registry::{Face, FaceUpdate};
use namehop_face::socket::SocketConfig;
use namehop_packet::FaceId;
use socket_support::*;

fn config() -> SocketConfig {
    let mut config = SocketConfig::without_listeners();
    config.udp = vec![loopback()];
    // Space for some dozens of small datagrams.
    config.datagram_kernel_bytes = 16_384;
    config
}

fn client() -> UdpSocket {
    UdpSocket::bind(loopback()).expect("bind")
}

/// Returns how many sockets at `server` are connected to one of `peers` (`/proc/net/udp`, proc(5)).
fn queues_of<'p>(server: SocketAddr, peers: impl IntoIterator<Item = &'p UdpSocket>) -> usize {
    let ports: Vec<u16> = peers.into_iter().map(|peer| peer.local_addr().expect("address").port()).collect();
    let table = fs::read_to_string("/proc/net/udp").expect("proc");
    let port = |address: &str| u16::from_str_radix(address.rsplit(':').next().unwrap_or_default(), 16).unwrap_or(0);
    let is_counted = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        words.next().map(port) == Some(server.port())
            && words.next().is_some_and(|remote| ports.contains(&port(remote)))
    };
    table.lines().filter(is_counted).count()
}

fn send(peer: &UdpSocket, server: SocketAddr) {
    peer.send_to(&packet(5, 1), server).expect("send");
}

/// Counts packets of a face as a worker would.
fn note(face: &Face, interests_received: u64, data_sent: u64) {
    face.counters.worker(0).received.interests.packets.add(interests_received);
    face.counters.worker(0).sent.data.packets.add(data_sent);
}

/// Creates unsolicited peers at `server`; returns them with their faces.
async fn unsolicited(service: &mut Harness, server: SocketAddr, count: usize) -> Vec<(UdpSocket, Arc<Face>)> {
    let mut all = Vec::new();
    for _ in 0..count {
        let peer = client();
        send(&peer, server);
        service.next_frame().await;
        all.push((peer, service.created().await));
    }
    all
}

async fn configured_face(service: &mut Harness, peer: &UdpSocket) -> FaceId {
    let uri = format!("udp4://{}", peer.local_addr().expect("address"));
    let face = service.create(&uri, FaceUpdate::default()).await.expect("made");
    service.created().await;
    face.id()
}

#[test]
fn a_flood_takes_nothing_from_a_configured_peer() {
    with_service(config(), 4096, async |mut service: Harness| {
        let server = service.address("udp4");
        let (known, unknown, flooder) = (client(), client(), client());
        let face = configured_face(&mut service, &known).await;
        for peer in [&known, &unknown] {
            send(peer, server);
            service.next_frame().await;
        }
        let unsolicited = service.created().await.id();
        eventually("the known peer has a queue", || queues_of(server, [&known]) == 1).await;
        // The service runs on this thread: it receives nothing before all of this was sent.
        for _ in 0..1000 {
            flooder.send_to(&packet(5, 1000), server).expect("send");
        }
        for _ in 0..5 {
            send(&known, server);
            send(&unknown, server);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut frames = Vec::new();
        service.to_worker.pop_burst(&mut frames, usize::MAX);
        let of = |face: FaceId| frames.iter().filter(|frame| frame.face == face).count();
        assert_eq!(of(face), 5);
        assert_eq!(of(unsolicited), 0, "the queue of all other peers was full");
        assert!(service.destroy(face).await);
        eventually("the queue of the peer is closed", || queues_of(server, [&known]) == 0).await;
    });
}

#[test]
fn unsolicited_peers_get_a_queue_for_exchanges_and_lose_it() {
    with_service(config(), 4096, async |mut service: Harness| {
        let server = service.address("udp4");
        let peers = unsolicited(&mut service, server, 3).await;
        let [(answered, good), (unanswered, bad), (silent, _)] = peers.as_slice() else {
            panic!("three peers expected")
        };
        for _ in 0..40 {
            note(good, 10, 9);
            note(bad, 10, 4);
            send(answered, server);
            tokio::time::sleep(Duration::from_millis(100)).await;
            if queues_of(server, [answered]) == 1 {
                break;
            }
        }
        assert_eq!([answered, unanswered, silent].map(|peer| queues_of(server, [peer])), [1, 0, 0]);
        // Its datagrams still reach its face.
        while !service.to_worker.is_empty() {
            service.next_frame().await;
        }
        send(answered, server);
        assert_eq!(service.next_frame().await.face, good.id());
        // From now on it gets no Data.
        for _ in 0..60 {
            note(good, 10, 0);
            send(answered, server);
            tokio::time::sleep(Duration::from_millis(100)).await;
            if queues_of(server, [answered]) == 0 {
                break;
            }
        }
        assert_eq!(queues_of(server, [answered]), 0);
        while !service.to_worker.is_empty() {
            service.next_frame().await;
        }
        send(answered, server);
        assert_eq!(service.next_frame().await.face, good.id());
    });
}

/// Each queue has the local address of its face; the listening socket has none.
#[test]
fn a_peer_with_queues_is_answered_from_each_address_that_it_asked() {
    let config = SocketConfig { udp: vec![SocketAddr::from(([0, 0, 0, 0], 0))], ..config() };
    with_service(config, 4096, async |mut service: Harness| {
        let port = service.address("udp4").port();
        let peer = client();
        peer.set_nonblocking(true).expect("a socket");
        let mut ends = Vec::new();
        for host in [[127, 0, 0, 1], [127, 0, 0, 2]] {
            let server = SocketAddr::from((host, port));
            send(&peer, server);
            service.next_frame().await;
            ends.push((server, service.created().await));
        }
        let queues = || queues_of(ends[0].0, [&peer]);
        for _ in 0..40 {
            for (server, face) in &ends {
                note(face, 1, 1);
                send(&peer, *server);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            if queues() == 2 {
                break;
            }
        }
        assert_eq!(queues(), 2, "a queue for each address");
        while !service.to_worker.is_empty() {
            service.next_frame().await;
        }
        for (server, face) in &ends {
            send(&peer, *server);
            assert_eq!(service.next_frame().await.face, face.id());
            assert!(service.send(face.id(), &packet(6, 1)));
            let answered_from = Cell::new(None);
            eventually("an answer arrives", || {
                answered_from.set(peer.recv_from(&mut [0; 100]).ok().map(|(_, from)| from));
                answered_from.get().is_some()
            })
            .await;
            assert_eq!(answered_from.get(), Some(*server));
        }
    });
}

#[test]
fn queues_are_limited_and_unsolicited_peers_lose_theirs_to_configured_ones() {
    with_service(config(), 4096, async |mut service: Harness| {
        let server = service.address("udp4");
        let peers = unsolicited(&mut service, server, 12).await;
        let unsolicited = || peers.iter().map(|(peer, _)| peer);
        for _ in 0..40 {
            for (peer, face) in &peers {
                note(face, 1, 1);
                send(peer, server);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            if queues_of(server, unsolicited()) == 8 {
                break;
            }
        }
        assert_eq!(queues_of(server, unsolicited()), 8, "at most 8 queues for one address");
        let known: Vec<UdpSocket> = (0..40).map(|_| client()).collect();
        for peer in &known[..30] {
            configured_face(&mut service, peer).await;
        }
        let one_more_look = || send(&known[0], server);
        one_more_look();
        eventually("all known peers have a queue", || queues_of(server, &known) == 30).await;
        assert_eq!(queues_of(server, unsolicited()), 2);
        for peer in &known[30..] {
            configured_face(&mut service, peer).await;
        }
        one_more_look();
        eventually("the limit of queues is reached", || queues_of(server, &known) == 32).await;
        eventually("unsolicited peers have no queues", || queues_of(server, unsolicited()) == 0).await;
    });
}
