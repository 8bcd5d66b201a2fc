//! What the engine, faces and ports share: packet buffers, network packets with their link fields, face numbers, time.
//!
//! | module | what |
//! |---|---|
//! | [`buffer`] | one packet in memory |
//! | [`pool`] | where buffers come from |
//! | [`packet`] | Interests, Data and Nacks between link services and the engine |
//! | [`port`] | what drivers of ports give to workers |
//! | [`face`] | what everybody knows of a face |
//! | [`drops`] | why packets are discarded |
//! | [`time`], [`rtt`] | time, and round trips |
//! | [`in_place`] | values built where they are to lie |
//! | [`checksum`] | the checksum of Internet protocols |
//!
//! A buffer has the layout of DPDK's `struct rte_mbuf`, so that ports send and receive it without a copy; this crate knows
//! that layout and nothing else of DPDK.

pub mod buffer;
pub mod checksum;
pub mod drops;
pub mod face;
pub mod in_place;
pub mod packet;
pub mod pool;
pub mod port;
pub mod raw;
pub mod rtt;
pub mod stamp;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod time;

pub use buffer::PacketBuffer;
pub use checksum::Checksum;
pub use drops::{DropCounters, DropReason};
pub use face::{FaceId, FaceInfo, FaceScope, LinkType};
pub use packet::{Incoming, IncomingBurst, LinkFields, Outgoing, PacketKind};
pub use pool::{BufferPool, HEADROOM_BYTES};
pub use port::PortQueue;
pub use stamp::{PacketWay, Stamp};
pub use time::Timestamp;
