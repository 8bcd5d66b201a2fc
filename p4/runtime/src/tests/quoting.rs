//! Names, annotations and file names of a program never become C code: for any such text, the program's C code compiles
//! and contains no code from the text.

use std::path::Path;
use std::process::Command;

use namehop_p4_compile::compile;
use namehop_p4_compile::emit::Options;
use namehop_p4_lang::load;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::workshop::{Build, Workshop};

/// A program with one of everything that has a name.
const PROGRAM: &str = include_str!("../../programs/everything.p4");
/// A declaration that no C compiler accepts.
const CODE: &str = " _Static_assert(0, \"\"); ";
/// Texts that end or continue comments, strings and lines in C, in different translation phases.
const PIECES: &[&str] = &[
    CODE,
    CODE,
    "*/",
    "*\\\n/",
    "*\\\r\n/",
    "*\\ \n/",
    "*??/\n/",
    "/*",
    "//",
    "\"",
    "\\\"",
    "??/\"",
    "\\",
    "??/",
    "\n",
    "\r",
    "\0",
    "\u{b}",
    "\u{c}",
    "\u{85}",
    "\u{2028}",
    "\u{2029}",
    "\u{fffd}",
    "\u{10ffff}",
    "%>",
    "\n#error\n",
    "\n??=error\n",
    "\\u002a/",
    "7",
    "'",
];

fn below(random: &mut Xoshiro256PlusPlus, count: usize) -> usize {
    (random.next_u64() % count as u64) as usize
}

/// A mix of these pieces and arbitrary bytes; invalid UTF-8 is replaced as the compiler does.
fn hostile(random: &mut Xoshiro256PlusPlus) -> String {
    (0..=below(random, 6)).fold(String::new(), |mut text, _| {
        match below(random, 4) {
            0 => text += &String::from_utf8_lossy(&random.next_u64().to_le_bytes()),
            _ => text += PIECES[below(random, PIECES.len())],
        }
        text
    })
}

/// A text as a P4 string literal.
fn in_p4(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The program with an annotation at each declaration and each key.
fn annotated(mut name: impl FnMut() -> String) -> String {
    const DECLARED: &[&str] = &[
        "parser ",
        "control ",
        "state ",
        "action ",
        "table ",
        "counter(",
        "meter(",
        "register<",
        "direct_",
        "value_set<",
        "action_selector(",
        "action_profile(",
    ];
    const KEYS: &[&str] = &["ternary", "range", "optional", "lpm", "exact"];
    let mut text = String::new();
    for line in PROGRAM.lines() {
        let code = line.trim_start();
        let key = KEYS.iter().find_map(|kind| line.split_once(&format!(": {kind};")).map(|parts| (kind, parts)));
        if DECLARED.iter().any(|word| code.starts_with(word)) {
            text += &format!("@name({}) {line}\n", in_p4(&name()));
        } else if let Some((kind, (before, behind))) = key {
            text += &format!("{before}: {kind} @name({});{behind}\n", in_p4(&name()));
        } else {
            text += &format!("{line}\n");
        }
    }
    text
}

/// Checks that the C compiler accepts a program's C code, with and without trigraphs.
fn check(workshop: &Workshop, title: &str, program: &str) {
    let compiled = load::on_deep_stack(|| {
        let mut loaded = load::text_of(Path::new(title), program.into(), &[]);
        let Some(program) = &mut loaded.program else { return Err(loaded.diagnostics.render(&loaded.sources)) };
        compile(program, title, &Options::default()).map_err(|failure| failure.to_string())
    });
    let compiled = compiled.expect("the compiler's thread starts").unwrap_or_else(|error| panic!("{error}\n{program}"));
    let text = compiled.emitted.text;
    let is_plain = |byte: u8| byte == b'\n' || (b' '..=b'~').contains(&byte);
    assert!(text.bytes().all(is_plain), "all of the C is printable ASCII");
    let file = workshop.folder().join("quoting.c");
    std::fs::write(&file, &text).expect("a file");
    for trigraphs in [&[][..], &["-trigraphs"]] {
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-w", "-fsyntax-only"]).args(trigraphs).arg("-I").arg(workshop.folder());
        let output = command.arg(&file).output().expect("a C compiler");
        assert!(output.status.success(), "{title:?}: {}\n{program}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn names_annotations_and_file_names_never_become_code() {
    let workshop = Workshop::new(Build::default()).expect("a folder");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
    // All bytes and all pieces, then random texts.
    let all: String = (0..=255).map(char::from).collect();
    let pieces = [all, PIECES.concat()].into_iter().chain(PIECES.iter().map(|piece| format!("{piece}{CODE}")));
    let mut pieces: Vec<String> = pieces.collect();
    for _ in 0..12 {
        let mut number = 0;
        let mut name = || {
            number += 1;
            let text = pieces.pop().unwrap_or_else(|| hostile(&mut random));
            if number % 2 == 0 { format!("{number}{text}") } else { format!("{text}{number}") }
        };
        let title = name();
        let program = annotated(name);
        let annotations = program.matches("@name").count();
        assert!(annotations > 35, "{annotations} annotations");
        check(&workshop, &title, &program);
    }
}

#[test]
fn types_and_fields_may_have_names_of_c_and_of_the_emitter() {
    const NAMES: &[&str] = &[
        "way",
        "lane",
        "packet",
        "$valid",
        "_valid",
        "$next",
        "element",
        "a$b",
        "a_b",
        "a$",
        "a",
        "long",
        "long$",
        "long$$",
        "errno",
        "linux",
        "stdin",
        "timespec",
        "p4_packet",
        "P4_VERSION",
        "w2",
        "varbit8",
        "uint8_t",
        "tables",
        "e0",
        "NULL",
        "base",
        "tuple$",
        "asm",
        "printf",
        "l1",
        "s",
    ];
    let workshop = Workshop::new(Build::default()).expect("a folder");
    let (mut types, mut members, mut uses) = (String::new(), String::new(), String::new());
    for name in NAMES {
        types += &format!("header {name} {{ bit<8> {name}; }}\n");
        members += &format!("{name} {name}; {name}[2] {name}$s; ");
        uses += &format!(
            "meta.{name}$s[1].{name} = meta.{name}.{name}; if (meta.{name} == meta.{name}$s[0]) {{ drop(); }} "
        );
    }
    let program = PROGRAM
        .replace("struct meta_t {", &format!("{types}struct meta_t {{ {members}"))
        .replace("        received.count", &format!("        {uses}\n        received.count"));
    check(&workshop, "program.p4", &program);
}
