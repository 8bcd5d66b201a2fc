//! The line format of the journal, and errors of state files.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use super::files::LockFault;
use super::record::{Record, SavedState};

/// Value of `format` in the header.
const FORMAT: &str = "namehop-state";
/// Version of the records that this code writes.
const VERSION: u32 = 1;

/// The reason why the state file cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file or its folder cannot be read or written.
    #[error(
        "state file {path}: {source}; choose another with `file` in section [state], or set `enabled = false` there",
        path = path.display()
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A newer Namehop wrote it.
    #[error(
        "state file {path} has version {version}, but this Namehop reads version {VERSION}; \
         use a newer Namehop or move the file away",
        path = path.display()
    )]
    Newer {
        /// The state file.
        path: PathBuf,
        /// Version of the file.
        version: u32,
    },
    /// Another router has it open.
    #[error(
        "state file {path} is in use by another router, which has locked {lock}; \
         choose another with `file` in section [state]",
        path = path.display(),
        lock = lock.display()
    )]
    InUse {
        /// The state file.
        path: PathBuf,
        /// The locked file.
        lock: PathBuf,
    },
    /// The lock file belongs to another user, who could keep this router from starting.
    #[error(
        "{lock}, the lock of state file {path}, belongs to user {owner}; remove it if no router of that user runs, \
         or choose another state file with `file` in section [state]",
        path = path.display(),
        lock = lock.display()
    )]
    Foreign {
        /// The state file.
        path: PathBuf,
        /// Its lock file.
        lock: PathBuf,
        /// Id of the owner.
        owner: u32,
    },
}

impl StateError {
    /// Converts the error for the journal at `path`.
    pub(super) fn of_lock(fault: LockFault, path: &Path) -> Self {
        let path = path.to_owned();
        match fault {
            LockFault::InUse(lock) => StateError::InUse { path, lock },
            LockFault::Foreign(lock, owner) => StateError::Foreign { path, lock, owner },
            LockFault::Io(source) => StateError::Io { path, source },
        }
    }
}

/// Returns the first line of the file.
pub(super) fn header_line() -> io::Result<Vec<u8>> {
    line_of(&Record::Header { format: FORMAT.to_owned(), version: VERSION })
}

/// Returns a record as a line of the file.
pub(super) fn line_of(record: &Record) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}

/// Lines that cannot be read: line numbers, from 1, and errors.
pub(super) type Faults = Vec<(usize, String)>;

/// Reads the lines of a journal and folds them into a state; `path` is for messages only.
pub(super) fn read(path: &Path, mut file: impl BufRead) -> Result<(SavedState, Faults), StateError> {
    let io_error = |source| StateError::Io { path: path.to_owned(), source };
    let mut state = SavedState::default();
    let mut faults = Faults::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(io_error)? == 0 {
            break;
        }
        match serde_json::from_slice::<Record>(&line) {
            Ok(Record::Header { version, .. }) if version > VERSION => {
                return Err(StateError::Newer { path: path.to_owned(), version });
            }
            Ok(Record::Header { format, .. }) if format != FORMAT => {
                faults.push((number, format!("format is `{format}`, not `{FORMAT}`")));
            }
            Ok(Record::Header { .. }) if number == 1 => {}
            Ok(record) if number > 1 => state.fold(record),
            Ok(_) => faults.push((number, "the header is missing".to_owned())),
            Err(error) => faults.push((number, error.to_string())),
        }
    }
    Ok((state, faults))
}
