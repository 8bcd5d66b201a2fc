//! Ports to the host's own network stack: the other end of a TAP interface (networking/tuntap in the kernel's
//! documentation).
//!
//! Opening the port creates the interface, and closing the port removes it again; an interface that already exists for
//! the user of this process is used and stays. DPDK's own TAP driver sends a signal to the process for each frame; this
//! port uses a [`relay`](crate::relay) instead.

use std::fs;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use namehop_face::address::MacAddress;
use namehop_face::uri::{FaceUriError, PortOptions, PortScheme, PortUri, UriParser};
use namehop_packet::BufferPool;

use crate::BURST;
use crate::drivers::{
    Access, Device, Driver, DriverTraits, NO_TRAITS, OpenError, OpenPort, Opener, Presence, Spread, Wishes, boxed,
    local_address,
};
use crate::error::DpdkError;
use crate::interface::{Interface, Setting, request};
use crate::losses::Losses;
use crate::nic::USUAL_MTU_BYTES;
use crate::priority_tag::{ADDRESSES_BYTES, TAG_BYTES};
use crate::relay::{Again, Inlet, Line, RelayPort, RelayQueue};

const EXPECTED: &str = "the name of a TAP interface, as in tap://ndn0, with the same options as dev://eth0";
const DEVICE: &str = "/dev/net/tun";
/// Bytes in front of the packet of a frame: addresses, type, VLAN tag.
const HEADER_BYTES: usize = ADDRESSES_BYTES + 2 + TAG_BYTES;

/// A TAP interface, for the thread that manages it.
#[derive(Debug)]
pub struct TapPort {
    relay: RelayPort,
    interface: String,
}

impl TapPort {
    /// Creates the interface, or opens an existing one, and sets it up. The kernel's end gets the hardware address
    /// `of_interface`; `None` keeps the kernel's choice.
    ///
    /// # Errors
    /// Fails if there is no permission (capability CAP_NET_ADMIN, unless the interface already exists for this user),
    /// if the interface is in use or is not a TAP interface, or if its MTU is rejected.
    pub fn open(
        interface: &str,
        mtu_bytes: usize,
        of_interface: Option<[u8; 6]>,
        pool: &BufferPool,
    ) -> Result<(TapPort, RelayQueue), DpdkError> {
        let refused = |error: io::Error| DpdkError::from_io(format!("create the TAP interface {interface}"), &error);
        let file = attach(interface).map_err(refused)?;
        let setting = Setting { mtu_bytes, address: of_interface };
        if let Err(error) = setting.apply(interface) {
            // An administrator may have configured it already.
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

    /// True if the interface is up.
    pub fn is_up(&self) -> bool {
        !self.relay.has_ended() && Interface::query(&self.interface).is_ok_and(|found| found.is_up)
    }

    /// The thread that serves the interface.
    pub fn relay(&self) -> &RelayPort {
        &self.relay
    }
}

/// Opens the process's end of the interface.
fn attach(interface: &str) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(DEVICE)?;
    let mut request = request(interface)?;
    // Both flags fit into the field.
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as _;
    // SAFETY: the code takes an `ifreq` with a name and flags.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}

struct Tap {
    file: File,
    /// Longest frame in bytes.
    capacity: usize,
}

impl Line for Tap {
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn receive(&mut self, inlet: &mut Inlet<'_>) -> io::Result<Again> {
        for _ in 0..BURST {
            // One byte more than the longest frame, so that a longer frame is detected.
            let room = self.capacity + 1;
            let mut frame = inlet.pool().allocate(room);
            let read = match frame.as_mut().and_then(|frame| frame.append(room)) {
                Some(place) => self.file.read(place),
                // Read the frame anyway, or the descriptor would stay readable.
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
            // The kernel takes a whole frame, or returns the length of the part that it took.
            Ok(length) => usize::from(length < frame.len()),
            Err(error) => {
                tracing::debug!(%error, "a frame was not sent");
                1
            }
        }
    }
}

/// File with an identifier of this host.
const MACHINE_ID: &str = "/etc/machine-id";

/// The driver of TAP interfaces.
pub static DRIVER: Driver = Driver {
    scheme: PortScheme { name: "tap", parse, separator: Some('?'), can_be_bare: false },
    form: "tap://INTERFACE",
    meaning: "a new interface to the kernel",
    traits: DriverTraits { sets_mtu: true, has_peer: true, ..NO_TRAITS },
    access: Access::to_device,
    open,
};

/// Parses the name of the interface and the options of the port.
fn parse(parser: &UriParser<'_>, text: &str) -> Result<(String, PortOptions), FaceUriError> {
    let (interface, options) = parser.device_and_options(text, EXPECTED)?;
    Ok((parser.interface(interface, EXPECTED)?, options))
}

fn open(opener: &mut Opener, port: &PortUri, wishes: &Wishes) -> Result<OpenPort, OpenError> {
    let mtu_bytes = wishes.mtu_bytes.unwrap_or(USUAL_MTU_BYTES);
    let interface = port.device();
    let (tap, queue) = TapPort::open(interface, mtu_bytes, None, &opener.pool)?;
    Ok(OpenPort {
        device: Box::new(tap),
        queues: boxed([queue]),
        spread: Spread::OneQueue,
        address: address_for(interface),
        mtu_bytes,
    })
}

/// Returns the hardware address of the port at the other end of a TAP interface: constant on one host, different on
/// others.
fn address_for(interface: &str) -> MacAddress {
    let host = fs::read(MACHINE_ID).unwrap_or_default();
    // FNV-1a, because it is the same in every version of the program and compiler.
    local_address(
        host.iter().chain(interface.as_bytes()).fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        }),
    )
}

impl Device for TapPort {
    fn is_up(&self) -> bool {
        TapPort::is_up(self)
    }

    fn losses(&self) -> Losses {
        self.relay().losses()
    }

    fn presence(&self) -> Presence {
        if self.relay().has_ended() { Presence::Removed } else { Presence::Present }
    }
}
