//! Frames through real drivers: memif between two ports of this process, and a link in memory.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use namehop_dpdk::memory::MemoryPort;
use namehop_dpdk::port::{Device, Memif, MemifRole, Port, PortQueue};
use namehop_dpdk::{Eal, Mbuf, MbufPool};
use namehop_forward::buffer::{BufferPool, PacketBuffer};

const SMALL: usize = 4095;
const LARGE: usize = 511;
const BUFFER_BYTES: usize = 2048;

fn environment() -> &'static Eal {
    Eal::start(6 * MbufPool::mempool_bytes(SMALL, LARGE)).expect("DPDK starts")
}

fn pool() -> MbufPool {
    let pool = MbufPool::new(SMALL, LARGE);
    pool.use_mempools(environment()).expect("memory for mempools");
    pool
}

fn memif(role: MemifRole, socket: &Path) -> Device {
    Device::Memif(Memif { role, socket: socket.to_owned(), id: 3, ring_slots: 256, buffer_bytes: BUFFER_BYTES as u16 })
}

fn wait(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends `count` numbered frames of up to `longest` bytes one way and checks each.
fn exchange(pool: &MbufPool, from: &mut PortQueue, to: &mut PortQueue, count: usize, longest: usize) {
    let mut waiting: Vec<Mbuf> = Vec::new();
    let mut received = Vec::new();
    let (mut made, mut seen) = (0_usize, 0_usize);
    let frame = |number: usize| vec![number as u8; 60 + (number * 377) % (longest - 59)];
    let end = Instant::now() + Duration::from_secs(20);
    while seen < count {
        assert!(Instant::now() < end, "only {seen} of {made} frames came through");
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
    assert_eq!(to.unusable_frames(), 0);
}

#[test]
fn memif_carries_frames_and_survives_a_restart_of_its_client() {
    let folder = tempfile::tempdir().expect("folder");
    let socket = folder.path().join("memif.sock");
    let pool = pool();
    let open = |role| Port::open(environment(), &memif(role, &socket), &pool).expect("opened");
    let (server, mut server_queue) = open(MemifRole::Server).start().map_err(|(_, error)| error).expect("server");
    assert!(!server.port().is_up().expect("state"));
    for round in 0..3 {
        let (client, mut client_queue) = open(MemifRole::Client).start().map_err(|(_, error)| error).expect("client");
        wait("the link comes up", || client.port().is_up() == Ok(true) && server.port().is_up() == Ok(true));
        assert_ne!(client.port().address().expect("address"), [0; 6]);
        exchange(&pool, &mut client_queue, &mut server_queue, 2000, BUFFER_BYTES);
        exchange(&pool, &mut server_queue, &mut client_queue, 2000, BUFFER_BYTES);
        let statistics = server.port().statistics().expect("statistics");
        assert!(statistics.received_packets >= 2000 && statistics.sent_packets >= 2000, "{round}: {statistics:?}");
        let client = client.stop(client_queue).expect("stopped");
        drop(client);
        wait("the link goes down", || server.port().is_up() == Ok(false));
    }
    drop((server, server_queue));
    wait("all buffers return", || pool.in_use() == 0);
}

/// The driver takes the shared memory away on a thread of its own while the other end is busy with it.
#[test]
fn a_memif_whose_other_end_goes_in_the_middle_of_a_burst_does_no_harm() {
    let folder = tempfile::tempdir().expect("folder");
    let socket = folder.path().join("memif.sock");
    let pool = pool();
    let open = |role| Port::open(environment(), &memif(role, &socket), &pool).expect("opened");
    let (server, mut server_queue) = open(MemifRole::Server).start().map_err(|(_, error)| error).expect("server");
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
            let (client, mut queue) = open(MemifRole::Client).start().map_err(|(_, error)| error).expect("client");
            wait("the link comes up", || client.port().is_up() == Ok(true) && server.port().is_up() == Ok(true));
            let (end, mut received) = (Instant::now() + Duration::from_millis(10), Vec::new());
            while Instant::now() < end {
                queue.receive(&mut received);
                received.truncate(256);
                queue.transmit(&mut received);
                received.clear();
            }
            drop((client, queue));
            wait("the link goes down", || server.port().is_up() == Ok(false));
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Peers may send frames that are longer than one buffer.
#[test]
fn a_frame_in_several_buffers_arrives_in_one_piece() {
    let folder = tempfile::tempdir().expect("folder");
    let socket = folder.path().join("memif.sock");
    let pool = pool();
    let open = |role| Port::open(environment(), &memif(role, &socket), &pool).expect("opened");
    let (_server, mut server_queue) = open(MemifRole::Server).start().map_err(|(_, error)| error).expect("server");
    let (client, mut client_queue) = open(MemifRole::Client).start().map_err(|(_, error)| error).expect("client");
    wait("the link comes up", || client.port().is_up() == Ok(true));
    // Not more than the ring holds: the driver does not send such frames rightly through slots that were used before.
    exchange(&pool, &mut client_queue, &mut server_queue, 40, 8900);
}

#[test]
fn what_cannot_be_opened_says_why() {
    let pool = pool();
    let error = |device: &Device| Port::open(environment(), device, &pool).err().expect("refused").to_string();
    assert!(error(&Device::AfPacket { interface: "no-such-if0".to_owned() }).contains("no-such-if0"));
    let text = error(&memif(MemifRole::Server, Path::new("/tmp/a,b")));
    assert!(text.contains("/tmp/a,b"), "{text}");
    let plain = MbufPool::new(1, 1);
    assert!(Port::open(environment(), &memif(MemifRole::Server, Path::new("/tmp/x")), &plain).is_err());
}

#[test]
fn a_link_in_memory_is_bounded_and_gives_back_what_it_holds() {
    let pool = pool();
    let (mut left, mut right) = MemoryPort::pair(environment(), 100).expect("rings");
    let mut frames: Vec<Mbuf> = (0..150_u8).map(|number| pool.copy_of(&[number]).expect("buffer")).collect();
    left.transmit(&mut frames);
    assert_eq!(frames.len(), 50, "those that do not fit stay");
    assert_eq!(frames[0].bytes(), [100], "in order");
    let mut received = Vec::new();
    right.receive(&mut received);
    assert_eq!(received.iter().map(|frame| frame.bytes()[0]).collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
    left.transmit(&mut frames);
    assert!(frames.is_empty());
    right.transmit(&mut received);
    assert!(received.is_empty());
    drop((left, right));
    assert_eq!(pool.in_use(), 0);
}
