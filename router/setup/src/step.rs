//! The kinds of changes: how to apply and undo each.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::System;
use crate::detect::{PCI_DEVICES, VFIO_MODULE, module_is_loaded, pool_folder, users_of_group};

/// Writing a PCI address to this file makes the kernel probe drivers for the device.
const PROBE: &str = "/sys/bus/pci/drivers_probe";

/// One change of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum HostChange {
    /// Reserve huge pages of one size.
    HugePages {
        /// Size of a page, in bytes.
        page_bytes: u64,
        /// Total number of pages.
        pages: u64,
    },
    /// Load a kernel module.
    LoadModule {
        /// Name of the module.
        module: String,
    },
    /// Take a device from its kernel driver and bind it to vfio-pci, for use by programs.
    BindNic {
        /// PCI address of the device.
        address: String,
    },
    /// Write a file.
    WriteFile {
        /// Path of the file.
        path: String,
        /// Complete text of the file.
        text: String,
    },
}

/// The state before a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Before {
    /// Number of huge pages.
    HugePages {
        /// Total number of pages.
        pages: u64,
    },
    /// State of the module.
    Module {
        /// Whether it was loaded.
        was_loaded: bool,
    },
    /// Drivers of the device.
    Nic {
        /// The bound kernel driver.
        driver: Option<String>,
        /// The driver for which the device was reserved (`driver_override`).
        driver_override: Option<String>,
    },
    /// State of the file.
    File {
        /// Complete text; `None` if the file did not exist.
        text: Option<String>,
    },
}

/// A change that failed.
#[derive(Debug, Error)]
#[error("{what}: {reason}")]
pub struct StepError {
    /// The attempted action.
    pub what: String,
    /// The reason, with a remedy.
    pub reason: String,
}

impl fmt::Display for HostChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostChange::HugePages { page_bytes, pages } => {
                write!(f, "write {pages} to {}/nr_hugepages", pool_folder(*page_bytes))
            }
            HostChange::LoadModule { module } => write!(f, "modprobe {module}"),
            HostChange::BindNic { address } => {
                write!(f, "write {VFIO_MODULE} to {PCI_DEVICES}/{address}/driver_override, and rebind the device")
            }
            HostChange::WriteFile { path, .. } => write!(f, "write the file {path}"),
        }
    }
}

impl HostChange {
    /// Returns whether two changes are about the same object.
    pub(crate) fn is_of_same(&self, other: &HostChange) -> bool {
        match (self, other) {
            (HostChange::HugePages { page_bytes: a, .. }, HostChange::HugePages { page_bytes: b, .. }) => a == b,
            (HostChange::LoadModule { module: a }, HostChange::LoadModule { module: b })
            | (HostChange::BindNic { address: a }, HostChange::BindNic { address: b })
            | (HostChange::WriteFile { path: a, .. }, HostChange::WriteFile { path: b, .. }) => a == b,
            _ => false,
        }
    }

    fn error(&self, reason: impl fmt::Display) -> StepError {
        StepError { what: self.to_string(), reason: reason.to_string() }
    }

    /// Returns the current state of the object.
    pub(crate) fn before(&self, system: &System) -> Result<Before, StepError> {
        Ok(match self {
            HostChange::HugePages { page_bytes, .. } => Before::HugePages {
                pages: pages(system, *page_bytes).ok_or_else(|| self.error("the kernel has no pages of this size"))?,
            },
            HostChange::LoadModule { .. } => Before::Module { was_loaded: module_is_loaded(system) },
            HostChange::BindNic { address } => Before::Nic {
                driver: driver_of(system, address),
                driver_override: system
                    .read(&format!("{PCI_DEVICES}/{address}/driver_override"))
                    .filter(|name| !name.is_empty() && name != "(null)"),
            },
            HostChange::WriteFile { path, .. } => {
                Before::File { text: system.contents(path).map_err(|error| self.error(error))? }
            }
        })
    }

    /// Applies the change. Returns it as made (the kernel may have found fewer pages), with a remark for the user if
    /// that matters.
    pub(crate) fn make(&self, system: &System) -> Result<(HostChange, Option<String>), StepError> {
        match self {
            HostChange::HugePages { page_bytes, pages: wanted } => {
                let had = pages(system, *page_bytes).unwrap_or(0);
                set_pages(system, *page_bytes, *wanted).map_err(|error| self.error(error))?;
                let got = pages(system, *page_bytes).unwrap_or(0);
                if got <= had && got < *wanted {
                    let reason = "the kernel found no memory for more pages: free memory is fragmented; write the file \
                                  that sets them at boot, and reboot";
                    return Err(self.error(reason));
                }
                let remark = (got < *wanted).then(|| {
                    format!("{got} of {wanted} pages: free memory is fragmented; a reboot reserves all of them")
                });
                return Ok((HostChange::HugePages { page_bytes: *page_bytes, pages: got }, remark));
            }
            HostChange::LoadModule { module } => {
                system.run("modprobe", &[module]).map_err(|reason| self.error(reason))?;
            }
            HostChange::BindNic { address } => {
                let Before::Nic { driver, driver_override } = self.before(system)? else {
                    return Ok((self.clone(), None));
                };
                if let Err(reason) = bind(system, address) {
                    // Report the reason of the failure; errors while reverting do not matter.
                    let _ = release(system, address, driver.as_deref(), driver_override.as_deref());
                    return Err(self.error(reason));
                }
            }
            HostChange::WriteFile { path, text } => {
                system.replace_file(path, text).map_err(|error| self.error(error))?;
            }
        }
        Ok((self.clone(), None))
    }

    /// Undoes the change, unless another program has changed the same object since. `made` is the change as made, if it
    /// was completed. Returns a remark for the user, unless the change was simply undone.
    pub(crate) fn take_back(
        &self,
        system: &System,
        before: &Before,
        made: Option<&HostChange>,
    ) -> Result<Option<String>, StepError> {
        if let HostChange::WriteFile { path, .. } = self {
            system.remove_unfinished(path);
        }
        let now = self.before(system)?;
        if now == *before {
            return Ok(Some("already in its original state".to_owned()));
        }
        match (self, before, now) {
            (
                HostChange::HugePages { page_bytes, pages: wanted },
                Before::HugePages { pages: had },
                Before::HugePages { pages: now },
            ) => {
                let is_own = match made {
                    // The kernel may have found fewer pages, and all of them at the next start of the host.
                    Some(made) => {
                        now == *wanted || matches!(made, HostChange::HugePages { pages, .. } if *pages == now)
                    }
                    // The kernel reserves pages one by one, and stops when the requesting process is killed.
                    None => (*had.min(wanted)..=*had.max(wanted)).contains(&now),
                };
                if !is_own {
                    return Ok(Some(format!("the number was since set to {now} pages; left unchanged")));
                }
                set_pages(system, *page_bytes, *had).map_err(|error| self.error(error))?;
                let left = pages(system, *page_bytes).unwrap_or(0).saturating_sub(*had);
                return Ok((left > 0).then(|| {
                    format!("{left} pages are in use; the kernel frees them when the program that uses them ends")
                }));
            }
            (HostChange::LoadModule { module }, ..) => {
                // May fail for a module that this one depends on and that others use: that one stays loaded.
                let result = system.run("modprobe", &["-r", module]);
                if module_is_loaded(system) {
                    result.map_err(|reason| self.error(reason))?;
                }
            }
            (
                HostChange::BindNic { address },
                Before::Nic { driver, driver_override },
                Before::Nic { driver: now, .. },
            ) => {
                if now.as_deref() != Some(VFIO_MODULE) && now.is_some() && now != *driver {
                    return Ok(Some(format!("driver {} has since bound it; left unchanged", now.unwrap_or_default())));
                }
                release(system, address, driver.as_deref(), driver_override.as_deref())
                    .map_err(|reason| self.error(format!("cannot undo it: {reason}")))?;
            }
            (HostChange::WriteFile { path, text }, Before::File { text: old }, Before::File { text: now }) => {
                if now.as_ref() != Some(text) {
                    return Ok(Some("the file was since changed or removed; left unchanged".to_owned()));
                }
                let result = match old {
                    Some(old) => system.replace_file(path, old),
                    None => system.remove_file(path),
                };
                result.map_err(|error| self.error(error))?;
            }
            _ => return Err(self.error("the recorded original state is of another kind")),
        }
        Ok(None)
    }
}

fn pages(system: &System, page_bytes: u64) -> Option<u64> {
    system.number(&format!("{}/nr_hugepages", pool_folder(page_bytes)))
}

fn set_pages(system: &System, page_bytes: u64, pages: u64) -> std::io::Result<()> {
    system.write_setting(&format!("{}/nr_hugepages", pool_folder(page_bytes)), &pages.to_string())
}

fn driver_of(system: &System, address: &str) -> Option<String> {
    system.link_name(&format!("{PCI_DEVICES}/{address}/driver"))
}

/// Why a device has not the wanted driver.
#[derive(Debug, Error)]
enum BindError {
    /// A file of the kernel cannot be written.
    #[error(transparent)]
    Setting(#[from] io::Error),
    /// The kernel chose another driver.
    #[error("driver {0} bound the device instead of vfio-pci")]
    OtherDriver(String),
    /// The kernel chose no driver.
    #[error("vfio-pci did not bind the device; see the kernel's log (dmesg)")]
    NotBound,
    /// Programs use the device.
    #[error("{} uses the device; stop it first", .0.join(", "))]
    InUse(Vec<String>),
    /// The previous driver did not bind the device.
    #[error("driver {0} did not bind the device again; see the kernel's log (dmesg)")]
    NotReturned(String),
}

/// Binds a device to vfio-pci.
fn bind(system: &System, address: &str) -> Result<(), BindError> {
    if driver_of(system, address).as_deref() == Some(VFIO_MODULE) {
        return Ok(());
    }
    system.write_setting(&format!("{PCI_DEVICES}/{address}/driver_override"), VFIO_MODULE)?;
    unbind(system, address)?;
    probe(system, address);
    match driver_of(system, address) {
        Some(driver) if driver == VFIO_MODULE => Ok(()),
        Some(driver) => Err(BindError::OtherDriver(driver)),
        None => Err(BindError::NotBound),
    }
}

/// Returns a device to its previous driver.
fn release(
    system: &System,
    address: &str,
    driver: Option<&str>,
    driver_override: Option<&str>,
) -> Result<(), BindError> {
    if driver_of(system, address).as_deref() == Some(VFIO_MODULE) {
        // While a program uses the device, unbinding would block for ever.
        let group =
            system.link_name(&format!("{PCI_DEVICES}/{address}/iommu_group")).and_then(|group| group.parse().ok());
        let users = group.map(|group| users_of_group(system, group)).unwrap_or_default();
        if !users.is_empty() {
            return Err(BindError::InUse(users));
        }
    }
    // An empty line means no reservation.
    let reserved = driver_override.unwrap_or("\n");
    system.write_setting(&format!("{PCI_DEVICES}/{address}/driver_override"), reserved)?;
    if driver_of(system, address).as_deref() != driver {
        unbind(system, address)?;
    }
    let Some(driver) = driver else { return Ok(()) };
    probe(system, address);
    if driver_of(system, address).is_none() {
        // The driver's module may have been unloaded; a failure to load it shows below.
        let _ = system.run("modprobe", &[driver]);
        probe(system, address);
    }
    if driver_of(system, address).as_deref() == Some(driver) {
        return Ok(());
    }
    Err(BindError::NotReturned(driver.to_owned()))
}

fn unbind(system: &System, address: &str) -> io::Result<()> {
    if driver_of(system, address).is_none() {
        return Ok(());
    }
    system.write_setting(&format!("{PCI_DEVICES}/{address}/driver/unbind"), address)
}

/// Makes the kernel probe drivers. The result is visible at the device.
fn probe(system: &System, address: &str) {
    let _ = system.write_setting(PROBE, address);
}
