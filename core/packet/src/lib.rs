//! Types that the engine, faces and ports share: packet buffers, network packets with link fields, face numbers,
//! time.
//!
//! | module | contents |
//! |---|---|
//! | [`buffer`] | a packet in memory |
//! | [`pool`] | pools of buffers |
//! | [`mempool`] | sources of buffers that drivers of ports can access |
//! | [`raw`], [`size`] | the layout and the sizes of buffers |
//! | [`packet`] | Interests, Data and Nacks between link services and the engine |
//! | [`port`] | the interface between drivers of ports and workers |
//! | [`face`] | properties of faces |
//! | [`drops`] | reasons for dropping packets |
//! | [`counters!`] | declares counters |
//! | [`time`], [`rtt`] | timestamps and round-trip times |
//! | [`in_place`] | values built in place |
//! | [`checksum`] | the Internet checksum |
//!
//! A buffer has the layout of DPDK's `struct rte_mbuf`, so that ports send and receive it without a copy; this crate
//! depends on nothing else of DPDK.
//!
//! ```
//! use namehop_packet::BufferPool;
//!
//! // A pool of at most ten small and ten large buffers.
//! let pool = BufferPool::new(10, 10);
//! let packet = pool.copy_of(b"a packet").expect("the pool has buffers");
//! assert_eq!((packet.bytes(), pool.in_use()), (&b"a packet"[..], 1));
//! drop(packet);
//! assert_eq!(pool.in_use(), 0);
//! ```

pub mod buffer;
pub mod checksum;
mod counters;
pub mod drops;
pub mod face;
pub mod in_place;
mod memory;
pub mod mempool;
pub mod packet;
pub mod pool;
pub mod port;
pub mod raw;
pub mod rtt;
pub mod size;
pub mod stamp;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod time;

pub use buffer::PacketBuffer;
pub use checksum::Checksum;
pub use drops::{DropCounters, DropReason};
pub use face::{FaceId, FaceInfo, FaceScope, LinkType};
pub use packet::{Incoming, IncomingBurst, LinkFields, Outgoing, PacketKind};
pub use pool::BufferPool;
pub use port::PortQueue;
pub use size::HEADROOM_BYTES;
pub use stamp::{PacketWay, Stamp};
pub use time::Timestamp;
