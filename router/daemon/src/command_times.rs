//! The file with the newest time of a signed command, beside the state file: after a restart, recorded commands are refused.

use std::io;

use namehop_manage::authentication::TimeRecord;
use tracing::warn;

use crate::config::Config;
use crate::paths;
use crate::state::{open_own, sibling};

/// Ending of the file, behind the path of the state file.
const ENDING: &str = "command-time";

/// Opens the file, or makes it. `None` where nothing outlives a restart, or where it cannot be used: then commands that were signed before
/// the start are refused by the clock alone.
pub fn record(config: &Config) -> Option<TimeRecord> {
    let state = config.state.enabled.then(|| paths::state_file(&config.state.file).ok()).flatten()?;
    let path = sibling(&state, ENDING);
    let opened = open_own(&path, false).and_then(TimeRecord::read);
    let report = |error: &io::Error| {
        warn!(file = %path.display(), %error, "the time of the newest signed command cannot be kept");
    };
    opened.inspect_err(report).ok()
}
