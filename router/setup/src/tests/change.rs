//! Tests that changes are applied, recorded and undone exactly.

use super::tree::{Tree, is_below};
use crate::plan::{HugePageRequest, SetupRequest};
use crate::state::StateFile;
use crate::step::{Before, HostChange};
use crate::{Outcome, apply, undo};

const PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const SYSCTL: &str = "/etc/sysctl.d/60-namehop.conf";

fn wishes(mebibytes: u64) -> SetupRequest {
    SetupRequest { memory: HugePageRequest::Bytes(mebibytes << 20), ..SetupRequest::default() }
}

fn do_it(tree: &Tree, wishes: &SetupRequest) -> Vec<Outcome> {
    let plan = tree.plan(wishes);
    let mut outcomes = Vec::new();
    let mut state = StateFile::open(&tree.system()).expect("opened");
    apply(&tree.system(), &plan, &mut state, |outcome| outcomes.push(outcome.clone())).expect("done");
    outcomes
}

fn take_back(tree: &Tree) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut state = StateFile::open(&tree.system()).expect("opened");
    undo(&tree.system(), &mut state, |outcome| outcomes.push(outcome.clone())).expect("done");
    outcomes
}

/// Returns all files, trimmed: the kernel adds and drops white space.
fn contents(tree: &Tree) -> Vec<(std::path::PathBuf, String)> {
    let files = tree.files().into_iter().filter(|(path, _)| !is_below(path, "/var/lib/"));
    files.map(|(path, text)| (path, String::from_utf8_lossy(&text).trim().to_owned())).collect()
}

#[test]
fn what_was_done_is_not_planned_again_and_is_undone_exactly() {
    let tree = Tree::new(16);
    tree.pool(2048, 5, 5);
    let before = contents(&tree);
    assert_eq!(do_it(&tree, &wishes(1024)).len(), 2);
    assert_eq!(tree.text(PAGES).as_deref(), Some("512"));
    assert!(tree.text(SYSCTL).expect("written").ends_with("vm.nr_hugepages = 512\n"));
    assert!(tree.plan(&wishes(1024)).steps.is_empty());
    // A second wish keeps the recorded state before the first one.
    assert_eq!(do_it(&tree, &wishes(2048)).len(), 2);
    assert_eq!(StateFile::read(&tree.system()).expect("read").len(), 2);
    let outcomes = take_back(&tree);
    assert!(outcomes.iter().all(|outcome| outcome.error.is_none() && outcome.remark.is_none()), "{outcomes:?}");
    assert!(matches!(outcomes[0].change, HostChange::WriteFile { .. }), "changes are undone last first");
    assert_eq!(contents(&tree), before);
    assert!(!tree.path(StateFile::PATH).exists());
    assert!(take_back(&tree).is_empty());
}

#[test]
fn a_file_that_was_there_comes_back() {
    let tree = Tree::new(16);
    tree.file(SYSCTL, "# mine\n");
    do_it(&tree, &wishes(64));
    assert_ne!(tree.text(SYSCTL).as_deref(), Some("# mine\n"));
    take_back(&tree);
    assert_eq!(tree.text(SYSCTL).as_deref(), Some("# mine\n"));
}

#[test]
fn what_others_have_changed_since_is_theirs() {
    let tree = Tree::new(16);
    do_it(&tree, &wishes(64));
    tree.file(PAGES, "77").file(SYSCTL, "vm.nr_hugepages = 77\n");
    let outcomes = take_back(&tree);
    assert!(
        outcomes.iter().all(|outcome| outcome.remark.as_ref().is_some_and(|remark| remark.contains("left unchanged")))
    );
    assert_eq!(
        (tree.text(PAGES).as_deref(), tree.text(SYSCTL).as_deref()),
        (Some("77"), Some("vm.nr_hugepages = 77\n"))
    );
}

#[test]
fn a_program_that_is_killed_halfway_leaves_a_record() {
    let tree = Tree::new(16);
    let change = HostChange::HugePages { page_bytes: 2 << 20, pages: 9 };
    let mut state = StateFile::open(&tree.system()).expect("opened");
    assert!(StateFile::open(&tree.system()).is_err(), "a second setup is refused while one runs");
    state.note(change, Before::HugePages { pages: 0 }).expect("saved");
    drop(state);
    // The program was killed before the step, during it, or after it.
    for pages in ["0", "5", "9"] {
        tree.file(PAGES, pages);
        let saved = tree.text(StateFile::PATH).expect("written");
        assert_eq!(take_back(&tree).len(), 1);
        assert_eq!(tree.text(PAGES).as_deref(), Some("0"));
        tree.file(StateFile::PATH, &saved);
    }
    // More pages than requested were set by another program.
    tree.file(PAGES, "10");
    take_back(&tree);
    assert_eq!(tree.text(PAGES).as_deref(), Some("10"));
}

#[test]
fn a_file_that_was_not_finished_goes() {
    let tree = Tree::new(16);
    let change = HostChange::WriteFile { path: SYSCTL.to_owned(), text: "vm.nr_hugepages = 9\n".to_owned() };
    let mut state = StateFile::open(&tree.system()).expect("opened");
    state.note(change, Before::File { text: None }).expect("saved");
    drop(state);
    for file in [SYSCTL, StateFile::PATH] {
        tree.file(&format!("{file}.new"), "vm.nr");
    }
    let files = || tree.files().into_iter().filter(|(path, _)| path.to_string_lossy().ends_with(".new")).count();
    assert_eq!(files(), 2);
    take_back(&tree);
    assert_eq!(files(), 0);
    assert!(!tree.path(StateFile::PATH).parent().expect("a folder").exists());
}

#[test]
fn partly_reserved_pages_are_own_and_so_are_all_after_a_restart() {
    let tree = Tree::new(16);
    let change = HostChange::HugePages { page_bytes: 2 << 20, pages: 9 };
    for (now, left) in [("4", "0"), ("9", "0"), ("5", "5")] {
        let mut state = StateFile::open(&tree.system()).expect("opened");
        state.note(change.clone(), Before::HugePages { pages: 0 }).expect("saved");
        state.note_made(HostChange::HugePages { page_bytes: 2 << 20, pages: 4 }).expect("saved");
        drop(state);
        tree.file(PAGES, now);
        take_back(&tree);
        assert_eq!(tree.text(PAGES).as_deref(), Some(left), "{now} pages now");
    }
}

#[test]
fn a_step_that_fails_stops_the_others_and_is_not_recorded() {
    let tree = Tree::new(16);
    let plan = tree.plan(&wishes(64));
    std::fs::write(tree.path("/etc"), "not a folder").expect("written");
    let mut state = StateFile::open(&tree.system()).expect("opened");
    let error = apply(&tree.system(), &plan, &mut state, |_| {}).expect_err("the file's folder does not exist");
    assert!(error.to_string().contains(SYSCTL), "{error}");
    assert_eq!(state.records().len(), 1, "the first step was applied");
    drop(state);
    take_back(&tree);
    assert_eq!(tree.text(PAGES).as_deref(), Some("0"));
}

#[test]
fn a_damaged_state_file_is_named() {
    let tree = Tree::new(16);
    tree.file(StateFile::PATH, "{");
    let error = StateFile::open(&tree.system()).expect_err("damaged").to_string();
    assert!(error.contains(StateFile::PATH), "{error}");
}

#[test]
fn a_card_in_use_stays_and_so_does_the_module() {
    let tree = Tree::new(16);
    let address = "0000:03:00.0";
    tree.device(address, "0x020000", "vfio-pci", Some(7)).file("/sys/bus/pci/drivers/vfio-pci/bind", "");
    tree.file(&format!("/sys/bus/pci/devices/{address}/driver_override"), "vfio-pci\n");
    tree.link("/proc/77/fd/3", "/dev/vfio/7").file("/proc/77/comm", "forwarder\n");
    let mut state = StateFile::open(&tree.system()).expect("opened");
    let load = HostChange::LoadModule { module: "vfio-pci".to_owned() };
    state.note(load, Before::Module { was_loaded: false }).expect("saved");
    let bind = HostChange::BindNic { address: address.to_owned() };
    state.note(bind, Before::Nic { driver: Some("e1000e".to_owned()), driver_override: None }).expect("saved");
    drop(state);
    let errors: Vec<String> = take_back(&tree).into_iter().filter_map(|outcome| outcome.error).collect();
    assert!(
        errors[0].contains("forwarder (process 77) uses the device") && errors[1].contains("still uses it"),
        "{errors:?}"
    );
    assert_eq!(StateFile::read(&tree.system()).expect("read").len(), 2, "both can be undone later");
    assert_eq!(tree.text(&format!("/sys/bus/pci/devices/{address}/driver_override")).as_deref(), Some("vfio-pci\n"));
}
