//! DPDK, and the only code of Namehop that knows it: packets in mbufs, ports, and the memory behind both.
//!
//! * [`eal`]: DPDK's environment, started once per process and only when a port is first needed, with huge pages where
//!   the machine has enough of them and without anywhere else.
//! * [`mbuf`] and [`pool`]: packets. [`MbufPool`] implements the engine's buffer traits. Before the environment runs its
//!   mbufs lie in ordinary memory, so a router without ports pays nothing for DPDK and can open a port at any time.
//! * [`port`]: ports over memif and AF_PACKET; [`memory`]: two ends of a port in memory, for tests and benches.
//! * [`interface`]: what the kernel knows of a network interface.
//!
//! Functions that can fail give a [`DpdkError`] that says what was tried. Inline functions of DPDK are called through a
//! small C shim (`shim/`); one call moves a whole burst.
//!
//! # Threads
//!
//! Pools are safe from every thread. Threads that take buffers are registered with DPDK at their first one, which gives
//! them a cache of their own in each pool; others go to the shared ring of the pool, which is slower and as safe. A
//! [`port::PortQueue`] belongs to one thread at a time. DPDK has an interrupt thread, on which the memif driver takes away the
//! memory that it shares with a process that has gone; `shim/interrupts.c` keeps that out of the way of bursts.

mod device;
pub mod eal;
pub mod error;
mod ffi;
mod header;
pub mod interface;
pub mod mbuf;
pub mod memory;
mod plain;
pub mod pool;
pub mod port;
mod thread;

pub use eal::Eal;
pub use error::DpdkError;
pub use mbuf::Mbuf;
pub use pool::MbufPool;
