//! Tests of the verifier: hostile programs that it must refuse, and random programs that are interpreted if they
//! pass.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::state::State;
use super::value::{Region, Value};
use super::*;
use crate::testing::{CONTEXT_BYTES, INTERFACE, Interpreter, MEMORY_BYTES, Outcome, program_from};

const fn op(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, destination, source, offset, immediate }
}

const EXIT: Instruction = op(0x95, 0, 0, 0, 0);
const ZERO: Instruction = op(0xB7, 0, 0, 0, 0);
const CALL_ADD: Instruction = op(0x85, 0, 0, 0, 0);
const CALL_MEMORY: Instruction = op(0x85, 0, 0, 0, 1);

fn judge(program: &[Instruction]) -> Result<Verified, Refusal> {
    verify(program, &INTERFACE)
}

#[test]
fn harmless_programs_pass() {
    for program in [
        &[ZERO, EXIT][..],
        // Reads the context and writes where it may.
        &[op(0x79, 0, 1, 0, 0), op(0x7B, 1, 0, 16, 0), op(0x72, 1, 0, 63, 5), EXIT],
        // An address is stored on the stack and loaded again.
        &[op(0x7B, 10, 1, -8, 0), op(0x79, 2, 10, -8, 0), op(0x71, 0, 2, 63, 0), EXIT],
        // A limited index.
        &[op(0x71, 2, 1, 0, 0), op(0x57, 2, 0, 0, 31), op(0x0F, 1, 2, 0, 0), op(0x79, 0, 1, 25, 0), EXIT],
        &[op(0x79, 2, 1, 0, 0), ZERO, op(0x25, 2, 0, 2, 63), op(0x0F, 1, 2, 0, 0), op(0x71, 0, 1, 0, 0), EXIT],
        // The first instruction branches.
        &[op(0x15, 1, 0, 0, 0), ZERO, EXIT],
        &[CALL_MEMORY, op(0x7A, 0, 0, 24, 1), ZERO, EXIT],
    ] {
        judge(program).unwrap_or_else(|refusal| panic!("{program:?}: {refusal}"));
    }
    assert_eq!(judge(&[op(0x7A, 10, 0, -24, 0), ZERO, EXIT]).expect("the program is safe").stack_bytes(), 24);
}

#[test]
fn hostile_programs_are_refused_with_the_reason() {
    let table: &[(&str, &[Instruction], &str)] = &[
        ("empty", &[], "no instructions"),
        ("no end", &[ZERO], "past its end"),
        ("loop", &[ZERO, op(0x05, 0, 0, -2, 0)], "loop back"),
        ("loop to itself", &[op(0x05, 0, 0, -1, 0)], "loop back"),
        ("conditional loop", &[ZERO, op(0x15, 0, 0, -2, 5), EXIT], "loop back"),
        ("jump before the start", &[op(0x05, 0, 0, -5, 0), EXIT], "out of the program"),
        ("jump past the end", &[ZERO, op(0x05, 0, 0, 90, 0), EXIT], "past its end"),
        (
            "jump into a constant",
            &[op(0x05, 0, 0, 1, 0), op(0x18, 0, 0, 0, 0), op(0, 0, 0, 0, 0), EXIT],
            "into the middle",
        ),
        ("half a constant", &[ZERO, op(0x18, 0, 0, 0, 0)], "second half"),
        ("unreachable instructions", &[ZERO, EXIT, ZERO, EXIT], "unreachable instruction"),
        ("no result", &[EXIT], "result in register 0"),
        ("an address as result", &[op(0xBF, 0, 1, 0, 0), EXIT], "an address where a number"),
        ("a register that is not set", &[op(0xBF, 0, 5, 0, 0), EXIT], "not set on every path"),
        ("set on one path only", &[op(0x71, 2, 1, 0, 0), op(0x15, 2, 0, 1, 0), ZERO, EXIT], "not set on every path"),
        ("before the context", &[op(0x71, 0, 1, -1, 0), EXIT], "bytes -1 to -1 of the context"),
        ("past the context", &[op(0x79, 0, 1, 57, 0), EXIT], "bytes 57 to 64 of the context, which has 64"),
        ("write to a read-only field", &[op(0x7A, 1, 0, 9, 0), ZERO, EXIT], "cannot be changed"),
        ("past the memory", &[CALL_MEMORY, op(0x71, 0, 0, 32, 0), EXIT], "bytes 32 to 32 of the memory"),
        ("above the stack", &[op(0x7A, 10, 0, 0, 0), ZERO, EXIT], "of the stack"),
        ("below the stack", &[op(0x7A, 10, 0, -520, 0), ZERO, EXIT], "of the stack"),
        ("reads the stack unwritten", &[op(0x79, 0, 10, -8, 0), EXIT], "not written before"),
        ("reads more than was written", &[op(0x62, 10, 0, -8, 0), op(0x79, 0, 10, -8, 0), EXIT], "not written before"),
        ("part of an address", &[op(0x7B, 10, 1, -8, 0), op(0x61, 0, 10, -8, 0), EXIT], "part of an address"),
        (
            "overwrites a part of an address",
            &[op(0x7B, 10, 1, -8, 0), op(0x72, 10, 0, -8, 0), op(0x79, 2, 10, -8, 0), ZERO, EXIT],
            "part of an address",
        ),
        ("a number as address", &[op(0xB7, 2, 0, 0, 4096), op(0x71, 0, 2, 0, 0), EXIT], "a number is not an address"),
        (
            "an index without a limit",
            &[op(0x79, 2, 1, 0, 0), op(0x0F, 1, 2, 0, 0), op(0x71, 0, 1, 0, 0), EXIT],
            "may leave",
        ),
        (
            "a limit too large",
            &[op(0x71, 2, 1, 0, 0), op(0x57, 2, 0, 0, 64), op(0x0F, 1, 2, 0, 0), op(0x71, 0, 1, 0, 0), EXIT],
            "bytes 0 to 64",
        ),
        (
            "only a signed limit",
            &[op(0x79, 2, 1, 0, 0), ZERO, op(0x65, 2, 0, 2, 63), op(0x0F, 1, 2, 0, 0), op(0x71, 0, 1, 0, 0), EXIT],
            "may leave",
        ),
        (
            "an index below zero",
            &[op(0x71, 2, 1, 0, 0), op(0x57, 2, 0, 0, 7), op(0x1F, 1, 2, 0, 0), op(0x71, 0, 1, 0, 0), EXIT],
            "bytes -7 to",
        ),
        (
            "the stack by an index",
            &[op(0x7A, 10, 0, -8, 0), op(0x71, 2, 1, 0, 0), op(0x57, 2, 0, 0, 1), op(0x0F, 10, 2, 0, 0), EXIT],
            "register 10 cannot be changed",
        ),
        (
            "the stack by an index in a copy",
            &[
                op(0x7A, 10, 0, -8, 0),
                op(0x71, 2, 1, 0, 0),
                op(0x57, 2, 0, 0, 1),
                op(0xBF, 3, 10, 0, 0),
                op(0x0F, 3, 2, 0, 0),
                op(0x71, 0, 3, -8, 0),
                EXIT,
            ],
            "indexed by a variable",
        ),
        ("two addresses", &[op(0xBF, 2, 1, 0, 0), op(0x0F, 1, 2, 0, 0), ZERO, EXIT], "only addition and subtraction"),
        ("multiplies an address", &[op(0x27, 1, 0, 0, 2), ZERO, EXIT], "only addition and subtraction"),
        ("truncates an address", &[op(0xBC, 1, 1, 0, 0), ZERO, EXIT], "an address where a number"),
        ("stores an address outside of the stack", &[op(0x7B, 1, 1, 16, 0), ZERO, EXIT], "stored only on the stack"),
        ("compares addresses", &[ZERO, op(0x1D, 1, 10, 0, 0), EXIT], "only be compared with zero"),
        (
            "different kinds of value in one register",
            &[
                op(0x71, 2, 1, 0, 0),
                op(0xBF, 3, 10, 0, 0),
                op(0x15, 2, 0, 1, 0),
                op(0xBF, 3, 1, 0, 0),
                op(0x71, 0, 3, 0, 0),
                EXIT,
            ],
            "not set on every path",
        ),
        (
            "another context for a helper",
            &[op(0x07, 1, 0, 0, 8), op(0xB7, 2, 0, 0, 0), op(0xB7, 3, 0, 0, 0), CALL_ADD, EXIT],
            "argument 1 of add must be the context",
        ),
        (
            "the stack as context",
            &[
                op(0xBF, 1, 10, 0, 0),
                op(0x07, 1, 0, 0, -128),
                op(0xB7, 2, 0, 0, 0),
                op(0xB7, 3, 0, 0, 0),
                CALL_ADD,
                EXIT,
            ],
            "must be the context",
        ),
        ("a number as context", &[op(0xB7, 1, 0, 0, 64), CALL_MEMORY, EXIT], "must be the context"),
        ("missing argument", &[op(0xB7, 2, 0, 0, 0), CALL_ADD, EXIT], "argument 3 of add"),
        (
            "uses an argument after the call",
            &[op(0xB7, 2, 0, 0, 0), op(0xB7, 3, 0, 0, 0), CALL_ADD, op(0x71, 0, 1, 0, 0), EXIT],
            "not set on every path",
        ),
        ("no such helper", &[op(0x85, 0, 0, 0, 3), EXIT], "no such helper"),
        ("a negative helper", &[op(0x85, 0, 0, 0, -1), EXIT], "no such helper"),
        ("calls another function", &[op(0x85, 0, 1, 0, 1), EXIT, ZERO, EXIT], "calls of other functions"),
        ("division by zero", &[ZERO, op(0x37, 0, 0, 0, 0), EXIT], "division by zero"),
        ("signed division", &[ZERO, op(0x37, 0, 0, 1, 3), EXIT], "-mcpu=v3"),
        ("too long a shift", &[ZERO, op(0x67, 0, 0, 0, 64), EXIT], "more bits"),
        ("atomic", &[ZERO, op(0xDB, 1, 0, 16, 0), EXIT], "atomic"),
        ("packet load", &[op(0xBF, 6, 1, 0, 0), op(0x20, 0, 0, 0, 0), EXIT], "no such instruction"),
        ("32-bit jump on an address", &[ZERO, op(0x16, 1, 0, 0, 0), EXIT], "in 64 bits"),
        ("common bits of an address", &[ZERO, op(0x45, 1, 0, 0, 0), EXIT], "only be compared with zero"),
        (
            "a limit on the lower half",
            &[op(0x79, 2, 1, 0, 0), ZERO, op(0x26, 2, 0, 2, 63), op(0x0F, 1, 2, 0, 0), op(0x71, 0, 1, 0, 0), EXIT],
            "may leave",
        ),
        ("an end of 32 bits", &[ZERO, op(0x96, 0, 0, 0, 0), EXIT], "no such instruction"),
        ("no such register", &[op(0xBF, 11, 1, 0, 0), EXIT], "no such register"),
        ("a map", &[op(0x18, 0, 1, 0, 5), op(0, 0, 0, 0, 0), EXIT], "maps"),
    ];
    for (what, program, reason) in table {
        match judge(program) {
            Ok(_) => panic!("{what}: passed"),
            Err(refusal) => assert!(refusal.to_string().contains(reason), "{what}: {refusal}"),
        }
    }
}

#[test]
fn the_length_of_programs_is_limited_and_not_the_number_of_their_paths() {
    assert!(judge(&vec![ZERO; MAX_INSTRUCTIONS + 1]).expect_err("too long").reason.contains("are allowed"));
    // Two paths at each of many branches.
    let mut program = vec![op(0x71, 2, 1, 0, 0), ZERO];
    for bit in 0..2_000 {
        program.extend([op(0x15, 2, 0, 1, bit), op(0x07, 0, 0, 0, 1)]);
    }
    program.push(EXIT);
    judge(&program).expect("the program is safe");
}

/// The context ends with read-only bytes, unlike in all other tests.
#[test]
fn an_index_does_not_reach_behind_the_writable_part_of_the_context() {
    static INTERFACE: Interface = Interface { context_bytes: 64, writable: 8..16, helpers: &[] };
    let store = |limit, offset| {
        let program = [
            op(0x71, 2, 1, 0, 0),
            op(0x57, 2, 0, 0, limit),
            op(0x0F, 1, 2, 0, 0),
            op(0x72, 1, 0, offset, 1),
            ZERO,
            EXIT,
        ];
        verify(&program, &INTERFACE).map(drop).map_err(|refusal| refusal.reason)
    };
    assert_eq!(store(7, 8), Ok(()));
    assert_eq!(store(15, 8), Err("bytes 8 to 23 of the context cannot be changed".to_owned()));
    assert_eq!(store(7, 7), Err("bytes 7 to 14 of the context cannot be changed".to_owned()));
}

#[test]
fn what_no_path_reaches_is_not_taken_for_checked() {
    // Register 2 is 5, so the branch is always taken, and the store to a chosen address is unreachable.
    let program = [op(0xB7, 2, 0, 0, 5), op(0x15, 2, 0, 1, 5), op(0x72, 2, 0, 0, 1), ZERO, EXIT];
    let verified = judge(&program).expect("the program is safe");
    assert_eq!(verified.operations().iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false, true, true]);
}

/// Checks that the verifier's value describes the interpreter's value.
fn is_true(value: Value, real: Option<u64>) -> bool {
    let [context, stack, memory] = Interpreter::starts();
    match (value, real) {
        (Value::Unusable, _) => true,
        (_, None) => false,
        (Value::Number(range), Some(real)) => (range.min..=range.max).contains(&real),
        (Value::Address { region, min, max }, Some(real)) => {
            let start = match region {
                Region::Context => context,
                Region::Stack => stack,
                Region::Memory(_) => memory,
            };
            (min..=max).contains(&(real.wrapping_sub(start) as i64))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16_384))]

    /// An accepted program does nothing forbidden, and everything that the verifier knows about it is true.
    #[test]
    fn what_the_verifier_knows_is_true(
        choices in vec(any::<u8>(), 0..160),
        memory in vec(any::<u8>(), (CONTEXT_BYTES + MEMORY_BYTES) as usize),
    ) {
        let program = program_from(&choices);
        if let Ok(operations) = decode(&program)
            && let Ok(order) = order(&operations)
        {
            let mut known: Vec<Option<State>> = vec![None; operations.len()];
            let passed = follow(&operations, &order, &INTERFACE, |at, state| known[at] = Some(state.clone()));
            if passed.is_ok() {
                let mut faults = Vec::new();
                let outcome = Interpreter::new(memory).run(&operations, |interpreter, at| {
                    let Some(state) = known.get(at).and_then(Option::as_ref) else {
                        return faults.push(format!("instruction {at} is reachable, but was taken to be unreachable"));
                    };
                    for register in 0..11_u8 {
                        let (value, real) = (state.value(register), interpreter.register(usize::from(register)));
                        if !is_true(value, real) {
                            faults.push(format!("instruction {at}: register {register} is {real:?}, not {value:?}"));
                        }
                    }
                });
                prop_assert!(faults.is_empty(), "{faults:?}");
                prop_assert!(matches!(outcome, Outcome::Ended(_)), "{outcome:?}");
            }
        }
    }

    /// Any bytes lead to a refusal or to a harmless program.
    #[test]
    fn any_bytes_are_judged(
        bytes in vec(any::<[u8; 8]>(), 0..12),
        memory in vec(any::<u8>(), (CONTEXT_BYTES + MEMORY_BYTES) as usize),
    ) {
        let program: Vec<Instruction> = bytes.into_iter().map(Instruction::from_bytes).collect();
        prop_assert!(program.iter().all(|instruction| Instruction::from_bytes(instruction.to_bytes()) == *instruction));
        if verify(&program, &INTERFACE).is_ok() {
            let operations = decode(&program).expect("the program was decoded before");
            let outcome = Interpreter::new(memory).run(&operations, |_, _| {});
            prop_assert!(matches!(outcome, Outcome::Ended(_)), "{outcome:?}");
        }
    }
}

#[test]
fn many_of_the_random_programs_pass() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut passed = 0;
    for _ in 0..512 {
        let choices = vec(any::<u8>(), 0..60).new_tree(&mut runner).expect("bytes").current();
        passed += usize::from(verify(&program_from(&choices), &INTERFACE).is_ok());
    }
    assert!(passed > 50, "only {passed} of 512 programs passed, so the other tests prove little");
}
