//! What the control side asks of the worker's ports, and how it waits for the answer.
//!
//! Changes are rare. The control side runs on a thread of its own, because opening links takes time, so it waits by
//! blocking. A worker that has ended has let go of the queue between them, and one that hangs is found out by its silence.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crossbeam_queue::SegQueue;
use namehop_packet::{FaceId, PortQueue};

use super::header::MacAddress;
use super::port::{PortId, PortParams};
use crate::registry::Face;
use crate::wake::Waker;

/// How long the control side waits for an answer, and how often it looks whether the worker has ended.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

/// One change with its reply.
pub(super) enum PortChange {
    /// A port is there.
    Add(PortId, PortParams, SyncSender<()>),
    /// A port is gone; its faces were removed before.
    Remove(PortId, SyncSender<Option<Box<dyn PortQueue>>>),
    /// The link is needed elsewhere; the port stays.
    TakeLink(PortId, SyncSender<Option<Box<dyn PortQueue>>>),
    /// The link is back, with this hardware address.
    GiveLink(PortId, Box<dyn PortQueue>, MacAddress, SyncSender<()>),
    /// The link works or not, and this is what it carries.
    SetState(PortId, bool, usize),
    /// A face is there.
    AddFace(PortId, Arc<Face>, MacAddress, SyncSender<()>),
    /// A face is gone.
    RemoveFace(FaceId, SyncSender<()>),
}

/// What control side and worker share.
pub(super) struct Mailbox {
    /// Changes on their way to the worker.
    pub(super) changes: SegQueue<PortChange>,
    /// Links on their way back that nobody waits for any more. The control side closes them: that takes time, which the worker has
    /// not.
    pub(super) abandoned: SegQueue<Box<dyn PortQueue>>,
}

/// The worker does not answer: it has ended, and the router is about to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the forwarding worker does not answer")]
pub struct WorkerSilent;

/// The control side's hold on the ports of a worker. Methods block until the change is in effect.
pub struct PortControl {
    mailbox: Arc<Mailbox>,
    waker: Arc<Waker>,
    patience: Duration,
}

impl PortControl {
    pub(super) fn new(mailbox: Arc<Mailbox>, waker: Arc<Waker>) -> Self {
        PortControl { mailbox, waker, patience: PATIENCE }
    }

    /// Waits so long for answers instead of ten seconds.
    #[cfg(test)]
    pub(super) fn with_patience(self, patience: Duration) -> Self {
        PortControl { patience, ..self }
    }

    /// Whether the worker has ended, and will answer nothing.
    fn has_worker_ended(&self) -> bool {
        Arc::strong_count(&self.mailbox) == 1
    }

    fn send(&self, change: PortChange) {
        while self.mailbox.abandoned.pop().is_some() {}
        self.mailbox.changes.push(change);
        self.waker.wake();
    }

    fn ask<T>(&self, change: impl FnOnce(SyncSender<T>) -> PortChange) -> Result<T, WorkerSilent> {
        let (reply, answer): (_, Receiver<T>) = sync_channel(1);
        self.send(change(reply));
        let end = Instant::now() + self.patience;
        loop {
            // Before the first wait, too: closing many faces of a worker that has ended takes no time.
            let is_final = self.has_worker_ended() || Instant::now() > end;
            match answer.recv_timeout(if is_final { Duration::ZERO } else { LOOK }) {
                Ok(answer) => return Ok(answer),
                Err(_) if is_final => return Err(WorkerSilent),
                Err(_) => {}
            }
        }
    }

    /// Puts a port to use; the number is not taken.
    ///
    /// # Errors
    /// The worker has ended; so for all methods here.
    pub fn add(&self, id: PortId, params: PortParams) -> Result<(), WorkerSilent> {
        self.ask(|reply| PortChange::Add(id, params, reply))
    }

    /// Takes a port out of use and gives its link back. Its faces must have been removed.
    ///
    /// # Errors
    /// As above.
    pub fn remove(&self, id: PortId) -> Result<Option<Box<dyn PortQueue>>, WorkerSilent> {
        self.ask(|reply| PortChange::Remove(id, reply))
    }

    /// Gives the link of a port back, to be restarted. Meanwhile its faces drop what they are to send.
    ///
    /// # Errors
    /// As above.
    pub fn take_link(&self, id: PortId) -> Result<Option<Box<dyn PortQueue>>, WorkerSilent> {
        self.ask(|reply| PortChange::TakeLink(id, reply))
    }

    /// Puts a link into its port, or back into it; it may have another hardware address than before.
    ///
    /// # Errors
    /// As above.
    pub fn give_link(&self, id: PortId, link: Box<dyn PortQueue>, address: MacAddress) -> Result<(), WorkerSilent> {
        self.ask(|reply| PortChange::GiveLink(id, link, address, reply))
    }

    /// Says whether a link works and what it carries now. Does not wait: nothing depends on it.
    pub fn set_state(&self, id: PortId, is_up: bool, mtu_bytes: usize) {
        self.send(PortChange::SetState(id, is_up, mtu_bytes));
    }

    /// Attaches a face to a port: to this remote address or group, or as the only one of a bare link.
    ///
    /// # Errors
    /// As above.
    pub fn add_face(&self, id: PortId, face: Arc<Face>, remote: MacAddress) -> Result<(), WorkerSilent> {
        self.ask(|reply| PortChange::AddFace(id, face, remote, reply))
    }

    /// Detaches a face from its port.
    ///
    /// # Errors
    /// As above.
    pub fn remove_face(&self, face: FaceId) -> Result<(), WorkerSilent> {
        self.ask(|reply| PortChange::RemoveFace(face, reply))
    }
}
