//! The network cards that the installed DPDK supports. Each DPDK driver contains a list of PCI devices as text that
//! begins with `PMD_INFO_STRING= ` (`dpdk-pmdinfo.py` prints it). So Namehop needs no list of its own for each DPDK
//! release.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::System;

const MARK: &[u8] = b"PMD_INFO_STRING= ";
/// Library folders of distributions and of DPDK itself; libraries of an architecture are in subfolders.
const LIBRARIES: [&str; 4] = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"];
/// Wildcard for any subsystem in DPDK's lists.
const ANY: u32 = 0xFFFF;

/// One driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DpdkDriver {
    /// Name of the driver in DPDK.
    pub name: String,
    /// Whether the card stays with its kernel driver (NVIDIA): DPDK then shares it, and no binding is needed.
    pub shares_card: bool,
}

/// A driver's description of itself. Additional fields of other releases are ignored.
#[derive(Deserialize)]
struct Information {
    name: String,
    #[serde(default)]
    kmod: String,
    /// Vendor, device, subsystem vendor, subsystem device.
    #[serde(default)]
    pci_ids: Vec<[u32; 4]>,
}

/// All drivers of network cards.
#[derive(Default)]
pub struct DpdkDrivers {
    /// Folder of the drivers.
    pub folder: Option<String>,
    drivers: Vec<Information>,
}

impl DpdkDrivers {
    /// Reads the drivers of the newest installed DPDK.
    pub(super) fn read(system: &System) -> Self {
        let Some(folder) = plugin_folder(system) else { return DpdkDrivers::default() };
        let mut drivers = Vec::new();
        let is_library = |name: &String| name.starts_with("librte_net_") && name.contains(".so.");
        for name in system.names(&folder).into_iter().filter(is_library) {
            let file = system.path(&format!("{folder}/{name}"));
            // Each library has a regular file and a symbolic link to it.
            if !file.is_symlink() {
                drivers.extend(information(&fs::read(file).unwrap_or_default()));
            }
        }
        DpdkDrivers { folder: Some(folder), drivers }
    }

    /// Returns the driver of a PCI device, if any.
    pub(super) fn driver_of(&self, vendor: u32, device: u32, subsystem: (u32, u32)) -> Option<DpdkDriver> {
        let fits = |wanted: u32, found: u32| wanted == ANY || wanted == found;
        let drives = |driver: &&Information| {
            driver
                .pci_ids
                .iter()
                .any(|id| id[0] == vendor && id[1] == device && fits(id[2], subsystem.0) && fits(id[3], subsystem.1))
        };
        let driver = self.drivers.iter().find(drives)?;
        // `kmod` lists the kernel modules that DPDK needs, such as "* igb_uio | vfio-pci".
        let shares_card = !driver.kmod.is_empty() && !driver.kmod.contains("vfio");
        Some(DpdkDriver { name: driver.name.clone(), shares_card })
    }
}

/// Returns the driver folder of the newest DPDK: `dpdk/pmds-VERSION` beside other libraries.
fn plugin_folder(system: &System) -> Option<String> {
    let below = |folder: &str| {
        let mut folders = vec![folder.to_owned()];
        let architectures = system.names(folder).into_iter().filter(|name| name.ends_with("-linux-gnu"));
        folders.extend(architectures.map(|name| format!("{folder}/{name}")));
        folders
    };
    let mut folders: Vec<String> = LIBRARIES
        .iter()
        .flat_map(|folder| below(folder))
        .flat_map(|folder| {
            let folder = format!("{folder}/dpdk");
            system.names(&folder).into_iter().map(move |name| format!("{folder}/{name}"))
        })
        .filter(|folder| folder.contains("/pmds-"))
        .collect();
    folders.sort_unstable_by_key(|folder| {
        let version = folder.rsplit('-').next().unwrap_or_default();
        let numbers: Vec<u32> = version.split('.').map(|number| number.parse().unwrap_or(0)).collect();
        numbers
    });
    folders.pop()
}

/// Returns the descriptions in a library file.
fn information(library: &[u8]) -> Vec<Information> {
    let mut found = Vec::new();
    let mut rest = library;
    while let Some(at) = find(rest, MARK) {
        rest = &rest[at + MARK.len()..];
        let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        found.extend(serde_json::from_slice::<Information>(&rest[..end]));
    }
    found
}

/// Returns the offset of the first `mark`. Its first letter is rare enough in libraries that this is fast.
fn find(text: &[u8], mark: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.iter().position(|&byte| byte == mark[0]) {
        if text[from + at..].starts_with(mark) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_say_themselves_which_cards_they_drive() {
        let library =
            b"\x7fELF..PMD_INFO_STRING= {\"name\": \"net_a\", \"kmod\": \"* igb_uio | vfio-pci\", \"pci_ids\": \
            [[32902, 4110, 65535, 65535], [1, 2, 3, 4]]}\0\0PPMD_INFO_STRING= {\"name\": \"b_eth\", \"kmod\": \
            \"* ib_uverbs & b_core\", \"pci_ids\": [[5555, 4115, 65535, 65535]]}\0PMD_INFO_STRING= {damaged\0PMD";
        let drivers = DpdkDrivers { folder: None, drivers: information(library) };
        let name = |vendor, device, subsystem| drivers.driver_of(vendor, device, subsystem).map(|driver| driver.name);
        assert_eq!(name(32902, 4110, (7, 8)).as_deref(), Some("net_a"));
        assert_eq!(name(1, 2, (3, 4)).as_deref(), Some("net_a"));
        assert_eq!(name(1, 2, (3, 5)), None, "another subsystem");
        assert_eq!(name(32902, 4111, (7, 8)), None);
        assert_eq!(
            drivers.driver_of(5555, 4115, (0, 0)),
            Some(DpdkDriver { name: "b_eth".to_owned(), shares_card: true })
        );
    }
}
