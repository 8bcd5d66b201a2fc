//! The changes that there are: what each is, doing it, and taking it back.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::System;
use crate::detect::{PCI_DEVICES, VFIO_MODULE, module_is_loaded, pool_folder, users_of_group};

/// Writing an address here has the kernel look for a driver of the device.
const PROBE: &str = "/sys/bus/pci/drivers_probe";

/// One change of a computer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Change {
    /// Set so many huge pages of this size aside.
    HugePages {
        /// Size of a page, in bytes.
        page_bytes: u64,
        /// Pages in all.
        pages: u64,
    },
    /// Load a kernel module.
    LoadModule {
        /// Its name.
        module: String,
    },
    /// Take a device from its kernel driver and give it to vfio-pci, for programs.
    BindNic {
        /// Its PCI address.
        address: String,
    },
    /// Write a file.
    WriteFile {
        /// Its path.
        path: String,
        /// All of its text.
        text: String,
    },
}

/// What was before a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Before {
    /// So many pages.
    HugePages {
        /// Pages in all.
        pages: u64,
    },
    /// The module was there or not.
    Module {
        /// Whether it was loaded.
        was_loaded: bool,
    },
    /// The device had this driver.
    Nic {
        /// Its kernel driver.
        driver: Option<String>,
        /// The driver that somebody had reserved it for.
        driver_override: Option<String>,
    },
    /// The file had this text, or was not there.
    File {
        /// All of its text.
        text: Option<String>,
    },
}

/// A change that failed.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct StepError {
    /// What was tried.
    pub what: String,
    /// Why it failed, and what to do.
    pub reason: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::HugePages { page_bytes, pages } => {
                write!(f, "write {pages} to {}/nr_hugepages", pool_folder(*page_bytes))
            }
            Change::LoadModule { module } => write!(f, "modprobe {module}"),
            Change::BindNic { address } => {
                write!(f, "write {VFIO_MODULE} to {PCI_DEVICES}/{address}/driver_override, and bind the device anew")
            }
            Change::WriteFile { path, .. } => write!(f, "write the file {path}"),
        }
    }
}

impl Change {
    /// Whether two changes are of the same thing.
    pub(crate) fn is_of_same(&self, other: &Change) -> bool {
        match (self, other) {
            (Change::HugePages { page_bytes: a, .. }, Change::HugePages { page_bytes: b, .. }) => a == b,
            (Change::LoadModule { module: a }, Change::LoadModule { module: b })
            | (Change::BindNic { address: a }, Change::BindNic { address: b })
            | (Change::WriteFile { path: a, .. }, Change::WriteFile { path: b, .. }) => a == b,
            _ => false,
        }
    }

    fn error(&self, reason: impl fmt::Display) -> StepError {
        StepError { what: self.to_string(), reason: reason.to_string() }
    }

    /// What is there now.
    pub(crate) fn before(&self, system: &System) -> Result<Before, StepError> {
        Ok(match self {
            Change::HugePages { page_bytes, .. } => Before::HugePages {
                pages: pages(system, *page_bytes).ok_or_else(|| self.error("the kernel has no pages of this size"))?,
            },
            Change::LoadModule { .. } => Before::Module { was_loaded: module_is_loaded(system) },
            Change::BindNic { address } => Before::Nic {
                driver: driver_of(system, address),
                driver_override: system
                    .read(&format!("{PCI_DEVICES}/{address}/driver_override"))
                    .filter(|name| !name.is_empty() && name != "(null)"),
            },
            Change::WriteFile { path, .. } => {
                Before::File { text: system.contents(path).map_err(|error| self.error(error))? }
            }
        })
    }

    /// Makes the change. Returns it as it turned out (the kernel may have found fewer pages), with a remark if that matters.
    pub(crate) fn make(&self, system: &System) -> Result<(Change, Option<String>), StepError> {
        match self {
            Change::HugePages { page_bytes, pages: wanted } => {
                let had = pages(system, *page_bytes).unwrap_or(0);
                set_pages(system, *page_bytes, *wanted).map_err(|error| self.error(error))?;
                let got = pages(system, *page_bytes).unwrap_or(0);
                if got <= had && got < *wanted {
                    let reason = "the kernel found no memory for further pages: what is free lies scattered. A restart of \
                                  the computer with the file that sets them at boot helps";
                    return Err(self.error(reason));
                }
                let remark = (got < *wanted).then(|| {
                    format!("{got} of {wanted} pages: what else is free lies scattered; all are there after a restart of the computer")
                });
                return Ok((Change::HugePages { page_bytes: *page_bytes, pages: got }, remark));
            }
            Change::LoadModule { module } => {
                system.run("modprobe", &[module]).map_err(|reason| self.error(reason))?;
            }
            Change::BindNic { address } => {
                let Before::Nic { driver, driver_override } = self.before(system)? else {
                    return Ok((self.clone(), None));
                };
                if let Err(reason) = bind(system, address) {
                    // The reason counts; what goes wrong on the way back is another matter.
                    let _ = release(system, address, driver.as_deref(), driver_override.as_deref());
                    return Err(self.error(reason));
                }
            }
            Change::WriteFile { path, text } => {
                system.replace_file(path, text).map_err(|error| self.error(error))?;
            }
        }
        Ok((self.clone(), None))
    }

    /// Takes the change back, unless somebody else has changed the same thing since: then it is theirs. `made` is the
    /// change as it turned out, if it came to its end. Returns a remark on what happened, if it is not simply done.
    pub(crate) fn take_back(
        &self,
        system: &System,
        before: &Before,
        made: Option<&Change>,
    ) -> Result<Option<String>, StepError> {
        if let Change::WriteFile { path, .. } = self {
            system.remove_unfinished(path);
        }
        let now = self.before(system)?;
        if now == *before {
            return Ok(Some("was as before already".to_owned()));
        }
        match (self, before, now) {
            (
                Change::HugePages { page_bytes, pages: wanted },
                Before::HugePages { pages: had },
                Before::HugePages { pages: now },
            ) => {
                let is_own = match made {
                    // The kernel found fewer perhaps, and all of them at the next start of the computer.
                    Some(made) => now == *wanted || matches!(made, Change::HugePages { pages, .. } if *pages == now),
                    // The kernel takes them one by one, and stops when the program that asked is killed.
                    None => (*had.min(wanted)..=*had.max(wanted)).contains(&now),
                };
                if !is_own {
                    return Ok(Some(format!("somebody has set {now} pages since; left so")));
                }
                set_pages(system, *page_bytes, *had).map_err(|error| self.error(error))?;
                let left = pages(system, *page_bytes).unwrap_or(0).saturating_sub(*had);
                return Ok((left > 0).then(|| format!("{left} pages are in use, and go when their user ends")));
            }
            (Change::LoadModule { module }, ..) => {
                // It may fail for a module that this one needs, and that others need as well: that one stays.
                let result = system.run("modprobe", &["-r", module]);
                if module_is_loaded(system) {
                    result.map_err(|reason| self.error(reason))?;
                }
            }
            (Change::BindNic { address }, Before::Nic { driver, driver_override }, Before::Nic { driver: now, .. }) => {
                if now.as_deref() != Some(VFIO_MODULE) && now.is_some() && now != *driver {
                    return Ok(Some(format!("driver {} has it since; left so", now.unwrap_or_default())));
                }
                release(system, address, driver.as_deref(), driver_override.as_deref())
                    .map_err(|reason| self.error(format!("taking that back: {reason}")))?;
            }
            (Change::WriteFile { path, text }, Before::File { text: old }, Before::File { text: now }) => {
                if now.as_ref() != Some(text) {
                    return Ok(Some("somebody has changed or removed it since; left so".to_owned()));
                }
                let result = match old {
                    Some(old) => system.replace_file(path, old),
                    None => system.remove_file(path),
                };
                result.map_err(|error| self.error(error))?;
            }
            _ => return Err(self.error("what is recorded of before does not fit")),
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

/// Gives a device to vfio-pci.
fn bind(system: &System, address: &str) -> Result<(), String> {
    if driver_of(system, address).as_deref() == Some(VFIO_MODULE) {
        return Ok(());
    }
    let said = |error: std::io::Error| error.to_string();
    system.write_setting(&format!("{PCI_DEVICES}/{address}/driver_override"), VFIO_MODULE).map_err(said)?;
    unbind(system, address)?;
    probe(system, address);
    match driver_of(system, address) {
        Some(driver) if driver == VFIO_MODULE => Ok(()),
        Some(driver) => Err(format!("driver {driver} has the device all the same")),
        None => Err("vfio-pci did not take the device; the kernel's log (dmesg) says why".to_owned()),
    }
}

/// Gives a device back.
fn release(system: &System, address: &str, driver: Option<&str>, driver_override: Option<&str>) -> Result<(), String> {
    if driver_of(system, address).as_deref() == Some(VFIO_MODULE) {
        // The kernel would wait for them, for ever.
        let group =
            system.link_name(&format!("{PCI_DEVICES}/{address}/iommu_group")).and_then(|group| group.parse().ok());
        let users = group.map(|group| users_of_group(system, group)).unwrap_or_default();
        if !users.is_empty() {
            return Err(format!("{} uses the device; stop that first", users.join(", ")));
        }
    }
    // An empty line stands for none.
    let reserved = driver_override.unwrap_or("\n");
    system
        .write_setting(&format!("{PCI_DEVICES}/{address}/driver_override"), reserved)
        .map_err(|error| error.to_string())?;
    if driver_of(system, address).as_deref() != driver {
        unbind(system, address)?;
    }
    let Some(driver) = driver else { return Ok(()) };
    probe(system, address);
    if driver_of(system, address).is_none() {
        // The driver's module may have been unloaded; that it cannot be loaded shows below.
        let _ = system.run("modprobe", &[driver]);
        probe(system, address);
    }
    if driver_of(system, address).as_deref() == Some(driver) {
        return Ok(());
    }
    Err(format!("driver {driver} did not take the device back; the kernel's log (dmesg) says why"))
}

fn unbind(system: &System, address: &str) -> Result<(), String> {
    if driver_of(system, address).is_none() {
        return Ok(());
    }
    system.write_setting(&format!("{PCI_DEVICES}/{address}/driver/unbind"), address).map_err(|error| error.to_string())
}

/// Has the kernel look for a driver. Whether it found one shows in the device.
fn probe(system: &System, address: &str) {
    let _ = system.write_setting(PROBE, address);
}
