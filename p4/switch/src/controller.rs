//! The controller's port: exchanges packets between the P4 program and a controller in this process, over two bounded
//! queues.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;
use namehop_packet::{BufferPool, PacketBuffer, PortQueue};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// Maximum number of packets that wait in each direction.
const MOST_WAITING: usize = 1024;
/// Maximum number of packets that a worker takes in one poll iteration.
const BURST: usize = 64;

/// The controller's end of the port.
pub struct Controller {
    pool: BufferPool,
    to_program: ArrayQueue<PacketBuffer>,
    from_program: ArrayQueue<PacketBuffer>,
    /// Packets from the program that are not valid for the controller.
    pub(crate) malformed: AtomicU64,
    bell: EventFd,
}

impl Controller {
    /// Opens a port and its queue.
    pub(crate) fn open(pool: &BufferPool) -> io::Result<(Arc<Controller>, ControllerQueue)> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let bell = EventFd::from_value_and_flags(0, flags)?;
        let controller = Arc::new(Controller {
            pool: pool.clone(),
            to_program: ArrayQueue::new(MOST_WAITING),
            from_program: ArrayQueue::new(MOST_WAITING),
            malformed: AtomicU64::new(0),
            bell,
        });
        Ok((Arc::clone(&controller), ControllerQueue(controller)))
    }

    /// Sends a packet into the program, as if received on this port. Returns false if the queue is full or the packet
    /// is too long.
    pub fn send(&self, packet: &[u8]) -> bool {
        let Some(buffer) = self.pool.copy_of(packet) else { return false };
        let taken = self.to_program.push(buffer).is_ok();
        // The write fails only if the counter is full, and then the descriptor is readable anyway.
        let _ = self.bell.write(1);
        taken
    }

    /// Takes the next packet that the program has sent to this port.
    pub fn receive(&self) -> Option<Vec<u8>> {
        self.from_program.pop().map(|packet| packet.bytes().to_vec())
    }

    /// Counts a packet from the program that is not valid for the controller.
    pub fn count_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }
}

/// The worker's end of the port.
pub(crate) struct ControllerQueue(Arc<Controller>);

impl PortQueue for ControllerQueue {
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        frames.extend((0..BURST).map_while(|_| self.0.to_program.pop()));
    }

    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        let room = MOST_WAITING.saturating_sub(self.0.from_program.len()).min(frames.len());
        for frame in frames.drain(..room) {
            // There is room: this is the only producer.
            drop(self.0.from_program.push(frame));
        }
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.bell.as_fd())
    }

    fn prepare_to_sleep(&mut self) {
        // The read fails if nothing was signalled.
        let _ = self.0.bell.read();
        if !self.0.to_program.is_empty() {
            let _ = self.0.bell.write(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use namehop_packet::{BufferPool, PortQueue};

    use super::{Controller, MOST_WAITING};

    #[test]
    fn packets_come_in_their_order_and_too_many_are_refused() {
        let pool = BufferPool::new(4 * MOST_WAITING, 16);
        let (controller, mut queue) = Controller::open(&pool).expect("an eventfd");
        for number in 0..MOST_WAITING {
            assert!(controller.send(&number.to_be_bytes()));
        }
        assert!(!controller.send(b"more"));
        let mut frames = Vec::new();
        while frames.len() < MOST_WAITING {
            queue.prepare_to_sleep();
            assert_eq!(
                controller.bell.read().expect("the eventfd is signalled"),
                1,
                "the eventfd must be signalled while packets are queued"
            );
            queue.receive(&mut frames);
        }
        queue.prepare_to_sleep();
        assert!(controller.bell.read().is_err(), "the eventfd must not be signalled without queued packets");
        frames.push(pool.copy_of(b"more").expect("memory"));
        queue.transmit(&mut frames);
        assert_eq!(frames.len(), 1, "the packet must stay queued until there is room");
        for number in 0..MOST_WAITING {
            assert_eq!(controller.receive().as_deref(), Some(&number.to_be_bytes()[..]));
        }
        queue.transmit(&mut frames);
        assert_eq!(controller.receive().as_deref(), Some(&b"more"[..]));
        assert_eq!((controller.receive(), frames.len()), (None, 0));
    }
}
