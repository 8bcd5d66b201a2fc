//! Lookups share the hashes of key fields with which other lookups begin, unless a field has changed.

use namehop_p4_lang::load;
use namehop_p4_lang::testing::chains::chain;

use crate::ir::Statement;
use crate::optimise::visit;
use crate::passes;

/// For each lookup in order, the number of key words that are not hashed again.
fn shared(text: &str) -> Vec<u32> {
    load::on_deep_stack(|| {
        let mut loaded = load::text_of("chain.p4".as_ref(), text.into(), &[]);
        let program = loaded.program.as_mut().expect("a correct program");
        let middle = passes::run(program, &mut |_, _, _| {}).expect("a program that can be compiled");
        let fused = middle.fused.expect("packets that go straight through");
        let mut hashed = Vec::new();
        visit::statements(&fused.program.parts[0].body, &mut |statement| {
            if let Statement::Apply(apply) = statement {
                hashed.push(apply.hashed);
            }
        });
        hashed
    })
    .expect("the compiler's thread starts")
}

#[test]
fn names_are_hashed_once() {
    // From two components to seven, and one.
    assert_eq!(shared(include_str!("../../../runtime/programs/ndn.p4")), [0, 2, 3, 4, 5, 6, 0]);
}

#[test]
fn random_chains_share_some_hashes_and_not_all() {
    let all: Vec<u32> = (1..9).flat_map(|seed| shared(&chain(seed).0)).collect();
    let some = all.iter().filter(|words| **words > 0).count();
    assert!(some * 10 > all.len() && some * 10 < all.len() * 9, "{some} of {}", all.len());
}
