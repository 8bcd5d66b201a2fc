//! Memory accesses of one longest prefix match in a hash table of single-line buckets.
//!
//! The model assumes that every bucket and every entry comes from memory, because hashes scatter accesses evenly. It
//! compares two search orders: longest prefix first, and the 2-stage search of So et al., "Named Data Networking on a
//! Router" (ANCS 2013). Sources: Takemasa et al. (2017), 3.3 and 6.3; Takemasa (2019), 4.1.2.

use serde::Serialize;

/// Average DRAM accesses of a longest-first search that looks up `lookups` prefixes one after the other: one bucket
/// each, and one entry. Ignores hash collisions. Takemasa et al. (2017), 6.3.1.
pub fn longest_first_accesses(lookups: f64) -> f64 {
    lookups + 1.0
}

/// Number of prefixes that a longest-first search looks up in a name of `name_components` components if the longest
/// match has `prefix_components`: from the full name down to the match.
pub fn longest_first_lookups(name_components: u32, prefix_components: u32) -> u32 {
    longest_first_lookups_of(0..=name_components, name_components, prefix_components.min(name_components))
}

/// As [`longest_first_lookups`], for a table that looks up only the lengths that its prefixes have.
pub fn longest_first_lookups_of(
    lengths: impl IntoIterator<Item = u32>,
    name_components: u32,
    prefix_components: u32,
) -> u32 {
    let needed = lengths.into_iter().filter(|length| (prefix_components..=name_components).contains(length));
    needed.count() as u32
}

/// Number of dependent access stages when `buckets` buckets are fetched in parallel and one of them may lead to an
/// entry. The entry's address is in its bucket. Takemasa (2019), 4.1.2.
fn stages(buckets: u32, finds_entry: bool) -> u32 {
    buckets.min(1) + u32::from(finds_entry)
}

/// Dependent accesses of a longest-first search that reads `lookups` buckets and finds a prefix.
pub fn longest_first_dependent(lookups: u32) -> u32 {
    stages(lookups, true)
}

/// Buckets and entries that a 2-stage search reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TwoStageAccesses {
    /// Buckets, one for each prefix looked up.
    pub buckets: u32,
    /// Entries.
    pub entries: u32,
    /// Accesses that must wait for the one before.
    pub dependent: u32,
}

/// Accesses of a 2-stage search that starts at `start_components`, in a name of `name_components` components with a
/// longest match of `prefix_components`. `longest_below` is the length of the longest prefix in the table that shares
/// the first `start_components` components. Ignores hash collisions. So et al. (2013); Takemasa et al. (2017), 3.3.2.
pub fn two_stage_accesses(
    name_components: u32,
    prefix_components: u32,
    start_components: u32,
    longest_below: Option<u32>,
) -> TwoStageAccesses {
    let start = start_components.min(name_components);
    match longest_below {
        // The first stage found an entry; the second tries longer prefixes, longest first, down to the match.
        Some(longest) if prefix_components > start => {
            let longer = longest.min(name_components) - prefix_components + 1;
            let dependent = stages(1, true) + stages(longer, true);
            TwoStageAccesses { buckets: 1 + longer, entries: 2, dependent }
        }
        Some(longest) => {
            let longer = longest.min(name_components).saturating_sub(start);
            // The entry of the first stage may itself be the answer, or only a virtual entry.
            let shorter = start - prefix_components.min(start);
            let finds_shorter = shorter > 0;
            TwoStageAccesses {
                buckets: 1 + longer + shorter,
                entries: 1 + u32::from(finds_shorter),
                dependent: stages(1, true) + stages(longer + shorter, finds_shorter),
            }
        }
        None => {
            let shorter = start - prefix_components.min(start);
            let dependent = stages(1, shorter == 0) + stages(shorter, shorter > 0);
            TwoStageAccesses { buckets: 1 + shorter, entries: 1, dependent }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn published_estimate() {
        // Takemasa et al. (2017), 6.3.2.
        assert!((longest_first_accesses(3.87) - 4.87).abs() < 1e-9);
        // 6.2: names of 7 components and prefixes of 4 give "slightly more" lookups than 3.87.
        assert_eq!(longest_first_lookups(7, 4), 4);
        assert_eq!(longest_first_lookups_of([4], 7, 4), 1);
        assert_eq!(longest_first_lookups_of(2..=6, 7, 4), 3);
        assert_eq!(longest_first_lookups_of(2..=6, 5, 4), 2);
        // Takemasa (2019), 4.1.2: two dependent accesses; four when the second stage is needed.
        assert_eq!(longest_first_dependent(4), 2);
        assert_eq!(two_stage_accesses(7, 5, 4, Some(5)).dependent, 4);
    }

    #[test]
    fn two_stages() {
        // The prefix has exactly M components and there are no longer ones: one bucket, one entry.
        assert_eq!(two_stage_accesses(7, 4, 4, Some(4)), TwoStageAccesses { buckets: 1, entries: 1, dependent: 2 });
        // The match is longer than M.
        assert_eq!(two_stage_accesses(7, 6, 4, Some(6)), TwoStageAccesses { buckets: 2, entries: 2, dependent: 4 });
        // No entry at M: the search continues with shorter prefixes.
        assert_eq!(two_stage_accesses(7, 2, 4, None), TwoStageAccesses { buckets: 3, entries: 1, dependent: 3 });
        // Another prefix lies below M; the match is shorter.
        assert_eq!(two_stage_accesses(7, 3, 4, Some(5)), TwoStageAccesses { buckets: 3, entries: 2, dependent: 4 });
    }

    proptest! {
        #[test]
        fn no_search_reads_more_buckets_than_prefixes(
            name in 1u32..64,
            prefix in 0u32..64,
            start in 1u32..64,
            extra in 0u32..64,
        ) {
            let prefix = prefix.min(name);
            prop_assert!(longest_first_lookups(name, prefix) <= name + 1);
            let longest = (start <= name).then_some((start + extra).max(prefix));
            let accesses = two_stage_accesses(name, prefix, start, longest);
            prop_assert!(accesses.buckets <= name + 1);
            prop_assert!((1..=2).contains(&accesses.entries));
            prop_assert!((2..=4).contains(&accesses.dependent));
            prop_assert!(accesses.dependent <= accesses.buckets + accesses.entries);
        }
    }
}
