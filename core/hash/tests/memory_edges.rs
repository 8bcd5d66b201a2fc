//! Names at the very ends of readable memory: no lane width reads a byte outside of a name.

#![cfg(unix)]

use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use namehop_hash::{HashKey, Lanes, PrefixHashes, hash_group, hash_name};

/// At least a page on every system.
const PAGE_BYTES: usize = 65_536;

/// Accessible memory between two areas that cannot be accessed.
struct Island {
    mapped: NonNull<std::ffi::c_void>,
}

impl Island {
    fn new() -> Self {
        let length = NonZeroUsize::new(3 * PAGE_BYTES).expect("the length is not zero");
        // SAFETY: new memory at an address that the system chooses; the middle part is made accessible.
        unsafe {
            let mapped = mmap_anonymous(None, length, ProtFlags::PROT_NONE, MapFlags::MAP_PRIVATE).expect("memory");
            let middle = mapped.byte_add(PAGE_BYTES);
            mprotect(middle, PAGE_BYTES, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE).expect("access");
            Island { mapped }
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the middle part is accessible, zeroed, and borrowed like the island.
        unsafe { std::slice::from_raw_parts_mut(self.mapped.byte_add(PAGE_BYTES).cast().as_ptr(), PAGE_BYTES) }
    }
}

impl Drop for Island {
    fn drop(&mut self) {
        // SAFETY: unmaps all of the mapping, which has no borrows any more.
        let _ = unsafe { munmap(self.mapped, 3 * PAGE_BYTES) };
    }
}

/// Writes a name with components of five bytes; the last is truncated.
fn write_name(name: &mut [u8]) {
    for (position, byte) in name.iter_mut().enumerate() {
        *byte = match position % 7 {
            0 => 8,
            1 => 5,
            other => (position + other) as u8,
        };
    }
}

#[test]
fn nothing_beside_a_name_is_read() {
    let key = HashKey::new(3, 4);
    let mut islands: Vec<Island> = (0..16).map(|_| Island::new()).collect();
    for lanes in Lanes::available() {
        for length in 0..200 {
            for at_end in [false, true] {
                let names: Vec<&[u8]> = islands
                    .iter_mut()
                    .enumerate()
                    .map(|(number, island)| {
                        // Adjacent lanes get names of different lengths.
                        let length = length + number % 5;
                        let bytes = island.bytes();
                        let range = if at_end { PAGE_BYTES - length..PAGE_BYTES } else { 0..length };
                        write_name(&mut bytes[range.clone()]);
                        &bytes[range]
                    })
                    .collect();
                let mut out = vec![PrefixHashes::new(); names.len()];
                hash_group(&key, lanes, &names, &mut out);
                for (name, out) in names.iter().zip(&out) {
                    assert_eq!(out.full(), hash_name(&key, name), "{lanes}, {} bytes", name.len());
                }
            }
        }
    }
}
