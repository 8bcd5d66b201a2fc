//! The time that packets stay in the router, combined from all threads that receive and send packets.

use std::num::NonZeroU32;
use std::time::Instant;

use namehop_client::nfd::LatencyStatus;
use tokio::sync::{Mutex, mpsc, oneshot};

use namehop_face::latency::{LatencyHistograms, LatencyRecorder};
use namehop_face::socket::SocketCommand;

use namehop_worker::WorkerHandles;

/// The control thread's part of the measurement.
pub struct Latency {
    /// The clock of packet stamps.
    clock: Instant,
    sockets: mpsc::Sender<SocketCommand>,
    workers: WorkerHandles,
    /// Locked while recorders are swapped, so that no thread has a recorder of another measurement. `None` while
    /// nothing is measured.
    measured: Mutex<Option<Measured>>,
}

struct Measured {
    one_in: NonZeroU32,
    since: Instant,
    times: LatencyHistograms,
}

impl Latency {
    /// Creates the state without a measurement.
    pub fn new(sockets: mpsc::Sender<SocketCommand>, workers: WorkerHandles) -> Self {
        Latency { clock: Instant::now(), sockets, workers, measured: Mutex::default() }
    }

    /// Starts measuring one in this many packets, or stops.
    pub async fn sample(&self, one_in: Option<NonZeroU32>) {
        let mut measured = self.measured.lock().await;
        self.swap(one_in).await;
        *measured = one_in.map(|one_in| Measured { one_in, since: Instant::now(), times: LatencyHistograms::new() });
    }

    /// Returns the measurements so far.
    pub async fn status(&self) -> LatencyStatus {
        let mut measured = self.measured.lock().await;
        let Some(Measured { one_in, since, times }) = measured.as_mut() else { return LatencyStatus::default() };
        for recorder in self.swap(Some(*one_in)).await {
            times.add(recorder.histograms());
        }
        LatencyStatus::new(*one_in, u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX), times)
    }

    /// Replaces each thread's recorder by an empty one, or by none; returns the previous recorders.
    async fn swap(&self, one_in: Option<NonZeroU32>) -> Vec<Box<LatencyRecorder>> {
        let next = || one_in.map(|one_in| LatencyRecorder::new(self.clock, one_in));
        // A thread that has ended measures nothing.
        let mut before = self.workers.swap_latency(next).await.unwrap_or_default();
        let (reply, answer) = oneshot::channel();
        if self.sockets.send(SocketCommand::SwapLatency { next: next(), reply }).await.is_ok() {
            before.extend(answer.await.ok().flatten());
        }
        before
    }
}
