//! What a driver of ports gives to a worker.

use std::any::Any;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::buffer::PacketBuffer;

/// The pause before a port that was full is tried again, for drivers that know nothing better.
pub const RETRY_PAUSE: Duration = Duration::from_micros(50);

/// One receive queue and one transmit queue of a port: gives and takes frames in bursts, and never waits. One thread uses it;
/// the thread that gets it back may ask what it is.
pub trait PortQueue: Any + Send {
    /// Adds a burst of received frames, each in one buffer, to `frames`: as they were on the link, without the check sequence
    /// and without a tag that names a priority and no VLAN.
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>);

    /// Sends frames from the front and takes them out; those that do not fit now stay.
    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>);

    /// Frames that wait behind those that were received last, as far as that is known; fewer than there are, if not.
    fn waiting(&self) -> usize {
        0
    }

    /// How long it takes until frames that stayed are worth another attempt.
    fn retry_pause(&self) -> Duration {
        RETRY_PAUSE
    }

    /// Is readable as long as received frames wait, from [`prepare_to_sleep`](Self::prepare_to_sleep) on; `None` when the queue has to be
    /// polled now.
    fn bell(&self) -> Option<BorrowedFd<'_>>;

    /// How long the worker may rely on the bell, where the sender may forget to ring it; `None` = for ever.
    fn longest_sleep(&self) -> Option<Duration> {
        None
    }

    /// Senders whose frames the device puts into this queue by a rule.
    fn steered_flows(&self) -> usize {
        0
    }

    /// Called before the worker sleeps until the bell is readable.
    fn prepare_to_sleep(&mut self) {}
}
