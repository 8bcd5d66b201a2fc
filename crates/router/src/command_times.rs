//! The file with the newest time of a signed command, beside the state file: after a restart, recorded commands are refused.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use namehop_manage::authentication::TimeRecord;
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use tracing::warn;

use crate::config::Config;
use crate::paths;
use crate::state::sibling;

/// Ending of the file, behind the path of the state file.
const ENDING: &str = "command-time";
/// Permissions of the file: the owner's alone.
const MODE: u32 = 0o600;

/// Opens the file, or makes it. `None` where nothing outlives a restart, or where it cannot be used: then commands that were signed before
/// the start are refused by the clock alone.
pub fn record(config: &Config) -> Option<TimeRecord> {
    let state = config.state.enabled.then(|| paths::state_file(&config.state.file).ok()).flatten()?;
    let path = sibling(&state, ENDING);
    let opened = open_or_make(&path).and_then(TimeRecord::read);
    let report = |error: &io::Error| {
        warn!(file = %path.display(), %error, "the time of the newest signed command cannot be kept");
    };
    opened.inspect_err(report).ok()
}

/// A file that others can write, or have made, is replaced: it could hold any time.
fn open_or_make(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(MODE).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
    if let Ok(file) = options.open(path)
        && file
            .metadata()
            .is_ok_and(|found| found.is_file() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0)
    {
        return Ok(file);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    options.create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_others_may_have_written_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.json.command-time");
        open_or_make(&path).expect("made");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, MODE);
        fs::write(&path, "7").expect("written");
        open_or_make(&path).expect("kept");
        assert_eq!(fs::read_to_string(&path).expect("readable"), "7");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("changed");
        open_or_make(&path).expect("made");
        assert_eq!(fs::read_to_string(&path).expect("readable"), "");
        let foreign = folder.path().join("foreign");
        fs::write(&foreign, "9").expect("written");
        fs::remove_file(&path).expect("removed");
        symlink(&foreign, &path).expect("linked");
        open_or_make(&path).expect("made");
        assert!(fs::symlink_metadata(&path).expect("there").is_file());
        assert_eq!(fs::read_to_string(&foreign).expect("readable"), "9");
    }
}
