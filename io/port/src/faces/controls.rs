//! The control side's handles of the ports of all workers. Each method knows which workers have the queues of a port,
//! and in which order to send them the changes.
//!
//! Ports are distributed among the workers by port number. The worker of a port has its first queue; the next workers
//! have one of its further queues each.

use std::sync::Arc;

use namehop_packet::{FaceId, PortQueue};

use super::change::{PortControl, WorkerSilent};
use super::queues::Share;
use super::{PortId, PortParams};
use crate::encapsulation::FacePeer;
use namehop_face::address::MacAddress;
use namehop_face::registry::Face;

/// The queues of a port in order. Each goes to another worker.
pub type PortQueues = Vec<Box<dyn PortQueue>>;

/// Handles of the ports of all workers. A method with a parameter `queues` expects the number of queues that the port
/// was added with. A method that fails does so because a worker has ended.
pub struct PortControls(Vec<PortControl>);

impl PortControls {
    /// Takes the handles of the workers in the order of their numbers; at least one.
    pub fn new(workers: Vec<PortControl>) -> Self {
        PortControls(workers)
    }

    /// Returns how many queues of one port can be in use: one for each worker.
    pub fn max_queues(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of the worker that has this port, and so its first queue.
    pub fn worker_of(&self, id: PortId) -> usize {
        usize::from(id.0) % self.0.len()
    }

    /// Returns the handle of the worker that has this port.
    pub fn of(&self, id: PortId) -> &PortControl {
        &self.0[self.worker_of(id)]
    }

    /// Returns the handles of the workers that have the queues of a port, in the order of the queues.
    fn holders(&self, id: PortId, queues: usize) -> impl Iterator<Item = &PortControl> {
        let (home, workers) = (self.worker_of(id), self.0.len());
        (0..queues.min(workers)).map(move |queue| &self.0[(home + queue) % workers])
    }

    /// Adds a port; `id` must be free. The queue of `params` is ignored. The number of `queues` is at least one and at
    /// most [`max_queues`](Self::max_queues).
    ///
    /// # Errors
    /// A worker has ended.
    pub fn add(&self, id: PortId, params: PortParams, queues: PortQueues) -> Result<(), WorkerSilent> {
        let count = queues.len();
        let others = self.holders(id, count).skip(1).map(PortControl::follower).collect();
        let mut queues = queues.into_iter();
        let first = queues.next();
        // The worker with the first queue comes last, because it tells the others about faces of unknown senders.
        for (number, (holder, queue)) in self.holders(id, count).skip(1).zip(queues).enumerate() {
            let share = Share::Further { queue: number + 1, home: self.worker_of(id) };
            holder.add_share(id, params.with_queue(Some(queue)), share)?;
        }
        self.of(id).add_share(id, params.with_queue(first), Share::First { others })
    }

    /// Removes a port; its faces must have been removed. Closes its queues, unless they were taken before.
    ///
    /// # Errors
    /// A worker has ended.
    pub fn remove(&self, id: PortId, queues: usize) -> Result<(), WorkerSilent> {
        self.holders(id, queues).try_for_each(|holder| holder.remove(id).map(drop))
    }

    /// Takes the queues of a port back and closes them. Meanwhile its faces drop their outgoing frames.
    ///
    /// # Errors
    /// A worker has ended.
    pub fn take_queues(&self, id: PortId, queues: usize) -> Result<(), WorkerSilent> {
        self.holders(id, queues).try_for_each(|holder| holder.take_queue(id).map(drop))
    }

    /// Gives a port queues again. The hardware address and the MTU may differ from the previous ones. There may be
    /// fewer further queues than before.
    ///
    /// # Errors
    /// A worker has ended.
    pub fn give_queues(
        &self,
        id: PortId,
        queues: usize,
        given: PortQueues,
        address: MacAddress,
        mtu_bytes: usize,
    ) -> Result<(), WorkerSilent> {
        let given = given.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
        self.holders(id, queues)
            .zip(given)
            .try_for_each(|(holder, queue)| holder.give_queue(id, queue, address, mtu_bytes))
    }

    /// Sets whether a link works. Does not wait for the change to take effect.
    pub fn set_state(&self, id: PortId, queues: usize, is_up: bool) {
        self.holders(id, queues).for_each(|holder| holder.set_state(id, is_up));
    }

    /// Adds the face to a peer on a port.
    ///
    /// # Errors
    /// A worker has ended.
    pub fn add_face(&self, id: PortId, queues: usize, face: &Arc<Face>, peer: FacePeer) -> Result<(), WorkerSilent> {
        self.holders(id, queues).try_for_each(|holder| holder.add_face(id, Arc::clone(face), peer))
    }

    /// Removes a face from its port and from the workers that have queues of it.
    ///
    /// # Errors
    /// A worker has ended.
    pub fn remove_face(&self, id: PortId, queues: usize, face: FaceId) -> Result<(), WorkerSilent> {
        // The worker with the first queue comes first: it may be about to tell the others about the face.
        self.holders(id, queues).try_for_each(|holder| holder.remove_face(face))
    }
}
