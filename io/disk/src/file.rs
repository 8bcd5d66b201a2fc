//! Opening the file: checks that it belongs to Namehop and has the configured size.
//!
//! A foreign file is never written to. A new file is readable by its owner only.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, PermissionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, PosixFadviseAdvice, fallocate, posix_fadvise};

use crate::device;
use crate::format::{CHUNK_SLOTS, NotOurs, SLOT_BYTES, SUPERBLOCK_BYTES, Superblock};
use crate::lock::open_locked;
use crate::open_error::{OpenError, failure};
use crate::settings::DiskSettings;

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
    let (file, size) = open_locked(path, is_device)?;
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
