//! Ports on network cards without the kernel, by their addresses on PCI.
//!
//! The card must have been given to the kernel module vfio-pci, which keeps it within the memory of this process.

use namehop_packet::BufferPool;

use crate::eal::{Devices, Eal, Pages};
use crate::error::DpdkError;
use crate::nic::{NicPort, NicQueue, Source};

/// Opens the card with this PCI address, as `0000:03:00.0`, for packets of up to `mtu_bytes` behind the Ethernet header, with
/// so many queues or as many as it has.
///
/// # Errors
/// When there is no such card, no driver for it, or it is not with vfio-pci; when it cannot carry such packets; when the
/// environment was started without PCI, or without huge pages.
pub fn open(
    environment: &Eal,
    address: &str,
    mtu_bytes: usize,
    queues: usize,
    pool: &BufferPool,
) -> Result<(NicPort, Vec<NicQueue>), DpdkError> {
    if environment.devices() != Devices::Pci {
        return Err(DpdkError::Unusable(format!(
            "the router was started without network cards on PCI: list {address} in `interfaces` in section [ports] of \
             the configuration, and restart"
        )));
    }
    if let Pages::Ordinary { .. } = environment.pages() {
        return Err(DpdkError::Unusable(format!(
            "{address} needs packets on huge pages, of which too few were free: 'namehop setup' sets more aside; then restart"
        )));
    }
    let source = Source { bus: "pci", name: address.to_owned(), arguments: String::new(), mtu_bytes, queues };
    NicPort::open(environment, &source, pool, " (is it with vfio-pci? 'namehop setup' tells)")
}
