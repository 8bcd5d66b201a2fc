//! Moves names between workers: automatically if the loads or Content Stores of workers are unbalanced, and by command.
//! Runs on the control thread.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use namehop_client::nfd::DispatchEntry;
use tokio::time::sleep;
use tracing::{debug, warn};

use namehop_engine::dispatch::{Balancer, EntryLoad, EntryMove, MAX_COMPONENTS, NameDispatch, Plan, SAMPLED, StoreUse};
use namehop_engine::engine::CsInfo;
use namehop_manage::server::DispatchError;
use namehop_packet::Timestamp;
use namehop_wire::NameRef;

use namehop_worker::{WorkerGone, WorkerHandles};

/// Time between two measurements of the load.
const INTERVAL: Duration = Duration::from_secs(5);
/// Unbalanced load causes a warning from this many packets per second; below it one worker has spare time.
const LEAST_PACKETS_PER_S: u64 = 20_000;
/// Number of consecutive unbalanced measurements before the warning, and number of measurements until it is repeated.
const LOPSIDED_MEASUREMENTS: u32 = 6;
const WARNING_EVERY: u32 = 720;

/// The state of balancing.
pub struct Balancing {
    dispatch: Arc<NameDispatch>,
    balancer: RefCell<Balancer>,
    started: Instant,
    /// Whether names are moved without a command.
    moves_by_itself: bool,
    /// Number of consecutive measurements in which one entry had most packets.
    lopsided: Cell<u32>,
    /// Packets evicted by each worker's Content Store up to the last measurement.
    evictions: RefCell<Vec<u64>>,
}

/// Returns whether the entry with most samples has more than half of all packets, and there are enough packets to
/// matter.
fn is_lopsided(most: u64, all: u64) -> bool {
    let packets_per_s = all * u64::from(SAMPLED.get()) / INTERVAL.as_secs();
    packets_per_s >= LEAST_PACKETS_PER_S && 2 * most > all
}

impl Balancing {
    /// Creates the state for the names in this table.
    pub fn new(dispatch: Arc<NameDispatch>, moves_by_itself: bool) -> Self {
        Balancing {
            dispatch,
            balancer: RefCell::default(),
            started: Instant::now(),
            moves_by_itself,
            lopsided: Cell::new(0),
            evictions: RefCell::default(),
        }
    }

    /// Warns if most packets belong to one entry that cannot be spread over workers: either balancing is disabled, or
    /// the packets have the same name.
    fn warn_if_lopsided(&self) {
        let balancer = self.balancer.borrow();
        let loads = balancer.loads();
        let samples = |load: &EntryLoad| u64::from(load.samples);
        let (most, all) = (loads.first().map_or(0, samples), loads.iter().map(samples).sum::<u64>());
        let count = if is_lopsided(most, all) { self.lopsided.get() + 1 } else { 0 };
        self.lopsided.set(count);
        if count % WARNING_EVERY == LOPSIDED_MEASUREMENTS {
            let percent = most * 100 / all;
            if self.moves_by_itself {
                warn!(
                    percent,
                    "most packets have the same name, or names with the same first {MAX_COMPONENTS} components: one \
                     worker handles all of them and uses only its share of the Content Store and PIT"
                );
            } else {
                warn!(
                    percent,
                    "most packets have names with the same first components, so one worker handles all of them and \
                     uses only its share of the Content Store and PIT; set rebalance = true in [forwarding], or \
                     raise dispatch_components there above the number of these components, and restart"
                );
            }
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn measure(&self) {
        self.balancer.borrow_mut().measure(self.now(), &self.dispatch);
        self.warn_if_lopsided();
    }

    /// Measures loads at intervals, and balances them if enabled. Ends when a worker has ended.
    pub async fn run(&self, workers: &WorkerHandles) {
        loop {
            sleep(INTERVAL).await;
            self.measure();
            if !self.moves_by_itself {
                continue;
            }
            match self.even_out(workers).await {
                Ok(0) => {}
                Ok(changed) => debug!(changed, "moved dispatch entries between workers"),
                Err(WorkerGone) => return,
            }
        }
    }

    /// Moves and divides entries according to the last measurement. Returns the number of changed entries.
    async fn even_out(&self, workers: &WorkerHandles) -> Result<usize, WorkerGone> {
        let stores = self.store_uses(&workers.cs_infos().await?);
        let plan = self.balancer.borrow_mut().plan(&self.dispatch, &stores);
        self.carry_out(workers, &plan).await
    }

    /// Returns how much each worker uses of its part of the Content Store.
    fn store_uses(&self, infos: &[CsInfo]) -> Vec<StoreUse> {
        let evictions: Vec<u64> = infos.iter().map(|info| info.by_policy.total().evictions).collect();
        let before = self.evictions.replace(evictions.clone());
        let evicts = |worker: usize| evictions.get(worker) > before.get(worker).or(evictions.get(worker));
        let store_use = |(worker, info): (usize, &CsInfo)| StoreUse {
            packets: info.entries,
            is_full: info.entries >= info.capacity || evicts(worker),
        };
        infos.iter().enumerate().map(store_use).collect()
    }

    /// Moves and divides entries, after each receiving worker has erased its cached Data of them. Returns the number of
    /// changed entries.
    async fn carry_out(&self, workers: &WorkerHandles, plan: &Plan) -> Result<usize, WorkerGone> {
        for worker in 0..workers.count() {
            let to_worker = plan.moves.iter().filter(|moved| usize::from(moved.to) == worker).map(|moved| moved.entry);
            let from_others =
                plan.divide.into_iter().filter(|&entry| usize::from(self.dispatch.owner_of(entry)) != worker);
            let mut entries: Vec<usize> = to_worker.chain(from_others).collect();
            if !entries.is_empty() {
                entries.sort_unstable();
                workers.cs_erase_entries(worker, entries.into()).await?;
            }
        }
        Ok(self.balancer.borrow_mut().carry_out(self.now(), &self.dispatch, plan))
    }

    /// Moves the dispatch entry of this name to a worker. The move is complete on return. The result describes the
    /// entry, with its former worker.
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
        let (entry, owner) = self.dispatch.entry_of(name.value()).expect("a NameRef holds a valid Name VALUE");
        if self.dispatch.former_owner_of(entry).is_some() && owner != to {
            return Err(DispatchError::MovedLately);
        }
        if owner != to {
            let plan = Plan { moves: vec![EntryMove { entry, to }], divide: None };
            let moved = self.carry_out(workers, &plan).await.map_err(|WorkerGone| DispatchError::RouterEnds)?;
            // Another move may have come first while the new owner erased its Data.
            if moved == 0 {
                return Err(DispatchError::MovedLately);
            }
        }
        Ok(self.describe(entry, 0))
    }

    /// Returns the entries that had packets between the last two measurements, with most packets first, then the other
    /// divided entries.
    pub fn entries(&self) -> Vec<DispatchEntry> {
        let balancer = self.balancer.borrow();
        let loads = balancer.loads();
        let loaded: HashSet<usize> = loads.iter().map(|load| load.entry).collect();
        let divided = self.dispatch.divided_entries().filter(|entry| !loaded.contains(entry));
        let described = loads.iter().map(|load| self.describe(load.entry, load.samples));
        described.chain(divided.map(|entry| self.describe(entry, 0))).collect()
    }

    fn describe(&self, entry: usize, samples: u32) -> DispatchEntry {
        DispatchEntry {
            entry: entry as u64,
            // The entry may have been moved since its load was measured.
            worker: self.dispatch.owner_of(entry).into(),
            former_worker: self.dispatch.former_owner_of(entry).map(u64::from),
            is_divided: self.dispatch.is_divided(entry),
            packets_per_s: u64::from(samples) * u64::from(SAMPLED.get()) / INTERVAL.as_secs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::Mutex;

    use namehop_hash::DispatchKey;
    use namehop_wire::Name;
    use namehop_wire::builder::InterestBuilder;

    use super::*;

    #[test]
    fn only_one_sided_load_of_many_packets_is_worth_a_warning() {
        let many = LEAST_PACKETS_PER_S * INTERVAL.as_secs() / u64::from(SAMPLED.get()) + 1;
        assert!(is_lopsided(many, many));
        assert!(is_lopsided(many / 2 + 2, many));
        assert!(!is_lopsided(many / 2, many), "half of the packets is the fair share of one of two workers");
        assert!(!is_lopsided(many - 10, many - 10), "a small load does not overload one worker");
        assert!(!is_lopsided(0, 0));
    }
    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no other thread").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Measures several times while all packets have the same name. Returns the log lines, each with the number of its
    /// measurement.
    fn lines_of_one_sided_load(moves_by_itself: bool, measurements: u32) -> Vec<(u32, String)> {
        let log = Log::default();
        let writer = Mutex::new(log.clone());
        let subscriber = tracing_subscriber::fmt().with_writer(writer).with_ansi(false).finish();
        let dispatch = Arc::new(NameDispatch::new(2, 2, DispatchKey::new(1, 2)));
        let balancing = Balancing::new(Arc::clone(&dispatch), moves_by_itself);
        let name: Name = "/one/name".parse().expect("a name");
        let packet = InterestBuilder::new(&name).build().expect("an Interest");
        let mut lines = Vec::new();
        tracing::subscriber::with_default(subscriber, || {
            for measurement in 1..=measurements {
                for _ in 0..=LEAST_PACKETS_PER_S * INTERVAL.as_secs() / u64::from(SAMPLED.get()) {
                    dispatch.note_load(&packet);
                }
                balancing.measure();
                let written = std::mem::take(&mut *log.0.lock().expect("no other thread"));
                lines.extend(
                    String::from_utf8(written).expect("text").lines().map(|line| (measurement, line.to_owned())),
                );
            }
        });
        lines
    }

    #[test]
    fn one_sided_load_is_said_after_half_a_minute_and_again_after_an_hour() {
        let [(first, line), (second, _)] = &lines_of_one_sided_load(true, LOPSIDED_MEASUREMENTS + WARNING_EVERY)[..]
        else {
            panic!("two warnings expected")
        };
        assert_eq!([*first, *second], [LOPSIDED_MEASUREMENTS, LOPSIDED_MEASUREMENTS + WARNING_EVERY]);
        assert!(line.contains("WARN") && line.contains("most packets have the same name"), "{line}");
        assert!(line.contains("percent=100"), "{line}");
        // Without balancing there is a remedy.
        let [(_, line)] = &lines_of_one_sided_load(false, LOPSIDED_MEASUREMENTS)[..] else {
            panic!("a warning expected")
        };
        assert!(line.contains("WARN") && line.contains("set rebalance = true in [forwarding]"), "{line}");
    }
}
