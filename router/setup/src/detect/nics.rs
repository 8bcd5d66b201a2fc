//! Network cards on the PCI bus.

use serde::Serialize;

use super::drivers::{DpdkDriver, DpdkDrivers};
use super::routes::Needed;
use crate::System;

/// Folder in which the kernel lists PCI devices.
pub(crate) const PCI_DEVICES: &str = "/sys/bus/pci/devices";
/// PCI classes of network controllers and of bridges.
const NETWORK_CLASS: u32 = 0x02;
const BRIDGE_CLASS: u32 = 0x06;

/// A reason to leave a card to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NicUse {
    /// The default route uses it.
    DefaultRoute,
    /// An SSH session uses it.
    SshSession,
}

/// A network card, or one port of a card that has several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Nic {
    /// PCI address, as `0000:03:00.0`.
    pub address: String,
    /// PCI ids of the vendor and of the device.
    pub vendor: u32,
    /// See `vendor`.
    pub device: u32,
    /// The kernel driver bound to the card.
    pub driver: Option<String>,
    /// Names of its network interfaces.
    pub interfaces: Vec<String>,
    /// Speed in Mbit/s; `None` if the link is down or does not report it.
    pub speed_mbps: Option<u64>,
    /// Whether there is a link to the other end; `None` if the interface is down or missing.
    pub has_link: Option<bool>,
    /// NUMA node; `None` on hosts with a single node.
    pub node: Option<u32>,
    /// IOMMU group; `None` without an IOMMU.
    pub iommu_group: Option<u32>,
    /// Other devices of the IOMMU group with a kernel driver, with the driver's name: they would have to be taken too.
    pub group_neighbours: Vec<String>,
    /// The driver of the installed DPDK for the card.
    pub dpdk_driver: Option<DpdkDriver>,
    /// Reasons to leave the card to the kernel.
    pub uses: Vec<NicUse>,
}

impl Nic {
    /// Returns whether the card is bound to vfio-pci.
    pub fn is_taken(&self) -> bool {
        self.driver.as_deref() == Some(super::VFIO_MODULE)
    }
}

/// Returns all network cards, by address.
pub(super) fn read(system: &System, drivers: &DpdkDrivers, ssh_connection: Option<&str>) -> Vec<Nic> {
    let needed = Needed::read(system, ssh_connection);
    let addresses = system.names(PCI_DEVICES).into_iter();
    let nics = addresses.filter(|address| class(system, address) == Some(NETWORK_CLASS));
    nics.filter_map(|address| read_one(system, address, drivers, &needed)).collect()
}

/// Returns the base class of a device, the first byte of its class.
fn class(system: &System, address: &str) -> Option<u32> {
    Some(hex(system, address, "class")? >> 16)
}

fn hex(system: &System, address: &str, file: &str) -> Option<u32> {
    let text = system.read(&format!("{PCI_DEVICES}/{address}/{file}"))?;
    u32::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

fn read_one(system: &System, address: String, drivers: &DpdkDrivers, needed: &Needed) -> Option<Nic> {
    let folder = format!("{PCI_DEVICES}/{address}");
    let (vendor, device) = (hex(system, &address, "vendor")?, hex(system, &address, "device")?);
    let subsystem = |file| hex(system, &address, file).unwrap_or(0);
    let interfaces = interfaces(system, &folder);
    let of_link =
        |file: &str| -> Option<i64> { system.number(&format!("/sys/class/net/{}/{file}", interfaces.first()?)) };
    let iommu_group = system.link_name(&format!("{folder}/iommu_group")).and_then(|group| group.parse().ok());
    let is_in = |names: &[String]| interfaces.iter().any(|name| names.contains(name));
    let uses = [(NicUse::DefaultRoute, &needed.default_route), (NicUse::SshSession, &needed.session)];
    Some(Nic {
        vendor,
        device,
        driver: system.link_name(&format!("{folder}/driver")),
        // -1 means unknown.
        speed_mbps: of_link("speed").and_then(|speed| u64::try_from(speed).ok()),
        has_link: of_link("carrier").map(|carrier| carrier == 1),
        node: system.number(&format!("{folder}/numa_node")),
        group_neighbours: group_neighbours(system, &address, iommu_group),
        iommu_group,
        dpdk_driver: drivers.driver_of(vendor, device, (subsystem("subsystem_vendor"), subsystem("subsystem_device"))),
        uses: uses.into_iter().filter(|(_, names)| is_in(names)).map(|(reason, _)| reason).collect(),
        interfaces,
        address,
    })
}

/// Returns the network interfaces of a device: its own, or the interfaces of the virtio device on it.
fn interfaces(system: &System, folder: &str) -> Vec<String> {
    let mut names = system.names(&format!("{folder}/net"));
    for virtio in system.names(folder).into_iter().filter(|name| name.starts_with("virtio")) {
        names.extend(system.names(&format!("{folder}/{virtio}/net")));
    }
    names
}

/// Returns the devices of the same group with a kernel driver. Bridges always keep theirs and do not count.
fn group_neighbours(system: &System, address: &str, group: Option<u32>) -> Vec<String> {
    let Some(group) = group else { return Vec::new() };
    let others = system.names(&format!("/sys/kernel/iommu_groups/{group}/devices")).into_iter();
    let others = others.filter(|other| other != address && class(system, other) != Some(BRIDGE_CLASS));
    let driven = others.filter_map(|other| {
        let driver = system.link_name(&format!("{PCI_DEVICES}/{other}/driver"))?;
        (driver != super::VFIO_MODULE).then(|| format!("{other} ({driver})"))
    });
    driven.collect()
}
