//! Huge pages: how many were set aside of each size, on which NUMA node, and who sets that at boot.

use serde::Serialize;

use crate::System;
use crate::plan::is_own_file;

const POOLS: &str = "/sys/kernel/mm/hugepages";
const NODES: &str = "/sys/devices/system/node";
/// Where the number of huge pages is set at boot.
const SETTINGS: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/etc/tmpfiles.d"];

/// Pages of one size on one NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodePool {
    /// Number of the node.
    pub node: u32,
    /// Pages that are set aside.
    pub pages: u64,
    /// Those that nobody uses.
    pub free: u64,
}

/// Pages of one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HugePagePool {
    /// Size of a page, in bytes.
    pub page_bytes: u64,
    /// Pages that are set aside.
    pub pages: u64,
    /// Those that nobody uses and nobody was promised.
    pub free: u64,
    /// The same for each NUMA node.
    pub nodes: Vec<NodePool>,
}

/// All sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HugePages {
    /// By size, smallest first. Empty when the kernel has none.
    pub pools: Vec<HugePagePool>,
    /// The size that `vm.nr_hugepages` counts, in bytes.
    pub default_page_bytes: u64,
    /// Transparent huge pages: `always`, `madvise` or `never`; absent when the kernel has none.
    pub transparent: Option<String>,
}

/// The folder of the pool of one size.
pub(crate) fn pool_folder(page_bytes: u64) -> String {
    format!("{POOLS}/hugepages-{}kB", page_bytes >> 10)
}

impl HugePages {
    pub(super) fn read(system: &System, meminfo: &str) -> Self {
        let mut pools: Vec<HugePagePool> = page_sizes(system, POOLS)
            .into_iter()
            .map(|page_bytes| {
                let count = |file| system.number(&format!("{}/{file}", pool_folder(page_bytes))).unwrap_or(0);
                let free: u64 = count("free_hugepages");
                HugePagePool {
                    page_bytes,
                    pages: count("nr_hugepages"),
                    free: free.saturating_sub(count("resv_hugepages")),
                    nodes: nodes(system, page_bytes),
                }
            })
            .collect();
        pools.sort_unstable_by_key(|pool| pool.page_bytes);
        let transparent = system.read("/sys/kernel/mm/transparent_hugepage/enabled");
        HugePages {
            pools,
            default_page_bytes: meminfo_bytes(meminfo, "Hugepagesize"),
            // The choice that counts is in brackets.
            transparent: transparent.and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())),
        }
    }

    /// The pool of one size.
    pub fn pool(&self, page_bytes: u64) -> Option<&HugePagePool> {
        self.pools.iter().find(|pool| pool.page_bytes == page_bytes)
    }
}

fn page_sizes(system: &System, folder: &str) -> Vec<u64> {
    let names = system.names(folder).into_iter();
    let kibibytes = names.filter_map(|name| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<u64>().ok());
    kibibytes.filter_map(|kibibytes| kibibytes.checked_mul(1024)).collect()
}

fn nodes(system: &System, page_bytes: u64) -> Vec<NodePool> {
    let names = system.names(NODES).into_iter();
    let mut pools: Vec<NodePool> = names
        .filter_map(|name| {
            let folder = format!("{NODES}/{name}/hugepages/hugepages-{}kB", page_bytes >> 10);
            Some(NodePool {
                node: name.strip_prefix("node")?.parse().ok()?,
                pages: system.number(&format!("{folder}/nr_hugepages"))?,
                free: system.number(&format!("{folder}/free_hugepages")).unwrap_or(0),
            })
        })
        .collect();
    pools.sort_unstable_by_key(|pool| pool.node);
    pools
}

/// A line of `/proc/meminfo`, in bytes; 0 when it is not there.
pub(super) fn meminfo_bytes(meminfo: &str, field: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0).saturating_mul(1024)
}

/// Files and kernel parameters other than ours that set the number of huge pages at boot: whoever comes last wins.
pub(super) fn other_settings(system: &System) -> Vec<String> {
    let folders = SETTINGS.iter().flat_map(|folder| {
        system
            .names(folder)
            .into_iter()
            .filter(|name| name.ends_with(".conf"))
            .map(move |name| format!("{folder}/{name}"))
    });
    let files = folders.chain(["/etc/sysctl.conf".to_owned()]).filter(|file| !is_own_file(file));
    let sets = |file: &String| {
        let text = system.read(file).unwrap_or_default();
        let mut lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
        lines.any(|line| line.contains("nr_hugepages"))
    };
    let mut found: Vec<String> = files.filter(sets).collect();
    let parameters = system.read("/proc/cmdline").unwrap_or_default();
    found.extend(
        parameters
            .split_whitespace()
            .filter(|word| word.starts_with("hugepages="))
            .map(|word| format!("kernel parameter {word}")),
    );
    found
}
