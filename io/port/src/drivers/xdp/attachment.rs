//! Attaches a port's program to its interface, by the system call bpf(2). The program is detached on drop, and also
//! when the process ends unexpectedly.

use std::ffi::{CStr, c_int, c_long, c_uint};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use namehop_ebpf::instruction::{INSTRUCTION_BYTES, Instruction};

/// Commands of bpf(2).
const MAP_CREATE: c_int = 0;
const MAP_UPDATE_ELEMENT: c_int = 2;
const PROGRAM_LOAD: c_int = 5;
const LINK_CREATE: c_int = 28;
const LINK_UPDATE: c_int = 29;
/// Types of maps, programs and attachments.
const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const LICENSE: &CStr = c"Apache-2.0";

#[repr(C)]
struct MapCreation {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_kind: u32,
}

#[repr(C)]
struct LinkCreation {
    program: u32,
    interface: u32,
    attach_kind: u32,
    flags: u32,
}

#[repr(C)]
struct LinkUpdate {
    link: u32,
    program: u32,
    flags: u32,
    old_program: u32,
}

/// Calls bpf(2). `T` must be the attribute type of the command, and its pointers must be valid.
unsafe fn bpf<T>(command: c_int, attributes: &T) -> io::Result<c_int> {
    let size = size_of::<T>() as c_uint;
    // SAFETY: the attributes have this size; the caller guarantees their type and pointers.
    let result: c_long = unsafe { libc::syscall(libc::SYS_bpf, command, (&raw const *attributes).cast::<u8>(), size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as c_int) }
}

/// Like `bpf`, for commands that create a descriptor.
unsafe fn bpf_descriptor<T>(command: c_int, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: as above; the descriptor was just created and has no other owner.
    unsafe { bpf(command, attributes).map(|descriptor| OwnedFd::from_raw_fd(descriptor)) }
}

fn number(descriptor: &impl AsRawFd) -> u32 {
    descriptor.as_raw_fd() as u32
}

/// A program that is attached to an interface.
#[derive(Debug)]
pub(super) struct Attachment {
    /// Map from queue to socket.
    map: OwnedFd,
    link: OwnedFd,
}

impl Attachment {
    /// Attaches a program to an interface. `program` makes the program for the descriptor of a map with these sockets,
    /// one per queue from 0.
    pub(super) fn new(
        interface: u32,
        sockets: &[BorrowedFd<'_>],
        program: impl FnOnce(c_int) -> Vec<Instruction>,
    ) -> io::Result<Attachment> {
        let creation =
            MapCreation { kind: MAP_OF_SOCKETS, key_bytes: 4, value_bytes: 4, entries: sockets.len() as u32, flags: 0 };
        // SAFETY: the attributes have the type of this command.
        let map = unsafe { bpf_descriptor(MAP_CREATE, &creation) }?;
        for (queue, socket) in (0_u32..).zip(sockets) {
            let value = number(socket);
            let update = MapUpdate {
                map: number(&map),
                padding: 0,
                key: (&raw const queue) as u64,
                value: (&raw const value) as u64,
                flags: 0,
            };
            // SAFETY: the attributes have the type of this command; key and value have four bytes each, as the map was
            // created with.
            unsafe { bpf(MAP_UPDATE_ELEMENT, &update) }?;
        }
        let program = load(&program(map.as_raw_fd()))?;
        let creation = LinkCreation { program: number(&program), interface, attach_kind: ATTACH_XDP, flags: 0 };
        // SAFETY: the attributes have the type of this command.
        let link = unsafe { bpf_descriptor(LINK_CREATE, &creation) }?;
        Ok(Attachment { map, link })
    }

    /// Replaces the program atomically.
    pub(super) fn replace(&self, program: impl FnOnce(c_int) -> Vec<Instruction>) -> io::Result<()> {
        let program = load(&program(self.map.as_raw_fd()))?;
        let update = LinkUpdate { link: number(&self.link), program: number(&program), flags: 0, old_program: 0 };
        // SAFETY: the attributes have the type of this command.
        unsafe { bpf(LINK_UPDATE, &update) }.map(drop)
    }
}

/// Loads a program into the kernel, which verifies and compiles it.
fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let instructions: Vec<[u8; INSTRUCTION_BYTES]> = program.iter().map(|instruction| instruction.to_bytes()).collect();
    let load = ProgramLoad {
        kind: PROGRAM_XDP,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: *b"namehop\0\0\0\0\0\0\0\0\0",
        interface: 0,
        attach_kind: ATTACH_XDP,
    };
    // SAFETY: the attributes have the type of this command; the pointer leads to `count` instructions, and the license
    // ends with a zero byte.
    unsafe { bpf_descriptor(PROGRAM_LOAD, &load) }
}
