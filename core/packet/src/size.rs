//! Sizes of packet buffers, the same in ordinary memory and in mempools.

/// Bytes of headroom in front of a fresh packet, for link headers.
pub const HEADROOM_BYTES: usize = 128;
/// Room for a packet in a small buffer, after the headroom: enough for nearly all packets, and for any packet that
/// fits into one buffer of memif and packet sockets with their usual settings.
pub const SMALL_BYTES: usize = 2048;
/// Room for a packet in a large buffer: the largest packet with all its headers.
pub const LARGE_BYTES: usize = 9216;
