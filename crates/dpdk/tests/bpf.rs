//! Compiled programs do what an interpreter says that they do.

use namehop_dpdk::bpf::compile;
use namehop_ebpf::instruction::{Instruction, decode};
use namehop_ebpf::testing::{CONTEXT_BYTES, INTERFACE, Interpreter, MEMORY_BYTES, Outcome, program_from};
use namehop_ebpf::{Code, verify};
use proptest::collection::vec;
use proptest::prelude::*;

const EXIT: Instruction = Instruction { code: 0x95, destination: 0, source: 0, offset: 0, immediate: 0 };

const fn op(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, destination, source, offset, immediate }
}

/// Runs compiled code on a context and the memory behind it.
fn run(code: &Code, memory: &mut [u8]) -> u64 {
    assert_eq!(memory.len(), (CONTEXT_BYTES + MEMORY_BYTES) as usize);
    // SAFETY: the memory is as large as the interface says, with that of the helper behind it.
    unsafe { (code.entry())(memory.as_mut_ptr()) }
}

fn compiled(program: &[Instruction]) -> Code {
    compile(&verify(program.to_vec(), &INTERFACE).expect("harmless")).expect("DPDK takes it")
}

#[test]
fn a_program_is_compiled_without_an_environment_and_freed() {
    let mut memory = vec![7; (CONTEXT_BYTES + MEMORY_BYTES) as usize];
    for round in 0..200 {
        let code = compiled(&[op(0xB7, 0, 0, 0, round), EXIT]);
        assert!(code.bytes() > 0);
        assert_eq!(run(&code.clone(), &mut memory), round as u64);
    }
}

#[test]
fn helpers_are_called_with_an_aligned_stack_whatever_registers_are_saved() {
    let mut memory = vec![0; (CONTEXT_BYTES + MEMORY_BYTES) as usize];
    for saved in 0..=4_u8 {
        for stack_words in 0..3_i16 {
            let mut program = vec![op(0xBF, 2, 1, 0, 0), op(0xB7, 2, 0, 0, 5), op(0xB7, 3, 0, 0, 6)];
            program.extend((6..6 + saved).map(|register| op(0xB7, register, 0, 0, 1)));
            program.extend((1..=stack_words).map(|word| op(0x7A, 10, 0, -8 * word, 0)));
            program.extend([op(0x85, 0, 0, 0, 0), EXIT]);
            assert_eq!(run(&compiled(&program), &mut memory), 5 * 31 + 6);
        }
    }
}

#[test]
fn what_only_dpdk_refuses_is_refused_with_its_reason() {
    // Two stores of four bytes and one load of eight: harmless, and too much for DPDK.
    let program = vec![op(0x62, 10, 0, -8, 1), op(0x62, 10, 0, -4, 1), op(0x79, 0, 10, -8, 0), EXIT];
    let verified = verify(program, &INTERFACE).expect("harmless");
    let error = compile(&verified).expect_err("DPDK does not know that").to_string();
    assert!(error.contains("undefined value on the stack"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(65_536))]

    #[test]
    fn compiled_programs_do_what_the_interpreter_says(
        choices in vec(any::<u8>(), 0..160),
        memory in vec(any::<u8>(), (CONTEXT_BYTES + MEMORY_BYTES) as usize),
    ) {
        let program = program_from(&choices);
        if let Ok(verified) = verify(program, &INTERFACE)
            && let Ok(code) = compile(&verified)
        {
            let operations = decode(verified.instructions()).expect("it was decoded before");
            let mut interpreter = Interpreter::new(memory.clone());
            let expected = interpreter.run(&operations, |_, _| {});
            let mut memory = memory;
            let result = run(&code, &mut memory);
            prop_assert_eq!(Outcome::Ended(result), expected, "{:#?}", operations);
            prop_assert_eq!(memory, interpreter.memory);
        }
    }
}
