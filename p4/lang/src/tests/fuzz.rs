//! The front end and test files never panic, for any input: random bytes and random words.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::check_text;
use crate::stf::command;
use crate::testing::words::{WORDS, below};

#[test]
fn random_texts_are_refused_or_accepted() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    for round in 0..400 {
        let mut text = String::new();
        for _ in 0..below(&mut random, 120) {
            if round % 2 == 0 {
                text += WORDS[below(&mut random, WORDS.len())];
                text.push(' ');
            } else {
                text.push(char::from(random.next_u64() as u8));
            }
        }
        check_text(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    }
}

#[test]
fn random_test_files_are_refused_or_read() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let words = [
        "add",
        "t",
        "h.x:",
        "0x**",
        "/8",
        "a(",
        "x:1",
        ")",
        "packet",
        "expect",
        "1",
        "AB",
        "$",
        "mc_node_create",
        "\"",
        "&&&",
    ];
    for _ in 0..5_000 {
        let line: Vec<&str> = (0..below(&mut random, 12)).map(|_| words[below(&mut random, words.len())]).collect();
        let _ = command::parse(&line.join(" "));
        let _ = command::parse(&line.concat());
    }
}
