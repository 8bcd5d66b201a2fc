//! The control thread's handle to all workers: sends a command to each of them and combines their replies.

use std::cell::RefCell;
use std::sync::Arc;

use namehop_client::nfd::WorkerStatus;
use tokio::sync::oneshot;

use namehop_engine::engine::{CsChange, CsInfo, EngineEvent, EngineStatus};
use namehop_engine::fib::NextHop;
use namehop_engine::trace::TraceRequest;
use namehop_face::capture::CaptureRecorder;
use namehop_face::latency::LatencyRecorder;
use namehop_face::registry::Face;
use namehop_packet::FaceId;
use namehop_wire::Name;

use super::command::{Settled, WorkerCommand, WorkerGone, WorkerHandle};

/// Handles of all workers, in the order of their numbers; see the module's description.
#[derive(Clone)]
pub struct WorkerHandles(Arc<[WorkerHandle]>);

/// Returns the part of `total` that `worker` gets among `workers`. Parts differ by at most one and add up to `total`.
pub fn share(total: usize, worker: usize, workers: usize) -> usize {
    total / workers + usize::from(worker < total % workers)
}

impl WorkerHandles {
    /// Combines the handles of workers. There must be at least one.
    pub fn new(workers: Vec<WorkerHandle>) -> Self {
        WorkerHandles(workers.into())
    }

    /// Sends a command to each worker and waits for all replies.
    async fn ask_all<T>(
        &self,
        command: impl Fn(usize, oneshot::Sender<T>) -> WorkerCommand,
    ) -> Result<Vec<T>, WorkerGone> {
        // Send to all workers before waiting for the first reply.
        let workers = self.0.iter().enumerate();
        let asked: Vec<_> = workers.map(|(worker, handle)| handle.start(|reply| command(worker, reply))).collect();
        let mut answers = Vec::with_capacity(asked.len());
        for answer in asked {
            answers.push(answer.await.map_err(|_| WorkerGone)?);
        }
        Ok(answers)
    }

    fn send_all(&self, command: impl Fn() -> WorkerCommand) {
        self.0.iter().for_each(|handle| handle.send(command()));
    }

    /// Number of workers.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds a face; afterwards packets can be sent to it. The worker that has the port of the face has added it before
    /// this.
    ///
    /// # Errors
    /// A worker has stopped. The same holds for all methods here.
    pub async fn add_face(&self, face: Arc<Face>) -> Result<(), WorkerGone> {
        self.ask_all(|_, reply| WorkerCommand::AddFace(Arc::clone(&face), Some(reply))).await.map(drop)
    }

    /// Removes a face, which must already be removed from any port of a worker.
    pub async fn remove_face(&self, id: FaceId) -> Result<(), WorkerGone> {
        self.ask_all(|_, reply| WorkerCommand::RemoveFace(id, Some(reply))).await.map(drop)
    }

    /// Adds a face that a peer has created. Does not wait, so that many new connections do not delay commands. Commands
    /// that are sent to the workers later find the face.
    pub fn face_created(&self, face: &Arc<Face>) {
        self.send_all(|| WorkerCommand::AddFace(Arc::clone(face), None));
    }

    /// Removes a face that was closed without a command. Does not wait.
    pub fn face_destroyed(&self, id: FaceId) {
        self.send_all(|| WorkerCommand::RemoveFace(id, None));
    }

    /// Applies changed options of a face.
    pub async fn update_face(&self, id: FaceId) -> Result<(), WorkerGone> {
        self.ask_all(|_, reply| WorkerCommand::UpdateFace(id, reply)).await.map(drop)
    }

    /// Applies changed options of a face, or a changed state of its link. Does not wait.
    pub fn face_changed(&self, id: FaceId) {
        self.send_all(|| WorkerCommand::UpdateFace(id, oneshot::channel().0));
    }

    /// Tells strategies of a new next hop. Does not wait: nothing depends on it.
    pub fn next_hop_added(&self, prefix: &Name, nexthop: NextHop) {
        self.send_all(|| WorkerCommand::NextHopAdded(prefix.clone(), nexthop));
    }

    /// Returns the state of the Content Store, summed over all workers.
    pub async fn cs_info(&self) -> Result<CsInfo, WorkerGone> {
        Ok(sum(self.cs_infos().await?))
    }

    /// Returns the state of each worker's Content Store.
    pub async fn cs_infos(&self) -> Result<Vec<CsInfo>, WorkerGone> {
        self.ask_all(|_, reply| WorkerCommand::CsInfo(reply)).await
    }

    /// Changes Content Store settings and returns the new state. The workers share the capacity. Afterwards all workers
    /// have the same policy: the requested one, or the previous one if a worker has no memory for the requested one.
    pub async fn cs_configure(&self, change: CsChange) -> Result<CsInfo, WorkerGone> {
        let before = self.cs_info().await?.policy;
        let after = self.cs_configure_each(change).await?;
        match change.policy {
            Some(policy) if after.iter().any(|info| info.policy != policy) => {
                let back = CsChange { policy: Some(before), ..CsChange::default() };
                Ok(sum(self.cs_configure_each(back).await?))
            }
            _ => Ok(sum(after)),
        }
    }

    async fn cs_configure_each(&self, change: CsChange) -> Result<Vec<CsInfo>, WorkerGone> {
        let of_worker = |worker| CsChange {
            capacity: change.capacity.map(|capacity| share(capacity, worker, self.count())),
            ..change
        };
        let settled = self.ask_all(|worker, reply| WorkerCommand::CsConfigure(of_worker(worker), reply)).await?;
        let freed = |Settled { info, retired }| {
            drop(retired);
            info
        };
        Ok(settled.into_iter().map(freed).collect())
    }

    /// Erases cached Data under a prefix, at most `limit` in all workers together, and returns the number of erased
    /// Data. Goes through the workers in sequence, because the remaining limit is known only then. Continues even when
    /// nothing of the limit is left, because the limit does not apply to Data on the disk.
    pub async fn cs_erase(&self, prefix: Name, limit: usize) -> Result<usize, WorkerGone> {
        let mut erased = 0;
        for handle in &*self.0 {
            erased += handle.cs_erase(prefix.clone(), limit - erased).await?;
        }
        Ok(erased)
    }

    /// Erases what a worker has cached of entries of the name dispatch table, and returns the number of erased Data.
    /// `entries` must be sorted.
    pub async fn cs_erase_entries(&self, worker: usize, entries: Arc<[usize]>) -> Result<usize, WorkerGone> {
        self.0.get(worker).ok_or(WorkerGone)?.cs_erase_entries(entries).await
    }

    /// Returns counters and table sizes, summed over all workers.
    pub async fn snapshot(&self) -> Result<EngineStatus, WorkerGone> {
        let statuses = self.ask_all(|_, reply| WorkerCommand::Snapshot(reply)).await?;
        let mut all = EngineStatus::default();
        statuses.iter().for_each(|status| all += *status);
        Ok(all)
    }

    /// Returns the status of each worker.
    pub async fn statuses(&self) -> Result<Vec<WorkerStatus>, WorkerGone> {
        self.ask_all(|_, reply| WorkerCommand::WorkerStatus(reply)).await
    }

    /// Replies to an announcement request of a self-learning strategy in this worker.
    pub fn announcement_reply(&self, worker: usize, request: u64, announcement: Option<Vec<u8>>) {
        if let Some(handle) = self.0.get(worker) {
            handle.announcement_reply(request, announcement);
        }
    }

    /// Starts tracing in all workers, each up to the requested number of packets, or stops it.
    pub async fn trace(&self, request: Option<TraceRequest>) -> Result<(), WorkerGone> {
        self.ask_all(|_, reply| WorkerCommand::Trace(request.clone(), reply)).await.map(drop)
    }

    /// Gives each worker a latency recorder, or none; returns the previous recorders.
    pub async fn swap_latency(
        &self,
        next: impl Fn() -> Option<Box<LatencyRecorder>>,
    ) -> Result<Vec<Box<LatencyRecorder>>, WorkerGone> {
        let before = self.ask_all(|_, reply| WorkerCommand::SwapLatency(next(), reply)).await?;
        Ok(before.into_iter().flatten().collect())
    }

    /// Gives each worker one of these capture recorders until none is left; returns the previous recorders.
    pub async fn swap_capture(&self, next: Vec<Box<CaptureRecorder>>) -> Result<Vec<Box<CaptureRecorder>>, WorkerGone> {
        let next = RefCell::new(next);
        let before = self.ask_all(|_, reply| WorkerCommand::SwapCapture(next.borrow_mut().pop(), reply)).await?;
        Ok(before.into_iter().flatten().collect())
    }

    /// Returns the next event of an engine for the control plane, if any, with the number of its worker.
    pub fn next_event(&self) -> Option<(usize, EngineEvent)> {
        self.0.iter().enumerate().find_map(|(worker, handle)| Some((worker, handle.next_event()?)))
    }

    /// Returns whether [`next_event`](Self::next_event) would return an event.
    pub fn has_events(&self) -> bool {
        self.0.iter().any(WorkerHandle::has_events)
    }

    /// Stops the workers after their current poll iteration.
    pub fn shutdown(&self) {
        self.send_all(|| WorkerCommand::Shutdown);
    }
}

fn sum(of_workers: Vec<CsInfo>) -> CsInfo {
    let mut all = of_workers.into_iter();
    let mut sum = all.next().unwrap_or_default();
    all.for_each(|one| sum += one);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_even_and_add_up() {
        for (total, workers) in [(0, 3), (1, 3), (10, 3), (65_536, 7), (5, 1)] {
            let shares: Vec<usize> = (0..workers).map(|worker| share(total, worker, workers)).collect();
            assert_eq!(shares.iter().sum::<usize>(), total);
            assert!(shares.iter().max().expect("a worker") - shares.iter().min().expect("a worker") <= 1, "{shares:?}");
        }
    }
}
