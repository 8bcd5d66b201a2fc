//! Formats the detected properties of a host for network operators.

use serde::Serialize;

use crate::detect::{Machine, ModuleState, Nic, NicUse};
use crate::plan::{show_nic, show_size};
use crate::system::show_list;

/// The findings about one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The subject.
    pub subject: &'static str,
    /// The detected facts, one per line.
    pub found: Vec<String>,
    /// The consequences for a router, and the remedy.
    pub meaning: String,
}

/// Returns the findings about all subjects.
pub fn findings(machine: &Machine) -> Vec<Finding> {
    vec![huge_pages(machine), processors(machine), iommu(machine), cards(machine), limits(machine)]
}

fn huge_pages(machine: &Machine) -> Finding {
    let pages = &machine.huge_pages;
    let mut found = Vec::new();
    for pool in &pages.pools {
        let mut line = format!("{}: {} reserved, {} free", show_size(pool.page_bytes), pool.pages, pool.free);
        if pool.nodes.len() > 1 {
            let nodes: Vec<String> = pool
                .nodes
                .iter()
                .map(|node| format!("NUMA node {}: {} ({} free)", node.node, node.pages, node.free))
                .collect();
            line.push_str(&format!("; {}", nodes.join(", ")));
        }
        found.push(line);
    }
    found.push(format!("transparent: {}", pages.transparent.as_deref().unwrap_or("none")));
    let meaning = if pages.pools.iter().any(|pool| pool.pages > 0) {
        "Tables and packets on huge pages cost less time per packet. The router takes free huge pages when it starts."
    } else if pages.transparent.as_deref().is_some_and(|mode| mode != "never") {
        "None are reserved. The router then requests transparent huge pages, which the kernel may not be able to \
         provide, and keeps the packets of ports on 4 KiB pages. This is slower with large tables."
    } else {
        "None are reserved and transparent huge pages are off. Everything works, but slower: each packet costs several \
         more address translations."
    };
    Finding { subject: "Huge pages", found, meaning: meaning.to_owned() }
}

fn processors(machine: &Machine) -> Finding {
    let processors = &machine.processors;
    let (count, cores) = (processors.online.len(), processors.cores());
    let mut nodes: Vec<u32> = processors.online.iter().filter_map(|cpu| cpu.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut found = vec![format!("{count} on {cores} cores; NUMA nodes: {}", nodes.len().max(1))];
    let none_or = |list: &[u32]| if list.is_empty() { "none".to_owned() } else { show_list(list) };
    found.push(format!("isolated: {}", none_or(&processors.isolated)));
    let slowed = processors.slowed();
    if !slowed.is_empty() {
        found.push(format!("saving power: {}", show_list(&slowed)));
    }
    let mut meaning = "With a port, the worker busy-polls on its own CPU".to_owned();
    meaning.push_str(match (cores, processors.isolated.is_empty()) {
        (0 | 1, _) => ". This host has one core, so all other programs share it.",
        (_, true) => {
            ". The kernel still schedules other programs there. To prevent this, isolate CPU N with the kernel \
             parameter isolcpus=N and set worker_processor = N in section [ports]."
        }
        (_, false) => ". Select an isolated CPU with worker_processor in section [ports].",
    });
    if count > cores {
        meaning.push_str(" CPUs of the same core share its speed: leave the worker's sibling idle.");
    }
    if !slowed.is_empty() {
        meaning.push_str(
            " CPUs that save power take some microseconds to reach full speed; 'cpupower frequency-set -g performance' \
             prevents this.",
        );
    }
    Finding { subject: "CPUs", found, meaning }
}

fn iommu(machine: &Machine) -> Finding {
    let vfio = &machine.vfio;
    let module = match vfio.module {
        ModuleState::Loaded => "loaded",
        ModuleState::Available => "can be loaded",
        ModuleState::Missing => "not in this kernel",
    };
    let found = vec![format!("device groups: {}", vfio.iommu_groups), format!("module vfio-pci: {module}")];
    let meaning = match (vfio.iommu_groups, vfio.module) {
        (0, _) => {
            "Without an IOMMU, which confines a device to the memory assigned to it, no program can drive a card \
             directly. Use cards through the kernel (dev://)."
        }
        (_, ModuleState::Missing) => {
            "Without this module, no program can drive a card directly. Use cards through the kernel (dev://)."
        }
        _ => {
            "Programs can drive cards directly, without the kernel: the IOMMU confines each card to the memory of its \
             program."
        }
    };
    Finding { subject: "IOMMU", found, meaning: meaning.to_owned() }
}

fn cards(machine: &Machine) -> Finding {
    let found: Vec<String> = machine.nics.iter().map(card).collect();
    let could_go = |nic: &&Nic| {
        let is_driven = nic.dpdk_driver.as_ref().is_some_and(|driver| !driver.shares_card);
        is_driven && nic.uses.is_empty() && nic.iommu_group.is_some() && !nic.is_taken()
    };
    let meaning = match (machine.nics.is_empty(), machine.nics.iter().find(could_go)) {
        (true, _) => "This host has no PCI network card.".to_owned(),
        (false, Some(nic)) => format!(
            "Each card works through the kernel, as dev://INTERFACE. To let a program drive a card directly: namehop \
             setup --nic {}",
            nic.address
        ),
        (false, None) => {
            "Each card works through the kernel, as dev://INTERFACE. At present no program can drive one directly."
                .to_owned()
        }
    };
    Finding { subject: "Network cards", found, meaning }
}

fn card(nic: &Nic) -> String {
    let mut text = format!("{}: driver {}", show_nic(nic), nic.driver.as_deref().unwrap_or("none"));
    match (nic.has_link, nic.speed_mbps) {
        (Some(true), Some(speed)) => text.push_str(&format!(", link {speed} Mbit/s")),
        (Some(true), None) => text.push_str(", link up"),
        (Some(false), _) => text.push_str(", link down"),
        (None, _) => {}
    }
    if let Some(node) = nic.node {
        text.push_str(&format!(", NUMA node {node}"));
    }
    match &nic.dpdk_driver {
        Some(driver) if driver.shares_card => text.push_str(&format!(", DPDK: {} (shares the card)", driver.name)),
        Some(driver) => text.push_str(&format!(", DPDK: {}", driver.name)),
        None => text.push_str(", DPDK: no driver"),
    }
    for reason in &nic.uses {
        text.push_str(match reason {
            NicUse::DefaultRoute => ", default route",
            NicUse::SshSession => ", SSH session",
        });
    }
    text
}

fn limits(machine: &Machine) -> Finding {
    let show = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), show_size);
    let mut found = vec![format!("lockable memory of programs started here: {}", show(machine.memory_lock_bytes))];
    let meaning = match &machine.service {
        None => {
            found.push("service: not installed".to_owned());
            "A router started by hand has the permissions of its user."
        }
        Some(service) => {
            let process =
                service.process.map_or_else(|| "not running".to_owned(), |process| format!("process {process}"));
            let interfaces = if service.may_use_interfaces { "may" } else { "may not" };
            found.push(format!("service {}: {process}", service.unit));
            found.push(format!(
                "it may lock {} of memory and {interfaces} use network interfaces",
                show(service.memory_lock_bytes)
            ));
            if service.may_use_interfaces && service.memory_lock_bytes.is_none() {
                "The service has the permissions that ports need."
            } else {
                "The service has few privileges, which is enough for sockets. To use ports, copy namehop-ports.conf \
                 from /usr/share/doc/namehop (package) or /usr/local/share/doc/namehop (make install) to \
                 /etc/systemd/system/namehop.service.d/."
            }
        }
    };
    Finding { subject: "Limits", found, meaning: meaning.to_owned() }
}
