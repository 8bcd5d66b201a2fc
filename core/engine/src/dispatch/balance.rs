//! Evens out the load of workers, and how full their Content Stores are: moves entries of the name dispatch table from the worker that
//! has most to the one that has least, and divides entries that one worker alone should not have.
//!
//! What an entry costs is estimated from samples: each worker counts one in [`SAMPLED`] packets for the entry of its name. An entry
//! is moved as a whole. When none can be moved, because one prefix brings more than the difference, its entry is divided: names
//! below the prefix have entries of their own then, which are spread over all workers. Each step of a [`Plan`] counts for
//! [`GRACE_NS`] as new: for so long the worker that had the names before is still offered the Data that its pending Interests
//! wait for, and an entry that was moved stays.
//!
//! Each worker's store has an equal part of the capacity. The capacity is used up when all stores are full. When one is full and
//! another has room, entries with much Data move from the first worker to the second, as far as the loads allow.
//!
//! What is cached is not moved. The former owner evicts it in time like all that nobody asks for. The new owner may have Data of the
//! entry in its cache from an earlier time, and erases that before the entry is moved or divided: so nobody is answered with what is
//! older than a former owner's.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use namehop_packet::Timestamp;

use super::NameDispatch;

/// One in so many packets is counted.
pub const SAMPLED: NonZeroU32 = NonZeroU32::new(64).unwrap();
/// Samples without which nothing is said about the load.
const MIN_SAMPLES: u64 = 1_000;
/// Samples of Data without which nothing is said about who fills stores.
const MIN_DATA_SAMPLES: u64 = 100;
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
    /// So many of them were Data.
    pub data: u32,
    /// Number of the entry.
    pub entry: usize,
    /// Its owner.
    pub worker: u8,
}

/// How much of its part of the Content Store a worker uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreUse {
    /// Cached packets.
    pub packets: usize,
    /// Do packets have to leave for new ones?
    pub is_full: bool,
}

impl StoreUse {
    /// Could it hold twice what it holds, as the full one shows?
    fn has_room_beside(self, full: StoreUse) -> bool {
        !self.is_full && 2 * self.packets <= full.packets
    }
}

/// That an entry is to be given to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryMove {
    /// Number of the entry.
    pub entry: usize,
    /// The new owner.
    pub to: u8,
}

/// What should be changed so that no worker has more than its share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Entries to be moved.
    pub moves: Vec<EntryMove>,
    /// The entry to be divided.
    pub divide: Option<usize>,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.moves.is_empty() && self.divide.is_none()
    }
}

/// What is forgotten of an entry when its time is over.
#[derive(Debug, Clone, Copy)]
enum Lately {
    Moved(usize),
    Divided(usize),
}

/// An entry that may be moved.
#[derive(Debug, Clone, Copy)]
struct Weighed {
    /// What is to be evened out.
    weight: u64,
    /// Its packets.
    samples: u64,
    entry: usize,
    worker: usize,
}

/// Knows the load of entries, and moves and divides them; one thread has it.
#[derive(Debug, Default)]
pub struct Balancer {
    /// What is new, and when that is over, oldest first.
    lately: VecDeque<(Timestamp, Lately)>,
    /// What was counted between the last two measurements, most first.
    loads: Vec<EntryLoad>,
    /// Samples of Data by entry since stores were last compared.
    data: BTreeMap<usize, u64>,
}

impl Balancer {
    /// Takes what was counted since the last time. Forgets former owners whose time is over.
    pub fn measure(&mut self, now: Timestamp, dispatch: &NameDispatch) {
        while let Some(&(_, lately)) = self.lately.front().filter(|(end, _)| *end <= now) {
            self.lately.pop_front();
            match lately {
                Lately::Moved(entry) => drop(dispatch.forget_former_owner(entry)),
                Lately::Divided(entry) => dispatch.forget_division(entry),
            }
        }
        self.loads.clear();
        self.loads.extend(dispatch.take_loads());
        self.loads.sort_unstable_by(|one, other| other.cmp(one));
        for load in self.loads.iter().filter(|load| load.data > 0) {
            *self.data.entry(load.entry).or_default() += u64::from(load.data);
        }
    }

    /// What was counted for entries between the last two measurements, most first; those without a packet are left out.
    pub fn loads(&self) -> &[EntryLoad] {
        &self.loads
    }

    /// What should be changed by the load that was measured last, or else by how full the stores of the workers are, by their numbers.
    /// Before it is, the new owners have to erase what they have cached of it: see
    /// [`cs_erase_entries`](crate::engine::Engine::cs_erase_entries).
    pub fn plan(&mut self, dispatch: &NameDispatch, stores: &[StoreUse]) -> Plan {
        let mut loads = vec![0_u64; dispatch.workers()];
        self.loads.iter().for_each(|load| loads[usize::from(load.worker)] += u64::from(load.samples));
        let total: u64 = loads.iter().sum();
        let most_allowed = match total {
            0..MIN_SAMPLES => u64::MAX,
            _ => total * (100 + TOLERATED_PERCENT) / 100 / loads.len() as u64,
        };
        let by_load = self.plan_by_load(dispatch, loads.clone(), most_allowed);
        if by_load.is_empty() { self.plan_by_stores(dispatch, stores, &loads, most_allowed) } else { by_load }
    }

    fn plan_by_load(&self, dispatch: &NameDispatch, mut loads: Vec<u64>, most_allowed: u64) -> Plan {
        let weighed = |load: &EntryLoad| Weighed {
            weight: load.samples.into(),
            samples: load.samples.into(),
            entry: load.entry,
            worker: load.worker.into(),
        };
        // The heaviest first: so the fewest are moved.
        let mut entries: Vec<Weighed> = self.loads.iter().map(weighed).collect();
        entries.retain(|load| dispatch.former_owner_of(load.entry).is_none());
        let mut plan = Plan::default();
        while plan.moves.len() < MAX_MOVES {
            let Some((from, to)) = extremes(&loads) else { break };
            if loads[from] <= most_allowed {
                break;
            }
            let Some(moved) = take_fitting(&mut entries, from, loads[from] - loads[to], u64::MAX) else {
                plan.divide = heaviest_undivided(&entries, from, dispatch).map(|load| load.entry);
                break;
            };
            loads[from] -= moved.weight;
            loads[to] += moved.weight;
            plan.moves.push(EntryMove { entry: moved.entry, to: to as u8 });
        }
        plan
    }

    /// Gives names of a full store to one that has room, as far as the loads allow.
    fn plan_by_stores(
        &mut self,
        dispatch: &NameDispatch,
        stores: &[StoreUse],
        loads: &[u64],
        most_allowed: u64,
    ) -> Plan {
        let mut plan = Plan::default();
        if stores.len() != loads.len() || self.data.values().sum::<u64>() < MIN_DATA_SAMPLES {
            return plan;
        }
        let mut entries = self.take_data(dispatch);
        let mut data = vec![0; loads.len()];
        entries.iter().for_each(|each| data[each.worker] += each.weight);
        entries.retain(|each| dispatch.former_owner_of(each.entry).is_none());
        let numbered = || stores.iter().enumerate();
        let full = numbered().filter(|(_, store)| store.is_full).max_by_key(|&(worker, _)| data[worker]);
        let Some((from, &full)) = full else { return plan };
        let with_room = numbered().filter(|(_, store)| store.has_room_beside(full));
        let Some((to, _)) = with_room.min_by_key(|(_, store)| store.packets) else { return plan };
        let mut load_of_new_owner = loads[to];
        let is_uneven = |data: &[u64]| 100 * data[from] > (100 + TOLERATED_PERCENT) * data[to];
        while plan.moves.len() < MAX_MOVES && is_uneven(&data) {
            let allowed = most_allowed.saturating_sub(load_of_new_owner);
            let Some(moved) = take_fitting(&mut entries, from, data[from] - data[to], allowed) else { break };
            data[from] -= moved.weight;
            data[to] += moved.weight;
            load_of_new_owner += moved.samples;
            plan.moves.push(EntryMove { entry: moved.entry, to: to as u8 });
        }
        if plan.moves.is_empty() && is_uneven(&data) {
            let heaviest = heaviest_undivided(&entries, from, dispatch);
            plan.divide = heaviest.filter(|each| 2 * each.weight > data[from] - data[to]).map(|each| each.entry);
        }
        plan
    }

    /// Entries by the Data that they had since the last call, most first.
    fn take_data(&mut self, dispatch: &NameDispatch) -> Vec<Weighed> {
        let samples: BTreeMap<usize, u32> = self.loads.iter().map(|load| (load.entry, load.samples)).collect();
        let weighed = |(entry, weight)| Weighed {
            weight,
            samples: samples.get(&entry).copied().unwrap_or(0).into(),
            entry,
            worker: dispatch.owner_of(entry).into(),
        };
        let mut entries: Vec<Weighed> = std::mem::take(&mut self.data).into_iter().map(weighed).collect();
        entries.sort_by_key(|each| std::cmp::Reverse(each.weight));
        entries
    }

    /// Does what was planned: moves entries, and divides the one. Those stay that were moved lately, or are where they shall be.
    /// Returns how many were changed.
    pub fn carry_out(&mut self, now: Timestamp, dispatch: &NameDispatch, plan: &Plan) -> usize {
        let end = Timestamp(now.0.saturating_add(GRACE_NS));
        let moved = plan.moves.iter().filter(|step| dispatch.move_entry(step.entry, step.to));
        let divided = plan.divide.into_iter().filter(|&entry| dispatch.divide_entry(entry));
        let before = self.lately.len();
        self.lately.extend(moved.map(|step| (end, Lately::Moved(step.entry))));
        self.lately.extend(divided.map(|entry| (end, Lately::Divided(entry))));
        self.lately.len() - before
    }
}

/// The worker with most and the one with least.
fn extremes(loads: &[u64]) -> Option<(usize, usize)> {
    let numbered = || loads.iter().enumerate();
    let (from, _) = numbered().max_by_key(|&(_, load)| load)?;
    let (to, _) = numbered().min_by_key(|&(_, load)| load)?;
    Some((from, to))
}

/// The heaviest entry of a worker that is not divided; the heaviest entries come first.
fn heaviest_undivided<'a>(entries: &'a [Weighed], worker: usize, dispatch: &NameDispatch) -> Option<&'a Weighed> {
    entries.iter().find(|each| each.worker == worker && !dispatch.is_divided(each.entry))
}

/// Takes the first entry of a worker that weighs at most half of the difference to another one, which may get so many more packets:
/// what weighs more would only turn it round.
fn take_fitting(entries: &mut Vec<Weighed>, from: usize, difference: u64, allowed: u64) -> Option<Weighed> {
    let fits = |each: &Weighed| each.worker == from && each.weight <= difference / 2 && each.samples <= allowed;
    let place = entries.iter().position(fits)?;
    Some(entries.remove(place))
}

#[cfg(test)]
mod tests;
