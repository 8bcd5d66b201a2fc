//! Opening a file or block device so that no other process uses it.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

use crate::open_error::{OpenError, failure};

/// Opens a file, creating it if necessary, or a block device, and locks it against use by others. Returns it with its
/// size.
pub(crate) fn open_locked(path: &Path, is_device: bool) -> Result<(File, u64), OpenError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(!is_device).truncate(false).mode(0o600);
    // A mounted device is refused. Links to devices are allowed, because devices have many names; links to files are
    // not.
    options.custom_flags(if is_device { OFlag::O_EXCL } else { OFlag::O_NOFOLLOW }.bits());
    let mut file = options.open(path).map_err(|error| failure(path, error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => return Err(OpenError::InUse(path.to_owned())),
        Err(std::fs::TryLockError::Error(error)) => return Err(failure(path, error)),
    }
    let size = file.seek(SeekFrom::End(0)).map_err(|error| failure(path, error))?;
    Ok((file, size))
}
