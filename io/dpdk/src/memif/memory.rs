//! Memory that the two ends share: whose it may be, and where rings and buffers lie in it.

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

/// Bytes of all regions of a link: more than the largest rings with the largest buffers take.
const MAX_BYTES: u64 = 1 << 30;

/// Maps memory that a peer offers.
///
/// # Errors
/// What is wrong with it. Only memory files (memfd_create(2)) that are sealed against becoming shorter will do: touching a page that
/// a peer has cut off would end this process, and one in a file of another kind could keep it waiting.
pub(super) fn map_offered(regions: &[(OwnedFd, u64)]) -> Result<Vec<Mapping>, &'static str> {
    let mut all = 0;
    let mut mappings = Vec::new();
    for (file, bytes) in regions {
        let seals = fcntl(file, FcntlArg::F_GET_SEALS).map_err(|_| "the region is no memory file")?;
        if !SealFlag::from_bits_truncate(seals).contains(SealFlag::F_SEAL_SHRINK) {
            return Err("the region is not sealed against shrinking");
        }
        // Sealed before it is looked at, so it stays at least that long.
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

/// Whether writing to a descriptor cannot do more than ring a bell.
pub(super) fn is_event(descriptor: BorrowedFd<'_>) -> bool {
    let link = fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
    link.is_ok_and(|target| target.as_os_str() == "anon_inode:[eventfd]")
}

/// What a client offers: one region with both rings and all buffers, and a bell for each ring.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) file: OwnedFd,
    pub(super) mapping: Mapping,
    pub(super) to_server: RingLocation,
    pub(super) to_client: RingLocation,
    pub(super) bells: [EventFd; 2],
}

/// Bytes of a ring.
pub(super) const fn ring_bytes(log2_slots: u8) -> usize {
    RING_HEADER_BYTES + (DESCRIPTOR_BYTES << log2_slots)
}

/// Where the buffers of a client's ring begin: behind both rings, those to the server first.
pub(super) const fn first_buffer(log2_slots: u8, buffer_bytes: u16, is_to_server: bool) -> usize {
    let buffers = 2 * ring_bytes(log2_slots);
    if is_to_server { buffers } else { buffers + ((buffer_bytes as usize) << log2_slots) }
}

impl Offer {
    /// Makes the memory of a client.
    pub(super) fn new(log2_slots: u8, buffer_bytes: u16) -> io::Result<Offer> {
        let bytes = first_buffer(log2_slots, buffer_bytes, false) + (usize::from(buffer_bytes) << log2_slots);
        let file = memfd_create(c"memif", MFdFlags::MFD_ALLOW_SEALING | MFdFlags::MFD_CLOEXEC)?;
        ftruncate(&file, bytes as i64)?;
        // The server may insist on the first; the other keeps it from making the file ours to fill.
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
