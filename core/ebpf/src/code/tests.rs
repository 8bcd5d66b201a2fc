//! Compares programs as native code, interpreted, and in the checking interpreter, which shares no code with either.

use proptest::collection::vec;
use proptest::prelude::*;

use super::Code;
use crate::instruction::Instruction;
use crate::testing::{BYTES, INTERFACE, Random, Shape, compare_forms, long_program, program_from, run};
use crate::{Refusal, Verified, verify};

const EXIT: Instruction = op(0x95, 0, 0, 0, 0);

const fn op(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, destination, source, offset, immediate }
}

/// Returns the native code of a program; on x86-64 every program has it.
fn native(program: &Verified) -> Code {
    native_labelled(program, "test")
}

fn native_labelled(program: &Verified, label: &str) -> Code {
    let code = Code::new(program.clone(), label);
    if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        assert_eq!(code.interpreted_because(), None);
        assert_ne!(code.native_bytes(), 0);
    }
    code
}

fn verified(program: &[Instruction]) -> Verified {
    verify(program, &INTERFACE).expect("the program is safe")
}

#[test]
fn code_is_shared_and_freed() {
    let mut memory = [7; BYTES];
    for round in 0..200 {
        let code = native(&verified(&[op(0xB7, 0, 0, 0, round), EXIT]));
        assert_eq!(run(&code.clone(), &mut memory), round as u64);
    }
}

#[test]
fn helpers_are_called_with_an_aligned_stack() {
    let mut memory = [0; BYTES];
    for saved in 0..=4_u8 {
        for stack_words in 0..3_i16 {
            let mut program = vec![op(0xB7, 2, 0, 0, 5), op(0xB7, 3, 0, 0, 6)];
            program.extend((6..6 + saved).map(|register| op(0xB7, register, 0, 0, 1)));
            program.extend((1..=stack_words).map(|word| op(0x7A, 10, 0, -8 * word, 0)));
            program.extend([op(0x85, 0, 0, 0, 0), EXIT]);
            assert_eq!(run(&native(&verified(&program)), &mut memory), 5 * 31 + 6);
        }
    }
}

#[test]
fn every_operation_takes_every_pair_of_registers() {
    let values = [0, 1, 31, 32, 63, 64, 0x8000_0000, 0xFFFF_FFFF, 0x1_0000_0001, i64::MAX as u64, u64::MAX];
    let pairs =
        values.iter().flat_map(|left| values.iter().map(move |right| [left.to_le_bytes(), right.to_le_bytes()]));
    let memories: Vec<_> = pairs
        .map(|pair| {
            let mut memory = [0; BYTES];
            memory[..16].copy_from_slice(pair.as_flattened());
            memory
        })
        .collect();
    for kind in [0x0F, 0x1F, 0x2F, 0x3F, 0x4F, 0x5F, 0x6F, 0x7F, 0x9F, 0xAF, 0xBF, 0xCF] {
        for code in [kind, kind & 0xF8 | 0x04] {
            for (destination, source) in (0..10).flat_map(|left| (0..10).map(move |right| (left, right))) {
                // The context is in the frame; the result of the operation and all other registers are added up.
                let mut program = vec![op(0x7B, 10, 1, -8, 0), op(0xBF, 0, 1, 0, 0)];
                program.extend((2..10).map(|register| op(0xB7, register, 0, 0, i32::from(register) * 3)));
                program.extend([
                    op(0xB7, 1, 0, 0, 11),
                    op(0x79, 0, 0, 0, 0),
                    op(0x7B, 10, 0, -16, 0),
                    op(0x79, 0, 10, -8, 0),
                    op(0x79, 0, 0, 8, 0),
                    op(0x7B, 10, 0, -24, 0),
                    op(0xB7, 0, 0, 0, 17),
                    op(0x79, destination, 10, -16, 0),
                    op(0x79, source, 10, -24, 0),
                    op(code, destination, source, 0, 0),
                ]);
                program.extend((1..10).flat_map(|register| [op(0x27, 0, 0, 0, 31), op(0x0F, 0, register, 0, 0)]));
                program.push(EXIT);
                let compared = compare_forms(&program, &verified(&program), &memories);
                compared.unwrap_or_else(|difference| panic!("{difference}"));
            }
        }
    }
}

#[test]
fn jumps_of_every_length_go_forward_and_backward() {
    for filling in 0..260 {
        // Jumps to the end, back over the filling, and on to the last instruction.
        let filling_bytes = filling as i16;
        let mut program = vec![op(0xB7, 0, 0, 0, 1), op(0x05, 0, 0, filling_bytes + 1, 0)];
        program.extend((0..filling).map(|_| op(0x07, 0, 0, 0, 1)));
        program.extend([EXIT, op(0x15, 0, 0, -filling_bytes - 2, 1), op(0xB7, 0, 0, 0, -1), EXIT]);
        compare_forms(&program, &verified(&program), &[[0; BYTES]]).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

#[test]
fn long_programs_do_the_same_in_all_forms() {
    let count = std::env::var("NAMEHOP_EBPF_PROGRAMS").map_or(300, |count| count.parse().expect("a number"));
    let mut random = Random::new(std::env::var("NAMEHOP_EBPF_SEED").map_or(1, |seed| seed.parse().expect("a number")));
    let (mut passed, mut refused) = (0, 0);
    for number in 0..count {
        let shape = Shape { instructions: 100 + random.below(3_800), has_loops: number % 8 == 0 };
        let mut program = long_program(&mut random, shape);
        if number % 4 == 1 {
            // One edit: most edited programs are refused, and the others behave differently.
            let at = random.below(program.len());
            let mut bytes = program[at].to_bytes();
            bytes[random.below(bytes.len())] = random.draw() as u8;
            program[at] = Instruction::from_bytes(bytes);
        }
        match verify(&program, &INTERFACE) {
            Err(_) => refused += 1,
            Ok(verified) => {
                passed += 1;
                let memories: [_; 3] = std::array::from_fn(|_| std::array::from_fn(|_| random.draw() as u8));
                compare_forms(&program, &verified, &memories)
                    .unwrap_or_else(|difference| panic!("program {number}: {difference}"));
            }
        }
    }
    assert!(passed > count / 2 && refused > count / 20, "{passed} programs passed, {refused} were refused");
}

#[test]
fn loops_are_refused() {
    let mut random = Random::new(7);
    let mut loops = 0;
    for _ in 0..200 {
        let program = long_program(&mut random, Shape { instructions: 1_000, has_loops: true });
        match verify(&program, &INTERFACE) {
            Err(Refusal { reason, .. }) if reason.contains("loop back") => loops += 1,
            other => drop(other.map(|verified| {
                compare_forms(&program, &verified, &[[3; BYTES]]).expect("all forms have the same result")
            })),
        }
    }
    assert!(loops > 100, "only {loops} programs were refused for a loop");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16_384))]

    #[test]
    fn random_programs_do_the_same_in_all_forms(
        choices in vec(any::<u8>(), 0..160),
        memory: [u8; BYTES],
    ) {
        let program = program_from(&choices);
        if let Ok(verified) = verify(&program, &INTERFACE) {
            prop_assert_eq!(compare_forms(&program, &verified, &[memory]), Ok(()));
        }
    }
}

/// Environment variable with the path of the file in which a child process records the faulty program.
const RECORD: &str = "NAMEHOP_TEST_RECORD";
/// Environment variable with the form in which the child process runs it.
const FORM: &str = "NAMEHOP_TEST_FORM";

/// Runs a program that writes to address 0, after another one has ended, in a child process.
#[test]
fn a_program_that_ends_the_process_is_named() {
    if let Some(file) = std::env::var_os(RECORD) {
        let file = std::fs::File::options().append(true).open(file).expect("the parent has created the file");
        crate::blame::record_in(file.into()).expect("signal handlers can be installed");
        run(&Code::new(verified(&[op(0xB7, 0, 0, 0, 0), EXIT]), "harmless"), &mut [0; BYTES]);
        let faulty = [op(0xB7, 1, 0, 0, 0), op(0x72, 1, 0, 0, 0), op(0xB7, 0, 0, 0, 0), EXIT];
        // SAFETY: the process is meant to be ended by the program.
        let faulty = unsafe { Verified::unchecked(&faulty, &INTERFACE, 0) }.expect("instructions");
        let label = "faulty 1\n2";
        let code = match std::env::var(FORM).as_deref() {
            Ok("interpreted") => Code::interpreted(faulty, label),
            _ => native_labelled(&faulty, label),
        };
        // SAFETY: as above.
        unsafe { code.run([0; BYTES].as_mut_ptr()) };
        return;
    }
    for form in ["native", "interpreted"] {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let status = std::process::Command::new(std::env::current_exe().expect("the path of this test binary"))
            .args(["--exact", "code::tests::a_program_that_ends_the_process_is_named", "--nocapture"])
            .env(RECORD, file.path())
            .env(FORM, form)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .expect("the child process starts");
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        // In a build with debug assertions the interpreter itself detects the address and aborts.
        assert!(matches!(signal, Some(nix::libc::SIGSEGV | nix::libc::SIGABRT)), "{form}: {status}");
        assert_eq!(std::fs::read_to_string(file.path()).expect("read"), "faulty 1 2\n", "{form}");
    }
}
