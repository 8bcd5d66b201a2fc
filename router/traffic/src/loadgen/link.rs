//! The connection interface of consumers and producers, and its counters.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Maximum time that a connection waits for packets, so that threads notice when they should end.
pub const PATIENCE: Duration = Duration::from_millis(20);

/// A connection that carries many packets per call. Packets without room may be dropped, which is counted.
pub trait Link {
    /// Passes received packets to `each`; returning without any is not an error. If there are none, waits at most
    /// `patience`, which must not exceed [`PATIENCE`].
    ///
    /// # Errors
    /// Fails if the connection is broken.
    fn receive(&mut self, patience: Duration, each: &mut dyn FnMut(&[u8])) -> io::Result<()>;

    /// Sends packets: `bytes` holds them concatenated, `ends` their end offsets.
    ///
    /// # Errors
    /// Fails if the connection is broken.
    fn send(&mut self, bytes: &[u8], ends: &[usize]) -> io::Result<()>;

    /// Returns the number of packets that can be sent now without a drop.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// Returns the frames carried and dropped so far.
    fn counts(&self) -> LinkCounts;
}

/// Frames carried and dropped by a link of a consumer or producer. Each packet to send is counted as sent (several
/// frames if it was fragmented), dropped, or waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Frames sent.
    pub frames_sent: u64,
    /// Frames received.
    pub frames_received: u64,
    /// Frames still waiting to be sent at the end.
    pub frames_waiting: u64,
    /// Packets to send that were dropped on this side, by the name of the reason; reasons that did not occur are
    /// absent.
    pub send_losses: BTreeMap<&'static str, u64>,
    /// Received packets that were dropped on this side, by the name of the reason.
    pub receive_losses: BTreeMap<&'static str, u64>,
}

impl LinkCounts {
    /// Returns the total of `send_losses`.
    pub fn lost_sending(&self) -> u64 {
        self.send_losses.values().sum()
    }

    /// Returns the total of `receive_losses`.
    pub fn lost_receiving(&self) -> u64 {
        self.receive_losses.values().sum()
    }
}

/// Adds `count` to the losses with this reason, unless it is 0.
pub(super) fn add_loss(losses: &mut BTreeMap<&'static str, u64>, reason: &'static str, count: u64) {
    if count > 0 {
        *losses.entry(reason).or_default() += count;
    }
}
