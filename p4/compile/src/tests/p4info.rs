//! p4info: ids equal to p4c's, names, widths, and ids chosen by the program.

use std::path::Path;

use namehop_p4_lang::load;
use namehop_p4runtime::info::action_ref::Scope;
use namehop_p4runtime::info::match_field::MatchType;
use namehop_p4runtime::info::p4_data_type_spec::TypeSpec as DataKind;
use namehop_p4runtime::info::{Object, P4Info, Preamble, counter_spec, meter_spec};
use namehop_p4runtime::text::text;

use crate::compile;
use crate::emit::Options;

/// A program with every kind of object in p4info; `annotation` is placed before the table.
fn program(annotation: &str) -> String {
    format!(
        "#include <core.p4>\n#include <v1model.p4>\nheader h_t {{ bit<32> a; bit<48> b; bit<16> c; }}\n\
    @controller_header(\"packet_in\") header in_t {{ bit<9> port; bit<7> rest; }}\n\
    struct headers_t {{ in_t i; h_t h; }}\nstruct meta_t {{ }}\nstruct seen_t {{ bit<48> address; bit<9> port; }}\n\
    parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{ state start {{ \
    p.extract(hdr.h); transition accept; }} }}\n\
    control V(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}\n\
    control MyIngress(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{\n\
    counter(16, CounterType.packets_and_bytes) seen; meter(4, MeterType.bytes) limits; register<seen_t>(8) last;\n\
    direct_counter(CounterType.packets) hits; action_profile(32) ways;\n\
    action drop() {{ mark_to_drop(s); }}\n\
    action ipv4_forward(bit<48> to, bit<9> port) {{ s.egress_spec = port; hdr.h.b = to; bit<2> color; \
    limits.execute_meter(0, color); last.write(0, {{ hdr.h.b, 1 }}); }}\n\
    {annotation} table ipv4_lpm {{ key = {{ hdr.h.a: lpm; }} actions = {{ ipv4_forward; drop; NoAction; }} \
    size = 1024; default_action = NoAction(); counters = hits; }}\n\
    table acl {{ key = {{ hdr.h.a: ternary; hdr.h.c: range @name(\"kind\"); hdr.h.b: optional; \
    hdr.h.isValid(): exact; }}\n\
      actions = {{ drop; @defaultonly NoAction; }} const default_action = NoAction(); implementation = ways; }}\n\
    apply {{ seen.count(1); digest<seen_t>(1, {{ hdr.h.b, s.ingress_port }}); ipv4_lpm.apply(); acl.apply(); }} }}\n\
    control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{ apply {{ }} }}\n\
    control U(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}\n\
    control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr); }} }}\n\
    V1Switch(P(), V(), MyIngress(), E(), U(), D()) main;\n"
    )
}

fn info(annotation: &str) -> Result<P4Info, String> {
    info_of(&program(annotation))
}

fn info_of(text: &str) -> Result<P4Info, String> {
    load::on_deep_stack(|| {
        let mut loaded = load::text_of(Path::new("program.p4"), text.into(), &[]);
        let Some(program) = loaded.program.as_mut() else { panic!("{}", loaded.diagnostics.render(&loaded.sources)) };
        let compiled = compile(program, "program.p4", &Options::default());
        compiled.map(|compiled| compiled.p4info).map_err(|failure| failure.to_string())
    })
    .expect("the compiler's thread starts")
}

fn names<'i>(preambles: impl Iterator<Item = &'i Preamble>) -> Vec<(&'i str, &'i str)> {
    preambles.map(|preamble| (&*preamble.name, &*preamble.alias)).collect()
}

#[test]
fn everything_is_named_with_the_ids_of_p4c() {
    let info = info("").expect("the program compiles");
    let [route, acl] = &info.tables[..] else { panic!("two tables") };
    // These four are p4c's ids for programs with these names.
    assert_eq!(
        (&*route.preamble().name, &*route.preamble().alias, route.preamble().id),
        ("MyIngress.ipv4_lpm", "ipv4_lpm", 37_375_156)
    );
    let actions: Vec<_> = info.actions.iter().map(|action| (&*action.preamble().name, action.preamble().id)).collect();
    assert_eq!(
        actions,
        [("MyIngress.drop", 25_652_968), ("MyIngress.ipv4_forward", 28_792_405), ("NoAction", 21_257_015)]
    );
    let params: Vec<_> = info.actions[1].params.iter().map(|param| (param.id, &*param.name, param.bitwidth)).collect();
    assert_eq!(params, [(1, "to", 48), (2, "port", 9)]);
    let fields: Vec<_> =
        acl.match_fields.iter().map(|field| (field.id, &*field.name, field.bitwidth, field.match_type())).collect();
    let expected = [
        (1, "hdr.h.a", 32, MatchType::Ternary),
        (2, "kind", 16, MatchType::Range),
        (3, "hdr.h.b", 48, MatchType::Optional),
        (4, "hdr.h.$valid$", 1, MatchType::Exact),
    ];
    assert_eq!(fields, expected);
    assert_eq!((route.size, route.const_default_action_id, acl.const_default_action_id), (1024, 0, 21_257_015));
    let scopes: Vec<_> = acl.action_refs.iter().map(|action| (action.id, action.scope())).collect();
    assert_eq!(scopes, [(25_652_968, Scope::TableAndDefault), (21_257_015, Scope::DefaultOnly)]);
    let [hits] = &info.direct_counters[..] else { panic!("a direct counter") };
    assert_eq!((hits.direct_table_id, &route.direct_resource_ids), (route.preamble().id, &vec![hits.preamble().id]));
    let [ways] = &info.action_profiles[..] else { panic!("an action profile") };
    assert_eq!((acl.implementation_id, &ways.table_ids), (ways.preamble().id, &vec![acl.preamble().id]));
    assert_eq!(names(info.counters.iter().map(|counter| counter.preamble())), [("MyIngress.seen", "seen")]);
    assert_eq!((info.counters[0].size, info.counters[0].spec.unwrap().unit()), (16, counter_spec::Unit::Both));
    assert_eq!((info.meters[0].size, info.meters[0].spec.unwrap().unit()), (4, meter_spec::Unit::Bytes));
    assert_eq!(names(info.digests.iter().map(|digest| digest.preamble())), [("seen_t", "seen_t")]);
    let spec = info.registers[0].type_spec.as_ref().and_then(|spec| spec.type_spec.as_ref());
    assert!(matches!(spec, Some(DataKind::Struct(named)) if named.name == "seen_t"));
    assert_eq!(info.type_info.as_ref().expect("types").structs["seen_t"].members.len(), 2);
    let [header] = &info.controller_packet_metadata[..] else { panic!("a header") };
    let fields: Vec<_> = header.metadata.iter().map(|field| (field.id, &*field.name, field.bitwidth)).collect();
    assert_eq!((&*header.preamble().name, fields), ("packet_in", vec![(1, "port", 9), (2, "rest", 7)]));
    // The highest byte of an id is the kind of object.
    let prefixes = [ways.preamble(), info.counters[0].preamble(), hits.preamble(), info.meters[0].preamble()];
    assert_eq!(prefixes.map(|preamble| preamble.id >> 24), [0x11, 0x12, 0x13, 0x14]);
    let prefixes = [info.registers[0].preamble(), info.digests[0].preamble(), header.preamble()];
    assert_eq!(prefixes.map(|preamble| preamble.id >> 24), [0x16, 0x17, 0x04]);
}

#[test]
fn ids_of_the_program_are_kept_or_refused() {
    for annotation in ["@id(7)", "@id(0x02000007)"] {
        assert_eq!(info(annotation).expect("the id is valid").tables[0].preamble().id, 0x0200_0007);
    }
    for annotation in ["@id(0x01000007)", "@id(0)", "@id(0x02000000)", "@id(0x200000007)"] {
        let refusal = info(annotation).expect_err(annotation);
        assert!(refusal.contains("MyIngress.ipv4_lpm") && refusal.contains("@id"), "{refusal}");
    }
}

#[test]
fn two_tables_with_one_name_are_refused() {
    let twice = "control Twice(inout standard_metadata_t s) { NAME table one { key = { s.ingress_port: exact; } \
                 actions = { NoAction; } } apply { one.apply(); } }\ncontrol E(";
    let applied =
        program("").replace("s) { apply { } }", "s) { Twice() a; Twice() b; apply { a.apply(s); b.apply(s); } }");
    let text = applied.replace("control E(", twice);
    let distinct = info_of(&text.replace("NAME", "")).expect("the program compiles");
    assert_eq!(distinct.tables.len(), 4);
    let refusal = info_of(&text.replace("NAME", "@name(\".one\")")).expect_err("two tables with one name");
    assert!(refusal.contains("two tables have the control-plane name 'one'"), "{refusal}");
}

#[test]
fn the_text_has_what_the_message_has() {
    let text = text(&info("").expect("the program compiles"));
    for part in [
        "pkg_info {\n  name: \"program.p4\"\n  arch: \"v1model\"\n}\n",
        "tables {\n  preamble {\n    id: 37375156\n    name: \"MyIngress.ipv4_lpm\"\n    alias: \"ipv4_lpm\"\n  }\n  \
         match_fields {\n    id: 1\n    name: \"hdr.h.a\"\n    bitwidth: 32\n    match_type: LPM\n  }\n",
        "    annotations: \"@controller_header(\\\"packet_in\\\")\"\n",
        "  action_refs {\n    id: 21257015\n    annotations: \"@defaultonly\"\n    scope: DEFAULT_ONLY\n  }\n",
        "          bitstring {\n            bit {\n              bitwidth: 48\n            }\n          }\n",
    ] {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
}
