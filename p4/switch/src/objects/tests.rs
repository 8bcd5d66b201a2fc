//! A program with three tables for tests, and the parts of values.

use std::path::Path;

use namehop_p4_compile::compile;
use namehop_p4_compile::description::Description;
use namehop_p4_compile::emit::Options;
use namehop_p4_compile::layout::Shape;
use namehop_p4_lang::load;

use super::cells::{read_leaf, unpack, write_leaf};

const PROGRAM: &str = "#include <core.p4>\n#include <v1model.p4>\nheader h_t { bit<32> a; bit<48> b; bit<16> c; }\n\
    struct headers_t { h_t h; }\nstruct meta_t { }\n\
    parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) { state start { \
    p.extract(hdr.h); transition accept; } }\n\
    control V(inout headers_t hdr, inout meta_t m) { apply { } }\n\
    control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {\n\
    action send(bit<9> port, bit<48> to) { s.egress_spec = port; hdr.h.b = to; }\n action drop() { mark_to_drop(s); }\n\
    table route { key = { hdr.h.a: lpm; } actions = { send; drop; } default_action = drop(); }\n\
    table macs { key = { hdr.h.b: exact; hdr.h.c: exact; } actions = { send; drop; } const default_action = drop(); }\n\
    table acl { key = { hdr.h.a: ternary; hdr.h.c: range; } actions = { send; drop; } }\n\
    apply { route.apply(); macs.apply(); acl.apply(); } }\n\
    control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) { apply { } }\n\
    control U(inout headers_t hdr, inout meta_t m) { apply { } }\n\
    control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.h); } }\n\
    V1Switch(P(), V(), I(), E(), U(), D()) main;\n";

/// The description of a program with three tables.
pub fn description() -> Description {
    load::on_deep_stack(|| {
        let mut loaded = load::text_of(Path::new("program.p4"), PROGRAM.into(), &[]);
        let program = loaded.program.as_mut().expect("the program has no errors");
        let Ok(compiled) = compile(program, "program.p4", &Options::default()) else { panic!("the program compiles") };
        let (_, text) =
            compiled.emitted.text.split_once("namehop_p4_description[] = \"").expect("the description exists");
        let (text, _) = text.split_once("\";\n").expect("the line ends");
        serde_json::from_str(&text.replace("\\\"", "\"")).expect("JSON")
    })
    .expect("the compiler's thread starts")
}

#[test]
fn parts_of_cells_and_reports_are_where_c_has_them() {
    let bits = |width, signed| Shape::Bits { width, signed };
    let members = [("a", bits(4, false)), ("b", bits(33, true)), ("c", Shape::Bool), ("d", bits(100, false))];
    let inner =
        Shape::Struct { name: "s".into(), members: members.map(|(name, shape)| (name.to_owned(), shape)).into() };
    let shape = Shape::Tuple(vec![bits(16, false), inner]);
    let (leaves, size) = shape.leaves();
    let places: Vec<_> = leaves.iter().map(|leaf| (&*leaf.name, leaf.offset, leaf.size)).collect();
    // struct { uint16_t e0; struct { uint8_t a; int64_t b; bool c; w2 d; } e1; }
    assert_eq!(places, [("0", 0, 2), ("1.a", 8, 1), ("1.b", 16, 8), ("1.c", 24, 1), ("1.d", 32, 16)]);
    assert_eq!((size, shape.bits()), (48, 16 + 4 + 33 + 1 + 100));
    let mut cell = vec![0xAA; size];
    let numbers = [0xFFFF_u64, 9, 1 << 32 | 7, 1, u64::MAX].map(num_bigint::BigInt::from);
    leaves.iter().zip(&numbers).for_each(|(leaf, number)| write_leaf(leaf, &mut cell, number));
    assert_eq!(leaves.iter().map(|leaf| read_leaf(leaf, &cell)).collect::<Vec<_>>(), numbers);
    // The sign of a negative number extends to the end of its word.
    assert_eq!(cell[16..24], [7, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
    assert_eq!((cell[2], cell[9]), (0xAA, 0xAA), "the bytes between the parts must not change");
    let (two, _) = Shape::Tuple(vec![bits(3, false), bits(7, false)]).leaves();
    assert_eq!(unpack(&two, &[0b1010_0000, 0b1100_0000]), [5, 3].map(num_bigint::BigInt::from));
}
