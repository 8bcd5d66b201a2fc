//! DPDK, and the only code of Namehop that knows it: ports, and memory for packets that they can use.
//!
//! * [`eal`]: DPDK's environment, started once per process and only when a port is first needed, with huge pages where
//!   the machine has enough of them and without anywhere else.
//! * [`mempool`]: memory for packets. Before the environment runs they lie in ordinary memory, so a router without ports pays
//!   nothing for DPDK and can open a port at any time.
//! * [`packet_socket`]: ports on network interfaces of the kernel, and [`interface`]: what the kernel knows of those.
//! * [`xdp`]: ports on such interfaces whose frames the kernel hands over before it looks at them (AF_XDP).
//! * [`nic`]: ports that drivers of DPDK serve; [`pci`]: such ports on network cards, without the kernel.
//! * [`tap`]: ports to the kernel of this computer; [`pcap`]: ports that read and write captures. A thread beside the worker, the
//!   [`relay`], makes their system calls.
//! * [`memif`]: ports over memory shared with another process; [`memory`]: two ends of a link in memory, for tests and benches.
//!
//! Functions that can fail give a [`DpdkError`] that says what was tried. Inline functions of DPDK are called through a
//! small C shim (`shim/`); one call moves a whole burst.
//!
//! # Threads
//!
//! Pools are safe from every thread. Threads that take buffers are registered with DPDK at their first one, which gives
//! them a cache of their own in each pool; others go to the shared ring of the pool, which is slower and as safe. The
//! queues of a port belong to one thread at a time.

mod backoff;
pub mod eal;
pub mod error;
mod ffi;
pub mod interface;
pub mod losses;
mod mapping;
pub mod memif;
pub mod memory;
pub mod mempool;
pub mod nic;
pub mod packet_socket;
pub mod pcap;
pub mod pci;
mod priority_tag;
pub mod relay;
pub mod steering;
pub mod tap;
mod thread;
pub mod wanted;
pub mod xdp;

/// Frames that one call of a port moves at most.
pub const BURST: usize = 64;

pub use eal::{Devices, Eal};
pub use error::DpdkError;
pub use mempool::{mempool_bytes, use_mempools};
