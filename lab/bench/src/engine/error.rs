//! Why the engine could not be measured.

use namehop_engine::fib::FibError;
use namehop_store::PolicyKind;
use namehop_wire::DecodeError;

use crate::workload::WorkloadError;

/// Why the engine could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum EngineBenchError {
    /// No such names.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The FIB has no room.
    #[error("the FIB took no more prefixes: {0}")]
    Fib(#[from] FibError),
    /// A name of the workload is not one.
    #[error("the workload made a wrong name: {0}")]
    Name(#[from] DecodeError),
    /// DPDK does not start, or gives no memory.
    #[error("{0}; 'namehop bench engine --help' says what it needs")]
    Dpdk(#[from] namehop_dpdk::DpdkError),
    /// Tables or faces could not be made.
    #[error("the router could not be put together: {0}")]
    Rig(String),
    /// The worker did not forward what it should.
    #[error(
        "the worker forwarded {got} of {expected} packets of a burst; smaller --in-flight or larger tables may help"
    )]
    Lost {
        /// Packets that came out.
        got: usize,
        /// Packets that went in.
        expected: usize,
    },
    /// Requests of the warm-up were too few.
    #[error(
        "after warming up, the cache of '{policy}' holds {got} of {capacity} packets; more --warm-up or a smaller --cs fills it"
    )]
    Cold {
        /// Its policy.
        policy: PolicyKind,
        /// Packets in it.
        got: usize,
        /// Packets it may hold.
        capacity: usize,
    },
    /// There is no such flood.
    #[error("the flood is impossible: {0}")]
    Flood(String),
    /// The second tier of the Content Store cannot be had.
    #[error(transparent)]
    Disk(#[from] namehop_disk::OpenError),
    /// A disk does not stall as it should, or not end to.
    #[error("{0}")]
    Freeze(String),
    /// The counters failed while they counted.
    #[error("the hardware counters failed: {0}")]
    Counters(#[source] std::io::Error),
    /// There are not as many cores.
    #[error("{wanted} workers need as many cores, and there are {cores}")]
    TooFewCores {
        /// Workers asked for.
        wanted: usize,
        /// Cores that this process may use.
        cores: usize,
    },
}
