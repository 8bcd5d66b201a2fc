//! DPDK's environment abstraction layer (EAL): started once per process, when it is first needed.
//!
//! If enough huge pages are free, the EAL allocates at start all huge pages that packets need, so that they are still
//! available when further ports are opened. Otherwise it uses ordinary memory, which needs no privileges. The EAL
//! leaves no files behind, opens no telemetry socket and does not pin the thread that starts it. It probes PCI devices
//! only with [`Devices::Pci`], and then takes only the devices that are opened. Its log goes to `tracing` under the
//! target `namehop_dpdk`.

use std::ffi::{CString, c_char};
use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::slice;
use std::sync::OnceLock;
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::error::DpdkError;
use crate::ffi::Functions;
use crate::shim;

/// Memory for DPDK itself and its drivers, besides packets, in bytes.
const OWN_BYTES: usize = 64 << 20;
const HUGE_PAGE_FOLDER: &str = "/sys/kernel/mm/hugepages";
const STATUS_FILE: &str = "/proc/self/status";
/// A PCI address that no device has.
const NO_CARD: &str = "ffff:ff:1f.7";
/// Longest wait for other routers that are allocating huge pages: several times what an allocation takes.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Memory that holds packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Huge pages of this size in total, allocated at start; DPDK allocates more if needed.
    Huge {
        /// Size in MiB.
        mebibytes: usize,
    },
    /// Ordinary memory of this size, reserved at start; a page is allocated when it is first touched.
    Ordinary {
        /// Size in MiB.
        mebibytes: usize,
    },
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pages::Huge { mebibytes } => write!(f, "{mebibytes} MiB of huge pages"),
            Pages::Ordinary { mebibytes } => write!(f, "{mebibytes} MiB of ordinary pages"),
        }
    }
}

/// Devices that the EAL may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Devices {
    /// No devices.
    None,
    /// PCI network cards that are bound to vfio-pci; each is probed when it is opened. Needs huge pages.
    Pci,
}

/// Proof that the EAL is running. It runs until the process ends.
#[derive(Debug)]
pub struct Eal {
    shim: &'static Functions,
    pages: Pages,
    devices: Devices,
}

static ENVIRONMENT: OnceLock<Result<Eal, DpdkError>> = OnceLock::new();

impl Eal {
    /// Starts the EAL with room for `packet_bytes` bytes of packets, or returns the one that is running. The first call
    /// takes about 0.2 s. A failed start is final: DPDK cannot be started again in the same process. If DPDK cannot be
    /// loaded, the next call tries it again.
    ///
    /// # Errors
    /// Returns [`DpdkError::Load`] if DPDK cannot be loaded, or DPDK's error; the log has more detail.
    pub fn start(packet_bytes: usize, devices: Devices) -> Result<&'static Eal, DpdkError> {
        let shim = shim::load()?;
        ENVIRONMENT.get_or_init(|| start(shim, packet_bytes + OWN_BYTES, devices)).as_ref().map_err(DpdkError::clone)
    }

    /// The functions of the shim, which may be called because the EAL runs.
    pub(crate) fn shim(&self) -> &'static Functions {
        self.shim
    }

    /// Devices that it may use.
    pub fn devices(&self) -> Devices {
        self.devices
    }

    /// Memory that holds packets.
    pub fn pages(&self) -> Pages {
        self.pages
    }
}

fn start(shim: &'static Functions, bytes: usize, devices: Devices) -> Result<Eal, DpdkError> {
    let mebibytes = bytes.div_ceil(1 << 20);
    let _turn = take_turn(Path::new(HUGE_PAGE_FOLDER), LONGEST_WAIT);
    let pool = HugePagePool::read(Path::new(HUGE_PAGE_FOLDER));
    let pages = if pool.available_bytes >= bytes { Pages::Huge { mebibytes } } else { Pages::Ordinary { mebibytes } };
    if pool.bytes > 0 && pool.available_bytes < bytes {
        tracing::warn!(
            "of {} MiB of huge pages only {} MiB are free, but packets need {mebibytes} MiB: using ordinary pages; \
             reserve more with 'namehop setup' and restart",
            pool.bytes >> 20,
            pool.available_bytes >> 20,
        );
    }
    if pool.bytes == 0 {
        tracing::info!(
            "no huge pages are reserved: packets use ordinary pages, which is slower; reserve some with \
            'namehop setup'"
        );
    }
    let arguments: Vec<CString> = arguments(pages, devices, &allowed_processors())
        .into_iter()
        .filter_map(|text| CString::new(text).ok())
        .collect();
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|text| text.as_ptr().cast_mut()).collect();
    let count = i32::try_from(pointers.len()).unwrap_or(0);
    // DPDK ends its own copy of the list with a null pointer too.
    pointers.push(std::ptr::null_mut());
    // SAFETY: called once, because `ENVIRONMENT` is initialised once. DPDK reorders the pointers and copies the texts
    // that it keeps; it does not write to the texts. The log function may be called from every thread.
    let result = unsafe { (shim.eal_start)(count, pointers.as_mut_ptr(), log) };
    DpdkError::check(result, || format!("start DPDK with {pages}"))?;
    tracing::info!(%pages, "DPDK started");
    Ok(Eal { shim, pages, devices })
}

/// Locks `folder` until no other router is counting and allocating huge pages. Two routers that count the same free
/// pages would both try to allocate them; one would fail, and a process can start DPDK only once. Returns `None` after
/// `longest_wait`, so that another holder of the lock does not delay the start for longer.
fn take_turn(folder: &Path, longest_wait: Duration) -> Option<Flock<File>> {
    let end = Instant::now() + longest_wait;
    let mut file = File::open(folder).ok()?;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(turn) => return Some(turn),
            Err((_, Errno::EWOULDBLOCK)) if Instant::now() >= end => return None,
            Err((back, Errno::EWOULDBLOCK)) => file = back,
            Err(_) => return None,
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn arguments(pages: Pages, devices: Devices, processors: &str) -> Vec<String> {
    // The starting thread keeps its CPU affinity.
    let lcores = format!("--lcores=0@({processors})");
    let mut arguments: Vec<String> =
        ["namehop", "--no-telemetry", "--iova-mode=va", "--log-level=notice"].into_iter().map(str::to_owned).collect();
    arguments.push(lcores);
    match devices {
        Devices::None => arguments.push("--no-pci".to_owned()),
        // DPDK probes at start only the devices on this list, so list an address that no card has. Cards are added when
        // they are opened.
        Devices::Pci => arguments.extend(["--allow".to_owned(), NO_CARD.to_owned()]),
    }
    match pages {
        // In memory only: no files, and no other process can attach.
        Pages::Huge { mebibytes } => {
            arguments.extend(["--in-memory".to_owned(), "-m".to_owned(), mebibytes.to_string()]);
        }
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

/// CPUs that this thread may run on, as `0-3,8`.
fn allowed_processors() -> String {
    let status = fs::read_to_string(STATUS_FILE).unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(str::trim);
    match allowed {
        Some(list) if !list.is_empty() => list.to_owned(),
        _ => format!("0-{}", available_parallelism().map_or(0, |count| count.get() - 1)),
    }
}

/// Huge pages of the host, all sizes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct HugePagePool {
    /// Bytes of all huge pages.
    bytes: usize,
    /// Free minus reserved huge pages, in bytes. The kernel counts reserved pages that were never touched as free, but
    /// mapping them fails.
    available_bytes: usize,
}

impl HugePagePool {
    /// Reads the pool from `folder`, which has one sub-folder per page size, such as `hugepages-2048kB`.
    fn read(folder: &Path) -> Self {
        let mut pool = HugePagePool::default();
        for size in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = size.file_name();
            let kibibytes = name.to_str().and_then(|name| name.strip_prefix("hugepages-")?.strip_suffix("kB"));
            let Some(kibibytes) = kibibytes.and_then(|number| number.parse::<usize>().ok()) else { continue };
            let count = |file| -> usize {
                let text = fs::read_to_string(size.path().join(file)).unwrap_or_default();
                text.trim().parse().unwrap_or(0)
            };
            let page_bytes = kibibytes.saturating_mul(1024);
            let free = count("free_hugepages");
            pool.bytes += count("nr_hugepages") * page_bytes;
            pool.available_bytes += free.saturating_sub(count("resv_hugepages")) * page_bytes;
        }
        pool
    }
}

/// Passes DPDK's log lines to `tracing`.
extern "C" fn log(level: u32, text: *const c_char, length: usize) {
    // SAFETY: the shim passes text and length of a line that was just written to its stream.
    let text = unsafe { slice::from_raw_parts(text.cast::<u8>(), length) };
    for line in String::from_utf8_lossy(text).lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        match level {
            // Emergency, alert, critical.
            0..=3 => tracing::error!(target: "namehop_dpdk", "{line}"),
            // DPDK also logs as errors what it then retries in another way, and what it returns to the caller anyway.
            _ => tracing::debug!(target: "namehop_dpdk", "{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routers_take_huge_pages_one_after_another_but_wait_for_nobody_for_ever() {
        let folder = tempfile::tempdir().expect("folder");
        let first = take_turn(folder.path(), Duration::ZERO).expect("the lock is free");
        assert!(take_turn(folder.path(), Duration::from_millis(30)).is_none());
        let path = folder.path().to_owned();
        let second = thread::spawn(move || take_turn(&path, Duration::from_secs(60)).is_some());
        thread::sleep(Duration::from_millis(30));
        drop(first);
        assert!(second.join().expect("thread"), "the second router must get the lock when the first releases it");
        assert!(take_turn(&folder.path().join("none"), Duration::ZERO).is_none());
    }

    #[test]
    fn huge_pages_of_all_sizes_are_added_up_without_those_that_are_promised() {
        let folder = tempfile::tempdir().expect("folder");
        let sizes = [("hugepages-2048kB", [10, 5, 2]), ("hugepages-1048576kB", [2, 1, 0]), ("other", [9, 9, 0])];
        for (name, counts) in sizes {
            let size = folder.path().join(name);
            fs::create_dir(&size).expect("made");
            for (file, count) in ["nr_hugepages", "free_hugepages", "resv_hugepages"].into_iter().zip(counts) {
                fs::write(size.join(file), format!("{count}\n")).expect("written");
            }
        }
        let pool = HugePagePool::read(folder.path());
        assert_eq!((pool.bytes, pool.available_bytes), ((20 << 20) + (2 << 30), (6 << 20) + (1 << 30)));
        assert_eq!(HugePagePool::read(Path::new("/nonexistent")), HugePagePool::default());
    }

    #[test]
    fn ordinary_memory_needs_no_privileges_and_huge_pages_leave_no_files() {
        let ordinary = arguments(Pages::Ordinary { mebibytes: 96 }, Devices::None, "0-1");
        assert!(ordinary.windows(2).any(|pair| pair == ["-m", "96"]) && ordinary.iter().any(|a| a == "--no-huge"));
        assert!(ordinary.iter().any(|a| a == "--no-pci"));
        let huge = arguments(Pages::Huge { mebibytes: 96 }, Devices::Pci, "0-1");
        assert!(
            huge.windows(2).any(|pair| pair == ["-m", "96"])
                && huge.iter().any(|a| a == "--in-memory")
                && !huge.iter().any(|a| a == "--no-huge" || a == "--no-pci")
        );
        assert!(!allowed_processors().is_empty());
    }
}
