//! Published values, as printed.
//!
//! Bars and curves of the figures are printed without numbers; what the text says about them is here. Order of the three
//! ways that packets take, everywhere: I-miss (an Interest that the Content Store does not answer), I-hit, Data.

/// Prefixes in the FIB. Takemasa et al. (2017), 6.2; Takemasa (2019), 3.2.2.
pub const PREFIXES: u64 = 13_548_815;
/// Components of names. Ibid.
pub const NAME_COMPONENTS: u32 = 7;
/// Average components of prefixes. Ibid.
pub const PREFIX_COMPONENTS: u32 = 4;
/// Bytes of content in a Data. Ibid.
pub const PAYLOAD_BYTES: usize = 128;
/// Interests pending at a time; not published. Data come back "shortly after" their Interests (Takemasa 2019, 4.4.1).
pub const IN_FLIGHT: usize = 4096;
/// Clock of the Xeon E5-2699 v4, Hz. Takemasa (2019), 3.2.2.
pub const CLOCK_HZ: f64 = 2.2e9;
/// Threads of the multi-threaded experiments. Takemasa (2019), 3.2.3.
pub const THREADS: usize = 20;

/// Three values: I-miss, I-hit, Data.
pub type Packets = [f64; 3];

/// Cycles. Takemasa (2019), table 3.1.
pub const PACKET_CYCLES: Packets = [1470.0, 860.0, 565.0];
/// Bytes read from and written to DRAM. Takemasa (2019), table 3.1.
pub const PACKET_BYTES: Packets = [909.0, 511.0, 816.0];

/// Cycles by stage. Takemasa (2019), table 3.2; Takemasa et al. (2017), table 1(a).
pub const STAGES: [(&str, Packets); 5] = [
    ("Total", [1470.0, 860.0, 565.0]),
    ("Frontend", [161.0, 40.0, 73.0]),
    ("Backend", [662.0, 359.0, 220.0]),
    ("Speculation", [161.0, 18.0, 42.0]),
    ("Retirement", [486.0, 443.0, 230.0]),
];

/// Cycles of backend stalls. Takemasa (2019), table 3.3; Takemasa et al. (2017), table 1(b).
pub const BACKEND: [(&str, Packets); 4] = [
    ("Backend", [662.0, 359.0, 220.0]),
    ("Load", [512.0, 256.0, 146.0]),
    ("Store", [10.0, 11.0, 14.0]),
    ("Core", [140.0, 92.0, 60.0]),
];

/// Cycles of load-unit stalls. Takemasa (2019), table 3.4; Takemasa et al. (2017), table 1(c).
pub const LOAD_STALLS: [(&str, Packets); 5] = [
    ("Load", [512.0, 256.0, 146.0]),
    ("L1D", [33.0, 66.0, 20.0]),
    ("L2", [0.0, 0.0, 0.0]),
    ("L3", [19.0, 28.0, 32.0]),
    ("DRAM", [460.0, 162.0, 94.0]),
];

/// Retired load instructions. Takemasa (2019), table 3.5; Takemasa et al. (2017), table 2.
pub const RETIRED_LOADS: [(&str, Packets); 5] = [
    ("Load", [328.0, 289.0, 127.0]),
    ("L1D", [322.0, 286.0, 122.0]),
    ("L2", [1.0, 1.0, 2.0]),
    ("L3", [1.0, 1.0, 2.0]),
    ("DRAM", [4.0, 1.0, 1.0]),
];

/// One number of threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThreadsRow {
    /// Threads.
    pub threads: usize,
    /// Cycles of an I-miss.
    pub cycles: f64,
    /// Cycles of it that wait for DRAM.
    pub dram_cycles: f64,
    /// DRAM accesses of it ("L3 misses" in 2017).
    pub dram_accesses: f64,
}

/// Takemasa (2019), table 3.6; Takemasa et al. (2017), table 3.
pub const BY_THREADS: [ThreadsRow; 3] = [
    ThreadsRow { threads: 1, cycles: 1470.0, dram_cycles: 460.0, dram_accesses: 4.0 },
    ThreadsRow { threads: 10, cycles: 1567.0, dram_cycles: 640.0, dram_accesses: 4.0 },
    ThreadsRow { threads: 20, cycles: 2033.0, dram_cycles: 878.0, dram_accesses: 4.0 },
];

/// By how much each schedule lowers cycles, in per cent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reductions {
    /// I-miss: Bucket Prefetch from Naive, Pre-Hash from Bucket Prefetch, Speculative from Pre-Hash.
    pub interest_steps: [f64; 3],
    /// I-miss: Speculative from Naive.
    pub interest_total: f64,
    /// Data: Speculative from Naive. The other two do not change it.
    pub data_total: f64,
    /// Best forwarding speed with Speculative, million packets per second.
    pub best_mpps: f64,
}

/// Takemasa (2019), 4.4.1 (figure 4.5) and 4.4.3 (figure 4.7). Admission to the cache by TinyLFU.
pub const THESIS: Reductions =
    Reductions { interest_steps: [15.03, 9.16, 7.82], interest_total: 28.85, data_total: 11.98, best_mpps: 42.49 };
/// Takemasa et al. (2017), 6.5.1 (figure 4) and 6.6 (figure 5). Everything is admitted to the cache.
pub const ICN17: Reductions =
    Reductions { interest_steps: [12.62, 12.04, 9.37], interest_total: 30.34, data_total: 17.36, best_mpps: 43.48 };

/// A computer and the cost of what it forwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundRow {
    /// Which.
    pub label: &'static str,
    /// N.
    pub cores: u32,
    /// F.
    pub hz: f64,
    /// B.
    pub memory_bytes_per_second: f64,
    /// C.
    pub cycles: f64,
    /// M.
    pub bytes: f64,
    /// NF/C as printed, million per second.
    pub by_computation_millions: f64,
    /// B/M as printed, million per second.
    pub by_memory_millions: f64,
}

/// Taniguchi et al. (2016), section 3 II (pairs of an Interest and a Data), and Takemasa (2019), 3.2.3 II (packets).
pub const BOUNDS: [BoundRow; 4] = [
    bound("2016, computer 1 (pairs)", 22, 2.2e9, 2794.2, 4484.1, 17.3, 17.1),
    bound("2016, computer 2 (pairs)", 4, 2.6e9, 2794.2, 4484.1, 3.7, 17.1),
    bound("2019, computer 1 (packets)", 22, 2.2e9, 925.4, 800.7, 52.3, 95.9),
    bound("2019, computer 2 (packets)", 4, 2.6e9, 925.4, 800.7, 11.2, 95.9),
];

const fn bound(
    label: &'static str,
    cores: u32,
    hz: f64,
    cycles: f64,
    bytes: f64,
    by_computation_millions: f64,
    by_memory_millions: f64,
) -> BoundRow {
    let memory_bytes_per_second = 76.8e9;
    BoundRow { label, cores, hz, memory_bytes_per_second, cycles, bytes, by_computation_millions, by_memory_millions }
}

/// Share of Interests answered by the Content Store in the bounds, 0 to 1. Ibid.
pub const HIT_RATIO: f64 = 0.3;
/// C and M of the thesis: cycles and bytes per packet. Takemasa (2019), 3.2.3 II.
pub const THESIS_COST: (f64, f64) = (925.4, 800.7);

/// Average depth of the Patricia trie's leaves. Takemasa et al. (2017), 6.3.2; Takemasa (2019), 4.1.3.
pub const PATRICIA_DEPTH: f64 = 24.01;
/// DRAM accesses of a lookup in it. Ibid.
pub const PATRICIA_ACCESSES: f64 = 7.0;
/// Bytes fetched from DRAM per Data, r. Ibid.
pub const PATRICIA_BYTES_PER_PACKET: f64 = 511.0;
/// Bytes of the last-level cache, S ("55 Mbytes"). Ibid.
pub const CACHE_BYTES: f64 = 55.0 * 1024.0 * 1024.0;
/// Cycles of one fetch from DRAM. Takemasa (2019), 4.1.1 and 4.3.2.
pub const DRAM_CYCLES: f64 = 115.0;

/// Lookups per longest prefix match of a longest-first search. Takemasa et al. (2017), 6.3.2.
pub const LOOKUPS: f64 = 3.87;
/// DRAM accesses of it. Ibid.
pub const HASH_TABLE_ACCESSES: f64 = 4.87;

/// Cache lines that an I-miss fetches. Takemasa et al. (2017), 6.7.
pub const LINES_PER_INTEREST: f64 = 16.6;
/// Of them fetched in vain, for a name of four components. Ibid.
pub const USELESS_LINES: f64 = 3.0;
/// Most cycles of one prefetch instruction. Ibid.
pub const PREFETCH_CYCLES: f64 = 48.0;
/// Cycles of looking at one bucket in vain. Takemasa (2019), 4.3.2.
pub const VAIN_LOOKUP_CYCLES: f64 = 48.0;
/// Cycles of looking at three buckets in vain. Ibid.
pub const VAIN_LOOKUPS_CYCLES: f64 = 144.0;
