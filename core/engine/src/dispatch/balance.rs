//! Balances the load of workers, and the use of their Content Stores. It moves entries of the name dispatch table from
//! the most loaded worker to the least loaded one, and divides entries that are too heavy for one worker.
//!
//! The load of an entry is estimated from samples: each worker counts one in [`SAMPLED`] packets for the entry of its
//! name. An entry is moved as a whole. If none can be moved, because one prefix has more load than the difference, its
//! entry is divided: names below the prefix then have their own entries, which are spread over all workers. Each step
//! of a [`Plan`] counts as new for [`GRACE_NS`]. During this time the former owner of the names is still offered the
//! Data that its pending Interests wait for, and a moved entry stays.
//!
//! Each worker's store has an equal part of the capacity. The capacity is used up when all stores are full. If one is
//! full and another has room, entries with much Data move from the first worker to the second, as far as the loads
//! allow.
//!
//! Cached Data is not moved. The former owner evicts it in time, because it gets no more requests. The new owner may
//! have cached Data of the entry from an earlier time; it erases that before the entry is moved or divided. So no
//! Interest is answered with Data older than the former owner's.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use namehop_packet::Timestamp;

use super::NameDispatch;

/// One in this number of packets is counted.
pub const SAMPLED: NonZeroU32 = NonZeroU32::new(64).unwrap();
/// Minimum number of samples for a decision by load.
const MIN_SAMPLES: u64 = 1_000;
/// Minimum number of Data samples for a decision by stores.
const MIN_DATA_SAMPLES: u64 = 100;
/// Nothing is moved while the most loaded worker exceeds its share by at most this percentage.
const TOLERATED_PERCENT: u64 = 20;
/// Maximum number of entries moved in one step.
const MAX_MOVES: usize = 64;
/// How long an entry has a former owner, in nanoseconds: longer than Interests are usually pending.
pub const GRACE_NS: u64 = 30_000_000_000;

/// The sampled load of an entry of the name dispatch table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryLoad {
    /// Number of counted packets; one in [`SAMPLED`] is counted.
    pub samples: u32,
    /// Number of Data among them.
    pub data: u32,
    /// Index of the entry.
    pub entry: usize,
    /// The owner of the entry.
    pub worker: u8,
}

/// How much of its part of the Content Store a worker uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreUse {
    /// Number of cached packets.
    pub packets: usize,
    /// Whether packets are evicted for new ones.
    pub is_full: bool,
}

impl StoreUse {
    /// Returns whether this store could hold twice its packets, judging by the full store.
    fn has_room_beside(self, full: StoreUse) -> bool {
        !self.is_full && 2 * self.packets <= full.packets
    }
}

/// The assignment of an entry to another worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryMove {
    /// Index of the entry.
    pub entry: usize,
    /// The new owner.
    pub to: u8,
}

/// The changes that balance the workers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Entries to move.
    pub moves: Vec<EntryMove>,
    /// The entry to divide.
    pub divide: Option<usize>,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.moves.is_empty() && self.divide.is_none()
    }
}

/// A change in its grace period.
#[derive(Debug, Clone, Copy)]
enum Lately {
    Moved(usize),
    Divided(usize),
}

/// An entry that may be moved.
#[derive(Debug, Clone, Copy)]
struct Weighed {
    /// The quantity to balance.
    weight: u64,
    /// Number of sampled packets.
    samples: u64,
    entry: usize,
    worker: usize,
}

/// Measures the load of entries, and moves and divides them. Owned by one thread.
#[derive(Debug, Default)]
pub struct Balancer {
    /// Changes in their grace period, with its end, oldest first.
    lately: VecDeque<(Timestamp, Lately)>,
    /// Counts between the last two measurements, largest first.
    loads: Vec<EntryLoad>,
    /// Data samples by entry since stores were last compared.
    data: BTreeMap<usize, u64>,
}

impl Balancer {
    /// Fetches the counts since the last measurement. Removes former owners at the end of their grace period.
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

    /// Returns the counts of entries between the last two measurements, largest first, without entries that had no
    /// packet.
    pub fn loads(&self) -> &[EntryLoad] {
        &self.loads
    }

    /// Plans changes by the last measured load, or else by the fill level of the workers' stores, which are given by
    /// worker number. Before the plan is carried out, the new owners must erase their cached Data of these entries: see
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
        // The heaviest first, so that the fewest are moved.
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

    /// Plans to move names of a full store to one that has room, as far as the loads allow.
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

    /// Returns the entries by their Data since the last call, largest first.
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

    /// Carries out a plan: moves entries, and divides one. Entries that were moved lately, or that already have the
    /// planned owner, stay. Returns the number of entries changed.
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

/// Returns the most loaded and the least loaded worker.
fn extremes(loads: &[u64]) -> Option<(usize, usize)> {
    let numbered = || loads.iter().enumerate();
    let (from, _) = numbered().max_by_key(|&(_, load)| load)?;
    let (to, _) = numbered().min_by_key(|&(_, load)| load)?;
    Some((from, to))
}

/// Returns the heaviest undivided entry of a worker; `entries` must be sorted, heaviest first.
fn heaviest_undivided<'a>(entries: &'a [Weighed], worker: usize, dispatch: &NameDispatch) -> Option<&'a Weighed> {
    entries.iter().find(|each| each.worker == worker && !dispatch.is_divided(each.entry))
}

/// Takes the first entry of worker `from` that weighs at most half of the `difference` to another worker, which may get
/// `allowed` more packets. A heavier entry would only reverse the imbalance.
fn take_fitting(entries: &mut Vec<Weighed>, from: usize, difference: u64, allowed: u64) -> Option<Weighed> {
    let fits = |each: &Weighed| each.worker == from && each.weight <= difference / 2 && each.samples <= allowed;
    let place = entries.iter().position(fits)?;
    Some(entries.remove(place))
}

#[cfg(test)]
mod tests;
