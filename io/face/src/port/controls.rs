//! The control side's hold on the ports of all workers: which workers have the queues of a port, and in which order they are told.
//!
//! Ports are dealt out among the workers by their numbers. The worker that a port falls to has its first queue; the following ones have
//! one of the further queues each.

use std::sync::Arc;

use namehop_packet::{FaceId, PortQueue};

use super::change::{PortControl, WorkerSilent};
use super::queues::Share;
use super::{PortId, PortParams};
use crate::encapsulation::{FacePeer, MacAddress};
use crate::registry::Face;

/// The queues of a port, the first one first. Each goes to another worker.
pub type PortQueues = Vec<Box<dyn PortQueue>>;

/// See the module's description. Methods that take a number of queues get the one that the port was added with; those that fail do so
/// because a worker has ended.
pub struct PortControls(Vec<PortControl>);

impl PortControls {
    /// Those of the workers in the order of their numbers; there is at least one.
    pub fn new(workers: Vec<PortControl>) -> Self {
        PortControls(workers)
    }

    /// How many queues of one port can be in use: one for each worker.
    pub fn max_queues(&self) -> usize {
        self.0.len()
    }

    /// Number of the worker that has the port with this number, and so its first queue.
    pub fn worker_of(&self, id: PortId) -> usize {
        usize::from(id.0) % self.0.len()
    }

    /// The hold on the ports of the worker that has this one.
    pub fn of(&self, id: PortId) -> &PortControl {
        &self.0[self.worker_of(id)]
    }

    /// The holds on the ports of the workers that have the queues of a port, in the order of these.
    fn holders(&self, id: PortId, queues: usize) -> impl Iterator<Item = &PortControl> {
        let (home, workers) = (self.worker_of(id), self.0.len());
        (0..queues.min(workers)).map(move |queue| &self.0[(home + queue) % workers])
    }

    /// Puts a port to use; the number is not taken. The queue of `params` is left out; there is at least one of `queues`, and at
    /// most [`max_queues`](Self::max_queues).
    ///
    /// # Errors
    /// A worker has ended.
    pub fn add(&self, id: PortId, params: PortParams, queues: PortQueues) -> Result<(), WorkerSilent> {
        let count = queues.len();
        let others = self.holders(id, count).skip(1).map(PortControl::follower).collect();
        let mut queues = queues.into_iter();
        let first = queues.next();
        // The first one is told last, because it tells the others of the faces that unknown senders make.
        for (number, (holder, queue)) in self.holders(id, count).skip(1).zip(queues).enumerate() {
            let share = Share::Further { queue: number + 1, home: self.worker_of(id) };
            holder.add_share(id, params.with_queue(Some(queue)), share)?;
        }
        self.of(id).add_share(id, params.with_queue(first), Share::First { others })
    }

    /// Takes a port out of use; its faces must have been removed. The queues are closed unless they were taken before.
    ///
    /// # Errors
    /// A worker has ended.
    pub fn remove(&self, id: PortId, queues: usize) -> Result<(), WorkerSilent> {
        self.holders(id, queues).try_for_each(|holder| holder.remove(id).map(drop))
    }

    /// Takes the queues of a port back and closes them. Meanwhile its faces drop what they are to send.
    ///
    /// # Errors
    /// A worker has ended.
    pub fn take_queues(&self, id: PortId, queues: usize) -> Result<(), WorkerSilent> {
        self.holders(id, queues).try_for_each(|holder| holder.take_queue(id).map(drop))
    }

    /// Gives a port queues again; it may have another hardware address and MTU than before. Of further queues some may be missing now.
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

    /// Says whether a link works. Does not wait.
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
        // The first one first: it may be about to tell the others of the face.
        self.holders(id, queues).try_for_each(|holder| holder.remove_face(face))
    }
}
