//! What the control thread asks of a worker, and how it waits for the answer.
//!
//! Commands are rare and carried out between two bursts. Each has a reply, so that the control thread can say "done"
//! only when it is.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use crossbeam_queue::SegQueue;
use tokio::sync::oneshot;

use namehop_engine::engine::{CsChange, CsInfo, EngineEvent};
use namehop_engine::fib::NextHop;
use namehop_engine::trace::TraceRequest;
use namehop_face::capture::CaptureRecorder;
use namehop_face::latency::LatencyRecorder;
use namehop_face::registry::Face;
use namehop_face::wake::Waker;
use namehop_manage::server::{EngineStatus, WorkerStatus};
use namehop_packet::FaceId;
use namehop_store::Policy;
use namehop_wire::Name;

/// One command with its reply.
pub(super) enum WorkerCommand {
    /// A face exists; packets may be sent to it. Somebody may wait for that. To the worker that has its port, a face is added with
    /// the port, by the port changes.
    AddFace(Arc<Face>, Option<oneshot::Sender<()>>),
    /// A face is gone.
    RemoveFace(FaceId, Option<oneshot::Sender<()>>),
    /// Options of a face have changed, or the state of its link.
    UpdateFace(FaceId, oneshot::Sender<()>),
    /// A FIB entry has a next hop it had not before; pending Interests may go there.
    NextHopAdded(Name, NextHop),
    /// Contents and hit counts of the Content Store.
    CsInfo(oneshot::Sender<CsInfo>),
    /// Change Content Store settings; the reply comes when all that follows from that is done.
    CsConfigure(CsChange, oneshot::Sender<Settled>),
    /// Erase cached Data under a prefix, at most so many.
    CsErase(Name, usize, oneshot::Sender<usize>),
    /// Erase cached Data of these entries of the name dispatch table, whose numbers are sorted.
    CsEraseEntries(Arc<[usize]>, oneshot::Sender<usize>),
    /// Counters and table sizes.
    Snapshot(oneshot::Sender<EngineStatus>),
    /// What this worker does.
    WorkerStatus(oneshot::Sender<WorkerStatus>),
    /// The announcement that a self-learning strategy asked for.
    AnnouncementReply(u64, Option<Vec<u8>>),
    /// Trace such packets, or none any more.
    Trace(Option<TraceRequest>, oneshot::Sender<()>),
    /// Measure latency with this recorder from now on, or not any more; the reply is the one before.
    SwapLatency(Option<Box<LatencyRecorder>>, oneshot::Sender<Option<Box<LatencyRecorder>>>),
    /// Capture frames with this recorder from now on, or not any more; the reply is the one before.
    SwapCapture(Option<Box<CaptureRecorder>>, oneshot::Sender<Option<Box<CaptureRecorder>>>),
    /// Stop.
    Shutdown,
}

/// A Content Store after a change of its settings.
pub(super) struct Settled {
    pub(super) info: CsInfo,
    /// The policy that it had before. To free its memory would hold up a worker.
    pub(super) retired: Option<Box<Policy>>,
}

/// The worker has ended; the router is shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the forwarding worker has stopped")]
pub struct WorkerGone;

/// Queues between control thread and worker.
#[derive(Default)]
pub(super) struct Mailbox {
    pub(super) commands: SegQueue<WorkerCommand>,
    pub(super) events: SegQueue<EngineEvent>,
    /// There is no worker any more, so nobody takes commands.
    is_closed: AtomicBool,
}

impl Mailbox {
    /// Drops all commands. So those who wait for their replies learn that none will come.
    fn drop_commands(&self) {
        while self.commands.pop().is_some() {}
    }
}

/// The worker's end. When the worker ends, however that comes about, nobody goes on waiting for it.
pub(super) struct WorkerMailbox(pub(super) Arc<Mailbox>);

impl Deref for WorkerMailbox {
    type Target = Mailbox;

    fn deref(&self) -> &Mailbox {
        &self.0
    }
}

impl Drop for WorkerMailbox {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // Commands that come after this find the mailbox closed: see `WorkerHandle::send`.
        fence(Ordering::SeqCst);
        self.drop_commands();
    }
}

/// The control thread's end of one worker.
#[derive(Clone)]
pub struct WorkerHandle {
    mailbox: Arc<Mailbox>,
    waker: Arc<Waker>,
}

impl WorkerHandle {
    pub(super) fn new(mailbox: Arc<Mailbox>, waker: Arc<Waker>) -> Self {
        WorkerHandle { mailbox, waker }
    }

    pub(super) fn send(&self, command: WorkerCommand) {
        self.mailbox.commands.push(command);
        // Either the worker's end comes later and drops this command, or this sees that it has come.
        fence(Ordering::SeqCst);
        if self.mailbox.is_closed.load(Ordering::SeqCst) {
            self.mailbox.drop_commands();
        }
        self.waker.wake();
    }

    /// Sends a command; the answer can be waited for.
    pub(super) fn start<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> WorkerCommand) -> oneshot::Receiver<T> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply));
        answer
    }

    /// Erases cached Data; gives how many.
    pub(super) async fn cs_erase(&self, prefix: Name, limit: usize) -> Result<usize, WorkerGone> {
        self.start(|reply| WorkerCommand::CsErase(prefix, limit, reply)).await.map_err(|_| WorkerGone)
    }

    /// Erases cached Data of entries of the name dispatch table; gives how many.
    pub(super) async fn cs_erase_entries(&self, entries: Arc<[usize]>) -> Result<usize, WorkerGone> {
        self.start(|reply| WorkerCommand::CsEraseEntries(entries, reply)).await.map_err(|_| WorkerGone)
    }

    /// Answers a request of a self-learning strategy.
    pub(super) fn announcement_reply(&self, request: u64, announcement: Option<Vec<u8>>) {
        self.send(WorkerCommand::AnnouncementReply(request, announcement));
    }

    /// Next thing the engine reports to the control plane, if any.
    pub(super) fn next_event(&self) -> Option<EngineEvent> {
        self.mailbox.events.pop()
    }

    /// Whether [`next_event`](Self::next_event) has something.
    pub(super) fn has_events(&self) -> bool {
        !self.mailbox.events.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::WorkerHandles;
    use super::*;

    #[test]
    fn nobody_waits_for_a_worker_that_is_gone() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime");
        runtime.block_on(async {
            let mailbox = Arc::new(Mailbox::default());
            let worker = WorkerMailbox(Arc::clone(&mailbox));
            let handle = WorkerHandle::new(mailbox, Arc::new(Waker::new()));
            let handle = WorkerHandles::new(vec![handle]);
            let waiting = handle.cs_info();
            tokio::pin!(waiting);
            let ready = tokio::time::timeout(std::time::Duration::from_millis(1), waiting.as_mut()).await;
            assert!(ready.is_err(), "the worker has not answered yet");
            drop(worker);
            let limit = std::time::Duration::from_secs(10);
            assert_eq!(tokio::time::timeout(limit, waiting).await.expect("in time").err(), Some(WorkerGone));
            assert_eq!(tokio::time::timeout(limit, handle.snapshot()).await.expect("in time").err(), Some(WorkerGone));
        });
    }
}
