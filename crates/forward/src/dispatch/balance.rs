//! Evens out the load of workers: moves entries of the name dispatch table from the one that has most to the one that has least.
//!
//! What an entry costs is estimated from samples: each worker counts one in [`SAMPLED`] packets for the entry of its name. An entry
//! is moved as a whole, so one prefix that brings more than a worker can do stays where it is. An entry that was moved stays for
//! [`GRACE_NS`], in which its former owner is still offered the Data that its pending Interests wait for. What the former owner
//! has cached is not moved; it is evicted there in time like all that nobody asks for.

use std::collections::VecDeque;

use namehop_packet::Timestamp;

use super::NameDispatch;

/// One in so many packets is counted.
pub const SAMPLED: u32 = 64;
/// Samples without which nothing is said about the load.
const MIN_SAMPLES: u64 = 1_000;
/// Nothing is moved while the most loaded worker has at most so much more than its share, in percent.
const TOLERATED_PERCENT: u64 = 20;
/// Most entries that are moved in one step.
const MAX_MOVES: usize = 64;
/// How long an entry has a former owner: longer than Interests are usually pending.
pub const GRACE_NS: u64 = 30_000_000_000;

/// Moves entries; one thread has it.
#[derive(Debug, Default)]
pub struct Balancer {
    /// Entries with a former owner, and when that is forgotten, oldest first.
    moved: VecDeque<(Timestamp, usize)>,
}

impl Balancer {
    /// Looks at the load since the last step and moves what should be moved. Returns how many entries were.
    pub fn step(&mut self, now: Timestamp, dispatch: &NameDispatch) -> usize {
        while let Some(&(_, index)) = self.moved.front().filter(|(end, _)| *end <= now) {
            self.moved.pop_front();
            dispatch.forget_former_owner(index);
        }
        let mut entries: Vec<(u32, usize, u8)> = dispatch.take_loads().collect();
        let mut loads = vec![0_u64; dispatch.workers()];
        entries.iter().for_each(|&(load, _, owner)| loads[usize::from(owner)] += u64::from(load));
        let total: u64 = loads.iter().sum();
        if total < MIN_SAMPLES {
            return 0;
        }
        let tolerated = total * (100 + TOLERATED_PERCENT) / 100 / loads.len() as u64;
        // The heaviest first: so the fewest are moved.
        entries.sort_unstable_by(|one, other| other.cmp(one));
        let mut moves = 0;
        while moves < MAX_MOVES {
            let numbered = || loads.iter().enumerate();
            let Some((from, &most)) = numbered().max_by_key(|&(_, load)| load) else { break };
            let Some((to, &least)) = numbered().min_by_key(|&(_, load)| load) else { break };
            if most <= tolerated {
                break;
            }
            // One that weighs more than half the difference would only turn it round.
            let fits = |&(load, _, owner): &(u32, usize, u8)| {
                usize::from(owner) == from && u64::from(load) <= (most - least) / 2
            };
            let Some(place) = entries.iter().position(fits) else { break };
            let (load, index, _) = entries.remove(place);
            if dispatch.move_entry(index, to as u8) {
                self.moved.push_back((Timestamp(now.0.saturating_add(GRACE_NS)), index));
                loads[from] -= u64::from(load);
                loads[to] += u64::from(load);
                moves += 1;
            }
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use namehop_hash::DispatchKey;
    use namehop_wire::Name;

    use super::super::tests::{interest, name};
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Names of many entries that all belong to worker 0.
    fn names_of_one_worker(dispatch: &NameDispatch, count: usize) -> Vec<Name> {
        let names = (0..).map(|number| name(&format!("/a/n{number}")));
        let is_of_first = |name: &Name| dispatch.entry_of(name.value()).is_some_and(|(_, owner)| owner == 0);
        names.filter(is_of_first).take(count).collect()
    }

    fn load(dispatch: &NameDispatch, names: &[Name], samples: usize) {
        for name in names {
            (0..samples).for_each(|_| dispatch.note_load(&interest(name)));
        }
    }

    fn owners(dispatch: &NameDispatch, names: &[Name]) -> Vec<usize> {
        let mut counts = vec![0; dispatch.workers()];
        for name in names {
            counts[usize::from(dispatch.entry_of(name.value()).expect("a name").1)] += 1;
        }
        counts
    }

    #[test]
    fn the_load_of_one_worker_is_shared_and_then_left_alone() {
        let dispatch = NameDispatch::new(4, 2, DispatchKey::new(1, 2));
        let names = names_of_one_worker(&dispatch, 40);
        let mut balancer = Balancer::default();
        load(&dispatch, &names, 100);
        assert!(balancer.step(Timestamp(1), &dispatch) > 20);
        let after = owners(&dispatch, &names);
        assert!(after.iter().all(|&count| (8..=12).contains(&count)), "{after:?}");
        load(&dispatch, &names, 100);
        assert_eq!(balancer.step(Timestamp(SECOND), &dispatch), 0);
        // Former owners are forgotten when their time is over, and not before.
        let has_former = |name: &Name| dispatch.forget_former_owner(dispatch.entry_of(name.value()).expect("a name").0);
        balancer.step(Timestamp(GRACE_NS), &dispatch);
        assert!(names.iter().any(has_former));
        balancer.step(Timestamp(GRACE_NS + 1), &dispatch);
        assert!(!names.iter().any(has_former));
    }

    #[test]
    fn little_load_and_a_single_heavy_prefix_move_nothing() {
        let dispatch = NameDispatch::new(2, 2, DispatchKey::new(1, 2));
        let names = names_of_one_worker(&dispatch, 9);
        let mut balancer = Balancer::default();
        load(&dispatch, &names, 100);
        assert_eq!(balancer.step(Timestamp(1), &dispatch), 0, "too few samples");
        load(&dispatch, &names[..1], 10_000);
        assert_eq!(balancer.step(Timestamp(2), &dispatch), 0);
        // What comes beside the heavy one goes elsewhere.
        load(&dispatch, &names[..1], 10_000);
        load(&dispatch, &names[1..], 10);
        assert_eq!(balancer.step(Timestamp(3), &dispatch), 8);
        assert_eq!(owners(&dispatch, &names), [1, 8]);
    }
}
