//! The XDP program that the driver of an interface runs for each received frame: wanted frames go to the socket, all
//! others to the kernel. It is built from eBPF instructions (RFC 9669) for the frames that are wanted at the moment.

use std::net::Ipv4Addr;

use namehop_ebpf::instruction::Instruction;

use crate::wanted::{
    DESTINATION_V4, DESTINATION_V6, ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_NDN, ETHERTYPE_VLAN,
    TARGET_OF_ARP, VLAN_BITS, Wanted,
};

/// Instruction codes.
const LOAD_4: u8 = 0x61;
const LOAD_2: u8 = 0x69;
const LOAD_CONSTANT: u8 = 0x18;
const ADD_CONSTANT: u8 = 0x07;
const AND_CONSTANT: u8 = 0x57;
const MOVE: u8 = 0xBF;
const MOVE_CONSTANT: u8 = 0xB7;
const JUMP: u8 = 0x05;
const JUMP_IF_EQUAL: u8 = 0x15;
const JUMP_UNLESS_EQUAL: u8 = 0x55;
const JUMP_IF_EQUAL_32: u8 = 0x16;
const JUMP_UNLESS_EQUAL_32: u8 = 0x56;
const JUMP_IF_GREATER: u8 = 0x2D;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Registers: the saved context argument, begin and end of the frame, its Ethernet type, and a number loaded from it.
const CONTEXT: u8 = 6;
const BEGIN: u8 = 2;
const END: u8 = 3;
const KIND: u8 = 5;
const NUMBER: u8 = 4;
/// Offsets in the context: begin and end of the frame, and number of the queue.
const CONTEXT_BEGIN: i16 = 0;
const CONTEXT_END: i16 = 4;
const CONTEXT_QUEUE: i16 = 16;
/// Source register of a load that marks the constant as a map.
const PSEUDO_MAP: u8 = 1;
/// Helper function that redirects a frame to the socket in a map.
const REDIRECT_MAP: i32 = 51;
/// Verdict that passes a frame to the kernel.
const PASS: i32 = 2;

/// Offsets of the Ethernet type, and in a tagged frame of the tag and of the type behind it.
const TYPE: u16 = 12;
const TAG: u16 = 14;
const TYPE_BEHIND_TAG: u16 = 16;

/// A step of the program: an instruction, or a jump to a verdict.
#[derive(Clone, Copy)]
enum Step {
    Plain(Instruction),
    ToSocket(Instruction),
    ToKernel(Instruction),
}

fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, destination, source, offset, immediate }
}

fn load(code: u8, from: u16) -> Step {
    Step::Plain(instruction(code, NUMBER, BEGIN, from as i16, 0))
}

/// Compares two bytes of a frame, in a register as loaded, with a number.
fn compare_2(code: u8, register: u8, number: u16) -> Instruction {
    instruction(code, register, 0, 0, i32::from(number.to_be()))
}

/// Like `compare_2`, for four bytes.
fn compare_4(code: u8, number: u32) -> Instruction {
    instruction(code, NUMBER, 0, 0, number.to_be() as i32)
}

/// Passes frames that are shorter than `bytes` to the kernel.
fn at_least(bytes: u16) -> [Step; 3] {
    [
        Step::Plain(instruction(MOVE, NUMBER, BEGIN, 0, 0)),
        Step::Plain(instruction(ADD_CONSTANT, NUMBER, 0, 0, i32::from(bytes))),
        Step::ToKernel(instruction(JUMP_IF_GREATER, NUMBER, END, 0, 0)),
    ]
}

fn to_kernel() -> Step {
    Step::ToKernel(instruction(JUMP, 0, 0, 0, 0))
}

/// Runs `section` if a register, loaded from two bytes of a frame, equals `number`. The section must end with a
/// verdict.
fn only_for(register: u8, number: u16, section: Vec<Step>) -> impl Iterator<Item = Step> {
    let over = section.len() as i16;
    let compare = Instruction { offset: over, ..compare_2(JUMP_UNLESS_EQUAL, register, number) };
    std::iter::once(Step::Plain(compare)).chain(section)
}

/// Loads the VLAN of a tag.
fn load_vlan() -> [Step; 2] {
    [load(LOAD_2, TAG), Step::Plain(compare_2(AND_CONSTANT, NUMBER, VLAN_BITS))]
}

/// Decides on tagged frames. Accepts NDN frames of wanted VLANs or with a tag that carries only a priority, and packets
/// to addresses in their VLANs.
fn with_tag(wanted: &Wanted) -> Vec<Step> {
    let mut of_ndn = load_vlan().to_vec();
    of_ndn.push(Step::ToSocket(compare_2(JUMP_IF_EQUAL, NUMBER, 0)));
    of_ndn.extend(wanted.vlans().iter().map(|&vlan| Step::ToSocket(compare_2(JUMP_IF_EQUAL, NUMBER, vlan))));
    of_ndn.push(to_kernel());
    let mut steps = at_least(TYPE_BEHIND_TAG + 2).to_vec();
    steps.push(Step::Plain(instruction(LOAD_2, KIND, BEGIN, TYPE_BEHIND_TAG as i16, 0)));
    steps.extend(only_for(KIND, ETHERTYPE_NDN, of_ndn));
    for vlan in wanted.networks().into_iter().flatten() {
        let mut section = of_internet(wanted, Some(vlan));
        section.push(to_kernel());
        steps.extend(load_vlan());
        steps.extend(only_for(NUMBER, vlan, section));
    }
    steps.push(to_kernel());
    steps
}

/// Accepts packets to the addresses of one VLAN, or of untagged frames. Other frames continue behind these steps.
fn of_internet(wanted: &Wanted, vlan: Option<u16>) -> Vec<Step> {
    let (v4, v6) = (wanted.v4(vlan), wanted.v6(vlan));
    let behind = if vlan.is_some() { TYPE_BEHIND_TAG - TYPE } else { 0 };
    let mut steps = Vec::new();
    if !v4.is_empty() {
        steps.extend(only_for(KIND, ETHERTYPE_IPV4, for_v4(DESTINATION_V4 + behind, &v4)));
        steps.extend(only_for(KIND, ETHERTYPE_ARP, for_v4(TARGET_OF_ARP + behind, &v4)));
    }
    if !v6.is_empty() {
        steps.extend(only_for(KIND, ETHERTYPE_IPV6, for_v6(DESTINATION_V6 + behind, &v6)));
    }
    steps
}

/// Accepts frames with one of these IPv4 addresses at `offset`.
fn for_v4(offset: u16, addresses: &[Ipv4Addr]) -> Vec<Step> {
    let mut steps = at_least(offset + 4).to_vec();
    steps.push(load(LOAD_4, offset));
    steps.extend(addresses.iter().map(|address| Step::ToSocket(compare_4(JUMP_IF_EQUAL_32, address.to_bits()))));
    steps.push(to_kernel());
    steps
}

/// Like `for_v4`, for IPv6 addresses of four words each.
fn for_v6(destination: u16, addresses: &[[u32; 4]]) -> Vec<Step> {
    let mut steps = at_least(destination + 16).to_vec();
    for words in addresses {
        for (&word, offset) in words.iter().zip((destination..).step_by(4)) {
            // Instructions left for this address: two for each further word, and the verdict.
            let left = 2 * ((destination + 12 - offset) / 4) + 1;
            let compare = Instruction { offset: left as i16, ..compare_4(JUMP_UNLESS_EQUAL_32, word) };
            steps.extend([load(LOAD_4, offset), Step::Plain(compare)]);
        }
        steps.push(Step::ToSocket(instruction(JUMP, 0, 0, 0, 0)));
    }
    steps.push(to_kernel());
    steps
}

/// Builds the program. `map` is the descriptor of the map from queue to socket.
pub(super) fn program(wanted: &Wanted, map: i32) -> Vec<Instruction> {
    let mut steps = vec![
        Step::Plain(instruction(MOVE, CONTEXT, 1, 0, 0)),
        Step::Plain(instruction(LOAD_4, BEGIN, CONTEXT, CONTEXT_BEGIN, 0)),
        Step::Plain(instruction(LOAD_4, END, CONTEXT, CONTEXT_END, 0)),
    ];
    // Kept even if every frame is wanted: the kernel rejects a program with an unreachable verdict.
    steps.extend(at_least(TYPE + 2));
    if wanted.is_everything() {
        steps.push(Step::ToSocket(instruction(JUMP, 0, 0, 0, 0)));
    } else {
        steps.push(Step::Plain(instruction(LOAD_2, KIND, BEGIN, TYPE as i16, 0)));
        steps.push(Step::ToSocket(compare_2(JUMP_IF_EQUAL, KIND, ETHERTYPE_NDN)));
        steps.extend(only_for(KIND, ETHERTYPE_VLAN, with_tag(wanted)));
        steps.extend(of_internet(wanted, None));
    }
    let verdicts = [
        instruction(MOVE_CONSTANT, 0, 0, 0, PASS),
        instruction(EXIT, 0, 0, 0, 0),
        instruction(LOAD_4, 2, CONTEXT, CONTEXT_QUEUE, 0),
        instruction(LOAD_CONSTANT, 1, PSEUDO_MAP, 0, map),
        instruction(0, 0, 0, 0, 0),
        // If the queue has no socket, the frame goes to the kernel.
        instruction(MOVE_CONSTANT, 3, 0, 0, PASS),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0, 0),
    ];
    let (to_kernel, to_socket) = (steps.len(), steps.len() + 2);
    let jump = |jump: Instruction, from: usize, to: usize| Instruction { offset: (to - from - 1) as i16, ..jump };
    let resolved = steps.into_iter().enumerate().map(|(place, step)| match step {
        Step::Plain(instruction) => instruction,
        Step::ToSocket(instruction) => jump(instruction, place, to_socket),
        Step::ToKernel(instruction) => jump(instruction, place, to_kernel),
    });
    resolved.chain(verdicts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program on a frame, and returns whether the socket gets it. Panics where the kernel would reject the
    /// program.
    fn takes(program: &[Instruction], frame: &[u8]) -> bool {
        const BEGIN_ADDRESS: u64 = 0x1000;
        let mut registers = [None; 11];
        registers[1] = Some(0);
        let (mut at, mut checked) = (0, 0);
        loop {
            let Instruction { code, destination, source, offset, immediate } = program[at];
            let value = |register: u8| registers[usize::from(register)].expect("the register has a value");
            let end = BEGIN_ADDRESS + frame.len() as u64;
            at += 1;
            let result = match code {
                MOVE => value(source),
                MOVE_CONSTANT => immediate as u64,
                ADD_CONSTANT => value(destination) + immediate as u64,
                AND_CONSTANT => value(destination) & immediate as u64,
                LOAD_4 if source == CONTEXT => match offset {
                    CONTEXT_BEGIN => BEGIN_ADDRESS,
                    CONTEXT_END => end,
                    CONTEXT_QUEUE => 0,
                    other => panic!("the context has no field {other}"),
                },
                LOAD_2 | LOAD_4 => {
                    let bytes = if code == LOAD_2 { 2 } else { 4 };
                    let from = (value(source) - BEGIN_ADDRESS) as usize + offset as usize;
                    assert!(from + bytes <= checked, "the program must check the length first");
                    let mut number = [0; 8];
                    number[..bytes].copy_from_slice(&frame[from..from + bytes]);
                    u64::from_le_bytes(number)
                }
                LOAD_CONSTANT => {
                    assert_eq!((source, immediate), (PSEUDO_MAP, 99));
                    at += 1;
                    7
                }
                CALL => {
                    assert_eq!((immediate, value(1), value(2), value(3)), (REDIRECT_MAP, 7, 0, PASS as u64));
                    return true;
                }
                EXIT => {
                    assert_eq!(value(0), PASS as u64);
                    return false;
                }
                _ => {
                    let is_taken = match code {
                        JUMP => true,
                        JUMP_IF_EQUAL => value(destination) == immediate as u64,
                        JUMP_UNLESS_EQUAL => value(destination) != immediate as u64,
                        JUMP_IF_EQUAL_32 => value(destination) as u32 == immediate as u32,
                        JUMP_UNLESS_EQUAL_32 => value(destination) as u32 != immediate as u32,
                        JUMP_IF_GREATER => {
                            assert_eq!(source, END);
                            if value(destination) <= end {
                                checked = (value(destination) - BEGIN_ADDRESS) as usize;
                            }
                            value(destination) > value(source)
                        }
                        other => panic!("unknown instruction {other:#x}"),
                    };
                    at = (at as i64 + if is_taken { i64::from(offset) } else { 0 }) as usize;
                    continue;
                }
            };
            registers[usize::from(destination)] = Some(result);
        }
    }

    /// The first unreachable instruction.
    fn unreached(program: &[Instruction]) -> Option<usize> {
        let mut is_reached = vec![false; program.len()];
        let mut open = vec![0];
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut is_reached[at], true) {
                continue;
            }
            let Instruction { code, offset, .. } = program[at];
            let jumps =
                [JUMP, JUMP_IF_EQUAL, JUMP_UNLESS_EQUAL, JUMP_IF_EQUAL_32, JUMP_UNLESS_EQUAL_32, JUMP_IF_GREATER];
            if jumps.contains(&code) {
                open.push((at as i64 + 1 + i64::from(offset)) as usize);
            }
            if ![JUMP, EXIT].contains(&code) {
                open.push(at + 1);
            }
        }
        is_reached.iter().position(|is_reached| !is_reached)
    }

    fn frame(behind_addresses: &[u8]) -> Vec<u8> {
        [&[2; 12][..], behind_addresses].concat()
    }

    /// A packet with these bytes at `offset` in the frame.
    fn packet(kind: u16, offset: u16, bytes: &[u8]) -> Vec<u8> {
        let mut packet = frame(&kind.to_be_bytes());
        packet.resize(offset.into(), 0);
        packet.extend(bytes);
        packet
    }

    fn in_vlan(tag: u16, frame: &[u8]) -> Vec<u8> {
        [&frame[..12], &[0x81, 0x00], &tag.to_be_bytes(), &frame[12..]].concat()
    }

    #[test]
    fn wanted_frames_go_to_the_socket_and_others_to_the_kernel() {
        let untagged = ["192.0.2.1", "198.51.100.7", "2001:db8::1:2:3"].map(|text| (None, text));
        let tagged = ["192.0.2.9", "2001:db8::9"].map(|text| (Some(7), text));
        let elsewhere = [(Some(9), "192.0.2.1")];
        let own = untagged.into_iter().chain(tagged).chain(elsewhere);
        let own: Vec<_> = own.map(|(vlan, text)| (vlan, text.parse().expect("an address"))).collect();
        let wanted = Wanted::new(&[7, 4094], &own);
        let wanted = program(&wanted.expect("few enough VLANs and addresses"), 99);
        let nothing = program(&Wanted::default(), 99);
        let everything = program(&Wanted::everything(), 99);
        assert!([&frame(&[8, 0])[..], &frame(&[0x81, 0, 1])].into_iter().all(|frame| takes(&everything, frame)));
        for program in [&wanted, &nothing, &everything] {
            assert_eq!(unreached(program), None, "the kernel refuses programs with unreachable instructions");
        }
        let v6 = |text: &str| text.parse::<std::net::Ipv6Addr>().expect("an address").octets();
        let table = [
            (frame(&[0x86, 0x24]), true, true),
            (frame(&[0x86, 0x24, 1, 2, 3]), true, true),
            (frame(&[0x86]), false, false),
            (frame(&[0x88, 0xCC, 0, 0]), false, false),
            // Tags: a priority tag, wanted VLANs, another VLAN, a provider tag, and a tag around another type.
            (frame(&[0x81, 0, 0xE0, 0, 0x86, 0x24]), true, true),
            (frame(&[0x81, 0, 0, 7, 0x86, 0x24]), true, false),
            (frame(&[0x81, 0, 0xAF, 0xFE, 0x86, 0x24]), true, false),
            (frame(&[0x81, 0, 0, 8, 0x86, 0x24]), false, false),
            (frame(&[0x88, 0xA8, 0, 7, 0x86, 0x24]), false, false),
            (frame(&[0x81, 0, 0, 7, 0x08, 0]), false, false),
            (frame(&[0x81, 0, 0, 7, 0x86]), false, false),
            (packet(ETHERTYPE_IPV4, DESTINATION_V4, &[192, 0, 2, 1]), true, false),
            (packet(ETHERTYPE_IPV4, DESTINATION_V4, &[198, 51, 100, 7, 0]), true, false),
            (packet(ETHERTYPE_IPV4, DESTINATION_V4, &[192, 0, 2, 2]), false, false),
            (packet(ETHERTYPE_IPV4, DESTINATION_V4, &[192, 0, 2]), false, false),
            (packet(ETHERTYPE_ARP, TARGET_OF_ARP, &[192, 0, 2, 1]), true, false),
            (packet(ETHERTYPE_ARP, TARGET_OF_ARP, &[192, 0, 2, 9]), false, false),
            (packet(ETHERTYPE_IPV6, DESTINATION_V6, &v6("2001:db8::1:2:3")), true, false),
            (packet(ETHERTYPE_IPV6, DESTINATION_V6, &v6("ff02::1:ff02:3")), true, false),
            (packet(ETHERTYPE_IPV6, DESTINATION_V6, &v6("2001:db8::1:2:4")), false, false),
            (packet(ETHERTYPE_IPV6, DESTINATION_V6, &v6("2001:db8::1:2:3")[..15]), false, false),
            (Vec::new(), false, false),
            // Each address is accepted only in its own VLAN.
            (in_vlan(7, &packet(ETHERTYPE_IPV4, DESTINATION_V4, &[192, 0, 2, 9])), true, false),
            (in_vlan(0xE007, &packet(ETHERTYPE_IPV4, DESTINATION_V4, &[192, 0, 2, 9])), true, false),
            (in_vlan(7, &packet(ETHERTYPE_IPV4, DESTINATION_V4, &[192, 0, 2, 9])[..33]), false, false),
            (in_vlan(7, &packet(ETHERTYPE_IPV4, DESTINATION_V4, &[192, 0, 2, 1])), false, false),
            (in_vlan(9, &packet(ETHERTYPE_IPV4, DESTINATION_V4, &[192, 0, 2, 9])), false, false),
            (in_vlan(9, &packet(ETHERTYPE_IPV4, DESTINATION_V4, &[192, 0, 2, 1])), true, false),
            (in_vlan(0, &packet(ETHERTYPE_IPV4, DESTINATION_V4, &[192, 0, 2, 1])), false, false),
            (packet(ETHERTYPE_IPV4, DESTINATION_V4, &[192, 0, 2, 9]), false, false),
            (in_vlan(7, &packet(ETHERTYPE_ARP, TARGET_OF_ARP, &[192, 0, 2, 9])), true, false),
            (in_vlan(7, &packet(ETHERTYPE_IPV6, DESTINATION_V6, &v6("2001:db8::9"))), true, false),
            (in_vlan(7, &packet(ETHERTYPE_IPV6, DESTINATION_V6, &v6("ff02::1:ff00:9"))), true, false),
            (in_vlan(9, &packet(ETHERTYPE_IPV6, DESTINATION_V6, &v6("2001:db8::9"))), false, false),
            (in_vlan(9, &frame(&[0x86, 0x24])), false, false),
        ];
        for (frame, is_wanted, is_taken_anyway) in table {
            assert_eq!(takes(&wanted, &frame), is_wanted, "{frame:x?}");
            assert_eq!(takes(&nothing, &frame), is_taken_anyway, "{frame:x?}");
        }
    }
}
