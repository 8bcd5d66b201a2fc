//! What it takes to drive a network card from a program: an IOMMU, and the kernel module vfio-pci.

use serde::Serialize;

use crate::System;

/// The module, as `modprobe` and drivers on the PCI bus name it.
pub(crate) const VFIO_MODULE: &str = "vfio-pci";

/// What became of a kernel module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModuleState {
    /// It is there.
    Loaded,
    /// It can be loaded.
    Available,
    /// The kernel has none.
    Missing,
}

/// IOMMU and module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Vfio {
    /// The module vfio-pci.
    pub module: ModuleState,
    /// Groups of devices that the IOMMU keeps apart; none when it is absent or off.
    pub iommu_groups: usize,
}

impl Vfio {
    pub(super) fn read(system: &System) -> Self {
        Vfio { module: module_state(system), iommu_groups: system.names("/sys/kernel/iommu_groups").len() }
    }
}

/// Whether the module is in the running kernel.
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

/// Processes that have the VFIO group with this number open, with their names. The kernel takes no device away from them.
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
