//! The served directory and the open files and directories in it.
//!
//! The kernel keeps every lookup inside the directory (openat2 with RESOLVE_BENEATH) and follows no symbolic links, so
//! a link placed there by others leads nowhere. Only regular files and directories are opened, because opening a device
//! or pipe can have side effects.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat2, statat};
use rustix::io::Errno;

use super::FileServerError;

/// Maximum number of files and directories kept open.
const MAX_OPEN: usize = 64;
/// Time for which an open file is used without another path lookup. Every read checks the file's modification time, so
/// this matters only for a file that was replaced by another one.
const VALIDITY: Duration = Duration::from_millis(100);
/// Maximum size of a listing in bytes: some hundred thousand names.
const MAX_LISTING_BYTES: usize = 4 << 20;

/// Reason why a file or directory cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It does not exist, is neither file nor directory, is not permitted, or is behind a symbolic link.
    Missing,
    /// It changed since it was opened.
    Changed,
    /// It is a directory with too many names.
    TooLarge,
    /// The system failed.
    Failed,
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(
                Errno::NOENT
                | Errno::NOTDIR
                | Errno::ACCESS
                | Errno::PERM
                | Errno::LOOP
                | Errno::XDEV
                | Errno::NAMETOOLONG,
            ) => Self::Missing,
            _ => Self::Failed,
        }
    }
}

impl From<Errno> for Unreadable {
    fn from(error: Errno) -> Self {
        io::Error::from(error).into()
    }
}

/// An open file or directory, with its metadata at the time of opening.
pub(super) struct Opened {
    file: File,
    pub(super) metadata: Metadata,
    /// Listing of a directory, made on the first request.
    listing: OnceLock<Vec<u8>>,
}

/// Returns nanoseconds since 1970; earlier times give 0.
pub(super) fn since_epoch_ns(seconds: i64, nanoseconds: i64) -> u64 {
    let all = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    u64::try_from(all.max(0)).unwrap_or(u64::MAX)
}

fn version(metadata: &Metadata) -> u64 {
    since_epoch_ns(metadata.mtime(), metadata.mtime_nsec())
}

impl Opened {
    pub(super) fn is_directory(&self) -> bool {
        self.metadata.is_dir()
    }

    /// Returns the version: the modification time in nanoseconds since 1970.
    pub(super) fn version(&self) -> u64 {
        version(&self.metadata)
    }

    /// Returns the size of the file in bytes when it was opened.
    pub(super) fn size_bytes(&self) -> u64 {
        self.metadata.len()
    }

    /// Reads exactly `length` bytes at `offset`; fails if the file is shorter or has changed.
    pub(super) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, Unreadable> {
        let mut piece = vec![0; length];
        match self.file.read_exact_at(&mut piece, offset) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(Unreadable::Changed),
            other => other?,
        }
        let now = self.file.metadata()?;
        // If the file has changed, the piece may belong to the next version.
        if version(&now) != self.version() || now.len() != self.size_bytes() {
            return Err(Unreadable::Changed);
        }
        Ok(piece)
    }

    /// Returns the sorted names of files and directories in the directory. Each ends with a zero byte; directories have
    /// a slash before it.
    pub(super) fn listing(&self) -> Result<&[u8], Unreadable> {
        if let Some(listing) = self.listing.get() {
            return Ok(listing);
        }
        let made = self.make_listing()?;
        Ok(self.listing.get_or_init(|| made))
    }

    fn make_listing(&self) -> Result<Vec<u8>, Unreadable> {
        let mut names = Vec::new();
        let mut bytes = 0;
        for entry in Dir::read_from(&self.file)? {
            let entry = entry?;
            let name = entry.file_name();
            let kind = match entry.file_type() {
                // Some file systems do not report the type.
                FileType::Unknown => match statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(_) => continue,
                },
                known => known,
            };
            let end: &[u8] = match kind {
                FileType::RegularFile => b"\0",
                FileType::Directory if name != c"." && name != c".." => b"/\0",
                _ => continue,
            };
            let line = [name.to_bytes(), end].concat();
            bytes += line.len();
            if bytes > MAX_LISTING_BYTES {
                return Err(Unreadable::TooLarge);
            }
            names.push(line);
        }
        names.sort_unstable();
        if version(&self.file.metadata()?) != self.version() {
            return Err(Unreadable::Changed);
        }
        Ok(names.concat())
    }
}

/// Returns true if both describe the same unchanged file.
fn are_same(one: &Metadata, other: &Metadata) -> bool {
    let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino(), metadata.len(), version(metadata));
    identity(one) == identity(other)
}

/// An open file or directory, and when it was last seen at its path.
struct KnownFile {
    opened: Arc<Opened>,
    seen_at: Instant,
}

/// The served directory.
pub(super) struct Directory {
    root: OwnedFd,
    open: Mutex<HashMap<PathBuf, KnownFile>>,
}

impl Directory {
    pub(super) fn open(path: &Path) -> Result<Self, FileServerError> {
        let root = File::open(path)?;
        if !root.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a directory").into());
        }
        let directory = Self { root: root.into(), open: Mutex::default() };
        let looked_up = directory.resolve(Path::new(""), OFlags::RDONLY);
        looked_up.map_err(|error| FileServerError::NoConfinement(error.into()))?;
        Ok(directory)
    }

    fn resolve(&self, path: &Path, flags: OFlags) -> rustix::io::Result<File> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let stay_inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), stay_inside).map(File::from)
    }

    /// Returns the metadata of `path` without opening it. Opening a device can rewind a tape, or worse.
    fn look_at(&self, path: &Path) -> Result<Metadata, Unreadable> {
        let metadata = self.resolve(path, OFlags::PATH)?.metadata()?;
        if metadata.is_file() || metadata.is_dir() { Ok(metadata) } else { Err(Unreadable::Missing) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, KnownFile>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up `path` now. A file that is open and unchanged is reused.
    pub(super) fn look_up(&self, path: &Path) -> Result<Arc<Opened>, Unreadable> {
        let now = self.look_at(path)?;
        let seen_at = Instant::now();
        if let Some(known) = self.lock().get_mut(path).filter(|known| are_same(&known.opened.metadata, &now)) {
            known.seen_at = seen_at;
            return Ok(Arc::clone(&known.opened));
        }
        // The path may have been replaced in the meantime, for example by a pipe: opening must not block until a peer
        // opens it.
        let file = self.resolve(path, OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK)?;
        let metadata = file.metadata()?;
        if !(metadata.is_file() || metadata.is_dir()) {
            return Err(Unreadable::Missing);
        }
        let opened = Arc::new(Opened { file, metadata, listing: OnceLock::new() });
        let mut open = self.lock();
        if open.len() >= MAX_OPEN && !open.contains_key(path) {
            let oldest = open.iter().min_by_key(|(_, known)| known.seen_at).map(|(path, _)| path.clone());
            oldest.and_then(|oldest| open.remove(&oldest));
        }
        open.insert(path.to_owned(), KnownFile { opened: Arc::clone(&opened), seen_at });
        Ok(opened)
    }

    /// Returns what was at `path` within the last `VALIDITY`; otherwise looks it up.
    pub(super) fn recall(&self, path: &Path) -> Result<Arc<Opened>, Unreadable> {
        let recent =
            self.lock().get(path).filter(|known| known.seen_at.elapsed() < VALIDITY).map(|known| known.opened.clone());
        recent.map_or_else(|| self.look_up(path), Ok)
    }
}
