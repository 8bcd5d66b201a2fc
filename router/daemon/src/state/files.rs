//! The files around the journal: the lock that keeps a second router away, the temporary file that a new journal is
//! written to, and copies of damaged ones.
//!
//! The folder may be shared with others (`/tmp`, say). So nothing here follows a symbolic link or opens a file that
//! somebody else has put in place, and nobody else may open what is made here: who can open the lock file can lock it,
//! and keep the router from starting.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::fcntl::OFlag;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::geteuid;
use tracing::warn;

use crate::paths::is_full_or_read_only;

/// Ending of the file that a new journal is written to first.
const TEMPORARY: &str = "new";
/// Ending of the lock file.
const LOCK: &str = "lock";
/// Permissions of all files: the owner's alone.
const MODE: u32 = 0o600;
/// How often a file is made anew that somebody else makes at the same moment.
const ATTEMPTS: usize = 4;

/// Why the journal could not be locked.
pub(super) enum LockFault {
    /// Another process has it.
    InUse(PathBuf),
    /// The lock file belongs to this user, who could lock it at any time.
    Foreign(PathBuf, u32),
    /// The system refuses something else.
    Io(io::Error),
}

/// Path of a file beside another one, with one more ending.
pub(crate) fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

/// The folder of a file; `None` when that is the working folder.
pub(super) fn folder(path: &Path) -> Option<&Path> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty())
}

/// Device and number of a file: what tells it apart whatever its name.
pub(super) fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Opens a regular file that exists, to be read, and also to be appended to if `append`.
pub(crate) fn open(path: &Path, append: bool) -> io::Result<File> {
    // O_NONBLOCK: a pipe that somebody put there must not hold up the start.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new().read(true).append(append).custom_flags(flags.bits()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("this is not a regular file")),
    }
}

/// Opens a file for reading and writing that is this user's alone, or makes it; writes go to its end if `append`. A file that others
/// can write, or have made, is replaced: it could hold anything.
pub(crate) fn open_own(path: &Path, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    options.read(true).write(true).append(append).mode(MODE).custom_flags(flags.bits());
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

/// Whether the error means that a path cannot be written, although it may be readable.
fn is_unwritable(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied || is_full_or_read_only(error)
}

/// Locks the journal at `path` for this process, until the file that is given back is closed. Where no lock file can be
/// made (a full disk, a read-only file system), the journal itself is locked: it cannot be replaced there. `None` when
/// there is no journal either.
pub(super) fn lock(path: &Path) -> Result<Option<File>, LockFault> {
    let lock_path = sibling(path, LOCK);
    let made = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(MODE)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(&lock_path);
    let (file, lock_path) = match made {
        Ok(file) => (file, lock_path),
        Err(error) if is_unwritable(&error) => match open(&lock_path, false) {
            Ok(file) => (file, lock_path),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => match open(path, false) {
                Ok(file) => (file, path.to_owned()),
                Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(LockFault::Io(error)),
            },
            Err(error) => return Err(LockFault::Io(error)),
        },
        Err(error) => return Err(LockFault::Io(error)),
    };
    let found = file.metadata().map_err(LockFault::Io)?;
    let user = geteuid().as_raw();
    // Root may use the files of anybody, and anybody may stop what root runs in a folder of theirs in other ways, too.
    if user != 0 && found.uid() != user {
        return Err(LockFault::Foreign(lock_path, found.uid()));
    }
    if found.mode() & 0o077 != 0
        && let Err(error) = file.set_permissions(fs::Permissions::from_mode(MODE))
    {
        warn!(file = %lock_path.display(), %error, "other users can open this file, and so keep the router from starting");
    }
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(LockFault::InUse(lock_path)),
        Err(TryLockError::Error(error)) => Err(LockFault::Io(error)),
    }
}

/// A file of memory, for a journal that has no place on the disk yet.
pub(super) fn in_memory() -> io::Result<File> {
    Ok(File::from(memfd_create(c"namehop-state", MFdFlags::MFD_CLOEXEC)?))
}

/// Whether somebody else has locked this file.
pub(super) fn is_locked(file: &File) -> bool {
    let is_locked = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    // Fails only where there are no locks.
    let _ = file.unlock();
    is_locked
}

/// Whether this is the lock file of the journal at `path` still: somebody may have deleted it.
pub(super) fn is_lock_of(lock: &File, path: &Path) -> bool {
    let at_path = fs::symlink_metadata(sibling(path, LOCK)).map(|found| identity(&found));
    let held = lock.metadata().map(|found| identity(&found));
    matches!((at_path, held), (Ok(at_path), Ok(held)) if at_path == held)
}

/// A file that takes the journal's place when it is complete. Dropped before that, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
    file: Option<File>,
}

impl Temporary {
    /// Makes the empty file; one that an earlier process left is removed.
    pub(super) fn create(journal: &Path) -> io::Result<Self> {
        let path = sibling(journal, TEMPORARY);
        let mut result = Err(io::Error::other("no attempt was made"));
        for _ in 0..ATTEMPTS {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            // `create_new` follows no link, and fails where somebody was faster.
            result = OpenOptions::new().read(true).append(true).create_new(true).mode(MODE).open(&path);
            match &result {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                _ => break,
            }
        }
        Ok(Temporary { path, file: Some(result?) })
    }

    /// The file, to be written.
    pub(super) fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::Error::other("the file was installed already"))
    }

    /// Puts the file on the disk and in the place of the journal; gives it, open for reading and appending.
    pub(super) fn install(mut self, journal: &Path) -> io::Result<File> {
        self.file()?.sync_all()?;
        fs::rename(&self.path, journal)?;
        // The new journal is in place whatever comes now. Until the folder is on the disk, a power failure may bring the
        // old one back, which is whole, too; some file systems cannot do better.
        let _ = File::open(folder(journal).unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        self.file.take().ok_or_else(|| io::Error::other("the file was installed already"))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.file.is_some() {
            // On a full disk the room is wanted back at once. What cannot be removed now goes with the next attempt.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Keeps a copy of a damaged file beside it and says so.
pub(super) fn set_aside(path: &Path, damaged: &File, line: usize, fault: &str, count: usize) -> io::Result<()> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    let mut number = 0;
    let (mut copy, aside) = loop {
        let ending = if number == 0 { format!("damaged-{seconds}") } else { format!("damaged-{seconds}-{number}") };
        let aside = sibling(path, &ending);
        match OpenOptions::new().write(true).create_new(true).mode(MODE).open(&aside) {
            Ok(copy) => break (copy, aside),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < ATTEMPTS => number += 1,
            Err(error) => return Err(error),
        }
    };
    let mut from = BufReader::new(Span::new(damaged, 0, damaged.metadata()?.len()));
    if let Err(error) = io::copy(&mut from, &mut copy).and_then(|_| copy.sync_all()) {
        let _ = fs::remove_file(&aside);
        return Err(error);
    }
    warn!(
        file = %path.display(), copy = %aside.display(), first_line = line, lines = count, fault,
        "the state file is damaged: a copy was set aside, the lines that can be read are used"
    );
    Ok(())
}

/// Reads a part of a file without moving the place at which others read it, and whatever its name is by now.
pub(super) struct Span<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl<'a> Span<'a> {
    /// From offset `at` to before offset `end`, in bytes.
    pub(super) fn new(file: &'a File, at: u64, end: u64) -> Self {
        Span { file, at, end }
    }
}

impl Read for Span<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let read = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
