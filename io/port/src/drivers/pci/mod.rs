//! Ports on PCI network cards without the kernel, by PCI address.
//!
//! The card must be bound to the kernel module vfio-pci, which restricts its access to the memory of this process.

use std::fs;
use std::path::Path;

use namehop_face::address::MacAddress;
use namehop_face::uri::{FaceUriError, PortOptions, PortScheme, PortUri, UriParser};
use namehop_packet::BufferPool;

use crate::drivers::{
    Access, Device, Driver, DriverTraits, NO_TRAITS, OpenError, OpenPort, Opener, Presence, Spread, Wishes, boxed,
};
use crate::eal::{Devices, Eal, Pages};
use crate::error::DpdkError;
use crate::losses::Losses;
use crate::mempool::{mempool_bytes, use_mempools};
use crate::nic::USUAL_MTU_BYTES;
use crate::nic::{NicPort, NicQueue, Source};
use crate::steering::Flow;
use crate::wanted::Wanted;

const EXPECTED: &str = "the PCI address of a network card, as in pci://0000:03:00.0, with the same options as \
     dev://eth0";
/// Folder where the kernel lists PCI devices.
const PCI_DEVICES: &str = "/sys/bus/pci/devices";
/// Kernel module that gives cards to user-space programs.
const VFIO_DRIVER: &str = "vfio-pci";

/// Opens the card with this PCI address, such as `0000:03:00.0`, for packets of up to `mtu_bytes` behind the Ethernet
/// header, with `queues` queues or as many as the card has, if fewer.
///
/// # Errors
/// Fails if there is no such card or no driver for it, if it is not bound to vfio-pci, if it cannot carry such packets,
/// or if the environment was started without PCI or without huge pages.
pub fn open(
    environment: &Eal,
    address: &str,
    mtu_bytes: usize,
    queues: usize,
    pool: &BufferPool,
) -> Result<(NicPort, Vec<NicQueue>), DpdkError> {
    if environment.devices() != Devices::Pci {
        return Err(DpdkError::Unusable(format!(
            "the router was started without PCI network cards: list {address} in `interfaces` in section [ports] of \
             the configuration, and restart"
        )));
    }
    if let Pages::Ordinary { mebibytes } = environment.pages() {
        return Err(DpdkError::Unusable(format!(
            "{address} needs {mebibytes} MiB of huge pages for packets, but too few were free: reserve more with \
             'namehop setup' and restart"
        )));
    }
    let hint = hint(Path::new(PCI_DEVICES), address);
    let source = Source { bus: "pci", name: address.to_owned(), arguments: String::new(), mtu_bytes, queues };
    NicPort::open(environment, &source, pool, &hint)
}

/// Advice for a card that cannot be opened, from what the kernel shows of it.
fn hint(devices: &Path, address: &str) -> String {
    let device = devices.join(address);
    if !device.exists() {
        return " (no such device: run 'namehop setup' to list the network cards)".to_owned();
    }
    let driver = fs::read_link(device.join("driver")).ok();
    match driver.as_ref().and_then(|driver| driver.file_name()?.to_str()) {
        Some(VFIO_DRIVER) => {
            " (it is bound to vfio-pci, but another program may use it, this one may lack access to /dev/vfio, or \
            DPDK may have no driver for it: run 'namehop setup' for details)"
                .to_owned()
        }
        Some(driver) => format!(
            " (it is bound to the kernel driver {driver}: run 'namehop setup --nic {address}' to see how to bind it \
             to vfio-pci, and add --apply to do it)"
        ),
        None => format!(
            " (it is bound to no driver: run 'namehop setup --nic {address}' to see how to bind it to vfio-pci, and \
             add --apply to do it)"
        ),
    }
}

/// The driver of network cards without the kernel.
pub static DRIVER: Driver = Driver {
    scheme: PortScheme { name: "pci", parse, separator: Some('?'), can_be_bare: false },
    form: "pci://ADDRESS",
    meaning: "a network card without the kernel",
    traits: DriverTraits {
        sets_mtu: true,
        has_several_queues: true,
        is_without_kernel: true,
        has_peer: true,
        ..NO_TRAITS
    },
    access: Access::to_device,
    open: open_uri,
};

/// Parses the PCI address of a card and the options of the port.
fn parse(parser: &UriParser<'_>, text: &str) -> Result<(String, PortOptions), FaceUriError> {
    let (address, options) = parser.device_and_options(text, EXPECTED)?;
    match is_pci_address(address) {
        true => Ok((address.to_owned(), options)),
        false => parser.refuse(format!("`{address}` is not a PCI address"), EXPECTED),
    }
}

/// Whether this is a PCI address in its normal spelling: domain, bus, device, function, as `0000:03:00.0`.
fn is_pci_address(text: &str) -> bool {
    let shape = b"hhhh:hh:hh.o";
    let fits = |(&byte, &kind): (&u8, &u8)| match kind {
        b'h' => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        b'o' => matches!(byte, b'0'..=b'7'),
        sign => byte == sign,
    };
    text.len() == shape.len() && text.as_bytes().iter().zip(shape).all(fits)
}

fn open_uri(opener: &mut Opener, card: &PortUri, wishes: &Wishes) -> Result<OpenPort, OpenError> {
    let (small, large) = opener.pool.limits();
    let environment = Eal::start(mempool_bytes(small, large), Devices::Pci)?;
    use_mempools(&opener.pool, environment)?;
    let mtu_bytes = wishes.mtu_bytes.unwrap_or(USUAL_MTU_BYTES);
    let (port, queues) = open(environment, card.device(), mtu_bytes, wishes.queues, &opener.pool)?;
    Ok(OpenPort {
        spread: match queues.len() {
            1 => Spread::OneQueue,
            _ if port.spreads => Spread::ByPorts,
            _ => Spread::ByDevice,
        },
        queues: boxed(queues),
        address: port.address,
        mtu_bytes: port.mtu_bytes,
        device: Box::new(port),
    })
}

impl Device for NicPort {
    fn is_up(&self) -> bool {
        NicPort::is_up(self)
    }

    fn losses(&self) -> Losses {
        NicPort::losses(self)
    }

    fn presence(&self) -> Presence {
        if NicPort::is_removed(self) { Presence::Removed } else { Presence::Present }
    }

    fn join(&self, group: MacAddress, join: bool) -> Result<(), DpdkError> {
        NicPort::join(self, group, join)
    }

    fn join_all(&self) -> Result<(), DpdkError> {
        NicPort::join_all(self)
    }

    fn steer(&self, flow: Flow) -> Result<Option<u16>, DpdkError> {
        NicPort::steer(self, flow)
    }

    fn release(&self, flow: &Flow) -> Result<(), DpdkError> {
        NicPort::release(self, flow)
    }

    fn receive_only(&self, wanted: &Wanted) -> Result<(), DpdkError> {
        NicPort::receive_only(self, wanted)
    }

    fn receive_everything(&self) -> Result<(), DpdkError> {
        NicPort::receive_everything(self)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_card_that_cannot_be_opened_comes_with_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        for (address, driver) in
            [("0000:01:00.0", Some("e1000e")), ("0000:02:00.0", Some("vfio-pci")), ("0000:03:00.0", None)]
        {
            let device = folder.path().join(address);
            fs::create_dir(&device).expect("made");
            if let Some(driver) = driver {
                symlink(Path::new("../../../bus/pci/drivers").join(driver), device.join("driver")).expect("linked");
            }
        }
        for (address, part) in [
            ("0000:01:00.0", "driver e1000e: run 'namehop setup --nic 0000:01:00.0'"),
            ("0000:02:00.0", "another program may use it"),
            ("0000:03:00.0", "no driver: run 'namehop setup --nic 0000:03:00.0'"),
            ("0000:04:00.0", "no such device"),
        ] {
            let hint = hint(folder.path(), address);
            assert!(hint.contains(part), "{address}: {hint}");
        }
    }
}
