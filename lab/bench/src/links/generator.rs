//! Consumer and producer: one thread pinned to its own CPU that busy-polls while links are measured.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use namehop_packet::BufferPool;
use namehop_traffic::loadgen::{Consumer, ConsumerCounts, ConsumerPlan, Idle, PortLink, Producer, ReplyPattern};
use namehop_worker::pin_to_processor;

use super::place::{Place, Side};
use super::port::{End, LinkKind};
use super::{LinksError, TICK};

/// Results of a turn.
#[derive(Debug, Clone)]
pub(super) struct Exchanged {
    pub(super) counts: ConsumerCounts,
    /// Busy time of the generator.
    pub(super) busy: Duration,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Odd while a turn is measured; incremented when a turn begins and when it ends.
    turn: AtomicU64,
    /// Number of Interests that the producer has answered.
    served: AtomicU64,
}

/// The running generator. Its thread ends on drop.
pub(super) struct Generator {
    kind: LinkKind,
    shared: Arc<Shared>,
    /// Receives the results of each turn.
    turns: Mutex<Receiver<Exchanged>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Generator {
    pub(super) fn start(
        place: &Place,
        pool: &BufferPool,
        consumer: &ConsumerPlan,
        producer: &ReplyPattern,
        processor: usize,
    ) -> Result<Generator, LinksError> {
        let open = |side| PortLink::open(&place.port_address(side, End::Generator)?, Idle::Polls, pool);
        let consumer = Consumer::new(open(Side::Consumer)?, consumer)?;
        let producer = Producer::new(open(Side::Producer)?, std::slice::from_ref(producer), 0)?;
        let shared = Arc::new(Shared::default());
        let (of_thread, (sender, turns)) = (Arc::clone(&shared), channel());
        let thread = thread::Builder::new().name("generator".to_owned()).spawn(move || {
            if let Err(error) = pin_to_processor(processor) {
                tracing::warn!(%error, processor, "cannot pin consumer and producer to their CPU");
            }
            run(consumer, producer, &of_thread, &sender)
        })?;
        Ok(Generator { kind: place.kind, shared, turns: Mutex::new(turns), thread: Some(thread) })
    }

    /// Waits until `exchanges` more Interests have been answered; `check` verifies that the router or sink is running.
    ///
    /// # Errors
    /// Fails if the exchanges are not completed within `limit`, or if `check` fails.
    pub(super) fn wait_for_data(
        &self,
        exchanges: u64,
        limit: Duration,
        mut check: impl FnMut() -> Result<(), LinksError>,
    ) -> Result<(), LinksError> {
        let (end, first) = (Instant::now() + limit, self.shared.served.load(Ordering::Relaxed));
        while self.shared.served.load(Ordering::Relaxed) < first + exchanges {
            check()?;
            if Instant::now() > end {
                return Err(LinksError::Nothing { link: self.kind, log: String::new() });
            }
            thread::sleep(TICK);
        }
        Ok(())
    }

    /// Lets the generator run for `time`, or until `stop` is set.
    pub(super) fn wait(&self, time: Duration, stop: &AtomicBool) {
        let end = Instant::now() + time;
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            thread::sleep(TICK.min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// Begins a turn.
    pub(super) fn begin(&self) {
        self.shared.turn.fetch_add(1, Ordering::Release);
    }

    /// Ends the turn, and returns its results.
    ///
    /// # Errors
    /// Fails if the thread has ended.
    pub(super) fn end(&self) -> Result<Exchanged, LinksError> {
        self.shared.turn.fetch_add(1, Ordering::Release);
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.recv().map_err(|_| io::Error::other("the thread of consumer and producer ended").into())
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => tracing::error!(%error, "consumer and producer ended"),
            Some(Err(_)) => tracing::error!("the thread of consumer and producer panicked"),
            _ => {}
        }
    }
}

fn run(
    mut consumer: Consumer<PortLink>,
    mut producer: Producer<PortLink>,
    shared: &Shared,
    turns: &Sender<Exchanged>,
) -> io::Result<()> {
    let mut busy = Duration::ZERO;
    let mut seen = 0;
    let mut before = Instant::now();
    while !shared.stop.load(Ordering::Relaxed) {
        let turn = shared.turn.load(Ordering::Acquire);
        let is_measuring = turn % 2 == 1;
        if turn != seen {
            seen = turn;
            let exchanged = Exchanged { counts: consumer.take_counts(), busy: std::mem::take(&mut busy) };
            if !is_measuring && turns.send(exchanged).is_err() {
                return Ok(());
            }
        }
        let moved = consumer.link().moved() + producer.link().moved();
        consumer.step(|| is_measuring)?;
        producer.step()?;
        shared.served.store(producer.counts().data, Ordering::Relaxed);
        let now = Instant::now();
        if consumer.link().moved() + producer.link().moved() > moved {
            busy += now - before;
        }
        before = now;
    }
    Ok(())
}
