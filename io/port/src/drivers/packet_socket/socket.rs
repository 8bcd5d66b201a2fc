//! The packet socket: its filter, its interface, its statistics.

use std::ffi::{CString, c_int};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::filter;
use crate::error::DpdkError;
use crate::wanted::Wanted;

/// A packet socket on one interface, which never changes.
#[derive(Debug)]
pub(crate) struct Socket {
    descriptor: OwnedFd,
    interface: String,
    index: c_int,
}

impl Socket {
    /// Opens a socket. It receives nothing until it is bound and has a filter.
    pub(crate) fn open(interface: &str) -> Result<Socket, DpdkError> {
        let failed = |error| DpdkError::from_io(format!("open network interface {interface}"), &error);
        let name = CString::new(interface).map_err(|error| failed(error.into()))?;
        // SAFETY: the name ends with a zero byte.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) } as c_int;
        if index == 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // No protocol, so that nothing arrives before the ring and the filter are in place.
        // SAFETY: creates a new
        // descriptor.
        let descriptor = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if descriptor < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let socket = Socket { descriptor, interface: interface.to_owned(), index };
        socket.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32, "ignore its own frames")?;
        socket.attach(filter::nothing())?;
        Ok(socket)
    }

    /// Index of the interface.
    pub(crate) fn interface_index(&self) -> u32 {
        // Interface indices are positive.
        self.index.unsigned_abs()
    }

    /// Passes untagged NDN frames and the wanted frames. Replaces the old filter atomically.
    pub(crate) fn attach_filter(&self, wanted: &Wanted) -> Result<(), DpdkError> {
        self.attach(filter::program(wanted))
    }

    fn attach(&self, mut program: Vec<libc::sock_filter>) -> Result<(), DpdkError> {
        let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program, "filter its frames")
    }

    /// Starts to receive the frames of the interface.
    pub(crate) fn bind(&self) -> Result<(), DpdkError> {
        // SAFETY: all fields may be zero.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        // All protocols: with the NDN protocol alone, the kernel would remove VLAN tags first.
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = self.index;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address has this length.
        let result = unsafe { libc::bind(self.descriptor.as_raw_fd(), (&raw const address).cast(), length) };
        self.check(result, "receive its frames")
    }

    /// Joins or leaves an Ethernet multicast group.
    pub(crate) fn join(&self, group: [u8; 6], join: bool) -> Result<(), DpdkError> {
        let mut address = [0; 8];
        address[..6].copy_from_slice(&group);
        let membership = libc::packet_mreq {
            mr_ifindex: self.index,
            mr_type: libc::PACKET_MR_MULTICAST as u16,
            mr_alen: 6,
            mr_address: address,
        };
        let option = if join { libc::PACKET_ADD_MEMBERSHIP } else { libc::PACKET_DROP_MEMBERSHIP };
        self.set(libc::SOL_PACKET, option, &membership, "join or leave an Ethernet multicast group")
    }

    /// Receives frames for any hardware address while this socket exists.
    pub(crate) fn be_promiscuous(&self) -> Result<(), DpdkError> {
        let membership = libc::packet_mreq {
            mr_ifindex: self.index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership, "receive frames for all addresses")
    }

    /// Frames dropped because the ring was full, since the last call.
    pub(crate) fn take_drops(&self) -> u32 {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the structure has this length, and any values are valid in it.
        let result = unsafe {
            libc::getsockopt(
                self.descriptor.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &mut length,
            )
        };
        if result < 0 { 0 } else { statistics.tp_drops }
    }

    /// Clears the socket's pending error.
    pub(crate) fn clear_error(&self) {
        let mut error: c_int = 0;
        let mut length = size_of::<c_int>() as libc::socklen_t;
        // Reading the error clears it. The manager of the interface detects its cause.
        // SAFETY: a number of this length
        // is written.
        unsafe {
            libc::getsockopt(
                self.descriptor.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                (&raw mut error).cast(),
                &mut length,
            )
        };
    }

    /// Sets an option. `T` must be the option's C type.
    pub(crate) fn set<T>(&self, level: c_int, option: c_int, value: &T, purpose: &str) -> Result<(), DpdkError> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the value has this length, and the kernel only reads it.
        let result =
            unsafe { libc::setsockopt(self.descriptor.as_raw_fd(), level, option, (&raw const *value).cast(), length) };
        self.check(result, purpose)
    }

    fn check(&self, result: c_int, purpose: &str) -> Result<(), DpdkError> {
        if result < 0 { Err(self.error(purpose, &io::Error::last_os_error())) } else { Ok(()) }
    }

    /// Makes an error that names the interface and the action.
    pub(crate) fn error(&self, purpose: &str, error: &io::Error) -> DpdkError {
        DpdkError::from_io(format!("open network interface {}: {purpose}", self.interface), error)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
