//! Whole programs, in `programs`, and programs for single rules of the language specification, in `programs/rules`:
//! each `.p4` file has an `.stf` file with the expected packets. What most rules have in common is in
//! `programs/rules/skeleton`.

use std::fs;
use std::path::Path;

use crate::{load, stf};

/// The source of a program, with the skeleton of rules in place of its includes.
fn source(path: &Path) -> String {
    let folder = path.parent().expect("a program is in a folder");
    let mut program = fs::read_to_string(path).expect("a program");
    for file in ["skeleton/begin.p4", "skeleton/end.p4"] {
        let include = format!("#include \"{file}\"\n");
        if program.contains(&include) {
            let text = fs::read_to_string(folder.join(file)).expect("the skeleton of rules");
            program = program.replacen(&include, &text, 1);
        }
    }
    program
}

/// All programs: name, source, test.
pub fn programs() -> Vec<(String, String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let mut list = Vec::new();
    let files = |folder| fs::read_dir(folder).expect("the folder of programs");
    for entry in files(folder.clone()).chain(files(folder.join("rules"))) {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|end| end == "p4") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let program = source(&path);
            let test = fs::read_to_string(path.with_extension("stf")).expect("each program has a test beside it");
            list.push((name, program, test));
        }
    }
    list.sort();
    list
}

#[test]
fn programs_do_what_the_specification_says() {
    let programs = programs();
    let mut failures = Vec::new();
    for (name, program, test) in &programs {
        assert!(test.contains("expect"), "{name} expects nothing");
        let outcome = load::on_deep_stack(|| {
            let loaded = load::text_of(format!("{name}.p4").as_ref(), program.as_str().into(), &[]);
            match &loaded.program {
                None => Err(loaded.diagnostics.render(&loaded.sources)),
                Some(program) => stf::run(program, test).map(|(outcome, _)| outcome),
            }
        });
        match outcome.expect("the compiler's thread starts") {
            Ok(outcome) if outcome.failures.is_empty() => {}
            Ok(outcome) => {
                failures.push(format!("{name}: {}\n{}", outcome.failures.join("\n"), outcome.notes.join("\n")))
            }
            Err(reason) => failures.push(format!("{name}: {reason}")),
        }
    }
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), programs.len(), failures.join("\n"));
}

#[test]
fn the_example_of_the_documentation_passes() {
    let text = include_str!("../../../../docs/p4.md");
    let mut parts = text.split("```");
    let program = parts.find_map(|part| part.strip_prefix("p4\n")).expect("a program");
    let test = parts.find(|part| part.starts_with("\nadd ")).expect("a test");
    let loaded = load::text_of("first.p4".as_ref(), program.into(), &[]);
    let program = loaded.program.as_ref().unwrap_or_else(|| panic!("{}", loaded.diagnostics.render(&loaded.sources)));
    let (outcome, _) = stf::run(program, test).expect("a test that is understood");
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    assert_eq!((outcome.packets, outcome.expected), (2, 1));
}
