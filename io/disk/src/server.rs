//! The thread that owns the file: takes requests from all workers, runs them concurrently, and stops using a faulty
//! disk for a while.
//!
//! A request that takes longer than [`STALL`] stalls the disk: no further request is made until that one ends. An
//! error marks the disk as failed: after [`RETRY`] its first bytes are read, and if that succeeds, operation resumes.
//! Both are logged.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use compio_runtime::time::sleep;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use namehop_engine::second_tier::{ReadId, TierState};
use namehop_hash::HashKey;
use namehop_packet::Timestamp;
use namehop_table::{HandoverReceiver, HandoverSender};
use tracing::{info, warn};

use crate::erased::Erased;
use crate::format::{
    self, HEADER_BYTES, NoRecord, RecordKind, SLOT_BYTES, SUPERBLOCK_BYTES, Superblock, decode, offset_of,
};
use crate::index::Index;
use crate::lateness::Lateness;
use crate::messages::{Body, FromDisk, RING_SLOTS, ReadRequest, Run, ToDisk};
use crate::scan::{OwnerOf, Scan};
use crate::shared::{DiskState, count};
use crate::storage::Storage;

/// Duration after which a request stalls the disk.
pub(crate) const STALL: Duration = Duration::from_secs(1);
/// Time until a failed disk is retried.
pub(crate) const RETRY: Duration = Duration::from_secs(10);
/// Interval of the check for faults while requests are in flight.
const TICK: Duration = Duration::from_millis(200);
/// Minimum time between two log messages about the same problem.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The disk thread's view of a worker.
pub struct Worker {
    /// Wakes the worker.
    pub wake: Box<dyn Fn() + Send>,
    /// Time at which the worker's clock started.
    pub started: Instant,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("started", &self.started).finish_non_exhaustive()
    }
}

/// A worker with its rings.
pub(crate) struct Client {
    pub(crate) worker: Worker,
    pub(crate) from_worker: HandoverReceiver<ToDisk>,
    pub(crate) to_worker: HandoverSender<FromDisk>,
}

impl Client {
    fn send(&mut self, message: FromDisk) {
        // The ring has room for all buffers, so no message is lost.
        let _ = self.to_worker.push(message, 0);
    }

    /// Shows the worker the messages sent so far, and wakes it.
    fn publish(&mut self) {
        if self.to_worker.publish() {
            (self.worker.wake)();
        }
    }
}

/// A request in flight.
enum Task {
    /// A write of these positions.
    Write {
        client: usize,
        positions: Range<u64>,
        has_erasure: bool,
    },
    Read {
        client: usize,
        id: ReadId,
        position: u64,
    },
    Scan,
    /// A read that tests whether the disk works again.
    Probe,
}

struct Done {
    number: u64,
    task: Task,
    result: io::Result<usize>,
    buffer: Vec<u8>,
}

/// The current time: on the clock for deadlines, and of day, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    pub(crate) now: Instant,
    pub(crate) wall_ms: u64,
}

impl Time {
    fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time { now: Instant::now(), wall_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) }
    }

    /// Returns the time on the clock of a worker.
    fn of(&self, worker: &Worker) -> Timestamp {
        Timestamp::default() + self.now.saturating_duration_since(worker.started)
    }
}

/// The disk thread; see the module's description.
pub(crate) struct Server<S> {
    shared: Arc<DiskState>,
    clients: Vec<Client>,
    storage: S,
    life: u64,
    in_flight: FuturesUnordered<LocalBoxFuture<'static, Done>>,
    /// Start times of the requests in flight, by number.
    since: BTreeMap<u64, Instant>,
    next_number: u64,
    /// Positions being written.
    writing: Vec<Range<u64>>,
    /// Reads of positions being written, by client.
    waiting: Vec<(usize, ReadRequest)>,
    received: Vec<(usize, ToDisk)>,
    scan: Option<Scan>,
    retry_at: Option<Instant>,
    lateness: Lateness,
    /// Time when a damaged record was last logged.
    damage_logged: Option<Instant>,
}

impl<S: Storage> Server<S> {
    /// Makes an idle server.
    pub(crate) fn new(shared: Arc<DiskState>, clients: Vec<Client>, storage: S, life: u64) -> Self {
        Server {
            shared,
            clients,
            storage,
            life,
            in_flight: FuturesUnordered::new(),
            since: BTreeMap::new(),
            next_number: 0,
            writing: Vec::new(),
            waiting: Vec::new(),
            received: Vec::with_capacity(RING_SLOTS),
            scan: None,
            retry_at: None,
            lateness: Lateness::default(),
            damage_logged: None,
        }
    }

    /// Sets how long Interests wait for a read; slower reads are logged.
    pub(crate) fn expect_reads_within(&mut self, limit: Duration) {
        self.lateness = Lateness::new(limit);
    }

    /// Starts with an empty disk.
    pub(crate) fn start_empty(&mut self, indexes: Vec<Index>) {
        self.start(indexes, &Erased::default());
    }

    /// Starts by scanning the disk.
    pub(crate) fn scan(&mut self, indexes: Vec<Index>, key: HashKey, owner_of: OwnerOf, now: Instant) {
        let scan = Scan::new(indexes, key, owner_of, self.life, self.shared.slots, now);
        self.scan_on(scan, Vec::new(), now);
    }

    fn start(&mut self, indexes: Vec<Index>, erased: &Erased) {
        for (client, index) in self.clients.iter_mut().zip(indexes) {
            client.send(FromDisk::Ready(Box::new((index, erased.clone()))));
            client.publish();
        }
        // A worker that sees this state finds the index in its ring.
        self.shared.set_state(TierState::Working);
    }

    fn scan_on(&mut self, mut scan: Scan, buffer: Vec<u8>, now: Instant) {
        if now.duration_since(scan.reported) >= REPORT_INTERVAL {
            scan.reported = now;
            info!("rebuilding the index of the disk cache: {} % done", scan.percent());
        }
        if let Some(piece) = scan.next_piece() {
            let bytes = (piece.end - piece.start) as usize * SLOT_BYTES;
            let mut buffer = buffer;
            buffer.resize(bytes, 0);
            let reading = self.storage.read(buffer, bytes, offset_of(piece.start, self.shared.slots));
            self.begin(Task::Scan, reading, now);
            self.scan = Some(scan);
            return;
        }
        let found = scan.finish();
        info!("the disk cache contains {} packets from before the restart", found.records);
        self.shared.continue_at(found.end);
        self.start(found.indexes, &found.erased);
    }

    /// Serves until it is told to stop and no request is in flight.
    pub(crate) async fn run(mut self) {
        let mut tick: Option<Pin<Box<dyn Future<Output = ()>>>> = None;
        poll_fn(move |context| {
            loop {
                if let Poll::Ready(()) = self.poll(context, Time::now()) {
                    return Poll::Ready(());
                }
                // Without requests in flight there is nothing to watch.
                if self.since.is_empty() && self.retry_at.is_none() {
                    tick = None;
                    return Poll::Pending;
                }
                let ticking = tick.get_or_insert_with(|| Box::pin(sleep(TICK)));
                if ticking.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                tick = None;
            }
        })
        .await;
    }

    /// Does all pending work. Ready when it was told to stop and all is done.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, time: Time) -> Poll<()> {
        self.shared.awake();
        loop {
            let mut worked = self.take_requests(time);
            while let Poll::Ready(Some(done)) = self.in_flight.poll_next_unpin(context) {
                worked = true;
                self.done(done, time);
            }
            worked |= self.watch(time.now);
            self.clients.iter_mut().for_each(Client::publish);
            if worked {
                continue;
            }
            if self.shared.is_stopping() && self.in_flight.is_empty() {
                return Poll::Ready(());
            }
            self.shared.fall_asleep(context.waker());
            if self.clients.iter().all(|client| client.from_worker.is_empty()) {
                return Poll::Pending;
            }
            self.shared.awake();
        }
    }

    fn take_requests(&mut self, time: Time) -> bool {
        let mut received = std::mem::take(&mut self.received);
        for (number, client) in self.clients.iter_mut().enumerate() {
            client.from_worker.receive(RING_SLOTS, |message| received.push((number, message)));
        }
        let worked = !received.is_empty();
        let is_working = self.shared.state() == TierState::Working;
        for (client, message) in received.drain(..) {
            match message {
                ToDisk::Write(run) if is_working => self.write(client, run, time),
                ToDisk::Read(request) if is_working => self.read(client, request, time.now),
                ToDisk::Write(Run { bytes: buffer, has_erasure, .. }) => {
                    self.clients[client].send(FromDisk::Written { buffer, has_erasure, is_written: false });
                }
                ToDisk::Read(ReadRequest { id, buffer, .. }) => {
                    self.clients[client].send(FromDisk::Read { id, buffer, body: None });
                }
            }
        }
        self.received = received;
        worked
    }

    fn begin(&mut self, task: Task, transfer: crate::storage::Transfer, now: Instant) {
        let number = self.next_number;
        self.next_number += 1;
        self.since.insert(number, now);
        self.in_flight.push(Box::pin(async move {
            let (result, buffer) = transfer.await;
            Done { number, task, result, buffer }
        }));
    }

    fn write(&mut self, client: usize, run: Run, time: Time) {
        let Run { position, mut bytes, has_erasure } = run;
        let worker = &self.clients[client].worker;
        let engine_now = time.of(worker);
        let wall_ms = |at: Timestamp| match at.since_ns(engine_now) / 1_000_000 {
            0 => 0,
            left_ms => time.wall_ms.saturating_add(left_ms),
        };
        format::seal(&mut bytes, self.life, time.wall_ms, wall_ms);
        let positions = position..position + (bytes.len() / SLOT_BYTES) as u64;
        count(&self.shared.counters.writes, 1);
        count(&self.shared.counters.written_bytes, bytes.len() as u64);
        self.writing.push(positions.clone());
        let writing = self.storage.write(bytes, offset_of(position, self.shared.slots));
        self.begin(Task::Write { client, positions, has_erasure }, writing, time.now);
    }

    fn read(&mut self, client: usize, request: ReadRequest, now: Instant) {
        if self.writing.iter().any(|positions| positions.contains(&request.position)) {
            return self.waiting.push((client, request));
        }
        let ReadRequest { id, position, slots, buffer } = request;
        count(&self.shared.counters.reads, 1);
        let reading = self.storage.read(buffer, slots * SLOT_BYTES, offset_of(position, self.shared.slots));
        self.begin(Task::Read { client, id, position }, reading, now);
    }

    fn done(&mut self, done: Done, time: Time) {
        let Done { number, task, result, buffer } = done;
        let took = self.since.remove(&number).map(|since| time.now.saturating_duration_since(since));
        let result = result.map_err(|error| self.failed(&error, time.now));
        match task {
            Task::Write { client, positions, has_erasure } => {
                let is_written = result.is_ok_and(|written| written == buffer.len());
                if result.is_ok() && !is_written {
                    self.failed(&io::Error::from(io::ErrorKind::StorageFull), time.now);
                }
                self.writing.retain(|others| *others != positions);
                self.clients[client].send(FromDisk::Written { buffer, has_erasure, is_written });
                let (ready, waiting) = std::mem::take(&mut self.waiting)
                    .into_iter()
                    .partition(|(_, request)| positions.contains(&request.position));
                self.waiting = waiting;
                let ready: Vec<_> = ready;
                ready.into_iter().for_each(|(client, request)| self.read(client, request, time.now));
            }
            Task::Read { client, id, position } => {
                if let Some((late, reads)) = self.lateness.note(took.unwrap_or_default(), time.now, REPORT_INTERVAL) {
                    warn!(
                        "the disk is slow: {late} of {reads} lookups in the last second took longer than \
                         read_timeout_ms; their Interests continued without the disk cache"
                    );
                }
                let body = result.ok().and_then(|bytes| self.body(client, buffer.get(..bytes)?, position, time));
                self.clients[client].send(FromDisk::Read { id, buffer, body });
            }
            Task::Scan => {
                let Some(mut scan) = self.scan.take() else { return };
                scan.take_piece(&buffer[..result.unwrap_or(0).min(buffer.len())]);
                self.scan_on(scan, buffer, time.now);
            }
            Task::Probe => {
                let is_ours = result.is_ok_and(|bytes| {
                    buffer
                        .get(..bytes)
                        .is_some_and(|bytes| Superblock::decode(bytes).is_ok_and(|found| found.life == self.life))
                });
                if is_ours {
                    self.shared.set_state(TierState::Working);
                    self.retry_at = None;
                    info!("the disk cache works again");
                } else {
                    self.retry_at = Some(time.now + RETRY);
                }
            }
        }
    }

    /// Returns the Data in the bytes read from a position.
    fn body(&mut self, client: usize, bytes: &[u8], position: u64, time: Time) -> Body {
        match decode(bytes, self.life) {
            Ok(record) if record.position == position && record.kind == RecordKind::Data => {
                let fresh_ns = record.fresh_for_ms(time.wall_ms).saturating_mul(1_000_000);
                let fresh_until = time.of(&self.clients[client].worker).0.saturating_add(fresh_ns);
                let is_fresh = fresh_ns > 0;
                let range = HEADER_BYTES..HEADER_BYTES + record.body.len();
                Some((range, if is_fresh { Timestamp(fresh_until) } else { Timestamp::default() }))
            }
            // Overwritten since the lookup, or never written because of a disk fault.
            Ok(_) | Err(NoRecord::Absent | NoRecord::OtherLife) => None,
            Err(NoRecord::Broken) => {
                count(&self.shared.counters.checksum_failures, 1);
                let is_old = |logged: Instant| time.now.duration_since(logged) >= REPORT_INTERVAL;
                if self.damage_logged.is_none_or(is_old) {
                    self.damage_logged = Some(time.now);
                    warn!("a packet in the disk cache has a wrong checksum and is ignored");
                }
                None
            }
        }
    }

    /// Handles an error of the disk.
    fn failed(&mut self, error: &io::Error, now: Instant) {
        count(&self.shared.counters.errors, 1);
        // A scan skips parts that cannot be read.
        if self.scan.is_some() {
            return warn!(%error, "cannot read a part of the disk cache");
        }
        if self.retry_at.is_none() {
            warn!(
                %error,
                "the disk cache has failed: Data is cached in memory only; retrying in {} s",
                RETRY.as_secs()
            );
        }
        self.shared.set_state(TierState::Failed);
        self.retry_at = Some(now + RETRY);
    }

    /// Detects requests that take too long, and starts the retry of a failed disk when it is due. Returns true if it
    /// started a retry.
    fn watch(&mut self, now: Instant) -> bool {
        let oldest = self.since.first_key_value().map(|(_, &since)| since);
        let is_late = oldest.is_some_and(|since| now.saturating_duration_since(since) >= STALL);
        match self.shared.state() {
            TierState::Working if is_late => {
                count(&self.shared.counters.stalls, 1);
                self.shared.set_state(TierState::Stalled);
                warn!(
                    "the disk has not responded for {} s: Data is cached in memory only until it responds",
                    STALL.as_secs()
                );
            }
            TierState::Stalled if !is_late => {
                self.shared.set_state(TierState::Working);
                info!("the disk responds again");
            }
            TierState::Failed if self.retry_at.is_some_and(|at| now >= at) && self.since.is_empty() => {
                self.retry_at = Some(now + RETRY);
                let probing = self.storage.read(vec![0; SUPERBLOCK_BYTES], SUPERBLOCK_BYTES, 0);
                self.begin(Task::Probe, probing, now);
                return true;
            }
            _ => {}
        }
        false
    }
}
