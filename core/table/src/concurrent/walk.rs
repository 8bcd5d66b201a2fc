//! A walk over all entries in portions, between which the table may change and grow.
//!
//! Home buckets are visited in the order of their bit-reversed numbers. When the table doubles, the entries of one
//! home bucket move to two buckets with the same low bits, which are neighbours in that order. So a cursor divides
//! visited from unvisited entries in every table size.

use super::ConcurrentBucketTable;
use super::array::index_in;

/// A position in a walk; the default is its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WalkCursor {
    /// Next home bucket, bit-reversed: its lowest bit is the highest here.
    reversed: u64,
}

impl WalkCursor {
    /// Returns the position as a number that can be stored outside of the process.
    pub fn number(self) -> u64 {
        self.reversed
    }

    /// Returns the position with this number. Every number is valid; one that is not from [`number`](Self::number) is
    /// an arbitrary position.
    pub fn from_number(number: u64) -> Self {
        WalkCursor { reversed: number }
    }

    /// Returns the next home bucket of a table with `home_count` of them, and the position after it; `None` at the
    /// end.
    fn advance(self, home_count: usize) -> (usize, Option<WalkCursor>) {
        let bits = home_count.trailing_zeros();
        if bits == 0 {
            return (0, None);
        }
        let position = self.reversed >> (u64::BITS - bits);
        let home = (position << (u64::BITS - bits)).reverse_bits() as usize;
        let next =
            (position + 1 < home_count as u64).then(|| WalkCursor { reversed: (position + 1) << (u64::BITS - bits) });
        (home, next)
    }
}

impl ConcurrentBucketTable {
    /// Appends the indexes of up to `chains` home buckets, and of their overflow buckets, to `out`. Returns where to
    /// continue, or `None` at the end.
    ///
    /// An entry that is in the table during the whole walk is visited at least once, even if entries are added, removed
    /// or replaced or the table grows meanwhile.
    pub fn walk(&self, from: WalkCursor, chains: usize, out: &mut Vec<u32>) -> Option<WalkCursor> {
        let array = self.array();
        let mut ahead = Some(from);
        for _ in 0..chains {
            let Some(cursor) = ahead else { break };
            let (home, next) = cursor.advance(array.home_buckets());
            array.prefetch_bucket(home);
            ahead = next;
        }
        let mut cursor = from;
        for _ in 0..chains {
            let (home, next) = cursor.advance(array.home_buckets());
            out.extend(array.chain(home).map(index_in));
            cursor = next?;
        }
        Some(cursor)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{GrowthEntries, PageRequest};

    /// Indexes that are the low bits of their own hashes, spread over tags.
    struct Identity;

    impl GrowthEntries for Identity {
        fn prefetch(&self, _index: u32) {}

        fn low_bits(&self, index: u32) -> u32 {
            index
        }
    }

    fn hash(index: u32) -> u64 {
        u64::from(index % 97 + 1) << 32 | u64::from(index)
    }

    #[test]
    fn everything_is_visited_once_while_nothing_changes() {
        for count in [0, 1, 5, 6, 1000] {
            let mut table = ConcurrentBucketTable::new(count as usize, PageRequest::Ordinary).expect("memory");
            for index in 0..count {
                table.insert(hash(index), index).expect("room");
            }
            for chains in [1, 3, 10_000] {
                let (mut seen, mut cursor) = (Vec::new(), Some(WalkCursor::default()));
                while let Some(from) = cursor {
                    cursor = table.walk(from, chains, &mut seen);
                }
                seen.sort_unstable();
                assert_eq!(seen, (0..count).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn what_stays_is_visited_although_the_table_grows_and_shrinks() {
        for steps in 1..40 {
            let mut table = ConcurrentBucketTable::new(100, PageRequest::Ordinary).expect("memory");
            for index in 0..100 {
                table.insert(hash(index * 7), index * 7).expect("room");
            }
            let (mut seen, mut cursor, mut rounds) = (Vec::new(), Some(WalkCursor::default()), 0);
            while let Some(from) = cursor {
                cursor = table.walk(from, 1, &mut seen);
                rounds += 1;
                let capacity = match rounds {
                    _ if rounds == steps => 900,
                    _ if rounds == 2 * steps => 40,
                    _ => continue,
                };
                table.start_growth(capacity).expect("memory");
                while table.growing_to().is_some() {
                    drop(table.grow_step(3, &Identity).expect("room"));
                }
            }
            let seen: HashSet<u32> = seen.into_iter().collect();
            assert_eq!(seen, (0..100).map(|index| index * 7).collect(), "the table grew after {steps} steps");
        }
    }
}
