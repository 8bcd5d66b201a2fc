//! Block devices: detecting foreign contents, and clearing a device for the router on request.
//!
//! A router takes a device only if both of its ends are zeros or it has a Namehop superblock: file systems, partition
//! tables, volumes and arrays all store something there. A short list of signatures names the contents in messages.
//! Unknown contents are reported as "something else", and left alone just the same.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

use crate::lock::open_locked;
use crate::open_error::{OpenError, failure};

/// Bytes at the start of a device that are zeros if it is empty.
const HEAD_BYTES: u64 = 2 << 20;
/// Bytes at the end of a device that are zeros if it is empty.
const TAIL_BYTES: u64 = 1 << 20;

/// A signature at a fixed offset that identifies the contents of a device.
struct Sign {
    at: usize,
    bytes: &'static [u8],
    what: &'static str,
}

const fn sign(at: usize, bytes: &'static [u8], what: &'static str) -> Sign {
    Sign { at, bytes, what }
}

/// Known signatures; the first match counts.
const SIGNS: &[Sign] = &[
    sign(0, b"Namehop CS disk\n", "a disk cache of Namehop"),
    sign(0, b"XFSB", "an XFS file system"),
    sign(0, b"LUKS\xba\xbe", "an encrypted volume (LUKS)"),
    sign(0, b"hsqs", "a SquashFS file system"),
    sign(3, b"NTFS    ", "an NTFS file system"),
    sign(54, b"FAT", "a FAT file system"),
    sign(82, b"FAT32", "a FAT file system"),
    sign(512, b"LABELONE", "a physical volume of LVM"),
    sign(512, b"EFI PART", "a partition table (GPT)"),
    sign(4096, b"EFI PART", "a partition table (GPT)"),
    sign(1024, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    sign(1080, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    sign(4086, b"SWAPSPACE2", "swap space"),
    sign(4096, b"\xfc\x4e\x2b\xa9", "a member of a RAID array"),
    sign(32_769, b"CD001", "an ISO 9660 file system"),
    sign(65_600, b"_BHRfS_M", "a Btrfs file system"),
    sign(510, b"\x55\xaa", "a partition table or boot sector"),
];

/// Contents of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceContents {
    /// Size of the device.
    pub bytes: u64,
    /// Name of the contents; `None` when both ends are zeros.
    pub holds: Option<&'static str>,
}

/// Examines a device of this size.
pub(crate) fn look(device: &File, bytes: u64) -> io::Result<DeviceContents> {
    let mut head = vec![0; bytes.min(HEAD_BYTES) as usize];
    device.read_exact_at(&mut head, 0)?;
    let tail_bytes = bytes.min(TAIL_BYTES);
    let mut tail = vec![0; tail_bytes as usize];
    device.read_exact_at(&mut tail, bytes - tail_bytes)?;
    let is_zeros = |part: &[u8]| part.iter().all(|&byte| byte == 0);
    let found = SIGNS.iter().find(|sign| head.get(sign.at..).is_some_and(|rest| rest.starts_with(sign.bytes)));
    let holds = match found {
        Some(sign) => Some(sign.what),
        None if is_zeros(&head) && is_zeros(&tail) => None,
        None => Some("unknown data"),
    };
    Ok(DeviceContents { bytes, holds })
}

/// Returns the contents of an unused block device without changing it.
///
/// # Errors
/// When it is not a block device, is in use, or cannot be opened or read.
pub fn inspect_device(path: &Path) -> Result<DeviceContents, OpenError> {
    let (device, bytes) = open_device(path)?;
    look(&device, bytes).map_err(|error| failure(path, error))
}

/// Clears a block device so that a router takes it: both of its ends become zeros, and its contents are lost.
///
/// # Errors
/// As [`inspect_device`], and when the device cannot be written.
pub fn clear_device(path: &Path) -> Result<(), OpenError> {
    let (device, bytes) = open_device(path)?;
    let clear = || {
        device.write_all_at(&vec![0; bytes.min(HEAD_BYTES) as usize], 0)?;
        let tail = bytes.min(TAIL_BYTES);
        device.write_all_at(&vec![0; tail as usize], bytes - tail)?;
        device.sync_data()
    };
    clear().map_err(|error| failure(path, error))
}

fn open_device(path: &Path) -> Result<(File, u64), OpenError> {
    match path.metadata() {
        Ok(found) if found.file_type().is_block_device() => {}
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failure(path, error)),
        _ => return Err(OpenError::NotADevice(path.to_owned())),
    }
    open_locked(path, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(parts: &[(u64, &[u8])]) -> DeviceContents {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(16 << 20).expect("the file can be extended");
        for (at, bytes) in parts {
            file.write_all_at(bytes, *at).expect("written");
        }
        look(&file, 16 << 20).expect("the file can be read")
    }

    #[test]
    fn what_is_on_a_device_is_known_by_its_ends() {
        assert_eq!(device(&[]), DeviceContents { bytes: 16 << 20, holds: None });
        for sign in SIGNS {
            assert_eq!(device(&[(sign.at as u64, sign.bytes)]).holds, Some(sign.what));
        }
        for at in [1, HEAD_BYTES - 1, (16 << 20) - TAIL_BYTES, (16 << 20) - 1] {
            assert_eq!(device(&[(at, &[1])]).holds, Some("unknown data"), "byte {at}");
        }
        assert_eq!(device(&[(8 << 20, &[1])]).holds, None, "the middle of the device must not be examined");
        // A GPT partition table also has a signature of the older MBR kind.
        assert_eq!(device(&[(510, b"\x55\xaa"), (512, b"EFI PART")]).holds, Some("a partition table (GPT)"));
    }
}
