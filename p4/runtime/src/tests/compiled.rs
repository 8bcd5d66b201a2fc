//! Compiled programs behave like the reference interpreter, with all batch sizes.

use std::path::Path;
use std::sync::Mutex;
use std::thread;

use namehop_p4_compile::compile;
use namehop_p4_compile::emit::Options;
use namehop_p4_lang::testing::{chains, generate, rules};
use namehop_p4_lang::{load, stf};

use crate::run::{self, Played};
use crate::workshop::{Build, Sanitize, Speed, Workshop};

/// Compiles a program and runs a test with it. The error describes the differences.
fn agree(workshop: &Workshop, options: &Options, name: &str, text: &str, test: &str) -> Result<(), String> {
    let result = load::on_deep_stack(|| {
        let mut loaded = load::text_of(Path::new(&format!("{name}.p4")), text.into(), &[]);
        let Some(program) = &mut loaded.program else { return Err(loaded.diagnostics.render(&loaded.sources)) };
        let compiled = compile(program, name, options).map_err(|failure| failure.to_string())?;
        let program = &*program;
        let (outcome, switch) = stf::run(program, test)?;
        let played = Played { operations: &outcome.operations, switch: &switch, types: &program.types };
        let differences =
            run::compare(workshop, name, &compiled, &played, &run::VARIANTS).map_err(|error| error.to_string())?;
        if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
    });
    result.unwrap_or_else(|error| Err(error.to_string()))
}

/// Runs programs with several threads, with their C code optimised as `speed` says. Returns the differences.
fn all_agree(programs: &[(String, String, String)], options: &Options, speed: Speed) -> Vec<String> {
    let sanitize = if std::env::var_os("NAMEHOP_P4_SANITIZE").is_some() { Sanitize::Memory } else { Sanitize::Nothing };
    let workshop = Workshop::with_player(Build { speed, sanitize, native: false }).expect("a C compiler");
    let next = Mutex::new(programs.iter());
    let failures = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let program = next.lock().expect("no thread holding the lock has panicked").next();
                    let Some((name, text, test)) = program else { return };
                    if let Err(reason) = agree(&workshop, options, name, text, test) {
                        failures
                            .lock()
                            .expect("no thread holding the lock has panicked")
                            .push(format!("{name}: {reason}"));
                    }
                }
            });
        }
    });
    failures.into_inner().expect("no thread holding the lock has panicked")
}

#[test]
#[ignore = "slow"]
fn compiled_programs_do_what_the_interpreter_does() {
    let programs = rules::programs();
    let failures = all_agree(&programs, &Options::default(), Speed::Some);
    assert!(failures.is_empty(), "{} of {} differ:\n{}", failures.len(), programs.len(), failures.join("\n"));
}

#[test]
#[ignore = "slow"]
fn programs_without_stages_encrypt_packet_by_packet() {
    let mut programs = rules::programs();
    programs.retain(|(name, ..)| name.starts_with("cipher_") || name == "crypto");
    assert!(programs.len() > 5);
    let failures = all_agree(&programs, &Options { staged: false, ..Options::default() }, Speed::Some);
    assert!(failures.is_empty(), "{} of {} differ:\n{}", failures.len(), programs.len(), failures.join("\n"));
}

#[test]
#[ignore = "slow"]
fn random_chains_of_lookups_do_what_the_interpreter_does() {
    let programs: Vec<_> = (1..9)
        .map(|seed| {
            let (program, test) = chains::chain(seed);
            (format!("chain{seed}"), program, test)
        })
        .collect();
    let failures = all_agree(&programs, &Options::default(), Speed::Some);
    assert!(failures.is_empty(), "{} of {} differ:\n{}", failures.len(), programs.len(), failures.join("\n"));
}

/// Some random programs. Their C code is long and is not optimised: the programs of the rules and the chains are, which
/// contain all that a random program is made of. `NAMEHOP_P4_PROGRAMS` sets their number, `NAMEHOP_P4_FIRST` the first
/// seed.
#[test]
#[ignore = "slow"]
fn random_programs_do_what_the_interpreter_does() {
    let number = |name, otherwise| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let first: u64 = number("NAMEHOP_P4_FIRST", 1);
    let count: u64 = number("NAMEHOP_P4_PROGRAMS", 20);
    let programs: Vec<_> = (first..first + count)
        .map(|seed| {
            let (program, test) = generate::program(seed);
            (format!("random{seed}"), program, test)
        })
        .collect();
    if let Some(folder) = std::env::var_os("NAMEHOP_P4_KEEP") {
        for (name, program, test) in &programs {
            std::fs::write(Path::new(&folder).join(format!("{name}.p4")), program).expect("a folder");
            std::fs::write(Path::new(&folder).join(format!("{name}.stf")), test).expect("a folder");
        }
    }
    let failures = all_agree(&programs, &Options::default(), Speed::None);
    assert!(failures.is_empty(), "{} of {} differ:\n{}", failures.len(), programs.len(), failures.join("\n"));
}
