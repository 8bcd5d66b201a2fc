//! Evens out the load of workers: moves entries of the name dispatch table from the one that has most to the one that has least.
//!
//! What an entry costs is estimated from samples: each worker counts one in [`SAMPLED`] packets for the entry of its name. An entry
//! is moved as a whole, so one prefix that brings more than a worker can do stays where it is. An entry that was moved stays for
//! [`GRACE_NS`], in which its former owner is still offered the Data that its pending Interests wait for.
//!
//! What is cached is not moved. The former owner evicts it in time like all that nobody asks for. The new owner may have Data of the
//! entry in its cache from an earlier time, and erases that before the entry is moved: so nobody is answered with what is older than
//! a former owner's.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use namehop_packet::Timestamp;

use super::NameDispatch;

/// One in so many packets is counted.
pub const SAMPLED: NonZeroU32 = NonZeroU32::new(64).unwrap();
/// Samples without which nothing is said about the load.
const MIN_SAMPLES: u64 = 1_000;
/// Nothing is moved while the most loaded worker has at most so much more than its share, in percent.
const TOLERATED_PERCENT: u64 = 20;
/// Most entries that are moved in one step.
const MAX_MOVES: usize = 64;
/// How long an entry has a former owner: longer than Interests are usually pending.
pub const GRACE_NS: u64 = 30_000_000_000;

/// What was counted for an entry of the name dispatch table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryLoad {
    /// Packets of which one in [`SAMPLED`] was counted: so many were.
    pub samples: u32,
    /// Number of the entry.
    pub entry: usize,
    /// Its owner.
    pub worker: u8,
}

/// That an entry is to be given to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryMove {
    /// Number of the entry.
    pub entry: usize,
    /// The new owner.
    pub to: u8,
}

/// Knows the load of entries, and moves them; one thread has it.
#[derive(Debug, Default)]
pub struct Balancer {
    /// Entries with a former owner, and when that is forgotten, oldest first.
    moved: VecDeque<(Timestamp, usize)>,
    /// What was counted between the last two measurements, most first.
    loads: Vec<EntryLoad>,
}

impl Balancer {
    /// Takes what was counted since the last time. Forgets former owners whose time is over.
    pub fn measure(&mut self, now: Timestamp, dispatch: &NameDispatch) {
        while let Some(&(_, entry)) = self.moved.front().filter(|(end, _)| *end <= now) {
            self.moved.pop_front();
            dispatch.forget_former_owner(entry);
        }
        self.loads.clear();
        self.loads.extend(dispatch.take_loads());
        self.loads.sort_unstable_by(|one, other| other.cmp(one));
    }

    /// What was counted for entries between the last two measurements, most first; those without a packet are left out.
    pub fn loads(&self) -> &[EntryLoad] {
        &self.loads
    }

    /// What should be moved by the load that was measured last. Before it is, its new owners have to erase what they have cached
    /// of it: see [`cs_erase_entries`](crate::engine::Engine::cs_erase_entries).
    pub fn plan(&self, dispatch: &NameDispatch) -> Vec<EntryMove> {
        let mut loads = vec![0_u64; dispatch.workers()];
        self.loads.iter().for_each(|load| loads[usize::from(load.worker)] += u64::from(load.samples));
        let (total, mut moves) = (loads.iter().sum::<u64>(), Vec::new());
        if total < MIN_SAMPLES {
            return moves;
        }
        let tolerated = total * (100 + TOLERATED_PERCENT) / 100 / loads.len() as u64;
        // The heaviest first: so the fewest are moved.
        let mut entries: Vec<EntryLoad> =
            self.loads.iter().copied().filter(|load| dispatch.former_owner_of(load.entry).is_none()).collect();
        while moves.len() < MAX_MOVES {
            let numbered = || loads.iter().enumerate();
            let Some((from, &most)) = numbered().max_by_key(|&(_, load)| load) else { break };
            let Some((to, &least)) = numbered().min_by_key(|&(_, load)| load) else { break };
            if most <= tolerated {
                break;
            }
            // One that weighs more than half the difference would only turn it round.
            let fits =
                |load: &EntryLoad| usize::from(load.worker) == from && u64::from(load.samples) <= (most - least) / 2;
            let Some(place) = entries.iter().position(fits) else { break };
            let EntryLoad { samples, entry, .. } = entries.remove(place);
            loads[from] -= u64::from(samples);
            loads[to] += u64::from(samples);
            moves.push(EntryMove { entry, to: to as u8 });
        }
        moves
    }

    /// Moves entries. Those stay that were moved lately, or are where they shall be. Returns how many were moved.
    pub fn carry_out(&mut self, now: Timestamp, dispatch: &NameDispatch, moves: &[EntryMove]) -> usize {
        let mut moved = 0;
        for &EntryMove { entry, to } in moves {
            if dispatch.move_entry(entry, to) {
                self.moved.push_back((Timestamp(now.0.saturating_add(GRACE_NS)), entry));
                moved += 1;
            }
        }
        moved
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

    /// Measures, plans and moves; how many entries were moved.
    fn step(balancer: &mut Balancer, now: Timestamp, dispatch: &NameDispatch) -> usize {
        balancer.measure(now, dispatch);
        let moves = balancer.plan(dispatch);
        balancer.carry_out(now, dispatch, &moves)
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
        assert!(step(&mut balancer, Timestamp(1), &dispatch) > 20);
        let after = owners(&dispatch, &names);
        assert!(after.iter().all(|&count| (8..=12).contains(&count)), "{after:?}");
        load(&dispatch, &names, 100);
        assert_eq!(step(&mut balancer, Timestamp(SECOND), &dispatch), 0);
        // Former owners are forgotten when their time is over, and not before.
        let has_former = |name: &Name| dispatch.forget_former_owner(dispatch.entry_of(name.value()).expect("a name").0);
        step(&mut balancer, Timestamp(GRACE_NS), &dispatch);
        assert!(names.iter().any(has_former));
        step(&mut balancer, Timestamp(GRACE_NS + 1), &dispatch);
        assert!(!names.iter().any(has_former));
    }

    #[test]
    fn little_load_and_a_single_heavy_prefix_move_nothing() {
        let dispatch = NameDispatch::new(2, 2, DispatchKey::new(1, 2));
        let names = names_of_one_worker(&dispatch, 9);
        let mut balancer = Balancer::default();
        load(&dispatch, &names, 100);
        assert_eq!(step(&mut balancer, Timestamp(1), &dispatch), 0, "too few samples");
        load(&dispatch, &names[..1], 10_000);
        assert_eq!(step(&mut balancer, Timestamp(2), &dispatch), 0);
        // What comes beside the heavy one goes elsewhere.
        load(&dispatch, &names[..1], 10_000);
        load(&dispatch, &names[1..], 10);
        assert_eq!(step(&mut balancer, Timestamp(3), &dispatch), 8);
        assert_eq!(owners(&dispatch, &names), [1, 8]);
    }
}
