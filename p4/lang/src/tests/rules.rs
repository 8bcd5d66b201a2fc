//! All programs do on the interpreter what their tests say, and so does the example of the documentation.

use crate::testing::rules::programs;
use crate::{load, stf};

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
