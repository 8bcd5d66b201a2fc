//! Checks the path of an Interest in `docs/architecture.md` against the code: the functions are in the files that it
//! names, there are at most `MOST_FILES` files, and at most `MOST_CALLS` calls go into another crate.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository, which holds the folders of crates.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const FOLDERS: [&str; 3] = ["core", "io", "router"];
const DOCUMENTATION: &str = include_str!("../../../docs/architecture.md");
/// Most files on the path: as many as a reader can read in an hour.
const MOST_FILES: usize = 40;
/// Most calls into another crate.
const MOST_CALLS: usize = 12;

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

/// Returns the section on the path, and all source files that it may name.
fn section_and_sources() -> (&'static str, Vec<PathBuf>) {
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
    (section, sources)
}

/// Returns the rows of the table with `first` as the first cell of its header, each with the given number of cells.
fn rows<const CELLS: usize>(section: &'static str, first: &str) -> Vec<[&'static str; CELLS]> {
    let lines = section.lines().skip_while(|line| !line.starts_with(&format!("| {first} |")));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        cells.try_into().unwrap_or_else(|_| panic!("a row must have {CELLS} columns: {row}"))
    })
    .collect()
}

/// Returns the only source file with a path that ends with `file`.
fn source<'a>(sources: &'a [PathBuf], file: &str) -> &'a PathBuf {
    let matching: Vec<_> = sources.iter().filter(|source| source.ends_with(file)).collect();
    let [source] = matching[..] else { panic!("{file} must match one file, not {}", matching.len()) };
    source
}

/// Returns the last part of the path of a function.
fn name_of(function: &str) -> &str {
    function.rsplit("::").next().unwrap_or(function)
}

#[test]
fn an_interests_way_is_as_documented() {
    let (section, sources) = section_and_sources();
    let rows = rows::<3>(section, "what happens");
    assert!(rows.len() > 5, "docs/architecture.md has a table of functions and files");
    let mut passed: BTreeSet<&PathBuf> = BTreeSet::new();
    for [_, functions, files] in rows {
        let here: Vec<&PathBuf> = quoted(files).map(|file| source(&sources, file)).collect();
        passed.extend(&here);
        for function in quoted(functions) {
            assert!(
                passed.iter().any(|file| defines(file, name_of(function))),
                "{function} must be in a file of this row or of an earlier one"
            );
        }
        for file in here {
            let is_used = quoted(functions).any(|function| defines(file, name_of(function)));
            assert!(is_used, "{} must define a function of its row", file.display());
        }
    }
    assert!(passed.len() <= MOST_FILES, "{} files", passed.len());
}

#[test]
fn calls_into_other_crates_are_as_documented() {
    let (section, sources) = section_and_sources();
    let way = rows::<3>(section, "what happens");
    let files: Vec<&PathBuf> =
        way.iter().flat_map(|[.., files]| quoted(files)).map(|file| source(&sources, file)).collect();
    let crate_of = |file: &Path| {
        let path = file.strip_prefix(ROOT).expect("a file of the repository");
        path.iter().nth(1).and_then(|name| name.to_str()).expect("the folder of a crate").to_owned()
    };
    let in_crate = |name: &'static str| files.iter().filter(move |file| crate_of(file) == name);
    let mut called = BTreeSet::new();
    let calls = rows::<3>(section, "Call");
    for cells in &calls {
        let [function, from, to] = cells.map(|cell| quoted(cell).next().expect("a name between backquotes"));
        let name = name_of(function);
        assert!(
            way.iter().flat_map(|[_, functions, _]| quoted(functions)).any(|other| other == function),
            "{function}"
        );
        assert!(from != to && in_crate(to).any(|file| defines(file, name)), "{function} must be in {to}");
        let calls = |file: &&&PathBuf| fs::read_to_string(file).expect("a source file").contains(&format!("{name}("));
        assert!(in_crate(from).any(|file| calls(&file)), "{from} must call {function}");
        called.extend([from.to_owned(), to.to_owned()]);
    }
    assert_eq!(called, files.iter().map(|file| crate_of(file)).collect(), "the crates on the way");
    assert!(calls.len() <= MOST_CALLS, "{} calls", calls.len());
}
