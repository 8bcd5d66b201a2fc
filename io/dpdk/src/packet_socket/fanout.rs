//! Several packet sockets that divide the frames of one interface among them (PACKET_FANOUT in packet(7)).
//!
//! A program for the kernel's packet filter says which socket gets a frame. Packets of UDP are spread by addresses and ports, so that
//! those of one sender keep their order; all others go to the first socket.

use std::ffi::c_int;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use super::filter::{end, instruction, load, unless_equal_skip};
use super::socket::Socket;
use crate::error::DpdkError;
use crate::wanted::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};

/// The constants of packet(7) that the crate libc has not. How sockets join: a program chooses among them.
const PACKET_FANOUT: c_int = 18;
const PACKET_FANOUT_DATA: c_int = 22;
const BY_PROGRAM: c_int = 6;
const UNIQUE_ID: c_int = 0x2000;
const IGNORE_OUTGOING: c_int = 0x4000;
/// Where UDP says so, and where the ports stand, from the start of the packet: of IPv4 without options, and of IPv6.
const V4: Offsets = Offsets { protocol: 9, source: 12, ports: 20 };
const V6: Offsets = Offsets { protocol: 6, source: 20, ports: 40 };
const UDP: u32 = 17;
/// The first byte of a packet of IPv4 without options.
const V4_WITHOUT_OPTIONS: u32 = 0x45;
/// An odd number without pattern: the fractional part of the golden ratio.
const MULTIPLIER: u32 = 0x9E37_79B1;

struct Offsets {
    protocol: i32,
    /// The last four bytes of the sender's address.
    source: i32,
    ports: i32,
}

/// Has these sockets, which receive the frames of one interface, divide them.
///
/// # Errors
/// When the kernel does not know how.
pub(super) fn join(sockets: &[&Socket]) -> Result<(), DpdkError> {
    let purpose = "divide its frames among several queues";
    let mut kind = (BY_PROGRAM | UNIQUE_ID | IGNORE_OUTGOING) << 16;
    for socket in sockets {
        socket.set(libc::SOL_PACKET, PACKET_FANOUT, &kind, purpose)?;
        // The kernel has found a number for the first one, by which the others join it.
        kind = (BY_PROGRAM | IGNORE_OUTGOING) << 16 | group_of(sockets[0]);
    }
    let Some(first) = sockets.first() else { return Ok(()) };
    let mut program = program(sockets.len() as u32);
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    first.set(libc::SOL_PACKET, PACKET_FANOUT_DATA, &program, purpose)
}

fn group_of(socket: &Socket) -> c_int {
    let mut kind: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    // Should it fail, the group is number 0, which the others join in vain.
    // SAFETY: a number of this length is written.
    unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_PACKET,
            PACKET_FANOUT,
            (&raw mut kind).cast(),
            &mut length,
        )
    };
    kind & 0xFFFF
}

/// The number of a queue, of so many, from the sender's address and both ports of a packet of UDP; 0 for whatever is none.
fn by_ports(offsets: &Offsets, queues: u32) -> [libc::sock_filter; 11] {
    let at = |offset: i32| (libc::SKF_NET_OFF + offset) as u32;
    let arithmetic = |operation: u32, value: u32| instruction(libc::BPF_ALU | operation, 0, 0, value);
    [
        load(libc::BPF_B, at(offsets.protocol)),
        unless_equal_skip(8, UDP),
        load(libc::BPF_W, at(offsets.ports)),
        instruction(libc::BPF_MISC | libc::BPF_TAX, 0, 0, 0),
        load(libc::BPF_W, at(offsets.source)),
        arithmetic(libc::BPF_XOR | libc::BPF_X, 0),
        arithmetic(libc::BPF_MUL | libc::BPF_K, MULTIPLIER),
        arithmetic(libc::BPF_RSH | libc::BPF_K, 16),
        arithmetic(libc::BPF_MOD | libc::BPF_K, queues),
        instruction(libc::BPF_RET | libc::BPF_A, 0, 0, 0),
        end(0),
    ]
}

fn program(queues: u32) -> Vec<libc::sock_filter> {
    let mut program = vec![load(libc::BPF_H, (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32)];
    let (v4, v6) = (by_ports(&V4, queues), by_ports(&V6, queues));
    program.push(unless_equal_skip(v4.len() as u8 + 2, u32::from(ETHERTYPE_IPV4)));
    program.push(load(libc::BPF_B, libc::SKF_NET_OFF as u32));
    // With options the first instruction of the end is reached, behind all of the others.
    program.push(unless_equal_skip(v4.len() as u8 - 1, V4_WITHOUT_OPTIONS));
    program.extend(v4);
    program.push(unless_equal_skip(v6.len() as u8 - 1, u32::from(ETHERTYPE_IPV6)));
    program.extend(v6);
    program
}
