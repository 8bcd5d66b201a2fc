//! Blocking socket connections that carry many packets per system call.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use namehop_client::target::{HostPort, TransportUri};
use namehop_client::transport::of_family;
use namehop_face::LinkDrop;
use namehop_face::socket::kernel_drops;
use namehop_wire::MAX_PACKET_SIZE;
use namehop_wire::tlv::frame_length;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;

use super::LoadError;
use super::link::{Link, LinkCounts, PATIENCE, add_loss};

/// Time without a read by the forwarder after which a connection fails.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Read buffer of a stream, in bytes.
const STREAM_BUFFER_BYTES: usize = 512 << 10;
/// Maximum number of datagrams per system call.
const DATAGRAMS: usize = 64;
/// Maximum bytes of frames kept for later, such as Interests that arrive before the answer to a registration.
const KEPT_BYTES: usize = 1 << 20;
/// Size of socket buffers for datagrams, in bytes, so that the generator does not lose a burst of full-sized packets.
const DATAGRAM_BUFFER_BYTES: usize = 4 << 20;

/// One socket connection.
pub(super) struct SocketLink {
    kind: Kind,
    /// Streams: bytes from `start` to `end` wait to be framed. Datagrams: an array of fixed-size buffers.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Whole frames received while waiting for another one, concatenated.
    kept: Vec<u8>,
    counts: LinkCounts,
}

enum Kind {
    Unix(UnixStream),
    Tcp(TcpStream),
    Udp(UdpSocket),
}

impl SocketLink {
    pub(super) fn open(uri: &TransportUri) -> Result<Self, LoadError> {
        Self::try_open(uri).map_err(|source| LoadError::Connect { uri: uri.clone(), source })
    }

    fn try_open(uri: &TransportUri) -> io::Result<Self> {
        let kind = match uri {
            TransportUri::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
                Kind::Unix(stream)
            }
            TransportUri::Tcp(to) => {
                let stream = TcpStream::connect(&resolve(to)?[..])?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
                Kind::Tcp(stream)
            }
            TransportUri::Udp(to) => {
                let remote = resolve(to)?[0];
                let any: SocketAddr = if remote.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
                let socket = UdpSocket::bind(any)?;
                socket.connect(remote)?;
                socket.set_read_timeout(Some(PATIENCE))?;
                // Best effort: the system may allow less.
                let _ = setsockopt(&socket, sockopt::RcvBuf, &DATAGRAM_BUFFER_BYTES);
                let _ = setsockopt(&socket, sockopt::SndBuf, &DATAGRAM_BUFFER_BYTES);
                Kind::Udp(socket)
            }
            TransportUri::WebSocket(..) => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "the load generator does not support WebSocket",
                ));
            }
        };
        let size = match kind {
            Kind::Udp(_) => DATAGRAMS * (MAX_PACKET_SIZE + 1),
            _ => STREAM_BUFFER_BYTES,
        };
        Ok(Self { kind, buffer: vec![0; size], start: 0, end: 0, kept: Vec::new(), counts: LinkCounts::default() })
    }

    /// Returns true if the socket becomes readable within `patience`.
    fn is_readable(&self, patience: Duration) -> io::Result<bool> {
        let socket = match &self.kind {
            Kind::Unix(stream) => stream.as_fd(),
            Kind::Tcp(stream) => stream.as_fd(),
            Kind::Udp(socket) => socket.as_fd(),
        };
        match ppoll(&mut [PollFd::new(socket, PollFlags::POLLIN)], Some(TimeSpec::from(patience)), None) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Resets the counts after packets that are not part of the load. Receive losses stay, because the dropped frames
    /// were part of the load.
    pub(super) fn forget_counts(&mut self) {
        let receive_losses = std::mem::take(&mut self.counts.receive_losses);
        self.counts = LinkCounts { receive_losses, ..LinkCounts::default() };
    }

    /// Receives like [`receive`](Link::receive), for waiting for a certain frame. Frames that `take` rejects are kept
    /// for the next receive; frames that do not fit in memory count as dropped.
    pub(super) fn receive_some(&mut self, patience: Duration, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<()> {
        // Frames kept by an earlier call are not passed to `take` again.
        let (mut kept, mut lost) = (std::mem::take(&mut self.kept), 0);
        let received = self.receive(patience, &mut |frame| {
            if take(frame) {
                return;
            }
            match kept.len() + frame.len() <= KEPT_BYTES {
                true => kept.extend_from_slice(frame),
                false => lost += 1,
            }
        });
        self.kept = kept;
        add_loss(&mut self.counts.receive_losses, LinkDrop::ReceiveRingFull.name(), lost);
        received
    }

    fn give_kept(&mut self, each: &mut dyn FnMut(&[u8])) {
        let kept = std::mem::take(&mut self.kept);
        let mut rest = &kept[..];
        // Only whole frames are kept.
        while let Ok(Some(length)) = frame_length(rest)
            && let Some((frame, behind)) = rest.split_at_checked(length)
        {
            each(frame);
            self.counts.frames_received += 1;
            rest = behind;
        }
    }

    /// Returns the local address of a UDP link.
    pub(super) fn udp_address(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Udp(socket) => socket.local_addr().ok(),
            _ => None,
        }
    }

    /// Returns true if forwarders treat this connection as a local face, as in
    /// [`namehop_client::transport::Connected::local`].
    pub(super) fn is_local(&self) -> bool {
        match &self.kind {
            Kind::Unix(_) => true,
            Kind::Tcp(stream) => stream.peer_addr().is_ok_and(|address| address.ip().is_loopback()),
            Kind::Udp(_) => false,
        }
    }
}

impl Link for SocketLink {
    /// Waits for packets and reads once.
    fn receive(&mut self, patience: Duration, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        if !self.kept.is_empty() {
            self.give_kept(each);
            return Ok(());
        }
        // The time-out of sockets is coarse, and changing it also costs a system call.
        if patience < PATIENCE && !self.is_readable(patience)? {
            return Ok(());
        }
        let read = match &mut self.kind {
            Kind::Unix(stream) => stream.read(&mut self.buffer[self.end..]),
            Kind::Tcp(stream) => stream.read(&mut self.buffer[self.end..]),
            Kind::Udp(socket) => {
                self.counts.frames_received += receive_datagrams(socket, &mut self.buffer, each)?;
                return Ok(());
            }
        };
        match read {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the forwarder closed the connection")),
            Ok(count) => self.end += count,
            Err(error) if is_timeout(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        loop {
            let available = &self.buffer[self.start..self.end];
            match frame_length(available) {
                Ok(Some(length)) if length <= available.len() => {
                    each(&available[..length]);
                    self.start += length;
                    self.counts.frames_received += 1;
                }
                Ok(_) => break,
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error.name())),
            }
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.buffer.len() - self.end < MAX_PACKET_SIZE {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        Ok(())
    }

    /// Sends packets. A full stream socket blocks. Datagrams that the system refuses count as dropped.
    fn send(&mut self, bytes: &[u8], ends: &[usize]) -> io::Result<()> {
        let counts = &mut self.counts;
        let written = match &mut self.kind {
            Kind::Unix(stream) => stream.write_all(bytes),
            Kind::Tcp(stream) => stream.write_all(bytes),
            Kind::Udp(socket) => {
                let (sent, lost) = send_datagrams(socket, bytes, ends)?;
                counts.frames_sent += sent;
                add_loss(&mut counts.send_losses, LinkDrop::SendFailed.name(), lost);
                return Ok(());
            }
        };
        match &written {
            Ok(()) => counts.frames_sent += ends.len() as u64,
            // Some of the packets may have been sent.
            Err(_) => add_loss(&mut counts.send_losses, LinkDrop::LinkDown.name(), ends.len() as u64),
        }
        written.map_err(stuck)
    }

    fn counts(&self) -> LinkCounts {
        let mut counts = self.counts.clone();
        if let Kind::Udp(socket) = &self.kind {
            let dropped = u64::from(kernel_drops(socket));
            add_loss(&mut counts.receive_losses, LinkDrop::KernelQueueFull.name(), dropped);
        }
        counts
    }
}

/// Describes a write error.
fn stuck(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let text = format!("the forwarder read nothing for {} s", WRITE_TIMEOUT.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, text)
        }
        _ => error,
    }
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    // A refused datagram is reported by a later call; the peer may return.
    matches!(error.kind(), TimedOut | WouldBlock | Interrupted | ConnectionRefused)
}

fn resolve(to: &HostPort) -> io::Result<Vec<SocketAddr>> {
    of_family(to, (to.host.as_str(), to.port).to_socket_addrs()?)
}

/// Receives a burst of datagrams and returns their number.
fn receive_datagrams(socket: &UdpSocket, buffer: &mut [u8], each: &mut dyn FnMut(&[u8])) -> io::Result<u64> {
    let lengths: Vec<usize> = {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            buffer.chunks_mut(MAX_PACKET_SIZE + 1).map(|chunk| [IoSliceMut::new(chunk)]).collect();
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(slices.len(), None);
        // Wait for the first datagram only; take the others if they are there.
        let received = recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), MsgFlags::MSG_WAITFORONE, None);
        match received {
            Ok(messages) => messages.map(|message| message.bytes).collect(),
            Err(error) if is_timeout(&error.into()) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
    };
    let count = lengths.len() as u64;
    for (chunk, length) in buffer.chunks(MAX_PACKET_SIZE + 1).zip(lengths) {
        each(&chunk[..length.min(chunk.len())]);
    }
    Ok(count)
}

/// Returns the number of datagrams sent, and the number that the system refused.
fn send_datagrams(socket: &UdpSocket, bytes: &[u8], ends: &[usize]) -> io::Result<(u64, u64)> {
    let (mut sent, mut lost, mut start) = (0, 0, 0);
    for group in ends.chunks(DATAGRAMS) {
        let slices: Vec<[IoSlice<'_>; 1]> = group
            .iter()
            .map(|&end| {
                let packet = &bytes[start..end];
                start = end;
                [IoSlice::new(packet)]
            })
            .collect();
        let mut slices = &slices[..];
        while !slices.is_empty() {
            let addresses: Vec<Option<SockaddrStorage>> = vec![None; slices.len()];
            let mut headers = MultiHeaders::preallocate(slices.len(), None);
            match sendmmsg(socket.as_raw_fd(), &mut headers, slices, addresses, [], MsgFlags::empty()) {
                Ok(results) => {
                    // The system sends at least the first one, and does not report why it stopped.
                    let count = results.count().clamp(1, slices.len());
                    sent += count as u64;
                    slices = &slices[count..];
                }
                Err(Errno::EINTR) => {}
                // An error concerns the first datagram only. It is also dropped if the error belongs to an earlier
                // refused datagram.
                Err(error) if is_timeout(&error.into()) => {
                    lost += 1;
                    slices = &slices[1..];
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok((sent, lost))
}
