//! Opening the file: checks that it belongs to Namehop, that no other process uses it, and that it has the configured
//! size.
//!
//! A foreign file is never written to. A new file is readable by its owner only.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use namehop_table::TableError;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, PosixFadviseAdvice, fallocate, posix_fadvise};

use crate::device;
use crate::format::{CHUNK_SLOTS, NotOurs, SLOT_BYTES, SUPERBLOCK_BYTES, Superblock};
use crate::start::DiskSettings;

/// Reason why there is no second tier of the Content Store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The capacity is outside of the supported range.
    #[error("capacity_bytes of the disk cache must be from {min} to {max}", min = crate::MIN_CAPACITY_BYTES, max = crate::MAX_CAPACITY_BYTES)]
    Capacity,
    /// The directory for the file does not exist.
    #[error("the directory of {} does not exist: create it, or choose another file", .0.display())]
    NoDirectory(PathBuf),
    /// The user may not read and write the file.
    #[error("cannot open {} for reading and writing: {source}; grant this user access, or choose another file", .path.display())]
    NotAllowed {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path is a directory, a pipe or the like.
    #[error("{} is neither a file nor a block device (symbolic links to files are not followed): choose a file or a block \
        device", .0.display())]
    NotAFile(PathBuf),
    /// Another router uses the file, or it is mounted.
    #[error("{} is in use by another router or as a mounted file system: each router needs its own file", .0.display())]
    InUse(PathBuf),
    /// The path is not a block device.
    #[error("{} is not a block device: only block devices can be formatted; remove a file instead", .0.display())]
    NotADevice(PathBuf),
    /// The file holds foreign contents.
    #[error("{} is not a disk cache and was not changed: choose another file, or remove this one", .0.display())]
    Foreign(PathBuf),
    /// The block device holds foreign contents.
    #[error("{path} contains {what} and was not changed: choose another device, or erase it with 'namehop cs format \
        {path}' if its contents are not needed", path = .path.display())]
    ForeignDevice {
        /// The device.
        path: PathBuf,
        /// The contents of the device.
        what: &'static str,
    },
    /// The file was written by another version of Namehop.
    #[error("{} is a disk cache of format version {version}, which this router does not support: remove the file, or \
        run 'namehop cs format' on a block device; a new cache is then created", .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Version of the format.
        version: u32,
    },
    /// The first bytes of the file are damaged.
    #[error("the header of the disk cache {} is damaged: remove the file, or run 'namehop cs format' on a block \
        device; a new cache is then created", .0.display())]
    Damaged(PathBuf),
    /// The file is to be kept, and has another size.
    #[error("{} is a disk cache of {has_bytes} bytes: set capacity_bytes to this value to keep its contents, or \
        remove it to change the size", .path.display())]
    OtherSize {
        /// The file.
        path: PathBuf,
        /// The capacity that matches the file.
        has_bytes: u64,
    },
    /// The block device is smaller than the capacity.
    #[error("the device {} has only {has_bytes} bytes: lower capacity_bytes to at most this value", .path.display())]
    DeviceTooSmall {
        /// The device.
        path: PathBuf,
        /// The capacity that fits on the device.
        has_bytes: u64,
    },
    /// The file system is full.
    #[error("the file system has no room for {bytes} bytes in {}: free space, or lower capacity_bytes", .path.display())]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// The size of the file in bytes.
        bytes: u64,
    },
    /// The disk reported an error.
    #[error("{}: {source}", .path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Memory for the index is not available.
    #[error("cannot allocate the index of the disk cache: {0}; lower capacity_bytes")]
    Memory(#[from] TableError),
    /// The thread cannot be started.
    #[error("cannot start the thread of the disk cache: {0}")]
    Thread(io::Error),
}

impl OpenError {
    /// Returns true if the problem may be temporary, so that the router can continue without the disk until then.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, OpenError::NoRoom { .. } | OpenError::Disk { .. })
    }
}

/// The open file and its properties.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    /// Distinguishes its records from records written before the file was last cleared.
    pub(crate) life: u64,
    /// True if the file may hold records of this life.
    pub(crate) is_kept: bool,
}

/// Returns the number of slots in `bytes` bytes, in whole chunks.
pub(crate) fn slots_in(bytes: u64) -> u64 {
    bytes / SLOT_BYTES as u64 / CHUNK_SLOTS * CHUNK_SLOTS
}

/// Opens the file, or creates it.
pub(crate) fn open(settings: &DiskSettings) -> Result<Opened, OpenError> {
    let path = settings.path.as_path();
    let slots = slots_in(settings.capacity_bytes);
    let is_device = match path.metadata() {
        Ok(found) if found.file_type().is_block_device() => true,
        Ok(found) if found.is_file() => false,
        Ok(_) => return Err(OpenError::NotAFile(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(failure(path, error)),
    };
    let (file, size) = open_for_us(path, is_device)?;
    let has_slots = slots_in(size.saturating_sub(SUPERBLOCK_BYTES as u64));
    if is_device && has_slots < slots {
        return Err(OpenError::DeviceTooSmall { path: path.to_owned(), has_bytes: has_slots * SLOT_BYTES as u64 });
    }
    let found = read_superblock(&file, path, size, is_device)?;
    let kept = match found {
        Some(found) if settings.keep && found.slots == slots => Some(found),
        Some(found) if settings.keep => {
            return Err(OpenError::OtherSize { path: path.to_owned(), has_bytes: found.slots * SLOT_BYTES as u64 });
        }
        _ => None,
    };
    let superblock = match kept {
        Some(kept) => kept,
        None => {
            let new = Superblock { slots, life: new_life().map_err(|error| failure(path, error))? };
            file.write_all_at(&new.encode(), 0).map_err(|error| failure(path, error))?;
            new
        }
    };
    if !is_device {
        file.set_permissions(Permissions::from_mode(0o600)).map_err(|error| failure(path, error))?;
        let bytes = SUPERBLOCK_BYTES as u64 + slots * SLOT_BYTES as u64;
        make_room(&file, path, bytes, kept.is_none())?;
    }
    file.sync_data().map_err(|error| failure(path, error))?;
    // Reads are of single packets. This hint keeps the system from reading ahead.
    let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM);
    Ok(Opened { file, life: superblock.life, is_kept: kept.is_some() })
}

/// Opens a file, creating it if necessary, or a block device, and locks it against use by others. Returns it with its
/// size.
pub(crate) fn open_for_us(path: &Path, is_device: bool) -> Result<(File, u64), OpenError> {
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

/// Translates an error of the system to one for the user who configured the file.
pub(crate) fn failure(path: &Path, source: io::Error) -> OpenError {
    let path = path.to_owned();
    match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::ENOTDIR) => OpenError::NoDirectory(path),
        Some(Errno::EACCES | Errno::EPERM | Errno::EROFS) => OpenError::NotAllowed { path, source },
        Some(Errno::ELOOP | Errno::EISDIR) => OpenError::NotAFile(path),
        Some(Errno::EBUSY) => OpenError::InUse(path),
        Some(Errno::ENOSPC | Errno::EDQUOT) => OpenError::NoRoom { path, bytes: SUPERBLOCK_BYTES as u64 },
        _ => OpenError::Disk { path, source },
    }
}

/// Reads the superblock; returns `None` when the file is empty.
fn read_superblock(file: &File, path: &Path, size: u64, is_device: bool) -> Result<Option<Superblock>, OpenError> {
    if size == 0 {
        return Ok(None);
    }
    let mut start = vec![0; usize::try_from(size).unwrap_or(usize::MAX).min(SUPERBLOCK_BYTES)];
    file.read_exact_at(&mut start, 0).map_err(|error| failure(path, error))?;
    let foreign = |path: &Path| match is_device {
        false => Err(OpenError::Foreign(path.to_owned())),
        true => match device::look(file, size).map_err(|error| failure(path, error))?.holds {
            None => Ok(None),
            Some(what) => Err(OpenError::ForeignDevice { path: path.to_owned(), what }),
        },
    };
    match Superblock::decode(&start) {
        Ok(found) => Ok(Some(found)),
        Err(NotOurs::Foreign) => foreign(path),
        Err(NotOurs::Version(version)) => Err(OpenError::Version { path: path.to_owned(), version }),
        Err(NotOurs::Damaged) => Err(OpenError::Damaged(path.to_owned())),
    }
}

fn new_life() -> io::Result<u64> {
    let random = ring::rand::generate::<[u8; 8]>(&ring::rand::SystemRandom::new());
    random
        .map(|random| u64::from_le_bytes(random.expose()))
        .map_err(|_| io::Error::other("the system provides no random numbers"))
}

/// Reserves room in the file system for the whole file, so that it does not run full later.
fn make_room(file: &File, path: &Path, bytes: u64, is_new: bool) -> Result<(), OpenError> {
    let too_large = || OpenError::NoRoom { path: path.to_owned(), bytes };
    if is_new {
        file.set_len(SUPERBLOCK_BYTES as u64).map_err(|error| failure(path, error))?;
    }
    let length = i64::try_from(bytes).map_err(|_| too_large())?;
    match fallocate(file, FallocateFlags::empty(), 0, length) {
        Ok(()) => Ok(()),
        // Some file systems cannot reserve room. There the file system may run full later.
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => file.set_len(bytes).map_err(|error| failure(path, error)),
        Err(error) => {
            if is_new {
                // Release the room reserved so far.
                let _ = file.set_len(SUPERBLOCK_BYTES as u64);
            }
            match error {
                Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG => Err(too_large()),
                other => Err(failure(path, other.into())),
            }
        }
    }
}
