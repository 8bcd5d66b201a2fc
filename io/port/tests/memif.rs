//! Frames over memif between two ports of this process.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use namehop_packet::{BufferPool, PacketBuffer, PortQueue};
use namehop_port::drivers::memif::{Memif, MemifPort, MemifQueue, MemifRole, MemifService};
use tempfile::TempDir;

const BUFFER_BYTES: usize = 2048;

fn pool() -> BufferPool {
    BufferPool::new(4095, 511)
}

fn memif(role: MemifRole, socket: &Path) -> Memif {
    Memif { role, socket: socket.to_owned(), id: 3, ring_slots: 256, buffer_bytes: BUFFER_BYTES as u16 }
}

/// A control socket in a temporary folder, and what both ends of a link over it need.
struct Bench {
    service: MemifService,
    pool: BufferPool,
    socket: PathBuf,
    _folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("folder");
        let socket = folder.path().join("memif.sock");
        Bench { service: MemifService::start().expect("thread"), pool: pool(), socket, _folder: folder }
    }

    fn open(&self, role: MemifRole) -> (MemifPort, MemifQueue) {
        self.service.open(&memif(role, &self.socket), &self.pool).expect("opened")
    }
}

fn wait(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends `count` numbered frames of up to `longest` bytes in one direction and checks each.
fn exchange(pool: &BufferPool, from: &mut MemifQueue, to: &mut MemifQueue, count: usize, longest: usize) {
    let mut waiting: Vec<PacketBuffer> = Vec::new();
    let mut received = Vec::new();
    let (mut made, mut seen) = (0_usize, 0_usize);
    let frame = |number: usize| vec![number as u8; 60 + (number * 377) % (longest - 59)];
    let end = Instant::now() + Duration::from_secs(20);
    while seen < count {
        assert!(Instant::now() < end, "only {seen} of {made} frames arrived");
        while made < count && waiting.len() < 32 {
            waiting.push(pool.copy_of(&frame(made)).expect("buffer"));
            made += 1;
        }
        from.transmit(&mut waiting);
        to.receive(&mut received);
        for buffer in received.drain(..) {
            assert_eq!(buffer.bytes(), frame(seen), "frame {seen}");
            seen += 1;
        }
    }
}

#[test]
fn memif_carries_frames_and_survives_a_restart_of_its_client() {
    let bench = Bench::new();
    let Bench { pool, .. } = &bench;
    let open = |role| bench.open(role);
    let (server, mut server_queue) = open(MemifRole::Server);
    assert!(!server.is_up());
    for round in 0..3 {
        let (client, mut client_queue) = open(MemifRole::Client);
        wait("the link comes up", || client.is_up() && server.is_up());
        exchange(pool, &mut client_queue, &mut server_queue, 2000, BUFFER_BYTES);
        exchange(pool, &mut server_queue, &mut client_queue, 2000, BUFFER_BYTES);
        assert_eq!((server.losses(), client.losses()), Default::default(), "{round}");
        drop((client, client_queue));
        wait("the link goes down", || !server.is_up());
    }
    drop((server, server_queue));
    wait("all buffers return", || pool.in_use() == 0);
}

#[test]
fn a_memif_whose_other_end_goes_in_the_middle_of_a_burst_does_no_harm() {
    let bench = Bench::new();
    let Bench { pool, .. } = &bench;
    let open = |role| bench.open(role);
    let (server, mut server_queue) = open(MemifRole::Server);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut waiting, mut received) = (Vec::new(), Vec::new());
            while !stop.load(Ordering::Relaxed) {
                while waiting.len() < 256 {
                    waiting.push(pool.copy_of(&[7; 1500]).expect("buffer"));
                }
                server_queue.transmit(&mut waiting);
                server_queue.receive(&mut received);
                received.clear();
            }
        });
        for _ in 0..50 {
            let (client, mut queue) = open(MemifRole::Client);
            wait("the link comes up", || client.is_up() && server.is_up());
            let (end, mut received) = (Instant::now() + Duration::from_millis(10), Vec::new());
            while Instant::now() < end {
                queue.receive(&mut received);
                received.truncate(256);
                queue.transmit(&mut received);
                received.clear();
            }
            drop((client, queue));
            wait("the link goes down", || !server.is_up());
        }
        stop.store(true, Ordering::Relaxed);
    });
    drop((server, server_queue));
    wait("all buffers return", || pool.in_use() == 0);
}

/// Peers may send frames that are longer than one buffer.
#[test]
fn a_frame_in_several_buffers_arrives_in_one_piece() {
    let bench = Bench::new();
    let Bench { pool, .. } = &bench;
    let open = |role| bench.open(role);
    let (_server, mut server_queue) = open(MemifRole::Server);
    let (client, mut client_queue) = open(MemifRole::Client);
    wait("the link comes up", || client.is_up());
    exchange(pool, &mut client_queue, &mut server_queue, 2000, 8900);
    exchange(pool, &mut server_queue, &mut client_queue, 2000, 8900);
}

#[test]
fn what_cannot_be_opened_says_why() {
    let folder = tempfile::tempdir().expect("folder");
    let socket = folder.path().join("no, such=folder").join("memif.sock");
    let service = MemifService::start().expect("thread");
    let error = |memif: &Memif| service.open(memif, &pool()).err().expect("refused").to_string();
    let text = error(&memif(MemifRole::Server, &socket));
    assert!(text.contains("no, such=folder") && text.contains("No such file"), "{text}");
    let text = error(&Memif { ring_slots: 100, ..memif(MemifRole::Client, &socket) });
    assert!(text.contains("100"), "{text}");
    std::fs::create_dir(folder.path().join("no, such=folder")).expect("made");
    let _open = service.open(&memif(MemifRole::Server, &socket), &pool()).expect("opened");
    let text = error(&memif(MemifRole::Server, &socket));
    assert!(text.contains("id 3") && text.contains("is open"), "{text}");
}

#[test]
fn a_control_socket_is_there_as_long_as_a_server_uses_it_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("folder");
    let socket = folder.path().join("memif.sock");
    let service = MemifService::start().expect("thread");
    let descriptors = || std::fs::read_dir("/proc/self/fd").expect("proc").count();
    let server = |id| service.open(&Memif { id, ..memif(MemifRole::Server, &socket) }, &pool()).expect("opened");
    let before = descriptors();
    for _ in 0..100 {
        let (one, two) = (server(1), server(2));
        assert!(socket.exists());
        drop(one);
        assert!(server(1).0.losses() == Default::default() && socket.exists(), "another service uses the socket");
        drop(two);
    }
    wait("the socket is removed", || !socket.exists());
    // Other tests of this process also open some, but not hundreds.
    wait("no descriptors leak", || descriptors() < before + 60);
}
