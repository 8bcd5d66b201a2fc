//! Published values on a router between network cards: Shi et al. (2020), section 7.

use super::{Published, printed};

/// Number of forwarding threads with the highest Data rate. 7.1.
pub const BEST_THREADS: usize = 8;
/// Million Data per second with these threads ("about"). 7.1.
pub const BEST_MPPS: Published = printed(1.84);
/// Maximum reduction of the rate by the longest names, in per cent. 7.1.
pub const LONG_NAMES_PERCENT: Published = printed(10.0);
/// Maximum difference between the rates of all payloads, in per cent. 7.2.
pub const PAYLOAD_PERCENT: Published = printed(10.0);
/// Payload with the highest bit rate, in bytes. 7.2.
pub const LARGEST_PAYLOAD_BYTES: usize = 8000;
/// 10^9 bits of payload per second with that payload. 7.2.
pub const BEST_GBPS: Published = printed(108.0);
/// Reduction of the rate if cards and threads are on two sockets, with eight threads, in per cent ("up to"). 7.5.
pub const TWO_SOCKETS_PERCENT: Published = printed(20.0);

/// A row of the table of 7.3.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FibRow {
    /// Entries of the FIB.
    pub entries: u64,
    /// Thousand Data per second.
    pub kpps: Published,
    /// Standard deviation of `kpps`.
    pub kpps_deviation: Published,
    /// Median latency of Interests, in microseconds.
    pub latency_p50_us: Published,
    /// 95th percentile of the latency, in microseconds.
    pub latency_p95_us: Published,
}

const fn fib_row(entries: u64, kpps: f64, deviation: f64, p50_us: f64, p95_us: f64) -> FibRow {
    FibRow {
        entries,
        kpps: printed(kpps),
        kpps_deviation: printed(deviation),
        latency_p50_us: printed(p50_us),
        latency_p95_us: printed(p95_us),
    }
}

/// The table of 7.3.
pub const FIB: [FibRow; 3] = [
    fib_row(10_000, 1840.0, 5.59, 90.0, 227.0),
    fib_row(100_000, 1835.0, 4.92, 92.0, 234.0),
    fib_row(1_000_000, 1839.0, 4.42, 97.0, 249.0),
];

/// Content Store capacity per thread, and by how many per cent prefix match is slower than exact match (least, most).
/// 7.4.
pub const PREFIX_MATCH_PERCENT: [(usize, [Published; 2]); 2] =
    [(1 << 17, [printed(15.0), printed(17.0)]), (1 << 20, [printed(10.0), printed(18.0)])];
