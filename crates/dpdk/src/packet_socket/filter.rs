//! The filter that the kernel applies to frames before they reach the ring: a program for its classic packet filter
//! (networking/filter in the kernel's documentation).

use super::{ETHERTYPE_NDN, ETHERTYPE_VLAN, VLAN_BITS};

/// Where the type of a frame stands, once the kernel has taken its tag off.
const TYPE_OFFSET: u32 = 12;
/// Offsets relative to this one are properties of the packet, not bytes of it.
const PROPERTIES: i32 = libc::SKF_AD_OFF;
const ACCEPT: u32 = u32::MAX;
const REFUSE: u32 = 0;

fn instruction(code: u32, jump_true: u8, jump_false: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: jump_true, jf: jump_false, k: value }
}

fn load(size: u32, offset: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | size | libc::BPF_ABS, 0, 0, offset)
}

/// Skips so many instructions unless the number loaded last is `value`.
fn unless_equal_skip(count: u8, value: u32) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, count, value)
}

fn end(verdict: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, verdict)
}

/// Accepts NDN frames without tag, or with the tag of one of these VLANs.
pub(super) fn program(vlans: &[u16]) -> Vec<libc::sock_filter> {
    let vlan_of_tag = [
        load(libc::BPF_W, (PROPERTIES + libc::SKF_AD_VLAN_TAG) as u32),
        instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, u32::from(VLAN_BITS)),
    ];
    let mut program = vec![
        load(libc::BPF_H, TYPE_OFFSET),
        // Past the next instruction, which ends, is the way of NDN frames.
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, u32::from(ETHERTYPE_NDN)),
        end(REFUSE),
    ];
    program.extend(vlan_of_tag);
    // No tag, or one that names a priority only.
    program.extend([unless_equal_skip(1, 0), end(ACCEPT)]);
    // Tags of providers (IEEE 802.1ad) name other networks than those of the same number.
    program.extend([
        load(libc::BPF_W, (PROPERTIES + libc::SKF_AD_VLAN_TPID) as u32),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, u32::from(ETHERTYPE_VLAN)),
        end(REFUSE),
    ]);
    program.extend(vlan_of_tag);
    program.extend(vlans.iter().flat_map(|&vlan| [unless_equal_skip(1, u32::from(vlan)), end(ACCEPT)]));
    program.push(end(REFUSE));
    program
}
