//! Workers that sleep beside a memif: what wakes them, and what must not keep them awake.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::*;

/// True if the bell of a queue rings within this time; `None` if the queue has no bell and must be polled.
fn rings(queue: &MemifQueue, within_ms: u16) -> Option<bool> {
    let bell = queue.bell()?;
    let mut polled = [PollFd::new(bell, PollFlags::POLLIN)];
    Some(poll(&mut polled, PollTimeout::from(within_ms)).expect("polled") > 0)
}

/// Puts the worker of a queue to sleep, as after a period without frames.
fn fall_asleep(queue: &mut MemifQueue) {
    queue.prepare_to_sleep();
    std::thread::sleep(POLLED_FOR);
    assert!(received(queue).is_empty());
    queue.prepare_to_sleep();
}

#[test]
fn a_frame_wakes_a_worker_after_a_silence_and_before_that_it_looks_by_itself() {
    let bench = Bench::new();
    let (server, mut server_queue) = bench.open(MemifRole::Server);
    assert!(received(&mut server_queue).is_empty());
    server_queue.prepare_to_sleep();
    assert_eq!(rings(&server_queue, 0), Some(false), "no peer is connected");
    let (client, mut client_queue) = bench.open(MemifRole::Client);
    assert_eq!(rings(&server_queue, 5_000), Some(true), "a peer connects");
    eventually("connected", || server.is_up() && client.is_up());
    let one = |number: u8| vec![bench.pool.copy_of(&[number; 100]).expect("buffer")];
    let mut queues = [&mut server_queue, &mut client_queue];
    assert!(queues.iter_mut().all(|queue| received(queue).is_empty()));
    for number in 0..20 {
        let [to, from] = &mut queues;
        fall_asleep(to);
        assert_eq!(rings(to, 0), Some(false), "{number}");
        from.transmit(&mut one(number));
        assert_eq!(rings(to, 5_000), Some(true), "{number}");
        assert_eq!(received(to), [[number; 100]]);
        // The worker is awake, so no signal is needed.
        to.prepare_to_sleep();
        assert_eq!(rings(to, 0), None, "{number}");
        from.transmit(&mut one(number));
        assert_eq!(received(to), [[number; 100]]);
        queues.reverse();
    }
    // A frame that arrives just before the bell is requested; to the server, as in the first round.
    let [to, from] = queues;
    to.prepare_to_sleep();
    std::thread::sleep(POLLED_FOR);
    from.transmit(&mut one(1));
    to.prepare_to_sleep();
    assert_eq!(rings(to, 0), Some(true));
    assert_eq!(received(to).len(), 1);
    fall_asleep(to);
    drop(client);
    assert_eq!(rings(to, 5_000), Some(true), "the peer disconnects");
}

#[test]
fn the_beginning_of_a_frame_keeps_nobody_awake() {
    let bench = Bench::new();
    let (port, mut queue) = bench.open(MemifRole::Server);
    let story = Story::new();
    let _channel = story.tell(&bench.socket()).expect("a valid handshake is accepted");
    eventually("connected", || port.is_up());
    let (memory, ring) = (Shared(&story.offer.mapping), story.to_server);
    memory.descriptor(ring, 0, 1, 0, 100, 4096);
    memory.write(ring.offset as usize + HEAD, 1_u16);
    assert!(received(&mut queue).is_empty());
    for _ in 0..3 {
        fall_asleep(&mut queue);
        assert_eq!(rings(&queue, 0), Some(false));
        assert_eq!(memory.read(ring.offset as usize + FLAGS), 0, "signals are requested");
        assert!(received(&mut queue).is_empty());
        assert_eq!(memory.read(ring.offset as usize + FLAGS), 1, "signals are no longer requested");
    }
}

#[test]
fn a_peer_without_an_eventfd_has_to_be_looked_for() {
    let bench = Bench::new();
    let (port, mut queue) = bench.open(MemifRole::Server);
    let story = Story { bell: Some(File::open("/dev/null").expect("device").into()), ..Story::new() };
    let _channel = story.tell(&bench.socket()).expect("a valid handshake is accepted");
    eventually("connected", || port.is_up());
    fall_asleep(&mut queue);
    assert_eq!(rings(&queue, 0), None);
}
