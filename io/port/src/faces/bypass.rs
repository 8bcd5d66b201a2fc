//! The kernel's share of a link: received frames that are not NDN go to a queue beside the port, and frames from that
//! queue leave through the port. This is for drivers that take a network card away from the kernel.

use std::os::fd::BorrowedFd;

use namehop_packet::{PacketBuffer, PortQueue};

use super::internet::Internet;
use super::{PortId, PortSet};
use crate::encapsulation::vlan::Carried;
use namehop_face::counters::LinkDrop;

/// The queue between a port and the kernel.
pub(super) struct Bypass {
    queue: Box<dyn PortQueue>,
    /// Frames received in this poll iteration that go to the kernel.
    passing: Vec<PacketBuffer>,
    /// Frames that the kernel sends.
    from_kernel: Vec<PacketBuffer>,
}

impl Bypass {
    pub(super) fn new(queue: Box<dyn PortQueue>) -> Bypass {
        Bypass { queue, passing: Vec::new(), from_kernel: Vec::new() }
    }

    pub(super) fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.queue.bell()
    }

    pub(super) fn prepare_to_sleep(&mut self) {
        self.queue.prepare_to_sleep();
    }
}

impl PortSet {
    /// Drops and counts a frame that belongs to no face. If the kernel has a share of the link, the frame may go to the
    /// kernel instead.
    #[cold]
    pub(super) fn refuse(&mut self, id: PortId, frame: PacketBuffer, reason: LinkDrop) {
        let is_of_internet = || Carried::read(frame.bytes()).is_some_and(|carried| Internet::handles(&carried));
        if (reason == LinkDrop::NotNdnFrame || is_of_internet())
            && let Some(bypass) = self.port(id).and_then(|port| port.bypass.as_mut())
        {
            bypass.passing.push(frame);
            return;
        }
        self.table.link_drops().add(reason, 1);
    }

    /// Moves the queued frames between a port and the kernel, in both directions; returns whether the kernel sent any.
    /// Frames that do not fit are dropped and counted, so that the kernel's traffic gets no more space than a congested
    /// face.
    pub(super) fn run_bypass(&mut self, id: PortId) -> bool {
        let (max_queued, backlog) = (self.max_queued, self.backlog);
        let Some(port) = self.port(id) else { return false };
        let Some(Bypass { queue, passing, from_kernel }) = &mut port.bypass else { return false };
        if !passing.is_empty() {
            queue.transmit(passing);
        }
        let mut lost = passing.len();
        passing.clear();
        queue.receive(from_kernel);
        let any = !from_kernel.is_empty();
        let mut lost_with_link = 0;
        if any && port.params.is_up {
            let room = max_queued.saturating_sub(backlog + port.waiting.len());
            lost += from_kernel.len().saturating_sub(room);
            from_kernel.truncate(room);
            port.waiting.append(from_kernel);
        } else {
            lost_with_link = from_kernel.len();
            from_kernel.clear();
        }
        let drops = self.table.link_drops();
        drops.add(LinkDrop::SendQueueFull, lost as u64);
        drops.add(LinkDrop::LinkDown, lost_with_link as u64);
        any
    }
}
