//! Tables of compiled programs are what a list of entries is: alone, and while other threads look up.

use std::fs;
use std::process::Command;

use crate::compile::{Build, Sanitize, Workshop};

/// Builds `runtime/check.c` with checks of the C compiler and runs it: so many changes alone, and so many while others read.
fn check(sanitize: Sanitize, changes: u32, shared: u32) {
    let workshop = Workshop::new(Build { sanitize, quick: true, native: false }).expect("a folder");
    fs::write(workshop.folder().join("check.c"), include_str!("../../runtime/check.c")).expect("a file");
    let program = workshop.folder().join("check");
    workshop.executable("check.c", &[], &program).expect("a C compiler");
    let seed = std::env::var("NAMEHOP_P4_FIRST").unwrap_or_else(|_| "1".into());
    let output =
        Command::new(program).args([seed, changes.to_string(), shared.to_string()]).output().expect("a process");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("tables are right"), "{said}{errors}");
}

#[test]
fn tables_are_lists_of_entries() {
    check(Sanitize::Memory, 200, 100);
}

#[test]
fn tables_change_while_threads_look_up() {
    check(Sanitize::Threads, 0, 60);
}
