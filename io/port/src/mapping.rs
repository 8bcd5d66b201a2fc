//! Memory mappings: shared with the kernel or another process, or anonymous.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// A memory mapping; unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; its owner controls all access to it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `bytes` bytes of a file for reading and writing, shared with every other process that maps it.
    pub(crate) fn new(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        Mapping::of_part(file, 0, bytes)
    }

    /// Maps `bytes` bytes of a file from offset `start`.
    pub(crate) fn of_part(file: BorrowedFd<'_>, start: libc::off_t, bytes: usize) -> io::Result<Mapping> {
        Mapping::map(libc::MAP_SHARED, file.as_raw_fd(), start, bytes)
    }

    /// Maps anonymous memory.
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Mapping> {
        Mapping::map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0, bytes)
    }

    fn map(kind: c_int, file: c_int, start: libc::off_t, bytes: usize) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses a free address range.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, kind, file, start) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Mapping { start, bytes })
    }

    /// Pointer to the byte at `offset`.
    ///
    /// # Panics
    /// Panics if `offset` is not inside the mapping.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.bytes, "the offset must be inside the mapping");
        // SAFETY: the offset was just checked to be inside the mapping.
        unsafe { self.start.add(offset) }
    }

    /// Length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Pointer to the first of `length` bytes at `offset`; `None` if they are not all inside the mapping.
    pub(crate) fn range(&self, offset: usize, length: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(length)?;
        // SAFETY: the range was just checked to end inside or at the end of the mapping.
        (end <= self.bytes).then(|| unsafe { self.start.add(offset) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and pointers into it are used only while the mapping is held.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
