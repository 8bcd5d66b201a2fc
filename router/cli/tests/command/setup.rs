//! Tests of `namehop setup` on a simulated host.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::support::Ran;

const PAGES: &str = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

/// Creates a host with 8 GiB, one size of huge pages, and nothing else. The process belongs to this user.
fn host(user: u32) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("folder");
    let status = format!("Uid:\t{user}\t{user}\t{user}\t{user}\n");
    for (path, text) in [
        (PAGES, "0\n"),
        ("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 8000000 kB\nHugepagesize: 2048 kB\n"),
        ("proc/self/status", status.as_str()),
        ("sys/devices/system/cpu/online", "0-1\n"),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    root
}

fn setup(root: &Path, arguments: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_namehop"));
    command.args(["setup", "--root"]).arg(root).args(arguments.split_whitespace()).stdin(Stdio::null());
    Ran::from(command.env_remove("SSH_CONNECTION").output().expect("the program runs"))
}

#[test]
fn a_plan_is_shown_done_and_undone() {
    let root = host(0);
    let pages = || fs::read_to_string(root.path().join(PAGES)).expect("there");
    let shown = setup(root.path(), "").ok();
    assert!(shown.contains("1. write 512 to /sys/kernel") && shown.contains("vm.nr_hugepages = 512"), "{shown}");
    assert!(shown.contains("To apply this plan: namehop setup --root"), "{shown}");
    assert!(setup(root.path(), "--apply").failed(2).contains("--yes"), "--apply without a terminal must require --yes");
    assert_eq!(pages(), "0\n");

    let done = setup(root.path(), "--huge-pages 64MiB --apply --yes --json").json();
    assert_eq!(done["outcomes"].as_array().map(Vec::len), Some(2), "{done}");
    assert_eq!(done["plan"]["steps"][0]["change"]["pages"], 32);
    assert_eq!(pages(), "32");
    let shown = setup(root.path(), "--huge-pages 64MiB").ok();
    assert!(shown.contains("Nothing to change") && shown.contains("--undo"), "{shown}");

    let undone = setup(root.path(), "--undo --yes").ok();
    assert_eq!(undone.matches("undone: ").count(), 2, "{undone}");
    assert_eq!(pages(), "0");
    assert!(!root.path().join("etc/sysctl.d/60-namehop.conf").exists());
    assert!(setup(root.path(), "--undo").ok().contains("has changed nothing"));
}

#[test]
fn without_root_there_is_the_plan_and_the_command() {
    let root = host(1000);
    let shown = setup(root.path(), "--huge-pages 64MiB").ok();
    assert!(shown.contains("write 32 to") && shown.contains("as root: sudo namehop setup --root"), "{shown}");
    assert!(setup(root.path(), "--apply --yes").failed(1).contains("sudo namehop setup"));
    assert_eq!(fs::read_to_string(root.path().join(PAGES)).expect("there"), "0\n");
}

#[test]
fn what_cannot_be_done_is_said_and_nothing_is_done() {
    let root = host(0);
    let report = setup(root.path(), "--nic eth7 --json");
    assert_eq!(report.code, 1);
    assert!(report.out.contains("there is no network card eth7"), "{}", report.out);
    assert_eq!(setup(root.path(), "--nic eth7 --apply --yes").code, 1);
    assert_eq!(fs::read_to_string(root.path().join(PAGES)).expect("there"), "0\n");
    assert!(!root.path().join("var/lib/namehop-setup").exists());
}
