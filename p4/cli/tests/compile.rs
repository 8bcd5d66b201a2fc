//! `namehop p4 compile` as a process: the program after the passes of the compiler.

use std::path::Path;
use std::process::{Command, Output};

/// Compiles a program of the folder `programs` with these options.
fn compile(name: &str, options: &[&str]) -> Output {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/programs").join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_namehop-p4"));
    command.arg("compile").arg(file).args(options).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What the command writes if it succeeds.
fn written(name: &str, options: &[&str]) -> String {
    let output = compile(name, options);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// The names of the passes in the documentation.
fn documented() -> Vec<String> {
    let page = include_str!("../../../docs/p4.md");
    let (_, section) = page.split_once("\n### Passes\n").expect("docs/p4.md has a section 'Passes'");
    let (section, _) = section.split_once("\n### ").expect("another section follows");
    let names = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    names.map(|(name, _)| name.to_owned()).collect()
}

/// The headings of a dump: what stands behind `# after`.
fn headings(dump: &str) -> Vec<&str> {
    dump.lines().filter_map(|line| line.strip_prefix("# after ")).collect()
}

#[test]
fn the_program_is_dumped_after_a_pass() {
    let folded = written("l2.p4", &["--dump-after", "fold"]);
    assert_eq!(headings(&folded), ["fold"]);
    assert!(folded.contains("\ntable ") && folded.contains("\ndeparser "), "{folded}");
    let split = written("l2.p4", &["--dump-after", "split"]);
    assert!(split.starts_with("# after split\nway all parts\n"), "{split}");
}

#[test]
fn the_program_is_dumped_after_all_documented_passes() {
    let all = written("l2.p4", &["--dump-after", "all"]);
    let passes = documented();
    assert_eq!(headings(&all), passes);
    // A program that copies packets has no program of one part.
    let copies = written("everything.p4", &["--dump-after", "all"]);
    assert_eq!(headings(&copies), passes);
    assert!(copies.ends_with("# after live\n# did not run: the program cannot be one part\n"), "{copies}");
}

#[test]
fn a_dump_goes_to_the_output_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("dump");
    let name = file.to_str().expect("the path is text");
    assert_eq!(written("l2.p4", &["--dump-after", "lower", "-o", name]), "");
    let dump = std::fs::read_to_string(&file).expect("the dump was written");
    assert_eq!(dump, written("l2.p4", &["--dump-after", "lower"]));
}

#[test]
fn unknown_passes_are_refused_with_the_names_of_all() {
    let output = compile("l2.p4", &["--dump-after", "folding"]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    let help = written("l2.p4", &["--help"]);
    for name in documented().iter().chain([&"all".to_owned()]) {
        assert!(error.contains(&**name), "{error}");
        assert!(help.contains(&format!("- {name}:")), "{help}");
    }
}

#[test]
fn errors_of_the_program_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wrong.p4");
    std::fs::write(&file, "control").expect("written");
    let output = compile(file.to_str().expect("the path is text"), &["--dump-after", "all"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() && text(&output.stderr).contains("error"), "{}", text(&output.stderr));
}
