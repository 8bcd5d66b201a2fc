//! Tests of relays between real sockets.

use super::*;

const MS: Duration = Duration::from_millis(1);

/// Returns the first peer, the second peer, and the relay between them.
fn scene(forth: Impairments, back: Impairments) -> (UdpSocket, UdpSocket, Relay) {
    let local = || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
        socket
    };
    let (first, second) = (local(), local());
    let to = second.local_addr().expect("an address");
    let listen = "127.0.0.1:0".parse().expect("an address");
    let relay = Relay::start(&RelayConfig { listen, to, forth, back, seed: 5 }).expect("a relay");
    first.connect(relay.address()).expect("connected");
    (first, second, relay)
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 100];
    let (bytes, from) = socket.recv_from(&mut buffer).expect("a datagram");
    (buffer[..bytes].to_vec(), from)
}

#[test]
fn datagrams_go_forth_and_back_and_take_their_time() {
    let late = |delay| Impairments { delay, ..Impairments::default() };
    let (first, second, relay) = scene(late(30 * MS), late(50 * MS));
    let began = Instant::now();
    first.send(b"ask").expect("sent");
    let (datagram, relay_address) = receive(&second);
    assert_eq!(datagram, b"ask");
    assert!(began.elapsed() >= 30 * MS);
    second.send_to(b"answer", relay_address).expect("sent");
    assert_eq!(receive(&first).0, b"answer");
    assert!(began.elapsed() >= 80 * MS);

    let other = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    other.send_to(b"me too", relay.address()).expect("sent");
    while relay.counts()[0].strangers == 0 {
        std::thread::sleep(MS);
    }
    let [forth, back] = relay.end().expect("no thread of the relay fails");
    let expected =
        DirectionCounts { received: 2, carried: 1, carried_bytes: 3, strangers: 1, ..DirectionCounts::default() };
    assert_eq!(forth, expected);
    assert_eq!(back, DirectionCounts { received: 1, carried: 1, carried_bytes: 6, ..DirectionCounts::default() });
}

#[test]
fn everything_is_accounted_for() {
    let impairments = Impairments {
        delay: MS,
        bits_per_second: Some(5_000_000),
        queue_bytes: 20_000,
        loss: 0.1,
        duplication: 0.1,
        reordering: 0.1,
        reordering_delay: 3 * MS,
    };
    let (first, second, relay) = scene(impairments, Impairments::default());
    // Read while datagrams arrive: the system buffers only a few hundred.
    let (has_ended, second_ends) = std::sync::mpsc::channel::<u64>();
    let reading = std::thread::spawn(move || {
        second.set_read_timeout(Some(20 * MS)).expect("a time limit");
        let (mut numbers, mut buffer, mut expected) = (Vec::new(), [0; 100], u64::MAX);
        while (numbers.len() as u64) < expected {
            if second.recv(&mut buffer).is_ok() {
                numbers.push(u32::from_be_bytes(buffer[..4].try_into().expect("four bytes")));
            }
            expected = second_ends.try_recv().unwrap_or(expected);
        }
        numbers
    });
    let sent = 2_000_u32;
    for number in 0..sent {
        let mut datagram = [0; 100];
        datagram[..4].copy_from_slice(&number.to_be_bytes());
        first.send(&datagram).expect("sent");
        if number % 40 == 0 {
            std::thread::sleep(2 * MS);
        }
    }
    let arrived = loop {
        let counts = relay.counts()[0];
        if counts.received + counts.overrun == u64::from(sent) && counts.on_the_way == 0 {
            break counts.carried;
        }
        std::thread::sleep(MS);
    };
    has_ended.send(arrived).expect("the reading thread is running");
    let mut numbers = reading.join().expect("no thread of the relay fails");
    let [forth, _] = relay.end().expect("no thread of the relay fails");
    assert_eq!(forth.received + forth.duplicated, forth.carried + forth.lost + forth.queue_full + forth.refused);
    assert!(forth.lost > 100 && forth.queue_full > 100 && forth.duplicated > 20 && forth.held_back > 20, "{forth:?}");
    assert!(!numbers.is_sorted(), "some datagrams must be reordered");
    let all = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!((all - numbers.len()) as u64, forth.duplicated, "duplicated datagrams must arrive twice");
}
