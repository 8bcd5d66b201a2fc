//! Whole programs, in `p4/runtime/programs`, and programs for single rules of the language specification, in `rules`
//! there: each `.p4` file has an `.stf` file with the expected packets. What most rules have in common is in
//! `rules/skeleton`.

use std::fs;
use std::path::Path;

/// The source of a program, with the skeleton of rules in place of its includes.
fn source(path: &Path) -> String {
    let folder = path.parent().expect("a program is in a folder");
    let mut program = fs::read_to_string(path).expect("a program");
    for file in ["skeleton/begin.p4", "skeleton/end.p4"] {
        let include = format!("#include \"{file}\"\n");
        if program.contains(&include) {
            let text = fs::read_to_string(folder.join(file)).expect("the skeleton of rules");
            program = program.replacen(&include, &text, 1);
        }
    }
    program
}

/// Returns all programs: name, source and test.
///
/// # Panics
/// Panics if a file cannot be read.
pub fn programs() -> Vec<(String, String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/programs");
    let mut list = Vec::new();
    let files = |folder| fs::read_dir(folder).expect("the folder of programs");
    for entry in files(folder.clone()).chain(files(folder.join("rules"))) {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|end| end == "p4") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let program = source(&path);
            let test = fs::read_to_string(path.with_extension("stf")).expect("each program has a test beside it");
            list.push((name, program, test));
        }
    }
    list.sort();
    list
}
