//! Opens ports: each driver of [`DRIVERS`] opens the port behind its URIs, and gives a [`Device`] for the thread that
//! manages the port and queues for workers.
//!
//! A driver is a module of this crate with a [`Driver`] and a type that implements [`Device`], and its line in the
//! list. Routers, switches and the load generator open ports only here.

pub mod memif;
pub mod packet_socket;
pub mod pcap;
pub mod pci;
pub mod tap;
pub mod xdp;

use std::fmt;
use std::io;
use std::path::PathBuf;

use namehop_face::FaceUri;
use namehop_face::address::MacAddress;
use namehop_packet::{BufferPool, PortQueue};

use crate::error::DpdkError;
use crate::interface::{Interface, UsedInterface};
use crate::losses::Losses;
use crate::steering::Flow;
use crate::wanted::Wanted;
use memif::MemifService;

/// All drivers.
pub const DRIVERS: [&Driver; 6] =
    [&packet_socket::DRIVER, &xdp::DRIVER, &pci::DRIVER, &tap::DRIVER, &memif::DRIVER, &pcap::DRIVER];

/// A driver of ports.
pub struct Driver {
    /// Form of its URIs and their meaning, for messages: "dev://INTERFACE for a network interface".
    pub usage: &'static str,
    /// Returns whether a URI is of this driver.
    pub claims: fn(&FaceUri) -> bool,
    /// Properties of its ports.
    pub traits: DriverTraits,
    /// Opens a port.
    open: fn(&mut Opener, &FaceUri, &Wishes) -> Result<OpenPort, OpenError>,
}

/// What ports of a driver are capable of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverTraits {
    /// The port sets its MTU. Otherwise the system or the peer does.
    pub sets_mtu: bool,
    /// A port may have several queues.
    pub has_several_queues: bool,
    /// The port takes the device from the kernel.
    pub is_without_kernel: bool,
    /// The port uses a network interface of the kernel, which the URI names.
    pub uses_interface: bool,
    /// A peer is at the other end. Otherwise it is a file.
    pub has_peer: bool,
}

/// No trait.
const NO_TRAITS: DriverTraits = DriverTraits {
    sets_mtu: false,
    has_several_queues: false,
    is_without_kernel: false,
    uses_interface: false,
    has_peer: false,
};

impl Driver {
    /// Returns the driver of a URI.
    pub fn of(uri: &FaceUri) -> Option<&'static Driver> {
        DRIVERS.into_iter().find(|driver| (driver.claims)(uri))
    }

    /// Returns the traits of the URI's driver; none for other URIs.
    pub fn traits_of(uri: &FaceUri) -> DriverTraits {
        Driver::of(uri).map_or(NO_TRAITS, |driver| driver.traits)
    }
}

/// The device of an open port, for the thread that manages the port. It closes when it and all its queues are dropped.
pub trait Device: Send {
    /// Returns whether the link is up.
    fn is_up(&self) -> bool;

    /// Returns the frames lost since the device was opened.
    fn losses(&self) -> Losses;

    /// Returns whether the device is still the one that was opened.
    fn presence(&self) -> Presence {
        Presence::Present
    }

    /// Returns whether a peer is connected, without a system call. Devices that cannot tell return true.
    fn is_connected(&self) -> bool {
        true
    }

    /// Starts the delivery of frames, where the device waits for that.
    fn start(&self) {}

    /// Returns whether all frames were delivered and written; only a capture ends.
    fn is_done(&self) -> bool {
        false
    }

    /// Returns why the link does not work, if the device found a reason since the last call.
    fn take_trouble(&self) -> Option<String> {
        None
    }

    /// Joins or leaves an Ethernet multicast group, on devices that do not receive all groups.
    ///
    /// # Errors
    /// If the kernel or the card refuses.
    fn join(&self, _group: MacAddress, _join: bool) -> Result<(), DpdkError> {
        Ok(())
    }

    /// Joins all Ethernet multicast groups, on devices that do not receive all groups.
    ///
    /// # Errors
    /// If the card refuses.
    fn join_all(&self) -> Result<(), DpdkError> {
        Ok(())
    }

    /// Steers the frames of a flow to one queue and returns its number. `None` if the device spreads flows itself or
    /// cannot steer.
    ///
    /// # Errors
    /// If the card refuses the rule.
    fn steer(&self, _flow: Flow) -> Result<Option<u16>, DpdkError> {
        Ok(None)
    }

    /// Stops steering a flow.
    ///
    /// # Errors
    /// If the card refuses.
    fn release(&self, _flow: &Flow) -> Result<(), DpdkError> {
        Ok(())
    }

    /// Sets the filter: the device receives `wanted` besides untagged NDN frames, and nothing else as far as it can
    /// filter.
    ///
    /// # Errors
    /// If the kernel or the card refuses.
    fn receive_only(&self, _wanted: &Wanted) -> Result<(), DpdkError> {
        Ok(())
    }

    /// Removes the filter: the device receives every frame.
    ///
    /// # Errors
    /// If the kernel or the card refuses.
    fn receive_everything(&self) -> Result<(), DpdkError> {
        Ok(())
    }
}

/// Whether a device is still the one that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Present,
    /// It was replaced, or its address or MTU changed: it must be closed and opened again.
    Changed,
    /// It was removed: it must be closed now, and opened again when it is back.
    Removed,
}

/// An open port.
pub struct OpenPort {
    /// For the thread that manages the port.
    pub device: Box<dyn Device>,
    /// The workers' ends, at least one.
    pub queues: Vec<Box<dyn PortQueue>>,
    /// How frames are spread over the queues.
    pub spread: Spread,
    /// Hardware address.
    pub address: MacAddress,
    /// Largest packet behind the header of a frame, in bytes.
    pub mtu_bytes: usize,
}

/// How frames are spread over the queues of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// There is one queue.
    OneQueue,
    /// UDP packets by addresses and ports, all others to the first queue.
    ByPorts,
    /// By the device's own rules.
    ByDevice,
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Spread::OneQueue => "not at all",
            Spread::ByPorts => "UDP packets by addresses and ports, all others to the first queue",
            Spread::ByDevice => "by the device's own rules",
        })
    }
}

/// Settings of a port. A driver ignores unsupported settings; [`DriverTraits`] tells what it supports.
#[derive(Debug, Clone, Copy)]
pub struct Wishes {
    /// Bytes of a frame in front of its packet.
    pub header_bytes: usize,
    /// MTU in bytes.
    pub mtu_bytes: Option<usize>,
    /// Number of queues. The device may have fewer.
    pub queues: usize,
}

/// Why a port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No driver claims the URI.
    #[error("{uri} is not a port: write {}", usage())]
    NotAPort {
        /// The URI.
        uri: FaceUri,
    },
    /// The kernel does not know the network interface; it may appear later.
    #[error(transparent)]
    NoInterface(DpdkError),
    /// The process lacks a privilege.
    #[error(
        "no permission for network interface {interface}: the capability CAP_NET_RAW is needed; grant it, or run as \
         root ({source})"
    )]
    Permission {
        /// Name of the interface.
        interface: String,
        /// The driver's error.
        source: DpdkError,
    },
    /// The control socket of a memif cannot be created.
    #[error("cannot create the memif socket {}: {source}", .socket.display())]
    MemifSocket {
        /// Its path.
        socket: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The thread that serves memif sockets cannot be started.
    #[error("cannot start the memif thread: {0}")]
    MemifThread(io::Error),
    /// The driver refuses.
    #[error(transparent)]
    Driver(#[from] DpdkError),
}

impl OpenError {
    fn not_a_port(uri: &FaceUri) -> OpenError {
        OpenError::NotAPort { uri: uri.clone() }
    }

    /// Returns the error of a driver on a network interface.
    fn on_interface(interface: &str, error: DpdkError) -> OpenError {
        match error.is_permission() {
            true => OpenError::Permission { interface: interface.to_owned(), source: error },
            false => OpenError::Driver(error),
        }
    }
}

/// Lists the URIs of all drivers, for messages.
pub fn usage() -> String {
    let [first @ .., last] = DRIVERS.map(|driver| driver.usage);
    format!("{}, or {last}", first.join(", "))
}

/// Opens ports, with memory for their packets.
pub struct Opener {
    pool: BufferPool,
    memif_sizes: MemifSizes,
    /// Serves the sockets of all memif ports. Started with the first of them.
    memif_service: Option<MemifService>,
}

/// Sizes of memif ports that this end offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemifSizes {
    /// Slots of each ring: a power of two from 2 to 16,384.
    pub ring_slots: u16,
    /// Bytes of a buffer; a longer frame takes several.
    pub buffer_bytes: u16,
}

impl Default for MemifSizes {
    fn default() -> MemifSizes {
        MemifSizes { ring_slots: 1024, buffer_bytes: 2048 }
    }
}

impl Opener {
    /// Creates an opener. Memif ports that it opens work as long as it exists.
    pub fn new(pool: &BufferPool, memif_sizes: MemifSizes) -> Opener {
        Opener { pool: pool.clone(), memif_sizes, memif_service: None }
    }

    /// Opens the port with this URI. A memif need not have a peer yet.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(&mut self, uri: &FaceUri, wishes: &Wishes) -> Result<OpenPort, OpenError> {
        let driver = Driver::of(uri).ok_or_else(|| OpenError::not_a_port(uri))?;
        (driver.open)(self, uri, wishes)
    }
}

/// Returns the device in a URI.
fn device_name(uri: &FaceUri) -> Result<&str, OpenError> {
    match uri {
        FaceUri::Device { interface, .. } => Ok(interface),
        _ => Err(OpenError::not_a_port(uri)),
    }
}

/// A device on a network interface of the kernel.
struct OnInterface<P> {
    interface: UsedInterface,
    port: P,
}

/// The port of a device on a network interface, as in [`Device`].
trait InterfacePort: Send {
    fn losses(&self) -> Losses;
    fn join(&self, group: MacAddress, join: bool) -> Result<(), DpdkError>;
    fn receive_only(&self, wanted: &Wanted) -> Result<(), DpdkError>;
    fn receive_everything(&self) -> Result<(), DpdkError>;
}

impl<P: InterfacePort> Device for OnInterface<P> {
    fn is_up(&self) -> bool {
        self.interface.is_up()
    }

    fn losses(&self) -> Losses {
        self.port.losses()
    }

    fn presence(&self) -> Presence {
        match self.interface.is_same() {
            Some(true) => Presence::Present,
            Some(false) => Presence::Changed,
            None => Presence::Removed,
        }
    }

    fn join(&self, group: MacAddress, join: bool) -> Result<(), DpdkError> {
        self.port.join(group, join)
    }

    fn receive_only(&self, wanted: &Wanted) -> Result<(), DpdkError> {
        self.port.receive_only(wanted)
    }

    fn receive_everything(&self) -> Result<(), DpdkError> {
        self.port.receive_everything()
    }
}

/// Queries the kernel for the network interface of a port.
fn used_interface(uri: &FaceUri) -> Result<UsedInterface, OpenError> {
    let name = device_name(uri)?.to_owned();
    let opened = Interface::query(&name).map_err(OpenError::NoInterface)?;
    Ok(UsedInterface { name, opened })
}

fn boxed<Q: PortQueue>(queues: impl IntoIterator<Item = Q>) -> Vec<Box<dyn PortQueue>> {
    queues.into_iter().map(|queue| Box::new(queue) as Box<dyn PortQueue>).collect()
}

/// Makes a unicast, locally administered hardware address of a number.
fn local_address(number: u64) -> MacAddress {
    let [_, rest @ .., _, _] = number.to_le_bytes();
    let mut address = [0x02; 6];
    address[1..].copy_from_slice(&rest);
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_uri_of_a_port_has_one_driver() {
        for uri in [
            "dev://eth0",
            "xdp://eth0",
            "pci://0000:03:00.0",
            "tap://ndn0",
            "memif:///run/x.sock?id=0",
            "pcap:///in.pcap",
        ] {
            let uri = uri.parse().expect("a face URI");
            let claims: Vec<_> = DRIVERS.iter().filter(|driver| (driver.claims)(&uri)).collect();
            assert_eq!(claims.len(), 1, "{uri}");
            let scheme = uri.to_string().split("://").next().map(str::to_owned).unwrap_or_default();
            assert!(claims[0].usage.starts_with(&scheme), "{uri}");
        }
    }

    #[test]
    fn other_uris_are_errors_that_list_the_drivers() {
        let mut opener = Opener::new(&BufferPool::new(8, 8), MemifSizes::default());
        let wishes = Wishes { header_bytes: 18, mtu_bytes: None, queues: 1 };
        let uri: FaceUri = "udp4://192.0.2.1:6363".parse().expect("a face URI");
        let error = opener.open(&uri, &wishes).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("is not a port") && error.contains("tap://INTERFACE"), "{error}");
    }
}
