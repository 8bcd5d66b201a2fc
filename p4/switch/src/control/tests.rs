//! Entries are read and written; files are loaded completely or not at all; requests may have any bytes.

use std::cell::{Cell, RefCell};
use std::path::Path;

use namehop_p4_compile::compile;
use namehop_p4_compile::description::Description;
use namehop_p4_compile::emit::Options;
use namehop_p4_compile::layout::{Cells, Shape};
use namehop_p4_lang::load;
use proptest::prelude::*;

use super::cells::{read_leaf, unpack, write_leaf};
use super::server::Request;
use super::state::{State, Tables};
use crate::program::{Change, Entry};

/// Tables that record their entries, and have limited room.
#[derive(Default)]
struct Model {
    entries: RefCell<Vec<(usize, Entry)>>,
    room: Cell<usize>,
}

fn same(one: &(usize, Entry), table: usize, other: &Entry) -> bool {
    let of =
        |entry: &Entry| (entry.prefix, entry.key.clone(), entry.mask.clone(), entry.ranges.clone(), entry.priority);
    one.0 == table && of(&one.1) == of(other)
}

impl Tables for &Model {
    fn change(&self, table: usize, change: Change, entry: &Entry) -> Result<(), String> {
        let mut entries = self.entries.borrow_mut();
        let found = entries.iter().position(|known| same(known, table, entry));
        match (change, found) {
            (Change::Insert, Some(_)) => return Err("the entry exists".into()),
            (Change::Insert, None) if entries.len() >= self.room.get() => return Err("the table is full".into()),
            (Change::Insert, None) => entries.push((table, entry.clone())),
            (_, None) => return Err("the entry does not exist".into()),
            (Change::Modify, Some(place)) => entries[place].1 = entry.clone(),
            (Change::Delete, Some(place)) => drop(entries.remove(place)),
        }
        Ok(())
    }

    fn set_default(&self, _: usize, _: u32, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn clear_cell(&self, _: Cells, _: u32) {}

    fn set_members(&self, _: usize, _: usize, _: &[u64]) -> bool {
        true
    }

    fn wait(&self) {}
}

const PROGRAM: &str = "#include <core.p4>\n#include <v1model.p4>\nheader h_t { bit<32> a; bit<48> b; bit<16> c; }\n\
    struct headers_t { h_t h; }\nstruct meta_t { }\n\
    parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) { state start { p.extract(hdr.h); transition accept; } }\n\
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

fn state(model: &Model, room: usize) -> State<&Model> {
    model.room.set(room);
    State::new(description(), model, Vec::new())
}

#[test]
fn entries_are_written_as_they_are_read() {
    let model = Model::default();
    let mut state = state(&model, 100);
    let table = [
        (
            "route hdr.h.a:10.1.2.3/8 send(port:3, to:\"02:00:00:00:00:01\")",
            "I.route \"hdr.h.a\":0xa000000/8 I.send(port:0x3, to:0x20000000001)",
        ),
        ("I.macs h.b:0x0201 c:7 drop()", "I.macs \"hdr.h.b\":0x201 \"hdr.h.c\":0x7 I.drop()"),
        (
            "acl 5 a:0x0a0000ff&&&0xff0000ff c:1..9 drop()",
            "I.acl 5 \"hdr.h.a\":0xa0000ff&&&0xff0000ff \"hdr.h.c\":0x1..0x9 I.drop()",
        ),
        ("acl 9 drop()", "I.acl 9 \"hdr.h.a\":0x0&&&0x0 \"hdr.h.c\":0x0..0xffff I.drop()"),
    ];
    for (given, _) in table {
        state.change(Change::Insert, given).expect(given);
    }
    let mut expected = table.map(|(_, shown)| shown.to_owned()).to_vec();
    let mut listed = state.list(None).expect("all");
    expected.sort();
    listed.sort();
    assert_eq!(listed, expected);
    let other = Model::default();
    other.room.set(100);
    let mut again = State::new(description(), &other, Vec::new());
    assert_eq!(again.load(&listed.join("\n")), Ok(4));
    let mut listed_again = again.list(None).expect("all");
    listed_again.sort();
    assert_eq!(listed_again, listed);
    for line in listed {
        let keys = line.rsplit_once(" I.").expect("an action").0;
        again.change(Change::Modify, &line).expect("the entry exists");
        again.change(Change::Delete, keys).expect("the entry exists");
    }
    assert!(other.entries.borrow().is_empty());
}

#[test]
fn what_is_wrong_is_named_and_changes_nothing() {
    let model = Model::default();
    let mut state = state(&model, 3);
    let table = [
        ("nothing a:1 drop()", "nothing"),
        ("route x:1 drop()", "hdr.h.a"),
        ("route a:1/33 drop()", "33 bits"),
        ("route a:0x100000000/8 drop()", "32 bits"),
        ("route a:1/8 send(port:512, to:1)", "'port' of 9 bits"),
        ("route a:1/8 send(port:1)", "needs 'to'"),
        ("route a:1/8 send(port:1, to:1, x:2)", "no parameter 'x'"),
        ("route a:1/8 other()", "other"),
        ("route a:1/8", "has no action"),
        ("macs b:1 drop()", "needs a value"),
        ("macs b:1/4 c:1 drop()", "hdr.h.b"),
        ("acl c:9..1 drop()", "empty range"),
        ("route a:1/8 a:2/8 drop()", "duplicate"),
        ("route a:1/8 drop() more", "'more'"),
    ];
    for (text, part) in table {
        let error = state.change(Change::Insert, text).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    }
    assert!(state.set_default("macs drop()").expect_err("constant").contains("constant"));
    state.set_default("route send(port:1, to:2)").expect("the default action may be set");
    assert!(state.change(Change::Delete, "route a:1/8").expect_err("none").contains("no entry"));
    let good = "route a:1.0.0.0/8 drop()\n# a remark\n\nroute a:2.0.0.0/8 drop()\n";
    for (bad, part) in [
        ("route a:3/77 drop()", "line 5"),
        ("route a:1.9.9.9/8 drop()", "line 5: the entry exists"),
        ("acl drop()\nacl 2 drop()", "line 6: the table is full"),
    ] {
        let error = state.load(&format!("{good}{bad}")).expect_err(bad);
        assert!(error.starts_with("nothing was loaded") && error.contains(part), "{error}");
        assert!(model.entries.borrow().is_empty() && state.list(None).expect("all").is_empty());
    }
    assert_eq!(state.load(good), Ok(2));
    let more: String = (0..13).map(|number| format!("acl {number} drop()\n")).collect();
    state.description.tables[2].table.size = 1;
    let error = state.load(&more).expect_err("the file must be rejected");
    assert!(error.contains("table I.acl has room for 1 entries"), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_an_entry_or_an_error(
        table in prop_oneof!["route", "macs", "acl", ".{0,8}"],
        rest in prop::collection::vec(prop_oneof!["a:", "b:", "c:", "\"", "\\*", "0x[0-9a-f*]{0,12}", "[0-9.]{0,12}", "/", "&&&", " ", "\\.\\.", "drop\\(\\)", "send\\(port:1,to:2\\)", "\\PC"], 0..12),
    ) {
        let model = Model::default();
        model.room.set(10);
        let mut state = State::new(DESCRIPTION.with(|text| serde_json::from_str(text).expect("JSON")), &model, Vec::new());
        let text = format!("{table} {}", rest.concat());
        if state.change(Change::Insert, &text).is_ok() {
            let listed = state.list(None).expect("all");
            prop_assert_eq!(listed.len(), 1);
            prop_assert!(state.change(Change::Insert, &listed[0]).is_err(), "{} exists", listed[0]);
        }
        let _ = state.load(&text);
    }

    #[test]
    fn any_bytes_are_a_request_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(request) = serde_json::from_slice::<Request>(&bytes) {
            let text = serde_json::to_vec(&request).expect("JSON");
            prop_assert_eq!(serde_json::from_slice::<Request>(&text).expect("JSON"), request);
        }
    }
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

thread_local! {
    static DESCRIPTION: String = serde_json::to_string(&description()).expect("JSON");
}
