//! The control thread's hold on all workers: a command goes to each of them, and an answer comes when all have given theirs.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::sync::oneshot;

use namehop_engine::engine::{CsChange, CsInfo, EngineEvent};
use namehop_engine::fib::NextHop;
use namehop_engine::trace::TraceRequest;
use namehop_face::capture::CaptureRecorder;
use namehop_face::latency::LatencyRecorder;
use namehop_face::registry::Face;
use namehop_manage::server::{EngineStatus, WorkerStatus};
use namehop_packet::FaceId;
use namehop_wire::Name;

use super::command::{Settled, WorkerCommand, WorkerGone, WorkerHandle};

/// All workers, in the order of their numbers; see the module's description.
#[derive(Clone)]
pub struct WorkerHandles(Arc<[WorkerHandle]>);

/// The part of `total` that each of `workers` gets: as even as it can be, and in sum no more and no less.
pub fn share(total: usize, worker: usize, workers: usize) -> usize {
    total / workers + usize::from(worker < total % workers)
}

impl WorkerHandles {
    /// There is at least one.
    pub fn new(workers: Vec<WorkerHandle>) -> Self {
        WorkerHandles(workers.into())
    }

    /// Sends all of them a command and waits for all answers.
    async fn ask_all<T>(
        &self,
        command: impl Fn(usize, oneshot::Sender<T>) -> WorkerCommand,
    ) -> Result<Vec<T>, WorkerGone> {
        // All get it before the first answer is waited for.
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

    /// Adds a face; afterwards packets can be sent to it. A face on a port is added by the worker that has the port before this.
    ///
    /// # Errors
    /// A worker has stopped; so for all methods here.
    pub async fn add_face(&self, face: Arc<Face>) -> Result<(), WorkerGone> {
        self.ask_all(|_, reply| WorkerCommand::AddFace(Arc::clone(&face), Some(reply))).await.map(drop)
    }

    /// Removes a face, which must not be on a port of a worker any more.
    pub async fn remove_face(&self, id: FaceId) -> Result<(), WorkerGone> {
        self.ask_all(|_, reply| WorkerCommand::RemoveFace(id, Some(reply))).await.map(drop)
    }

    /// Adds a face that a peer has made. Does not wait, so that many connections at once do not keep commands
    /// waiting: what is sent to the workers later finds the face there.
    pub fn face_created(&self, face: &Arc<Face>) {
        self.send_all(|| WorkerCommand::AddFace(Arc::clone(face), None));
    }

    /// Removes a face that has ended without a command. Does not wait.
    pub fn face_destroyed(&self, id: FaceId) {
        self.send_all(|| WorkerCommand::RemoveFace(id, None));
    }

    /// Applies changed options of a face.
    pub async fn update_face(&self, id: FaceId) -> Result<(), WorkerGone> {
        self.ask_all(|_, reply| WorkerCommand::UpdateFace(id, reply)).await.map(drop)
    }

    /// Has changed options of a face, or the state of its link, applied without waiting for it.
    pub fn face_changed(&self, id: FaceId) {
        self.send_all(|| WorkerCommand::UpdateFace(id, oneshot::channel().0));
    }

    /// Tells strategies of a new next hop. Does not wait: nothing depends on it.
    pub fn next_hop_added(&self, prefix: &Name, nexthop: NextHop) {
        self.send_all(|| WorkerCommand::NextHopAdded(prefix.clone(), nexthop));
    }

    /// Asks for the state of the Content Store, of all workers together.
    pub async fn cs_info(&self) -> Result<CsInfo, WorkerGone> {
        Ok(sum(self.cs_infos().await?))
    }

    /// The same of each worker.
    pub async fn cs_infos(&self) -> Result<Vec<CsInfo>, WorkerGone> {
        self.ask_all(|_, reply| WorkerCommand::CsInfo(reply)).await
    }

    /// Changes settings of the Content Store, whose capacity the workers share; gives its new state. All workers have the same
    /// policy afterwards: the one asked for, or where one of them has no memory for that, the one that they had.
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

    /// Erases cached Data, so much of all workers together; gives how many. One worker after another, because what is left of
    /// the limit is known only then. When nothing is left of it, there is still the disk.
    pub async fn cs_erase(&self, prefix: Name, limit: usize) -> Result<usize, WorkerGone> {
        let mut erased = 0;
        for handle in &*self.0 {
            erased += handle.cs_erase(prefix.clone(), limit - erased).await?;
        }
        Ok(erased)
    }

    /// Erases what a worker has cached of entries of the name dispatch table, whose numbers are sorted; gives how many Data.
    pub async fn cs_erase_entries(&self, worker: usize, entries: Arc<[usize]>) -> Result<usize, WorkerGone> {
        self.0.get(worker).ok_or(WorkerGone)?.cs_erase_entries(entries).await
    }

    /// Asks for counters and sizes, of all workers together.
    pub async fn snapshot(&self) -> Result<EngineStatus, WorkerGone> {
        let statuses = self.ask_all(|_, reply| WorkerCommand::Snapshot(reply)).await?;
        let mut all = EngineStatus::default();
        statuses.iter().for_each(|status| all += *status);
        Ok(all)
    }

    /// Asks for what each worker does.
    pub async fn statuses(&self) -> Result<Vec<WorkerStatus>, WorkerGone> {
        self.ask_all(|_, reply| WorkerCommand::WorkerStatus(reply)).await
    }

    /// Answers a request of a self-learning strategy of this worker.
    pub fn announcement_reply(&self, worker: usize, request: u64, announcement: Option<Vec<u8>>) {
        if let Some(handle) = self.0.get(worker) {
            handle.announcement_reply(request, announcement);
        }
    }

    /// Has all of them trace packets, each as many as are asked for, or none.
    pub async fn trace(&self, request: Option<TraceRequest>) -> Result<(), WorkerGone> {
        self.ask_all(|_, reply| WorkerCommand::Trace(request.clone(), reply)).await.map(drop)
    }

    /// Gives each of them a recorder of latency, or none; gives back those that they had.
    pub async fn swap_latency(
        &self,
        next: impl Fn() -> Option<Box<LatencyRecorder>>,
    ) -> Result<Vec<Box<LatencyRecorder>>, WorkerGone> {
        let before = self.ask_all(|_, reply| WorkerCommand::SwapLatency(next(), reply)).await?;
        Ok(before.into_iter().flatten().collect())
    }

    /// Gives each of them one of these recorders of frames, as long as there are some; gives back those that they had.
    pub async fn swap_capture(&self, next: Vec<Box<CaptureRecorder>>) -> Result<Vec<Box<CaptureRecorder>>, WorkerGone> {
        let next = RefCell::new(next);
        let before = self.ask_all(|_, reply| WorkerCommand::SwapCapture(next.borrow_mut().pop(), reply)).await?;
        Ok(before.into_iter().flatten().collect())
    }

    /// Next thing an engine reports to the control plane, if any, and the number of its worker.
    pub fn next_event(&self) -> Option<(usize, EngineEvent)> {
        self.0.iter().enumerate().find_map(|(worker, handle)| Some((worker, handle.next_event()?)))
    }

    /// Whether [`next_event`](Self::next_event) has something.
    pub fn has_events(&self) -> bool {
        self.0.iter().any(WorkerHandle::has_events)
    }

    /// Ends the workers after what they have in hand.
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
            assert!(shares.iter().max().expect("some") - shares.iter().min().expect("some") <= 1, "{shares:?}");
        }
    }
}
