//! Open ports as the worker's set of ports uses them.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use namehop_dpdk::Mbuf;
use namehop_dpdk::memif::MemifQueue;
use namehop_dpdk::packet_socket::PacketQueue;
use namehop_face::ethernet::FramePort;

/// A port on a network interface.
pub(super) struct InterfaceLink(pub(super) PacketQueue);

impl FramePort<Mbuf> for InterfaceLink {
    fn receive(&mut self, frames: &mut Vec<Mbuf>) {
        self.0.receive(frames);
    }

    fn transmit(&mut self, frames: &mut Vec<Mbuf>) {
        self.0.transmit(frames);
    }

    fn retry_pause(&self) -> Duration {
        self.0.retry_pause()
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    fn prepare_to_sleep(&mut self) {
        self.0.prepare_to_sleep();
    }
}

/// A port over memif.
pub(super) struct MemifLink(pub(super) MemifQueue);

impl FramePort<Mbuf> for MemifLink {
    fn receive(&mut self, frames: &mut Vec<Mbuf>) {
        self.0.receive(frames);
    }

    fn transmit(&mut self, frames: &mut Vec<Mbuf>) {
        self.0.transmit(frames);
    }

    fn retry_pause(&self) -> Duration {
        self.0.retry_pause()
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
