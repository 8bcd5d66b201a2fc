//! The C functions of a loadable program, as in `p4/runtime/c/host.h`; the two files must change together.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

use namehop_packet::raw::Header;

/// `P4_HOST_VERSION`
pub(crate) const VERSION: u32 = 8;
/// Bytes that must be readable behind packets and entry data, and writable behind packets (`P4_SLACK`).
pub(crate) const SLACK_BYTES: usize = 16;
/// Room for headers in front of a packet, in bytes (`P4_HEADROOM`).
pub(crate) const HEADROOM_BYTES: usize = 128;
/// Port number of packets that are dropped (`P4_DROPPED`).
pub(crate) const DROPPED: u16 = u16::MAX;

/// `struct p4_host_worker`
#[repr(C)]
pub(crate) struct Worker {
    _private: [u8; 0],
}

/// `struct p4_host_entry`
#[repr(C)]
pub(crate) struct Entry {
    pub(crate) priority: i64,
    pub(crate) prefix: u32,
    pub(crate) action: u32,
    pub(crate) key: *const u64,
    pub(crate) mask: *const u64,
    pub(crate) ranges: *const u64,
    pub(crate) data: *const u8,
    pub(crate) key_words: usize,
    pub(crate) range_words: usize,
    pub(crate) data_bytes: usize,
}

/// `p4_sent`
pub(crate) type Sent = unsafe extern "C" fn(*mut c_void, u64, u64, *const u8, usize);
/// `p4_lost`
pub(crate) type Lost = unsafe extern "C" fn(*mut c_void, u64);
/// `p4_digest`
pub(crate) type Digest = unsafe extern "C" fn(*mut c_void, u64, *const u8, usize);
/// Number of batch sizes that are tried (`P4_SIZES`).
pub(crate) const SIZES: usize = 7;

/// `struct p4_tuned`
#[repr(C)]
#[derive(Default)]
pub(crate) struct Tuned {
    pub(crate) batch: u32,
    pub(crate) choices: u32,
    pub(crate) cycles: [f32; SIZES],
}

type Cells = unsafe extern "C" fn(usize, *mut usize, *mut usize) -> *mut c_void;

/// `struct p4_host_rates`
#[repr(C)]
pub(crate) struct Rates {
    pub(crate) committed_rate: u64,
    pub(crate) committed_burst: u64,
    pub(crate) peak_rate: u64,
    pub(crate) peak_burst: u64,
}

/// `struct p4_host`. If the version differs, only the version may be read.
#[repr(C)]
pub(crate) struct Host {
    pub(crate) version: u32,
    pub(crate) name: *const c_char,
    pub(crate) entries: *const *const c_char,
    pub(crate) description: *const c_char,
    pub(crate) straight: bool,
    pub(crate) one_worker: bool,
    pub(crate) batch: u32,
    pub(crate) automatic: bool,
    pub(crate) start: unsafe extern "C" fn(c_uint) -> bool,
    pub(crate) worker_new: unsafe extern "C" fn(c_uint, Sent, Lost, Digest, *mut c_void) -> *mut Worker,
    pub(crate) worker_free: unsafe extern "C" fn(*mut Worker),
    pub(crate) process: unsafe extern "C" fn(*mut Worker, *const NonNull<Header>, usize),
    pub(crate) mirror: unsafe extern "C" fn(*mut Worker, u64, bool, u64, u32),
    pub(crate) unmirror: unsafe extern "C" fn(*mut Worker, u64),
    pub(crate) group: unsafe extern "C" fn(*mut Worker, u64),
    pub(crate) member: unsafe extern "C" fn(*mut Worker, u64, u64, u64),
    pub(crate) change: unsafe extern "C" fn(usize, c_uint, *const Entry, *mut c_char, usize) -> bool,
    pub(crate) set_default: unsafe extern "C" fn(usize, u32, *const u8, usize, *mut c_char, usize) -> bool,
    pub(crate) counters: Cells,
    pub(crate) registers: Cells,
    pub(crate) meter_set: unsafe extern "C" fn(usize, usize, *const Rates) -> bool,
    pub(crate) value_set: unsafe extern "C" fn(usize, *const u64, usize, usize) -> bool,
    pub(crate) digest_count: usize,
    pub(crate) size_count: usize,
    pub(crate) sizes: *const u32,
    pub(crate) tuned: unsafe extern "C" fn(*const Worker, *mut Tuned) -> bool,
}

// SAFETY: the structure is not written to once the program is loaded. Functions that change tables synchronize with
// each other; functions for one worker are called only by the holder of its engine; cells are accessed as atomic
// numbers.
unsafe impl Sync for Host {}
// SAFETY: as above.
unsafe impl Send for Host {}

// The C types that are passed as Rust numbers have these sizes.
const _: () = assert!(size_of::<c_int>() == 4 && size_of::<usize>() == 8);
