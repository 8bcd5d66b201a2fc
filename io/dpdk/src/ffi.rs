//! The functions of the C shim, as `shim/shim.h` declares them.

use std::ffi::{c_char, c_int};

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

unsafe extern "C" {
    pub(crate) fn namehop_eal_start(argc: c_int, argv: *mut *mut c_char, log: LogSink) -> c_int;
    pub(crate) fn namehop_error_text(code: c_int) -> *const c_char;

    pub(crate) fn namehop_thread_is_registered() -> c_int;
    pub(crate) fn namehop_thread_register() -> c_int;
    pub(crate) fn namehop_thread_unregister();

    pub(crate) fn namehop_mempool_create(
        name: *const c_char,
        count: u32,
        room_bytes: u16,
        error: *mut c_int,
    ) -> *mut RawMempool;
    pub(crate) fn namehop_mempool_free(pool: *mut RawMempool);
    pub(crate) fn namehop_mempool_in_use(pool: *const RawMempool) -> u32;
    pub(crate) fn namehop_mbuf_allocate(pool: *mut RawMempool) -> *mut Header;
    pub(crate) fn namehop_mbuf_free(packet: *mut Header);

    pub(crate) fn namehop_ring_create(name: *const c_char, count: u32, error: *mut c_int) -> *mut RawRing;
    pub(crate) fn namehop_ring_free(ring: *mut RawRing);
    pub(crate) fn namehop_ring_push(ring: *mut RawRing, packets: *mut *mut Header, count: u32) -> u32;
    pub(crate) fn namehop_ring_pop(ring: *mut RawRing, packets: *mut *mut Header, count: u32) -> u32;

    pub(crate) fn namehop_nic_open(source: *const NicSource, sample: *const Header, nic: *mut Nic) -> c_int;
    pub(crate) fn namehop_nic_close(number: u16, bus: *const c_char, name: *const c_char);
    pub(crate) fn namehop_nic_has_link(number: u16) -> c_int;
    pub(crate) fn namehop_nic_is_removed(number: u16) -> c_int;
    pub(crate) fn namehop_nic_set_groups(number: u16, groups: *const [u8; 6], count: u32) -> c_int;
    pub(crate) fn namehop_nic_receive_all_groups(number: u16) -> c_int;
    pub(crate) fn namehop_nic_receive_everything(number: u16) -> c_int;
    pub(crate) fn namehop_nic_receive_vlan(number: u16, vlan: u16, is_wanted: c_int) -> c_int;
    pub(crate) fn namehop_nic_losses(number: u16, losses: *mut NicLosses);
    pub(crate) fn namehop_nic_add_rule(
        number: u16,
        rule: *const NicRule,
        flow: *mut *mut RawFlow,
        text: *mut c_char,
        text_bytes: usize,
    ) -> c_int;
    pub(crate) fn namehop_nic_remove_rule(number: u16, flow: *mut RawFlow) -> c_int;
    pub(crate) fn namehop_nic_receive(
        number: u16,
        queue: u16,
        packets: *mut *mut Header,
        count: u16,
        malformed: *mut u32,
    ) -> u16;
    pub(crate) fn namehop_nic_waiting(number: u16, queue: u16) -> u16;
    pub(crate) fn namehop_nic_send(number: u16, queue: u16, packets: *mut *mut Header, count: u16) -> u16;
}
