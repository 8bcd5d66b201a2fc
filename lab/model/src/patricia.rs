//! Memory accesses of one longest prefix match in a binary Patricia trie.
//!
//! Model of Takemasa et al., "Toward an Ideal NDN Router on a Commercial Off-the-shelf Computer" (ICN 2017), 6.3.1,
//! and of Takemasa's thesis (2019), 4.1.3. A vertex at depth d is visited once in 2^d lookups, since bits of names
//! are taken as random. Between two visits r·2^d bytes pass through the last-level cache, r for every packet. If
//! these exceed the size of the cache, the vertex comes from memory again.

use serde::Serialize;

/// Average depth of a leaf of a binary Patricia trie, minus log2 of the number of leaves; Takemasa et al. take it
/// from Song et al. (2015).
pub const LEAF_DEPTH_EXCESS: f64 = 0.3327;

/// Parameters of the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PatriciaModel {
    /// Prefixes in the FIB: n.
    pub prefixes: u64,
    /// Bytes loaded into the last-level cache per packet: r.
    pub bytes_per_packet: f64,
    /// Size of the last-level cache in bytes: S.
    pub cache_bytes: f64,
}

impl PatriciaModel {
    /// Average depth of the vertices that hold prefixes: log2(n) + 0.3327.
    pub fn leaf_depth(&self) -> f64 {
        (self.prefixes as f64).log2() + LEAF_DEPTH_EXCESS
    }

    /// Bytes loaded into the cache between two visits of a vertex at `depth`: R_d = r·2^d.
    pub fn bytes_between_visits(&self, depth: u32) -> f64 {
        self.bytes_per_packet * f64::from(depth).exp2()
    }

    /// True if a vertex at `depth` is still in the cache at its next visit (R_d ≤ S).
    pub fn is_cached(&self, depth: u32) -> bool {
        self.bytes_between_visits(depth) <= self.cache_bytes
    }

    /// Vertices on the path from the root to a leaf: ⌊log2(n) + 0.3327⌋, at depths 0, 1, ….
    ///
    /// The published sum has this upper limit and no lower one; among possible readings, this one gives the published
    /// result.
    pub fn path_vertices(&self) -> u32 {
        self.leaf_depth().max(0.0) as u32
    }

    /// Vertices on the path that come from memory, one after the other: Σ B_d, where B_d is 1 if R_d > S.
    pub fn dram_accesses(&self) -> u32 {
        (0..self.path_vertices()).filter(|&depth| !self.is_cached(depth)).count() as u32
    }

    /// Minimum time of a lookup in which each access depends on the previous one, in the unit of `access_time` (115
    /// cycles per access in Takemasa 2019, 4.1.1).
    pub fn dependent_time(&self, access_time: f64) -> f64 {
        f64::from(self.dram_accesses()) * access_time
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PUBLISHED: PatriciaModel =
        PatriciaModel { prefixes: 13_548_815, bytes_per_packet: 511.0, cache_bytes: 55.0 * 1024.0 * 1024.0 };

    #[test]
    fn published_estimate() {
        // Published as 24.01; log2(13,548,815) + 0.3327 is 24.024.
        assert!((PUBLISHED.leaf_depth() - 24.01).abs() < 0.02, "{}", PUBLISHED.leaf_depth());
        assert_eq!(PUBLISHED.dram_accesses(), 7);
        assert_eq!(PUBLISHED.dependent_time(115.0), 805.0);
        // Whether "55 Mbytes" are binary or decimal makes no difference.
        assert_eq!(PatriciaModel { cache_bytes: 55e6, ..PUBLISHED }.dram_accesses(), 7);
    }

    #[test]
    fn a_small_table_stays_in_the_cache() {
        assert_eq!(PatriciaModel { prefixes: 1000, ..PUBLISHED }.dram_accesses(), 0);
        assert_eq!(PatriciaModel { prefixes: 0, ..PUBLISHED }.dram_accesses(), 0);
    }

    proptest! {
        #[test]
        fn larger_tables_and_smaller_caches_cost_more(prefixes in 2u64..1 << 40, cache in 1e3..1e9) {
            let model = PatriciaModel { prefixes, cache_bytes: cache, ..PUBLISHED };
            let larger = PatriciaModel { prefixes: 2 * prefixes, ..model };
            let more_cache = PatriciaModel { cache_bytes: 2.0 * cache, ..model };
            prop_assert!(model.dram_accesses() <= model.path_vertices());
            prop_assert!(model.dram_accesses() <= larger.dram_accesses());
            prop_assert!(model.dram_accesses() >= more_cache.dram_accesses());
        }
    }
}
