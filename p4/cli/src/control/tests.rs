//! Entries are converted from text to messages and back. An error names the faulty part.

use std::path::Path;

use namehop_p4_compile::compile;
use namehop_p4_compile::emit::Options;
use namehop_p4_lang::{entry_text, load};
use namehop_p4runtime::info::P4Info;
use namehop_p4runtime::message::P4Data;
use namehop_p4runtime::message::p4_data::Data;

use super::entry;
use super::values::{Shape, is_zero, written};

const PROGRAM: &str = "#include <core.p4>\n#include <v1model.p4>\n\
    header h_t { bit<32> a; bit<48> b; bit<16> c; }\n\
    struct headers_t { h_t h; }\nstruct meta_t { }\nstruct seen_t { bit<48> address; bit<9> port; }\n\
    parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) {\n\
    state start { p.extract(hdr.h); transition accept; } }\n\
    control V(inout headers_t hdr, inout meta_t m) { apply { } }\n\
    control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {\n\
    register<seen_t>(8) last;\n\
    action send(bit<9> port, bit<48> to) { s.egress_spec = port; hdr.h.b = to; }\n\
    action drop() { mark_to_drop(s); }\n\
    table route { key = { hdr.h.a: lpm; } actions = { send; drop; } default_action = drop(); }\n\
    table macs { key = { hdr.h.b: exact; hdr.h.c: exact; } actions = { send; drop; } const default_action = drop(); }\n\
    table acl { key = { hdr.h.a: ternary; hdr.h.c: range; } actions = { send; drop; } }\n\
    table some { key = { hdr.h.c: optional; } actions = { drop; @defaultonly NoAction; } }\n\
    apply { route.apply(); macs.apply(); acl.apply(); some.apply(); last.write(0, { hdr.h.b, 1 }); } }\n\
    control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }\n\
    control U(inout headers_t hdr, inout meta_t m) { apply { } }\n\
    control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.h); } }\n\
    V1Switch(P(), V(), I(), E(), U(), D()) main;\n";

fn info() -> P4Info {
    let made = load::on_deep_stack(|| {
        let mut loaded = load::text_of(Path::new("program.p4"), PROGRAM.into(), &[]);
        let program = loaded.program.as_mut().expect("the program has no errors");
        compile(program, "program.p4", &Options::default()).map(|compiled| compiled.p4info)
    });
    made.expect("the compiler's thread starts").unwrap_or_else(|failure| panic!("{failure}"))
}

/// Parses an entry and formats it again.
fn again(info: &P4Info, text: &str) -> Result<String, String> {
    Ok(entry::show(info, &entry::encode(info, &entry_text::entry(text)?)?))
}

#[test]
fn entries_are_written_as_they_are_read() {
    let info = info();
    for (given, shown) in [
        (
            "route hdr.h.a:10.1.2.3/8 send(port:3, to:\"02:00:00:00:00:01\")",
            "I.route \"hdr.h.a\":0xa000000/8 I.send(port:0x3, to:0x20000000001)",
        ),
        ("route drop()", "I.route \"hdr.h.a\":0x0/0 I.drop()"),
        ("I.macs h.b:0x0201 c:7 drop()", "I.macs \"hdr.h.b\":0x201 \"hdr.h.c\":0x7 I.drop()"),
        (
            "acl 5 a:0x0a0000ff&&&0xff0000ff c:1..9 drop()",
            "I.acl 5 \"hdr.h.a\":0xa0000ff&&&0xff0000ff \"hdr.h.c\":0x1..0x9 I.drop()",
        ),
        ("acl 9 drop()", "I.acl 9 \"hdr.h.a\":0x0&&&0x0 \"hdr.h.c\":0x0..0xffff I.drop()"),
        ("some c:7 drop()", "I.some 1 \"hdr.h.c\":0x7&&&0xffff I.drop()"),
        ("some 2 c:* drop()", "I.some 2 \"hdr.h.c\":0x0&&&0x0 I.drop()"),
    ] {
        assert_eq!(again(&info, given).as_deref(), Ok(shown));
        assert_eq!(again(&info, shown).as_deref(), Ok(shown));
    }
}

#[test]
fn what_is_wrong_is_named() {
    let info = info();
    for (text, part) in [
        ("nothing a:1 drop()", "nothing"),
        ("route x:1 drop()", "hdr.h.a"),
        ("route a:1/33 drop()", "33 bits"),
        ("route a:0x100000000/8 drop()", "32 bits"),
        ("route a:1/8 send(port:512, to:1)", "'port' of 9 bits"),
        ("route a:1/8 send(port:1)", "needs 'to'"),
        ("route a:1/8 send(port:1, to:1, x:2)", "no parameter 'x'"),
        ("route a:1/8 other()", "other"),
        ("macs b:1 drop()", "needs a value"),
        ("macs b:1/4 c:1 drop()", "hdr.h.b"),
        ("acl c:1/2 drop()", "a prefix"),
        ("acl 0 drop()", "priority 0"),
        ("some c:1&&&1 drop()", "a mask"),
        ("some c:1 NoAction()", "only be the default action"),
        ("route a:1/8 a:2/8 drop()", "duplicate"),
        ("route a:1/8 drop() more", "'more'"),
    ] {
        let error = again(&info, text).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn entries_are_listed_by_table_prefix_and_key() {
    let info = info();
    let sorted = [
        "route a:11.0.0.0/8 drop()",
        "route a:10.0.0.0/16 drop()",
        "macs b:1 c:9 drop()",
        "macs b:2 c:1 drop()",
        "acl 7 a:1 c:1..2 drop()",
        "acl 3 a:1 c:1..3 drop()",
        "acl 4 a:1 c:1..3 drop()",
    ];
    let order = |text: &str| {
        let text = entry_text::entry(text).expect("an entry");
        entry::order(&info, &entry::encode(&info, &text).expect("an entry of the program"))
    };
    assert!(sorted.windows(2).all(|two| order(two[0]) < order(two[1])), "{:?}", sorted.map(order));
}

#[test]
fn parts_of_a_cell_are_written_by_name_and_others_are_left_out() {
    let info = info();
    let shape = Shape::of(&info, info.registers[0].type_spec.as_ref()).expect("a struct");
    assert_eq!(shape.leaves(), [("address".to_owned(), 48), ("port".to_owned(), 9)]);
    let data =
        |values: &[&str]| written("last", &shape, &values.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    let whole = data(&["port:3", "address:0x0201"]).expect("both parts");
    assert_eq!(shape.json(&whole).to_string(), r#"{"address":"0x201","port":"0x3"}"#);
    let Some(Data::Struct(parts)) = data(&["port:3"]).expect("one part").data else { panic!("a struct") };
    assert_eq!(parts.members, [P4Data { data: None }, P4Data { data: Some(Data::Bitstring(vec![3])) }]);
    assert!(!is_zero(&whole) && is_zero(&data(&["address:0", "port:0"]).expect("zeros")));
    for (values, part) in [
        (&["3"][..], "PART:VALUE"),
        (&["x:3"], "address, port"),
        (&["port:512"], "9 bits"),
        (&["port:1", "port:2"], "more than one value"),
        (&["port:x"], "'x'"),
        (&[], "missing"),
    ] {
        let error = data(values).expect_err(part);
        assert!(error.contains(part), "{part}: {error}");
    }
}
