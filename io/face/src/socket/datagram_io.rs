//! Many datagrams per system call: `recvmmsg` and `sendmmsg` through the safe wrappers of the `nix` crate.
//!
//! If the kernel (or a sandbox) lacks these calls, the first one fails with `ENOSYS`, and one call per datagram is used
//! from then on.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, RawFd};

use namehop_wire::MAX_PACKET_SIZE;
use nix::errno::Errno;
use nix::sys::socket::sockopt::GetStruct;
use nix::sys::socket::{
    ControlMessage, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage, getsockopt, recvmmsg, recvmsg, sendmmsg, sendmsg,
};
use nix::{getsockopt_impl, libc};
use socket2::Socket;

use super::datagram_path::{self, CONTROL_BYTES, Path, Source};

/// Maximum number of datagrams in one call.
pub(super) const BATCH: usize = 64;

/// Space for one datagram: one byte more than the largest packet, so that an oversized datagram is recognized.
const SLOT_BYTES: usize = MAX_PACKET_SIZE + 1;

/// Allocates the memory that [`DatagramIo::receive`] needs; all sockets of a thread may share it.
pub(super) fn receive_memory() -> Box<[u8]> {
    vec![0; BATCH * SLOT_BYTES].into_boxed_slice()
}

/// Number of values that `SO_MEMINFO` returns (linux/sock_diag.h).
const MEMORY_NUMBERS: usize = 9;
/// Index of the value that counts datagrams dropped because the receive queue was full or the checksum was wrong.
const DROPS: usize = 8;

/// The socket option `SO_MEMINFO`, from Linux 4.12 on.
#[derive(Debug, Clone, Copy)]
struct SocketMemory;

getsockopt_impl!(
    SocketMemory,
    libc::SOL_SOCKET,
    libc::SO_MEMINFO,
    [u32; MEMORY_NUMBERS],
    GetStruct<[u32; MEMORY_NUMBERS]>
);

/// Returns how many datagrams the kernel has dropped since the socket was created; wraps around. Returns 0 if the
/// kernel does not report it.
pub fn kernel_drops(socket: &impl AsFd) -> u32 {
    getsockopt(socket, SocketMemory).map_or(0, |numbers| numbers[DROPS])
}

/// Headers for the batch calls of one socket.
///
/// Sockets of different address families must not share them, because the kernel writes the address length into them.
pub(super) struct DatagramIo {
    /// The address that the socket is bound to: the local end of every path, unless the kernel reports the destination
    /// of each datagram.
    local: SocketAddr,
    received: MultiHeaders<SockaddrStorage>,
    sent: MultiHeaders<SockaddrStorage>,
    /// Headers with space for a source address; `None` if the kernel does not report destinations.
    sent_from: Option<MultiHeaders<SockaddrStorage>>,
    addresses: Vec<Option<SockaddrStorage>>,
    batched: bool,
}

impl DatagramIo {
    /// Allocates headers for a socket that is bound to `local`.
    pub(super) fn new(socket: &Socket, local: SocketAddr) -> Self {
        let [v4_bytes, v6_bytes] = CONTROL_BYTES;
        let control_bytes = if local.is_ipv4() { v4_bytes } else { v6_bytes };
        let reports = datagram_path::reports_destinations(socket, local);
        let control = || reports.then(|| Vec::with_capacity(control_bytes));
        DatagramIo {
            local,
            received: MultiHeaders::preallocate(BATCH, control()),
            sent: MultiHeaders::preallocate(BATCH, None),
            sent_from: reports.then(|| MultiHeaders::preallocate(BATCH, control())),
            addresses: Vec::with_capacity(BATCH),
            batched: true,
        }
    }

    /// Whether the kernel reports the destination address of each datagram.
    pub(super) fn reports_destinations(&self) -> bool {
        self.sent_from.is_some()
    }

    /// Receives up to [`BATCH`] datagrams, calls `each` for each one and returns their number. Fewer than [`BATCH`]
    /// means that the socket is empty.
    pub(super) fn receive(
        &mut self,
        socket: &impl AsRawFd,
        memory: &mut [u8],
        mut each: impl FnMut(Path, &[u8]),
    ) -> io::Result<usize> {
        let descriptor = socket.as_raw_fd();
        if self.batched {
            match receive_batch(descriptor, self.local, &mut self.received, memory, &mut each) {
                Err(Errno::ENOSYS) => self.batched = false,
                result => return Ok(result?),
            }
        }
        receive_singly(descriptor, self.local, memory, each)
    }

    /// Sends the first of `datagrams`, up to [`BATCH`], and returns how many the kernel took. They leave from `source`,
    /// if it is given and the socket reports destinations. An error concerns the first datagram only.
    pub(super) fn send<'d>(
        &mut self,
        socket: &impl AsRawFd,
        source: Option<&Source>,
        datagrams: impl Iterator<Item = (&'d SockaddrStorage, &'d [u8])>,
    ) -> io::Result<usize> {
        let descriptor = socket.as_raw_fd();
        let mut slices = [[IoSlice::new(&[])]; BATCH];
        self.addresses.clear();
        for (slot, (address, bytes)) in slices.iter_mut().zip(datagrams) {
            *slot = [IoSlice::new(bytes)];
            self.addresses.push(Some(*address));
        }
        let slices = &slices[..self.addresses.len()];
        let (headers, source) = match (&mut self.sent_from, source) {
            (Some(headers), Some(source)) => (headers, Some(source.message())),
            _ => (&mut self.sent, None),
        };
        let control = source.as_slice();
        if self.batched {
            match sendmmsg(descriptor, headers, slices, &self.addresses, control, MsgFlags::MSG_NOSIGNAL) {
                Err(Errno::ENOSYS) => self.batched = false,
                Err(error) => return Err(error.into()),
                Ok(results) => return Ok(results.count()),
            }
        }
        send_singly(descriptor, slices, &self.addresses, control)
    }
}

fn receive_batch(
    descriptor: RawFd,
    local: SocketAddr,
    headers: &mut MultiHeaders<SockaddrStorage>,
    memory: &mut [u8],
    each: &mut impl FnMut(Path, &[u8]),
) -> Result<usize, Errno> {
    let mut slots = memory.chunks_exact_mut(SLOT_BYTES);
    let mut slices: [[IoSliceMut<'_>; 1]; BATCH] =
        std::array::from_fn(|_| [IoSliceMut::new(slots.next().unwrap_or_default())]);
    let results = recvmmsg(descriptor, headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
    let mut count = 0;
    for message in results {
        count += 1;
        if let Some(path) = path_of(&message, local) {
            each(path, message.iovs().next().unwrap_or_default());
        }
    }
    Ok(count)
}

fn receive_singly(
    descriptor: RawFd,
    local: SocketAddr,
    memory: &mut [u8],
    mut each: impl FnMut(Path, &[u8]),
) -> io::Result<usize> {
    let length = memory.len().min(SLOT_BYTES);
    let [_, control_bytes] = CONTROL_BYTES;
    let mut control = vec![0; control_bytes];
    for count in 0..BATCH {
        let mut slices = [IoSliceMut::new(&mut memory[..length])];
        match recvmsg::<SockaddrStorage>(descriptor, &mut slices, Some(&mut control), MsgFlags::MSG_DONTWAIT) {
            Ok(message) => {
                if let Some(path) = path_of(&message, local) {
                    each(path, message.iovs().next().unwrap_or_default());
                }
            }
            Err(error) if count == 0 => return Err(error.into()),
            Err(_) => return Ok(count),
        }
    }
    Ok(BATCH)
}

fn send_singly(
    descriptor: RawFd,
    slices: &[[IoSlice<'_>; 1]],
    addresses: &[Option<SockaddrStorage>],
    control: &[ControlMessage<'_>],
) -> io::Result<usize> {
    for (count, (slice, address)) in slices.iter().zip(addresses).enumerate() {
        match sendmsg(descriptor, slice, control, MsgFlags::MSG_NOSIGNAL, address.as_ref()) {
            Ok(_) => {}
            Err(error) if count == 0 => return Err(error.into()),
            Err(_) => return Ok(count),
        }
    }
    Ok(slices.len())
}

/// Returns the path of a received datagram: the local end is the destination that the kernel reports, or else the bound
/// address.
fn path_of(message: &RecvMsg<'_, '_, SockaddrStorage>, bound: SocketAddr) -> Option<Path> {
    let remote = message.address.as_ref().and_then(to_std)?;
    let mut reported = message.cmsgs().ok()?.filter_map(|one| datagram_path::destination(&one, bound.port()));
    Some(Path { remote, local: reported.next().unwrap_or(bound) })
}

/// Converts an address of the kernel, without the flow label of IPv6.
pub(super) fn to_std(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddr::V4(SocketAddrV4::new(v4.ip(), v4.port())));
    }
    // The flow label does not identify the peer.
    let v6 = address.as_sockaddr_in6()?;
    Some(SocketAddr::V6(SocketAddrV6::new(v6.ip(), v6.port(), 0, v6.scope_id())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Type};
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn socket(address: SocketAddr) -> (Socket, SocketAddr) {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM.nonblocking(), None).expect("socket");
        if address.ip().is_unspecified() {
            datagram_path::request_destinations(&socket, address).expect("destinations");
        }
        socket.bind(&address.into()).expect("bind");
        let local = socket.local_addr().expect("the local address").as_socket().expect("an Internet address");
        (socket, local)
    }

    fn exchange(address: SocketAddr, batched: bool) {
        let (left, left_address) = socket(address);
        let (right, right_address) = socket(address);
        let (mut io, mut receiving) = (DatagramIo::new(&left, left_address), DatagramIo::new(&right, right_address));
        (io.batched, receiving.batched) = (batched, batched);
        let packets: Vec<Vec<u8>> = (0..100_u8).map(|i| vec![i; 1 + usize::from(i)]).collect();
        let destination = SockaddrStorage::from(right_address);
        let mut sent = 0;
        while sent < packets.len() {
            let rest = packets[sent..].iter().map(|packet| (&destination, packet.as_slice()));
            sent += io.send(&left, None, rest).expect("send");
        }
        let mut memory = receive_memory();
        let mut got = Vec::new();
        for expected in [BATCH, 100 - BATCH] {
            let count = receiving
                .receive(&right, &mut memory, |path, bytes| {
                    assert_eq!(path, Path { remote: left_address, local: right_address });
                    got.push(bytes.to_vec());
                })
                .expect("receive");
            assert_eq!(count, expected);
        }
        assert_eq!(got, packets);
        let empty = receiving.receive(&right, &mut memory, |_, _| {}).expect_err("no datagram is left");
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn batches_and_single_calls_carry_the_same() {
        for batched in [true, false] {
            exchange(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), batched);
            exchange(SocketAddr::from((Ipv6Addr::LOCALHOST, 0)), batched);
        }
    }

    /// Sends to address `asked` of a wildcard socket, and checks that the answer leaves from that address.
    fn answer(asked: SocketAddr, client: SocketAddr, batched: bool) {
        let any = if asked.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
        let (server, any) = socket(any);
        let (client, from) = socket(client);
        let local = SocketAddr::new(asked.ip(), any.port());
        let (mut io, mut memory) = (DatagramIo::new(&server, any), receive_memory());
        assert!(io.reports_destinations());
        io.batched = batched;
        for _ in 0..2 {
            client.send_to(b"question", &local.into()).expect("send");
            let mut paths = Vec::new();
            io.receive(&server, &mut memory, |path, _| paths.push(path)).expect("receive");
            assert_eq!(paths, [Path { remote: from, local }]);
            let source = Source::of(local);
            let destination = SockaddrStorage::from(from);
            io.send(&server, source.as_ref(), [(&destination, &b"answer"[..])].into_iter()).expect("send");
            let mut answers = Vec::new();
            let mut receiving = DatagramIo::new(&client, from);
            receiving.receive(&client, &mut memory, |path, _| answers.push(path.remote)).expect("receive");
            assert_eq!(answers, [local]);
        }
    }

    #[test]
    fn a_wildcard_socket_answers_from_the_address_that_was_asked() {
        for batched in [true, false] {
            for asked in ["127.0.0.1:0", "127.0.0.9:0", "127.8.7.6:0"] {
                answer(asked.parse().expect("address"), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), batched);
            }
            let asked = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
            answer(asked, asked, batched);
        }
    }

    #[test]
    fn drops_of_the_kernel_are_counted() {
        let (left, _) = socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (right, right_address) = socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        right.set_recv_buffer_size(1).expect("the smallest buffer can be set");
        let mut io = DatagramIo::new(&right, right_address);
        let mut memory = receive_memory();
        let mut lost = 0;
        for _ in 0..2 {
            for _ in 0..100 {
                left.send_to(&[5; 1000], &right_address.into()).expect("send");
            }
            // Before anything is received, and without a later datagram.
            let known = kernel_drops(&right) as usize;
            let mut received = 0;
            while let Ok(count) = io.receive(&right, &mut memory, |_, _| {}) {
                received += count;
            }
            lost += 100 - received;
            assert!(received < 100);
            assert_eq!((known, kernel_drops(&right) as usize), (lost, lost));
        }
    }

    #[test]
    fn an_oversized_datagram_shows_its_excess() {
        let (left, _) = socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (right, right_address) = socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        left.send_to(&[1; 20_000], &right_address.into()).expect("send");
        let mut memory = receive_memory();
        let mut lengths = Vec::new();
        DatagramIo::new(&right, right_address)
            .receive(&right, &mut memory, |_, bytes| lengths.push(bytes.len()))
            .expect("receive");
        assert_eq!(lengths, [SLOT_BYTES]);
    }
}
