//! Starting and stopping the second tier.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use namehop_engine::second_tier::{TierState, TierStatus};
use namehop_hash::HashKey;
use namehop_table::handover_ring;
use tracing::{error, info, warn};

use crate::file::{self, Opened, slots_in};
use crate::index::Index;
use crate::messages::RING_SLOTS;
use crate::open_error::OpenError;
use crate::scan::OwnerOf;
use crate::server::{Client, RETRY, Server, Worker};
use crate::settings::{DiskSettings, MAX_CAPACITY_BYTES, MIN_CAPACITY_BYTES};
use crate::shared::DiskState;
use crate::storage::FileStorage;
use crate::tier::DiskTier;

/// Slots per index entry: most packets take at least this many.
const SLOTS_PER_ENTRY: u64 = 2;
/// Maximum number of concurrent requests.
const QUEUE_ENTRIES: u32 = 1024;
/// Time that a start waits for a disk that does not answer; then the router continues without it.
const OPEN_TIMEOUT: Duration = Duration::from_secs(3);
/// Time that a stop waits for requests in flight.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// The second tier as a whole. Dropping it without [`stop`](Self::stop) leaves its thread running to the end of the
/// process.
#[derive(Debug)]
pub struct DiskCache {
    shared: Arc<DiskState>,
    ended: Receiver<()>,
}

impl DiskCache {
    /// Opens the file and starts the thread that owns it. Returns one tier for each worker, in order. `key` is the
    /// key of name hashes, and `owner_of` returns the worker that owns a name, given as its VALUE.
    ///
    /// A disk without room or with an error is retried later, and has no contents until then. A disk that does not
    /// answer for three seconds is used as soon as it answers.
    ///
    /// # Errors
    /// When the file cannot be used, and the problem is not temporary.
    pub fn start(
        settings: DiskSettings,
        key: HashKey,
        workers: Vec<Worker>,
        owner_of: impl Fn(&[u8]) -> usize + Send + 'static,
    ) -> Result<(Self, Vec<DiskTier>), OpenError> {
        let slots = slots_in(settings.capacity_bytes);
        if !(MIN_CAPACITY_BYTES..=MAX_CAPACITY_BYTES).contains(&settings.capacity_bytes) {
            return Err(OpenError::Capacity);
        }
        let shared = Arc::new(DiskState::new(slots));
        let entries = (slots / SLOTS_PER_ENTRY + slots / SLOTS_PER_ENTRY / 4) / workers.len().max(1) as u64;
        let indexes = workers.iter().map(|_| Index::new(entries)).collect::<Result<Vec<_>, _>>()?;
        let (mut tiers, mut clients) = (Vec::new(), Vec::new());
        for worker in workers {
            let (to_disk, from_worker) = handover_ring(RING_SLOTS);
            let (to_worker, from_disk) = handover_ring(RING_SLOTS);
            tiers.push(DiskTier::new(Arc::clone(&shared), settings.read_timeout_ms, to_disk, from_disk));
            clients.push(Client { worker, from_worker, to_worker });
        }
        let (end, ended) = channel();
        let (opened_sender, was_opened) = channel();
        let of_thread = Arc::clone(&shared);
        let path = settings.path.clone();
        let run = move || {
            let parts = ServerParts { shared: of_thread, clients, indexes, key, owner_of: Box::new(owner_of) };
            if let Some(opened) = open(&settings, &parts.shared, &opened_sender) {
                serve(&settings, opened, parts);
            }
            // The receiver may be gone when the router ends in a hurry.
            let _ = end.send(());
        };
        thread::Builder::new().name("disk cache".to_owned()).spawn(run).map_err(OpenError::Thread)?;
        match was_opened.recv_timeout(OPEN_TIMEOUT) {
            Ok(opened) => opened?,
            Err(_) => {
                shared.give_up_waiting();
                warn!(path = %path.display(), "the disk does not respond: Data is cached in memory only until it does");
            }
        }
        Ok((DiskCache { shared, ended }, tiers))
    }

    /// Returns the state and counters of the disk.
    pub fn status(&self) -> TierStatus {
        self.shared.status()
    }

    /// Returns a handle that tells, on any thread, whether all erasures are on the disk.
    pub fn watch_erasures(&self) -> ErasureWatch {
        ErasureWatch(Arc::clone(&self.shared))
    }

    /// Writes what workers have handed over, and ends the thread. Does not wait for a disk that does not answer.
    pub fn stop(self) {
        self.shared.stop();
        if let Err(RecvTimeoutError::Timeout) = self.ended.recv_timeout(STOP_TIMEOUT) {
            warn!("the disk cache does not respond; the last packets may not have been written");
        }
    }
}

/// Tells whether all erasures are on the disk.
#[derive(Debug, Clone)]
pub struct ErasureWatch(Arc<DiskState>);

impl ErasureWatch {
    /// Returns true if all erasures that workers were told of are in the file. A crash of the host may still undo
    /// erasures of the last seconds.
    pub fn is_all_written(&self) -> bool {
        self.0.status().erasing_workers == 0
    }
}

/// Parts of the disk thread.
struct ServerParts {
    shared: Arc<DiskState>,
    clients: Vec<Client>,
    indexes: Vec<Index>,
    key: HashKey,
    owner_of: OwnerOf,
}

/// Opens the file, with retries. Returns `None` when it cannot be used, or when the router stops. Reports the result
/// of the first attempt to the thread that waits for the start, if it still waits.
fn open(settings: &DiskSettings, shared: &DiskState, opened_sender: &Sender<Result<(), OpenError>>) -> Option<Opened> {
    let mut is_first = true;
    loop {
        match file::open(settings) {
            Ok(opened) => {
                let _ = opened_sender.send(Ok(()));
                return Some(opened);
            }
            Err(error) if error.may_pass() => {
                shared.set_state(TierState::Failed);
                if is_first {
                    error!(%error, "cannot open the disk cache; retrying");
                    let _ = opened_sender.send(Ok(()));
                }
            }
            Err(error) => {
                shared.set_state(TierState::Failed);
                if let Err(unheard) = opened_sender.send(Err(error))
                    && let Err(error) = unheard.0
                {
                    error!(%error, "cannot open the disk cache");
                }
                return None;
            }
        }
        is_first = false;
        if !pause(shared, RETRY) {
            return None;
        }
    }
}

/// Runs the thread after the file was opened: serves until it is told to stop.
fn serve(settings: &DiskSettings, opened: Opened, parts: ServerParts) {
    let mut proactor = compio_driver::Proactor::builder();
    proactor.capacity(QUEUE_ENTRIES);
    let runtime = match compio_runtime::RuntimeBuilder::new().with_proactor(proactor).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            parts.shared.set_state(TierState::Failed);
            return error!(%error, "cannot use the disk cache: the system supports no asynchronous requests");
        }
    };
    let (life, is_kept) = (opened.life, opened.is_kept);
    info!(
        path = %settings.path.display(),
        "the disk cache has {} MiB, and its index uses {} MiB of memory; requests use {:?}",
        (parts.shared.slots * crate::SLOT_BYTES as u64) >> 20,
        parts.indexes.iter().map(Index::memory_bytes).sum::<usize>() >> 20,
        runtime.driver_type(),
    );
    runtime.block_on(async move {
        let storage = match FileStorage::new(opened.file) {
            Ok(storage) => storage,
            Err(error) => {
                parts.shared.set_state(TierState::Failed);
                return error!(%error, "cannot open the disk cache");
            }
        };
        parts.shared.set_state(TierState::Starting);
        let mut server = Server::new(parts.shared, parts.clients, storage, life);
        server.expect_reads_within(Duration::from_millis(settings.read_timeout_ms));
        match is_kept {
            true => server.scan(parts.indexes, parts.key, parts.owner_of, Instant::now()),
            false => server.start_empty(parts.indexes),
        }
        server.run().await;
    });
}

/// Waits for `time`, or until the thread must stop. Returns true if the thread goes on.
fn pause(shared: &DiskState, time: Duration) -> bool {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if shared.is_stopping() {
            return false;
        }
        thread::sleep(Duration::from_millis(100));
    }
    true
}
