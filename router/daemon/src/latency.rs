//! How long packets stay in the router, of all threads that receive and send them together.

use std::num::NonZeroU32;
use std::time::Instant;

use tokio::sync::{Mutex, mpsc, oneshot};

use namehop_face::latency::{LatencyHistograms, LatencyRecorder};
use namehop_face::socket::SocketCommand;
use namehop_manage::server::LatencyStatus;

use crate::worker::WorkerHandles;

/// The control thread's side of the measurement.
pub struct Latency {
    /// What the stamps of packets are told by.
    clock: Instant,
    sockets: mpsc::Sender<SocketCommand>,
    workers: WorkerHandles,
    /// Held while the threads are asked, so that nobody gets recorders of two measurements. Absent while nothing is measured.
    measured: Mutex<Option<Measured>>,
}

struct Measured {
    one_in: NonZeroU32,
    since: Instant,
    times: LatencyHistograms,
}

impl Latency {
    /// Nothing is measured yet.
    pub fn new(sockets: mpsc::Sender<SocketCommand>, workers: WorkerHandles) -> Self {
        Latency { clock: Instant::now(), sockets, workers, measured: Mutex::default() }
    }

    /// Measures one in so many packets from now on, or none.
    pub async fn sample(&self, one_in: Option<NonZeroU32>) {
        let mut measured = self.measured.lock().await;
        self.swap(one_in).await;
        *measured = one_in.map(|one_in| Measured { one_in, since: Instant::now(), times: LatencyHistograms::new() });
    }

    /// What was measured so far.
    pub async fn status(&self) -> LatencyStatus {
        let mut measured = self.measured.lock().await;
        let Some(Measured { one_in, since, times }) = measured.as_mut() else { return LatencyStatus::default() };
        for recorder in self.swap(Some(*one_in)).await {
            times.add(recorder.histograms());
        }
        LatencyStatus::new(*one_in, u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX), times)
    }

    /// Gives each thread an empty recorder, or none, for the one that it has.
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
