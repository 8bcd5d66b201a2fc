//! What the log says of a link that does not work although its port is open.
//!
//! Peers can cause it, so a port says a few such lines in a minute, and the same one again only when the link has worked in between.

use namehop_face::{FaceUri, LogLimit};
use tracing::warn;

/// Lines of one port in a minute.
const LINES_PER_MINUTE: u32 = 3;

/// See the module's description.
pub(super) struct Trouble {
    /// What was said last, since the link worked.
    said: Option<String>,
    lines: LogLimit,
}

impl Trouble {
    /// Nothing was said yet.
    pub(super) fn new() -> Trouble {
        Trouble { said: None, lines: LogLimit::new(LINES_PER_MINUTE) }
    }

    /// Says what the device of a port has found, if that is news.
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
