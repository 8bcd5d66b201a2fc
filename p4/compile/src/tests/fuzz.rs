//! The compiler never panics on mutated programs, and its passes make no invalid program of them.

use namehop_p4_lang::testing::rules;
use namehop_p4_lang::testing::words::{WORDS, below};
use namehop_p4_lang::{load, stf};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::passes::{self, Failure};

#[test]
fn changed_programs_are_refused_or_run() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    let programs = rules::programs();
    for round in 0..300 {
        let (_, program, test) = &programs[round % programs.len()];
        let mut text: Vec<u8> = program.clone().into_bytes();
        for _ in 0..=below(&mut random, 3) {
            let place = below(&mut random, text.len());
            let end = (place + below(&mut random, 12)).min(text.len());
            match below(&mut random, 3) {
                0 => drop(text.drain(place..end)),
                1 => {
                    let part = text[place..end].to_vec();
                    let to = below(&mut random, text.len());
                    text.splice(to..to, part);
                }
                _ => {
                    let word = WORDS[below(&mut random, WORDS.len())];
                    text.splice(place..end, word.bytes());
                }
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let shown = text.clone();
        load::on_deep_stack(move || {
            let mut loaded = load::text_of("program.p4".as_ref(), text.into(), &[]);
            if let Some(program) = &mut loaded.program {
                // The result does not matter; a program that cannot run or cannot be compiled is rejected.
                drop(stf::run(program, test));
                if let Err(failure @ Failure::Invalid(_)) = passes::run(program, &mut |_, _, _| {}) {
                    panic!("{failure}");
                }
            }
        })
        .unwrap_or_else(|error| panic!("{error}: {shown}"));
    }
}
