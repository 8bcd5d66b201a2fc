//! The journal file of the saved state: open and fold, append, withdraw, rewrite.
//!
//! The journal stays open while the router runs. Before each change the journal checks that its file is still the one
//! at its path. If the file was deleted or replaced, its content is copied back to the path first.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use namehop_config::file_access::is_full_or_read_only;
use tracing::{info, warn};

use super::files::{self, Span, Temporary};
use super::format::{StateError, header_line, line_of, read};
use super::record::{Record, SavedState, identity};
use super::rewrite::{Rewriting, rewrite};

/// The open state file.
#[derive(Debug)]
pub struct Journal {
    pub(super) path: PathBuf,
    /// Open for reading, and also for appending if `is_writable`.
    pub(super) file: File,
    /// Device and inode number of `file`.
    identity: (u64, u64),
    is_writable: bool,
    /// `file` is in memory: there was no state file at the start and the disk was full or read-only.
    is_in_memory: bool,
    /// Held while the journal is open, so that two routers never write one file.
    lock: Option<File>,
    pub(super) length: u64,
    pub(super) length_after_rewrite: u64,
    /// Bytes to write before the next record: a header, or the end of an unfinished line.
    lead: Vec<u8>,
    /// Length of the file without the last appended record.
    withdrawal: Option<u64>,
    /// There are no damaged lines, or a copy of them was made, so a rewrite may drop them.
    pub(super) may_shorten: bool,
    pub(super) rewriting: Option<Rewriting>,
    /// Contains the [`identity`] of each face that the file has records about, and of some other faces.
    faces: HashSet<String>,
}

impl Journal {
    /// Opens the file and returns its content; creates the file and its folder if missing. A file that is readable but
    /// not writable, because the disk is full or read-only, is used; then [`append`](Self::append) fails until the file
    /// is writable. If there is no file on such a disk, the state is empty and `append` fails likewise.
    ///
    /// # Errors
    /// The file cannot be read or created for another reason, is in use, or has a newer version. Damaged content is no
    /// error: the file is copied aside, and its readable lines are used.
    pub fn open(path: &Path) -> Result<(Journal, SavedState), StateError> {
        let io_error = |source| StateError::Io { path: path.to_owned(), source };
        if let Some(folder) = files::folder(path) {
            match fs::create_dir_all(folder) {
                Err(error) if is_full_or_read_only(&error) => return Journal::open_in_memory(path, None, &error),
                made => made.map_err(io_error)?,
            }
        }
        let lock = files::lock(path).map_err(|fault| StateError::of_lock(fault, path))?;
        let existing = match files::open(path, false) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(io_error(error)),
        };
        // A router that could create no lock file has locked the journal itself.
        let has_lock_file = lock.as_ref().is_some_and(|lock| files::is_lock_of(lock, path));
        if has_lock_file && existing.as_ref().is_some_and(files::is_locked) {
            return Err(StateError::InUse { path: path.to_owned(), lock: path.to_owned() });
        }
        let Some(existing) = existing else {
            let state = SavedState::default();
            let (file, length) = match rewrite(path, &state) {
                Err(error) if is_full_or_read_only(&error) => return Journal::open_in_memory(path, lock, &error),
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
            "cannot rewrite the state file: its contents are in effect, but commands are refused until their changes \
             can be saved"
        );
        let length = existing.metadata().map_err(io_error)?.len();
        let mut journal = Journal::new(path, existing, length, false, lock, &state).map_err(io_error)?;
        journal.may_shorten = may_shorten;
        journal.lead = journal.missing_lead().map_err(io_error)?;
        Ok((journal, state))
    }

    /// Creates a journal in memory. The first change for which the disk has room writes it to its path.
    fn open_in_memory(
        path: &Path,
        lock: Option<File>,
        obstacle: &io::Error,
    ) -> Result<(Journal, SavedState), StateError> {
        let io_error = |source| StateError::Io { path: path.to_owned(), source };
        warn!(
            file = %path.display(), error = %obstacle,
            "cannot create the state file: commands are refused until their changes can be saved"
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

    /// Appends a change. After return the change survives the end of this process, even by a crash.
    ///
    /// # Errors
    /// The file cannot be written, for example because the disk is full. The file is then unchanged.
    pub fn append(&mut self, record: &Record) -> Result<(), StateError> {
        self.withdrawal = None;
        self.ensure_in_place()?;
        let written = self.try_append(record);
        written.map_err(|source| StateError::Io { path: self.path.clone(), source })
    }

    /// Removes the last appended record, because its change did not take effect.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn withdraw(&mut self) -> Result<(), StateError> {
        let Some(length) = self.withdrawal.take() else { return Ok(()) };
        self.file.set_len(length).map_err(|source| StateError::Io { path: self.path.clone(), source })?;
        self.length = length;
        Ok(())
    }

    /// Makes the last appended record final: [`withdraw`](Self::withdraw) then removes nothing.
    pub fn keep(&mut self) {
        self.withdrawal = None;
    }

    /// Returns whether the file has records about the face with this [`identity`]. May be `true` for a face with
    /// obsolete records only, but is never `false` for a face with current records.
    pub fn knows_face(&self, face: &str) -> bool {
        self.faces.contains(face)
    }

    fn try_append(&mut self, record: &Record) -> io::Result<()> {
        let mut bytes = self.lead.clone();
        bytes.extend(line_of(record)?);
        // One write call for the whole line, so that a killed process leaves all of it or none.
        if let Err(error) = (&self.file).write_all(&bytes) {
            // On a full disk a part of the line may have been written. If it cannot be removed, the next change begins
            // a new line.
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

    /// Writes the file again if it was deleted or replaced.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn restore_if_missing(&mut self) -> Result<(), StateError> {
        let found = fs::symlink_metadata(&self.path);
        match found.is_ok_and(|found| files::identity(&found) == self.identity) {
            true => Ok(()),
            false => self.ensure_in_place(),
        }
    }

    /// Ensures that appended records go to the file at the path, and that no other router uses it. Also finishes and
    /// starts rewrites.
    fn ensure_in_place(&mut self) -> Result<(), StateError> {
        let path = self.path.clone();
        let io_error = |source| StateError::Io { path: path.clone(), source };
        let found = match fs::symlink_metadata(&self.path) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(io_error(error)),
        };
        if self.is_in_memory && found.is_some() {
            let appeared = "a state file appeared after the router started; restart the router to use it";
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
            warn!(file = %self.path.display(), %error, "cannot shorten the state file");
            // The next attempt follows when the file has grown by the same factor again.
            self.length_after_rewrite = self.length;
        }
        self.shorten_when_long();
        Ok(())
    }

    /// Locks the journal, unless this process still holds its lock file.
    fn lock_again(&mut self) -> Result<(), StateError> {
        if self.lock.as_ref().is_some_and(|lock| files::is_lock_of(lock, &self.path)) {
            return Ok(());
        }
        // Also releases a lock of the journal itself, which was taken for want of a lock file.
        self.lock = None;
        if let Some(folder) = files::folder(&self.path) {
            fs::create_dir_all(folder).map_err(|source| StateError::Io { path: self.path.clone(), source })?;
        }
        self.lock = files::lock(&self.path).map_err(|fault| StateError::of_lock(fault, &self.path))?;
        Ok(())
    }

    /// Copies the journal back to its path, where the file is missing or another one.
    fn put_back(&mut self) -> io::Result<()> {
        if let Some(rewriting) = self.rewriting.take() {
            // The rewrite would produce another file for the same path.
            drop(rewriting.thread.join());
        }
        let temporary = Temporary::create(&self.path)?;
        io::copy(&mut Span::new(&self.file, 0, self.length), &mut temporary.file()?)?;
        let was_in_memory = self.is_in_memory;
        self.adopt(temporary, self.length)?;
        match was_in_memory {
            true => info!(file = %self.path.display(), "state file created"),
            false => warn!(
                file = %self.path.display(),
                "the state file was deleted or replaced: restored its contents"
            ),
        }
        Ok(())
    }

    /// Makes the file at the path, which is the journal, writable, and detects changes by other programs.
    fn check_length(&mut self, length: u64) -> io::Result<()> {
        if !self.is_writable {
            let file = files::open(&self.path, true)?;
            if files::identity(&file.metadata()?) != self.identity {
                return Err(io::Error::other("the file was replaced during the check"));
            }
            self.file = file;
            self.is_writable = true;
        }
        if length != self.length {
            warn!(
                file = %self.path.display(), was_bytes = self.length, is_bytes = length,
                "another program changed the state file; state missing from it will not survive a restart"
            );
            self.length = length;
            self.lead = self.missing_lead()?;
        }
        Ok(())
    }

    /// Returns the bytes to write before the next record.
    fn missing_lead(&self) -> io::Result<Vec<u8>> {
        let Some(last) = self.length.checked_sub(1) else { return header_line() };
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, last)?;
        Ok(if byte == *b"\n" { Vec::new() } else { b"\n".to_vec() })
    }

    /// Makes the temporary file the journal.
    pub(super) fn adopt(&mut self, temporary: Temporary, length: u64) -> io::Result<()> {
        let file = temporary.install(&self.path)?;
        self.identity = files::identity(&file.metadata()?);
        self.file = file;
        self.is_writable = true;
        self.is_in_memory = false;
        self.length = length;
        Ok(())
    }

    /// Writes all data from the page cache to the disk.
    ///
    /// # Errors
    /// The disk reports a fault.
    pub fn sync(&self) -> Result<(), StateError> {
        self.file.sync_data().map_err(|source| StateError::Io { path: self.path.clone(), source })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
