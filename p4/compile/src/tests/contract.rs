//! The passes keep the contract of the intermediate representation, which the verifier checks after each of them.

use std::path::Path;

use namehop_p4_lang::load;
use namehop_p4_lang::testing::{chains, generate, rules};

use crate::passes;
use crate::passes::Failure;

/// Number of random programs.
const RANDOM: u64 = 150;

#[test]
fn passes_keep_the_contract() {
    let random = (1..=RANDOM).map(|seed| (format!("random{seed}"), generate::program(seed).0));
    let chains = (1..=8).map(|seed| (format!("chain{seed}"), chains::chain(seed).0));
    let rules = rules::programs().into_iter().map(|(name, program, _)| (name, program));
    let mut failures = Vec::new();
    for (name, text) in rules.chain(chains).chain(random) {
        let result = load::on_deep_stack(|| {
            let mut loaded = load::text_of(Path::new(&format!("{name}.p4")), text.as_str().into(), &[]);
            let program = loaded.program.as_mut().expect("a correct program");
            passes::run(program, &mut |_, _, _| {}).map(drop)
        });
        if let Err(failure) = result.expect("the compiler's thread starts") {
            failures.push(format!("{name}: {failure}"));
        }
    }
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn an_invalid_program_is_an_internal_error_that_names_the_pass() {
    let invalid = crate::ir::verify(&crate::ir::Program::default(), &namehop_p4_lang::types::Types::new(), "fold");
    let failure = Failure::from(invalid.expect_err("the variables of a packet are missing"));
    let text = failure.to_string();
    assert!(text.starts_with("internal error: the pass 'fold'") && text.contains("variable 0"), "{text}");
}
