//! Senders of many packets with few system calls: streams, datagrams, and datagrams with spoofed sources.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, MsgFlags, MultiHeaders, SockFlag, SockProtocol, SockType, SockaddrStorage, sendmmsg, setsockopt,
    socket, sockopt,
};

use super::options::{Failure, Options};

/// Datagrams per system call.
const DATAGRAMS: usize = 64;
/// Bytes of the IPv4 and UDP headers of a spoofed datagram.
const IP_AND_UDP_BYTES: usize = 28;

/// Concatenated packets to be sent together.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    /// Adds a packet.
    pub fn push(&mut self, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
        self.ends.push(self.bytes.len());
    }

    fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}

/// A sender of packets.
pub enum Sender {
    /// A connection; received bytes are discarded.
    Stream { stream: TcpStream, reader: JoinHandle<()> },
    /// Sockets used in turn, each with its own address.
    Datagrams { sockets: Vec<UdpSocket>, next: usize },
    /// Datagrams with spoofed sources.
    Invented { socket: OwnedFd, to: SocketAddrV4, count: u32 },
}

impl Sender {
    /// Opens `via=tcp`, `via=udp` (from `senders` addresses, by the pattern `from` with `{}` for a number) or
    /// `via=spoofed`.
    pub fn open(options: &Options) -> Result<Sender, Failure> {
        let to: SocketAddr = options.get("to")?;
        match options.text("via")? {
            "tcp" => {
                let stream = TcpStream::connect_timeout(&to, Duration::from_secs(3))?;
                stream.set_write_timeout(Some(Duration::from_millis(100)))?;
                let reader = drain(stream.try_clone()?);
                Ok(Sender::Stream { stream, reader })
            }
            "udp" => {
                let bind = |number| -> Result<UdpSocket, Failure> {
                    let socket = UdpSocket::bind(address_number(options, number)?)?;
                    socket.connect(to)?;
                    socket.set_nonblocking(true)?;
                    Ok(socket)
                };
                let sockets = (0..options.get_or("senders", 1)?).map(bind).collect::<Result<_, _>>()?;
                Ok(Sender::Datagrams { sockets, next: 0 })
            }
            "spoofed" => {
                let SocketAddr::V4(to) = to else { return Err("sender addresses can be spoofed for IPv4 only".into()) };
                // IPPROTO_RAW: the packet includes the IP header.
                let socket = socket(AddressFamily::Inet, SockType::Raw, SockFlag::SOCK_NONBLOCK, SockProtocol::Raw)?;
                setsockopt(&socket, sockopt::SndBuf, &(4 << 20))?;
                Ok(Sender::Invented { socket, to, count: 0 })
            }
            other => Err(format!("via={other} is not valid").into()),
        }
    }

    /// Sends the batch, empties it, and returns the number of packets sent. Datagrams that do not fit into the system's
    /// buffers are dropped; a closed stream is an error.
    pub fn send(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let sent = match self {
            Sender::Stream { stream, .. } => {
                write_slowly(stream, &batch.bytes)?;
                Ok(batch.ends.len())
            }
            Sender::Datagrams { sockets, next } => {
                let packets: Vec<&[u8]> = batch.packets().collect();
                let share = packets.len().div_ceil(sockets.len()).max(1);
                let mut sent = 0;
                for group in packets.chunks(share) {
                    let socket = &sockets[*next % sockets.len()];
                    *next += 1;
                    sent += send_datagrams(socket.as_raw_fd(), group, None)?;
                }
                Ok(sent)
            }
            Sender::Invented { socket, to, count } => {
                let packets: Vec<Vec<u8>> = batch.packets().map(|packet| invented(packet, *to, count)).collect();
                let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
                send_datagrams(socket.as_raw_fd(), &packets, Some(*to))
            }
        };
        batch.bytes.clear();
        batch.ends.clear();
        sent
    }
}

impl Sender {
    /// Waits at most three seconds until the router has read everything and closed its end.
    pub fn finish(self) {
        let Sender::Stream { stream, reader } = self else { return };
        let until = Instant::now() + Duration::from_secs(3);
        // Fails if the router has already closed the connection.
        let _ = stream.shutdown(Shutdown::Write);
        while !reader.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns the source address with this number: the pattern `from`, with the number for `{}`, or the wildcard address.
pub fn address_number(options: &Options, number: u32) -> Result<SocketAddr, Failure> {
    let to: SocketAddr = options.get("to")?;
    let Some(pattern) = options.optional("from") else {
        return Ok(if to.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() });
    };
    let text = if to.is_ipv4() {
        pattern.replace("{}", &number.to_string())
    } else {
        pattern.replace("{}", &format!("{number:x}"))
    };
    let ip: IpAddr = text.parse().map_err(|_| format!("{text} is not an address"))?;
    Ok((ip, 0).into())
}

/// Reads and discards everything until the connection ends.
fn drain(mut stream: TcpStream) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 18];
        // The writer detects a closed connection; the reader just ends.
        while matches!(stream.read(&mut buffer), Ok(count) if count > 0) {}
    })
}

/// Writes everything; a full socket blocks for a limited number of time-outs.
fn write_slowly(stream: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    let mut patience = 50;
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) && patience > 0 => {
                patience -= 1;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn send_datagrams(socket: i32, packets: &[&[u8]], to: Option<SocketAddrV4>) -> io::Result<usize> {
    let mut sent = 0;
    for group in packets.chunks(DATAGRAMS) {
        let slices: Vec<[IoSlice<'_>; 1]> = group.iter().map(|packet| [IoSlice::new(packet)]).collect();
        let to = to.map(|to| SockaddrStorage::from(SocketAddr::V4(to)));
        let addresses = vec![to; slices.len()];
        let mut headers = MultiHeaders::preallocate(slices.len(), None);
        match sendmmsg(socket, &mut headers, &slices, addresses, [], MsgFlags::empty()) {
            Ok(results) => sent += results.count(),
            // The buffer is full, or an earlier datagram was refused: the flood goes on.
            Err(nix::Error::EAGAIN | nix::Error::ENOBUFS | nix::Error::ECONNREFUSED | nix::Error::EPERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sent)
}

/// Builds a datagram from the next of 126 addresses with 60,000 ports each. The kernel fills in length and checksum of
/// the IPv4 header (raw(7)); a UDP checksum of 0 means none.
fn invented(payload: &[u8], to: SocketAddrV4, count: &mut u32) -> Vec<u8> {
    *count = count.wrapping_add(1);
    let from = Ipv4Addr::new(192, 0, 2, 129 + (*count % 126) as u8);
    let port = (1024 + (*count / 126) % 60_000) as u16;
    let mut packet = Vec::with_capacity(IP_AND_UDP_BYTES + payload.len());
    packet.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(from.octets());
    packet.extend(to.ip().octets());
    packet.extend(port.to_be_bytes());
    packet.extend(to.port().to_be_bytes());
    packet.extend(((8 + payload.len()) as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend_from_slice(payload);
    packet
}
