//! A started port as the worker's set of ports uses it.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use namehop_dpdk::Mbuf;
use namehop_dpdk::interface::Doorbell;
use namehop_dpdk::port::PortQueue;
use namehop_face::ethernet::FramePort;

/// The queue pair of a port, and the bell of its interface where it has one.
pub(super) struct DpdkLink {
    pub(super) queue: PortQueue,
    pub(super) bell: Option<Arc<Doorbell>>,
}

impl FramePort<Mbuf> for DpdkLink {
    fn receive(&mut self, frames: &mut Vec<Mbuf>) {
        self.queue.receive(frames);
    }

    fn transmit(&mut self, frames: &mut Vec<Mbuf>) {
        self.queue.transmit(frames);
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.bell.as_deref().map(AsFd::as_fd)
    }

    fn arm(&mut self, armed: bool) {
        if let Some(bell) = &self.bell
            && let Err(error) = bell.arm(armed)
        {
            // The interface is gone, which is noticed elsewhere.
            tracing::debug!(%error, "a doorbell does not obey");
        }
    }
}
