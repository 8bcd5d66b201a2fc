//! What consumers and producers need of a connection, and what it counts.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// The longest that a connection waits for packets, so that threads notice when they should end.
pub const PATIENCE: Duration = Duration::from_millis(20);

/// A connection that carries many packets per call. Those that find no room on the way may be lost, which it counts.
pub trait Link {
    /// Gives packets that have come to `each`; none is no error. Waits at most for `patience`, which is at most [`PATIENCE`], when
    /// there are none.
    ///
    /// # Errors
    /// When the connection is broken.
    fn receive(&mut self, patience: Duration, each: &mut dyn FnMut(&[u8])) -> io::Result<()>;

    /// Sends packets: `bytes` holds them one behind the other, `ends` where each ends.
    ///
    /// # Errors
    /// When the connection is broken.
    fn send(&mut self, bytes: &[u8], ends: &[usize]) -> io::Result<()>;

    /// Packets that it takes now without losing one.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// What it has carried and lost so far.
    fn counts(&self) -> LinkCounts;
}

/// What a link of a consumer or producer has carried and lost: each packet that was to be sent is among the frames that left (several, if
/// it was fragmented), or among the losses, or waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Frames that left.
    pub frames_sent: u64,
    /// Frames that came.
    pub frames_received: u64,
    /// Frames that were still to leave at the end.
    pub frames_waiting: u64,
    /// What was to be sent and lost on this side, by the name of the reason; without those that were never met.
    pub send_losses: BTreeMap<&'static str, u64>,
    /// What came, or was about to come, and was lost on this side.
    pub receive_losses: BTreeMap<&'static str, u64>,
}

impl LinkCounts {
    /// All that was to be sent and lost on this side.
    pub fn lost_sending(&self) -> u64 {
        self.send_losses.values().sum()
    }

    /// All that came and was lost on this side.
    pub fn lost_receiving(&self) -> u64 {
        self.receive_losses.values().sum()
    }
}

/// Adds a loss, if there is one.
pub(super) fn add_loss(losses: &mut BTreeMap<&'static str, u64>, reason: &'static str, count: u64) {
    if count > 0 {
        *losses.entry(reason).or_default() += count;
    }
}
