//! Compiled programs do what the reference interpreter does, in all batch sizes.

use std::path::Path;
use std::sync::Mutex;
use std::thread;

use super::rules;
use crate::compile::{self, Build, Workshop};
use crate::emit::Options;
use crate::run::{self, Played};
use crate::{load, stf};

/// Compiles a program and runs a test with it. The error says what differs.
fn agree(workshop: &Workshop, name: &str, text: &str, test: &str) -> Result<(), String> {
    let result = load::on_deep_stack(|| {
        let mut loaded = load::text_of(Path::new(&format!("{name}.p4")), text.into(), &[]);
        let Some(program) = &mut loaded.program else { return Err(loaded.diagnostics.render(&loaded.sources)) };
        let options = Options::default();
        let compiled = compile::compile(program, name, &options).map_err(|refusal| refusal.message)?;
        let program = &*program;
        let (outcome, switch) = stf::run(program, test)?;
        let played = Played { operations: &outcome.operations, switch: &switch, types: &program.types };
        let differences =
            run::compare(workshop, name, &compiled, &played, &run::VARIANTS).map_err(|error| error.to_string())?;
        if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
    });
    result.unwrap_or_else(|error| Err(error.to_string()))
}

#[test]
fn compiled_programs_do_what_the_interpreter_does() {
    let workshop = Workshop::with_player(Build { quick: true, ..Build::default() }).expect("a C compiler");
    let programs = rules::programs();
    let next = Mutex::new(programs.iter());
    let failures = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let program = next.lock().expect("no worker fails").next();
                    let Some((name, text, test)) = program else { return };
                    if let Err(reason) = agree(&workshop, name, text, test) {
                        failures.lock().expect("no worker fails").push(format!("{name}: {reason}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no worker fails");
    assert!(failures.is_empty(), "{} of {} differ:\n{}", failures.len(), programs.len(), failures.join("\n"));
}
