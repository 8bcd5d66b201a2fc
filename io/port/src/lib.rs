//! Ports: links that workers poll by themselves, and packet memory for them. This is the only crate of Namehop that
//! uses DPDK.
//!
//! * [`drivers`]: opens ports, by one driver for each kind of device.
//! * [`faces`]: the ports of a worker and the faces on them.
//! * [`encapsulation`]: the headers around NDN packets on ports.
//! * [`shim`]: loads DPDK at run time; programs are built and start without it.
//! * [`eal`]: DPDK's environment, started once per process when the first port needs it. It uses huge pages if the host
//!   has enough of them, and ordinary memory otherwise.
//! * [`mempool`]: memory for packets. Until the environment runs, packets lie in ordinary memory. A router without
//!   ports pays nothing for DPDK, and a port can be opened at any time.
//! * [`interface`]: queries network interfaces of the kernel.
//! * [`nic`]: ports that DPDK drivers serve.
//! * [`relay`]: threads beside the workers that make the system calls of ports that can block.
//! * [`memory`]: two ends of a link in memory, for tests and benchmarks.
//!
//! Functions that can fail return a [`DpdkError`] that names the failed action. Inline functions of DPDK are called
//! through a small C shim, a shared object (`shim/`); one call moves a whole burst.
//!
//! # Threads
//!
//! Pools can be used from every thread. A thread is registered with DPDK when it first takes a buffer; it then has its
//! own cache in each pool. Threads without a cache use the shared ring of the pool, which is slower but equally safe.
//! The queues of a port belong to one thread at a time.
//!
//! ```
//! use namehop_port::interface::Interface;
//!
//! let interface = Interface::query("lo")?;
//! println!("{interface:?}");
//! assert!(Interface::query("no-such-if").is_err());
//! # Ok::<(), namehop_port::DpdkError>(())
//! ```

mod backoff;
pub mod drivers;
pub mod eal;
pub mod encapsulation;
pub mod error;
pub mod faces;
mod ffi;
pub mod interface;
pub mod losses;
mod mapping;
pub mod memory;
pub mod mempool;
pub mod nic;
mod priority_tag;
pub mod relay;
pub mod shim;
pub mod steering;
mod thread;
pub mod wanted;

/// Maximum number of frames that one call of a port moves.
pub const BURST: usize = 64;

pub use eal::{Devices, Eal};
pub use error::DpdkError;
pub use mempool::{mempool_bytes, use_mempools};
