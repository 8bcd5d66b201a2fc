//! Changes that the control thread makes to the ports of a worker: how it sends them and waits, and how [`PortSet`]
//! applies them.
//!
//! Changes are rare. The control side runs on a thread of its own, because opening links takes time, so it may block
//! while it waits. A worker that has ended has dropped the shared mailbox; a worker that hangs is detected by a
//! time-out.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crossbeam_queue::SegQueue;
use namehop_packet::{FaceId, PortQueue};

use super::bypass::Bypass;
use super::queues::{Follower, Share};
use super::single::Port;
use super::{FaceRecords, PortId, PortParams, PortSet};
use crate::encapsulation::FacePeer;
use namehop_face::address::MacAddress;
use namehop_face::counters::LinkDrop;
use namehop_face::registry::Face;
use namehop_face::wake::Waker;

/// How long the control side waits for an answer, and how often it checks whether the worker has ended.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const LIVENESS_INTERVAL: Duration = Duration::from_millis(50);

/// A change and the channel for its reply.
pub(super) enum PortChange {
    /// Adds a port, with this worker's share of it.
    Add(PortId, PortParams, Share, SyncSender<()>),
    /// Removes a port; its faces were removed before.
    Remove(PortId, SyncSender<Option<Box<dyn PortQueue>>>),
    /// Takes the queue back; the port stays.
    TakeQueue(PortId, SyncSender<Option<Box<dyn PortQueue>>>),
    /// Gives the port a queue again, if there is one for this worker, with this hardware address and this MTU in bytes.
    GiveQueue(PortId, Option<Box<dyn PortQueue>>, MacAddress, usize, SyncSender<()>),
    /// Gives the kernel a share of the link, through this queue.
    Share(PortId, Box<dyn PortQueue>, SyncSender<()>),
    /// Sets whether the link works.
    SetState(PortId, bool),
    /// Adds a face; the sender may wait for the reply.
    AddFace(PortId, Arc<Face>, FacePeer, Option<SyncSender<()>>),
    /// Removes a face; the sender may wait for the reply.
    RemoveFace(FaceId, Option<SyncSender<()>>),
}

/// State shared by the control side and a worker.
pub(super) struct Mailbox {
    /// Changes on their way to the worker.
    pub(super) changes: SegQueue<PortChange>,
    /// Queues on their way back that the control side did not wait for. The control side closes them, because that
    /// takes long.
    pub(super) abandoned: SegQueue<Box<dyn PortQueue>>,
}

/// The worker does not answer: it has ended, and the router is shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the forwarding worker does not respond")]
pub struct WorkerSilent;

/// The control side's handle of a worker's ports. Its methods block until the change is in effect.
pub struct PortControl {
    mailbox: Arc<Mailbox>,
    waker: Arc<Waker>,
    timeout: Duration,
}

impl PortControl {
    pub(super) fn new(mailbox: Arc<Mailbox>, waker: Arc<Waker>) -> Self {
        PortControl { mailbox, waker, timeout: ANSWER_TIMEOUT }
    }

    /// Sets the time-out for answers, instead of ten seconds.
    #[cfg(test)]
    pub(super) fn with_timeout(self, timeout: Duration) -> Self {
        PortControl { timeout, ..self }
    }

    /// Whether the worker has ended and will not answer.
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
        let end = Instant::now() + self.timeout;
        loop {
            // Also checked before the first wait: closing many faces of a worker that has ended must not take time.
            let is_final = self.has_worker_ended() || Instant::now() > end;
            match answer.recv_timeout(if is_final { Duration::ZERO } else { LIVENESS_INTERVAL }) {
                Ok(answer) => return Ok(answer),
                Err(_) if is_final => return Err(WorkerSilent),
                Err(_) => {}
            }
        }
    }

    /// Adds a port that has only the queue in `params`; `id` must be free.
    ///
    /// # Errors
    /// The worker has ended; the same holds for all methods here.
    pub fn add(&self, id: PortId, params: PortParams) -> Result<(), WorkerSilent> {
        self.add_share(id, params, Share::First { others: Vec::new() })
    }

    /// Adds the worker's share of a port.
    pub(super) fn add_share(&self, id: PortId, params: PortParams, share: Share) -> Result<(), WorkerSilent> {
        self.ask(|reply| PortChange::Add(id, params, share, reply))
    }

    /// Returns a handle of this worker as the owner of a further queue of another worker's port.
    pub(super) fn follower(&self) -> Follower {
        Follower { mailbox: Arc::downgrade(&self.mailbox), waker: Arc::clone(&self.waker) }
    }

    /// Removes a port and returns its queue. Its faces must have been removed.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn remove(&self, id: PortId) -> Result<Option<Box<dyn PortQueue>>, WorkerSilent> {
        self.ask(|reply| PortChange::Remove(id, reply))
    }

    /// Takes the queue of a port back, so that its link can be restarted. Meanwhile its faces drop their outgoing
    /// frames.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn take_queue(&self, id: PortId) -> Result<Option<Box<dyn PortQueue>>, WorkerSilent> {
        self.ask(|reply| PortChange::TakeQueue(id, reply))
    }

    /// Gives a port a queue again, unless there is none for this worker. The hardware address and the MTU may differ
    /// from the previous ones.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn give_queue(
        &self,
        id: PortId,
        queue: Option<Box<dyn PortQueue>>,
        address: MacAddress,
        mtu_bytes: usize,
    ) -> Result<(), WorkerSilent> {
        self.ask(|reply| PortChange::GiveQueue(id, queue, address, mtu_bytes, reply))
    }

    /// Gives the kernel a share of the link of a port: frames that are not NDN go to `queue`, and frames from `queue`
    /// are sent.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn share(&self, id: PortId, queue: Box<dyn PortQueue>) -> Result<(), WorkerSilent> {
        self.ask(|reply| PortChange::Share(id, queue, reply))
    }

    /// Sets whether a link works. Does not wait for the change to take effect.
    pub fn set_state(&self, id: PortId, is_up: bool) {
        self.send(PortChange::SetState(id, is_up));
    }

    /// Adds the face to a peer on a port. From now on the worker receives and sends packets of the face.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn add_face(&self, id: PortId, face: Arc<Face>, peer: impl Into<FacePeer>) -> Result<(), WorkerSilent> {
        let peer = peer.into();
        self.ask(|reply| PortChange::AddFace(id, face, peer, Some(reply)))
    }

    /// Removes a face from its port and from the worker.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn remove_face(&self, face: FaceId) -> Result<(), WorkerSilent> {
        self.ask(|reply| PortChange::RemoveFace(face, Some(reply)))
    }
}

impl PortSet {
    /// Whether changes are pending, or frames from other workers' queues.
    pub fn has_work(&self) -> bool {
        !self.mailbox.changes.is_empty() || self.has_accepted
    }

    /// Applies the pending changes; returns whether there were any. `faces` are the worker's records.
    pub fn apply_changes(&mut self, faces: &mut impl FaceRecords) -> bool {
        let mut any = false;
        while let Some(change) = self.mailbox.changes.pop() {
            any = true;
            // The control side may have stopped waiting; the change is made anyway.
            match change {
                PortChange::Add(id, params, share, reply) => {
                    let slot = usize::from(id.0);
                    if self.ports.len() <= slot {
                        self.ports.resize_with(slot + 1, || None);
                    }
                    self.ports[slot] = Some(Port::new(params, share));
                    let _ = reply.send(());
                }
                PortChange::Remove(id, reply) => {
                    let mut port = self.ports.get_mut(usize::from(id.0)).and_then(Option::take);
                    let lost = port.as_mut().map_or(0, |port| port.waiting.discard() + port.handed_in.len());
                    self.table.link_drops().add(LinkDrop::LinkDown, lost as u64);
                    while matches!(self.ports.last(), Some(None)) {
                        self.ports.pop();
                    }
                    self.give_back(port.and_then(|port| port.params.queue), &reply);
                }
                PortChange::TakeQueue(id, reply) => {
                    let queue = self.port(id).and_then(|port| port.params.queue.take());
                    self.give_back(queue, &reply);
                }
                PortChange::GiveQueue(id, queue, address, mtu_bytes, reply) => {
                    let (now, mut lost) = (self.now, 0);
                    if let Some(port) = self.port(id) {
                        port.params.mtu_bytes = mtu_bytes;
                        port.give_queue(queue, address, now, faces);
                        if port.params.queue.is_none() {
                            // The port has fewer queues than before, so the frames queued here would never be sent.
                            lost = port.waiting.discard();
                            port.clear_backlog(faces);
                        }
                    }
                    self.table.link_drops().add(LinkDrop::LinkDown, lost as u64);
                    let _ = reply.send(());
                }
                PortChange::Share(id, queue, reply) => {
                    if let Some(port) = self.port(id) {
                        port.bypass = Some(Bypass::new(queue));
                    }
                    let _ = reply.send(());
                }
                PortChange::SetState(id, is_up) => self.set_state(id, is_up, faces),
                PortChange::AddFace(id, face, peer, reply) => {
                    // The control side may have stopped waiting and removed the face.
                    if self.table.get(face.id()).is_some() {
                        self.add_face(id, &face, peer, faces);
                    }
                    let _ = reply.map(|reply| reply.send(()));
                }
                PortChange::RemoveFace(id, reply) => {
                    self.remove_face(id, faces);
                    let _ = reply.map(|reply| reply.send(()));
                }
            }
        }
        any
    }

    /// Returns a queue to the control side. If that has stopped waiting, it will open another queue.
    fn give_back(&self, queue: Option<Box<dyn PortQueue>>, reply: &SyncSender<Option<Box<dyn PortQueue>>>) {
        if let Err(SendError(Some(queue))) = reply.send(queue) {
            self.mailbox.abandoned.push(queue);
        }
    }

    fn set_state(&mut self, id: PortId, is_up: bool, faces: &mut impl FaceRecords) {
        let now = self.now;
        let Some(port) = self.port(id) else { return };
        if is_up != port.params.is_up {
            port.change_state(is_up, now);
        }
        if !is_up {
            let count = port.waiting.discard();
            port.clear_backlog(faces);
            self.table.link_drops().add(LinkDrop::LinkDown, count as u64);
        }
    }
}
