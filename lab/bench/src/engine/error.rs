//! Why the engine could not be measured.

use namehop_engine::fib::FibError;
use namehop_store::PolicyKind;
use namehop_wire::DecodeError;

use crate::workload::WorkloadError;

/// Why the engine could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum EngineBenchError {
    /// The workload is impossible.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The FIB is full.
    #[error("the FIB accepted no more prefixes: {0}")]
    Fib(#[from] FibError),
    /// The workload generated an invalid name.
    #[error("the workload generated an invalid name: {0}")]
    Name(#[from] DecodeError),
    /// DPDK did not start, or memory could not be allocated.
    #[error("{0}; 'namehop bench engine --help' lists the requirements")]
    Dpdk(#[from] namehop_port::DpdkError),
    /// Tables or faces could not be created.
    #[error("cannot assemble the router: {0}")]
    Rig(String),
    /// The worker did not forward all packets.
    #[error("the worker forwarded {got} of {expected} packets of a burst; reduce --in-flight or enlarge the tables")]
    Lost {
        /// Packets sent by the worker.
        got: usize,
        /// Packets that it should have sent.
        expected: usize,
    },
    /// The warm-up had too few requests.
    #[error(
        "after warming up, the cache of '{policy}' holds {got} of {capacity} packets; increase --warm-up or reduce \
         --cs"
    )]
    Cold {
        /// Policy of the cache.
        policy: PolicyKind,
        /// Packets in the cache.
        got: usize,
        /// Capacity of the cache in packets.
        capacity: usize,
    },
    /// The flood's parameters are invalid.
    #[error("invalid flood: {0}")]
    Flood(String),
    /// The second tier of the Content Store could not be opened.
    #[error(transparent)]
    Disk(#[from] namehop_disk::OpenError),
    /// A disk cannot be frozen, or does not work again afterwards.
    #[error("{0}")]
    Freeze(String),
    /// Reading the counters failed.
    #[error("the hardware counters failed: {0}")]
    Counters(#[source] std::io::Error),
    /// There are too few cores.
    #[error("{wanted} workers need as many cores, but only {cores} are usable")]
    TooFewCores {
        /// Requested workers.
        wanted: usize,
        /// Cores that this process may use.
        cores: usize,
    },
}
