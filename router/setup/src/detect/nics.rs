//! Network cards on the PCI bus.

use serde::Serialize;

use super::drivers::{DpdkDriver, DpdkDrivers};
use super::routes::Needed;
use crate::System;

/// Where the kernel lists devices on PCI.
pub(crate) const PCI_DEVICES: &str = "/sys/bus/pci/devices";
/// The class of network controllers, and of bridges between parts of the bus.
const NETWORK_CLASS: u32 = 0x02;
const BRIDGE_CLASS: u32 = 0x06;

/// Why a card must stay with the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// The default route leads through it.
    DefaultRoute,
    /// An SSH session comes in on it.
    SshSession,
}

/// A network card, or one port of a card that has several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Nic {
    /// PCI address, as `0000:03:00.0`.
    pub address: String,
    /// Numbers of maker and model.
    pub vendor: u32,
    /// See `vendor`.
    pub device: u32,
    /// The kernel's driver that has it.
    pub driver: Option<String>,
    /// Names of its network interfaces.
    pub interfaces: Vec<String>,
    /// Mbit/s, when the link is up and says so.
    pub speed_mbps: Option<u64>,
    /// Whether a cable is plugged in and the other end answers; absent when the interface is down or gone.
    pub has_link: Option<bool>,
    /// NUMA node, where the computer has several.
    pub node: Option<u32>,
    /// Its group for the IOMMU; absent without one.
    pub iommu_group: Option<u32>,
    /// Other devices of that group that the kernel uses, with their drivers: they would have to go as well.
    pub group_neighbours: Vec<String>,
    /// The driver that the installed DPDK has for it.
    pub dpdk_driver: Option<DpdkDriver>,
    /// Why it must stay with the kernel.
    pub uses: Vec<Use>,
}

impl Nic {
    /// Whether it was given to programs (vfio-pci).
    pub fn is_taken(&self) -> bool {
        self.driver.as_deref() == Some(super::VFIO_MODULE)
    }
}

/// All network cards, by address.
pub(super) fn read(system: &System, drivers: &DpdkDrivers, ssh_connection: Option<&str>) -> Vec<Nic> {
    let needed = Needed::read(system, ssh_connection);
    let addresses = system.names(PCI_DEVICES).into_iter();
    let nics = addresses.filter(|address| class(system, address) == Some(NETWORK_CLASS));
    nics.filter_map(|address| read_one(system, address, drivers, &needed)).collect()
}

/// The first byte of the class.
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
    let uses = [(Use::DefaultRoute, &needed.default_route), (Use::SshSession, &needed.session)];
    Some(Nic {
        vendor,
        device,
        driver: system.link_name(&format!("{folder}/driver")),
        // What is unknown is -1.
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

/// Network interfaces of a device: its own, or those of the virtio device on it.
fn interfaces(system: &System, folder: &str) -> Vec<String> {
    let mut names = system.names(&format!("{folder}/net"));
    for virtio in system.names(folder).into_iter().filter(|name| name.starts_with("virtio")) {
        names.extend(system.names(&format!("{folder}/{virtio}/net")));
    }
    names
}

/// Devices of the same group that the kernel drives. Bridges stay with it and do not count.
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
