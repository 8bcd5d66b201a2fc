//! Moves names from worker to worker: by itself where their loads differ, and by command. All of it on the control thread.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tracing::{debug, warn};

use namehop_forward::dispatch::{Balancer, EntryLoad, EntryMove, NameDispatch, SAMPLED};
use namehop_manage::server::{DispatchEntry, DispatchError};
use namehop_packet::Timestamp;
use namehop_wire::NameRef;

use crate::worker::{WorkerGone, WorkerHandles};

/// Time between two looks at how names are divided among workers.
const INTERVAL: Duration = Duration::from_secs(5);
/// Least packets per second for which one-sided load is worth a warning: below it one worker has time enough.
const LEAST_PACKETS_PER_S: u64 = 20_000;
/// How many measurements in a row must show one-sided load before the warning, and how many pass before the next one.
const LOPSIDED_MEASUREMENTS: u32 = 6;
const WARNING_EVERY: u32 = 720;

/// How names are divided, and who changes that.
pub struct Balancing {
    dispatch: Arc<NameDispatch>,
    balancer: RefCell<Balancer>,
    started: Instant,
    /// Whether names are moved without a command.
    moves_by_itself: bool,
    /// Measurements in a row in which one entry had most packets.
    lopsided: Cell<u32>,
}

/// Whether the entry with most samples has more than half of many packets.
fn is_lopsided(most: u64, all: u64) -> bool {
    let packets_per_s = all * u64::from(SAMPLED.get()) / INTERVAL.as_secs();
    packets_per_s >= LEAST_PACKETS_PER_S && 2 * most > all
}

impl Balancing {
    /// Of the names in this table.
    pub fn new(dispatch: Arc<NameDispatch>, moves_by_itself: bool) -> Self {
        let lopsided = Cell::new(0);
        Balancing { dispatch, balancer: RefCell::default(), started: Instant::now(), moves_by_itself, lopsided }
    }

    /// Warns when most packets belong to one entry, which no move to another worker can divide.
    fn warn_if_lopsided(&self) {
        let balancer = self.balancer.borrow();
        let loads = balancer.loads();
        let samples = |load: &EntryLoad| u64::from(load.samples);
        let (most, all) = (loads.first().map_or(0, samples), loads.iter().map(samples).sum::<u64>());
        let count = if is_lopsided(most, all) { self.lopsided.get() + 1 } else { 0 };
        self.lopsided.set(count);
        if count % WARNING_EVERY == LOPSIDED_MEASUREMENTS {
            warn!(
                percent = most * 100 / all,
                "most packets have names that begin with the same components, so one worker has them all and uses its share of \
                 Content Store and PIT only; raise dispatch_components in [forwarding] above the number of these components \
                 and restart"
            );
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Measures loads from time to time, and evens them out where that is wanted. Ends when a worker has ended.
    pub async fn run(&self, workers: &WorkerHandles) {
        loop {
            sleep(INTERVAL).await;
            self.balancer.borrow_mut().measure(self.now(), &self.dispatch);
            self.warn_if_lopsided();
            if !self.moves_by_itself {
                continue;
            }
            let moves = self.balancer.borrow().plan(&self.dispatch);
            match self.carry_out(workers, &moves).await {
                Ok(0) => {}
                Ok(moved) => debug!(moved, "names were moved from worker to worker"),
                Err(WorkerGone) => return,
            }
        }
    }

    /// Moves entries, after their new owners have erased what they had cached of them. Returns how many were moved.
    async fn carry_out(&self, workers: &WorkerHandles, moves: &[EntryMove]) -> Result<usize, WorkerGone> {
        for worker in 0..workers.count() {
            let to_worker = moves.iter().filter(|moved| usize::from(moved.to) == worker);
            let mut entries: Vec<usize> = to_worker.map(|moved| moved.entry).collect();
            if !entries.is_empty() {
                entries.sort_unstable();
                workers.cs_erase_entries(worker, entries.into()).await?;
            }
        }
        Ok(self.balancer.borrow_mut().carry_out(self.now(), &self.dispatch, moves))
    }

    /// Gives the names that are divided together with this one to a worker. It is done when this returns; whose they were before
    /// is the result.
    ///
    /// # Errors
    /// See [`DispatchError`].
    pub async fn move_name(
        &self,
        workers: &WorkerHandles,
        name: NameRef<'_>,
        worker: u64,
    ) -> Result<DispatchEntry, DispatchError> {
        let to = u8::try_from(worker).ok().filter(|&to| usize::from(to) < workers.count());
        let to = to.ok_or(DispatchError::NoSuchWorker)?;
        let (entry, owner) = self.dispatch.entry_of(name.value()).ok_or(DispatchError::NoSuchWorker)?;
        if self.dispatch.former_owner_of(entry).is_some() && owner != to {
            return Err(DispatchError::MovedLately);
        }
        if owner != to {
            let moved = self.carry_out(workers, &[EntryMove { entry, to }]).await;
            // Something else may have moved it while its new owner was busy.
            if moved.unwrap_or(0) == 0 {
                return Err(DispatchError::MovedLately);
            }
        }
        Ok(self.describe(entry, 0))
    }

    /// Entries that had packets between the last two measurements, with most first.
    pub fn entries(&self) -> Vec<DispatchEntry> {
        self.balancer.borrow().loads().iter().map(|load| self.describe(load.entry, load.samples)).collect()
    }

    fn describe(&self, entry: usize, samples: u32) -> DispatchEntry {
        DispatchEntry {
            entry: entry as u64,
            // It may have been moved since its load was measured.
            worker: self.dispatch.owner_of(entry).into(),
            former_worker: self.dispatch.former_owner_of(entry).map(u64::from),
            packets_per_s: u64::from(samples) * u64::from(SAMPLED.get()) / INTERVAL.as_secs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_sided_load_of_many_packets_is_worth_a_warning() {
        let many = LEAST_PACKETS_PER_S * INTERVAL.as_secs() / u64::from(SAMPLED.get()) + 1;
        assert!(is_lopsided(many, many));
        assert!(is_lopsided(many / 2 + 2, many));
        assert!(!is_lopsided(many / 2, many), "half of them is no more than one of two workers should have");
        assert!(!is_lopsided(many - 10, many - 10), "one worker has time enough");
        assert!(!is_lopsided(0, 0));
    }
}
