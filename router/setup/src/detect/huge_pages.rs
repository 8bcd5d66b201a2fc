//! Huge pages: reserved pages by size and NUMA node, and the files that set their number at boot.

use serde::Serialize;

use crate::System;
use crate::boot_files::reserves_huge_pages;

const POOLS: &str = "/sys/kernel/mm/hugepages";
const NODES: &str = "/sys/devices/system/node";
/// Folders with files that set the number of huge pages at boot.
const SETTINGS: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/etc/tmpfiles.d"];

/// Reserved pages of one size on one NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodePool {
    /// Number of the node.
    pub node: u32,
    /// Number of reserved pages.
    pub pages: u64,
    /// Number of unused pages.
    pub free: u64,
}

/// Reserved pages of one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HugePagePool {
    /// Size of a page, in bytes.
    pub page_bytes: u64,
    /// Number of reserved pages.
    pub pages: u64,
    /// Number of pages that are neither used nor promised to a mapping.
    pub free: u64,
    /// Pages of this size by NUMA node.
    pub nodes: Vec<NodePool>,
}

/// Huge pages of all sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HugePages {
    /// Pools by page size, smallest first. Empty if the kernel has no huge pages.
    pub pools: Vec<HugePagePool>,
    /// The size that `vm.nr_hugepages` counts, in bytes.
    pub default_page_bytes: u64,
    /// Mode of transparent huge pages: `always`, `madvise` or `never`; `None` if the kernel has none.
    pub transparent: Option<String>,
}

/// Returns the folder of the pool with this page size.
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
            // The mode in effect is in brackets.
            transparent: transparent.and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())),
        }
    }

    /// Returns the pool with this page size.
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

/// Returns a field of `/proc/meminfo` in bytes; 0 if missing.
pub(super) fn meminfo_bytes(meminfo: &str, field: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0).saturating_mul(1024)
}

/// Returns files and kernel parameters, other than Namehop's files, that set the number of huge pages at boot. The
/// setting that is applied last takes effect.
pub(super) fn other_settings(system: &System) -> Vec<String> {
    let folders = SETTINGS.iter().flat_map(|folder| {
        system
            .names(folder)
            .into_iter()
            .filter(|name| name.ends_with(".conf"))
            .map(move |name| format!("{folder}/{name}"))
    });
    let files = folders.chain(["/etc/sysctl.conf".to_owned()]).filter(|file| !reserves_huge_pages(file));
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
