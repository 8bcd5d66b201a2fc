//! DPDK's environment (EAL): started once per process, when it is first needed.
//!
//! With enough free huge pages the environment takes those, otherwise ordinary memory, which needs no privileges. It
//! leaves no files behind, looks for no PCI devices, offers no telemetry socket and does not pin the thread that starts it.
//! What it logs goes to `tracing` under the target `namehop_dpdk`.

use std::ffi::{CString, c_char};
use std::fmt;
use std::fs;
use std::path::Path;
use std::slice;
use std::sync::OnceLock;
use std::thread::available_parallelism;

use crate::error::DpdkError;
use crate::ffi;

/// Memory for what DPDK itself and drivers need beside packets, in bytes.
const OWN_BYTES: usize = 64 << 20;
const HUGE_PAGE_FOLDER: &str = "/sys/kernel/mm/hugepages";
const STATUS_FILE: &str = "/proc/self/status";

/// What packets lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Huge pages, taken as needed.
    Huge,
    /// Ordinary memory of this many MiB, reserved at once and touched when first used.
    Ordinary {
        /// Size.
        mebibytes: usize,
    },
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pages::Huge => f.write_str("huge pages"),
            Pages::Ordinary { mebibytes } => write!(f, "{mebibytes} MiB of ordinary pages"),
        }
    }
}

/// Proof that the environment runs; it does so until the process ends.
#[derive(Debug)]
pub struct Eal {
    pages: Pages,
}

static ENVIRONMENT: OnceLock<Result<Eal, DpdkError>> = OnceLock::new();

impl Eal {
    /// Starts the environment with room for `packet_bytes` of packets, or finds it running. Takes some 0.2 s the first
    /// time. A failed start is final: DPDK cannot be started again in the same process.
    ///
    /// # Errors
    /// What DPDK says; more is in the log.
    pub fn start(packet_bytes: usize) -> Result<&'static Eal, DpdkError> {
        ENVIRONMENT.get_or_init(|| start(packet_bytes + OWN_BYTES)).as_ref().map_err(DpdkError::clone)
    }

    /// The environment, if it runs.
    pub fn running() -> Option<&'static Eal> {
        ENVIRONMENT.get()?.as_ref().ok()
    }

    /// What packets lie in.
    pub fn pages(&self) -> Pages {
        self.pages
    }
}

fn start(bytes: usize) -> Result<Eal, DpdkError> {
    let pages = if free_huge_bytes(Path::new(HUGE_PAGE_FOLDER)) >= bytes {
        Pages::Huge
    } else {
        Pages::Ordinary { mebibytes: bytes.div_ceil(1 << 20) }
    };
    let arguments: Vec<CString> =
        arguments(pages, &allowed_processors()).into_iter().filter_map(|text| CString::new(text).ok()).collect();
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|text| text.as_ptr().cast_mut()).collect();
    let count = i32::try_from(pointers.len()).unwrap_or(0);
    // DPDK ends its own list with a null pointer too.
    pointers.push(std::ptr::null_mut());
    // SAFETY: called once, because `ENVIRONMENT` is initialised once. DPDK reorders the pointers and copies what it
    // keeps; it does not write to the texts. The sink may be called from every thread.
    let result = unsafe { ffi::namehop_eal_start(count, pointers.as_mut_ptr(), log) };
    DpdkError::check(result, || format!("start DPDK with {pages}"))?;
    tracing::info!(%pages, "DPDK started");
    Ok(Eal { pages })
}

fn arguments(pages: Pages, processors: &str) -> Vec<String> {
    // The starting thread keeps the processors it had.
    let lcores = format!("--lcores=0@({processors})");
    let mut arguments: Vec<String> = ["namehop", "--no-pci", "--no-telemetry", "--iova-mode=va", "--log-level=notice"]
        .into_iter()
        .map(str::to_owned)
        .collect();
    arguments.push(lcores);
    match pages {
        // In memory only: no files, and no other process can join.
        Pages::Huge => arguments.push("--in-memory".to_owned()),
        Pages::Ordinary { mebibytes } => {
            arguments.extend([
                "--no-huge".to_owned(),
                "--no-shconf".to_owned(),
                "-m".to_owned(),
                mebibytes.to_string(),
            ]);
        }
    }
    arguments
}

/// The processors that this thread may run on, as `0-3,8`.
fn allowed_processors() -> String {
    let status = fs::read_to_string(STATUS_FILE).unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(str::trim);
    match allowed {
        Some(list) if !list.is_empty() => list.to_owned(),
        _ => format!("0-{}", available_parallelism().map_or(0, |count| count.get() - 1)),
    }
}

/// Bytes in free huge pages of all sizes. `folder` has one sub-folder for each size, as `hugepages-2048kB`.
fn free_huge_bytes(folder: &Path) -> usize {
    let Ok(sizes) = fs::read_dir(folder) else { return 0 };
    let bytes = sizes.flatten().filter_map(|size| {
        let name = size.file_name().into_string().ok()?;
        let kibibytes: usize = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let free: usize = fs::read_to_string(size.path().join("free_hugepages")).ok()?.trim().parse().ok()?;
        Some(free * kibibytes * 1024)
    });
    bytes.sum()
}

/// Takes what DPDK logs.
extern "C" fn log(level: u32, text: *const c_char, length: usize) {
    // SAFETY: the shim passes the text of a stream that it has just been given.
    let text = unsafe { slice::from_raw_parts(text.cast::<u8>(), length) };
    for line in String::from_utf8_lossy(text).lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        match level {
            // Emergency, alert, critical.
            0..=3 => tracing::error!(target: "namehop_dpdk", "{line}"),
            // DPDK calls errors what it then does another way, or what the caller is told as well.
            _ => tracing::debug!(target: "namehop_dpdk", "{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_of_all_sizes_are_added_up() {
        let folder = tempfile::tempdir().expect("folder");
        for (name, free) in [("hugepages-2048kB", "3\n"), ("hugepages-1048576kB", "1\n"), ("other", "9\n")] {
            let size = folder.path().join(name);
            fs::create_dir(&size).expect("made");
            fs::write(size.join("free_hugepages"), free).expect("written");
        }
        assert_eq!(free_huge_bytes(folder.path()), 3 * (2 << 20) + (1 << 30));
        assert_eq!(free_huge_bytes(Path::new("/nonexistent")), 0);
    }

    #[test]
    fn ordinary_memory_needs_no_privileges_and_huge_pages_leave_no_files() {
        let ordinary = arguments(Pages::Ordinary { mebibytes: 96 }, "0-1");
        assert!(ordinary.windows(2).any(|pair| pair == ["-m", "96"]) && ordinary.iter().any(|a| a == "--no-huge"));
        let huge = arguments(Pages::Huge, "0-1");
        assert!(huge.iter().any(|a| a == "--in-memory") && !huge.iter().any(|a| a == "--no-huge"));
        assert!(!allowed_processors().is_empty());
    }
}
