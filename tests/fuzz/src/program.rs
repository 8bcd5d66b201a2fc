//! Object files of strategies, and the programs in them.

use namehop_ebpf::instruction::{INSTRUCTION_BYTES, Instruction, decode};
use namehop_ebpf::testing::{CONTEXT_BYTES, INTERFACE, Interpreter, MEMORY_BYTES, Outcome, program_from};
use namehop_ebpf::verify;
use namehop_forward::strategy::StrategyProgram;

/// The bytes as an object file, as instructions, and as choices of instructions: whatever the verifier lets pass does no harm.
pub fn strategy_program(bytes: &[u8]) {
    // Everything but the compiler, which sees verified programs only.
    let loaded = StrategyProgram::load(bytes, None, |_| Err("not compiled".to_owned()));
    assert!(loaded.is_err());
    let (instructions, _) = bytes.as_chunks::<INSTRUCTION_BYTES>();
    interpret(instructions.iter().map(|&encoded| Instruction::from_bytes(encoded)).collect(), bytes);
    interpret(program_from(bytes), bytes);
}

fn interpret(program: Vec<Instruction>, bytes: &[u8]) {
    let Ok(verified) = verify(program, &INTERFACE) else { return };
    let operations = decode(verified.instructions()).expect("it was decoded before");
    let memory = bytes.iter().copied().cycle().take((CONTEXT_BYTES + MEMORY_BYTES) as usize);
    let mut memory: Vec<u8> = memory.collect();
    memory.resize((CONTEXT_BYTES + MEMORY_BYTES) as usize, 0);
    let outcome = Interpreter::new(memory).run(&operations, |_, _| {});
    assert!(matches!(outcome, Outcome::Ended(_)), "{outcome:?}");
}
