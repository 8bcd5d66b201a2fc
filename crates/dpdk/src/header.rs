//! The layout of `struct rte_mbuf` as far as this crate reads and writes it by itself.
//!
//! The packet path looks at a packet several times, so that is done without calls. `shim/shim.c` asserts the same
//! offsets against the headers of the DPDK that is linked.

use std::ffi::c_void;
use std::mem::{offset_of, size_of};

use namehop_forward::buffer::HEADROOM_BYTES;

use crate::ffi::RawMempool;

/// Bytes of the private area of every mbuf, between its header and its packet: room for the parsed summary of a packet.
pub const PRIVATE_BYTES: usize = 256;
/// Room for a packet in a small mbuf, behind the headroom: nearly all packets, and whatever fits into one buffer of the
/// memif and of packet sockets as they are usually set up.
pub const SMALL_BYTES: usize = 2048;
/// Room for a packet in a large mbuf: the largest packet there is with all its headers.
pub const LARGE_BYTES: usize = 9216;

/// Bit of `flags` that says that the private area holds a summary. Cleared with all others when an mbuf is taken from its
/// pool; reserved when the environment starts, so that no driver uses it.
pub(crate) const HAS_SUMMARY: u64 = 1 << 40;

/// `struct rte_mbuf`.
#[repr(C, align(64))]
pub(crate) struct Header {
    /// First byte of the headroom.
    pub(crate) storage: *mut u8,
    /// On a plain mbuf: the pool that it returns to. Otherwise the address that devices use, which is DPDK's affair.
    pub(crate) plain_owner: *const c_void,
    /// Where the packet begins in `storage`.
    pub(crate) data_offset: u16,
    pub(crate) references: u16,
    pub(crate) segments: u16,
    _port: u16,
    pub(crate) flags: u64,
    _packet_type: u32,
    /// Bytes in all segments.
    pub(crate) packet_bytes: u32,
    /// Bytes in this segment.
    pub(crate) data_bytes: u16,
    _tags_and_hash: [u8; 12],
    /// Bytes at `storage`.
    pub(crate) storage_bytes: u16,
    /// Null on a plain mbuf.
    pub(crate) pool: *mut RawMempool,
    pub(crate) next: *mut Header,
    _offload: [u64; 2],
    pub(crate) private_bytes: u16,
    _rest: [u8; 38],
}

const _: () = {
    assert!(size_of::<Header>() == 128);
    assert!(offset_of!(Header, data_offset) == 16);
    assert!(offset_of!(Header, references) == 18);
    assert!(offset_of!(Header, segments) == 20);
    assert!(offset_of!(Header, flags) == 24);
    assert!(offset_of!(Header, packet_bytes) == 36);
    assert!(offset_of!(Header, data_bytes) == 40);
    assert!(offset_of!(Header, storage_bytes) == 54);
    assert!(offset_of!(Header, pool) == 56);
    assert!(offset_of!(Header, next) == 64);
    assert!(offset_of!(Header, plain_owner) == 8);
    assert!(offset_of!(Header, private_bytes) == 88);
    // Lengths of storage are 16-bit numbers.
    assert!(HEADROOM_BYTES + LARGE_BYTES <= u16::MAX as usize);
};

impl Header {
    /// Sets the bytes of an mbuf in one segment.
    #[inline]
    pub(crate) fn set_length(&mut self, bytes: u16) {
        self.data_bytes = bytes;
        self.packet_bytes = u32::from(bytes);
    }

    /// The header of a plain mbuf that nobody uses, for storage behind it.
    pub(crate) fn plain(storage: *mut u8, storage_bytes: u16) -> Header {
        Header {
            storage,
            plain_owner: std::ptr::null(),
            data_offset: HEADROOM_BYTES as u16,
            references: 1,
            segments: 1,
            _port: u16::MAX,
            flags: 0,
            _packet_type: 0,
            packet_bytes: 0,
            data_bytes: 0,
            _tags_and_hash: [0; 12],
            storage_bytes,
            pool: std::ptr::null_mut(),
            next: std::ptr::null_mut(),
            _offload: [0; 2],
            private_bytes: PRIVATE_BYTES as u16,
            _rest: [0; 38],
        }
    }

    /// Empties a plain mbuf that is handed out. Touches the first cache line only.
    pub(crate) fn hand_out(&mut self, plain_owner: *const c_void) {
        self.plain_owner = plain_owner;
        self.data_offset = HEADROOM_BYTES as u16;
        self.flags = 0;
        self.set_length(0);
    }
}
