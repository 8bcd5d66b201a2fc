//! The check detects faulty code and accepts correct code.

use super::check::check;
use super::translate::{Translation, translate};
use crate::instruction::Instruction;
use crate::testing::{INTERFACE, Random, Shape, long_program};
use crate::{Verified, verify};

const fn op(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, destination, source, offset, immediate }
}

const EXIT: Instruction = op(0x95, 0, 0, 0, 0);

fn translated(program: &[Instruction]) -> (Verified, Translation) {
    let verified = verify(program, &INTERFACE).expect("the program is safe");
    let translation = translate(&verified).expect("translated");
    check(&verified, &translation).expect("the translation passes the check");
    (verified, translation)
}

/// Returns the offsets of the last bytes of an instruction's code.
fn tail(translation: &Translation, at: usize, bytes: usize) -> std::ops::Range<usize> {
    let end = translation.starts[at + 1];
    end - bytes..end
}

/// Changes each of the bytes to all other values; the check must detect each change.
fn all_changes_are_found(verified: &Verified, translation: &Translation, bytes: std::ops::Range<usize>) {
    for at in bytes {
        for flipped in 1..=255 {
            let mut changed = Translation { bytes: translation.bytes.clone(), starts: translation.starts.clone() };
            changed.bytes[at] ^= flipped;
            let verdict = check(verified, &changed);
            assert!(
                verdict.is_err(),
                "byte {at} of {:02X?}, changed by {flipped:#04X}, passes the check",
                translation.bytes
            );
        }
    }
}

#[test]
fn a_wrong_jump_is_found() {
    let (verified, translation) = translated(&[
        op(0xB7, 0, 0, 0, 5),
        op(0x05, 0, 0, 2, 0),
        op(0x07, 0, 0, 0, 1),
        EXIT,
        op(0x15, 0, 0, -3, 7),
        op(0x05, 0, 0, -3, 0),
    ]);
    for jump in [1, 4, 5] {
        all_changes_are_found(&verified, &translation, tail(&translation, jump, 4));
    }
}

#[test]
fn another_address_helper_or_frame_is_found() {
    let (verified, translation) = translated(&[
        op(0xBF, 6, 1, 0, 0),
        op(0x79, 2, 6, 8, 0),
        op(0x7B, 6, 2, 16, 0),
        op(0x72, 10, 0, -1, 9),
        op(0xB7, 3, 0, 0, 0),
        op(0x85, 0, 0, 0, 0),
        EXIT,
    ]);
    // Offsets: of the load, of the store of a register, and of the store of a constant, where the offset precedes the
    // constant.
    all_changes_are_found(&verified, &translation, tail(&translation, 1, 5));
    all_changes_are_found(&verified, &translation, tail(&translation, 2, 4));
    let store = tail(&translation, 3, 5);
    all_changes_are_found(&verified, &translation, store.start..store.end - 1);
    // The address of the helper and the call.
    all_changes_are_found(&verified, &translation, tail(&translation, 5, 10));
    // The epilogue.
    all_changes_are_found(&verified, &translation, translation.starts[6]..translation.bytes.len());
    // The prologue, except for the size of the frame, which may be larger.
    all_changes_are_found(&verified, &translation, 0..11);
}

#[test]
fn a_division_that_does_not_put_registers_back_is_found() {
    for registers in [(8, 9), (0, 8), (8, 3), (3, 0), (4, 5)] {
        let mut program: Vec<Instruction> = (0..10).map(|register| op(0xB7, register, 0, 0, 6)).collect();
        program.extend([op(0x3F, registers.0, registers.1, 0, 0), op(0x6F, registers.0, registers.1, 0, 0), EXIT]);
        let (verified, translation) = translated(&program);
        // Every 64-bit move between registers that borrows or restores one.
        for at in 10..12 {
            let span = translation.starts[at]..translation.starts[at + 1];
            let moves: Vec<usize> = span
                .clone()
                .filter(|&at| translation.bytes[at] & 0xF8 == 0x48 && translation.bytes[at + 1] == 0x89)
                .collect();
            for offset in moves {
                let mut changed = Translation { bytes: translation.bytes.clone(), starts: translation.starts.clone() };
                // Another three-byte instruction: xor ebx, ebx with a prefix.
                changed.bytes[offset..offset + 3].copy_from_slice(&[0x40, 0x31, 0xDB]);
                check(&verified, &changed).expect_err("code that loses a register is refused");
            }
        }
    }
}

#[test]
fn code_of_long_programs_passes() {
    let mut random = Random::new(11);
    for _ in 0..40 {
        let instructions = 100 + random.below(3_800);
        let program = long_program(&mut random, Shape { instructions, has_loops: false });
        if let Ok(verified) = verify(&program, &INTERFACE) {
            let translation = translate(&verified).expect("translated");
            check(&verified, &translation).expect("the translation passes the check");
        }
    }
}

#[test]
fn cut_and_damaged_code_never_panics() {
    let mut random = Random::new(3);
    let program = long_program(&mut random, Shape { instructions: 300, has_loops: false });
    let (verified, translation) = translated(&program);
    for _ in 0..20_000 {
        let mut changed = Translation { bytes: translation.bytes.clone(), starts: translation.starts.clone() };
        for _ in 0..1 + random.below(3) {
            let at = random.below(changed.bytes.len());
            changed.bytes[at] = random.draw() as u8;
        }
        let _ = check(&verified, &changed);
    }
    let cut = Translation { bytes: translation.bytes[..20].to_vec(), starts: translation.starts.clone() };
    check(&verified, &cut).expect_err("code is missing");
}
