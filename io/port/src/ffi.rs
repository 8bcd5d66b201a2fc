//! The table of functions of the C shim, and their structures, as `shim/shim.h` declares them.

use std::ffi::{c_char, c_int};
use std::ptr::NonNull;

use namehop_packet::raw::Header;

/// `struct rte_mempool`, opaque.
#[repr(C)]
pub(crate) struct RawMempool {
    _opaque: [u8; 0],
}

/// `struct rte_ring`, opaque.
#[repr(C)]
pub(crate) struct RawRing {
    _opaque: [u8; 0],
}

/// Identifies the device for a driver, as `struct namehop_nic_source`.
#[repr(C)]
pub(crate) struct NicSource {
    pub(crate) bus: *const c_char,
    pub(crate) name: *const c_char,
    pub(crate) arguments: *const c_char,
    pub(crate) mtu_bytes: u16,
    pub(crate) slots: u16,
    pub(crate) queues: u16,
}

/// A network card that is open, as `struct namehop_nic`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Nic {
    pub(crate) number: u16,
    pub(crate) mtu_bytes: u16,
    pub(crate) queues: u16,
    pub(crate) spreads: u16,
    pub(crate) address: [u8; 6],
}

/// Frames that a card dropped, as `struct namehop_nic_losses`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct NicLosses {
    pub(crate) ring_full: u64,
    pub(crate) no_buffer: u64,
    pub(crate) malformed: u64,
    pub(crate) send_failed: u64,
}

/// `struct rte_flow`, opaque.
#[repr(C)]
pub(crate) struct RawFlow {
    _opaque: [u8; 0],
}

/// A rule that steers the frames of one sender to a queue, as `struct namehop_nic_rule`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct NicRule {
    pub(crate) ip_version: u8,
    pub(crate) hardware_source: [u8; 6],
    pub(crate) source: [u8; 16],
    pub(crate) destination: [u8; 16],
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) vlan: u16,
    pub(crate) queue: u16,
}

pub(crate) type LogSink = extern "C" fn(level: u32, text: *const c_char, length: usize);

/// Version of the table and of the structures above; `shim/shim.h` says when to raise it.
pub(crate) const VERSION: u64 = 1;

/// All functions of the shim, as `struct namehop_dpdk_functions`; `shim/shim.h` documents them. Cards, rings and
/// mempools exist only while DPDK runs, so only the functions that create them require that it does.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Functions {
    pub(crate) version: u64,
    pub(crate) mbuf_allocate: unsafe extern "C" fn(pool: *mut RawMempool) -> *mut Header,
    pub(crate) mbuf_free: unsafe extern "C" fn(packet: NonNull<Header>),
    pub(crate) nic_receive: unsafe extern "C" fn(
        number: u16,
        queue: u16,
        packets: *mut *mut Header,
        count: u16,
        malformed: *mut u32,
    ) -> u16,
    pub(crate) nic_waiting: unsafe extern "C" fn(number: u16, queue: u16) -> u16,
    pub(crate) nic_send: unsafe extern "C" fn(number: u16, queue: u16, packets: *mut *mut Header, count: u16) -> u16,
    pub(crate) ring_push: unsafe extern "C" fn(ring: *mut RawRing, packets: *mut *mut Header, count: u32) -> u32,
    pub(crate) ring_pop: unsafe extern "C" fn(ring: *mut RawRing, packets: *mut *mut Header, count: u32) -> u32,
    pub(crate) eal_start: unsafe extern "C" fn(argc: c_int, argv: *mut *mut c_char, log: LogSink) -> c_int,
    pub(crate) thread_register: unsafe extern "C" fn() -> c_int,
    pub(crate) thread_unregister: unsafe extern "C" fn(),
    pub(crate) mempool_create:
        unsafe extern "C" fn(name: *const c_char, count: u32, room_bytes: u16, error: *mut c_int) -> *mut RawMempool,
    pub(crate) mempool_free: unsafe extern "C" fn(pool: *mut RawMempool),
    pub(crate) mempool_in_use: unsafe extern "C" fn(pool: *const RawMempool) -> u32,
    pub(crate) ring_create: unsafe extern "C" fn(name: *const c_char, count: u32, error: *mut c_int) -> *mut RawRing,
    pub(crate) ring_free: unsafe extern "C" fn(ring: *mut RawRing),
    pub(crate) nic_open: unsafe extern "C" fn(source: *const NicSource, sample: *const Header, nic: *mut Nic) -> c_int,
    pub(crate) nic_close: unsafe extern "C" fn(number: u16, bus: *const c_char, name: *const c_char),
    pub(crate) nic_has_link: unsafe extern "C" fn(number: u16) -> c_int,
    pub(crate) nic_is_removed: unsafe extern "C" fn(number: u16) -> c_int,
    pub(crate) nic_set_groups: unsafe extern "C" fn(number: u16, groups: *const [u8; 6], count: u32) -> c_int,
    pub(crate) nic_receive_all_groups: unsafe extern "C" fn(number: u16) -> c_int,
    pub(crate) nic_receive_everything: unsafe extern "C" fn(number: u16) -> c_int,
    pub(crate) nic_receive_vlan: unsafe extern "C" fn(number: u16, vlan: u16, is_wanted: c_int) -> c_int,
    pub(crate) nic_losses: unsafe extern "C" fn(number: u16, losses: *mut NicLosses),
    pub(crate) nic_add_rule: unsafe extern "C" fn(
        number: u16,
        rule: *const NicRule,
        flow: *mut *mut RawFlow,
        text: *mut c_char,
        text_bytes: usize,
    ) -> c_int,
    pub(crate) nic_remove_rule: unsafe extern "C" fn(number: u16, flow: *mut RawFlow) -> c_int,
}
