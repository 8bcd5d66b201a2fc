//! Published values on compiled packet processing: "Compiler Based Optimization For Software Packet Processing" (APSys
//! 2017).

use super::{Published, printed};

/// A program of the paper, and its throughput gains in per cent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedProgram {
    /// Name in `namehop p4 bench`.
    pub program: &'static str,
    /// Name in the paper.
    pub name: &'static str,
    /// Gain by batching alone. Section 4.2; for programs with prefixes only the gain by both is published.
    pub batching: Option<Published>,
    /// Gain by prefetching on top of batching. As above.
    pub prefetching: Option<Published>,
    /// Gain over the code of P4C. Section 4.3; not published for the program that encrypts.
    pub over_p4c: Option<Published>,
    /// Gain over G-Opt. As above.
    pub over_gopt: Option<Published>,
    /// Gain over DPDK's own program. As above.
    pub over_dpdk: Option<Published>,
    /// Entries of the program's tables. Section 4.1.
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
    // Figure 1 shows this program without numbers, and the text has no results for it.
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

/// 10^6 packets per second of four cores with four network cards, and of one card that sends and receives. Section 4.4.
pub const FOUR_CORES_MPPS: Published = printed(44.0);
/// Maximum rate of four cards in 10^6 packets per second, for packets of 64 bytes. Section 4.4.
pub const FOUR_CARDS_MPPS: Published = printed(59.0);

/// Entries of tables in figure 4. Section 4.5.
pub const TABLE_SIZES: [u64; 5] = [256, 2048, 16_384, 1 << 20, 1 << 24];
/// Batch size with the highest throughput in figure 4.
pub const BEST_BATCH: Published = printed(64.0);

/// 10^6 packets per second of IPv6 with an uncompressed trie. Section 4.6.
pub const PLAIN_TRIE_MPPS: Published = printed(7.2);
/// The same with a compressed trie.
pub const COMPRESSED_TRIE_MPPS: Published = printed(8.82);
/// Gain by compression with the paper's routes, in per cent. Section 4.6.
pub const COMPRESSION_GAIN: Published = printed(22.0);
/// Gain in the worst case.
pub const COMPRESSION_WORST: Published = printed(-3.5);
/// Gain in the best case.
pub const COMPRESSION_BEST: Published = printed(38.0);
