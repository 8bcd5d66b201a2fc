//! The functions of the C shim, as `shim/shim.h` declares them.

use std::ffi::{c_char, c_int};

use crate::header::Header;

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

/// Counters of a port since it was opened.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortStatistics {
    /// Frames received.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames sent.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames lost because the receive queue was full.
    pub missed: u64,
    /// Frames that the device found faulty.
    pub receive_errors: u64,
    /// Frames lost because the buffer pool was empty.
    pub no_buffer: u64,
    /// Frames that the device could not send.
    pub send_errors: u64,
}

/// A network interface of the kernel.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RawInterface {
    pub(crate) mtu_bytes: u32,
    pub(crate) is_up: u32,
    pub(crate) address: [u8; 6],
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
        private_bytes: u16,
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

    pub(crate) fn namehop_port_open(name: *const c_char, arguments: *const c_char) -> c_int;
    pub(crate) fn namehop_port_configure(
        port: u16,
        receive_slots: u16,
        send_slots: u16,
        pool: *mut RawMempool,
    ) -> c_int;
    pub(crate) fn namehop_port_start(port: u16) -> c_int;
    pub(crate) fn namehop_port_stop(port: u16) -> c_int;
    pub(crate) fn namehop_port_close(port: u16, name: *const c_char) -> c_int;
    pub(crate) fn namehop_port_mac(port: u16, address: *mut u8) -> c_int;
    pub(crate) fn namehop_port_mtu(port: u16) -> c_int;
    pub(crate) fn namehop_port_is_up(port: u16) -> c_int;
    pub(crate) fn namehop_port_statistics(port: u16, statistics: *mut PortStatistics) -> c_int;
    pub(crate) fn namehop_port_receive(port: u16, packets: *mut *mut Header, count: u16, guarded: c_int) -> u16;
    pub(crate) fn namehop_port_send(port: u16, packets: *mut *mut Header, count: u16, guarded: c_int) -> u16;
    pub(crate) fn namehop_interrupts_are_guarded() -> c_int;

    pub(crate) fn namehop_interface_query(name: *const c_char, interface: *mut RawInterface) -> c_int;
    pub(crate) fn namehop_interface_listen(name: *const c_char) -> c_int;
    pub(crate) fn namehop_interface_join(
        descriptor: c_int,
        name: *const c_char,
        group: *const u8,
        join: c_int,
    ) -> c_int;
    pub(crate) fn namehop_interface_arm(descriptor: c_int, armed: c_int) -> c_int;
}
