//! Long programs: blocks in any order, so that jumps of all lengths go forward and backward, with many exits.

use super::{ADD, MEMORY, MIX};
use crate::instruction::Instruction;

/// Operation codes of arithmetic in both widths, without the class and the source.
const ARITHMETIC: [u8; 12] = [0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x90, 0xA0, 0xB0, 0xC0];
const JUMPS: [u8; 11] = [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xA0, 0xB0, 0xC0, 0xD0];
/// Registers that hold numbers.
const NUMBERS: [u8; 7] = [0, 2, 3, 4, 5, 8, 9];
/// Maximum number of instructions that one choice and the end of a block take together.
const LONGEST: usize = 16;

/// A generator of pseudo-random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Makes a generator. The same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns the next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.draw() % limit as u64) as usize
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns a constant, often a boundary value.
    fn constant(&mut self) -> i32 {
        match self.below(3) {
            0 => self.of(&[0, 1, 2, 7, 8, 31, 32, 63, 64, -1, -8, 127, 128, i32::MAX, i32::MIN]),
            1 => self.draw() as i8 as i32,
            _ => self.draw() as i32,
        }
    }
}

const fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, destination, source, offset, immediate }
}

/// Shape of a long program.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Approximate number of instructions.
    pub instructions: usize,
    /// True if blocks may jump back to earlier ones, so that the program has loops.
    pub has_loops: bool,
}

/// A block with its jumps: the index of each in the block, and the number of its target block.
#[derive(Default)]
struct Block {
    instructions: Vec<Instruction>,
    jumps: Vec<(usize, usize)>,
}

/// Makes a program. Without loops, the verifier accepts it.
pub fn long_program(random: &mut Random, shape: Shape) -> Vec<Instruction> {
    let count = 1 + random.below(1 + shape.instructions / 12);
    let share = (shape.instructions / count).saturating_sub(LONGEST);
    let blocks: Vec<Block> = (0..count).map(|number| block(random, number, count, share, shape.has_loops)).collect();
    let mut order: Vec<usize> = (0..count).collect();
    // The first block stays first, because the program starts there.
    for position in (2..count).rev() {
        order.swap(position, 1 + random.below(position));
    }
    let mut starts = vec![0; count];
    let mut program = Vec::<Instruction>::new();
    for &number in &order {
        starts[number] = program.len();
        program.extend(&blocks[number].instructions);
    }
    for (block, start) in blocks.iter().zip(&starts) {
        for &(at, target) in &block.jumps {
            let distance = starts[target] as i64 - (start + at) as i64 - 1;
            program[start + at].offset = i16::try_from(distance).expect("jumps reach every instruction");
        }
    }
    program
}

fn block(random: &mut Random, number: usize, count: usize, share: usize, has_loops: bool) -> Block {
    let mut block = Block::default();
    if number == 0 {
        set_all(&mut block.instructions);
    }
    let length = block.instructions.len() + random.below(2 * share + 1);
    while block.instructions.len() < length {
        one(random, &mut block.instructions);
    }
    end(random, &mut block, number, count, has_loops);
    block
}

/// Initialises the registers: the context in register 6, the helper's memory in 7, and a number and an address on the
/// stack.
fn set_all(program: &mut Vec<Instruction>) {
    program.extend([
        instruction(0xBF, 6, 1, 0, 0),
        instruction(0x85, 0, 0, 0, MEMORY as i32),
        instruction(0xBF, 7, 0, 0, 0),
        instruction(0x79, 8, 6, 0, 0),
        instruction(0x61, 9, 6, 8, 0),
        instruction(0xB7, 0, 0, 0, 3),
        instruction(0x7A, 10, 0, -8, 77),
        instruction(0x7B, 10, 7, -16, 0),
        instruction(0x7A, 10, 0, -512, -3),
    ]);
    set_arguments(program);
}

fn set_arguments(program: &mut Vec<Instruction>) {
    program.push(instruction(0xBF, 1, 6, 0, 0));
    program.extend((2..=5).map(|register| instruction(0xB7, register, 0, 0, i32::from(register) * 100)));
}

fn one(random: &mut Random, program: &mut Vec<Instruction>) {
    let number = random.of(&NUMBERS);
    let size = random.of(&[0x00, 0x08, 0x10, 0x18]);
    match random.below(16) {
        0..=5 => arithmetic(random, program),
        6 => program.push(instruction(random.of(&[0x84, 0x87]), number, 0, 0, 0)),
        7 => program.push(instruction(random.of(&[0xD4, 0xDC]), number, 0, 0, random.of(&[16, 32, 64]))),
        8 => {
            let [low, high] = [random.draw() as i32, random.draw() as i32];
            program.extend([instruction(0x18, number, 0, 0, low), instruction(0, 0, 0, 0, high)]);
        }
        9 | 10 => {
            let (base, limit) = random.of(&[(6, 57), (7, 25)]);
            program.push(instruction(0x61 | size, number, base, random.below(limit) as i16, 0));
        }
        11 | 12 => {
            let (base, first, limit) = random.of(&[(6, 16, 41), (7, 0, 25), (10, -8, 1), (10, -512, 1)]);
            let offset = first + random.below(limit) as i16;
            match random.below(2) {
                0 => program.push(instruction(0x63 | size, base, number, offset, 0)),
                _ => program.push(instruction(0x62 | size, base, 0, offset, random.constant())),
            }
        }
        13 => {
            // An address from the stack, with a limited index.
            let index = random.of(&[8, 9]);
            program.extend([
                instruction(0x57, index, 0, 0, 7),
                instruction(0x79, 2, 10, -16, 0),
                instruction(0x0F, 2, index, 0, 0),
                instruction(0x79, 3, 2, 17, 0),
                instruction(0xB7, 2, 0, 0, 5),
            ]);
        }
        14 => program.push(instruction(0x79, number, 10, random.of(&[-8, -512]), 0)),
        _ => {
            let helper = random.of(&[ADD, MIX]);
            if helper == MIX {
                program.push(instruction(0xB7, 1, 0, 0, random.constant()));
            }
            program.push(instruction(0x85, 0, 0, 0, helper as i32));
            set_arguments(program);
        }
    }
}

fn arithmetic(random: &mut Random, program: &mut Vec<Instruction>) {
    let kind = random.of(&ARITHMETIC);
    let class = random.of(&[0x04, 0x07, 0x07]);
    let (destination, source) = (random.of(&NUMBERS), random.of(&NUMBERS));
    if random.below(2) == 0 {
        return program.push(instruction(kind | class | 0x08, destination, source, 0, 0));
    }
    let constant = match kind {
        0x60 | 0x70 | 0xC0 => random.below(if class == 0x04 { 32 } else { 64 }) as i32,
        0x30 | 0x90 => Some(random.constant()).filter(|&constant| constant != 0).unwrap_or(9),
        _ => random.constant(),
    };
    program.push(instruction(kind | class, destination, 0, 0, constant));
}

/// Ends a block so that the following one is reachable from it; the last one ends the program.
fn end(random: &mut Random, block: &mut Block, number: usize, count: usize, has_loops: bool) {
    let exit = [instruction(0xB7, 0, 0, 0, random.constant()), instruction(0x95, 0, 0, 0, 0)];
    let following = number + 1;
    if following == count {
        return block.instructions.extend(exit);
    }
    let first = if has_loops && random.below(count) < 3 { 0 } else { following };
    let other = first + random.below(count - first);
    match random.below(4) {
        0 => jump(block, instruction(0x05, 0, 0, 0, 0), following),
        1 => {
            let branch = branch(random);
            jump(block, branch, following);
            block.instructions.extend(exit);
        }
        _ => {
            let branch = branch(random);
            jump(block, branch, other);
            jump(block, instruction(0x05, 0, 0, 0, 0), following);
        }
    }
}

fn branch(random: &mut Random) -> Instruction {
    let code = random.of(&JUMPS) | random.of(&[0x05, 0x06]);
    let (left, right) = (random.of(&NUMBERS), random.of(&NUMBERS));
    match random.below(2) {
        0 => instruction(code | 0x08, left, right, 0, 0),
        _ => instruction(code, left, 0, 0, random.constant()),
    }
}

fn jump(block: &mut Block, instruction: Instruction, target: usize) {
    block.jumps.push((block.instructions.len(), target));
    block.instructions.push(instruction);
}
