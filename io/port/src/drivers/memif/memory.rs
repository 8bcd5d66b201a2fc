//! Shared memory of a link: checks of memory that a peer offers, and the layout of memory that this end offers.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use nix::unistd::ftruncate;

use super::message::RingLocation;
use super::ring::{DESCRIPTOR_BYTES, RING_HEADER_BYTES};
use crate::mapping::Mapping;

/// Maximum size of all regions of a link, in bytes: more than the largest rings with the largest buffers take.
const MAX_BYTES: u64 = 1 << 30;

/// Maps memory that a peer offers.
///
/// # Errors
/// Returns what is wrong with the memory. Only memory files (memfd_create(2)) sealed against shrinking are accepted:
/// touching a page that the peer has truncated would kill this process, and a page of another kind of file could block
/// it.
pub(super) fn map_offered(regions: &[(OwnedFd, u64)]) -> Result<Vec<Mapping>, &'static str> {
    let mut all = 0;
    let mut mappings = Vec::new();
    for (file, bytes) in regions {
        let seals = fcntl(file, FcntlArg::F_GET_SEALS).map_err(|_| "the region is not a memory file (memfd)")?;
        if !SealFlag::from_bits_truncate(seals).contains(SealFlag::F_SEAL_SHRINK) {
            return Err("the region is not sealed against shrinking");
        }
        // The file is already sealed, so it stays at least as long as this check finds it.
        let is_there = fstat(file).is_ok_and(|found| u64::try_from(found.st_size).is_ok_and(|size| size >= *bytes));
        if !is_there || *bytes == 0 {
            return Err("the region is longer than its file");
        }
        all = bytes.checked_add(all).filter(|&all| all <= MAX_BYTES).ok_or("the regions are too large")?;
        let mapping = Mapping::new(file.as_fd(), *bytes as usize).map_err(|_| "the region cannot be mapped")?;
        mappings.push(mapping);
    }
    Ok(mappings)
}

/// True if the descriptor is an eventfd, so that writing to it only signals an event.
pub(super) fn is_event(descriptor: BorrowedFd<'_>) -> bool {
    let link = fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
    link.is_ok_and(|target| target.as_os_str() == "anon_inode:[eventfd]")
}

/// Memory that a client offers: one region with both rings and all buffers, and an eventfd for each ring.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) file: OwnedFd,
    pub(super) mapping: Mapping,
    pub(super) to_server: RingLocation,
    pub(super) to_client: RingLocation,
    pub(super) bells: [EventFd; 2],
}

/// Size of a ring in bytes.
pub(super) const fn ring_bytes(log2_slots: u8) -> usize {
    RING_HEADER_BYTES + (DESCRIPTOR_BYTES << log2_slots)
}

/// Offset of the first buffer of a client's ring. The buffers follow both rings; the buffers of the ring to the server
/// come first.
pub(super) const fn first_buffer(log2_slots: u8, buffer_bytes: u16, is_to_server: bool) -> usize {
    let buffers = 2 * ring_bytes(log2_slots);
    if is_to_server { buffers } else { buffers + ((buffer_bytes as usize) << log2_slots) }
}

impl Offer {
    /// Creates the memory of a client.
    pub(super) fn new(log2_slots: u8, buffer_bytes: u16) -> io::Result<Offer> {
        let bytes = first_buffer(log2_slots, buffer_bytes, false) + (usize::from(buffer_bytes) << log2_slots);
        let file = memfd_create(c"memif", MFdFlags::MFD_ALLOW_SEALING | MFdFlags::MFD_CLOEXEC)?;
        ftruncate(&file, bytes as i64)?;
        // Servers may require the shrink seal. The grow seal prevents the server from enlarging the file at the expense
        // of this process.
        fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW))?;
        let mapping = Mapping::new(file.as_fd(), bytes)?;
        let bell = || EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let place = |offset: usize| RingLocation { region: 0, offset: offset as u32, log2_slots };
        Ok(Offer {
            to_server: place(0),
            to_client: place(ring_bytes(log2_slots)),
            file,
            mapping,
            bells: [bell()?, bell()?],
        })
    }
}
