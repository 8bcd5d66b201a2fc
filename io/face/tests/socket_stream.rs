//! Tests of Unix and TCP faces: framing, back-pressure, slow readers, limits, leaks.

mod socket_support;

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use namehop_face::socket::{ListenError, SocketCommand, SocketConfig, SocketService};
use namehop_face::{FaceFlags, FacePersistency, FaceTable, FaceUri, FrameInlet, LinkDrop, SocketInlets, Waker};
use namehop_packet::{BufferPool, FaceScope};
use socket_support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc;

#[test]
fn packets_go_both_ways_over_unix() {
    let (config, path, _directory) = unix_config();
    with_service(config, 256, async |mut service: Harness| {
        service.start_echo();
        let mut client = UnixStream::connect(&path).await.expect("connect");
        let face = service.created().await;
        assert_eq!(face.scope(), FaceScope::Local);
        assert_eq!(face.persistency(), FacePersistency::OnDemand);
        assert_eq!(*face.local_uri(), FaceUri::Unix(path.to_string_lossy().into_owned()));
        assert_eq!(face.remote_uri().scheme(), "fd");
        assert!(face.flags().contains(FaceFlags::CONGESTION_MARKING));
        let stream = [packet(5, 20), packet(6, 8796), packet(100, 0), packet(6, 300)].concat();
        client.write_all(&stream).await.expect("write");
        expect_bytes(&mut client, &stream).await;
        assert_eq!(face.send_queue_bytes.load(Ordering::Relaxed), 0);
        drop(client);
        service.destroyed(&face).await;
        assert!(service.faces.get(face.id()).is_none());
    });
    assert!(!path.exists(), "the service must remove the socket file");
}

#[test]
fn packets_go_both_ways_over_tcp() {
    let mut config = SocketConfig::without_listeners();
    config.tcp = vec![loopback(), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))];
    with_service(config, 256, async |mut service: Harness| {
        service.start_echo();
        for scheme in ["tcp4", "tcp6"] {
            let mut client = TcpStream::connect(service.address(scheme)).await.expect("connect");
            let face = service.created().await;
            assert_eq!(face.scope(), FaceScope::Local);
            assert_eq!(face.remote_uri(), &FaceUri::tcp(client.local_addr().expect("address")));
            assert_eq!(*face.local_uri(), FaceUri::tcp(service.address(scheme)));
            let stream = vec![packet(5, 30); 500].concat();
            client.write_all(&stream).await.expect("write");
            expect_bytes(&mut client, &stream).await;
            drop(client);
            service.destroyed(&face).await;
        }
    });
}

#[test]
fn a_stream_may_be_split_anywhere() {
    let (config, path, _directory) = unix_config();
    with_service(config, 256, async |mut service: Harness| {
        service.start_echo();
        let mut client = UnixStream::connect(&path).await.expect("connect");
        let stream = [packet(5, 4), packet(6, 260), packet(100, 3)].concat();
        for split in 1..stream.len() {
            client.write_all(&stream[..split]).await.expect("write");
            // Lets the service read the first part alone.
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
            client.write_all(&stream[split..]).await.expect("write");
            expect_bytes(&mut client, &stream).await;
        }
        let face = service.created().await;
        assert_eq!(face.counters.link_drop(LinkDrop::MalformedFrame), 0);
    });
}

#[test]
fn elements_of_other_types_are_dropped_and_counted() {
    let (mut config, path, _directory) = unix_config();
    config.tcp = vec![loopback()];
    with_service(config, 256, async |mut service: Harness| {
        service.start_echo();
        let strays = [packet(7, 3), packet(99, 300), packet(200, 0), packet(201, 1_000_000)].concat();
        let mut local = UnixStream::connect(&path).await.expect("connect");
        let local_face = service.created().await;
        local.write_all(&[&strays[..], &packet(5, 9)].concat()).await.expect("write");
        expect_bytes(&mut local, &packet(5, 9)).await;
        let mut remote = TcpStream::connect(service.address("tcp4")).await.expect("connect");
        let remote_face = service.created().await;
        for first in [packet(100, 0), packet(5, 9)] {
            remote.write_all(&[&first[..], &strays].concat()).await.expect("write");
            expect_bytes(&mut remote, &first).await;
        }
        remote.write_all(&packet(6, 9)).await.expect("write");
        expect_bytes(&mut remote, &packet(6, 9)).await;
        assert_eq!(local_face.counters.link_drop(LinkDrop::NotNdnFrame), 4);
        assert_eq!(remote_face.counters.link_drop(LinkDrop::NotNdnFrame), 8);
        // A stream that begins with such an element is closed.
        let mut other = TcpStream::connect(service.address("tcp4")).await.expect("connect");
        let other_face = service.created().await;
        other.write_all(&[&strays[..], &packet(5, 9)].concat()).await.expect("write");
        expect_closed(&mut other).await;
        service.destroyed(&other_face).await;
        assert_eq!(other_face.counters.link_drop(LinkDrop::NotNdnFrame), 1);
    });
}

#[test]
fn garbage_closes_its_own_face_only() {
    let (config, path, _directory) = unix_config();
    with_service(config, 256, async |mut service: Harness| {
        service.start_echo();
        let mut good = UnixStream::connect(&path).await.expect("connect");
        let good_face = service.created().await;
        let cases: [(&[u8], LinkDrop); 3] = [
            (&[0, 1, 2], LinkDrop::MalformedFrame),
            (&[5, 0xFD, 0, 3, 1, 2, 3], LinkDrop::MalformedFrame),
            (&[6, 0xFD, 0x22, 0x60], LinkDrop::FrameTooLong),
        ];
        for (garbage, reason) in cases {
            let mut bad = UnixStream::connect(&path).await.expect("connect");
            let bad_face = service.created().await;
            bad.write_all(&packet(5, 9)).await.expect("write");
            expect_bytes(&mut bad, &packet(5, 9)).await;
            bad.write_all(garbage).await.expect("write");
            expect_closed(&mut bad).await;
            service.destroyed(&bad_face).await;
            assert_eq!(bad_face.counters.link_drop(reason), 1);
        }
        good.write_all(&packet(6, 50)).await.expect("write");
        expect_bytes(&mut good, &packet(6, 50)).await;
        assert!(service.faces.get(good_face.id()).is_some());
    });
}

#[test]
fn a_full_ring_holds_streams_back_without_loss() {
    let (config, path, _directory) = unix_config();
    with_service(config, 4, async |mut service: Harness| {
        let client = UnixStream::connect(&path).await.expect("connect");
        let face = service.created().await;
        let (mut reader, mut writer) = client.into_split();
        let one = packet(5, 100);
        let stream = vec![one.clone(); 5000].concat();
        let writing = tokio::task::spawn_local(async move { writer.write_all(&stream).await.map(|()| writer) });
        eventually("the ring is full", || service.to_worker.len() == 4).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert!(!writing.is_finished(), "the peer must be blocked");
        for _ in 0..5000 {
            let frame = service.next_frame().await;
            assert_eq!((frame.face, frame.endpoint), (face.id(), 0));
            assert_eq!(frame.buffer.bytes(), one);
        }
        let _writer = writing.await.expect("task").expect("write");
        assert_eq!(face.counters.link_drop(LinkDrop::ReceiveRingFull), 0);
        assert!(service.send(face.id(), &one));
        expect_bytes(&mut reader, &one).await;
    });
}

#[test]
fn a_flood_on_one_face_lets_others_through() {
    let (config, path, _directory) = unix_config();
    with_service(config, 1024, async |mut service: Harness| {
        service.start_echo();
        let flooder = UnixStream::connect(&path).await.expect("connect");
        let (mut flood_in, mut flood_out) = flooder.into_split();
        let flood = tokio::task::spawn_local(async move {
            let burst = vec![packet(5, 40); 2000].concat();
            while flood_out.write_all(&burst).await.is_ok() {}
        });
        let sink = tokio::task::spawn_local(async move {
            let mut memory = vec![0; 1 << 16];
            while flood_in.read(&mut memory).await.is_ok_and(|count| count > 0) {}
        });
        let mut quiet = UnixStream::connect(&path).await.expect("connect");
        for round in 0..50 {
            quiet.write_all(&packet(6, round)).await.expect("write");
            expect_bytes(&mut quiet, &packet(6, round)).await;
        }
        flood.abort();
        sink.abort();
        let _first = service.created().await;
    });
}

/// A flooding peer fills a small part of the ring: frames of other peers do not wait behind all of its frames.
#[test]
fn a_flood_leaves_most_of_the_ring_to_others() {
    let (config, path, _directory) = unix_config();
    with_service(config, 8192, async |mut service: Harness| {
        let mut flooder = UnixStream::connect(&path).await.expect("connect");
        let (flood, quiet) = (packet(5, 40), packet(6, 40));
        let flooding = tokio::task::spawn_local(async move { flooder.write_all(&vec![flood; 20_000].concat()).await });
        let _first = service.created().await;
        // No worker takes frames from the ring.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let waiting = service.to_worker.len();
        assert!((1024..2048).contains(&waiting), "{waiting} frames wait");
        let mut other = UnixStream::connect(&path).await.expect("connect");
        let face = service.created().await;
        other.write_all(&quiet).await.expect("write");
        // The flood fills every slot that becomes free, so the other frame must be in the ring before the first
        // frame is taken.
        for _ in 0..1000 {
            if service.to_worker.len() > waiting {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for _ in 0..waiting {
            assert_ne!(service.next_frame().await.face, face.id());
        }
        assert_eq!(service.next_frame().await.face, face.id(), "the frame must follow those that waited");
        flooding.abort();
    });
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    let (mut config, path, _directory) = unix_config();
    config.max_faces = 2;
    with_service(config, 256, async |mut service: Harness| {
        service.start_echo();
        let mut first = UnixStream::connect(&path).await.expect("connect");
        let second = UnixStream::connect(&path).await.expect("connect");
        service.created().await;
        let second_face = service.created().await;
        let mut third = UnixStream::connect(&path).await.expect("connect");
        expect_closed(&mut third).await;
        assert_eq!(service.faces.link_drops().get(LinkDrop::TooManyFaces), 1);
        first.write_all(&packet(5, 1)).await.expect("write");
        expect_bytes(&mut first, &packet(5, 1)).await;
        drop(second);
        service.destroyed(&second_face).await;
        let mut fourth = UnixStream::connect(&path).await.expect("connect");
        fourth.write_all(&packet(5, 2)).await.expect("write");
        expect_bytes(&mut fourth, &packet(5, 2)).await;
    });
}

#[test]
fn a_thousand_connections_leave_nothing_behind() {
    let (config, path, _directory) = unix_config();
    let mut config = config;
    config.tcp = vec![loopback()];
    with_service(config, 4096, async |mut service: Harness| {
        service.start_echo();
        let tcp = service.address("tcp4");
        let warm_up = UnixStream::connect(&path).await.expect("connect");
        service.created().await;
        let descriptors = || std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count());
        let before = descriptors();
        for round in 0..500 {
            let mut unix = UnixStream::connect(&path).await.expect("connect");
            let mut internet = TcpStream::connect(tcp).await.expect("connect");
            unix.write_all(&packet(5, round % 200)).await.expect("write");
            internet.write_all(&packet(5, round % 200)).await.expect("write");
            // Half of them disconnect with a packet in flight, and with half a packet sent.
            if round % 2 == 0 {
                expect_bytes(&mut unix, &packet(5, round % 200)).await;
                expect_bytes(&mut internet, &packet(5, round % 200)).await;
            } else {
                unix.write_all(&[6, 200, 1]).await.expect("write");
            }
        }
        eventually("only the first face is left", || service.faces.len() == 1).await;
        eventually("all buffers are returned", || service.pool.in_use() == 0).await;
        // Other tests of this process run at the same time and open a few descriptors of their own.
        eventually("the sockets are closed", || descriptors() < before + 100).await;
        drop(warm_up);
    });
}

#[test]
fn connections_wait_until_closed_ones_are_reported() {
    let (config, path, _directory) = unix_config();
    with_service(config, 4, async |mut service: Harness| {
        // The events are not read. In the end the kernel's queue of connections is full.
        for _ in 0..3000 {
            if UnixStream::connect(&path).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(service.events.len() < 2100, "{} events wait", service.events.len());
        while service.events.try_recv().is_ok() {}
        service.created().await;
    });
}

#[test]
fn destroying_a_face_closes_its_connection() {
    let (config, path, _directory) = unix_config();
    with_service(config, 256, async |mut service: Harness| {
        let mut client = UnixStream::connect(&path).await.expect("connect");
        let face = service.created().await;
        assert!(service.destroy(face.id()).await);
        expect_closed(&mut client).await;
        service.destroyed(&face).await;
        assert!(!service.destroy(face.id()).await);
        // A frame for a closed face is dropped without an error.
        assert!(service.send(face.id(), &packet(5, 1)));
        eventually("the frame was taken from the ring", || service.from_worker.is_empty()).await;
    });
}

#[test]
fn a_second_service_on_the_same_path_gets_an_error() {
    let (config, path, _directory) = unix_config();
    let again = config.clone();
    with_service(config, 16, async |service: Harness| {
        let pool = BufferPool::new(1, 1);
        let ring = || Arc::new(Ring::new(1, Arc::new(Waker::new())));
        let (events, _) = mpsc::unbounded_channel();
        let second = SocketService::new(again, pool, Arc::new(FaceTable::new()), inlets(&ring()), ring(), events);
        let error = second.expect_err("the path is in use");
        assert!(matches!(error, ListenError::AnotherForwarder { .. }));
        let text = format!("another forwarder is listening on {}", path.display());
        assert!(error.to_string().starts_with(&text), "{error}");
        // The check did not disturb the first one.
        let _client = UnixStream::connect(&path).await.expect("connect");
        assert_eq!(service.pool.in_use(), 0);
    });
}

#[test]
fn a_worker_on_another_thread_serves_as_well() {
    let (config, path, _directory) = unix_config();
    with_service(config, 64, async |service: Harness| {
        let (input, output) = (Arc::clone(&service.to_worker), Arc::clone(&service.from_worker));
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let worker = {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut burst = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    input.waker().park(Some(Duration::from_millis(50)), || !input.is_empty());
                    input.pop_burst(&mut burst, 64);
                    for frame in burst.drain(..) {
                        let mut pending = frame;
                        while let Err(back) = output.push(pending) {
                            output.wake();
                            std::thread::yield_now();
                            pending = back;
                        }
                    }
                    output.wake();
                }
            })
        };
        let client = UnixStream::connect(&path).await.expect("connect");
        let (mut reader, mut writer) = client.into_split();
        let stream = vec![packet(5, 60); 10_000].concat();
        let copy = stream.clone();
        let writing = tokio::task::spawn_local(async move { writer.write_all(&copy).await.map(|()| writer) });
        expect_bytes(&mut reader, &stream).await;
        let _writer = writing.await.expect("task").expect("write");
        stop.store(true, Ordering::Relaxed);
        worker.join().expect("worker");
    });
}

#[test]
fn a_service_opened_on_one_thread_runs_on_another() {
    use std::io::{Read, Write};
    let (config, path, _directory) = unix_config();
    let ring = || Arc::new(Ring::new(64, Arc::new(Waker::new())));
    let (to_worker, from_worker) = (ring(), ring());
    let (event_sender, mut events) = mpsc::unbounded_channel();
    let (commands, command_receiver) = mpsc::channel(4);
    let pool = BufferPool::new(100, 10);
    let faces = Arc::new(FaceTable::new());
    let service = SocketService::new(
        config,
        pool.clone(),
        Arc::clone(&faces),
        SocketInlets { streams: FrameInlet::new(Arc::clone(&to_worker)), datagrams: FrameInlet::new(ring()) },
        Arc::clone(&from_worker),
        event_sender,
    )
    .expect("listeners");
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        tokio::task::LocalSet::new().block_on(&runtime, service.run(command_receiver))
    });
    assert!(!path.exists(), "no application may connect before the router is ready");
    let (reply, opened) = tokio::sync::oneshot::channel();
    commands.blocking_send(SocketCommand::Open { reply }).expect("service runs");
    opened.blocking_recv().expect("an answer").expect("listeners");
    let mut client = std::os::unix::net::UnixStream::connect(&path).expect("connect");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    client.write_all(&packet(5, 17)).expect("write");
    assert!(to_worker.waker().park(Some(PATIENCE), || !to_worker.is_empty()));
    let mut burst = Vec::new();
    to_worker.pop_burst(&mut burst, 8);
    for frame in burst {
        assert!(from_worker.push(frame).is_ok());
    }
    from_worker.wake();
    let mut echo = vec![0; packet(5, 17).len()];
    client.read_exact(&mut echo).expect("echo");
    assert_eq!(echo, packet(5, 17));
    // Dropping all command senders ends the service, like the command does.
    drop(commands);
    thread.join().expect("the service does not panic").expect("the service reports no error");
    assert!(faces.is_empty());
    assert!(!path.exists());
    let mut kinds = Vec::new();
    while let Some(event) = events.blocking_recv() {
        kinds.push(matches!(event, namehop_face::socket::FaceEvent::Created(_)));
    }
    assert_eq!(kinds, [true, false]);
    assert_eq!(pool.in_use(), 0);
}
