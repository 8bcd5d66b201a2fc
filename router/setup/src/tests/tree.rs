//! Simulated hosts: files and links as on Linux.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use crate::System;
use crate::detect::Machine;
use crate::plan::{Plan, SetupRequest};

/// A simulated host in a temporary folder.
pub(super) struct Tree {
    folder: TempDir,
}

/// A QEMU model of an Intel card, a VMware card, and an NVIDIA card.
pub(super) const E1000E: (&str, &str) = ("0x8086", "0x10d3");
pub(super) const VMXNET3: (&str, &str) = ("0x15ad", "0x07b0");
pub(super) const MLX5: (&str, &str) = ("0x15b3", "0x1013");

impl Tree {
    /// Creates a host with this memory, an empty pool of 2 MiB pages, and nothing else.
    pub(super) fn new(memory_gib: u64) -> Tree {
        let tree = Tree { folder: tempfile::tempdir().expect("folder") };
        let kib = memory_gib << 20;
        tree.file(
            "/proc/meminfo",
            &format!("MemTotal: {kib} kB\nMemFree: 1 kB\nMemAvailable: {} kB\nHugepagesize: 2048 kB\n", kib / 10 * 9),
        );
        tree.file("/proc/sys/kernel/osrelease", "6.1.0-test\n");
        tree.file("/proc/self/status", "Name:\tnamehop\nUid:\t0\t0\t0\t0\n");
        tree.file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        tree.file("/sys/devices/system/cpu/online", "0-3\n");
        for cpu in 0..4 {
            tree.file(&format!("/sys/devices/system/cpu/cpu{cpu}/node0/x"), "");
            let siblings = if cpu < 2 { "0-1" } else { "2-3" };
            tree.file(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), siblings);
        }
        tree.pool(2048, 0, 0);
        tree
    }

    pub(super) fn file(&self, path: &str, text: &str) -> &Tree {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
        self
    }

    pub(super) fn link(&self, path: &str, target: &str) -> &Tree {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        symlink(target, path).expect("made");
        self
    }

    pub(super) fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    /// Adds a pool of huge pages.
    pub(super) fn pool(&self, kib: u64, pages: u64, free: u64) -> &Tree {
        let folder = format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB");
        for (file, number) in [("nr_hugepages", pages), ("free_hugepages", free), ("resv_hugepages", 0)] {
            self.file(&format!("{folder}/{file}"), &format!("{number}\n"));
        }
        self
    }

    /// Adds a network card with a driver, an interface and an IOMMU group.
    pub(super) fn nic(&self, address: &str, ids: (&str, &str), interface: &str, group: Option<u32>) -> &Tree {
        let folder = format!("/sys/bus/pci/devices/{address}");
        self.device(address, "0x020000", "kernel_driver", group);
        self.file(&format!("{folder}/vendor"), ids.0).file(&format!("{folder}/device"), ids.1);
        self.file(&format!("{folder}/numa_node"), "-1\n").file(&format!("{folder}/driver_override"), "(null)\n");
        self.file(&format!("{folder}/net/{interface}/x"), "");
        self.file(&format!("/sys/class/net/{interface}/speed"), "10000\n");
        self.file(&format!("/sys/class/net/{interface}/carrier"), "1\n")
    }

    /// Adds another device.
    pub(super) fn device(&self, address: &str, class: &str, driver: &str, group: Option<u32>) -> &Tree {
        let folder = format!("/sys/bus/pci/devices/{address}");
        self.file(&format!("{folder}/class"), class);
        self.link(&format!("{folder}/driver"), &format!("../../../bus/pci/drivers/{driver}"));
        if let Some(group) = group {
            self.link(&format!("{folder}/iommu_group"), &format!("../../../kernel/iommu_groups/{group}"));
            self.file(&format!("/sys/kernel/iommu_groups/{group}/devices/{address}"), "");
        }
        self
    }

    /// Adds DPDK with drivers for all cards here, and the kernel module.
    pub(super) fn with_dpdk(&self) -> &Tree {
        let folder = "/usr/lib/x86_64-linux-gnu/dpdk";
        let text = |name: &str, modules: &str, ids: &str| {
            format!("\u{1}PMD_INFO_STRING= {{\"name\": \"{name}\", \"kmod\": \"{modules}\", \"pci_ids\": [{ids}]}}\0")
        };
        let any = "65535, 65535";
        self.file(&format!("{folder}/pmds-9.0/librte_net_old.so.9.0"), &text("old", "", "[32902, 4307, 65535, 65535]"));
        let folder = format!("{folder}/pmds-23.0");
        let em = text("net_e1000_em", "* igb_uio | vfio-pci", &format!("[32902, 4307, {any}]"));
        self.file(&format!("{folder}/librte_net_e1000.so.23.0"), &em);
        self.link(&format!("{folder}/librte_net_e1000.so.23"), "librte_net_e1000.so.23.0");
        let mlx5 = text("mlx5_eth", "* ib_uverbs & mlx5_core", &format!("[5555, 4115, {any}]"));
        self.file(&format!("{folder}/librte_net_mlx5.so.23.0"), &mlx5);
        self.file(
            "/lib/modules/6.1.0-test/modules.dep",
            "kernel/drivers/vfio/pci/vfio-pci.ko: kernel/drivers/vfio/vfio.ko\n",
        )
    }

    /// Adds a default route through an interface.
    pub(super) fn default_route(&self, interface: &str) -> &Tree {
        let head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n";
        self.file(
            "/proc/net/route",
            &format!(
                "{head}{interface} 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n\
                 {interface} 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"
            ),
        )
    }

    pub(super) fn system(&self) -> System {
        System::new(self.folder.path())
    }

    pub(super) fn machine(&self) -> Machine {
        Machine::detect(&self.system(), None)
    }

    pub(super) fn plan(&self, wishes: &SetupRequest) -> Plan {
        Plan::new(&self.system(), &self.machine(), wishes)
    }

    /// Returns all files with their contents.
    pub(super) fn files(&self) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("read").flatten() {
                let path = entry.path();
                match (path.is_symlink(), path.is_dir()) {
                    (true, _) => {}
                    (false, true) => folders.push(path),
                    (false, false) => found.push((path.clone(), fs::read(path).expect("read"))),
                }
            }
        }
        found.sort();
        found
    }
}

/// Returns whether a path is below another one.
pub(super) fn is_below(path: &Path, folder: &str) -> bool {
    path.to_string_lossy().contains(folder)
}
