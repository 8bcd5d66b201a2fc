//! Ports on network interfaces of the kernel.

use namehop_face::address::MacAddress;
use namehop_face::uri::{FaceUriError, PortOptions, PortUri, UriParser};

use super::device::{Device, Presence};
use super::opener::OpenError;
use crate::error::DpdkError;
use crate::interface::{Interface, UsedInterface};
use crate::losses::Losses;
use crate::wanted::Wanted;

const EXPECTED: &str = "a network interface name, as in dev://eth0, optionally with a VLAN from 1 to 4094, as in \
     dev://eth0?vlan=7, or with an address for UDP, as in dev://eth0?vlan=7&ip=192.0.2.1&port=6363, optionally \
     followed by source_port=name and mac=08:00:27:01:dd:01";

/// Parses the name of a network interface and the options of the port.
pub(super) fn parse_interface(parser: &UriParser<'_>, text: &str) -> Result<(String, PortOptions), FaceUriError> {
    let (interface, options) = parser.device_and_options(text, EXPECTED)?;
    Ok((parser.interface(interface, EXPECTED)?, options))
}

/// A device on a network interface of the kernel.
pub(super) struct OnInterface<P> {
    pub(super) interface: UsedInterface,
    pub(super) port: P,
}

/// The port of a device on a network interface, as in [`Device`].
pub(super) trait InterfacePort: Send {
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
pub(super) fn used_interface(port: &PortUri) -> Result<UsedInterface, OpenError> {
    let name = port.device().to_owned();
    let opened = Interface::query(&name).map_err(OpenError::NoInterface)?;
    Ok(UsedInterface { name, opened })
}
