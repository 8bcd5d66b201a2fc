//! The AF_XDP socket: frame memory, rings, statistics.

use std::ffi::{CString, c_int};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::ring::{Consumer, Producer};
use crate::mapping::Mapping;

/// Number of chunks for frames to be received and to be sent. Each ring has room for all of its chunks, except the ring
/// of received frames, which has as many slots as other ports have.
pub(super) const RECEIVE_CHUNKS: u32 = 2048;
pub(super) const SEND_CHUNKS: u32 = 1024;
const RECEIVED_FRAMES: u32 = 1024;
/// Socket send buffer, in bytes: large enough for all send chunks at once, so that the number of chunks is the limit.
const SEND_BUFFER_BYTES: c_int = SEND_CHUNKS as c_int * 8192;

/// A socket on one queue of an interface, which never changes.
#[derive(Debug)]
pub(super) struct Socket {
    descriptor: OwnedFd,
    /// Index of the interface.
    pub(super) interface: u32,
}

/// Memory and rings that kernel and process share.
pub(super) struct Rings {
    /// Frame memory in chunks; the receive chunks come first.
    pub(super) memory: Mapping,
    /// Free chunks for received frames, by their offset in the memory.
    pub(super) fill: Producer<u64>,
    pub(super) received: Consumer<libc::xdp_desc>,
    pub(super) sending: Producer<libc::xdp_desc>,
    /// Chunks of frames that were sent.
    pub(super) sent: Consumer<u64>,
}

impl Socket {
    /// Opens a socket on a queue of an interface. It receives frames once a program redirects frames to it. Each frame
    /// has a chunk of `chunk_bytes`, a power of two.
    pub(super) fn open(interface: &str, queue: u32, chunk_bytes: usize) -> io::Result<(Socket, Rings)> {
        let name = CString::new(interface)?;
        // SAFETY: the name ends with a zero byte.
        let number = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if number == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: creates a new descriptor.
        let descriptor = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let socket = Socket { descriptor, interface: number };
        let rings = socket.share(chunk_bytes)?;
        socket.bind(queue)?;
        Ok((socket, rings))
    }

    /// Sets up the memory and the rings of the socket.
    fn share(&self, chunk_bytes: usize) -> io::Result<Rings> {
        let memory = Mapping::anonymous((RECEIVE_CHUNKS + SEND_CHUNKS) as usize * chunk_bytes)?;
        let region = libc::xdp_umem_reg {
            addr: memory.at(0).as_ptr() as u64,
            len: memory.bytes() as u64,
            chunk_size: chunk_bytes as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        self.set(libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
        self.set(libc::SOL_XDP, libc::XDP_UMEM_FILL_RING, &RECEIVE_CHUNKS)?;
        self.set(libc::SOL_XDP, libc::XDP_UMEM_COMPLETION_RING, &SEND_CHUNKS)?;
        self.set(libc::SOL_XDP, libc::XDP_RX_RING, &RECEIVED_FRAMES)?;
        self.set(libc::SOL_XDP, libc::XDP_TX_RING, &SEND_CHUNKS)?;
        self.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER_BYTES)?;
        // SAFETY: all fields may be zero.
        let empty: libc::xdp_mmap_offsets = unsafe { mem::zeroed() };
        let offsets = self.get(libc::XDP_MMAP_OFFSETS, empty)?;
        let file = self.as_fd();
        let mut rings = Rings {
            memory,
            fill: Producer::map(file, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t, &offsets.fr, RECEIVE_CHUNKS)?,
            received: Consumer::map(file, libc::XDP_PGOFF_RX_RING, &offsets.rx, RECEIVED_FRAMES)?,
            sending: Producer::map(file, libc::XDP_PGOFF_TX_RING, &offsets.tx, SEND_CHUNKS)?,
            sent: Consumer::map(file, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t, &offsets.cr, SEND_CHUNKS)?,
        };
        for chunk in 0..u64::from(RECEIVE_CHUNKS) {
            rings.fill.put(chunk * chunk_bytes as u64);
        }
        rings.fill.publish();
        Ok(rings)
    }

    fn bind(&self, queue: u32) -> io::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: self.interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
        // SAFETY: the address has this length.
        let result = unsafe { libc::bind(self.descriptor.as_raw_fd(), (&raw const address).cast(), length) };
        check(result)
    }

    /// Wakes the kernel to process the send ring. Does not block.
    pub(super) fn wake_sender(&self) -> io::Result<()> {
        // SAFETY: the call passes neither data nor an address.
        let result =
            unsafe { libc::sendto(self.descriptor.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
        check(result as c_int)
    }

    /// Wakes the kernel to process the fill ring. Does not block.
    pub(super) fn wake_receiver(&self) {
        let mut question = libc::pollfd { fd: self.descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // The result shows in the rings.
        // SAFETY: the call passes one entry.
        unsafe { libc::poll(&raw mut question, 1, 0) };
    }

    /// The kernel's counters of this socket; zeros if they cannot be read.
    pub(super) fn statistics(&self) -> libc::xdp_statistics {
        // SAFETY: all fields may be zero.
        let empty: libc::xdp_statistics = unsafe { mem::zeroed() };
        self.get(libc::XDP_STATISTICS, empty).unwrap_or(empty)
    }

    /// Sets an option. `T` must be the option's C type.
    fn set<T>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the value has this length, and the kernel only reads it.
        check(unsafe {
            libc::setsockopt(self.descriptor.as_raw_fd(), level, option, (&raw const *value).cast(), length)
        })
    }

    /// Reads an option. `T` must be the option's C type, and every bit pattern must be valid for it.
    fn get<T: Copy>(&self, option: c_int, mut value: T) -> io::Result<T> {
        let mut length = size_of::<T>() as libc::socklen_t;
        let (descriptor, place) = (self.descriptor.as_raw_fd(), (&raw mut value).cast());
        // SAFETY: the value has this length; the caller guarantees its type.
        check(unsafe { libc::getsockopt(descriptor, libc::SOL_XDP, option, place, &mut length) })?;
        Ok(value)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
