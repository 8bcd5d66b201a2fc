//! Opens ports: each driver of [`DRIVERS`] opens the port behind its URIs, and gives a [`Device`] for the thread that
//! manages the port and queues for workers.
//!
//! A driver is a folder here with a [`Driver`] and a type that implements [`Device`], and its line in the list. It
//! declares the scheme of its URIs and parses them. No other file names it: programs parse URIs by [`parse_uri`], open
//! ports by an [`Opener`], take help and messages from [`forms`] and [`usage`], and ask [`DriverTraits`].

mod device;
mod on_interface;
mod opener;
#[cfg(test)]
mod tests;

pub mod memif;
pub mod packet_socket;
pub mod pcap;
pub mod pci;
pub mod tap;
pub mod xdp;

use std::path::PathBuf;

use namehop_face::uri::{PortScheme, PortUri, TunnelScheme, UriSchemes};
use namehop_face::{FaceUri, FaceUriError};

use crate::encapsulation::tunnel::TUNNELS;

pub use device::{Device, OpenPort, Presence, Spread};
use device::{boxed, local_address};
use on_interface::{InterfacePort, OnInterface, parse_interface, used_interface};
pub use opener::{OpenError, Opener, RingSizes, Wishes};

/// All drivers.
pub static DRIVERS: &[&Driver] =
    &[&packet_socket::DRIVER, &xdp::DRIVER, &pci::DRIVER, &tap::DRIVER, &memif::DRIVER, &pcap::DRIVER];

/// A driver of ports.
#[derive(Debug)]
pub struct Driver {
    /// The scheme of its URIs.
    pub scheme: PortScheme,
    /// Form of its URIs, for messages and help: "dev://INTERFACE".
    pub form: &'static str,
    /// What its ports are: "a network interface".
    pub meaning: &'static str,
    /// Properties of its ports.
    pub traits: DriverTraits,
    /// Returns what opening a port gives access to.
    pub access: fn(&PortUri) -> Access,
    /// Opens a port.
    open: fn(&mut Opener, &PortUri, &Wishes) -> Result<OpenPort, OpenError>,
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

/// What a port gives access to. Routers let commands open only what the configuration allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// A network device of this host, by its name.
    Device(String),
    /// A socket in the file system.
    Socket(PathBuf),
    /// Files that are read or written.
    Files,
}

impl Access {
    /// Returns the access of a port on the network device in its URI.
    fn to_device(port: &PortUri) -> Access {
        Access::Device(port.device().to_owned())
    }
}

impl Driver {
    /// Returns the driver of a URI.
    pub fn of(uri: &FaceUri) -> Option<&'static Driver> {
        let scheme = uri.as_port()?.scheme();
        DRIVERS.iter().copied().find(|driver| driver.scheme == *scheme)
    }

    /// Returns the traits of the URI's driver; none for other URIs.
    pub fn traits_of(uri: &FaceUri) -> DriverTraits {
        Driver::of(uri).map_or(NO_TRAITS, |driver| driver.traits)
    }

    /// Returns what opening this port gives access to; `None` for other URIs.
    pub fn access_to(uri: &FaceUri) -> Option<Access> {
        Some((Driver::of(uri)?.access)(uri.as_port()?))
    }

    /// Whether this text names a device, in the part of a URI behind `://`.
    pub fn is_device(&self, text: &str) -> bool {
        let uri = parse_uri(&format!("{}://{text}", self.scheme.name));
        uri.is_ok_and(|uri| uri.as_port().is_some_and(|port| port.device() == text))
    }
}

/// Parses a face URI, which may be that of a port or of a face over an encapsulation in UDP.
///
/// # Errors
/// What is wrong with the text, and which form is expected.
pub fn parse_uri(text: &str) -> Result<FaceUri, FaceUriError> {
    let ports: Vec<&'static PortScheme> = DRIVERS.iter().map(|driver| &driver.scheme).collect();
    let tunnels: Vec<&'static TunnelScheme> = TUNNELS.iter().map(|tunnel| &tunnel.scheme).collect();
    FaceUri::parse(text, &UriSchemes { ports: &ports, tunnels: &tunnels })
}

/// Lists the forms of the URIs of some drivers, for messages and help: "dev://INTERFACE, xdp://INTERFACE or …".
pub fn forms(of: impl Fn(&Driver) -> bool) -> String {
    join(DRIVERS.iter().filter(|driver| of(driver)).map(|driver| driver.form.to_owned()).collect(), " or ")
}

/// Lists the URIs of all drivers with their meanings, for messages and help.
pub fn usage() -> String {
    join(DRIVERS.iter().map(|driver| format!("{} for {}", driver.form, driver.meaning)).collect(), ", or ")
}

fn join(texts: Vec<String>, last_separator: &str) -> String {
    match texts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{}{last_separator}{last}", first.join(", ")),
        None => String::new(),
    }
}
