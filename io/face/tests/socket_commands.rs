//! Tests of creating faces on command, reconnecting, and WebSocket faces.

mod socket_support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use namehop_face::registry::FaceUpdate;
use namehop_face::socket::{CreateError, FaceEvent, SocketCommand, SocketConfig};
use namehop_face::{FaceFlags, FacePersistency, FaceUri, LinkDrop};
use namehop_packet::FaceScope;
use socket_support::*;
use socket2::{Domain, Socket, Type};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;

fn permanent() -> FaceUpdate {
    FaceUpdate { persistency: Some(FacePersistency::Permanent), ..FaceUpdate::default() }
}

fn quick_config() -> SocketConfig {
    let mut config = SocketConfig::without_listeners();
    config.connect_timeout_ms = 300;
    config.reconnect_initial_ms = 20;
    config.reconnect_max_ms = 100;
    config
}

#[test]
fn refusals_carry_the_status_of_the_management_protocol() {
    let mut config = quick_config();
    config.udp = vec![loopback()];
    with_service(config, 16, async |service: Harness| {
        let on_demand = FaceUpdate { persistency: Some(FacePersistency::OnDemand), ..FaceUpdate::default() };
        let local_fields = FaceUpdate {
            flags: FaceFlags::LOCAL_FIELDS,
            flags_mask: FaceFlags::LOCAL_FIELDS.0,
            ..FaceUpdate::default()
        };
        let mtu = |bytes| FaceUpdate { mtu_bytes: Some(bytes), ..FaceUpdate::default() };
        let plain = FaceUpdate::default();
        let cases = [
            ("udp://127.0.0.1:6363", plain, 400),
            ("tcp4://localhost:6363", plain, 400),
            ("udp4://127.0.0.1", plain, 400),
            ("udp4://224.0.23.170:56363", plain, 406),
            ("unix:///run/nfd/nfd.sock", plain, 406),
            ("fd://3", plain, 406),
            ("ether://[08:00:27:01:dd:01]", plain, 406),
            ("wsclient://127.0.0.1:9", plain, 406),
            ("wss://127.0.0.1:9", plain, 406),
            ("udp4://127.0.0.1:9", on_demand, 406),
            ("tcp4://127.0.0.1:9", on_demand, 406),
            ("udp4://127.0.0.1:9", local_fields, 406),
            ("tcp4://192.0.2.77:9", local_fields, 406),
            ("tcp4://127.0.0.1:9", mtu(1000), 406),
            ("udp4://127.0.0.1:9", mtu(63), 406),
            ("udp6://[::1]:9", plain, 504),
        ];
        for (uri, params, status) in cases {
            let error = service.create(uri, params).await.expect_err(uri);
            assert_eq!(error.status_code(), status, "{uri}: {error}");
            assert!(service.faces.is_empty(), "{uri} left a face behind");
        }
        let (reply, answer) = oneshot::channel();
        let command = SocketCommand::CreateFace {
            uri: "udp4://127.0.0.1:9".parse().expect("URI"),
            local_uri: Some("udp4://127.0.0.1:10".parse().expect("URI")),
            params: plain,
            reply,
        };
        service.commands.send(command).await.expect("service runs");
        assert_eq!(answer.await.expect("answer").expect_err("local URI").status_code(), 406);
    });
}

#[test]
fn a_tcp_face_connects_and_reconnects_after_failures() {
    with_service(quick_config(), 64, async |mut service: Harness| {
        let listener = TcpListener::bind(loopback()).await.expect("bind");
        let address = listener.local_addr().expect("address");
        let uri = format!("tcp4://{address}");
        let with_fields =
            FaceUpdate { flags: FaceFlags::LOCAL_FIELDS, flags_mask: FaceFlags::LOCAL_FIELDS.0, ..permanent() };
        let face = service.create(&uri, with_fields).await.expect("created");
        assert_eq!(service.created().await.id(), face.id());
        assert_eq!((face.is_up(), &*face.local_uri()), (false, &FaceUri::Null));
        assert!(matches!(service.next_event().await, FaceEvent::Up(up) if up.id() == face.id()));
        assert_eq!((face.is_up(), face.local_uri().scheme()), (true, "tcp4"));
        assert_eq!(face.scope(), FaceScope::Local);
        assert_eq!(face.persistency(), FacePersistency::Permanent);
        assert!(face.flags().contains(FaceFlags::LOCAL_FIELDS.union(FaceFlags::CONGESTION_MARKING)));
        let (mut peer, _) = listener.accept().await.expect("accept");
        peer.write_all(&packet(5, 8)).await.expect("write");
        assert_eq!(service.next_frame().await.buffer.bytes(), packet(5, 8));
        assert!(service.send(face.id(), &packet(6, 9)));
        expect_bytes(&mut peer, &packet(6, 9)).await;

        // The peer disconnects, first by closing, then by sending garbage; in between no socket listens for a while.
        for round in 0..2 {
            if round == 0 {
                drop(peer);
            } else {
                peer.write_all(&[0, 0]).await.expect("write");
            }
            assert!(matches!(service.next_event().await, FaceEvent::Down(down) if down.id() == face.id()));
            assert!(!face.is_up());
            assert!(service.send(face.id(), &packet(6, 10)));
            eventually("the drop is counted", || face.counters.link_drop(LinkDrop::LinkDown) == round + 1).await;
            peer = listener.accept().await.expect("accept").0;
            assert!(matches!(service.next_event().await, FaceEvent::Up(up) if up.id() == face.id()));
            assert!(face.is_up());
            // Half a packet of the old connection must not be prepended to the new stream.
            peer.write_all(&packet(5, 11)).await.expect("write");
            assert_eq!(service.next_frame().await.buffer.bytes(), packet(5, 11));
            assert!(service.send(face.id(), &packet(6, 12)));
            expect_bytes(&mut peer, &packet(6, 12)).await;
        }
        assert_eq!(face.counters.link_drop(LinkDrop::MalformedFrame), 1);
        drop(listener);
        drop(peer);
        assert!(matches!(service.next_event().await, FaceEvent::Down(_)));
        // Let some attempts fail, then destroy the face between attempts.
        tokio::time::sleep(Duration::from_millis(120)).await;
        assert!(service.destroy(face.id()).await);
        service.destroyed(&face).await;
        assert!(service.faces.is_empty());
    });
}

#[test]
fn two_requests_for_the_same_peer_make_one_face() {
    with_service(quick_config(), 16, async |mut service: Harness| {
        let listener = TcpListener::bind(loopback()).await.expect("bind");
        let uri = format!("tcp4://{}", listener.local_addr().expect("address"));
        let first = service.start_create(&uri, FaceUpdate::default()).await;
        let second = service.start_create(&uri, FaceUpdate::default()).await;
        let face = first.await.expect("answer").expect("created");
        match second.await.expect("answer") {
            Err(CreateError::Exists(existing)) => assert_eq!(existing.id(), face.id()),
            other => panic!("expected a conflict, got {other:?}"),
        }
        let third = service.create(&uri, FaceUpdate::default()).await.expect_err("exists");
        assert_eq!(third.status_code(), 409);
        service.created().await;
        assert_eq!(service.faces.len(), 1);
        assert_eq!(face.persistency(), FacePersistency::Persistent);
    });
}

#[test]
fn connecting_fails_in_time() {
    with_service(quick_config(), 16, async |service: Harness| {
        // No socket listens: refused at once.
        let unused = TcpListener::bind(loopback()).await.expect("bind").local_addr().expect("address");
        let error = service.create(&format!("tcp4://{unused}"), FaceUpdate::default()).await.expect_err("refused");
        assert_eq!(error.status_code(), 504, "{error}");
        // A listener with a full backlog does not answer.
        let deaf = Socket::new(Domain::IPV4, Type::STREAM, None).expect("socket");
        deaf.bind(&loopback().into()).expect("bind");
        deaf.listen(0).expect("listen");
        let address: SocketAddr = deaf.local_addr().expect("address").as_socket().expect("an Internet address");
        let filler: Vec<Socket> = (0..8)
            .map(|_| {
                let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None).expect("socket");
                let _ = socket.connect(&address.into());
                socket
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(20)).await;
        for scheme in ["tcp4", "ws"] {
            let error = service.create(&format!("{scheme}://{address}"), FaceUpdate::default()).await;
            let error = error.expect_err("the server does not accept");
            assert_eq!(error.status_code(), 504, "{error}");
            assert!(error.to_string().contains("no answer within 300 ms"), "{error}");
        }
        assert!(service.faces.is_empty());
        drop(filler);
    });
}

#[test]
fn a_permanent_face_is_there_before_its_peer() {
    with_service(quick_config(), 64, async |mut service: Harness| {
        for scheme in ["tcp4", "ws"] {
            let reserved = TcpListener::bind(loopback()).await.expect("bind");
            let address = reserved.local_addr().expect("address");
            drop(reserved);
            let uri = format!("{scheme}://{address}");
            let face = service.create(&uri, permanent()).await.expect("a permanent face needs no peer");
            assert_eq!(service.created().await.id(), face.id());
            assert!(!face.is_up());
            assert_eq!((face.remote_uri().to_string(), &*face.local_uri()), (uri.clone(), &FaceUri::Null));
            assert_eq!((face.scope(), face.persistency()), (FaceScope::Local, FacePersistency::Permanent));
            assert!(service.send(face.id(), &packet(6, 9)));
            eventually("the drop is counted", || face.counters.link_drop(LinkDrop::LinkDown) == 1).await;
            assert_eq!(service.create(&uri, permanent()).await.expect_err("exists").status_code(), 409);

            let listener = TcpListener::bind(address).await.expect("bind");
            let (mut stream, _) = listener.accept().await.expect("accept");
            if scheme == "ws" {
                let mut peer = tokio_tungstenite::accept_async(stream).await.expect("handshake");
                assert!(matches!(service.next_event().await, FaceEvent::Up(up) if up.id() == face.id()));
                assert!(service.send(face.id(), &packet(6, 10)));
                assert_eq!(next_binary(&mut peer).await, packet(6, 10));
            } else {
                assert!(matches!(service.next_event().await, FaceEvent::Up(up) if up.id() == face.id()));
                assert!(service.send(face.id(), &packet(6, 10)));
                expect_bytes(&mut stream, &packet(6, 10)).await;
            }
            assert!(face.is_up());
            assert_ne!(*face.local_uri(), FaceUri::Null);
            assert!(service.destroy(face.id()).await);
            service.destroyed(&face).await;
        }
    });
}

#[test]
fn a_permanent_face_goes_before_an_attempt_that_is_under_way() {
    with_service(quick_config(), 64, async |mut service: Harness| {
        let listener = TcpListener::bind(loopback()).await.expect("bind");
        let uri = format!("tcp4://{}", listener.local_addr().expect("address"));
        let attempt = service.start_create(&uri, FaceUpdate::default()).await;
        let face = service.create(&uri, permanent()).await.expect("created");
        match attempt.await.expect("answer") {
            Err(CreateError::Exists(existing)) => assert_eq!(existing.id(), face.id()),
            other => panic!("expected a conflict, got {other:?}"),
        }
        service.created().await;
        assert_eq!(service.faces.len(), 1);
    });
}

#[test]
fn web_pages_from_elsewhere_need_permission() {
    let mut config = quick_config();
    config.websocket = vec![loopback()];
    config.allowed_origins = vec!["https://example.org".to_owned()];
    with_service(config, 64, async |mut service: Harness| {
        let address = service.address("ws");
        let refused = ["https://evil.example", "null", "http://127.0.0.1.evil.example"];
        for (origin, status) in refused.map(|origin| (origin, 403)).into_iter().chain([
            ("http://localhost:8080", 101),
            ("http://[::1]", 101),
            ("https://example.org", 101),
        ]) {
            let mut client = TcpStream::connect(address).await.expect("connect");
            let request = format!(
                "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: {origin}\r\n\r\n"
            );
            client.write_all(request.as_bytes()).await.expect("write");
            expect_bytes(&mut client, format!("HTTP/1.1 {status} ").as_bytes()).await;
            if status == 101 {
                let face = service.created().await;
                drop(client);
                service.destroyed(&face).await;
            }
        }
        assert!(service.faces.is_empty());
        assert_eq!(service.faces.link_drops().get(LinkDrop::OriginNotAllowed), 3);
    });
}

/// A flooding client fills a small part of the ring: frames of other peers do not wait behind all of its frames.
#[test]
fn a_websocket_flood_leaves_most_of_the_ring_to_others() {
    let mut config = quick_config();
    config.websocket = vec![loopback()];
    with_service(config, 8192, async |mut service: Harness| {
        let url = format!("ws://{}/ndn", service.address("ws"));
        let (mut flooder, _) = tokio_tungstenite::connect_async(url.as_str()).await.expect("connect");
        let _face = service.created().await;
        let flooding = tokio::task::spawn_local(async move {
            while flooder.send(Message::Binary(packet(5, 40).into())).await.is_ok() {}
        });
        // No worker takes frames from the ring.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let before = service.to_worker.len();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let waiting = service.to_worker.len();
        assert!(
            (512..2048).contains(&waiting) && waiting - before < 512,
            "{before} frames, then {waiting} frames wait"
        );
        flooding.abort();
    });
}

#[test]
fn websocket_clients_are_served() {
    let mut config = quick_config();
    config.websocket = vec![loopback()];
    with_service(config, 256, async |mut service: Harness| {
        service.start_echo();
        let address = service.address("ws");
        let url = format!("ws://{address}/ndn");
        let (mut client, _) = tokio_tungstenite::connect_async(url.as_str()).await.expect("connect");
        let face = service.created().await;
        assert_eq!(face.scope(), FaceScope::Local);
        assert_eq!(face.persistency(), FacePersistency::OnDemand);
        assert_eq!(face.remote_uri().scheme(), "wsclient");
        assert_eq!(*face.local_uri(), FaceUri::web_socket(address));
        assert!(!face.is_datagram());
        for length in [0, 10, 8796] {
            client.send(Message::Binary(packet(6, length).into())).await.expect("send");
            assert_eq!(next_binary(&mut client).await, packet(6, length));
        }
        // A ping is answered, text and non-packets are dropped and counted, and the connection stays open.
        client.send(Message::Text("hello".into())).await.expect("send");
        client.send(Message::Binary(vec![5, 9, 0].into())).await.expect("send");
        client.send(Message::Ping(vec![1].into())).await.expect("send");
        for number in 0..100 {
            client.feed(Message::Binary(packet(5, number).into())).await.expect("feed");
        }
        client.flush().await.expect("flush");
        for number in 0..100 {
            assert_eq!(next_binary(&mut client).await, packet(5, number));
        }
        assert_eq!(face.counters.link_drop(LinkDrop::MalformedFrame), 1);
        assert_eq!(face.counters.link_drop(LinkDrop::NotNdnFrame), 1);
        eventually("the queue is empty", || face.send_queue_bytes.load(std::sync::atomic::Ordering::Relaxed) == 0)
            .await;
        client.send(Message::Binary(packet(6, 8797).into())).await.expect("send");
        service.destroyed(&face).await;
        assert_eq!(face.counters.link_drop(LinkDrop::FrameTooLong), 1);

        let (mut polite, _) = tokio_tungstenite::connect_async(url.as_str()).await.expect("connect");
        let face = service.created().await;
        polite.close(None).await.expect("close");
        service.destroyed(&face).await;
        // A connection that never completes its handshake gets no face and is closed.
        let mut silent = TcpStream::connect(address).await.expect("connect");
        expect_closed(&mut silent).await;
        assert!(service.faces.is_empty());
    });
}

async fn next_binary<S>(client: &mut S) -> Vec<u8>
where
    S: StreamExt<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin,
{
    loop {
        let message =
            tokio::time::timeout(PATIENCE, client.next()).await.expect("a message arrives in time").expect("open");
        match message.expect("message") {
            Message::Binary(bytes) => return bytes.to_vec(),
            Message::Pong(_) => {}
            other => panic!("unexpected {other:?}"),
        }
    }
}

#[test]
fn a_websocket_face_connects_and_reconnects() {
    with_service(quick_config(), 64, async |mut service: Harness| {
        let listener = TcpListener::bind(loopback()).await.expect("bind");
        let uri = format!("ws://{}", listener.local_addr().expect("address"));
        let server = async || {
            let (stream, _) = listener.accept().await.expect("accept");
            tokio_tungstenite::accept_async(stream).await.expect("handshake")
        };
        let (created, mut peer) = tokio::join!(service.create(&uri, permanent()), server());
        let face = created.expect("created");
        service.created().await;
        assert!(matches!(service.next_event().await, FaceEvent::Up(_)));
        assert_eq!(face.local_uri().scheme(), "wsclient");
        assert_eq!(face.remote_uri().to_string(), uri);
        for round in 0..2 {
            peer.send(Message::Binary(packet(5, 8).into())).await.expect("send");
            assert_eq!(service.next_frame().await.buffer.bytes(), packet(5, 8));
            assert!(service.send(face.id(), &packet(6, 9)));
            assert_eq!(next_binary(&mut peer).await, packet(6, 9));
            if round == 0 {
                drop(peer);
                assert!(matches!(service.next_event().await, FaceEvent::Down(_)));
                assert!(service.send(face.id(), &packet(6, 10)));
                eventually("the drop is counted", || face.counters.link_drop(LinkDrop::LinkDown) == 1).await;
                peer = server().await;
                assert!(matches!(service.next_event().await, FaceEvent::Up(_)));
            }
        }
        assert!(service.destroy(face.id()).await);
        service.destroyed(&face).await;
        assert_eq!(Arc::strong_count(&face), 1, "no reference to a destroyed face may be left");
    });
}
