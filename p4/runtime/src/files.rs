//! The files in C of the runtime and of the benchmark, and the programs that the benchmark measures.

/// A file: its name and its text.
pub type File = (&'static str, &'static str);

macro_rules! texts {
    ($folder:literal, $($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../", $folder, "/", $name)))),*]
    };
}

/// The runtime that is compiled into programs.
pub(crate) const RUNTIME: &[File] = &texts![
    "c",
    "frame.h",
    "p4.h",
    "wide.h",
    "meter.h",
    "epoch.h",
    "memory.h",
    "cipher.h",
    "hash.h",
    "table.h",
    "prefix.h",
    "control.h",
    "trie.h",
    "switch.h",
    "flight.h",
    "host.h",
    "tune.h",
    "epoch.c",
    "memory.c",
    "hash.c",
    "results.c",
    "direct.c",
    "trie.c",
    "trie_build.c",
    "tuples.c",
    "control.c",
    "flight.c",
    "support.c",
    "switch.c",
    "tune.c",
    "host.c",
    "player.c",
];

/// Files of the benchmark, besides the runtime.
pub const BENCH: [File; 10] = texts![
    "c/bench",
    "bench.h",
    "bench.c",
    "workloads.c",
    "names.c",
    "gopt.c",
    "examples.c",
    "crypto.c",
    "swx.c",
    "swx_codegen.c",
    "dpdk_tables.h",
];

/// Programs of the folder `programs`, and specifications of two of them for DPDK's P4 engine.
pub mod programs {
    /// Encryption.
    pub const CRYPTO: &str = include_str!("../programs/crypto.p4");
    /// IPv4 by addresses, protocol and ports.
    pub const FLOWS: &str = include_str!("../programs/flows.p4");
    /// [`FLOWS`] for DPDK's P4 engine.
    pub const FLOWS_SPEC: &str = include_str!("../programs/flows.spec");
    /// One longest-prefix lookup of IPv4.
    pub const IPV4: &str = include_str!("../programs/ipv4.p4");
    /// One longest-prefix lookup of IPv6.
    pub const IPV6: &str = include_str!("../programs/ipv6.p4");
    /// Two exact lookups.
    pub const L2: &str = include_str!("../programs/l2.p4");
    /// [`L2`] for DPDK's P4 engine.
    pub const L2_SPEC: &str = include_str!("../programs/l2.spec");
    /// Ports and their partners.
    pub const L2FWD: &str = include_str!("../programs/l2fwd.p4");
    /// Names.
    pub const NDN: &str = include_str!("../programs/ndn.p4");
}
