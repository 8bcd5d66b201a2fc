//! The file that records the state before each change, so that all changes can be undone, even after the program was
//! killed or the host restarted.

use std::fs::{self, File, TryLockError};
use std::io;

use serde::{Deserialize, Serialize};

use crate::System;
use crate::step::{Before, HostChange};

/// Paths of the file and its folder.
const FOLDER: &str = "/var/lib/namehop-setup";
const FILE: &str = "/var/lib/namehop-setup/state.json";

/// A change that was made, or was being made when the program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The change.
    pub change: HostChange,
    /// The state before the first change of the same object.
    pub before: Before,
    /// The change as made. `None` if the program ended during the change, which may then be partly done.
    #[serde(default)]
    pub made: Option<HostChange>,
}

/// All changes, in the order in which they were first made.
#[derive(Debug)]
pub struct StateFile {
    system: System,
    records: Vec<Record>,
    /// Lock on the folder, which keeps other processes away while it is open.
    _lock: File,
}

impl StateFile {
    /// The path of the file, for messages.
    pub const PATH: &'static str = FILE;

    /// Locks and reads the records; there are none at first.
    ///
    /// # Errors
    /// Another setup is running, or the file cannot be read.
    pub fn open(system: &System) -> io::Result<StateFile> {
        let folder = system.path(FOLDER);
        fs::create_dir_all(&folder)?;
        let lock = File::open(&folder)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another 'namehop setup' is running; wait until it ends"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let records = Self::read(system)?;
        Ok(StateFile { system: system.clone(), records, _lock: lock })
    }

    /// Reads the records without locking.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn read(system: &System) -> io::Result<Vec<Record>> {
        let Some(text) = system.contents(FILE)? else { return Ok(Vec::new()) };
        serde_json::from_str(&text).map_err(|error| io::Error::other(format!("{FILE}: {error}")))
    }

    /// Returns the recorded changes, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Records that a change is about to be made. The state before the first change of an object is kept.
    pub(crate) fn note(&mut self, change: HostChange, before: Before) -> io::Result<()> {
        let before = self.record_of(&change).map_or(before, |record| record.before.clone());
        self.put(Record { change, before, made: None })
    }

    /// Records how a change was made.
    pub(crate) fn note_made(&mut self, made: HostChange) -> io::Result<()> {
        if let Some(record) = self.records.iter_mut().find(|record| record.change.is_of_same(&made)) {
            record.made = Some(made);
        }
        self.save()
    }

    /// Returns the record about the object of a change.
    pub(crate) fn record_of(&self, change: &HostChange) -> Option<&Record> {
        self.records.iter().find(|record| record.change.is_of_same(change))
    }

    /// Replaces the record about the same object, or appends a new one.
    pub(crate) fn put(&mut self, record: Record) -> io::Result<()> {
        match self.records.iter_mut().find(|known| known.change.is_of_same(&record.change)) {
            Some(known) => *known = record,
            None => self.records.push(record),
        }
        self.save()
    }

    /// Removes the record of a change that was undone.
    pub(crate) fn forget(&mut self, change: &HostChange) -> io::Result<()> {
        self.records.retain(|record| !record.change.is_of_same(change));
        self.save()
    }

    fn save(&self) -> io::Result<()> {
        if self.records.is_empty() {
            self.system.remove_file(FILE)?;
            self.system.remove_unfinished(FILE);
            // Fails if the folder has other files.
            let _ = fs::remove_dir(self.system.path(FOLDER));
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&self.records).map_err(io::Error::other)?;
        self.system.replace_file(FILE, &(text + "\n"))
    }
}
