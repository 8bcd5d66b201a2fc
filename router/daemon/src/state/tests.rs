//! Tests that the journal keeps its records when its file is damaged, replaced or deleted.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::*;

fn route(prefix: &str, face: &str, cost: u64) -> Record {
    let key = RouteKey { prefix: prefix.to_owned(), face: face.to_owned(), local: None };
    Record::Route(RouteRecord { key, terms: RouteTerms { cost, flags: 1, expires_unix_ms: None, lifetime_ms: None } })
}

fn face(uri: &str) -> Record {
    Record::Face(FaceRecord {
        uri: uri.to_owned(),
        local_uri: None,
        persistency: 2,
        flags: 0,
        mtu: Some(1400),
        base_congestion_marking_interval_ns: None,
        default_congestion_threshold_bytes: None,
    })
}

fn strategy(prefix: &str, strategy: &str) -> Record {
    Record::Strategy(StrategyRecord { prefix: prefix.to_owned(), strategy: strategy.to_owned() })
}

#[test]
fn changes_are_there_after_reopening_without_any_closing() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("deep/er/state.json");
    let (mut journal, state) = Journal::open(&path).expect("new");
    assert_eq!(state, SavedState::default());
    let records = [
        face("udp4://192.0.2.1:6363"),
        route("/a", "udp4://192.0.2.1:6363", 5),
        route("/a", "udp4://192.0.2.1:6363", 7),
        route("/b", "udp4://192.0.2.1:6363", 1),
        Record::RouteRemoved(RouteKey { prefix: "/b".into(), face: "udp4://192.0.2.1:6363".into(), local: None }),
        strategy("/a", "/localhost/nfd/strategy/asf/v=5"),
        Record::StrategyRemoved("/z".into()),
        Record::ContentStore(ContentStoreRecord {
            capacity_packets: 10,
            admit: true,
            serve: false,
            policy: Some("filter:threshold=3".to_owned()),
        }),
        Record::DiskErasure("/old".into()),
        Record::DiskErasuresWritten,
        Record::DiskErasure("/erased".into()),
    ];
    let mut expected = SavedState::default();
    for record in records {
        journal.append(&record).expect("append");
        expected.fold(record);
    }
    // Dropping the journal writes nothing, so this is like killing the process; only the lock must be released.
    drop(journal);
    for _ in 0..2 {
        let (_journal, state) = Journal::open(&path).expect("reopens");
        assert_eq!(state, expected);
        assert_eq!(state.routes.len(), 1);
        assert_eq!(state.strategies["/z"], None);
        assert!(state.disk_erasures.iter().eq(["/erased"]));
    }
}

#[test]
fn the_program_of_a_loaded_strategy_is_checked() {
    let record = Record::StrategyLoaded(LoadedStrategyRecord::new("mine", b"\x7fELF and more"));
    let line = serde_json::to_string(&record).expect("a line");
    let read = |line: &str| match serde_json::from_str(line) {
        Ok(Record::StrategyLoaded(loaded)) => loaded.object(),
        other => panic!("{other:?}"),
    };
    assert_eq!(read(&line).as_deref(), Some(&b"\x7fELF and more"[..]));
    assert_eq!(read(&line.replace("f0VMR", "f0VNR")), None);
    let mut state = SavedState::default();
    state.fold(record);
    assert_eq!(state.records().count(), 1);
    state.fold(Record::StrategyUnloaded("mine".into()));
    assert_eq!(state, SavedState::default());
}

#[test]
fn a_destroyed_face_takes_its_routes_along() {
    let mut state = SavedState::default();
    for record in [face("a"), face("b"), route("/x", "a", 1), route("/x", "b", 1), Record::FaceRemoved("a".into())] {
        state.fold(record);
    }
    assert_eq!(state.faces.keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(state.routes.keys().map(|key| key.face.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn damaged_lines_are_set_aside_and_the_rest_is_used() {
    for damage in [&b"{\"route\":{\"prefix\":\"/c"[..], b"\xff\xfe\x00garbage\n", b"{\"unknown\":1}\n", b"\n"] {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("state.json");
        let (mut journal, _) = Journal::open(&path).expect("new");
        journal.append(&route("/a", "f", 1)).expect("append");
        drop(journal);
        fs::OpenOptions::new().append(true).open(&path).expect("open").write_all(damage).expect("damage");
        let (mut journal, state) = Journal::open(&path).expect("a damaged journal opens");
        assert_eq!(state.routes.len(), 1);
        let copies = fs::read_dir(folder.path())
            .expect("list")
            .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().contains("damaged")));
        assert_eq!(copies.count(), 1);
        journal.append(&route("/b", "f", 1)).expect("append");
        drop(journal);
        assert_eq!(Journal::open(&path).expect("the rewritten journal opens").1.routes.len(), 2);
    }
}

#[test]
fn a_file_of_something_else_does_not_stop_the_router() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("state.json");
    fs::write(&path, b"not a state file at all").expect("write");
    let (_journal, state) = Journal::open(&path).expect("opens");
    assert_eq!(state, SavedState::default());
}

#[test]
fn a_newer_version_and_a_second_router_are_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("state.json");
    fs::write(&path, "{\"header\":{\"format\":\"namehop-state\",\"version\":9}}\n").expect("write");
    assert!(matches!(Journal::open(&path), Err(StateError::Newer { version: 9, .. })));
    let other = folder.path().join("other.json");
    let _first = Journal::open(&other).expect("first");
    assert!(matches!(Journal::open(&other), Err(StateError::InUse { .. })));
}

#[test]
fn a_long_journal_is_rewritten_while_it_grows() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("state.json");
    let (mut journal, _) = Journal::open(&path).expect("new");
    let long = "x".repeat(60_000);
    let mut cost = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut peak = 0;
    // Until the background thread has shortened it.
    while fs::metadata(&path).expect("file").len() >= peak {
        assert!(Instant::now() < deadline, "the file must be shortened in time");
        peak = fs::metadata(&path).expect("file").len();
        cost += 1;
        journal.append(&route(&format!("/{long}"), "f", cost)).expect("append");
        journal.append(&route(&format!("/{cost}"), "f", cost)).expect("append");
    }
    journal.append(&route("/last", "f", 1)).expect("append");
    drop(journal);
    let (_journal, state) = Journal::open(&path).expect("reopens");
    assert_eq!(state.routes.len() as u64, cost + 2);
    let key = RouteKey { prefix: format!("/{long}"), face: "f".into(), local: None };
    assert_eq!(state.routes[&key].cost, cost);
}

/// Creates a folder and returns it with the path of a journal in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("state.json");
    (folder, path)
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("list").map(|entry| entry.expect("entry").file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().expect("text")).collect();
    names.sort();
    names
}

fn prefixes(state: &SavedState) -> Vec<&str> {
    state.routes.keys().map(|key| key.prefix.as_str()).collect()
}

#[test]
fn a_deleted_or_replaced_file_comes_back_with_the_next_change() {
    let (folder, path) = place();
    let (mut journal, _) = Journal::open(&path).expect("new");
    journal.append(&route("/a", "f", 1)).expect("append");
    fs::remove_file(&path).expect("deleted");
    journal.append(&route("/b", "f", 1)).expect("the file is restored");
    assert_eq!(files(folder.path()), ["state.json", "state.json.lock"]);

    let other = folder.path().join("other");
    fs::write(&other, b"something else").expect("written");
    fs::rename(&other, &path).expect("replaced");
    journal.append(&route("/c", "f", 1)).expect("the file is restored");

    // All files are deleted, including the lock file: no second router may start in between.
    fs::remove_dir_all(folder.path()).expect("deleted");
    journal.append(&route("/d", "f", 1)).expect("the file is restored");
    assert_eq!(files(folder.path()), ["state.json", "state.json.lock"]);
    assert!(matches!(Journal::open(&path), Err(StateError::InUse { .. })));
    drop(journal);
    let (_journal, state) = Journal::open(&path).expect("reopens");
    assert_eq!(prefixes(&state), ["/a", "/b", "/c", "/d"]);
}

#[test]
fn a_deleted_file_comes_back_without_a_change() {
    let (folder, path) = place();
    let (mut journal, _) = Journal::open(&path).expect("new");
    journal.append(&route("/a", "f", 1)).expect("append");
    journal.restore_if_missing().expect("the file is in place");
    fs::remove_dir_all(folder.path()).expect("deleted");
    journal.restore_if_missing().expect("the file is restored");
    assert_eq!(files(folder.path()), ["state.json", "state.json.lock"]);
    assert!(matches!(Journal::open(&path), Err(StateError::InUse { .. })));
    drop(journal);
    assert_eq!(prefixes(&Journal::open(&path).expect("reopens").1), ["/a"]);
}

#[test]
fn a_lock_that_another_router_took_meanwhile_is_respected() {
    let (_folder, path) = place();
    let (mut first, _) = Journal::open(&path).expect("new");
    first.append(&route("/a", "f", 1)).expect("append");
    fs::remove_file(path.with_extension("json.lock")).expect("deleted");
    let (mut second, _) = Journal::open(&path).expect("the deleted lock does not show the first journal");
    assert!(matches!(first.append(&route("/b", "f", 1)), Err(StateError::InUse { .. })));
    second.append(&route("/c", "f", 1)).expect("append");
    drop((first, second));
    assert_eq!(prefixes(&Journal::open(&path).expect("reopens").1), ["/a", "/c"]);
}

#[test]
fn what_others_do_to_the_file_costs_no_later_change() {
    for text in ["", "{\"header\":{\"format\":\"namehop-state\",\"version\":1}}\n{\"route\":"] {
        let (_folder, path) = place();
        let (mut journal, _) = Journal::open(&path).expect("new");
        journal.append(&route("/a", "f", 1)).expect("append");
        fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .expect("open")
            .write_all(text.as_bytes())
            .expect("cut");
        journal.append(&route("/b", "f", 1)).expect("append");
        drop(journal);
        assert_eq!(prefixes(&Journal::open(&path).expect("reopens").1), ["/b"], "{text:?}");
    }
}

#[test]
fn a_change_that_does_not_come_about_is_taken_back() {
    let (_folder, path) = place();
    let (mut journal, _) = Journal::open(&path).expect("new");
    journal.append(&route("/a", "f", 1)).expect("append");
    journal.append(&route("/b", "f", 1)).expect("append");
    journal.withdraw().expect("last record withdrawn");
    journal.withdraw().expect("no record left to withdraw");
    journal.append(&route("/c", "f", 1)).expect("append");
    journal.append(&route("/d", "f", 1)).expect("append");
    journal.keep();
    journal.withdraw().expect("nothing");
    drop(journal);
    assert_eq!(prefixes(&Journal::open(&path).expect("reopens").1), ["/a", "/c", "/d"]);
}

#[test]
fn links_lead_nowhere_and_files_are_the_owners_alone() {
    let (folder, path) = place();
    let elsewhere = tempfile::tempdir().expect("folder");
    let victim = elsewhere.path().join("victim");
    fs::write(&victim, "precious").expect("written");
    symlink(&victim, path.with_extension("json.new")).expect("link");
    let (mut journal, _) = Journal::open(&path).expect("the link is removed");
    journal.append(&route("/a", "f", 1)).expect("append");
    for name in files(folder.path()) {
        let mode = fs::symlink_metadata(folder.path().join(&name)).expect("file").permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "{name}");
    }
    drop(journal);
    for name in ["state.json.lock", "state.json"] {
        let place = folder.path().join(name);
        fs::remove_file(&place).expect("removed");
        symlink(&victim, &place).expect("link");
        assert!(matches!(Journal::open(&path), Err(StateError::Io { .. })), "{name}");
        fs::remove_file(&place).expect("removed");
    }
    assert_eq!(fs::read_to_string(&victim).expect("exists"), "precious");
    // A lock file with permissions for others loses these permissions.
    let lock = path.with_extension("json.lock");
    fs::write(&lock, "").expect("written");
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o644)).expect("mode");
    let _journal = Journal::open(&path).expect("opens");
    assert_eq!(fs::metadata(&lock).expect("exists").permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_an_interrupted_rewrite_left_is_removed() {
    let (folder, path) = place();
    fs::write(path.with_extension("json.new"), "half of a jour").expect("written");
    let _journal = Journal::open(&path).expect("new");
    assert_eq!(files(folder.path()), ["state.json", "state.json.lock"]);
}

#[test]
fn the_journal_knows_which_faces_it_speaks_of() {
    let (_folder, path) = place();
    let (mut journal, _) = Journal::open(&path).expect("new");
    for record in [face("a"), route("/x", "b", 1), face("c"), Record::FaceRemoved("c".into())] {
        journal.append(&record).expect("append");
    }
    for _ in 0..2 {
        assert_eq!(["a", "b", "c"].map(|uri| journal.knows_face(uri)), [true, true, false]);
        drop(journal);
        journal = Journal::open(&path).expect("reopens").0;
    }
}

#[test]
fn saved_expiries_follow_the_clock_when_it_is_set() {
    let terms = |expires_unix_ms| RouteTerms { cost: 0, flags: 1, expires_unix_ms, lifetime_ms: Some(60_000) };
    let record = |prefix: &str, expires| {
        let key = RouteKey { prefix: prefix.to_owned(), face: "f".to_owned(), local: None };
        Record::Route(RouteRecord { key, terms: terms(expires) })
    };
    const REAL: u64 = 1_800_000_000_000;
    let (_folder, path) = place();
    let (mut journal, _) = Journal::open(&path).expect("new");
    // One route is added while the clock is near 1970, then the clock is set right, then another route is added.
    journal.append(&record("/a", Some(90_000))).expect("append");
    journal.append(&Record::ClockSet(REAL as i64)).expect("append");
    journal.append(&record("/b", Some(REAL + 100_000))).expect("append");
    drop(journal);
    let (_journal, state) = Journal::open(&path).expect("reopens");
    let remaining = |now_unix_ms| -> Vec<_> {
        state.routes.values().map(|terms| terms.remaining_ms(now_unix_ms).expect("expires")).collect()
    };
    assert_eq!(remaining(REAL + 80_000), [10_000, 20_000]);
    assert_eq!(remaining(REAL + 95_000), [0, 5_000]);
    // If the clock is wrong at the next start, no route lives longer than its original lifetime.
    assert_eq!(remaining(5_000), [60_000, 60_000]);
    assert_eq!(RouteTerms { cost: 0, flags: 1, expires_unix_ms: None, lifetime_ms: None }.remaining_ms(REAL), None);
}

#[test]
fn a_state_says_what_it_holds() {
    assert_eq!(SavedState::default().summary(), None);
    let mut state = SavedState::default();
    for record in [
        strategy("/a", "/localhost/nfd/strategy/asf/v=5"),
        route("/r", "udp4://192.0.2.1:6363", 1),
        route("/s", "udp4://192.0.2.1:6363", 2),
    ] {
        state.fold(record);
    }
    assert_eq!(state.summary().as_deref(), Some("2 routes, 1 strategy choice"));
}

#[test]
fn a_file_that_others_may_have_written_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.json.own");
    open_own(&path, false).expect("made");
    assert_eq!(fs::metadata(&path).expect("exists").mode() & 0o777, 0o600);
    fs::write(&path, "7").expect("written");
    open_own(&path, false).expect("kept");
    assert_eq!(fs::read_to_string(&path).expect("readable"), "7");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("changed");
    open_own(&path, false).expect("made");
    assert_eq!(fs::read_to_string(&path).expect("readable"), "");
    let foreign = folder.path().join("foreign");
    fs::write(&foreign, "9").expect("written");
    fs::remove_file(&path).expect("removed");
    symlink(&foreign, &path).expect("linked");
    open_own(&path, false).expect("made");
    assert!(fs::symlink_metadata(&path).expect("exists").is_file());
    assert_eq!(fs::read_to_string(&foreign).expect("readable"), "9");
}
