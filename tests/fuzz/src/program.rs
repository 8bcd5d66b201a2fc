//! Object files of strategies, and the programs in them.

use namehop_ebpf::instruction::{INSTRUCTION_BYTES, Instruction};
use namehop_ebpf::testing::{BYTES, INTERFACE, Random, Shape, compare_forms, long_program, program_from};
use namehop_ebpf::verify;
use namehop_engine::strategy::StrategyProgram;

/// Uses the bytes as an object file, as instructions, as choices of instructions, and as the seed of a long program. A
/// program that passes the verifier does no harm and behaves the same in all forms of execution.
pub fn strategy_program(bytes: &[u8]) {
    let _ = StrategyProgram::load(bytes, None);
    let (instructions, _) = bytes.as_chunks::<INSTRUCTION_BYTES>();
    run(&instructions.iter().map(|&encoded| Instruction::from_bytes(encoded)).collect::<Vec<_>>(), bytes);
    run(&program_from(bytes), bytes);
    let seed = bytes.iter().fold(bytes.len() as u64, |seed, &byte| seed.rotate_left(8) ^ u64::from(byte));
    let mut random = Random::new(seed);
    let shape = Shape { instructions: 50 + random.below(4_000), has_loops: random.below(4) == 0 };
    run(&long_program(&mut random, shape), bytes);
}

fn run(program: &[Instruction], bytes: &[u8]) {
    let Ok(verified) = verify(program, &INTERFACE) else { return };
    let mut repeated = bytes.iter().copied().cycle();
    let memory: [u8; BYTES] = std::array::from_fn(|_| repeated.next().unwrap_or(0));
    compare_forms(program, &verified, &[memory]).unwrap_or_else(|difference| panic!("{difference}"));
}
