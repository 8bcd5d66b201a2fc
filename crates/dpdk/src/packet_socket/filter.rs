//! The filter that the kernel applies to frames before they reach the ring: a program for its classic packet filter
//! (networking/filter in the kernel's documentation).

use std::net::Ipv4Addr;

use crate::wanted::{
    DESTINATION_V4, DESTINATION_V6, ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_NDN, ETHERTYPE_VLAN,
    TARGET_OF_ARP, VLAN_BITS, Wanted,
};

/// Where the type of a frame stands, once the kernel has taken its tag off.
const TYPE_OFFSET: u32 = 12;
/// Offsets relative to this one are properties of the packet, not bytes of it.
const PROPERTIES: i32 = libc::SKF_AD_OFF;
const ACCEPT: u32 = u32::MAX;
const REFUSE: u32 = 0;

pub(super) fn instruction(code: u32, jump_true: u8, jump_false: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: jump_true, jf: jump_false, k: value }
}

pub(super) fn load(size: u32, offset: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | size | libc::BPF_ABS, 0, 0, offset)
}

/// Skips so many instructions unless the number loaded last is `value`.
pub(super) fn unless_equal_skip(count: u8, value: u32) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, count, value)
}

pub(super) fn end(verdict: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, verdict)
}

fn jump_over(count: usize) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JA, 0, 0, count as u32)
}

/// Loads the VLAN of a frame: 0 without a tag, or with one that names a priority only.
fn load_vlan() -> [libc::sock_filter; 2] {
    [
        load(libc::BPF_W, (PROPERTIES + libc::SKF_AD_VLAN_TAG) as u32),
        instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, u32::from(VLAN_BITS)),
    ]
}

/// Does this for frames of an Ethernet type, which is the number loaded last, when they have no tag. The program must end.
fn for_type(ethertype: u16, program: &[libc::sock_filter]) -> Vec<libc::sock_filter> {
    let [tag, bits] = load_vlan();
    let skipped = program.len() + 4;
    let mut section = vec![
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, u32::from(ethertype)),
        jump_over(skipped),
        tag,
        bits,
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, 0),
        end(REFUSE),
    ];
    section.extend_from_slice(program);
    section
}

/// Accepts frames that have one of these numbers, of four bytes each, at an offset.
fn any_of(offset: u16, addresses: &[Ipv4Addr]) -> Vec<libc::sock_filter> {
    let mut program = vec![load(libc::BPF_W, offset.into())];
    program.extend(addresses.iter().flat_map(|address| [unless_equal_skip(1, address.to_bits()), end(ACCEPT)]));
    program.push(end(REFUSE));
    program
}

/// Accepts packets of IPv6 to these addresses.
fn to_any_of(addresses: &[[u32; 4]]) -> Vec<libc::sock_filter> {
    let mut program = Vec::new();
    for words in addresses {
        for (&word, offset) in words.iter().zip((DESTINATION_V6..).step_by(4)) {
            // What is left of this address: two for each further word, and the verdict.
            let left = 2 * ((DESTINATION_V6 + 12 - offset) / 4) + 1;
            program.extend([load(libc::BPF_W, offset.into()), unless_equal_skip(left as u8, word)]);
        }
        program.push(end(ACCEPT));
    }
    program.push(end(REFUSE));
    program
}

/// Accepts nothing.
pub(super) fn nothing() -> Vec<libc::sock_filter> {
    vec![end(REFUSE)]
}

/// Accepts NDN frames without tag, or with the tag of one of the wanted VLANs, and packets without tag for wanted addresses.
pub(super) fn program(wanted: &Wanted) -> Vec<libc::sock_filter> {
    let (v4, v6) = (wanted.v4(), wanted.v6());
    let mut program = vec![load(libc::BPF_H, TYPE_OFFSET)];
    if !v4.is_empty() {
        program.extend(for_type(ETHERTYPE_ARP, &any_of(TARGET_OF_ARP, &v4)));
        program.extend(for_type(ETHERTYPE_IPV4, &any_of(DESTINATION_V4, &v4)));
    }
    if !v6.is_empty() {
        program.extend(for_type(ETHERTYPE_IPV6, &to_any_of(&v6)));
    }
    // Past the next instruction, which ends, is the way of NDN frames.
    program.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, u32::from(ETHERTYPE_NDN)));
    program.push(end(REFUSE));
    program.extend(load_vlan());
    program.extend([unless_equal_skip(1, 0), end(ACCEPT)]);
    // Tags of providers (IEEE 802.1ad) name other networks than those of the same number.
    program.extend([
        load(libc::BPF_W, (PROPERTIES + libc::SKF_AD_VLAN_TPID) as u32),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, u32::from(ETHERTYPE_VLAN)),
        end(REFUSE),
    ]);
    program.extend(load_vlan());
    program.extend(wanted.vlans().iter().flat_map(|&vlan| [unless_equal_skip(1, u32::from(vlan)), end(ACCEPT)]));
    program.push(end(REFUSE));
    program
}
