//! The memory of the host that is available to this process: the minimum of the kernel's available memory and of the
//! memory left in the control groups of the process and in their ancestors.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use namehop_table::HugePages;

/// Limits of control groups from this value on mean no limit.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// Memory for this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostMemory {
    /// Bytes that the process can allocate before an allocation fails or the process is killed.
    pub available_bytes: usize,
    /// The limiting factor.
    pub source: Source,
    /// Free bytes on reserved huge pages of 2 MiB.
    pub huge_2m_bytes: usize,
    /// Free bytes on reserved huge pages of 1 GiB.
    pub huge_1g_bytes: usize,
}

/// The limiting factor of this process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The available memory of the host (`MemAvailable`, proc(5)).
    Host,
    /// The limit of the control group with this folder.
    ControlGroup(PathBuf),
}

impl fmt::Display for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = self.available_bytes >> 20;
        match &self.source {
            Source::Host => write!(f, "three quarters of the {mebibytes} MiB available on this host"),
            Source::ControlGroup(folder) => {
                write!(f, "three quarters of the {mebibytes} MiB left in the control group {}", folder.display())
            }
        }
    }
}

impl HostMemory {
    /// Reads the kernel's files below `root`. `None` if there are none.
    pub fn read(root: &Path) -> Option<HostMemory> {
        let host = available_on_host(root).map(|bytes| (bytes, Source::Host));
        let (bytes, source) = groups(root)
            .into_iter()
            .filter_map(|group| Some((group.left_bytes()?, Source::ControlGroup(group.shown))))
            .chain(host)
            .min_by_key(|(bytes, _)| *bytes)?;
        let free = |kibibytes: usize| free_huge_pages(root, kibibytes).saturating_mul(kibibytes << 10);
        Some(HostMemory {
            available_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            source,
            huge_2m_bytes: free(2 << 10),
            huge_1g_bytes: free(1 << 20),
        })
    }

    /// Returns the bytes on huge pages that tables use with this setting.
    pub fn pool_bytes_for(&self, huge_pages: HugePages) -> usize {
        match huge_pages {
            HugePages::Auto => self.huge_2m_bytes.saturating_add(self.huge_1g_bytes),
            HugePages::OneGiB => self.huge_1g_bytes,
            HugePages::TwoMiB => self.huge_2m_bytes,
            HugePages::Transparent | HugePages::Off => 0,
        }
    }
}

fn available_on_host(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let kibibytes = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    kibibytes.trim().trim_end_matches(" kB").parse::<u64>().ok()?.checked_mul(1 << 10)
}

fn free_huge_pages(root: &Path, kibibytes: usize) -> usize {
    let folder = root.join(format!("sys/kernel/mm/hugepages/hugepages-{kibibytes}kB"));
    let count = |file: &str| number(&folder.join(file)).unwrap_or(0);
    usize::try_from(count("free_hugepages").saturating_sub(count("resv_hugepages"))).unwrap_or(0)
}

/// A version of the memory controller, with the names of its files.
#[derive(Debug, Clone, Copy)]
struct Version {
    /// Files with the limits; the smallest limit applies.
    limits: &'static [&'static str],
    usage: &'static str,
    /// Lines of `memory.stat` with memory that the kernel reclaims before an allocation fails.
    file_cache: [&'static str; 2],
}

const V1: Version = Version {
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    file_cache: ["total_active_file", "total_inactive_file"],
};
const V2: Version = Version {
    limits: &["memory.max", "memory.high"],
    usage: "memory.current",
    file_cache: ["active_file", "inactive_file"],
};

/// A control group of this process, or an ancestor of one.
#[derive(Debug)]
struct ControlGroup {
    folder: PathBuf,
    /// The folder as this process sees it.
    shown: PathBuf,
    version: Version,
}

impl ControlGroup {
    /// Returns the bytes left up to the limit; `None` without a limit.
    fn left_bytes(&self) -> Option<u64> {
        let limits = self.version.limits.iter().filter_map(|file| number(&self.folder.join(file)));
        let limit = limits.filter(|limit| *limit < NO_LIMIT_BYTES).min()?;
        let used = number(&self.folder.join(self.version.usage)).unwrap_or(0);
        let stat = fs::read_to_string(self.folder.join("memory.stat")).unwrap_or_default();
        let of = |name: &&str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(*name)?.strip_prefix(' '));
            line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let cache: u64 = self.version.file_cache.iter().map(of).sum();
        Some(limit.saturating_sub(used.saturating_sub(cache)))
    }
}

/// Returns the control groups of this process with a memory controller, and their ancestors as far as visible.
fn groups(root: &Path) -> Vec<ControlGroup> {
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let (mounts, own) = (read("proc/self/mountinfo"), read("proc/self/cgroup"));
    let mut groups = Vec::new();
    for mount in mounts.lines().filter_map(Mount::parse) {
        let Some(path) = own.lines().find_map(|line| mount.path_of(line)) else { continue };
        // If the mount shows another part of the hierarchy, as in some containers, the group is the folder of the
        // mount.
        let below = path.strip_prefix(mount.root).unwrap_or("");
        let top = Path::new(mount.point);
        let own: PathBuf = top.components().chain(Path::new(below.trim_start_matches('/')).components()).collect();
        for folder in own.ancestors().take_while(|folder| folder.starts_with(top)) {
            groups.push(ControlGroup {
                folder: root.join(folder.strip_prefix("/").unwrap_or(folder)),
                shown: folder.to_path_buf(),
                version: mount.version,
            });
        }
    }
    groups
}

/// A mounted hierarchy of control groups that may have the memory controller (proc_pid_mountinfo(5)).
struct Mount<'a> {
    /// The group that the mount shows as its root.
    root: &'a str,
    point: &'a str,
    version: Version,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let mut filesystem = filesystem.split(' ');
        let (kind, options) = (filesystem.next()?, filesystem.nth(1).unwrap_or_default());
        let version = match kind {
            "cgroup2" => V2,
            "cgroup" if options.split(',').any(|option| option == "memory") => V1,
            _ => return None,
        };
        Some(Mount { root: if root == "/" { "" } else { root }, point, version })
    }

    /// Returns the path of this process's group in this hierarchy, if `line` is about it (cgroups(7):
    /// "hierarchy:controllers:path").
    fn path_of<'b>(&self, line: &'b str) -> Option<&'b str> {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_here = match self.version.usage == V2.usage {
            true => controllers.is_empty(),
            false => controllers.split(',').any(|controller| controller == "memory"),
        };
        is_here.then_some(path)
    }
}

/// Returns the number in a file; `None` also for "max".
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}
