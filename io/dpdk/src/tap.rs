//! Ports to the kernel of this computer: a TAP interface (networking/tuntap in the kernel's documentation), whose other end is the port.
//!
//! The interface is made when the port is opened, unless it is there already for the user of this process, and goes with it in the first
//! case. DPDK has a driver for such interfaces, which sends a signal to the process for each frame; here a [`relay`](crate::relay) waits.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use namehop_packet::BufferPool;

use crate::BURST;
use crate::error::DpdkError;
use crate::interface::{Interface, Setting, request};
use crate::priority_tag::{ADDRESSES_BYTES, TAG_BYTES};
use crate::relay::{Again, Inlet, Line, RelayPort, RelayQueue};

const DEVICE: &str = "/dev/net/tun";
/// What stands in front of the packet of a frame: addresses, type, tag of a VLAN.
const HEADER_BYTES: usize = ADDRESSES_BYTES + 2 + TAG_BYTES;

/// A TAP interface, for the thread that manages it.
#[derive(Debug)]
pub struct TapPort {
    relay: RelayPort,
    interface: String,
}

impl TapPort {
    /// Makes the interface, or takes it if it is there, and switches it on. The kernel gives it the hardware address `of_interface`,
    /// unless that is `None`.
    ///
    /// # Errors
    /// When there is no permission (capability CAP_NET_ADMIN, unless it is there for this user), when it is in use or no TAP
    /// interface, or its MTU is refused.
    pub fn open(
        interface: &str,
        mtu_bytes: usize,
        of_interface: Option<[u8; 6]>,
        pool: &BufferPool,
    ) -> Result<(TapPort, RelayQueue), DpdkError> {
        let refused = |error: io::Error| DpdkError::from_io(format!("make the TAP interface {interface}"), &error);
        let file = attach(interface).map_err(refused)?;
        let setting = Setting { mtu_bytes, address: of_interface };
        if let Err(error) = setting.apply(interface) {
            // Somebody with the permission may have set it already.
            let is_set = Interface::query(interface).is_ok_and(|found| {
                found.is_up
                    && found.mtu_bytes == mtu_bytes
                    && of_interface.is_none_or(|address| address == found.address)
            });
            if !is_set {
                return Err(refused(error));
            }
        }
        let line = Tap { file, capacity: mtu_bytes + HEADER_BYTES };
        let (relay, queue) = RelayPort::open(line, "tap", pool)?;
        Ok((TapPort { relay, interface: interface.to_owned() }, queue))
    }

    /// Whether the interface is switched on.
    pub fn is_up(&self) -> bool {
        !self.relay.has_ended() && Interface::query(&self.interface).is_ok_and(|found| found.is_up)
    }

    /// The thread that serves it.
    pub fn relay(&self) -> &RelayPort {
        &self.relay
    }
}

/// The end of the interface that is ours.
fn attach(interface: &str) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(DEVICE)?;
    let mut request = request(interface)?;
    // Both fit into the field.
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as _;
    // SAFETY: the code takes an `ifreq` with a name and flags.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}

struct Tap {
    file: File,
    /// Longest frame.
    capacity: usize,
}

impl Line for Tap {
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn receive(&mut self, inlet: &mut Inlet<'_>) -> io::Result<Again> {
        for _ in 0..BURST {
            // What is longer fills all of that.
            let room = self.capacity + 1;
            let mut frame = inlet.pool().allocate(room);
            let read = match frame.as_mut().and_then(|frame| frame.append(room)) {
                Some(place) => self.file.read(place),
                // It has to be read, or the bell would not stop.
                None => self.file.read(&mut [0; 1]),
            };
            match (read, frame) {
                (Ok(length), Some(_)) if length >= room => inlet.lost_malformed(),
                (Ok(length), Some(mut frame)) => {
                    frame.truncate(length);
                    inlet.push(frame);
                }
                (Ok(_), None) => inlet.lost_for_memory(),
                (Err(error), _) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(Again::AtBell),
                    ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(Again::AtOnce)
    }

    fn send(&mut self, frame: &[u8]) -> usize {
        match self.file.write(frame) {
            // The kernel takes a frame whole, or the part that it says.
            Ok(length) => usize::from(length < frame.len()),
            Err(error) => {
                tracing::debug!(%error, "a frame was not sent");
                1
            }
        }
    }
}
