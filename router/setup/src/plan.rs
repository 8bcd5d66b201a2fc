//! Plans the numbered steps from wishes and detected state, each with its exact file or command, and lists obstacles.

use serde::Serialize;

use crate::System;
use crate::boot_files::{SYSCTL_FILE, tmpfiles_file, udev_file};
use crate::detect::{HugePagePool, Machine, ModuleState, Nic, NicUse, VFIO_MODULE, pool_folder};
use crate::step::HostChange;

const GIBIBYTE: u64 = 1 << 30;
/// Memory that default settings use: a cache of 512 MiB, about 230 MiB for packets of ports, and the other tables.
const AUTO_BYTES: u64 = GIBIBYTE;
/// From this size on, pages of 1 GiB are worth their cost.
const LARGE_BYTES: u64 = 8 * GIBIBYTE;

/// How much memory to reserve in huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HugePageRequest {
    /// A size that suits a router with default settings, less on small hosts.
    #[default]
    Auto,
    /// This number of bytes in total.
    Bytes(u64),
    /// Leave the number of huge pages unchanged.
    Unchanged,
}

/// The requested configuration of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupRequest {
    /// Memory in huge pages.
    pub memory: HugePageRequest,
    /// Page size in bytes; `None` for automatic choice.
    pub page_bytes: Option<u64>,
    /// Network cards to use without the kernel: PCI addresses or interface names.
    pub nics: Vec<String>,
    /// Cards to use without the kernel even if the default route or an SSH session depends on them.
    pub forced_nics: Vec<String>,
    /// Whether the changes also apply after a restart of the host.
    pub is_permanent: bool,
}

impl Default for SetupRequest {
    fn default() -> Self {
        SetupRequest {
            memory: HugePageRequest::default(),
            page_bytes: None,
            nics: Vec::new(),
            forced_nics: Vec::new(),
            is_permanent: true,
        }
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The change.
    pub change: HostChange,
    /// Its purpose, for the user.
    pub why: String,
}

/// The planned steps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Reasons why a wish is impossible, with remedies. If there are any, no step may be applied.
    pub obstacles: Vec<String>,
    /// Further notes for the user.
    pub notes: Vec<String>,
}

impl Plan {
    /// Plans the steps from the detected state to the wishes. Wishes that are already fulfilled need no steps.
    pub fn new(system: &System, machine: &Machine, wishes: &SetupRequest) -> Plan {
        let mut plan = Plan::default();
        plan.add_huge_pages(system, machine, wishes);
        let mut done = Vec::new();
        for name in wishes.nics.iter().chain(&wishes.forced_nics) {
            // The wishes may name one card both by its address and by its interface.
            let card = machine.nic(name).map_or(name, |nic| &nic.address);
            if !done.contains(&card) {
                plan.add_nic(system, machine, wishes, name);
                done.push(card);
            }
        }
        plan
    }

    fn step(&mut self, change: HostChange, why: impl Into<String>) {
        self.steps.push(Step { change, why: why.into() });
    }

    /// Adds a step that writes a file, which repeats a change at boot, unless the file exists with this text.
    fn file(&mut self, system: &System, path: String, text: String, why: impl Into<String>) {
        match system.contents(&path) {
            Ok(there) if there.as_ref() == Some(&text) => {}
            Ok(_) => self.step(HostChange::WriteFile { path, text }, why),
            Err(error) => self.obstacles.push(format!("cannot read {path}: {error}")),
        }
    }

    fn add_huge_pages(&mut self, system: &System, machine: &Machine, wishes: &SetupRequest) {
        let requested = match wishes.memory {
            HugePageRequest::Unchanged => return,
            HugePageRequest::Auto => AUTO_BYTES.min(machine.memory_bytes / 4),
            HugePageRequest::Bytes(bytes) => bytes,
        };
        let Some(pool) = choose_pool(machine, requested, wishes.page_bytes) else {
            let sizes: Vec<String> = machine.huge_pages.pools.iter().map(|pool| show_size(pool.page_bytes)).collect();
            self.obstacles.push(match (wishes.page_bytes, sizes.as_slice()) {
                (_, []) => "the kernel has no huge pages; in a container or virtual machine, reserve them on its host"
                    .to_owned(),
                (_, sizes) => format!("the kernel has no huge pages of this size; it has {}", sizes.join(" and ")),
            });
            return;
        };
        let page_bytes = pool.page_bytes;
        // Automatic sizes are rounded down, requested sizes up.
        let pages = if wishes.memory == HugePageRequest::Auto {
            requested / page_bytes
        } else {
            requested.div_ceil(page_bytes)
        };
        let is_enough = pool.pages >= pages;
        if !is_enough {
            let more = (pages - pool.pages).saturating_mul(page_bytes);
            let most = machine.available_bytes / 4 * 3;
            if more > most {
                self.obstacles.push(format!(
                    "{} more in huge pages would leave too little memory for other programs: at most three quarters of \
                     the available {} may be reserved; choose a smaller --huge-pages",
                    show_size(more),
                    show_size(machine.available_bytes)
                ));
                return;
            }
            self.step(
                HostChange::HugePages { page_bytes, pages },
                format!(
                    "reserves {} in pages of {} (now {} pages), so that tables and packets need fewer address \
                     translations",
                    show_size(pages * page_bytes),
                    show_size(page_bytes),
                    pool.pages
                ),
            );
        }
        let others = &machine.other_huge_page_settings;
        if !wishes.is_permanent || pages == 0 || (is_enough && !others.is_empty()) {
            return;
        }
        if !others.is_empty() {
            self.notes.push(format!(
                "{} also sets the number of huge pages, and at boot the last setting wins: remove it there",
                others.join(", ")
            ));
        }
        let why = "does the same at each boot, before memory is fragmented";
        if page_bytes == machine.huge_pages.default_page_bytes {
            let text = format!("# Huge pages for Namehop; written by 'namehop setup'.\nvm.nr_hugepages = {pages}\n");
            self.file(system, SYSCTL_FILE.to_owned(), text, why);
        } else {
            let text = format!(
                "# Huge pages for Namehop; written by 'namehop setup'.\nw {}/nr_hugepages - - - - {pages}\n",
                pool_folder(page_bytes)
            );
            self.file(system, tmpfiles_file(page_bytes), text, why);
        }
    }

    fn add_nic(&mut self, system: &System, machine: &Machine, wishes: &SetupRequest, name: &str) {
        let Some(nic) = machine.nic(name) else {
            let known: Vec<&str> = machine.nics.iter().map(|nic| nic.address.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            self.obstacles.push(format!("there is no network card {name}; the PCI network cards are: {known}"));
            return;
        };
        if nic.dpdk_driver.as_ref().is_some_and(|driver| driver.shares_card) {
            self.notes.push(format!(
                "{} stays bound to its kernel driver: DPDK shares such cards with the kernel",
                show_nic(nic)
            ));
            return;
        }
        let is_forced = |nic: &Nic| wishes.forced_nics.iter().any(|name| machine.nic(name) == Some(nic));
        let is_wanted = |address: &str| {
            let mut names = wishes.nics.iter().chain(&wishes.forced_nics);
            names.any(|name| machine.nic(name).is_some_and(|nic| nic.address == address))
        };
        if let Some(obstacle) = obstacle(machine, nic, is_forced(nic), is_wanted) {
            self.obstacles.push(obstacle);
            return;
        }
        if nic.dpdk_driver.is_none() {
            self.notes
                .push(format!("cannot tell whether DPDK has a driver for {}: DPDK is not installed", show_nic(nic)));
        }
        let load = HostChange::LoadModule { module: VFIO_MODULE.to_owned() };
        if machine.vfio.module == ModuleState::Available && !self.steps.iter().any(|step| step.change == load) {
            self.step(load, "loads the kernel module that lets programs drive network cards, confined by the IOMMU");
        }
        if !nic.is_taken() {
            let from = nic.driver.as_deref().unwrap_or("no driver");
            let without_interface = match nic.interfaces.as_slice() {
                [] => String::new(),
                names => format!("; the kernel's interface {} disappears", names.join(", ")),
            };
            let why = format!(
                "moves {} from {from} to {VFIO_MODULE}, so that a program can drive it{without_interface}",
                show_nic(nic)
            );
            self.step(HostChange::BindNic { address: nic.address.clone() }, why);
        }
        if wishes.is_permanent {
            let why = "does the same at each boot, before the kernel's driver binds the card";
            self.file(system, udev_file(&nic.address), udev_rule(&nic.address), why);
        }
    }
}

/// Returns the pool from which to reserve this much memory.
fn choose_pool(machine: &Machine, bytes: u64, wanted: Option<u64>) -> Option<&HugePagePool> {
    let pages = &machine.huge_pages;
    if let Some(page_bytes) = wanted {
        return pages.pool(page_bytes);
    }
    let large = pages.pool(GIBIBYTE).filter(|_| bytes >= LARGE_BYTES);
    large.or_else(|| pages.pool(2 << 20)).or_else(|| pages.pool(pages.default_page_bytes)).or(pages.pools.first())
}

/// Returns the obstacle to using a card without the kernel, if any.
fn obstacle(machine: &Machine, nic: &Nic, is_forced: bool, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    let card = show_nic(nic);
    if let (Some(reason), false) = (nic.uses.first(), is_forced) {
        let reason = match reason {
            NicUse::DefaultRoute => "carries the default route",
            NicUse::SshSession => "carries an SSH session",
        };
        return Some(format!(
            "{card} {reason}: this host would become unreachable; to use the card anyway, give --force-nic {}",
            nic.address
        ));
    }
    if nic.dpdk_driver.is_none() && machine.dpdk_drivers.is_some() {
        return Some(format!(
            "DPDK has no driver for {card} (PCI {:04x}:{:04x}); use it through the kernel, as dev://INTERFACE",
            nic.vendor, nic.device
        ));
    }
    if nic.iommu_group.is_none() {
        return Some(format!(
            "{card} has no IOMMU, so it could write anywhere in memory: enable VT-d or AMD-Vi in the firmware, on \
             Intel add intel_iommu=on to the kernel's command line, and reboot; in a virtual machine, configure a \
             virtual IOMMU, or use the card through the kernel, as dev://INTERFACE"
        ));
    }
    let in_the_way: Vec<&str> = nic
        .group_neighbours
        .iter()
        .filter(|neighbour| !neighbour.split(' ').next().is_some_and(&is_wanted))
        .map(String::as_str)
        .collect();
    if !in_the_way.is_empty() {
        return Some(format!(
            "{card} shares its IOMMU group with {}, which must be unbound from the kernel as well: name these devices \
             too, or move the card to another slot",
            in_the_way.join(", ")
        ));
    }
    if machine.vfio.module == ModuleState::Missing {
        return Some(format!("{card} needs the kernel module vfio-pci, which kernel {} does not have", machine.kernel));
    }
    None
}

/// Returns a udev rule with the effect of [`HostChange::BindNic`]. It leaves a card alone that vfio-pci has already,
/// because it may be in use.
fn udev_rule(address: &str) -> String {
    let device = format!("/sys/bus/pci/devices/{address}");
    format!(
        "# Network card for Namehop; written by 'namehop setup'.\n\
         ACTION==\"add\", SUBSYSTEM==\"pci\", KERNEL==\"{address}\", ATTR{{driver_override}}=\"{VFIO_MODULE}\", \
         RUN{{builtin}}+=\"kmod load {VFIO_MODULE}\", \
         RUN+=\"/bin/sh -c 'case $$(readlink {device}/driver) in */{VFIO_MODULE}) ;; \
         *) echo {address} > {device}/driver/unbind; echo {address} > /sys/bus/pci/drivers_probe ;; esac'\"\n"
    )
}

/// Formats the address of a card, with its interfaces.
pub(crate) fn show_nic(nic: &Nic) -> String {
    match nic.interfaces.as_slice() {
        [] => nic.address.clone(),
        names => format!("{} ({})", nic.address, names.join(", ")),
    }
}

/// Formats a number of bytes in the largest unit that does not exceed it.
pub(crate) fn show_size(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (GIBIBYTE, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let Some((unit, name)) = units.into_iter().find(|&(unit, _)| bytes >= unit) else {
        return format!("{bytes} bytes");
    };
    match bytes % unit {
        0 => format!("{} {name}", bytes / unit),
        _ => format!("{:.1} {name}", bytes as f64 / unit as f64),
    }
}
