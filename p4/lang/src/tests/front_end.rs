//! Error messages for programs, and inputs that exceed limits.

use crate::check_text;

fn report(text: &str) -> String {
    let checked = check_text(text).expect("the compiler's thread starts");
    assert!(checked.errors > 0, "accepted: {text}");
    checked.report
}

fn accepted(text: &str) {
    let checked = check_text(text).expect("the compiler's thread starts");
    assert_eq!(checked.errors, 0, "{}", checked.report);
}

#[test]
fn the_prelude_is_correct() {
    accepted("#include <core.p4>\n#include <v1model.p4>\n");
    accepted("#define V1MODEL_VERSION 20200408\n#include <v1model.p4>\n");
    accepted("#include <namehop.p4>\n");
}

#[test]
fn payloads_are_encrypted_between_parser_and_deparser() {
    let control = |parameters: &str, key: &str| {
        format!(
            "#include <core.p4>\n#include <namehop.p4>\nheader H {{ bit<8> x; }}\n\
             control c({parameters} inout H h) {{ action a(bit<128> k) {{ aes_cbc_encrypt(0, {key}, 0); }} apply {{ \
             a(1); }} }}"
        )
    };
    accepted(&control("", "k"));
    assert!(report(&control("packet_out packet,", "k")).contains("only in controls before the deparser"));
    assert!(report(&control("", "64w1")).contains("bit<128>"));
    let parser = "#include <core.p4>\n#include <namehop.p4>\n\
                  parser p(packet_in packet) { state start { aes_cbc_decrypt(0, 0, 0); transition accept; } }";
    assert!(report(parser).contains("'aes_cbc_decrypt' can be called only in controls"));
}

#[test]
fn an_error_shows_its_line_and_a_remedy() {
    let report = report("const bit<8> width = 8;\nconst bit<8> x = widht;\n");
    assert!(report.contains("program.p4:2:18"), "{report}");
    assert!(report.contains("did you mean 'width'?"), "{report}");
}

#[test]
fn macros_are_expanded_with_arguments_and_conditions() {
    accepted(
        "#define ADD(a, b) ((a) + (b))\n#if ADD(1, 2) == 3 && !defined(X)\nconst bit<8> x = ADD(3, ADD(1, 1));\n\
         #else\n?\n#endif\n",
    );
    accepted("#define A A B\n#define B A\n#define NAME(x) v_ ## x\nconst bit<8> NAME(1) = 2;\nconst bit<8> y = v_1;\n");
    assert!(report("#define F(a) a\nconst bit<8> x = F(1, 2);").contains("takes 1 arguments"));
    assert!(report("#if 1\n").contains("without #endif"));
}

#[test]
fn generics_tell_types_from_comparisons() {
    accepted("const int a = 1; const int b = 2; const int c = 3;\nconst bool x = a < b && c > (b);\n");
    accepted("T id<T>(in T value) { return value; }\nbit<8> f(in bit<8> x) { return id<bit<8>>(x) + id(x); }\n");
    accepted(
        "header H<T> { bit<8> x; }\nstruct P<A, B> { A a; B b; }\n\
         const P<bit<8>, P<bit<4>, bool>> p = { 1, { 2, true } };\nconst bit<4> q = p.b.a;\n",
    );
}

#[test]
fn widths_and_constants_are_computed() {
    accepted(
        "const int w = 1 << 3;\nconst bit<(w * 2)> x = 0xFFFF;\nconst bit<8> y = x[15:8];\nconst bit<24> z = x ++ y;\n",
    );
    accepted("const int big = 1 << 200;\nconst bit<8> x = (bit<8>)(big >> 199);\n");
    accepted("enum bit<8> E { a = 1, b = a + 1 }\n".replace("a + 1", "2").as_str());
    assert!(report("const bit<8> x = 8w1 + 16w1;").contains("different types"));
    assert!(report("const int x = 1 / 0;").contains("division by zero"));
    assert!(report("const bit<8> x = 8w1[8:0];").contains("not a slice"));
    assert!(report("const int<8> x = (int<8>)(16w1);").contains("cannot be cast"));
}

#[test]
fn statements_keep_their_places() {
    let control = |body: &str| format!("control c(inout bit<8> x, in bit<8> y) {{ apply {{ {body} }} }}");
    accepted(&control("if (x > y) { x = y; exit; } else return;"));
    assert!(report(&control("y = 1;")).contains("cannot be assigned to"));
    assert!(report(&control("break;")).contains("outside of a loop"));
    assert!(report(&control("bit<8> x = 1; bit<8> x = 2;")).contains("already declared"));
    assert!(report("bit<8> f(in bit<8> x) { if (x == 1) { return 2; } }").contains("does not return"));
    assert!(report("void f() { exit; }").contains("exit"));
    assert!(report("parser p() { state begin { transition accept; } }").contains("no state 'start'"));
    assert!(report("parser p() { state start { transition nowhere; } }").contains("no state 'nowhere'"));
}

#[test]
fn several_errors_are_found_in_one_run() {
    let checked = check_text("const bit<8> a = b;\nconst bit<8> c = d;\n").expect("the compiler's thread starts");
    assert_eq!(checked.errors, 2);
}

#[test]
fn deep_nesting_is_refused() {
    for (open, middle, close) in
        [("(", "1", ")"), ("{", "", "}"), ("-", "1", ""), ("(bit<8>)", "1", ""), ("a[", "1", "]")]
    {
        let text = format!("const bit<8> x = {}{middle}{};", open.repeat(100_000), close.repeat(100_000));
        assert!(report(&text).contains("nested"), "{open}");
    }
    let sum = format!("const int x = 1{};", " + 1".repeat(100_000));
    assert!(report(&sum).contains("levels"));
    let tuples = format!("const {}bit<8>{} x = 1;", "tuple<".repeat(10_000), ">".repeat(10_000));
    assert!(report(&tuples).contains("nested"));
    let attempts = format!("const int a = 1; const bit<8> x = {}1;", "a<a[".repeat(200));
    report(&attempts);
}

#[test]
fn huge_things_are_refused() {
    assert!(report("const bit<100000000> x = 1;").contains("width"));
    assert!(report("const int x = 1 << 1000000000;").contains("too large"));
    assert!(report("header h { bit<8> x; } struct s { h[1000000000] a; }").contains("at most"));
    let mut doubling = String::from("struct S0 { bit<8> a; bit<8> b; }\n");
    for level in 1..40 {
        doubling += &format!("struct S{level} {{ S{} a; S{} b; }}\n", level - 1, level - 1);
    }
    assert!(report(&doubling).contains("parts"));
    let mut bomb = String::from("#define M0 1 +\n");
    for level in 1..40 {
        bomb += &format!("#define M{level} M{} M{}\n", level - 1, level - 1);
    }
    bomb += "const int x = M39 1;\n";
    assert!(report(&bomb).contains("too large"));
    assert!(report(&format!("const int x = {};", "9".repeat(1_000_000))).contains("too long"));
}

#[test]
fn deep_types_are_refused() {
    let mut typedefs = String::from("typedef bit<8> T0;\n");
    let mut structs = String::from("struct S0 { bit<8> x; }\n");
    let mut new = String::from("type bit<8> N0;\n");
    for level in 1..3_000 {
        typedefs += &format!("typedef tuple<T{}> T{level};\n", level - 1);
        structs += &format!("struct S{level} {{ S{} x; }}\n", level - 1);
        new += &format!("type N{} N{level};\n", level - 1);
    }
    for text in [typedefs, structs, new] {
        assert!(report(&text).contains("too deep"));
    }
}

#[test]
fn recursion_is_refused() {
    assert!(report("struct s { s x; }").contains("no type 's'"));
    assert!(report("bit<8> f(in bit<8> x) { return f(x); }").contains("no 'f'"));
    assert!(report("control c() { c() inner; apply { inner.apply(); } }").contains("no type 'c'"));
}

#[test]
fn names_for_the_control_plane_are_distinct() {
    let control = |name: &str, action: &str, table: &str| {
        format!(
            "control {name}(in bit<8> x) {{ {action} action a() {{ }} {table} table t {{ key = {{ x: exact; }} \
             actions = {{ a; }} }} \
             apply {{ t.apply(); }} }}\n"
        )
    };
    let two = |action: &str, table: &str| {
        format!("#include <core.p4>\n{}{}", control("c", action, table), control("d", action, table))
    };
    accepted(&two("", ""));
    accepted(&two("@name(\"x\")", "@name(\"y\")"));
    assert!(report(&two("@name(\".x\")", "")).contains("another action has the control-plane name 'x'"));
    assert!(report(&two("", "@name(\".y\")")).contains("another table has the control-plane name 'y'"));
    let global = format!("#include <core.p4>\naction x() {{ }}\n{}", control("c", "@name(\".x\")", ""));
    assert!(report(&global).contains("another action has the control-plane name 'x'"));
}

#[test]
fn priorities_fit() {
    let table = |kind: &str, properties: &str, entries: &str| {
        format!(
            "#include <core.p4>\n\
             control c(in bit<8> x) {{ action a() {{ }} table t {{ key = {{ x: {kind}; }} actions = {{ a; }} \
             {properties} entries = {{ {entries} }} }} apply {{ t.apply(); }} }}\n"
        )
    };
    accepted(&table("ternary", "priority_delta = 10;", "priority = 21: 1: a(); 2: a(); 3: a();"));
    assert!(
        report(&table("ternary", "priority_delta = 10;", "priority = 12: 1: a(); 2: a(); 3: a();")).contains("below 1")
    );
    assert!(report(&table("ternary", "", "priority = 0: 1: a();")).contains("below 1"));
    assert!(report(&table("ternary", "", "priority = 2147483648: 1: a();")).contains("above 2147483647"));
    let smallest = "largest_priority_wins = false; priority_delta = 10;";
    accepted(&table("ternary", smallest, "priority = 12: 1: a(); 2: a(); 3: a();"));
    assert!(report(&table("ternary", smallest, "priority = 2147483640: 1: a(); 2: a();")).contains("above"));
    accepted(&table("ternary", smallest, "priority = 0: 1: a(); priority = 2147483646: 2: a();"));
    assert!(report(&table("ternary", smallest, "priority = 2147483647: 1: a();")).contains("above 2147483646"));
    accepted(&table("ternary", "", "1: a() @priority(7); 2: a(); 3: a() @priority(0);"));
    assert!(report(&table("ternary", "", "1: a() @priority(2147483647);")).contains("above 2147483646"));
    assert!(report(&table("ternary", "", "priority = 1: 1: a(); 2: a() @priority(2);")).contains("either"));
    assert!(report(&table("ternary", "", "1: a(); priority = 12: 2: a();")).contains("first entry needs a priority"));
    assert!(report(&table("ternary", "priority_delta = 0;", "1: a();")).contains("at least 1"));
    for kind in ["exact", "lpm"] {
        assert!(report(&table(kind, "", "priority = 12: 1: a();")).contains("priorities"), "{kind}");
    }
}

#[test]
fn lists_of_fields_are_constants() {
    let list = |list: &str| format!("const int LIST = 2; struct s {{ @field_list({list}) bit<8> x; }}");
    for right in ["", "1", "1, LIST", "LIST + 1"] {
        accepted(&list(right));
    }
    assert!(report(&list("LISTS")).contains("LISTS"));
    assert!(report(&list("-1")).contains("out of range"));
    assert!(report(&list("1 LIST")).contains("expected ','"));
    assert!(report("struct s { @field_list(1").contains("expected"));
}

#[test]
fn parsers_come_to_an_end() {
    let parser = |states: &str| format!("parser p(in bit<8> x) {{ {states} }}");
    accepted(&parser("state start { transition a; } state a { transition select(x) { 1: start; default: accept; } }"));
    // A value that is in no set ends the parser with an error.
    accepted(&parser("state start { transition select(x) { 1: start; } }"));
    assert!(
        report(&parser("state start { transition a; } state a { transition start; }")).contains("never terminates")
    );
    let never = "state start { transition select(x) { 1: start; _: start; } } state end { transition accept; }";
    assert!(report(&parser(never)).contains("never terminates"));
    let call =
        format!("bit<8> f() {{ return 1; }}\n{}", parser("state start { transition select(x) { f(): accept; } }"));
    assert!(report(&call).contains("must not contain a call"));
}

#[test]
fn what_needs_a_width_or_a_type_has_one() {
    let extern_call =
        |value: &str| format!("extern void f<T>(in T value);\ncontrol c() {{ apply {{ f({value}); }} }}\n");
    accepted(&extern_call("16w5"));
    assert!(report(&extern_call("5")).contains("width of this number is unknown"));
    let set = |ty: &str| {
        format!(
            "#include <core.p4>\n\
             parser p(in bit<8> x) {{ value_set<{ty}>(4) s; state start {{ transition select(x) {{ s: accept; }} }} }}"
        )
    };
    accepted(&set("bit<8>"));
    assert!(report(&set("varbit<8>")).contains("varbit<8>"));
    let kind = format!("struct k {{ @match(nothing) bit<8> x; }}\n{}", set("k").replace("#include <core.p4>\n", ""));
    assert!(report(&kind).contains("unknown match kind 'nothing'"));
    assert!(!report("control c() { apply { bit<8> i; for (i in 8w1 .. 8w6) { } } }").is_empty());
}

/// Preprocesses texts with `count` conditions, nested and in a row.
fn many_conditions(count: usize) {
    let nested = |first: &str, inner: &str| {
        format!("{}{inner}{}", format!("{first}\n").repeat(count), "#else\nx\n#endif\n".repeat(count))
    };
    accepted(&nested("#if 1", "const bit<8> y = 1;\n").replace("#else\nx\n", ""));
    accepted(&nested("#ifndef A", ""));
    assert!(report(&nested("#ifdef A", "")).contains("x"), "the outermost #else is kept");
    accepted(&format!("#if 1\n{}#endif\n", "#elif 1\nx\n".repeat(count)));
    accepted(&"#if 0\nx\n#elif 0\nx\n#else\n#endif\n".repeat(count));
}

/// The time of eight times as many conditions would be 64 times as long if each directive and token searched all open
/// conditions. The shortest of three times is not disturbed by other tests.
#[test]
fn conditions_may_be_many_and_nested() {
    let shortest = |count| {
        let time = || {
            let began = std::time::Instant::now();
            many_conditions(count);
            began.elapsed()
        };
        (0..3).map(|_| time()).min().unwrap_or_default()
    };
    let (few, many) = (shortest(5_000), shortest(40_000));
    assert!(many < 24 * few, "{few:?} for 5,000, {many:?} for 40,000");
    accepted("#if 1\n#if 0\nx\n#elif 1\n#else\nx\n#endif\n#else\n#if 1\nx\n#else\nx\n#endif\n#endif\n");
}
