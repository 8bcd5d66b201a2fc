//! Belady's optimum, the upper bound of all policies. It evicts the name with the latest next request, and does not
//! admit a name that will be requested later than all stored ones.

use std::collections::{BinaryHeap, HashMap};

use crate::store::Counts;

/// Position of a request that never comes.
const NEVER: u64 = u64::MAX;

/// Counts of an optimal store over requests that are all known in advance, not counting the first `warm_up` of them.
pub fn optimum(names: &[u64], capacity: usize, warm_up: usize) -> Counts {
    let next = next_requests(names);
    // Stored names by their next request, latest first. A name requested again has another entry; outdated ones are
    // skipped.
    let mut latest: BinaryHeap<(u64, u64)> = BinaryHeap::new();
    let mut stored: HashMap<u64, u64> = HashMap::with_capacity(capacity);
    let mut counts = Counts::default();
    for (position, (&name, &next)) in names.iter().zip(&next).enumerate() {
        if position == warm_up {
            counts = Counts::default();
        }
        counts.requests += 1;
        if let Some(noted) = stored.get_mut(&name) {
            counts.hits += 1;
            *noted = next;
            latest.push((next, name));
            continue;
        }
        if next == NEVER || capacity == 0 {
            continue;
        }
        if stored.len() >= capacity {
            while latest.peek().is_some_and(|&(noted, name)| stored.get(&name) != Some(&noted)) {
                latest.pop();
            }
            let Some(&(farthest, victim)) = latest.peek() else { continue };
            if farthest <= next {
                continue;
            }
            latest.pop();
            stored.remove(&victim);
            counts.evictions += 1;
        }
        stored.insert(name, next);
        latest.push((next, name));
        counts.insertions += 1;
    }
    counts
}

/// Returns, for each request, the position of the next request for the same name, or `NEVER`.
fn next_requests(names: &[u64]) -> Vec<u64> {
    let mut next = vec![NEVER; names.len()];
    let mut seen: HashMap<u64, u64> = HashMap::new();
    for (position, &name) in names.iter().enumerate().rev() {
        if let Some(later) = seen.insert(name, position as u64) {
            next[position] = later;
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Maximum number of hits over all sequences of decisions, by exhaustive search.
    fn most_hits(names: &[u64], capacity: usize, stored: &mut Vec<u64>) -> u64 {
        let Some((&name, rest)) = names.split_first() else { return 0 };
        if stored.contains(&name) {
            return 1 + most_hits(rest, capacity, stored);
        }
        let mut most = most_hits(rest, capacity, stored);
        if stored.len() < capacity {
            stored.push(name);
            most = most.max(most_hits(rest, capacity, stored));
            stored.pop();
        } else {
            for index in 0..stored.len() {
                let old = std::mem::replace(&mut stored[index], name);
                most = most.max(most_hits(rest, capacity, stored));
                stored[index] = old;
            }
        }
        most
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn nothing_is_better(names in prop::collection::vec(0..6_u64, 0..11), capacity in 0..4_usize) {
            let counts = optimum(&names, capacity, 0);
            prop_assert_eq!(counts.hits, most_hits(&names, capacity, &mut Vec::new()));
            prop_assert_eq!(counts.requests, names.len() as u64);
        }
    }

    #[test]
    fn warming_up_is_not_counted() {
        let counts = optimum(&[1, 1, 1, 2, 1], 1, 2);
        assert_eq!((counts.requests, counts.hits), (3, 2));
    }
}
