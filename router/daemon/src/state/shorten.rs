//! Shortening a journal without keeping its records in memory: a first pass finds the lines that are current, a second
//! pass copies them. A journal of a million routes takes some tens of megabytes this way, instead of several hundred.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, BufRead, Write};

use super::record::{Record, identity};

/// Number of a face in place of one in [`Survey::faces`], for lines that depend on no face.
const NO_FACE: u32 = u32::MAX;

/// Key that erasures depend on, in place of a face, until the disk has recorded them. No URI is equal to it.
const DISK: &str = "\n";

/// The last line about a key.
#[derive(Debug, Clone, Copy)]
struct Latest {
    line: u32,
    /// Number of the face that the line depends on.
    face: u32,
    /// The line sets a value, so it is current; false if it removes the key.
    holds: bool,
}

/// Result of the first pass: the latest line of each key, and the line at which each face was last removed.
#[derive(Debug, Default)]
struct Survey {
    /// By two hashes of the key under different secrets: with 128 bits, collisions of keys do not occur in practice.
    latest: HashMap<[u64; 2], Latest>,
    secrets: [RandomState; 2],
    faces: HashMap<String, u32>,
    removed_at: Vec<u32>,
    /// Lines that affect all lines before them, so they are always current.
    always: Vec<u32>,
}

impl Survey {
    fn face(&mut self, uri: &str) -> u32 {
        if let Some(&number) = self.faces.get(uri) {
            return number;
        }
        let number = self.removed_at.len() as u32;
        self.faces.insert(uri.to_owned(), number);
        // Line 0 is the header.
        self.removed_at.push(0);
        number
    }

    fn note(&mut self, key: (&str, &impl std::hash::Hash), latest: Latest) {
        let hashes = [0, 1].map(|secret: usize| self.secrets[secret].hash_one(key));
        self.latest.insert(hashes, latest);
    }

    /// Records one line.
    fn take(&mut self, line: u32, record: &Record) {
        let (present, removed) =
            (Latest { line, face: NO_FACE, holds: true }, Latest { line, face: NO_FACE, holds: false });
        match record {
            Record::Header { .. } => {}
            Record::Face(face) => {
                self.note(("face", &identity(&face.uri, face.local_uri.as_deref())), present);
            }
            Record::FaceForgotten(uri) => self.note(("face", uri), removed),
            Record::FaceRemoved(uri) => {
                let face = self.face(uri);
                self.removed_at[face as usize] = line;
                self.note(("face", uri), removed);
            }
            Record::Route(route) => {
                let face = self.face(&identity(&route.key.face, route.key.local.as_deref()));
                self.note(("route", &route.key), Latest { face, ..present });
            }
            Record::RouteRemoved(key) => self.note(("route", key), removed),
            Record::Strategy(choice) => self.note(("strategy", &choice.prefix), present),
            Record::StrategyRemoved(prefix) => self.note(("strategy", prefix), present),
            Record::StrategyLoaded(loaded) => self.note(("loaded strategy", &loaded.name), present),
            Record::StrategyUnloaded(name) => self.note(("loaded strategy", name), removed),
            Record::ContentStore(_) => self.note(("content store", &()), present),
            Record::DiskErasure(prefix) => {
                let face = self.face(DISK);
                self.note(("disk erasure", prefix), Latest { face, ..present });
            }
            Record::DiskErasuresWritten => {
                let face = self.face(DISK);
                self.removed_at[face as usize] = line;
            }
            Record::ClockSet(_) => self.always.push(line),
        }
    }

    /// Returns for each line whether it is current.
    fn counting(self, lines: u32) -> Vec<bool> {
        let mut counting = vec![false; lines as usize];
        for line in self.always {
            counting[line as usize] = true;
        }
        for latest in self.latest.into_values().filter(|latest| latest.holds) {
            let removed_at = self.removed_at.get(latest.face as usize).copied().unwrap_or(0);
            counting[latest.line as usize] = latest.line > removed_at;
        }
        counting
    }
}

/// Copies the current lines of a journal, without its header. `open` must return a reader from the start of the
/// journal, with the same bytes each time. Unreadable lines are not copied. Returns the number of bytes written.
///
/// # Errors
/// The journal cannot be read, or the copy cannot be written.
pub(super) fn copy_counting<R: BufRead>(open: impl Fn() -> io::Result<R>, to: &mut impl Write) -> io::Result<u64> {
    let mut survey = Survey::default();
    let mut lines = 0_u32;
    each_line(open()?, |line| {
        if let Ok(record) = serde_json::from_slice(line) {
            survey.take(lines, &record);
        }
        lines = lines.checked_add(1).ok_or_else(|| io::Error::other("the journal has too many lines"))?;
        Ok(())
    })?;
    let mut counting = survey.counting(lines).into_iter();
    let mut written = 0;
    each_line(open()?, |line| {
        if counting.next() == Some(true) {
            to.write_all(line)?;
            written += line.len() as u64;
        }
        Ok(())
    })?;
    Ok(written)
}

fn each_line(mut from: impl BufRead, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        each(&line)?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::super::format::{header_line, line_of, read};
    use super::super::record::{
        ContentStoreRecord, FaceRecord, LoadedStrategyRecord, RouteKey, RouteRecord, RouteTerms, SavedState,
        StrategyRecord,
    };
    use super::*;

    /// Few distinct names, so that records affect each other.
    fn text() -> impl Strategy<Value = String> {
        "[ab]"
    }

    fn key() -> impl Strategy<Value = RouteKey> {
        (text(), text(), proptest::option::of(text())).prop_map(|(prefix, face, local)| RouteKey {
            prefix,
            face,
            local,
        })
    }

    /// Generates the identity of a face.
    fn face() -> impl Strategy<Value = String> {
        (text(), proptest::option::of(text())).prop_map(|(uri, local)| identity(&uri, local.as_deref()).into_owned())
    }

    fn record() -> impl Strategy<Value = Record> {
        prop_oneof![
            (text(), proptest::option::of(text()), 0..3_u64).prop_map(|(uri, local_uri, flags)| Record::Face(
                FaceRecord {
                    uri,
                    local_uri,
                    persistency: 2,
                    flags,
                    mtu: None,
                    base_congestion_marking_interval_ns: None,
                    default_congestion_threshold_bytes: None,
                }
            )),
            face().prop_map(Record::FaceRemoved),
            face().prop_map(Record::FaceForgotten),
            (key(), 0..9_u64, proptest::option::of(0..9_u64)).prop_map(|(key, cost, expires_unix_ms)| Record::Route(
                RouteRecord {
                    key,
                    terms: RouteTerms { cost, flags: 1, expires_unix_ms, lifetime_ms: expires_unix_ms }
                }
            )),
            (-9..9_i64).prop_map(Record::ClockSet),
            key().prop_map(Record::RouteRemoved),
            (text(), text()).prop_map(|(prefix, strategy)| Record::Strategy(StrategyRecord { prefix, strategy })),
            text().prop_map(Record::StrategyRemoved),
            (text(), 0..3_u8)
                .prop_map(|(name, byte)| Record::StrategyLoaded(LoadedStrategyRecord::new(&name, &[byte]))),
            text().prop_map(Record::StrategyUnloaded),
            text().prop_map(Record::DiskErasure),
            Just(Record::DiskErasuresWritten),
            (0..9_u64).prop_map(|capacity_packets| {
                Record::ContentStore(ContentStoreRecord { capacity_packets, admit: true, serve: false, policy: None })
            }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_copied_folds_to_the_same_state(records in prop::collection::vec(record(), 0..60)) {
            let mut journal = header_line().expect("header");
            let mut expected = SavedState::default();
            let clock_records = records.iter().filter(|record| matches!(record, Record::ClockSet(_))).count();
            for record in records {
                journal.extend(line_of(&record).expect("line"));
                expected.fold(record);
            }
            let mut copied = header_line().expect("header");
            let before = copied.len();
            let written = copy_counting(|| Ok(Cursor::new(&journal)), &mut copied).expect("copied");
            prop_assert_eq!(written as usize, copied.len() - before);
            let shortest = expected.records().count();
            prop_assert_eq!(copied.iter().filter(|byte| **byte == b'\n').count(), 1 + shortest + clock_records);
            let (state, faults) = read("test".as_ref(), Cursor::new(&copied)).expect("read");
            prop_assert_eq!(state, expected);
            prop_assert!(faults.is_empty());
        }
    }

    #[test]
    fn damaged_lines_do_not_count() {
        let mut copied = Vec::new();
        let journal = b"\xff\n{\"unknown\":1}\n{\"strategy_removed\":\"/a\"}\n{\"strategy_removed\":\"/b";
        copy_counting(|| Ok(Cursor::new(journal)), &mut copied).expect("copied");
        assert_eq!(copied, b"{\"strategy_removed\":\"/a\"}\n");
    }
}
