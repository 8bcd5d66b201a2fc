//! The layout of a packet buffer in memory: the fields of DPDK's `struct rte_mbuf` that Namehop reads and writes.
//!
//! The packet path accesses a packet several times, so this is done without function calls. The shim of the crate
//! `port` asserts the same offsets against the headers of the DPDK version that is linked.

use std::ffi::c_void;
use std::mem::{offset_of, size_of};

use crate::size::{HEADROOM_BYTES, LARGE_BYTES};

/// `struct rte_mbuf`.
#[repr(C, align(64))]
pub struct Header {
    /// First byte of the headroom.
    pub(crate) storage: *mut u8,
    /// In ordinary memory, the pool that the buffer returns to. Otherwise the I/O address, which only DPDK uses.
    pub(crate) owner: *const c_void,
    /// Offset of the packet in `storage`.
    pub(crate) data_offset: u16,
    references: u16,
    segments: u16,
    /// Port that the packet was received on or is sent to.
    pub(crate) port: u16,
    _flags: u64,
    _packet_type: u32,
    /// Number of bytes in all segments.
    packet_bytes: u32,
    /// Number of bytes in this segment.
    pub(crate) data_bytes: u16,
    _tags_and_hash: [u8; 12],
    /// Size of `storage` in bytes.
    pub(crate) storage_bytes: u16,
    /// Null in ordinary memory.
    pub(crate) mempool: *mut c_void,
    next: *mut Header,
    _offload: [u64; 2],
    private_bytes: u16,
    _rest: [u8; 38],
}

const _: () = {
    assert!(size_of::<Header>() == 128);
    assert!(offset_of!(Header, owner) == 8);
    assert!(offset_of!(Header, data_offset) == 16);
    assert!(offset_of!(Header, references) == 18);
    assert!(offset_of!(Header, segments) == 20);
    assert!(offset_of!(Header, port) == 22);
    assert!(offset_of!(Header, _flags) == 24);
    assert!(offset_of!(Header, packet_bytes) == 36);
    assert!(offset_of!(Header, data_bytes) == 40);
    assert!(offset_of!(Header, storage_bytes) == 54);
    assert!(offset_of!(Header, mempool) == 56);
    assert!(offset_of!(Header, next) == 64);
    assert!(offset_of!(Header, private_bytes) == 88);
    // Storage sizes are 16-bit integers.
    assert!(HEADROOM_BYTES + LARGE_BYTES <= u16::MAX as usize);
};

impl Header {
    /// Sets the length of a packet in one segment.
    #[inline]
    pub(crate) fn set_length(&mut self, bytes: u16) {
        self.data_bytes = bytes;
        self.packet_bytes = u32::from(bytes);
    }

    /// Makes the header of an unused buffer in ordinary memory, with its storage behind the header.
    pub(crate) fn ordinary(storage: *mut u8, storage_bytes: u16) -> Header {
        Header {
            storage,
            owner: std::ptr::null(),
            data_offset: HEADROOM_BYTES as u16,
            references: 1,
            segments: 1,
            port: u16::MAX,
            _flags: 0,
            _packet_type: 0,
            packet_bytes: 0,
            data_bytes: 0,
            _tags_and_hash: [0; 12],
            storage_bytes,
            mempool: std::ptr::null_mut(),
            next: std::ptr::null_mut(),
            _offload: [0; 2],
            private_bytes: 0,
            _rest: [0; 38],
        }
    }

    /// Resets a buffer in ordinary memory when it is allocated. Touches the first cache line only.
    #[inline]
    pub(crate) fn hand_out(&mut self, owner: *const c_void) {
        self.owner = owner;
        self.data_offset = HEADROOM_BYTES as u16;
        self.set_length(0);
    }
}
