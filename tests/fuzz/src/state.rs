//! The saved state: any file can be opened, and the state read from it is kept.

use std::fs;

use namehop_daemon::state::{Journal, Record, SavedState, StateError};

use crate::files::Folder;

/// Checks one record: a parsed record is written as one line, which parses to the same record.
pub fn state_record(bytes: &[u8]) {
    let Ok(record) = serde_json::from_slice::<Record>(bytes) else { return };
    let line = serde_json::to_vec(&record).expect("a record can be written");
    assert!(!line.contains(&b'\n'));
    assert_eq!(serde_json::from_slice::<Record>(&line).expect("own line"), record);
    let mut state = SavedState::default();
    state.fold(record);
    let mut again = SavedState::default();
    state.records().for_each(|record| again.fold(record));
    assert_eq!(again, state);
}

/// Checks a whole file: it opens unless its version is newer, opens again with the same state, and accepts a change.
pub fn state_file(bytes: &[u8]) {
    let folder = Folder::new();
    let path = folder.path("state.json");
    fs::write(&path, bytes).expect("written");
    let (mut journal, mut state) = match Journal::open(&path) {
        Ok(opened) => opened,
        Err(StateError::Newer { version, .. }) => return assert!(version > 1),
        Err(error) => panic!("{error}"),
    };
    let change = Record::StrategyRemoved("/fuzz".to_owned());
    journal.append(&change).expect("room on the disk");
    drop(journal);
    state.fold(change);
    let (_, again) = Journal::open(&path).expect("own file");
    assert_eq!(again, state);
}
