//! Programs made from random bytes: most of them are borderline cases for the verifier, some are hostile.

use super::{ADD, MEMORY, MIX};
use crate::instruction::Instruction;

/// Boundary values.
const EDGES: [i32; 16] = [0, 1, 2, 7, 8, 15, 31, 32, 33, 63, 64, -1, -8, 127, i32::MAX, i32::MIN];
/// Operation codes of arithmetic in both widths, without the class and the source.
const ARITHMETIC: [u8; 12] = [0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x90, 0xA0, 0xB0, 0xC0];
const JUMPS: [u8; 11] = [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xA0, 0xB0, 0xC0, 0xD0];

struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        self.0.next().copied()
    }

    /// A number below `limit`; 0 when no bytes are left.
    fn below(&mut self, limit: u8) -> u8 {
        self.next().unwrap_or(0) % limit
    }

    fn number(&mut self) -> i32 {
        match self.next() {
            Some(byte) if byte & 0x80 == 0 => EDGES[usize::from(byte) % EDGES.len()],
            Some(byte) => i32::from(byte as i8),
            None => 0,
        }
    }
}

const fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, destination, source, offset, immediate }
}

/// Makes a program with instructions chosen by the bytes. At the start, registers 1 and 6 hold the context, 7 the
/// helper's memory, and all others numbers.
pub fn program_from(bytes: &[u8]) -> Vec<Instruction> {
    let mut bytes = Bytes(bytes.iter());
    let mut program = vec![
        instruction(0xBF, 6, 1, 0, 0),
        instruction(0x85, 0, 0, 0, MEMORY as i32),
        instruction(0xBF, 7, 0, 0, 0),
        instruction(0x79, 8, 6, 0, 0),
        instruction(0x61, 9, 6, 8, 0),
        instruction(0xB7, 0, 0, 0, 3),
    ];
    set_arguments(&mut program);
    while let Some(choice) = bytes.next() {
        one(&mut program, choice, &mut bytes);
    }
    program.extend([instruction(0xB7, 0, 0, 0, 1), instruction(0x95, 0, 0, 0, 0)]);
    program
}

fn set_arguments(program: &mut Vec<Instruction>) {
    program.push(instruction(0xBF, 1, 6, 0, 0));
    program.extend((2..=5).map(|register| instruction(0xB7, register, 0, 0, i32::from(register) * 100)));
}

fn one(program: &mut Vec<Instruction>, choice: u8, bytes: &mut Bytes<'_>) {
    let register =
        |bytes: &mut Bytes<'_>| [0, 2, 3, 4, 5, 8, 9, 0, 2, 8, 9, 6, 7, 10, 1, 3][usize::from(bytes.below(16))];
    let size = |bytes: &mut Bytes<'_>| [0x00, 0x08, 0x10, 0x18][usize::from(bytes.below(4))];
    match choice % 16 {
        0..=4 => {
            let kind = ARITHMETIC[usize::from(bytes.below(12))];
            let class = if bytes.below(3) == 0 { 0x04 } else { 0x07 };
            let destination = register(bytes);
            if bytes.below(2) == 0 {
                program.push(instruction(class | kind | 0x08, destination, register(bytes), 0, 0));
            } else {
                program.push(instruction(class | kind, destination, 0, 0, bytes.number()));
            }
        }
        5 => {
            let class = if bytes.below(2) == 0 { 0x84 } else { 0x87 };
            program.push(instruction(class, register(bytes), 0, 0, 0));
        }
        6 => {
            let code = if bytes.below(2) == 0 { 0xD4 } else { 0xDC };
            let bits = [16, 32, 64][usize::from(bytes.below(3))];
            program.push(instruction(code, register(bytes), 0, 0, bits));
        }
        7 => {
            let (destination, low, high) = (register(bytes), bytes.number(), bytes.number());
            program.extend([instruction(0x18, destination, 0, 0, low), instruction(0, 0, 0, 0, high)]);
        }
        8 | 9 => {
            let code = 0x61 | size(bytes);
            let (base, offset) = address_of(bytes);
            program.push(instruction(code, register(bytes), base, offset, 0));
        }
        10 | 11 => {
            let code = 0x63 | size(bytes);
            let (base, offset) = address_of(bytes);
            program.push(instruction(code, base, register(bytes), offset, 0));
        }
        12 => {
            // An index that is limited, correctly or not.
            let (base, index) = ([6, 7][usize::from(bytes.below(2))], [8, 9][usize::from(bytes.below(2))]);
            let limit = [0x57, 0xB7, 0x97, 0x77][usize::from(bytes.below(4))];
            program.extend([
                instruction(limit, index, 0, 0, i32::from(bytes.below(72))),
                instruction(0xBF, 2, base, 0, 0),
                instruction(0x0F, 2, index, 0, 0),
                instruction(0x61 | size(bytes), 3, 2, i16::from(bytes.below(16)), 0),
            ]);
        }
        13 | 14 => {
            let jump = JUMPS[usize::from(bytes.below(11))] | [0x05, 0x05, 0x06][usize::from(bytes.below(3))];
            let (left, distance) = (register(bytes), i16::from(bytes.below(6)));
            if bytes.below(2) == 0 {
                program.push(instruction(0x08 | jump, left, register(bytes), distance, 0));
            } else {
                program.push(instruction(jump, left, 0, distance, bytes.number()));
            }
            // The skipped instructions, at least to the end of this choice.
            program.extend((0..distance).map(|_| instruction(0x07, 0, 0, 0, 1)));
        }
        _ => {
            let helper = [ADD, MEMORY, MIX][usize::from(bytes.below(3))];
            if helper == MIX {
                program.push(instruction(0xB7, 1, 0, 0, bytes.number()));
            }
            program.push(instruction(0x85, 0, 0, 0, helper as i32));
            set_arguments(program);
            if helper == MEMORY {
                program.push(instruction(0x79, 0, 0, i16::from(bytes.below(32)), 0));
            }
        }
    }
}

/// Returns a base register, and an offset inside its memory or just outside.
fn address_of(bytes: &mut Bytes<'_>) -> (u8, i16) {
    match bytes.below(8) {
        0..=2 => (6, i16::from(bytes.below(66))),
        3 | 4 => (7, i16::from(bytes.below(34)) - 1),
        5 | 6 => (10, -8 * i16::from(bytes.below(6))),
        _ => (10, -i16::from(bytes.below(40))),
    }
}
