//! Checks which headers stay in the packet, and which variables are kept across lookups.

use namehop_p4_lang::load;

use crate::ir::{self, Statement};
use crate::optimise::visit;
use crate::passes;

/// The headers that a program's packets leave with, and the names of the variables kept across lookups.
fn fused(name: &str, text: &str) -> (Vec<ir::Emit>, Vec<String>) {
    load::on_deep_stack(|| {
        let mut loaded = load::text_of(name.as_ref(), text.into(), &[]);
        let program = loaded.program.as_mut().expect("a correct program");
        let middle = passes::run(program, &mut |_, _, _| {}).expect("a program that can be compiled");
        let fused = middle.fused.expect("packets that go straight through");
        // Each path through the parser has its own end; this is the one with the most headers.
        let mut emits: Vec<ir::Emit> = Vec::new();
        visit::statements(&fused.program.parts[0].body, &mut |statement| {
            if let Statement::Send(_, headers) = statement {
                let headers = headers.as_ref().expect("a plain deparser");
                if headers.len() > emits.len() {
                    emits.clone_from(headers);
                }
            }
        });
        let mut kept: Vec<String> =
            fused.kept.iter().map(|variable| fused.program.variables[*variable].name.to_string()).collect();
        kept.sort();
        (emits, kept)
    })
    .expect("the compiler's thread starts")
}

#[test]
fn only_fields_that_change_are_written() {
    let (emits, kept) = fused("ipv4.p4", include_str!("../../../runtime/programs/ipv4.p4"));
    assert!(emits.iter().all(|emit| emit.base.is_some()));
    let changed: Vec<Vec<bool>> =
        emits.iter().map(|emit| emit.fields.iter().map(|field| field.changed).collect()).collect();
    // Both Ethernet addresses; the IPv4 time to live and checksum.
    assert_eq!(changed[0], [true, true, false]);
    let ipv4: Vec<usize> = (0..changed[1].len()).filter(|place| changed[1][*place]).collect();
    assert_eq!((ipv4, changed[1].len()), (vec![7, 9], 12));
    // Received fields that are needed after the lookup are loaded again, even fields that change; only their position
    // is kept.
    let kept: Vec<&String> = kept.iter().filter(|name| name.starts_with("headers_")).collect();
    assert_eq!(kept, ["headers_ethernet_at", "headers_ipv4_at"]);
}

#[test]
fn a_switch_of_layer_2_writes_nothing() {
    let (emits, _) = fused("l2.p4", include_str!("../../../runtime/programs/l2.p4"));
    assert!(emits.iter().all(|emit| emit.base.is_some() && emit.fields.iter().all(|field| !field.changed)));
}

#[test]
fn paths_through_the_parser_know_their_headers() {
    let (emits, kept) = fused("ipv4.p4", include_str!("../../../runtime/programs/ipv4.p4"));
    assert!(emits.iter().all(|emit| emit.valid.is_none()));
    assert!(!kept.iter().any(|name| name.ends_with("_valid")), "{kept:?}");
}
