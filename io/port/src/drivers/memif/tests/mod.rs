//! Hostile peers: they follow the control protocol or break it, and write arbitrary values into shared memory.

mod peer;
mod sleep;

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use namehop_packet::{BufferPool, PortQueue};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::ftruncate;
use proptest::prelude::*;

use super::channel::{Channel, accept, listen_at};
use super::handshake::hello;
use super::message::{Message, RingLocation, VERSION};
use super::*;
use crate::mapping::Mapping;
use peer::{BUFFER_BYTES, DESCRIPTORS, FLAGS, HEAD, SLOTS, Shared, Story, TAIL, hear, say};

fn settings(role: MemifRole, socket: &Path) -> Memif {
    Memif { role, socket: socket.to_owned(), id: 9, ring_slots: SLOTS, buffer_bytes: BUFFER_BYTES }
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct Bench {
    service: MemifService,
    folder: tempfile::TempDir,
    pool: BufferPool,
}

impl Bench {
    fn new() -> Bench {
        let (service, folder) = (MemifService::start().expect("thread"), tempfile::tempdir().expect("folder"));
        Bench { service, folder, pool: BufferPool::new(64, 16) }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("memif.sock")
    }

    fn open(&self, role: MemifRole) -> (MemifPort, MemifQueue) {
        self.service.open(&settings(role, &self.socket()), &self.pool).expect("opened")
    }
}

/// Frames that the server's end receives.
fn received(queue: &mut MemifQueue) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    queue.receive(&mut frames);
    frames.iter().map(|frame| frame.bytes().to_vec()).collect()
}

#[test]
fn stories_that_cannot_be_are_not_believed() {
    let bench = Bench::new();
    let (port, _queue) = bench.open(MemifRole::Server);
    let large = 1 << 31;
    let refused = |reason: &str, change: &dyn Fn(&mut Story)| {
        let mut story = Story::new();
        change(&mut story);
        let text = story.tell(&bench.socket()).err().unwrap_or_default();
        assert!(text.contains(reason), "got {text:?}, expected {reason:?}");
        assert!(!port.is_up());
    };
    refused("no link with this id", &|story| story.id = 10);
    refused("unexpected or missing region", &|story| story.region_index = 1);
    refused("unexpected or missing region", &|story| story.file = None);
    refused("longer than its file", &|story| story.region_bytes += 1);
    refused("longer than its file", &|story| story.region_bytes = 0);
    refused("longer than its file", &|story| story.region_bytes = u64::MAX);
    refused("not a memory file", &|story| story.file = Some(File::open("/dev/zero").expect("device").into()));
    let file_of = |bytes: i64, seal: bool| {
        let file = memfd_create(c"test", MFdFlags::MFD_ALLOW_SEALING).expect("memory");
        ftruncate(&file, bytes).expect("a sparse file");
        if seal {
            let seals = nix::fcntl::FcntlArg::F_ADD_SEALS(nix::fcntl::SealFlag::F_SEAL_SHRINK);
            nix::fcntl::fcntl(&file, seals).expect("sealed");
        }
        file
    };
    refused("not sealed", &|story| story.file = Some(file_of(story.region_bytes as i64, false)));
    refused("too large", &|story| (story.file, story.region_bytes) = (Some(file_of(large, true)), large as u64));
    let misplaced = "invalid ring";
    refused(misplaced, &|story| story.file = Some(file_of(story.region_bytes as i64, true)));
    refused(misplaced, &|story| story.to_server.region = 1);
    refused(misplaced, &|story| story.to_client.region = u16::MAX);
    refused(misplaced, &|story| story.to_server.offset = story.region_bytes as u32 - 100);
    refused(misplaced, &|story| story.to_client.offset = u32::MAX - 3);
    refused(misplaced, &|story| story.to_client.offset += 1);
    refused(misplaced, &|story| story.to_server.log2_slots = 14);
    refused(misplaced, &|story| story.to_server.log2_slots = 63);
    let story = Story::new();
    let channel = story.tell(&bench.socket()).expect("a valid handshake is accepted");
    eventually("connected", || port.is_up());
    assert_eq!(story.tell(&bench.socket()).err().as_deref(), Some("this link is in use"));
    drop(channel);
    eventually("gone", || !port.is_up());
}

#[test]
fn a_client_that_lies_about_its_frames_loses_them_and_no_buffer_is_lost() {
    let bench = Bench::new();
    let (port, mut queue) = bench.open(MemifRole::Server);
    let story = Story::new();
    let _channel = story.tell(&bench.socket()).expect("a valid handshake is accepted");
    let (memory, ring) = (Shared(&story.offer.mapping), story.to_server);
    let (end, head) = (story.region_bytes as u32, ring.offset as usize + HEAD);
    let mut count = 0_u16;
    let mut malformed = 0;
    // Chains of descriptors, each with flags, region, length and offset.
    let lies: &[&[(u16, u16, u32, u32)]] = &[
        &[(0, 0, 100, end - 99)],
        &[(0, 0, 100, u32::MAX)],
        &[(0, 0, u32::MAX, 0)],
        &[(0, 0, u32::MAX, u32::MAX)],
        &[(0, 1, 100, 0)],
        &[(0, u16::MAX, 100, 0)],
        &[(0, 0, 0, 0)],
        &[(0, 0, 9217, 0)],
        &[(1, 0, 9000, 0), (0, 0, 217, 0)],
        &[(1, 0, 10, 0), (1, 3, 10, 0), (0, 0, 10, 0)],
    ];
    for chain in lies {
        for &(flags, region, length, offset) in *chain {
            memory.descriptor(ring, count % SLOTS, flags, region, length, offset);
            count += 1;
        }
        memory.write(head, count);
        // And a valid frame.
        eventually("connected", || port.is_up());
        assert_eq!(received(&mut queue), [[0; 0]; 0], "{chain:?}");
        malformed += 1;
        assert_eq!(port.losses().malformed, malformed, "{chain:?}");
        memory.write(end as usize - 4, *b"good");
        memory.descriptor(ring, count % SLOTS, 1, 0, 2, end - 4);
        memory.descriptor(ring, (count + 1) % SLOTS, 0, 0, 2, end - 2);
        count += 2;
        memory.write(head, count);
        assert_eq!(received(&mut queue), [b"good"]);
        assert_eq!(memory.read(ring.offset as usize + TAIL), count);
    }
    // Endless chains: the worker waits for the rest until the ring is full.
    for slot in 0..SLOTS {
        memory.descriptor(ring, slot, 1, 0, 1, end - 4);
    }
    memory.write(head, count + SLOTS - 1);
    assert!(received(&mut queue).is_empty());
    assert_eq!(port.losses().malformed, malformed);
    for round in 1..20 {
        memory.write(head, count.wrapping_add(round * SLOTS));
        assert!(received(&mut queue).is_empty());
        assert_eq!(port.losses().malformed, malformed + 1, "one malformed chain");
    }
    assert_eq!(bench.pool.in_use(), 0);
    // More frames than there are slots.
    memory.write(head, count.wrapping_add(21 * SLOTS + 1));
    assert!(received(&mut queue).is_empty());
    eventually("the client is disconnected", || !port.is_up());
    assert!(story.tell(&bench.socket()).is_ok(), "the client must be able to reconnect");
}

/// Writes an invalid value into the ring of a client; the number is the size of its memory in bytes.
type Lie<'a> = &'a dyn Fn(&Shared<'_>, RingLocation, u32);

#[test]
fn a_client_that_lies_about_its_buffers_is_disconnected() {
    let bench = Bench::new();
    let (port, mut queue) = bench.open(MemifRole::Server);
    let lies: [Lie<'_>; 4] = [
        &|memory, ring, end| memory.descriptor(ring, 0, 0, 0, 512, end - 511),
        &|memory, ring, _| memory.descriptor(ring, 0, 0, 7, 512, 0),
        &|memory, ring, _| memory.descriptor(ring, 0, 0, 0, u32::MAX, u32::MAX),
        &|memory, ring, _| memory.write(ring.offset as usize + HEAD, SLOTS + 1),
    ];
    for lie in lies {
        let story = Story::new();
        let channel = story.tell(&bench.socket()).expect("a valid handshake is accepted");
        eventually("connected", || port.is_up());
        let (memory, ring, end) = (Shared(&story.offer.mapping), story.to_client, story.region_bytes as u32);
        memory.write(ring.offset as usize + HEAD, SLOTS);
        lie(&memory, ring, end);
        let mut frames = vec![bench.pool.copy_of(&[1; 100]).expect("buffer")];
        queue.transmit(&mut frames);
        assert!(matches!(hear(&channel), Some((Message::Disconnect { .. }, _))));
        eventually("disconnected", || !port.is_up());
        // Frames that were not sent stay for the next client.
        assert_eq!(frames.len(), 1);
    }
    // Buffers of length zero: frames never fit, so they are dropped and do not wait forever.
    let story = Story::new();
    let _channel = story.tell(&bench.socket()).expect("a valid handshake is accepted");
    let (memory, ring) = (Shared(&story.offer.mapping), story.to_client);
    (0..SLOTS).for_each(|slot| memory.descriptor(ring, slot, 0, 0, 0, 0));
    memory.write(ring.offset as usize + HEAD, SLOTS);
    let mut frames = vec![bench.pool.copy_of(&[1; 100]).expect("buffer")];
    eventually("connected", || port.is_up());
    queue.transmit(&mut frames);
    assert_eq!((frames.len(), port.losses().send_failed), (0, 1));
}

#[test]
fn a_server_that_lies_reads_and_moves_nothing_of_the_clients() {
    let bench = Bench::new();
    let listener = listen_at(&bench.socket()).expect("socket");
    let (port, mut queue) = bench.open(MemifRole::Client);
    let connect = || {
        let mut channel = None;
        eventually("a client", || {
            channel = accept(listener.as_fd()).expect("accepted");
            channel.is_some()
        });
        let channel = channel.expect("accepted");
        channel.send(&hello(), None);
        let (mut file, mut places, mut bytes) = (None, Vec::new(), 0);
        loop {
            match hear(&channel).expect("a client") {
                (Message::AddRegion { bytes: length, .. }, descriptor) => (file, bytes) = (descriptor, length),
                (Message::AddRing { place, .. }, _) => places.push(place),
                (Message::Connect, _) => break,
                _ => {}
            }
            channel.send(&Message::Ack, None);
        }
        channel.send(&Message::Connected, None);
        eventually("connected", || port.is_up());
        let mapping = Mapping::new(file.expect("a file").as_fd(), bytes as usize).expect("mapped");
        (channel, mapping, places[0], places[1])
    };
    let (_channel, mapping, to_server, to_client) = connect();
    let memory = Shared(&mapping);
    // Invalid descriptors: the client writes to its own buffers, and writes its own descriptors again.
    for slot in 0..SLOTS {
        memory.descriptor(to_server, slot, 1, 99, u32::MAX, u32::MAX);
        memory.descriptor(to_client, slot, 0, 99, 10, u32::MAX);
    }
    let mut frames = vec![bench.pool.copy_of(&[5; 1000]).expect("buffer")];
    queue.transmit(&mut frames);
    assert!(frames.is_empty());
    assert_eq!(memory.read(to_server.offset as usize + HEAD), 2, "the frame needs two buffers");
    assert_eq!(memory.read(to_server.offset as usize + DESCRIPTORS + 2), 0, "the buffers must be in the only region");
    memory.write(to_client.offset as usize + TAIL, 3_u16);
    memory.descriptor(to_client, 1, 0, 0, u32::from(BUFFER_BYTES) + 1, 0);
    assert_eq!(received(&mut queue), [[0; 10]; 2]);
    assert_eq!(port.losses().malformed, 1);
    // A counter that is out of range.
    memory.write(to_client.offset as usize + TAIL, 1000_u16);
    assert!(received(&mut queue).is_empty());
    eventually("the connection is closed", || !port.is_up());
    let (_channel, mapping, to_server, _) = connect();
    Shared(&mapping).write(to_server.offset as usize + TAIL, 1_u16);
    let mut frames = vec![bench.pool.copy_of(&[5; 1000]).expect("buffer")];
    queue.transmit(&mut frames);
    eventually("the connection is closed", || !port.is_up());
}

#[test]
fn bells_are_rung_for_those_who_want_it_and_a_full_one_keeps_nobody_waiting() {
    let bench = Bench::new();
    let (_server, mut server_queue) = bench.open(MemifRole::Server);
    let story = Story::new();
    let channel = Channel::connect(&bench.socket()).expect("listening");
    hear(&channel);
    say(&channel, &Message::Init { version: VERSION, id: 9, is_ethernet: true }, None).expect("the message is sent");
    let region = Message::AddRegion { index: 0, bytes: story.region_bytes };
    say(&channel, &region, story.file.as_ref()).expect("the message is sent");
    // A blocking eventfd that the peer has filled.
    let bell = EventFd::from_flags(EfdFlags::empty()).expect("event");
    let other = bell.as_fd().try_clone_to_owned().expect("descriptor");
    for (is_to_server, place) in [(true, story.to_server), (false, story.to_client)] {
        say(&channel, &Message::AddRing { is_to_server, index: 0, place }, Some(&other)).expect("the message is sent");
    }
    say(&channel, &Message::Connect, None).expect("the message is sent");
    let (memory, ring) = (Shared(&story.offer.mapping), story.to_client);
    (0..SLOTS).for_each(|slot| memory.descriptor(ring, slot, 0, 0, 512, 4096));
    memory.write(ring.offset as usize + HEAD, SLOTS);
    let mut send = || {
        let mut frames = vec![bench.pool.copy_of(&[1; 100]).expect("buffer")];
        eventually("sent", || {
            server_queue.transmit(&mut frames);
            frames.is_empty()
        });
    };
    send();
    // The peer reads, which waits for the signal.
    assert_eq!(bell.read(), Ok(1));
    bell.write(u64::MAX - 1).expect("filled");
    send();
    drop(channel);
    story.tell(&bench.socket()).expect("other clients are served meanwhile");
    memory.write(ring.offset as usize + FLAGS, 1_u16);
}

#[test]
fn peers_that_come_lie_die_and_return_harm_no_ports_that_come_and_go() {
    let bench = Bench::new();
    let socket = bench.socket();
    let end = Instant::now() + Duration::from_secs(2);
    std::thread::scope(|scope| {
        for peer in 0..3_u16 {
            let socket = &socket;
            scope.spawn(move || {
                for round in (0_u16..).take_while(|_| Instant::now() < end) {
                    let Ok(channel) = Channel::connect(socket) else { continue };
                    if round % 3 == 0 {
                        channel.send(&Message::Connected, None);
                        continue;
                    }
                    let story = Story::new();
                    drop(channel);
                    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| story.tell(socket)));
                    let Ok(Ok(_channel)) = told else { continue };
                    let memory = Shared(&story.offer.mapping);
                    for slot in 0..SLOTS {
                        let noise = u32::from(slot ^ round).wrapping_mul(0x9E37_79B9);
                        memory.descriptor(story.to_server, slot, peer & 1, slot / 8, noise >> (round % 32), noise);
                        memory.descriptor(story.to_client, slot, 0, 0, noise >> (round % 32), noise);
                    }
                    memory.write(story.to_server.offset as usize + HEAD, round);
                    memory.write(story.to_client.offset as usize + HEAD, round);
                    std::thread::sleep(Duration::from_micros(u64::from(round % 7) * 300));
                }
            });
        }
        while Instant::now() < end {
            let (port, mut queue) = bench.open(MemifRole::Server);
            let mut frames = Vec::new();
            for _ in 0..200 {
                queue.receive(&mut frames);
                frames.truncate(8);
                queue.transmit(&mut frames);
                std::thread::sleep(Duration::from_micros(50));
            }
            // Drop port and queue in either order.
            match frames.len() % 2 {
                0 => drop((port, queue)),
                _ => drop((queue, port)),
            }
        }
    });
    assert_eq!(bench.pool.in_use(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// No content of the rings makes the router access memory outside the client's region or leak a buffer.
    #[test]
    fn arbitrary_rings_do_no_harm(
        rings in prop::collection::vec(any::<u8>(), 2 * (128 + 16 * 16)),
        counts in prop::collection::vec((any::<u16>(), 0..40_u16), 1..8),
    ) {
        let bench = Bench::new();
        let (port, mut queue) = bench.open(MemifRole::Server);
        let story = Story::new();
        let channel = story.tell(&bench.socket());
        eventually("connected", || port.is_up());
        let memory = Shared(&story.offer.mapping);
        for (offset, byte) in rings.iter().enumerate() {
            memory.write(offset, *byte);
        }
        for (wild, count) in counts {
            let count = if wild % 5 == 0 { wild } else { count };
            memory.write(story.to_server.offset as usize + HEAD, count);
            memory.write(story.to_client.offset as usize + HEAD, count);
            let mut frames = Vec::new();
            queue.receive(&mut frames);
            frames.extend(bench.pool.copy_of(&[1; 1500]));
            queue.transmit(&mut frames);
        }
        drop((channel, queue));
        prop_assert_eq!(bench.pool.in_use(), 0);
    }
}
