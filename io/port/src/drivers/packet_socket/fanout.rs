//! Divides the frames of one interface among several packet sockets (PACKET_FANOUT in packet(7)).
//!
//! A classic BPF program chooses the socket of a frame. UDP packets are spread by addresses and ports, so that the
//! packets of one sender stay in order; all other frames go to the first socket.

use std::ffi::c_int;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use super::filter::{end, instruction, load, unless_equal_skip};
use super::socket::Socket;
use crate::error::DpdkError;
use crate::wanted::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};

/// Constants of packet(7) that the crate libc lacks.
const PACKET_FANOUT: c_int = 18;
const PACKET_FANOUT_DATA: c_int = 22;
const BY_PROGRAM: c_int = 6;
const UNIQUE_ID: c_int = 0x2000;
const IGNORE_OUTGOING: c_int = 0x4000;
/// Offsets from the start of the packet, for IPv4 without options and for IPv6: protocol, end of the source address,
/// UDP ports.
const V4: Offsets = Offsets { protocol: 9, source: 12, ports: 20 };
const V6: Offsets = Offsets { protocol: 6, source: 20, ports: 40 };
const UDP: u32 = 17;
/// First byte of an IPv4 packet without options.
const V4_WITHOUT_OPTIONS: u32 = 0x45;
/// Odd multiplier without a pattern: the fractional part of the golden ratio.
const MULTIPLIER: u32 = 0x9E37_79B1;

struct Offsets {
    protocol: i32,
    /// The last four bytes of the source address.
    source: i32,
    ports: i32,
}

/// Divides the frames of one interface among these sockets, which are all bound to it.
///
/// # Errors
/// Fails if the kernel does not support it.
pub(super) fn join(sockets: &[&Socket]) -> Result<(), DpdkError> {
    let purpose = "distribute its frames to several queues";
    let mut kind = (BY_PROGRAM | UNIQUE_ID | IGNORE_OUTGOING) << 16;
    for socket in sockets {
        socket.set(libc::SOL_PACKET, PACKET_FANOUT, &kind, purpose)?;
        // The kernel has assigned a group number to the first socket; the others join it by that number.
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
    // If it fails, the group stays 0, and joining it fails for the others.
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

/// Computes the queue, of `queues`, from the source address and both ports of a UDP packet; 0 for other packets.
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
    // A packet with options skips to the first instruction of the end.
    program.push(unless_equal_skip(v4.len() as u8 - 1, V4_WITHOUT_OPTIONS));
    program.extend(v4);
    program.push(unless_equal_skip(v6.len() as u8 - 1, u32::from(ETHERTYPE_IPV6)));
    program.extend(v6);
    program
}
