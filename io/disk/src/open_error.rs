//! Errors of opening the file, for the user who configured it.

use std::io;
use std::path::{Path, PathBuf};

use namehop_table::TableError;
use nix::errno::Errno;

use crate::format::SUPERBLOCK_BYTES;

/// Reason why there is no second tier of the Content Store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The capacity is outside of the supported range.
    #[error(
        "capacity_bytes of the disk cache must be from {min} to {max}",
        min = crate::settings::MIN_CAPACITY_BYTES,
        max = crate::settings::MAX_CAPACITY_BYTES
    )]
    Capacity,
    /// The directory for the file does not exist.
    #[error("the directory of {} does not exist: create it, or choose another file", .0.display())]
    NoDirectory(PathBuf),
    /// The user may not read and write the file.
    #[error(
        "cannot open {} for reading and writing: {source}; grant this user access, or choose another file",
        .path.display()
    )]
    NotAllowed {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path is a directory, a pipe or the like.
    #[error(
        "{} is neither a file nor a block device (symbolic links to files are not followed): choose a file or a block \
         device",
        .0.display()
    )]
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
    #[error(
        "the file system has no room for {bytes} bytes in {}: free space, or lower capacity_bytes",
        .path.display()
    )]
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
