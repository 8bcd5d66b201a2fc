//! The interface between a driver of ports and a worker.

use std::any::Any;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::buffer::PacketBuffer;

/// Default pause before a worker retries to send to a full port.
pub const RETRY_PAUSE: Duration = Duration::from_micros(50);

/// One receive queue and one transmit queue of a port. It receives and sends frames in bursts, and never waits. One
/// thread uses it; it is `Any` so that the thread that gets it back can determine its type.
pub trait PortQueue: Any + Send {
    /// Appends a burst of received frames to `frames`, each in one buffer. Frames are as they were on the link, but
    /// without the frame check sequence and without a priority tag (VLAN 0).
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>);

    /// Sends frames from the front of the list and removes them; frames that do not fit now stay.
    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>);

    /// Returns the number of frames that wait behind those received last; a lower bound if the driver does not know
    /// it.
    fn waiting(&self) -> usize {
        0
    }

    /// Returns the pause after which frames that stayed should be retried.
    fn retry_pause(&self) -> Duration {
        RETRY_PAUSE
    }

    /// Returns a file descriptor that is readable while received frames wait, from
    /// [`prepare_to_sleep`](Self::prepare_to_sleep) on; `None` if the queue must be polled now.
    fn bell(&self) -> Option<BorrowedFd<'_>>;

    /// Returns how long the worker may rely on the bell, if the peer may fail to ring it; `None` = without limit.
    fn longest_sleep(&self) -> Option<Duration> {
        None
    }

    /// Returns the number of senders that the device steers to this queue by a rule.
    fn steered_flows(&self) -> usize {
        0
    }

    /// Called before the worker sleeps until the bell is readable.
    fn prepare_to_sleep(&mut self) {}
}
