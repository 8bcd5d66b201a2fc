//! The files around the journal: the lock file that keeps a second router away, the temporary file to which a new
//! journal is written, and copies of damaged journals.
//!
//! Other users may have access to the folder (`/tmp`, for example). So nothing here follows a symbolic link or opens a
//! file that another user created, and files created here are closed to other users: any process that can open the lock
//! file can lock it and keep the router from starting.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use namehop_config::file_access::is_full_or_read_only;
use nix::fcntl::OFlag;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::geteuid;
use tracing::warn;

/// Extension of the temporary file of a new journal.
const TEMPORARY: &str = "new";
/// Extension of the lock file.
const LOCK: &str = "lock";
/// Permissions of all files: access for the owner only.
const MODE: u32 = 0o600;
/// Maximum number of attempts to create a file that another process creates at the same moment.
const ATTEMPTS: usize = 4;

/// The reason why the journal could not be locked.
pub(super) enum LockFault {
    /// Another process holds the lock of this file.
    InUse(PathBuf),
    /// The lock file belongs to the user with this id, who could lock it at any time.
    Foreign(PathBuf, u32),
    /// Another error of the system.
    Io(io::Error),
}

/// Returns the path of a file in the same folder, with an extension appended to the name.
pub(crate) fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

/// Returns the folder of a file; `None` for the working folder.
pub(super) fn folder(path: &Path) -> Option<&Path> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty())
}

/// Returns device and inode number, which identify a file independently of its name.
pub(super) fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Opens an existing regular file for reading, and for appending if `append`.
pub(crate) fn open(path: &Path, append: bool) -> io::Result<File> {
    // O_NONBLOCK: a FIFO planted at this path must not block the start.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new().read(true).append(append).custom_flags(flags.bits()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("this is not a regular file")),
    }
}

/// Opens a file for reading and writing that belongs to this user only, or creates it; writes go to its end if
/// `append`. Replaces a file that other users own or can access, because its content cannot be trusted.
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

/// Returns whether the error means that a path cannot be written, although it may be readable.
fn is_unwritable(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied || is_full_or_read_only(error)
}

/// Locks the journal at `path` for this process, until the returned file is closed. If no lock file can be created
/// (full disk, read-only file system), locks the journal itself, which cannot be replaced then. `None` if there is no
/// journal either.
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
    // Root may use files of every user: the owner of a folder has other ways to stop a router of root there anyway.
    if user != 0 && found.uid() != user {
        return Err(LockFault::Foreign(lock_path, found.uid()));
    }
    if found.mode() & 0o077 != 0
        && let Err(error) = file.set_permissions(fs::Permissions::from_mode(MODE))
    {
        warn!(
            file = %lock_path.display(),
            %error,
            "other users can lock this file and prevent the router from starting"
        );
    }
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(LockFault::InUse(lock_path)),
        Err(TryLockError::Error(error)) => Err(LockFault::Io(error)),
    }
}

/// Creates a file in memory, for a journal that cannot be on the disk yet.
pub(super) fn in_memory() -> io::Result<File> {
    Ok(File::from(memfd_create(c"namehop-state", MFdFlags::MFD_CLOEXEC)?))
}

/// Returns whether another process has locked this file.
pub(super) fn is_locked(file: &File) -> bool {
    let is_locked = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    // Fails only on file systems without locks.
    let _ = file.unlock();
    is_locked
}

/// Returns whether `lock` is still the lock file of the journal at `path`; it may have been deleted or replaced.
pub(super) fn is_lock_of(lock: &File, path: &Path) -> bool {
    let at_path = fs::symlink_metadata(sibling(path, LOCK)).map(|found| identity(&found));
    let held = lock.metadata().map(|found| identity(&found));
    matches!((at_path, held), (Ok(at_path), Ok(held)) if at_path == held)
}

/// A file that replaces the journal when it is complete. Dropping it earlier removes it.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
    file: Option<File>,
}

impl Temporary {
    /// Creates the empty file; removes one that an earlier process left.
    pub(super) fn create(journal: &Path) -> io::Result<Self> {
        let path = sibling(journal, TEMPORARY);
        let mut result = Err(io::Error::other("no attempt to create the temporary file"));
        for _ in 0..ATTEMPTS {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            // `create_new` follows no link, and fails if another process was faster.
            result = OpenOptions::new().read(true).append(true).create_new(true).mode(MODE).open(&path);
            match &result {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                _ => break,
            }
        }
        Ok(Temporary { path, file: Some(result?) })
    }

    /// Returns the file for writing.
    pub(super) fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::Error::other("the temporary file is already installed"))
    }

    /// Writes the file to the disk and renames it over the journal. Returns the file, open for reading and appending.
    pub(super) fn install(mut self, journal: &Path) -> io::Result<File> {
        self.file()?.sync_all()?;
        fs::rename(&self.path, journal)?;
        // The new journal is in place whether or not this succeeds. Until the folder is on the disk, a power failure
        // may bring back the old journal, which is complete too; some file systems offer no better guarantee.
        let _ = File::open(folder(journal).unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        self.file.take().ok_or_else(|| io::Error::other("the temporary file is already installed"))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.file.is_some() {
            // On a full disk the space is needed at once. If removal fails, the next attempt removes the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Copies a damaged file to a new file beside it and logs this.
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
        "the state file is damaged: kept a copy of it; using the readable lines"
    );
    Ok(())
}

/// Reads a range of a file without moving its shared file offset, and independently of its current name.
pub(super) struct Span<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl<'a> Span<'a> {
    /// Creates a reader from offset `at` to before offset `end`, in bytes.
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
