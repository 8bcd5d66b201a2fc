//! Checks the path of an Interest in `docs/architecture.md` against the code: the functions are in the files that it
//! names, and there are at most `MOST_FILES` files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository, which holds the folders of crates.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const FOLDERS: [&str; 3] = ["core", "io", "router"];
const DOCUMENTATION: &str = include_str!("../../../docs/architecture.md");
/// Most files on the path: as many as a reader can read in an hour.
const MOST_FILES: usize = 40;

fn source_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            source_files(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
}

/// Returns the parts of `text` between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn defines(file: &Path, function: &str) -> bool {
    let text = fs::read_to_string(file).expect("a source file");
    text.match_indices(&format!("fn {function}")).any(|(at, found)| {
        let next = text[at + found.len()..].chars().next();
        next.is_some_and(|next| !next.is_alphanumeric() && next != '_')
    })
}

#[test]
fn an_interests_way_is_as_documented() {
    let section = DOCUMENTATION
        .split("\n## ")
        .find(|section| section.starts_with("An Interest's way"))
        .expect("docs/architecture.md has this section");
    let mut sources = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(Path::new(ROOT).join(folder)).expect("a folder of crates") {
            source_files(&entry.expect("a crate").path().join("src"), &mut sources);
        }
    }
    let mut passed: BTreeSet<PathBuf> = BTreeSet::new();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 5, "docs/architecture.md has a table of functions and files");
    for row in rows {
        let [_, _, functions, files, _] = row.split('|').collect::<Vec<_>>()[..] else {
            panic!("a row must have three columns: {row}")
        };
        let mut here = Vec::new();
        for file in quoted(files) {
            let matching: Vec<_> = sources.iter().filter(|source| source.ends_with(file)).collect();
            let [source] = matching[..] else { panic!("{file} must match one file, not {}", matching.len()) };
            here.push(source.clone());
        }
        passed.extend(here.iter().cloned());
        for function in quoted(functions) {
            let name = function.rsplit("::").next().unwrap_or(function);
            assert!(
                passed.iter().any(|file| defines(file, name)),
                "{function} must be in a file of this row or of an earlier one"
            );
        }
        for file in here {
            let is_used = quoted(functions).any(|function| {
                let name = function.rsplit("::").next().unwrap_or(function);
                defines(&file, name)
            });
            assert!(is_used, "{} must define a function of its row", file.display());
        }
    }
    assert!(passed.len() <= MOST_FILES, "{} files", passed.len());
}
