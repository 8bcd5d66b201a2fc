//! The file with the newest timestamp of a signed command, beside the state file. After a restart, replayed commands
//! are rejected by it.

use std::io;

use namehop_config::Config;
use namehop_manage::authentication::TimeRecord;
use tracing::warn;

use crate::paths;
use crate::state::{open_own, sibling};

/// Extension of the file, appended to the path of the state file.
const ENDING: &str = "command-time";

/// Opens or creates the file. `None` if saving is disabled or the file cannot be used: then only the clock protects
/// against commands that were signed before the start.
pub fn record(config: &Config) -> Option<TimeRecord> {
    let state = config.state.enabled.then(|| paths::state_file(&config.state.file).ok()).flatten()?;
    let path = sibling(&state, ENDING);
    let opened = open_own(&path, false).and_then(TimeRecord::read);
    let report = |error: &io::Error| {
        warn!(file = %path.display(), %error, "cannot save the time of the newest signed command");
    };
    opened.inspect_err(report).ok()
}
