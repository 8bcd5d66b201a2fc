//! Published values, as printed.
//!
//! The bars and curves of the figures carry no numbers; this module has what the text says about them. Packet paths
//! always have this order: I-miss (an Interest that the Content Store does not answer), I-hit, Data.
//!
//! Values shown as published have the type [`Published`], which only this file, [`links`], [`power`] and [`programs`]
//! can create. Sizes of the published experiments, which the measurements here use too, are plain numbers.

pub mod links;
pub mod power;
pub mod programs;

/// A number printed in a publication, in the unit that its constant states.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published(f64);

impl Published {
    /// Returns the number.
    pub const fn value(self) -> f64 {
        self.0
    }
}

/// Creates a published number.
const fn printed(value: f64) -> Published {
    Published(value)
}

const fn packets(interest_miss: f64, interest_hit: f64, data: f64) -> Packets {
    [printed(interest_miss), printed(interest_hit), printed(data)]
}

/// Prefixes in the FIB. Takemasa et al. (2017), 6.2; Takemasa (2019), 3.2.2.
pub const PREFIXES: u64 = 13_548_815;
/// Components of names. Same source.
pub const NAME_COMPONENTS: u32 = 7;
/// Average number of components of prefixes. Same source.
pub const PREFIX_COMPONENTS: u32 = 4;
/// Bytes of content in a Data packet. Same source.
pub const PAYLOAD_BYTES: usize = 128;
/// Pending Interests; not published, chosen here. Data packets return "shortly after" their Interests (Takemasa 2019,
/// 4.4.1).
pub const IN_FLIGHT: usize = 4096;
/// Capacity of the Content Store in packets; not published, chosen here.
pub const CS_PACKETS: usize = 65_536;
/// Threads of the multi-threaded experiments. Takemasa (2019), 3.2.3.
pub const THREADS: usize = 20;

/// Three values: I-miss, I-hit, Data.
pub type Packets = [Published; 3];

/// Cycles per packet. Takemasa (2019), table 3.1.
pub const PACKET_CYCLES: Packets = packets(1470.0, 860.0, 565.0);
/// Bytes read from and written to DRAM per packet. Takemasa (2019), table 3.1.
pub const PACKET_BYTES: Packets = packets(909.0, 511.0, 816.0);

/// Cycles by stage. Takemasa (2019), table 3.2; Takemasa et al. (2017), table 1(a).
pub const STAGES: [(&str, Packets); 5] = [
    ("Total", packets(1470.0, 860.0, 565.0)),
    ("Frontend", packets(161.0, 40.0, 73.0)),
    ("Backend", packets(662.0, 359.0, 220.0)),
    ("Speculation", packets(161.0, 18.0, 42.0)),
    ("Retirement", packets(486.0, 443.0, 230.0)),
];

/// Cycles of backend stalls. Takemasa (2019), table 3.3; Takemasa et al. (2017), table 1(b).
pub const BACKEND: [(&str, Packets); 4] = [
    ("Backend", packets(662.0, 359.0, 220.0)),
    ("Load", packets(512.0, 256.0, 146.0)),
    ("Store", packets(10.0, 11.0, 14.0)),
    ("Core", packets(140.0, 92.0, 60.0)),
];

/// Cycles of load-unit stalls. Takemasa (2019), table 3.4; Takemasa et al. (2017), table 1(c).
pub const LOAD_STALLS: [(&str, Packets); 5] = [
    ("Load", packets(512.0, 256.0, 146.0)),
    ("L1D", packets(33.0, 66.0, 20.0)),
    ("L2", packets(0.0, 0.0, 0.0)),
    ("L3", packets(19.0, 28.0, 32.0)),
    ("DRAM", packets(460.0, 162.0, 94.0)),
];

/// Retired load instructions. Takemasa (2019), table 3.5; Takemasa et al. (2017), table 2.
pub const RETIRED_LOADS: [(&str, Packets); 5] = [
    ("Load", packets(328.0, 289.0, 127.0)),
    ("L1D", packets(322.0, 286.0, 122.0)),
    ("L2", packets(1.0, 1.0, 2.0)),
    ("L3", packets(1.0, 1.0, 2.0)),
    ("DRAM", packets(4.0, 1.0, 1.0)),
];

/// Values for one number of threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThreadsRow {
    /// Threads.
    pub threads: usize,
    /// Cycles of an I-miss.
    pub cycles: Published,
    /// Cycles of an I-miss waiting for DRAM.
    pub dram_cycles: Published,
    /// DRAM accesses of an I-miss ("L3 misses" in 2017).
    pub dram_accesses: Published,
}

const fn by_threads(threads: usize, cycles: f64, dram_cycles: f64, dram_accesses: f64) -> ThreadsRow {
    ThreadsRow {
        threads,
        cycles: printed(cycles),
        dram_cycles: printed(dram_cycles),
        dram_accesses: printed(dram_accesses),
    }
}

/// Takemasa (2019), table 3.6; Takemasa et al. (2017), table 3.
pub const BY_THREADS: [ThreadsRow; 3] =
    [by_threads(1, 1470.0, 460.0, 4.0), by_threads(10, 1567.0, 640.0, 4.0), by_threads(20, 2033.0, 878.0, 4.0)];

/// Reduction of cycles by each schedule, in per cent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reductions {
    /// I-miss: Bucket Prefetch from Naive, Pre-Hash from Bucket Prefetch, Speculative from Pre-Hash.
    pub interest_steps: [Published; 3],
    /// I-miss: Speculative from Naive.
    pub interest_total: Published,
    /// Data: Speculative from Naive. The other schedules do not change it.
    pub data_total: Published,
    /// Highest forwarding rate with Speculative, in million packets per second.
    pub best_mpps: Published,
}

impl Reductions {
    const fn new(interest_steps: [f64; 3], interest_total: f64, data_total: f64, best_mpps: f64) -> Self {
        let [bucket_prefetch, pre_hash, speculative] = interest_steps;
        Reductions {
            interest_steps: [printed(bucket_prefetch), printed(pre_hash), printed(speculative)],
            interest_total: printed(interest_total),
            data_total: printed(data_total),
            best_mpps: printed(best_mpps),
        }
    }
}

/// Takemasa (2019), 4.4.1 (figure 4.5) and 4.4.3 (figure 4.7). TinyLFU decides on admission to the cache.
pub const THESIS: Reductions = Reductions::new([15.03, 9.16, 7.82], 28.85, 11.98, 42.49);
/// Takemasa et al. (2017), 6.5.1 (figure 4) and 6.6 (figure 5). All Data is admitted to the cache.
pub const ICN17: Reductions = Reductions::new([12.62, 12.04, 9.37], 30.34, 17.36, 43.48);
/// Million packets per second that the authors expect with both CPUs of the host ("about"): extrapolated, not measured.
/// Takemasa et al. (2017), 6.6; Takemasa (2019), 4.4.3.
pub const EXTRAPOLATED_MPPS: Published = printed(80.0);
/// Threads at which memory bandwidth is exhausted. Takemasa (2019), 4.4.3.
pub const THREADS_AT_MEMORY_BOUND: Published = printed(40.0);

/// A host, and the cost of what it forwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundRow {
    /// Name of the host, and unit of the costs (packets or pairs).
    pub label: &'static str,
    /// N, number of cores.
    pub cores: Published,
    /// F, frequency of a core, in 10^9 Hz.
    pub ghz: Published,
    /// B, memory bandwidth, in 10^9 bytes per second.
    pub memory_gigabytes_per_second: Published,
    /// C, cycles per packet or pair.
    pub cycles: Published,
    /// M, bytes read from and written to memory per packet or pair.
    pub bytes: Published,
    /// NF/C as printed, in millions per second.
    pub by_computation_millions: Published,
    /// B/M as printed, in millions per second.
    pub by_memory_millions: Published,
}

/// Taniguchi et al. (2016), section 3 II (pairs of an Interest and a Data), and Takemasa (2019), 3.2.3 II (packets).
pub const BOUNDS: [BoundRow; 4] = [
    bound("2016, host 1 (pairs)", 22, 2.2, 2794.2, 4484.1, 17.3, 17.1),
    bound("2016, host 2 (pairs)", 4, 2.6, 2794.2, 4484.1, 3.7, 17.1),
    bound("2019, host 1 (packets)", 22, 2.2, 925.4, 800.7, 52.3, 95.9),
    bound("2019, host 2 (packets)", 4, 2.6, 925.4, 800.7, 11.2, 95.9),
];

const fn bound(
    label: &'static str,
    cores: u32,
    ghz: f64,
    cycles: f64,
    bytes: f64,
    by_computation_millions: f64,
    by_memory_millions: f64,
) -> BoundRow {
    BoundRow {
        label,
        cores: printed(cores as f64),
        ghz: printed(ghz),
        memory_gigabytes_per_second: printed(76.8),
        cycles: printed(cycles),
        bytes: printed(bytes),
        by_computation_millions: printed(by_computation_millions),
        by_memory_millions: printed(by_memory_millions),
    }
}

/// Share of Interests answered by the Content Store in the bounds, 0 to 1. Same source.
pub const HIT_RATIO: Published = printed(0.3);
/// C and M of the thesis, in cycles and bytes per packet. Takemasa (2019), 3.2.3 II.
pub const THESIS_COST: (Published, Published) = (printed(925.4), printed(800.7));

/// Average depth of the Patricia trie's leaves. Takemasa et al. (2017), 6.3.2; Takemasa (2019), 4.1.3.
pub const PATRICIA_DEPTH: Published = printed(24.01);
/// DRAM accesses of a lookup in that trie. Same source.
pub const PATRICIA_ACCESSES: Published = printed(7.0);
/// Bytes fetched from DRAM per Data packet, r. Same source.
pub const PATRICIA_BYTES_PER_PACKET: Published = printed(511.0);
/// Size of the last-level cache in bytes, S ("55 Mbytes"). Same source.
pub const CACHE_BYTES: Published = printed(55.0 * 1024.0 * 1024.0);
/// Cycles of one fetch from DRAM. Takemasa (2019), 4.1.1 and 4.3.2.
pub const DRAM_CYCLES: Published = printed(115.0);

/// Lookups per longest prefix match of a longest-first search. Takemasa et al. (2017), 6.3.2.
pub const LOOKUPS: Published = printed(3.87);
/// DRAM accesses of that match. Same source.
pub const HASH_TABLE_ACCESSES: Published = printed(4.87);

/// Dependent accesses of a longest-first search and of a 2-stage search. Takemasa (2019), 4.1.2.
pub const HASH_TABLE_DEPENDENT: [Published; 2] = [printed(2.0), printed(4.0)];

/// Cache lines that an I-miss fetches. Takemasa et al. (2017), 6.7.
pub const LINES_PER_INTEREST: Published = printed(16.6);
/// Lines fetched without need, for a name of four components. Same source.
pub const USELESS_LINES: Published = printed(3.0);
/// Maximum cycles of one prefetch instruction. Same source.
pub const PREFETCH_CYCLES: Published = printed(48.0);
/// Cycles to search one bucket without a match. Takemasa (2019), 4.3.2.
pub const VAIN_LOOKUP_CYCLES: Published = printed(48.0);
/// Cycles to search three buckets without a match. Same source.
pub const VAIN_LOOKUPS_CYCLES: Published = printed(144.0);

/// Cycles of the blocks B1, B3, B4, B5, B6, B7, B8, B9 and B11. Takemasa (2019), table 5.1.
pub const BLOCKS: [Published; 9] = [
    printed(571.0),
    printed(148.0),
    printed(72.0),
    printed(188.0),
    printed(413.0),
    printed(56.0),
    printed(188.0),
    printed(73.0),
    printed(50.0),
];
/// Cycles of B10, the insertion of Data: in table 5.1, and in the text of 5.1.2.
pub const INSERTION_CYCLES: [Published; 2] = [printed(329.0), printed(188.0)];

/// All blocks of table 5.1 in its order, B10 included.
pub const fn block_cycles() -> [Published; 10] {
    let [b1, b3, b4, b5, b6, b7, b8, b9, b11] = BLOCKS;
    [b1, b3, b4, b5, b6, b7, b8, b9, INSERTION_CYCLES[0], b11]
}

/// Cycles of a miss and of a hit. Takemasa (2019), 3.3.2.
pub const FLOW_CYCLES: [Published; 2] = [printed(2016.0), printed(791.0)];
/// Cycles of TinyLFU's decision. Takemasa (2019), 5.2.4.
pub const TINYLFU_DECISION: Published = printed(288.0);
/// Cycles that Filter loses because it has fewer hits than TinyLFU. Takemasa (2019), 5.4.3.
pub const CYCLES_OF_LOST_HITS: Published = printed(28.0);
/// 10^9 bits per second with FIFO, Filter and ARC. Takemasa (2019), 5.4.4.
pub const SPEEDS: [(&str, Published); 3] = [("FIFO", printed(13.9)), ("Filter", printed(16.1)), ("ARC", printed(11.2))];
/// Dependent accesses to move a packet in an LRU list. Takemasa (2019), 4.2.
pub const LRU_ACCESSES: Published = printed(4.0);
/// Packets that CLOCK-Pro inspects per eviction. Same source.
pub const CLOCK_PRO_ACCESSES: Published = printed(16.6);
/// Dependent accesses of a TinyLFU comparison. Same source.
pub const TINYLFU_ACCESSES: Published = printed(2.0);

/// Cycles of the blocks that belong to a policy.
#[derive(Debug, Clone, Copy)]
pub struct BlockRow {
    /// Name of the policy.
    pub name: &'static str,
    /// B2, B12, B13.
    pub cycles: [Published; 3],
}

/// Cycles of B2, B12 and B13: Filter, TinyLFU, ARC, Random, FIFO. Takemasa (2019), table 5.2.
pub const fn block_rows() -> [BlockRow; 5] {
    const fn row(name: &'static str, history: f64, eviction: f64, admission: f64) -> BlockRow {
        BlockRow { name, cycles: [printed(history), printed(eviction), printed(admission)] }
    }
    [
        row("Filter", 83.0, 0.0, 28.0),
        row("TinyLFU", 91.0, 0.0, 282.0),
        row("ARC", 173.0, 202.0, 0.0),
        row("Random", 0.0, 62.0, 0.0),
        row("FIFO", 0.0, 0.0, 0.0),
    ]
}

/// Average cycles with ARC and TinyLFU, at a hit rate of 0.3. Takemasa (2019), 5.1.2.
pub const AVERAGE_CYCLES: [Published; 2] = [printed(1817.0), printed(1705.0)];
/// Difference of these two. Same source.
pub const CYCLES_SAVED: Published = printed(112.0);
/// Insertion rate of TinyLFU in that estimate. Same source.
pub const TINYLFU_INSERTION: Published = printed(0.1);
/// Share of names that share their counter in Filter's table with another name, in per cent. Takemasa (2019), 5.2.3.
pub const FALSE_POSITIVES_PERCENT: Published = printed(0.0596);
/// Memory of Filter's history and counters ("32 Mbytes"). Same source.
pub const FILTER_MEGABYTES: Published = printed(32.0);
/// Videos that are requested only once, in per cent of requests. Takemasa (2019), 5.3.3.
pub const ONCE_PERCENT: Published = printed(68.1);
/// Hit rates of FIFO, Random, LFU, ARC, TinyLFU and Filter; web, 10^5 packets. Takemasa (2019), 5.4.2.
pub const WEB_HIT_RATES: [Published; 6] =
    [printed(0.238), printed(0.241), printed(0.389), printed(0.366), printed(0.376), printed(0.341)];
/// Insertion rate of Filter. Takemasa (2019), 6.5.2.
pub const FILTER_INSERTION: Published = printed(0.03);
/// Cycles that Filter saves against another policy, in per cent. Takemasa (2019), 5.4.3.
pub const FILTER_SAVES_PERCENT: [(&str, Published); 4] =
    [("ARC", printed(16.0)), ("FIFO", printed(11.0)), ("Random", printed(15.0)), ("TinyLFU", printed(9.0))];
