//! The entry point of a fuzz target: takes any bytes, and panics only if there is a bug.

use std::path::Path;

use namehop_p4_lang::{load, stf};

use crate::compile;
use crate::emit::Options;
use crate::passes::Failure;

/// Source of a program and, behind a line of dashes, a test for it: checked, run by the interpreter and compiled to C.
pub fn program(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (text, test) = text.split_once("\n----\n").unwrap_or((&text, ""));
    let (text, test) = (text.to_owned(), test.to_owned());
    load::on_deep_stack(move || {
        let mut loaded = load::text_of(Path::new("program.p4"), text.into(), &[]);
        if let Some(program) = &mut loaded.program {
            // A program that cannot run or cannot be compiled is rejected; either result is fine.
            drop(stf::run(program, &test));
            if let Err(failure @ Failure::Invalid(_)) = compile(program, "program", &Options::default()) {
                panic!("{failure}");
            }
        }
    })
    .expect("the compiler does not fail");
}
