//! What consumers and producers need of a connection.

use std::io;
use std::time::Duration;

/// The longest that a connection waits for packets, so that threads notice when they should end.
pub const PATIENCE: Duration = Duration::from_millis(20);

/// A connection that carries many packets per call. Those that find no room on the way may be lost.
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
}
