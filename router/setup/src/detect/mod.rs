//! Detects the properties of a host from its `/proc`, `/sys` and `/etc`, without changing anything.

mod cpus;
mod drivers;
mod huge_pages;
mod nics;
mod routes;
mod service;
mod vfio;

use serde::Serialize;

pub use cpus::{Cpu, Cpus};
pub use drivers::{DpdkDriver, DpdkDrivers};
pub use huge_pages::{HugePagePool, HugePages, NodePool};
pub use nics::{Nic, NicUse};
pub use service::Service;
pub use vfio::{ModuleState, Vfio};

pub(crate) use huge_pages::pool_folder;
pub(crate) use nics::PCI_DEVICES;
pub(crate) use vfio::{VFIO_MODULE, module_is_loaded, users_of_group};

use crate::System;

/// All detected properties.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// Total memory, in bytes.
    pub memory_bytes: u64,
    /// Memory available to programs now, in bytes.
    pub available_bytes: u64,
    /// Huge pages.
    pub huge_pages: HugePages,
    /// CPUs.
    pub processors: Cpus,
    /// Requirements for driving a network card from a program.
    pub vfio: Vfio,
    /// Folder of DPDK's drivers; `None` if DPDK is not installed.
    pub dpdk_drivers: Option<String>,
    /// Network cards on PCI.
    pub nics: Vec<Nic>,
    /// Memory that a process started here may lock, in bytes; `None` for no limit.
    pub memory_lock_bytes: Option<u64>,
    /// The installed service; `None` if not installed.
    pub service: Option<Service>,
    /// Whether the process belongs to root, so that changes are possible.
    pub is_root: bool,
    /// Other files below `/etc` and `/usr/lib`, and kernel parameters, that set the number of huge pages at boot.
    pub other_huge_page_settings: Vec<String>,
}

impl Machine {
    /// Detects the properties of a host. `ssh_connection` is the environment variable `SSH_CONNECTION`, which contains
    /// the peer address of the operator's session.
    pub fn detect(system: &System, ssh_connection: Option<&str>) -> Machine {
        let drivers = DpdkDrivers::read(system);
        let meminfo = system.read("/proc/meminfo").unwrap_or_default();
        let status = system.read("/proc/self/status").unwrap_or_default();
        Machine {
            kernel: system.read("/proc/sys/kernel/osrelease").unwrap_or_default(),
            memory_bytes: huge_pages::meminfo_bytes(&meminfo, "MemTotal"),
            available_bytes: huge_pages::meminfo_bytes(&meminfo, "MemAvailable"),
            huge_pages: HugePages::read(system, &meminfo),
            processors: Cpus::read(system),
            vfio: Vfio::read(system),
            nics: nics::read(system, &drivers, ssh_connection),
            dpdk_drivers: drivers.folder,
            memory_lock_bytes: service::memory_lock_limit(&system.read("/proc/self/limits").unwrap_or_default()),
            service: Service::read(system),
            // Fields: real, effective, saved and filesystem user.
            is_root: service::status_field(&status, "Uid").and_then(|ids| ids.split_whitespace().nth(1)) == Some("0"),
            other_huge_page_settings: huge_pages::other_settings(system),
        }
    }

    /// Returns the network card with this PCI address or interface name.
    pub fn nic(&self, name: &str) -> Option<&Nic> {
        self.nics.iter().find(|nic| nic.address == name || nic.interfaces.iter().any(|interface| interface == name))
    }
}
