//! Memory for code that is never writable and executable at the same time.
//!
//! The code is written into an anonymous file (memfd) through its descriptor, the file is sealed, and then mapped
//! readable and executable. So no mapping of the process is ever writable and executable, and none changes from one
//! to the other. This works even where the system forbids that, as `MemoryDenyWriteExecute=` of systemd does.

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::{SysconfVar, sysconf};

/// INT3, which ends the process; fills the last page after the code.
const FILLER: u8 = 0xCC;

/// Pages of code.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<c_void>,
    bytes: NonZeroUsize,
}

// SAFETY: the pages are not changed after they are made, and any thread may unmap them.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Copies code into newly mapped pages.
    ///
    /// # Errors
    /// If the system is out of memory, or forbids the process to execute what it has written.
    pub fn new(code: &[u8]) -> io::Result<Self> {
        let page_bytes = sysconf(SysconfVar::PAGE_SIZE)?.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(4096);
        let mut padded = code.to_vec();
        padded.resize(code.len().max(1).next_multiple_of(page_bytes), FILLER);
        let bytes = NonZeroUsize::new(padded.len()).ok_or(io::ErrorKind::InvalidInput)?;
        let mut file =
            File::from(memfd_create(c"namehop-strategy", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
        file.write_all(&padded)?;
        let seals = SealFlag::F_SEAL_SEAL | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_EXEC;
        // SAFETY: a new mapping of a file that is sealed against changes.
        let start = unsafe { mmap(None, bytes, access, MapFlags::MAP_PRIVATE, &file, 0) }?;
        Ok(Pages { start, bytes })
    }

    /// Address of the first byte.
    pub fn start(&self) -> NonNull<c_void> {
        self.start
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new`, and its code runs only while a clone of the owner lives.
        let unmapped = unsafe { munmap(self.start, self.bytes.get()) };
        debug_assert!(unmapped.is_ok(), "unmaps the pages that this type mapped");
    }
}
