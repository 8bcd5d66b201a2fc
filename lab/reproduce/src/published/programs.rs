//! Published values on compiled packet processing: "Compiler Based Optimization For Software Packet Processing" (APSys 2017).

use super::{Published, printed};

/// A program of the paper, and by how many per cent its throughput grew.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedProgram {
    /// As `namehop p4 bench` calls it.
    pub program: &'static str,
    /// As the paper does.
    pub name: &'static str,
    /// By batching alone. Section 4.2; for the programs with prefixes only both together are told.
    pub batching: Option<Published>,
    /// By prefetching, when there are batches. The same.
    pub prefetching: Option<Published>,
    /// Over the code of P4C. Section 4.3; for the program that encrypts nothing is told.
    pub over_p4c: Option<Published>,
    /// Over G-Opt. The same.
    pub over_gopt: Option<Published>,
    /// Over DPDK's own program. The same.
    pub over_dpdk: Option<Published>,
    /// Entries of its tables. Section 4.1.
    pub entries: Option<Published>,
}

const fn program(
    program: &'static str,
    name: &'static str,
    over_p4c: f64,
    over_gopt: f64,
    entries: f64,
) -> PublishedProgram {
    PublishedProgram {
        program,
        name,
        batching: None,
        prefetching: None,
        over_p4c: Some(printed(over_p4c)),
        over_gopt: Some(printed(over_gopt)),
        over_dpdk: None,
        entries: Some(printed(entries)),
    }
}

/// Sections 4.1 to 4.3, figures 1 and 2.
pub const PROGRAMS: [PublishedProgram; 5] = [
    PublishedProgram {
        batching: Some(printed(20.0)),
        prefetching: Some(printed(23.0)),
        ..program("l2", "L2Fwd", 48.0, 20.0, 16_777_216.0)
    },
    PublishedProgram { over_dpdk: Some(printed(-4.0)), ..program("ipv4", "IPv4", 55.0, 15.0, 527_961.0) },
    PublishedProgram { over_dpdk: Some(printed(20.0)), ..program("ipv6", "IPv6", 57.0, 17.0, 200_000.0) },
    PublishedProgram {
        batching: Some(printed(20.0)),
        prefetching: Some(printed(21.0)),
        ..program("ndn", "NDN", 46.0, 59.0, 10_000_000.0)
    },
    // Figure 1 has it, without numbers, and no text says how it did.
    PublishedProgram {
        program: "crypto",
        name: "l2fwd-crypto",
        batching: None,
        prefetching: None,
        over_p4c: None,
        over_gopt: None,
        over_dpdk: None,
        entries: None,
    },
];

/// 10^6 packets per second of four cores and four network cards, and of one card that sends and receives. Section 4.4.
pub const FOUR_CORES_MPPS: Published = printed(44.0);
/// The most that four cards take, of packets of 64 bytes. Section 4.4.
pub const FOUR_CARDS_MPPS: Published = printed(59.0);

/// Entries of tables in figure 4. Section 4.5.
pub const TABLE_SIZES: [u64; 5] = [256, 2048, 16_384, 1 << 20, 1 << 24];
/// The size of batches with the highest throughput there.
pub const BEST_BATCH: Published = printed(64.0);

/// 10^6 packets per second of IPv6 without compression of the trie. Section 4.6.
pub const PLAIN_TRIE_MPPS: Published = printed(7.2);
/// With it.
pub const COMPRESSED_TRIE_MPPS: Published = printed(8.82);
/// Gain by compression with the paper's routes, per cent. Section 4.6.
pub const COMPRESSION_GAIN: Published = printed(22.0);
/// In the worst case.
pub const COMPRESSION_WORST: Published = printed(-3.5);
/// In the best case.
pub const COMPRESSION_BEST: Published = printed(38.0);
