//! The file that says what was before each change, so that all can be taken back: also after the program was killed halfway,
//! and after a restart of the computer.

use std::fs::{self, File, TryLockError};
use std::io;

use serde::{Deserialize, Serialize};

use crate::System;
use crate::step::{Before, Change};

/// Where it lies.
const FOLDER: &str = "/var/lib/namehop-setup";
const FILE: &str = "/var/lib/namehop-setup/state.json";

/// A change that was made, or was about to be when the program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The change.
    pub change: Change,
    /// What was before the first change of the same thing.
    pub before: Before,
    /// The change as it turned out. Without that the program ended on the way, and it may be done in part.
    #[serde(default)]
    pub made: Option<Change>,
}

/// All changes, in the order in which they were first made.
#[derive(Debug)]
pub struct StateFile {
    system: System,
    records: Vec<Record>,
    /// Keeps others away for as long as it is open.
    _lock: File,
}

impl StateFile {
    /// The path of the file, for messages.
    pub const PATH: &'static str = FILE;

    /// Reads the records, of which there are none at first.
    ///
    /// # Errors
    /// When another set-up is under way, or the file cannot be read.
    pub fn open(system: &System) -> io::Result<StateFile> {
        let folder = system.path(FOLDER);
        fs::create_dir_all(&folder)?;
        let lock = File::open(&folder)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another 'namehop setup' is at work")),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let records = Self::read(system)?;
        Ok(StateFile { system: system.clone(), records, _lock: lock })
    }

    /// The records, for looking only.
    ///
    /// # Errors
    /// When there are some and they cannot be read.
    pub fn read(system: &System) -> io::Result<Vec<Record>> {
        let Some(text) = system.contents(FILE)? else { return Ok(Vec::new()) };
        serde_json::from_str(&text).map_err(|error| io::Error::other(format!("{FILE}: {error}")))
    }

    /// What was changed, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Says that a change will be made. What was before the first of several changes of one thing stays.
    pub(crate) fn note(&mut self, change: Change, before: Before) -> io::Result<()> {
        let before = self.record_of(&change).map_or(before, |record| record.before.clone());
        self.put(Record { change, before, made: None })
    }

    /// Says how a change that was noted has turned out.
    pub(crate) fn note_made(&mut self, made: Change) -> io::Result<()> {
        if let Some(record) = self.records.iter_mut().find(|record| record.change.is_of_same(&made)) {
            record.made = Some(made);
        }
        self.save()
    }

    /// What is recorded of the thing that a change is of.
    pub(crate) fn record_of(&self, change: &Change) -> Option<&Record> {
        self.records.iter().find(|record| record.change.is_of_same(change))
    }

    /// Puts a record in the place of the one of the same thing, or behind all others.
    pub(crate) fn put(&mut self, record: Record) -> io::Result<()> {
        match self.records.iter_mut().find(|known| known.change.is_of_same(&record.change)) {
            Some(known) => *known = record,
            None => self.records.push(record),
        }
        self.save()
    }

    /// Forgets a change that was taken back.
    pub(crate) fn forget(&mut self, change: &Change) -> io::Result<()> {
        self.records.retain(|record| !record.change.is_of_same(change));
        self.save()
    }

    fn save(&self) -> io::Result<()> {
        if self.records.is_empty() {
            self.system.remove_file(FILE)?;
            self.system.remove_unfinished(FILE);
            // Somebody may have put something else there.
            let _ = fs::remove_dir(self.system.path(FOLDER));
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&self.records).map_err(io::Error::other)?;
        self.system.replace_file(FILE, &(text + "\n"))
    }
}
