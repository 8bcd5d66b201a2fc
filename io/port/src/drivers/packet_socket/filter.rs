//! The filter that the kernel applies to frames before they reach the ring: a classic BPF program (networking/filter in
//! the kernel's documentation).

use std::net::Ipv4Addr;

use crate::wanted::{
    DESTINATION_V4, DESTINATION_V6, ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_NDN, ETHERTYPE_VLAN,
    TARGET_OF_ARP, VLAN_BITS, Wanted,
};

/// Offset of the Ethernet type, once the kernel has removed the VLAN tag.
const TYPE_OFFSET: u32 = 12;
/// Offsets from here on refer to properties of the packet instead of its bytes.
const PROPERTIES: i32 = libc::SKF_AD_OFF;
const ACCEPT: u32 = u32::MAX;
const REFUSE: u32 = 0;

pub(super) fn instruction(code: u32, jump_true: u8, jump_false: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: jump_true, jf: jump_false, k: value }
}

pub(super) fn load(size: u32, offset: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | size | libc::BPF_ABS, 0, 0, offset)
}

/// Skips `count` instructions unless the loaded number is `value`.
pub(super) fn unless_equal_skip(count: u8, value: u32) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, count, value)
}

pub(super) fn end(verdict: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, verdict)
}

fn jump_over(count: usize) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JA, 0, 0, count as u32)
}

/// Loads the VLAN of a frame: 0 without a tag, or with a tag that carries only a priority.
fn load_vlan() -> [libc::sock_filter; 2] {
    [
        load(libc::BPF_W, (PROPERTIES + libc::SKF_AD_VLAN_TAG) as u32),
        instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, u32::from(VLAN_BITS)),
    ]
}

/// Rejects frames with a provider tag (IEEE 802.1ad): their VLAN numbers name other networks than 802.1Q numbers do.
fn only_of_customers() -> [libc::sock_filter; 3] {
    [
        load(libc::BPF_W, (PROPERTIES + libc::SKF_AD_VLAN_TPID) as u32),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, u32::from(ETHERTYPE_VLAN)),
        end(REFUSE),
    ]
}

/// Runs `program` if the loaded number is `value`. The program must end with a verdict.
fn only_for(value: u16, program: Vec<libc::sock_filter>) -> impl Iterator<Item = libc::sock_filter> {
    let compare = instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, u32::from(value));
    [compare, jump_over(program.len())].into_iter().chain(program)
}

/// Decides on frames of one Ethernet type, which is the loaded number. `program` makes the rules for each VLAN that has
/// addresses, and for untagged frames.
fn for_type(
    ethertype: u16,
    wanted: &Wanted,
    program: impl Fn(Option<u16>) -> Option<Vec<libc::sock_filter>>,
) -> Vec<libc::sock_filter> {
    let mut section = load_vlan().to_vec();
    let before = section.len();
    for vlan in wanted.networks() {
        let Some(program) = program(vlan) else { continue };
        let check = vlan.iter().flat_map(|_| only_of_customers());
        section.extend(only_for(vlan.unwrap_or(0), check.chain(program).collect()));
    }
    if section.len() == before {
        return Vec::new();
    }
    section.push(end(REFUSE));
    only_for(ethertype, section).collect()
}

/// Accepts frames with one of these IPv4 addresses at `offset`; `None` without addresses.
fn any_of(offset: u16, addresses: &[Ipv4Addr]) -> Option<Vec<libc::sock_filter>> {
    if addresses.is_empty() {
        return None;
    }
    let mut program = vec![load(libc::BPF_W, offset.into())];
    program.extend(addresses.iter().flat_map(|address| [unless_equal_skip(1, address.to_bits()), end(ACCEPT)]));
    program.push(end(REFUSE));
    Some(program)
}

/// Accepts IPv6 packets to one of these addresses; `None` without addresses.
fn to_any_of(addresses: &[[u32; 4]]) -> Option<Vec<libc::sock_filter>> {
    if addresses.is_empty() {
        return None;
    }
    let mut program = Vec::new();
    for words in addresses {
        for (&word, offset) in words.iter().zip((DESTINATION_V6..).step_by(4)) {
            // Instructions left for this address: two for each further word, and the verdict.
            let left = 2 * ((DESTINATION_V6 + 12 - offset) / 4) + 1;
            program.extend([load(libc::BPF_W, offset.into()), unless_equal_skip(left as u8, word)]);
        }
        program.push(end(ACCEPT));
    }
    program.push(end(REFUSE));
    Some(program)
}

/// Accepts no frames.
pub(super) fn nothing() -> Vec<libc::sock_filter> {
    vec![end(REFUSE)]
}

/// Accepts every frame if `wanted` says so. Otherwise accepts NDN frames that are untagged or in a wanted VLAN, and
/// packets to the wanted addresses in their VLANs.
pub(super) fn program(wanted: &Wanted) -> Vec<libc::sock_filter> {
    if wanted.is_everything() {
        return vec![end(ACCEPT)];
    }
    let mut program = vec![load(libc::BPF_H, TYPE_OFFSET)];
    program.extend(for_type(ETHERTYPE_ARP, wanted, |vlan| any_of(TARGET_OF_ARP, &wanted.v4(vlan))));
    program.extend(for_type(ETHERTYPE_IPV4, wanted, |vlan| any_of(DESTINATION_V4, &wanted.v4(vlan))));
    program.extend(for_type(ETHERTYPE_IPV6, wanted, |vlan| to_any_of(&wanted.v6(vlan))));
    // NDN frames skip the next instruction, which rejects all other frames.
    program.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, u32::from(ETHERTYPE_NDN)));
    program.push(end(REFUSE));
    program.extend(load_vlan());
    program.extend([unless_equal_skip(1, 0), end(ACCEPT)]);
    program.extend(only_of_customers());
    program.extend(load_vlan());
    program.extend(wanted.vlans().iter().flat_map(|&vlan| [unless_equal_skip(1, u32::from(vlan)), end(ACCEPT)]));
    program.push(end(REFUSE));
    program
}
