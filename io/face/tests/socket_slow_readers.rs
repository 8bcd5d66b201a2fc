//! Tests of peers that read slowly or not at all: what they lose, what they receive, and that others are not affected.

mod socket_support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use namehop_face::registry::FaceUpdate;
use namehop_face::socket::{FaceEvent, SocketConfig};
use namehop_face::{Face, FacePersistency, LinkDrop};
use socket_support::*;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, UnixStream};

#[test]
fn only_the_slow_reader_loses_packets() {
    let (mut config, path, _directory) = unix_config();
    config.stream_queue_bytes = 100_000;
    with_service(config, 256, async |mut service: Harness| {
        let mut slow = UnixStream::connect(&path).await.expect("connect");
        let slow_face = service.created().await;
        let mut other = UnixStream::connect(&path).await.expect("connect");
        let other_face = service.created().await;
        let one = packet(6, 1000);
        let mut sent = 0;
        while slow_face.counters.link_drop(LinkDrop::SendQueueFull) < 50 {
            assert!(sent < 100_000, "the queue must fill up");
            for _ in 0..64 {
                sent += u64::from(service.send(slow_face.id(), &one));
            }
            tokio::task::yield_now().await;
        }
        let waiting = slow_face.send_queue_bytes.load(Ordering::Relaxed);
        assert!(waiting > 50_000 && waiting <= 100_000, "{waiting} bytes wait");
        assert!(service.send(other_face.id(), &packet(5, 10)));
        expect_bytes(&mut other, &packet(5, 10)).await;
        assert_eq!(other_face.counters.link_drop(LinkDrop::SendQueueFull), 0);
        // Everything that was not dropped arrives complete and in order when the peer reads.
        eventually("the ring is empty", || service.from_worker.is_empty()).await;
        let dropped = slow_face.counters.link_drop(LinkDrop::SendQueueFull);
        for _ in 0..sent - dropped {
            expect_bytes(&mut slow, &one).await;
        }
        eventually("the queue is empty", || slow_face.send_queue_bytes.load(Ordering::Relaxed) == 0).await;
        assert!(service.send(slow_face.id(), &packet(5, 7)));
        expect_bytes(&mut slow, &packet(5, 7)).await;
    });
}

#[test]
fn hundreds_of_slow_readers_stay_within_the_budget() {
    const READERS: usize = 300;
    const BUDGET_BYTES: usize = 8 << 20;
    let (mut config, path, _directory) = unix_config();
    config.stream_queue_bytes = 1 << 20;
    config.all_stream_queues_bytes = BUDGET_BYTES;
    with_service(config, 256, async |mut service: Harness| {
        let mut readers = Vec::new();
        let mut faces = Vec::new();
        for _ in 0..READERS {
            readers.push(UnixStream::connect(&path).await.expect("connect"));
            faces.push(service.created().await);
        }
        let large = packet(6, 8000);
        let waiting =
            |faces: &[Arc<Face>]| faces.iter().map(|face| face.send_queue_bytes.load(Ordering::Relaxed)).sum::<usize>();
        let mut most = 0;
        // More than the kernel and the budget hold together.
        for _ in 0..60 {
            for face in &faces {
                while !service.send(face.id(), &large) {
                    tokio::task::yield_now().await;
                }
            }
            eventually("the ring is empty", || service.from_worker.is_empty()).await;
            most = most.max(waiting(&faces));
        }
        assert!(most > BUDGET_BYTES / 4 && most <= BUDGET_BYTES + READERS * 16 * 1024, "{most} bytes wait");
        assert!(faces.iter().all(|face| face.counters.link_drop(LinkDrop::SendQueueFull) > 0));
        // A peer that reads is not affected: its packets go straight to the kernel.
        let mut good = UnixStream::connect(&path).await.expect("connect");
        let good_face = service.created().await;
        for _ in 0..50 {
            for _ in 0..5 {
                assert!(service.send(good_face.id(), &large));
            }
            for _ in 0..5 {
                expect_bytes(&mut good, &large).await;
            }
        }
        assert_eq!(good_face.counters.link_drop(LinkDrop::SendQueueFull), 0);
        drop(readers);
        eventually("the other faces are closed", || service.faces.len() == 1).await;
    });
}

#[test]
fn a_peer_that_reads_nothing_is_closed_and_one_that_reads_slowly_is_not() {
    let (mut config, path, _directory) = unix_config();
    config.blocked_timeout_ms = 400;
    with_service(config, 256, async |mut service: Harness| {
        let blocked = UnixStream::connect(&path).await.expect("connect");
        let blocked_face = service.created().await;
        let slow = UnixStream::connect(&path).await.expect("connect");
        let slow_face = service.created().await;
        let large = packet(6, 8000);
        let mut sent_to_blocked = 0;
        for face in [&blocked_face, &slow_face] {
            while face.counters.link_drop(LinkDrop::SendQueueFull) == 0 {
                let was_sent = service.send(face.id(), &large);
                sent_to_blocked += u64::from(was_sent && face.id() == blocked_face.id());
                tokio::task::yield_now().await;
            }
        }
        // Reads less in total than the free space at which the kernel reports the socket as writable.
        let (mut slow, _writer) = slow.into_split();
        let mut memory = vec![0; 4000];
        while service.faces.get(blocked_face.id()).is_some() {
            slow.read_exact(&mut memory).await.expect("read");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        service.destroyed(&blocked_face).await;
        assert_eq!(blocked_face.counters.link_drop(LinkDrop::PeerBlocked), 1);
        for _ in 0..20 {
            slow.read_exact(&mut memory).await.expect("read");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(service.faces.get(slow_face.id()).is_some());
        assert_eq!(slow_face.counters.link_drop(LinkDrop::PeerBlocked), 0);
        // Everything that was not counted as dropped can still be read.
        let mut readable = Vec::new();
        let (mut blocked, _writer) = blocked.into_split();
        blocked.read_to_end(&mut readable).await.expect("read");
        let dropped = |reason| blocked_face.counters.link_drop(reason);
        assert!(dropped(LinkDrop::LinkDown) > 0);
        assert_eq!(
            sent_to_blocked,
            (readable.len() / large.len()) as u64 + dropped(LinkDrop::SendQueueFull) + dropped(LinkDrop::LinkDown)
        );
    });
}

#[test]
fn a_permanent_face_connects_again_when_its_peer_reads_nothing() {
    let mut config = SocketConfig::without_listeners();
    config.reconnect_initial_ms = 20;
    config.blocked_timeout_ms = 200;
    config.stream_queue_bytes = 100_000;
    let permanent = FaceUpdate { persistency: Some(FacePersistency::Permanent), ..FaceUpdate::default() };
    with_service(config, 64, async |mut service: Harness| {
        for scheme in ["tcp4", "ws"] {
            let listener = TcpListener::bind(loopback()).await.expect("bind");
            let uri = format!("{scheme}://{}", listener.local_addr().expect("address"));
            let face = service.create(&uri, permanent).await.expect("created");
            service.created().await;
            let (stream, _) = listener.accept().await.expect("accept");
            let deaf = match scheme {
                "ws" => tokio_tungstenite::accept_async(stream).await.expect("handshake").into_inner(),
                _ => stream,
            };
            assert!(matches!(service.next_event().await, FaceEvent::Up(_)));
            // The kernel takes megabytes for a peer that reads nothing.
            while face.counters.link_drop(LinkDrop::PeerBlocked) == 0 {
                service.send(face.id(), &packet(6, 8000));
                tokio::task::yield_now().await;
            }
            assert!(matches!(service.next_event().await, FaceEvent::Down(down) if down.id() == face.id()));
            assert_eq!(face.counters.link_drop(LinkDrop::PeerBlocked), 1);
            assert_eq!(face.send_queue_bytes.load(std::sync::atomic::Ordering::Relaxed), 0);
            drop(deaf);
            let (_again, _) = listener.accept().await.expect("accept");
            assert!(service.destroy(face.id()).await);
            while !matches!(service.next_event().await, FaceEvent::Destroyed(_)) {}
        }
    });
}

#[test]
fn a_slow_websocket_peer_holds_no_buffers_of_the_router() {
    let mut config = SocketConfig::without_listeners();
    config.websocket = vec![loopback()];
    config.stream_queue_bytes = 1 << 20;
    with_service(config, 256, async |mut service: Harness| {
        let url = format!("ws://{}/", service.address("ws"));
        let (slow, _) = tokio_tungstenite::connect_async(url.as_str()).await.expect("connect");
        let face = service.created().await;
        let full = || face.counters.link_drop(LinkDrop::SendQueueFull) > 0;
        while !full() {
            service.send(face.id(), &packet(5, 100));
            tokio::task::yield_now().await;
        }
        eventually("all packets are queued or dropped", || service.from_worker.is_empty()).await;
        assert_eq!(service.pool.in_use(), 0);
        drop(slow);
        service.destroyed(&face).await;
        assert!(face.counters.link_drop(LinkDrop::LinkDown) > 0, "packets that were queued must be counted");
    });
}
