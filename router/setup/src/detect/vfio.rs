//! Requirements for driving a network card from a program: an IOMMU, and the kernel module vfio-pci.

use serde::Serialize;

use crate::System;

/// Name of the module, for `modprobe` and as a PCI driver.
pub(crate) const VFIO_MODULE: &str = "vfio-pci";

/// The state of a kernel module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModuleState {
    /// It is loaded.
    Loaded,
    /// It can be loaded.
    Available,
    /// The kernel does not have it.
    Missing,
}

/// The state of the IOMMU and the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Vfio {
    /// The module vfio-pci.
    pub module: ModuleState,
    /// Number of IOMMU groups; 0 if the IOMMU is missing or off.
    pub iommu_groups: usize,
}

impl Vfio {
    pub(super) fn read(system: &System) -> Self {
        Vfio { module: module_state(system), iommu_groups: system.names("/sys/kernel/iommu_groups").len() }
    }
}

/// Returns whether the module is loaded.
pub(crate) fn module_is_loaded(system: &System) -> bool {
    system.exists("/sys/bus/pci/drivers/vfio-pci")
}

fn module_state(system: &System) -> ModuleState {
    if module_is_loaded(system) {
        return ModuleState::Loaded;
    }
    let kernel = system.read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let has = |folder: &str| {
        let index = system.read(&format!("{folder}/modules/{kernel}/modules.dep")).unwrap_or_default();
        index.lines().any(|line| line.split(':').next().is_some_and(|file| file.contains("/vfio-pci.ko")))
    };
    if !kernel.is_empty() && (has("/lib") || has("/usr/lib")) { ModuleState::Available } else { ModuleState::Missing }
}

/// Returns the processes, with names, that have the VFIO group with this number open. The kernel does not take a device
/// from them.
pub(crate) fn users_of_group(system: &System, group: u32) -> Vec<String> {
    let wanted = format!("/dev/vfio/{group}");
    let processes = system.names("/proc").into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let uses = |process: &String| {
        let folder = format!("/proc/{process}/fd");
        let mut files = system.names(&folder).into_iter();
        files.any(|file| {
            let target = system.link_target(&format!("{folder}/{file}"));
            target.is_some_and(|target| target.as_os_str() == wanted.as_str())
        })
    };
    let named = |process: String| {
        let name = system.read(&format!("/proc/{process}/comm")).unwrap_or_default();
        format!("{name} (process {process})")
    };
    processes.filter(uses).map(named).collect()
}
