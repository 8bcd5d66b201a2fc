//! Well-behaved applications: a consumer that sends at a steady rate and reports the results, and a producer.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use namehop_wire::lp::LpPacket;
use namehop_wire::security::DigestSigner;
use namehop_wire::tlv::{frame_length, types};
use namehop_wire::{Data, Interest, Name};

use super::options::{Failure, Options};
use super::packets::{Extras, data, frames, interest, number_of, numbered, registration};

/// Repeated content of a good producer's Data.
const GOOD: &[u8] = b"good";
/// Time limit of a write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time between connection attempts.
const RECONNECT: Duration = Duration::from_millis(100);

/// A connection to the router, read frame by frame.
enum Link {
    Unix(UnixStream),
    Tcp(TcpStream),
    Udp(UdpSocket),
}

impl Link {
    /// Opens `to=unix:PATH`, `to=tcp:ADDRESS` or `to=udp:ADDRESS`, from the address `bind` if given.
    fn open(options: &Options) -> Result<Link, Failure> {
        let to = options.text("to")?;
        let (scheme, address) = to.split_once(':').ok_or("to= has no scheme")?;
        Ok(match scheme {
            "unix" => {
                let stream = UnixStream::connect(address)?;
                stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
                Link::Unix(stream)
            }
            "tcp" => {
                let stream = TcpStream::connect_timeout(&address.parse()?, Duration::from_secs(1))?;
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
                Link::Tcp(stream)
            }
            "udp" => {
                let socket = UdpSocket::bind(options.get_or::<SocketAddr>("bind", ([0; 4], 0).into())?)?;
                socket.connect(address)?;
                Link::Udp(socket)
            }
            _ => return Err(format!("to={to} is not valid").into()),
        })
    }

    fn try_clone(&self) -> io::Result<Link> {
        Ok(match self {
            Link::Unix(stream) => Link::Unix(stream.try_clone()?),
            Link::Tcp(stream) => Link::Tcp(stream.try_clone()?),
            Link::Udp(socket) => Link::Udp(socket.try_clone()?),
        })
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        match self {
            Link::Unix(stream) => stream.write_all(packet),
            Link::Tcp(stream) => stream.write_all(packet),
            // A datagram that cannot be sent counts as lost on the way.
            Link::Udp(socket) => socket.send(packet).map_or(Ok(()), |_| Ok(())),
        }
    }

    /// Reads until the connection ends and passes every frame to `each`.
    fn read_all(&mut self, mut each: impl FnMut(&[u8])) {
        let mut buffer = vec![0; 1 << 18];
        let mut filled = 0;
        loop {
            let read = match self {
                Link::Unix(stream) => stream.read(&mut buffer[filled..]),
                Link::Tcp(stream) => stream.read(&mut buffer[filled..]),
                Link::Udp(socket) => match socket.recv(&mut buffer) {
                    Ok(count) => {
                        each(&buffer[..count]);
                        continue;
                    }
                    Err(error) => Err(error),
                },
            };
            match read {
                Ok(0) => return,
                Ok(count) => filled += count,
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::Interrupted) => continue,
                Err(_) => return,
            }
            let mut at = 0;
            while let Ok(Some(length)) = frame_length(&buffer[at..filled])
                && length <= filled - at
            {
                each(&buffer[at..at + length]);
                at += length;
            }
            buffer.copy_within(at..filled, 0);
            filled -= at;
        }
    }
}

/// State of one Interest of the consumer.
#[derive(Clone, Copy)]
enum Fate {
    Sent(Instant),
    Answered(Duration),
    Nacked,
    Poisoned,
}

/// Opens a connection and records its answers in `fates`.
fn open_for_answers(options: &Options, prefix: &Name, fates: &Arc<Mutex<Vec<Fate>>>) -> Result<Link, Failure> {
    let link = Link::open(options)?;
    let (mut reader, prefix, fates) = (link.try_clone()?, prefix.clone(), Arc::clone(fates));
    thread::spawn(move || {
        reader.read_all(|frame| {
            let Ok(packet) = LpPacket::decode(frame) else { return };
            let Some(fragment) = packet.fragment else { return };
            let (number, is_good) = if fragment.first() == Some(&(types::DATA as u8)) {
                let Ok(data) = Data::decode(fragment) else { return };
                (number_of(&prefix, data.name.value()), data.content.starts_with(GOOD))
            } else {
                let Ok(interest) = Interest::decode(fragment) else { return };
                (number_of(&prefix, interest.name.value()), false)
            };
            let mut fates = fates.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(fate) = number.and_then(|number| fates.get_mut(number as usize)) else { return };
            if let Fate::Sent(when) = *fate {
                *fate = match (packet.nack, is_good) {
                    (Some(_), _) => Fate::Nacked,
                    (None, true) => Fate::Answered(when.elapsed()),
                    (None, false) => Fate::Poisoned,
                };
            }
        });
    });
    Ok(link)
}

/// Sends due Interests until the end. An Interest that cannot be sent in time counts as lost, also while there is no
/// connection.
fn send_all(
    options: &Options,
    prefix: &Name,
    extras: &Extras,
    fates: &Arc<Mutex<Vec<Fate>>>,
    connections: &AtomicUsize,
) {
    let Ok(mut pace) = options.pace() else { return };
    let mut link = None;
    let mut try_again_at = Instant::now();
    let mut number = 0;
    while let Some(due) = pace.next() {
        for _ in 0..due {
            fates.lock().unwrap_or_else(PoisonError::into_inner).push(Fate::Sent(Instant::now()));
            if link.is_none() && Instant::now() >= try_again_at {
                try_again_at = Instant::now() + RECONNECT;
                link = open_for_answers(options, prefix, fates).ok();
                connections.fetch_add(usize::from(link.is_some()), Ordering::Relaxed);
            }
            let packet = interest(numbered(prefix, number).value(), extras);
            number += 1;
            if link.as_mut().is_some_and(|link: &mut Link| link.send(&packet).is_err()) {
                link = None;
            }
        }
    }
}

/// Requests numbered names under `prefix` at a steady `rate`; an answer counts within `lifetime_ms`.
pub fn ask(options: Options) -> Result<String, Failure> {
    let prefix: Name = options.get("prefix")?;
    let lifetime = Duration::from_millis(options.get_or("lifetime_ms", 2000)?);
    let extras = Extras { lifetime_ms: Some(lifetime.as_millis() as u64), hint: None };
    let (rate, seconds): (f64, f64) = (options.get("rate")?, options.get("seconds")?);
    let fates = Arc::new(Mutex::new(Vec::new()));
    let connections = Arc::new(AtomicUsize::new(0));
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    // Connecting and writing may block forever, so they have their own thread.
    let sending = {
        let (fates, connections) = (Arc::clone(&fates), Arc::clone(&connections));
        thread::spawn(move || send_all(&options, &prefix, &extras, &fates, &connections))
    };
    let is_done = || {
        let fates = fates.lock().unwrap_or_else(PoisonError::into_inner);
        sending.is_finished() && !fates.iter().any(|fate| matches!(fate, Fate::Sent(_)))
    };
    while Instant::now() < end + lifetime && !is_done() {
        thread::sleep(Duration::from_millis(20));
    }
    let connections = connections.load(Ordering::Relaxed);
    let fates = fates.lock().unwrap_or_else(PoisonError::into_inner);
    let mut times: Vec<f64> = fates
        .iter()
        .filter_map(|fate| match fate {
            Fate::Answered(time) if *time <= lifetime => Some(time.as_secs_f64() * 1000.0),
            _ => None,
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or(f64::NAN);
    let (median, late) = if times.is_empty() { (0.0, 0.0) } else { (at(0.5), at(0.99)) };
    let count = |wanted: fn(&Fate) -> bool| fates.iter().filter(|fate| wanted(fate)).count();
    Ok(format!(
        "{{\"packets\": {}, \"answered\": {}, \"nacks\": {}, \"poisoned\": {}, \"connections\": {connections}, \
         \"median_ms\": {median:.2}, \"p99_ms\": {late:.2}}}",
        fates.len().max((rate * seconds * 0.95) as usize),
        times.len(),
        count(|fate| matches!(fate, Fate::Nacked)),
        count(|fate| matches!(fate, Fate::Poisoned)),
    ))
}

/// Answers Interests under `prefix` with `payload` bytes, after `delay_ms`, in fragments of `piece` bytes; with
/// `answers=no`, does not answer. Registers the prefix with `register=yes`.
pub fn answer(options: &Options) -> Result<String, Failure> {
    let prefix: Name = options.get("prefix")?;
    let (payload, piece) = (options.get_or("payload", 100)?, options.get_or("piece", 8800)?);
    let delay = Duration::from_millis(options.get_or("delay_ms", 0)?);
    let answers = options.optional("answers") != Some("no");
    let content = GOOD.repeat(payload / GOOD.len());
    let mut link = Link::open(options)?;
    if options.optional("register") == Some("yes") {
        link.send(&registration("localhost", &prefix, None, &DigestSigner)?)?;
    }
    let end = Instant::now() + Duration::from_secs_f64(options.get("seconds")?);
    let mut reader = link.try_clone()?;
    let (sender, received) = mpsc::channel();
    let wanted = prefix.clone();
    thread::spawn(move || {
        reader.read_all(|frame| {
            if !answers {
                return;
            }
            let Ok(packet) = LpPacket::decode(frame) else { return };
            let Some(Ok(interest)) = packet.fragment.map(Interest::decode) else { return };
            if wanted.as_ref().is_prefix_of(interest.name) {
                // The receiver is dropped only at the end.
                let _ = sender.send((Instant::now() + delay, packet.pit_token, interest.name.value().to_vec()));
            }
        });
    });
    println!("{{\"ready\": true}}");
    io::stdout().flush()?;
    let (mut waiting, mut sequence, mut served) = (VecDeque::new(), 0, 0);
    while Instant::now() < end {
        let next = waiting.front().map_or(end, |(due, ..): &(Instant, _, _)| *due).min(end);
        match received.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(request) => waiting.push_back(request),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        while waiting.front().is_some_and(|(due, ..)| *due <= Instant::now()) {
            let Some((_, token, name)) = waiting.pop_front() else { break };
            for frame in frames(&data(&name, &content), token, sequence, piece) {
                link.send(&frame)?;
                sequence += 1;
            }
            served += 1;
        }
    }
    Ok(format!("{{\"packets\": {served}}}"))
}
