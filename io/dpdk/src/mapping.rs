//! Memory that is shared with the kernel or with another process, mapped into this one.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// A mapping; unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; its owner decides who reads and writes.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of a file for reading and writing, shared with everybody else who does.
    pub(crate) fn new(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Mapping> {
        Mapping::of_part(file, 0, bytes)
    }

    /// As above, from `start` on.
    pub(crate) fn of_part(file: BorrowedFd<'_>, start: libc::off_t, bytes: usize) -> io::Result<Mapping> {
        Mapping::map(libc::MAP_SHARED, file.as_raw_fd(), start, bytes)
    }

    /// Maps memory that is of no file.
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Mapping> {
        Mapping::map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0, bytes)
    }

    fn map(kind: c_int, file: c_int, start: libc::off_t, bytes: usize) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses an address that is free.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, kind, file, start) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Mapping { start, bytes })
    }

    /// The byte at `offset`, which lies inside.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.bytes, "outside of a mapping");
        // SAFETY: it lies inside, as was just checked.
        unsafe { self.start.add(offset) }
    }

    /// Its length.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first of `length` bytes from `offset` on; `None` when they do not all lie inside.
    pub(crate) fn range(&self, offset: usize, length: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(length)?;
        // SAFETY: it lies inside or at the end, as was just checked.
        (end <= self.bytes).then(|| unsafe { self.start.add(offset) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and pointers into it were only used while the mapping was held.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
