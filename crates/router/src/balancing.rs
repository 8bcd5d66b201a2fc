//! Moves names from worker to worker: by itself where their loads differ, and by command. All of it on the control thread.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tracing::debug;

use namehop_forward::dispatch::{Balancer, EntryMove, NameDispatch, SAMPLED};
use namehop_manage::server::{DispatchEntry, DispatchError};
use namehop_packet::Timestamp;
use namehop_wire::NameRef;

use crate::worker::{WorkerGone, WorkerHandles};

/// Time between two looks at how names are divided among workers.
const INTERVAL: Duration = Duration::from_secs(5);

/// How names are divided, and who changes that.
pub struct Balancing {
    dispatch: Arc<NameDispatch>,
    balancer: RefCell<Balancer>,
    started: Instant,
    /// Whether names are moved without a command.
    moves_by_itself: bool,
}

impl Balancing {
    /// Of the names in this table.
    pub fn new(dispatch: Arc<NameDispatch>, moves_by_itself: bool) -> Self {
        Balancing { dispatch, balancer: RefCell::default(), started: Instant::now(), moves_by_itself }
    }

    fn now(&self) -> Timestamp {
        Timestamp(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Measures loads from time to time, and evens them out where that is wanted. Ends when a worker has ended.
    pub async fn run(&self, workers: &WorkerHandles) {
        loop {
            sleep(INTERVAL).await;
            self.balancer.borrow_mut().measure(self.now(), &self.dispatch);
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
