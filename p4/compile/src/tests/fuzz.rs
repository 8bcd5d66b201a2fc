//! The front end and test files never panic, for any input: random bytes, random words, and mutated programs.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::rules;
use crate::passes::{self, Failure};
use crate::stf::command;
use crate::{check_text, load, stf};

const WORDS: &[&str] = &[
    "control",
    "parser",
    "state",
    "table",
    "action",
    "apply",
    "struct",
    "header",
    "header_union",
    "enum",
    "extern",
    "const",
    "typedef",
    "bit",
    "int",
    "<8>",
    "<",
    ">",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    ":",
    ",",
    ".",
    "=",
    "x",
    "y",
    "T",
    "select",
    "transition",
    "accept",
    "start",
    "key",
    "actions",
    "entries",
    "default_action",
    "exact",
    "1",
    "8w255",
    "4s7",
    "0xFFFF",
    "if",
    "else",
    "return",
    "exit",
    "switch",
    "for",
    "in",
    "out",
    "inout",
    "+",
    "-",
    "<<",
    ">>",
    "++",
    "&&&",
    "..",
    "_",
    "...",
    "?",
    "!",
    "~",
    "@name(\"x\")",
    "\n#define x y\n",
    "\n#if x\n",
    "\n#endif\n",
    "#include <v1model.p4>\n",
    "tuple",
    "varbit",
    "package",
    "error",
    "match_kind",
    "true",
    "void",
    "this",
    "default",
    "valueset",
    "value_set",
];

fn below(random: &mut Xoshiro256PlusPlus, count: usize) -> usize {
    (random.next_u64() % count.max(1) as u64) as usize
}

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
