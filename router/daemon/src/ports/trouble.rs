//! Log messages about a link that does not work although its port is open.
//!
//! Peers can cause them, so a port logs at most [`LINES_PER_MINUTE`], and repeats a message only after the link has
//! worked in between.

use namehop_face::{FaceUri, LogLimit};
use tracing::warn;

/// Most such lines of one port in a minute.
const LINES_PER_MINUTE: u32 = 3;

/// Limits the messages about one link.
pub(super) struct Trouble {
    /// The last message since the link worked.
    said: Option<String>,
    lines: LogLimit,
}

impl Trouble {
    /// Creates the state of a port without messages.
    pub(super) fn new() -> Trouble {
        Trouble { said: None, lines: LogLimit::new(LINES_PER_MINUTE) }
    }

    /// Logs the reason that the device found, unless it repeats the last message or exceeds the limit.
    pub(super) fn note(&mut self, port: &FaceUri, is_up: bool, found: Option<String>) {
        if is_up {
            self.said = None;
        }
        let Some(found) = found.filter(|found| self.said.as_ref() != Some(found)) else { return };
        if let Some(left_out) = self.lines.admit() {
            warn!(%port, left_out, "the link does not work: {found}");
            self.said = Some(found);
        }
    }
}
