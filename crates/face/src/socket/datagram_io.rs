//! Many datagrams per system call: `recvmmsg` and `sendmmsg` through the safe wrappers of the `nix` crate.
//!
//! Where the kernel (or a sandbox) lacks these calls, the first attempt says so and one call per datagram is used.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, RawFd};

use namehop_wire::MAX_PACKET_SIZE;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage, recvfrom, recvmmsg,
    sendmmsg, sendto, setsockopt, sockopt,
};

/// Most datagrams in one call.
pub(super) const BATCH: usize = 64;

/// Receive headers with room for the count of datagrams that the kernel dropped are used once in so many seconds, see
/// [`DatagramIo::count_drops_next`].
pub(super) const DROP_LOOK: std::time::Duration = std::time::Duration::from_secs(1);

/// Room for one datagram: one byte more than a packet may have, so that a longer one is seen to be too long.
const SLOT_BYTES: usize = MAX_PACKET_SIZE + 1;

/// Memory that [`DatagramIo::receive`] needs; it may be shared by all sockets of a thread.
pub(super) fn receive_memory() -> Box<[u8]> {
    vec![0; BATCH * SLOT_BYTES].into_boxed_slice()
}

/// What one call to receive came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Received {
    /// Datagrams received.
    pub(super) count: usize,
    /// Datagrams that the kernel was found to have dropped.
    pub(super) kernel_drops: u32,
}

/// Headers for the batch calls of one socket.
///
/// They must not be shared between sockets of different address families, because the kernel writes the address length
/// into them.
pub(super) struct DatagramIo {
    received: MultiHeaders<SockaddrStorage>,
    sent: MultiHeaders<SockaddrStorage>,
    addresses: Vec<Option<SockaddrStorage>>,
    batched: bool,
    /// Datagrams that the kernel had dropped when it last said so.
    kernel_drops: u32,
    /// The headers have room for that count now.
    has_drop_count: bool,
}

impl DatagramIo {
    /// Headers for one socket.
    pub(super) fn new() -> Self {
        DatagramIo {
            received: MultiHeaders::preallocate(BATCH, None),
            sent: MultiHeaders::preallocate(BATCH, None),
            addresses: Vec::with_capacity(BATCH),
            batched: true,
            kernel_drops: 0,
            has_drop_count: false,
        }
    }

    /// Makes the next call of [`DatagramIo::receive`] find out how many datagrams the kernel has dropped for want of room in the
    /// receive queue (`SO_RXQ_OVFL`, socket(7)). The headers for that serve for one call only, so this allocates.
    pub(super) fn count_drops_next(&mut self) {
        self.received = MultiHeaders::preallocate(BATCH, Some(cmsg_space!(u32)));
        self.has_drop_count = true;
    }

    /// Datagrams that the kernel has dropped since the last call, as far as it has said so.
    fn new_kernel_drops(&mut self, total: Option<u32>) -> u32 {
        let Some(total) = total else { return 0 };
        total.wrapping_sub(std::mem::replace(&mut self.kernel_drops, total))
    }

    /// Receives up to [`BATCH`] datagrams and hands each to `each`; returns how many. Fewer than asked for means the
    /// socket is empty. Also gives the number of datagrams that the kernel dropped, when it was to find out.
    pub(super) fn receive(
        &mut self,
        socket: &impl AsRawFd,
        memory: &mut [u8],
        mut each: impl FnMut(SocketAddr, &[u8]),
    ) -> io::Result<Received> {
        let descriptor = socket.as_raw_fd();
        if self.batched {
            let looks = self.has_drop_count;
            match receive_batch(descriptor, &mut self.received, memory, looks, &mut each) {
                Err(Errno::ENOSYS) => self.batched = false,
                result => {
                    let (count, kernel_drops) = result?;
                    self.has_drop_count = false;
                    return Ok(Received { count, kernel_drops: self.new_kernel_drops(kernel_drops) });
                }
            }
        }
        receive_singly(descriptor, memory, each).map(|count| Received { count, kernel_drops: 0 })
    }

    /// Sends the first of `datagrams`, up to [`BATCH`]; returns how many the kernel took. An error concerns the first
    /// one only.
    pub(super) fn send<'d>(
        &mut self,
        socket: &impl AsRawFd,
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
        if self.batched {
            let none: [ControlMessage<'_>; 0] = [];
            match sendmmsg(descriptor, &mut self.sent, slices, &self.addresses, none, MsgFlags::MSG_NOSIGNAL) {
                Err(Errno::ENOSYS) => self.batched = false,
                Err(error) => return Err(error.into()),
                Ok(results) => return Ok(results.count()),
            }
        }
        send_singly(descriptor, slices, &self.addresses)
    }
}

fn receive_batch(
    descriptor: RawFd,
    headers: &mut MultiHeaders<SockaddrStorage>,
    memory: &mut [u8],
    looks_for_drops: bool,
    each: &mut impl FnMut(SocketAddr, &[u8]),
) -> Result<(usize, Option<u32>), Errno> {
    let mut slots = memory.chunks_exact_mut(SLOT_BYTES);
    let mut slices: [[IoSliceMut<'_>; 1]; BATCH] =
        std::array::from_fn(|_| [IoSliceMut::new(slots.next().unwrap_or_default())]);
    let results = recvmmsg(descriptor, headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
    let mut count = 0;
    let mut drops = None;
    for message in results {
        count += 1;
        if looks_for_drops {
            drops = drop_count(&message).or(drops);
        }
        if let Some(address) = message.address.as_ref().and_then(to_std) {
            each(address, message.iovs().next().unwrap_or_default());
        }
    }
    Ok((count, drops))
}

/// How many datagrams the kernel had dropped when it queued this one; `None` when it does not say, as when there were none.
#[cold]
fn drop_count(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Option<u32> {
    message.cmsgs().ok()?.find_map(|extra| match extra {
        ControlMessageOwned::RxqOvfl(count) => Some(count),
        _ => None,
    })
}

fn receive_singly(descriptor: RawFd, memory: &mut [u8], mut each: impl FnMut(SocketAddr, &[u8])) -> io::Result<usize> {
    let length = memory.len().min(SLOT_BYTES);
    for count in 0..BATCH {
        match recvfrom::<SockaddrStorage>(descriptor, &mut memory[..length]) {
            Ok((received, address)) => {
                if let Some(address) = address.as_ref().and_then(to_std) {
                    each(address, &memory[..received.min(length)]);
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
) -> io::Result<usize> {
    for (count, ([bytes], address)) in slices.iter().zip(addresses).enumerate() {
        let Some(address) = address else { return Ok(count) };
        match sendto(descriptor, bytes, address, MsgFlags::MSG_NOSIGNAL) {
            Ok(_) => {}
            Err(error) if count == 0 => return Err(error.into()),
            Err(_) => return Ok(count),
        }
    }
    Ok(slices.len())
}

/// Makes the kernel report dropped datagrams. Where it cannot, they stay uncounted.
pub(super) fn count_kernel_drops(socket: &impl AsFd) {
    if let Err(error) = setsockopt(socket, sockopt::RxqOvfl, &1) {
        tracing::debug!(%error, "datagrams that the kernel drops are not counted");
    }
}

fn to_std(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddr::V4(SocketAddrV4::new(v4.ip(), v4.port())));
    }
    // The flow label says nothing about who the peer is.
    let v6 = address.as_sockaddr_in6()?;
    Some(SocketAddr::V6(SocketAddrV6::new(v6.ip(), v6.port(), 0, v6.scope_id())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Socket, Type};
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn socket(address: SocketAddr) -> (Socket, SocketAddr) {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM.nonblocking(), None).expect("socket");
        socket.bind(&address.into()).expect("bind");
        let local = socket.local_addr().expect("local").as_socket().expect("internet");
        (socket, local)
    }

    fn exchange(address: SocketAddr, batched: bool) {
        let (left, left_address) = socket(address);
        let (right, right_address) = socket(address);
        let mut io = DatagramIo::new();
        io.batched = batched;
        let packets: Vec<Vec<u8>> = (0..100_u8).map(|i| vec![i; 1 + usize::from(i)]).collect();
        let destination = SockaddrStorage::from(right_address);
        let mut sent = 0;
        while sent < packets.len() {
            let rest = packets[sent..].iter().map(|packet| (&destination, packet.as_slice()));
            sent += io.send(&left, rest).expect("send");
        }
        let mut memory = receive_memory();
        let mut got = Vec::new();
        for expected in [BATCH, 100 - BATCH] {
            let count = io
                .receive(&right, &mut memory, |from, bytes| {
                    assert_eq!(from, left_address);
                    got.push(bytes.to_vec());
                })
                .expect("receive");
            assert_eq!(count, Received { count: expected, kernel_drops: 0 });
        }
        assert_eq!(got, packets);
        let empty = io.receive(&right, &mut memory, |_, _| {}).expect_err("nothing left");
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn batches_and_single_calls_carry_the_same() {
        for batched in [true, false] {
            exchange(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), batched);
            exchange(SocketAddr::from((Ipv6Addr::LOCALHOST, 0)), batched);
        }
    }

    #[test]
    fn what_the_kernel_drops_is_found_out() {
        let (left, _) = socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (right, right_address) = socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        count_kernel_drops(&right);
        right.set_recv_buffer_size(1).expect("the smallest");
        let mut io = DatagramIo::new();
        let mut memory = receive_memory();
        let mut sent = 0;
        let mut found = 0;
        for _ in 0..2 {
            for _ in 0..100 {
                left.send_to(&[5; 1000], &right_address.into()).expect("send");
                sent += 1;
            }
            let mut received = 0;
            while let Ok(one) = io.receive(&right, &mut memory, |_, _| {}) {
                received += one.count;
                assert_eq!(one.kernel_drops, 0, "nobody looked");
            }
            let lost = 100 - received;
            assert!(lost > 0);
            // The next datagram brings word of it.
            left.send_to(&[5; 10], &right_address.into()).expect("send");
            io.count_drops_next();
            let one = io.receive(&right, &mut memory, |_, _| {}).expect("receive");
            assert_eq!((one.count, one.kernel_drops as usize), (1, lost), "of {sent}");
            found += one.kernel_drops;
        }
        assert_eq!(found, io.kernel_drops);
    }

    #[test]
    fn an_oversized_datagram_shows_its_excess() {
        let (left, _) = socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let (right, right_address) = socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        left.send_to(&[1; 20_000], &right_address.into()).expect("send");
        let mut memory = receive_memory();
        let mut lengths = Vec::new();
        DatagramIo::new().receive(&right, &mut memory, |_, bytes| lengths.push(bytes.len())).expect("receive");
        assert_eq!(lengths, [SLOT_BYTES]);
    }
}
