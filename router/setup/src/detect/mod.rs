//! What a computer offers: read from its `/proc`, `/sys` and `/etc`, changing nothing.

mod drivers;
mod huge_pages;
mod nics;
mod processors;
mod routes;
mod service;
mod vfio;

use serde::Serialize;

pub use drivers::{DpdkDriver, DpdkDrivers};
pub use huge_pages::{HugePagePool, HugePages, NodePool};
pub use nics::{Nic, Use};
pub use processors::{Processor, Processors};
pub use service::Service;
pub use vfio::{ModuleState, Vfio};

pub(crate) use huge_pages::pool_folder;
pub(crate) use nics::PCI_DEVICES;
pub(crate) use vfio::{VFIO_MODULE, module_is_loaded, users_of_group};

use crate::System;

/// Everything that was found.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// All memory, in bytes.
    pub memory_bytes: u64,
    /// Memory that programs could take now, in bytes.
    pub available_bytes: u64,
    /// Huge pages.
    pub huge_pages: HugePages,
    /// Processors.
    pub processors: Processors,
    /// What it takes to drive a network card from a program.
    pub vfio: Vfio,
    /// Folder of DPDK's drivers, if there is one.
    pub dpdk_drivers: Option<String>,
    /// Network cards on PCI.
    pub nics: Vec<Nic>,
    /// Memory that a process started here may lock, in bytes; absent when there is no limit.
    pub memory_lock_bytes: Option<u64>,
    /// The installed service, if there is one.
    pub service: Option<Service>,
    /// Whether changes can be made: the process belongs to root.
    pub is_root: bool,
    /// Who else sets the number of huge pages at boot: files below `/etc` and `/usr/lib`.
    pub other_huge_page_settings: Vec<String>,
}

impl Machine {
    /// Looks at a computer. `ssh_connection` is the environment variable `SSH_CONNECTION`, which tells whom the operator's
    /// session comes from.
    pub fn detect(system: &System, ssh_connection: Option<&str>) -> Machine {
        let drivers = DpdkDrivers::read(system);
        let meminfo = system.read("/proc/meminfo").unwrap_or_default();
        let status = system.read("/proc/self/status").unwrap_or_default();
        Machine {
            kernel: system.read("/proc/sys/kernel/osrelease").unwrap_or_default(),
            memory_bytes: huge_pages::meminfo_bytes(&meminfo, "MemTotal"),
            available_bytes: huge_pages::meminfo_bytes(&meminfo, "MemAvailable"),
            huge_pages: HugePages::read(system, &meminfo),
            processors: Processors::read(system),
            vfio: Vfio::read(system),
            nics: nics::read(system, &drivers, ssh_connection),
            dpdk_drivers: drivers.folder,
            memory_lock_bytes: service::memory_lock_limit(&system.read("/proc/self/limits").unwrap_or_default()),
            service: Service::read(system),
            // Real, effective, saved and filesystem user.
            is_root: service::status_field(&status, "Uid").and_then(|ids| ids.split_whitespace().nth(1)) == Some("0"),
            other_huge_page_settings: huge_pages::other_settings(system),
        }
    }

    /// The network card with this PCI address or interface name.
    pub fn nic(&self, name: &str) -> Option<&Nic> {
        self.nics.iter().find(|nic| nic.address == name || nic.interfaces.iter().any(|interface| interface == name))
    }
}
