//! Compares tables of compiled programs with a list of entries: alone, and while other threads look up.

use std::fs;
use std::process::Command;

use crate::workshop::{Build, Sanitize, Speed, Workshop, pkg_config};

/// Builds `c/check.c` with sanitizers and runs it, with `changes` changes alone and `shared` changes during
/// lookups.
fn check(sanitize: Sanitize, changes: u32, shared: u32) {
    let workshop = Workshop::new(Build { sanitize, speed: Speed::Some, native: false }).expect("a folder");
    fs::write(workshop.folder().join("check.c"), include_str!("../../c/check.c")).expect("a file");
    let program = workshop.folder().join("check");
    workshop.executable("check.c", &[], &program).expect("a C compiler");
    let seed = std::env::var("NAMEHOP_P4_FIRST").unwrap_or_else(|_| "1".into());
    let output =
        Command::new(program).args([seed, changes.to_string(), shared.to_string()]).output().expect("a process");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("tables are correct"), "{said}{errors}");
}

#[test]
#[ignore = "slow"]
fn tables_are_lists_of_entries() {
    check(Sanitize::Memory, 200, 100);
}

#[test]
fn tables_change_while_threads_look_up() {
    check(Sanitize::Threads, 0, 60);
}

#[test]
#[ignore = "slow"]
fn prefixes_are_found_as_by_dpdk() {
    let workshop = Workshop::new(Build { speed: Speed::Some, ..Build::default() }).expect("a folder");
    fs::write(workshop.folder().join("check_lpm.c"), include_str!("../../c/check_lpm.c")).expect("a file");
    let program = workshop.folder().join("check_lpm");
    let flags =
        [pkg_config("--cflags"), pkg_config("--libs")].map(|flags| flags.expect("the headers of DPDK")).concat();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    workshop.executable("check_lpm.c", &flags, &program).expect("a C compiler");
    let output = Command::new(program).arg("1").output().expect("a process");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for table in ["ipv4", "ipv6"] {
        let line = said.lines().find(|line| line.starts_with(table)).unwrap_or_else(|| panic!("{said}{errors}"));
        let found = line.strip_prefix(&format!("{table}: 0 of 1000000 differ, "));
        let found: Option<u32> = found.and_then(|rest| rest.strip_suffix(" found")?.parse().ok());
        assert!(found.is_some_and(|found| found > 500_000), "{line}");
    }
}
