//! The file behind the saved state: open and fold, append, withdraw, rewrite.
//!
//! The journal is held open as long as the router runs. Before each change it is made sure that this file is still the one
//! at its path; if not (somebody deleted it, or put another one there), what it holds is copied back there first.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use tracing::{info, warn};

use super::files::{self, Span, Temporary};
use super::format::{StateError, header_line, line_of, read};
use super::record::{Record, SavedState, identity};
use super::shorten::copy_counting;
use crate::paths::is_full_or_read_only;

/// The journal is rewritten while running once it is this many times longer than after the last rewrite …
const REWRITE_FACTOR: u64 = 4;
/// … and at least this long, in bytes.
const REWRITE_MIN_BYTES: u64 = 16 << 20;

/// The open state file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// Open for reading, and for appending if `is_writable`.
    file: File,
    /// Device and number of `file`.
    identity: (u64, u64),
    is_writable: bool,
    /// `file` is in memory, because the disk was full or read-only at the start and no state file was there.
    is_in_memory: bool,
    /// Held as long as the journal is open, so that two routers never write one file.
    lock: Option<File>,
    length: u64,
    length_after_rewrite: u64,
    /// To be written before the next record: a header, or the end of a line that was not finished.
    lead: Vec<u8>,
    /// Length without the record that was appended last.
    withdrawal: Option<u64>,
    /// Damaged lines were set aside or there are none, so nothing is lost when lines that make no sense are left out.
    may_shorten: bool,
    rewriting: Option<Rewriting>,
    /// By [`identity`]: all faces that the file says something about, and some that it no longer does.
    faces: HashSet<String>,
}

/// A rewrite under way on a thread of its own, because a long journal takes seconds and commands must not wait.
#[derive(Debug)]
struct Rewriting {
    /// Writes the records that still count to a temporary file; gives it and its length.
    thread: JoinHandle<io::Result<(Temporary, u64)>>,
    /// What is in the journal up to here is in the temporary file; what came later is not.
    covers: u64,
}

impl Journal {
    /// Opens the file, makes it (with its folder) where there is none, and gives what it holds. A file that can be read
    /// and not be written, because the disk is full or read-only, is used; then [`append`](Self::append) fails until it
    /// can be written. So does a router that finds no file on such a disk; it begins with nothing.
    ///
    /// # Errors
    /// The file cannot be read or made for another reason, is in use, or is of a newer version. Content that makes no sense is no
    /// error: the file is set aside, and what could be read of it counts.
    pub fn open(path: &Path) -> Result<(Journal, SavedState), StateError> {
        let io_error = |source| StateError::Io { path: path.to_owned(), source };
        if let Some(folder) = files::folder(path) {
            match fs::create_dir_all(folder) {
                Err(error) if is_full_or_read_only(&error) => return Journal::without_place(path, None, &error),
                made => made.map_err(io_error)?,
            }
        }
        let lock = files::lock(path).map_err(|fault| StateError::of_lock(fault, path))?;
        let existing = match files::open(path, false) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(io_error(error)),
        };
        // A router that could make no lock file has locked the journal itself.
        let has_lock_file = lock.as_ref().is_some_and(|lock| files::is_lock_of(lock, path));
        if has_lock_file && existing.as_ref().is_some_and(files::is_locked) {
            return Err(StateError::InUse { path: path.to_owned(), lock: path.to_owned() });
        }
        let Some(existing) = existing else {
            let state = SavedState::default();
            let (file, length) = match rewrite(path, &state) {
                Err(error) if is_full_or_read_only(&error) => return Journal::without_place(path, lock, &error),
                rewritten => rewritten.map_err(io_error)?,
            };
            return Ok((Journal::new(path, file, length, true, lock, &state).map_err(io_error)?, state));
        };
        let (state, faults) = read(path, BufReader::new(&existing))?;
        let aside = match faults.first() {
            None => Ok(()),
            Some((line, fault)) => files::set_aside(path, &existing, *line, fault, faults.len()),
        };
        let may_shorten = aside.is_ok();
        let error = match aside.and_then(|()| rewrite(path, &state)) {
            Ok((file, length)) => {
                return Ok((Journal::new(path, file, length, true, lock, &state).map_err(io_error)?, state));
            }
            Err(error) => error,
        };
        warn!(
            file = %path.display(), %error, damaged_lines = faults.len(),
            "the state file could be read and not be written anew: what it holds is in effect, and commands are refused \
             as long as their changes cannot be saved"
        );
        let length = existing.metadata().map_err(io_error)?.len();
        let mut journal = Journal::new(path, existing, length, false, lock, &state).map_err(io_error)?;
        journal.may_shorten = may_shorten;
        journal.lead = journal.missing_lead().map_err(io_error)?;
        Ok((journal, state))
    }

    /// A journal in memory, which goes to its place with the first change for which there is room.
    fn without_place(
        path: &Path,
        lock: Option<File>,
        obstacle: &io::Error,
    ) -> Result<(Journal, SavedState), StateError> {
        let io_error = |source| StateError::Io { path: path.to_owned(), source };
        warn!(
            file = %path.display(), error = %obstacle,
            "there is no state file and none can be made: commands are refused as long as their changes cannot be saved"
        );
        let file = files::in_memory().map_err(io_error)?;
        let header = header_line().map_err(io_error)?;
        (&file).write_all(&header).map_err(io_error)?;
        let state = SavedState::default();
        let mut journal = Journal::new(path, file, header.len() as u64, true, lock, &state).map_err(io_error)?;
        journal.is_in_memory = true;
        Ok((journal, state))
    }

    fn new(
        path: &Path,
        file: File,
        length: u64,
        is_writable: bool,
        lock: Option<File>,
        state: &SavedState,
    ) -> io::Result<Self> {
        let routes = state.routes.keys().map(|key| identity(&key.face, key.local.as_deref()));
        let mut faces: HashSet<String> = state.faces.keys().cloned().collect();
        for face in routes {
            if !faces.contains(&*face) {
                faces.insert(face.into_owned());
            }
        }
        Ok(Journal {
            path: path.to_owned(),
            identity: files::identity(&file.metadata()?),
            file,
            is_writable,
            is_in_memory: false,
            lock,
            length,
            length_after_rewrite: length,
            lead: Vec::new(),
            withdrawal: None,
            may_shorten: true,
            rewriting: None,
            faces,
        })
    }

    /// Puts a change on file. On return it survives the end of this process, however it ends.
    ///
    /// # Errors
    /// The file cannot be written, for example because the disk is full. Then it says what it said before.
    pub fn append(&mut self, record: &Record) -> Result<(), StateError> {
        self.withdrawal = None;
        self.make_ready()?;
        let written = self.try_append(record);
        written.map_err(|source| StateError::Io { path: self.path.clone(), source })
    }

    /// Takes the record that was appended last back from the file, because what it says did not come about.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn withdraw(&mut self) -> Result<(), StateError> {
        let Some(length) = self.withdrawal.take() else { return Ok(()) };
        self.file.set_len(length).map_err(|source| StateError::Io { path: self.path.clone(), source })?;
        self.length = length;
        Ok(())
    }

    /// The record that was appended last stays: nothing is taken back by [`withdraw`](Self::withdraw).
    pub fn keep(&mut self) {
        self.withdrawal = None;
    }

    /// Whether the file says something about the face with this [`identity`]; it may be wrong only in saying so.
    pub fn knows_face(&self, face: &str) -> bool {
        self.faces.contains(face)
    }

    fn try_append(&mut self, record: &Record) -> io::Result<()> {
        let mut bytes = self.lead.clone();
        bytes.extend(line_of(record)?);
        // One write call for the whole line: a killed process leaves all of it or none.
        if let Err(error) = (&self.file).write_all(&bytes) {
            // On a full disk a part of the line may be there. If it cannot be removed, the next change begins a new line.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.withdrawal = Some(self.length + self.lead.len() as u64);
        self.length += bytes.len() as u64;
        self.lead.clear();
        match record {
            Record::Face(face) => self.note_face(&identity(&face.uri, face.local_uri.as_deref())),
            Record::Route(route) => self.note_face(&identity(&route.key.face, route.key.local.as_deref())),
            Record::FaceRemoved(face) => drop(self.faces.remove(face)),
            _ => {}
        }
        Ok(())
    }

    fn note_face(&mut self, face: &str) {
        if !self.faces.contains(face) {
            self.faces.insert(face.to_owned());
        }
    }

    /// Writes the file again if somebody deleted or replaced it.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn keep_in_place(&mut self) -> Result<(), StateError> {
        let found = fs::symlink_metadata(&self.path);
        match found.is_ok_and(|found| files::identity(&found) == self.identity) {
            true => Ok(()),
            false => self.make_ready(),
        }
    }

    /// Makes sure that what is appended goes to the file at the path, and to no other router's.
    fn make_ready(&mut self) -> Result<(), StateError> {
        let path = self.path.clone();
        let io_error = |source| StateError::Io { path: path.clone(), source };
        let found = match fs::symlink_metadata(&self.path) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(io_error(error)),
        };
        if self.is_in_memory && found.is_some() {
            let appeared = "a state file appeared that was not there at the start; start the router again to use it";
            return Err(io_error(io::Error::other(appeared)));
        }
        let in_place = found.filter(|found| files::identity(found) == self.identity);
        self.lock_again()?;
        let ready = match in_place {
            None => self.put_back(),
            Some(found) => self.check_length(found.len()),
        };
        ready.map_err(io_error)?;
        if let Some(rewriting) = self.rewriting.take_if(|rewriting| rewriting.thread.is_finished())
            && let Err(error) = self.finish_rewrite(rewriting)
        {
            warn!(file = %self.path.display(), %error, "the state file could not be shortened");
            // Not at once again: the next attempt comes when it has grown as much once more.
            self.length_after_rewrite = self.length;
        }
        self.shorten_when_long();
        Ok(())
    }

    /// Locks the journal, unless its lock file is in place and locked by this process.
    fn lock_again(&mut self) -> Result<(), StateError> {
        if self.lock.as_ref().is_some_and(|lock| files::is_lock_of(lock, &self.path)) {
            return Ok(());
        }
        // Also where the journal itself was locked for want of a lock file.
        self.lock = None;
        if let Some(folder) = files::folder(&self.path) {
            fs::create_dir_all(folder).map_err(|source| StateError::Io { path: self.path.clone(), source })?;
        }
        self.lock = files::lock(&self.path).map_err(|fault| StateError::of_lock(fault, &self.path))?;
        Ok(())
    }

    /// The file at the path is another one, or gone: puts a copy of the journal there.
    fn put_back(&mut self) -> io::Result<()> {
        if let Some(rewriting) = self.rewriting.take() {
            // Its result would be one more file for the same place.
            drop(rewriting.thread.join());
        }
        let temporary = Temporary::create(&self.path)?;
        io::copy(&mut Span::new(&self.file, 0, self.length), &mut temporary.file()?)?;
        let was_in_memory = self.is_in_memory;
        self.adopt(temporary, self.length)?;
        match was_in_memory {
            true => info!(file = %self.path.display(), "the state file could be made"),
            false => warn!(
                file = %self.path.display(),
                "somebody deleted or replaced the state file: it was written again as it was"
            ),
        }
        Ok(())
    }

    /// The file at the path is the journal: makes it writable, and notices what others wrote to it.
    fn check_length(&mut self, length: u64) -> io::Result<()> {
        if !self.is_writable {
            let file = files::open(&self.path, true)?;
            if files::identity(&file.metadata()?) != self.identity {
                return Err(io::Error::other("another file was put there at this moment"));
            }
            self.file = file;
            self.is_writable = true;
        }
        if length != self.length {
            warn!(
                file = %self.path.display(), was_bytes = self.length, is_bytes = length,
                "another program has changed the state file; what is missing there will not survive a restart"
            );
            self.length = length;
            self.lead = self.missing_lead()?;
        }
        Ok(())
    }

    /// What has to be written so that a record can follow.
    fn missing_lead(&self) -> io::Result<Vec<u8>> {
        let Some(last) = self.length.checked_sub(1) else { return header_line() };
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, last)?;
        Ok(if byte == *b"\n" { Vec::new() } else { b"\n".to_vec() })
    }

    /// Makes the temporary file the journal.
    fn adopt(&mut self, temporary: Temporary, length: u64) -> io::Result<()> {
        let file = temporary.install(&self.path)?;
        self.identity = files::identity(&file.metadata()?);
        self.file = file;
        self.is_writable = true;
        self.is_in_memory = false;
        self.length = length;
        Ok(())
    }

    /// Starts to rewrite a journal that has grown long.
    fn shorten_when_long(&mut self) {
        let is_long = self.length >= REWRITE_MIN_BYTES && self.length >= REWRITE_FACTOR * self.length_after_rewrite;
        if !is_long || !self.may_shorten || self.rewriting.is_some() {
            return;
        }
        let (path, covers) = (self.path.clone(), self.length);
        let thread = self.file.try_clone().and_then(|file| {
            thread::Builder::new().name("state file".to_owned()).spawn(move || {
                write_temporary(&path, |writer| {
                    copy_counting(|| Ok(BufReader::new(Span::new(&file, 0, covers))), writer)
                })
            })
        });
        match thread {
            Ok(thread) => self.rewriting = Some(Rewriting { thread, covers }),
            // What is on file stays there; only the file stays long.
            Err(error) => warn!(file = %self.path.display(), %error, "the state file could not be shortened"),
        }
    }

    /// Adds to the rewritten file what came in the meantime, and puts it in the place of the journal.
    fn finish_rewrite(&mut self, rewriting: Rewriting) -> io::Result<()> {
        let joined = rewriting.thread.join();
        let (temporary, length) = joined.map_err(|_| io::Error::other("the rewriting thread failed"))??;
        let mut rest = Span::new(&self.file, rewriting.covers, self.length);
        let added = io::copy(&mut rest, &mut temporary.file()?)?;
        let before = self.length;
        self.adopt(temporary, length + added)?;
        info!(from_bytes = before, to_bytes = self.length, "state file shortened");
        self.length_after_rewrite = self.length;
        Ok(())
    }

    /// Has the system put everything on the disk itself.
    ///
    /// # Errors
    /// The disk reports a fault.
    pub fn sync(&self) -> Result<(), StateError> {
        self.file.sync_data().map_err(|source| StateError::Io { path: self.path.clone(), source })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Replaces the file in one step by one that holds just this state; gives it and its length in bytes.
fn rewrite(path: &Path, state: &SavedState) -> io::Result<(File, u64)> {
    let (temporary, length) = write_temporary(path, |writer| {
        let mut length = 0;
        for record in state.records() {
            let line = line_of(&record)?;
            length += line.len() as u64;
            writer.write_all(&line)?;
        }
        Ok(length)
    })?;
    Ok((temporary.install(path)?, length))
}

/// Writes a temporary file: the header, and what `write_records` writes, which gives the length of that. Gives the file and
/// its length in bytes.
fn write_temporary(
    path: &Path,
    write_records: impl FnOnce(&mut BufWriter<&File>) -> io::Result<u64>,
) -> io::Result<(Temporary, u64)> {
    let temporary = Temporary::create(path)?;
    let mut writer = BufWriter::new(temporary.file()?);
    let header = header_line()?;
    writer.write_all(&header)?;
    let length = header.len() as u64 + write_records(&mut writer)?;
    writer.flush()?;
    drop(writer);
    temporary.file()?.sync_all()?;
    Ok((temporary, length))
}
