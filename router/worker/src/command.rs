//! Commands from the control thread to a worker, and their replies.
//!
//! Commands are rare; a worker executes them between two bursts. Most have a reply, so that the control thread reports
//! completion only after the worker has executed the command.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use crossbeam_queue::SegQueue;
use namehop_client::nfd::WorkerStatus;
use tokio::sync::oneshot;

use namehop_engine::engine::{CsChange, CsInfo, EngineEvent, EngineStatus};
use namehop_engine::fib::NextHop;
use namehop_engine::trace::TraceRequest;
use namehop_face::capture::CaptureRecorder;
use namehop_face::latency::LatencyRecorder;
use namehop_face::registry::Face;
use namehop_face::wake::Waker;
use namehop_packet::FaceId;
use namehop_store::Policy;
use namehop_wire::Name;

/// One command, with the channel for its reply.
pub(super) enum WorkerCommand {
    /// Add a face that was created, so that packets can be sent to it. The reply is optional. The worker that has the
    /// face's port adds the face with the port changes instead.
    AddFace(Arc<Face>, Option<oneshot::Sender<()>>),
    /// Remove a face that was closed.
    RemoveFace(FaceId, Option<oneshot::Sender<()>>),
    /// Apply changed options of a face, or a changed state of its link.
    UpdateFace(FaceId, oneshot::Sender<()>),
    /// Tell strategies that a FIB entry has a new next hop, to which pending Interests may be sent.
    NextHopAdded(Name, NextHop),
    /// Report contents and hit counts of the Content Store.
    CsInfo(oneshot::Sender<CsInfo>),
    /// Change Content Store settings. The reply is sent when all resulting work is complete.
    CsConfigure(CsChange, oneshot::Sender<Settled>),
    /// Erase at most this many cached Data under a prefix.
    CsErase(Name, usize, oneshot::Sender<usize>),
    /// Erase cached Data of these entries of the name dispatch table. The indices are sorted.
    CsEraseEntries(Arc<[usize]>, oneshot::Sender<usize>),
    /// Report counters and table sizes.
    Snapshot(oneshot::Sender<EngineStatus>),
    /// Report the status of this worker.
    WorkerStatus(oneshot::Sender<WorkerStatus>),
    /// Deliver the prefix announcement that a self-learning strategy requested, by request number.
    AnnouncementReply(u64, Option<Vec<u8>>),
    /// Trace packets that match the request; `None` stops tracing.
    Trace(Option<TraceRequest>, oneshot::Sender<()>),
    /// Replace the latency recorder; `None` stops measuring. The reply is the previous recorder.
    SwapLatency(Option<Box<LatencyRecorder>>, oneshot::Sender<Option<Box<LatencyRecorder>>>),
    /// Replace the frame capture recorder; `None` stops capturing. The reply is the previous recorder.
    SwapCapture(Option<Box<CaptureRecorder>>, oneshot::Sender<Option<Box<CaptureRecorder>>>),
    /// Stop.
    Shutdown,
}

/// The Content Store after its changed settings were applied.
pub(super) struct Settled {
    pub(super) info: CsInfo,
    /// The replaced policy. Freeing its memory would delay a worker, so the control thread frees it.
    pub(super) retired: Option<Box<Policy>>,
}

/// A command failed because the worker has ended: the router is shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the forwarding worker has stopped")]
pub struct WorkerGone;

/// Queues between control thread and worker.
#[derive(Default)]
pub(super) struct Mailbox {
    pub(super) commands: SegQueue<WorkerCommand>,
    pub(super) events: SegQueue<EngineEvent>,
    /// The worker has ended, so commands are dropped.
    is_closed: AtomicBool,
}

impl Mailbox {
    /// Drops all commands, and with them their reply channels, so that the control thread stops waiting for replies.
    fn drop_commands(&self) {
        while self.commands.pop().is_some() {}
    }
}

/// The worker's end of the mailbox. Dropping it, also in a panic, ends all waiting for replies of this worker.
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
        // A command that is pushed later finds the mailbox closed: see `WorkerHandle::send`.
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
        // Either `WorkerMailbox::drop` runs later and drops this command, or this load sees that the mailbox is closed.
        fence(Ordering::SeqCst);
        if self.mailbox.is_closed.load(Ordering::SeqCst) {
            self.mailbox.drop_commands();
        }
        self.waker.wake();
    }

    /// Sends a command and returns the receiver of its reply.
    pub(super) fn start<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> WorkerCommand) -> oneshot::Receiver<T> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply));
        answer
    }

    /// Erases cached Data under a prefix and returns the number of erased Data.
    pub(super) async fn cs_erase(&self, prefix: Name, limit: usize) -> Result<usize, WorkerGone> {
        self.start(|reply| WorkerCommand::CsErase(prefix, limit, reply)).await.map_err(|_| WorkerGone)
    }

    /// Erases cached Data of entries of the name dispatch table and returns the number of erased Data.
    pub(super) async fn cs_erase_entries(&self, entries: Arc<[usize]>) -> Result<usize, WorkerGone> {
        self.start(|reply| WorkerCommand::CsEraseEntries(entries, reply)).await.map_err(|_| WorkerGone)
    }

    /// Replies to an announcement request of a self-learning strategy.
    pub(super) fn announcement_reply(&self, request: u64, announcement: Option<Vec<u8>>) {
        self.send(WorkerCommand::AnnouncementReply(request, announcement));
    }

    /// Returns the next event of the engine for the control plane, if any.
    pub(super) fn next_event(&self) -> Option<EngineEvent> {
        self.mailbox.events.pop()
    }

    /// Returns whether [`next_event`](Self::next_event) would return an event.
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
