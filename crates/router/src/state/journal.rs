//! The file behind the saved state: open and fold, append, rewrite.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::{info, warn};

use super::record::{Record, SavedState};
use super::shorten::copy_counting;

/// Value of `format` in the header.
const FORMAT: &str = "namehop-state";
/// Version of the records that this code writes.
const VERSION: u32 = 1;
/// The journal is rewritten while running once it is this many times longer than after the last rewrite …
const REWRITE_FACTOR: u64 = 4;
/// … and at least this long, in bytes.
const REWRITE_MIN_BYTES: u64 = 16 << 20;
/// Ending of the file that a rewrite goes to first.
const TEMPORARY: &str = "new";

/// Why the state file cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file or its folder cannot be read or written.
    #[error("state file {path}: {source}; choose another with `file` in section [state], or set `enabled = false` there", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A newer Namehop wrote it.
    #[error("state file {path} has version {version}, this Namehop knows {VERSION}; use a newer Namehop or move the file away", path = path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// Another router has it open.
    #[error("state file {path} is in use by another router; choose another with `file` in section [state]", path = path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

/// The open state file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Held as long as the journal is open, so that two routers never write one file.
    _lock: File,
    length: u64,
    length_after_rewrite: u64,
    rewriting: Option<Rewriting>,
}

/// A rewrite under way on a thread of its own, because a long journal takes seconds and commands must not wait.
#[derive(Debug)]
struct Rewriting {
    /// Writes the records that still count to the temporary file; gives its length.
    thread: JoinHandle<io::Result<u64>>,
    /// What is in the journal up to here is in the temporary file; what came later is not.
    covers: u64,
}

impl Journal {
    /// Opens the file, makes it (with its folder) where there is none, and gives what it holds.
    ///
    /// # Errors
    /// The file cannot be read or written, is in use, or is of a newer version. Content that makes no sense is no
    /// error: the file is set aside, and what could be read of it counts.
    pub fn open(path: &Path) -> Result<(Journal, SavedState), StateError> {
        let io_error = |source| StateError::Io { path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(io_error)?;
        }
        let lock_path = sibling(path, "lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path).map_err(io_error)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(StateError::InUse { path: path.to_owned() }),
            Err(fs::TryLockError::Error(source)) => return Err(io_error(source)),
        }
        let state = match File::open(path) {
            Ok(file) => {
                let (state, faults) = read(path, BufReader::new(file))?;
                if let Some((line, fault)) = faults.first() {
                    set_aside(path, *line, fault, faults.len()).map_err(io_error)?;
                }
                state
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => SavedState::default(),
            Err(error) => return Err(io_error(error)),
        };
        let (file, length) = rewrite(path, &state).map_err(io_error)?;
        let journal =
            Journal { path: path.to_owned(), file, _lock: lock, length, length_after_rewrite: length, rewriting: None };
        Ok((journal, state))
    }

    /// Puts a change on file. On return it survives the end of this process, however it ends.
    ///
    /// # Errors
    /// The file cannot be written, for example because the disk is full.
    pub fn append(&mut self, record: &Record) -> Result<(), StateError> {
        self.try_append(record).map_err(|source| StateError::Io { path: self.path.clone(), source })
    }

    fn try_append(&mut self, record: &Record) -> io::Result<()> {
        if let Some(rewriting) = self.rewriting.take_if(|rewriting| rewriting.thread.is_finished())
            && let Err(error) = self.finish_rewrite(rewriting)
        {
            warn!(file = %self.path.display(), %error, "the state file could not be shortened");
            // Not at once again: the next attempt comes when it has grown as much once more.
            self.length_after_rewrite = self.length;
        }
        let line = line_of(record)?;
        // One write call for the whole line: a killed process leaves all of it or none.
        if let Err(error) = self.file.write_all(&line) {
            // On a full disk half a line may be there, which would spoil the next one.
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.length += line.len() as u64;
        let is_long = self.length >= REWRITE_MIN_BYTES && self.length >= REWRITE_FACTOR * self.length_after_rewrite;
        if is_long && self.rewriting.is_none() {
            let (path, covers) = (self.path.clone(), self.length);
            let thread = thread::Builder::new().name("state file".to_owned()).spawn(move || {
                write_temporary(&path, |writer| {
                    copy_counting(|| Ok(BufReader::new(File::open(&path)?.take(covers))), writer)
                })
            });
            match thread {
                Ok(thread) => self.rewriting = Some(Rewriting { thread, covers }),
                // The change is on file; only the file stays long.
                Err(error) => warn!(file = %self.path.display(), %error, "the state file could not be shortened"),
            }
        }
        Ok(())
    }

    /// Adds to the rewritten file what came in the meantime, and puts it in the place of the journal.
    fn finish_rewrite(&mut self, rewriting: Rewriting) -> io::Result<()> {
        let length = rewriting.thread.join().map_err(|_| io::Error::other("the rewriting thread failed"))??;
        let mut rest = File::open(&self.path)?;
        rest.seek(SeekFrom::Start(rewriting.covers))?;
        let mut file = OpenOptions::new().append(true).open(sibling(&self.path, TEMPORARY))?;
        let added = io::copy(&mut rest, &mut file)?;
        install(&self.path)?;
        info!(from_bytes = self.length, to_bytes = length + added, "state file shortened");
        self.file = file;
        self.length = length + added;
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

fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}

/// First line of the file.
pub(super) fn header_line() -> io::Result<Vec<u8>> {
    line_of(&Record::Header { format: FORMAT.to_owned(), version: VERSION })
}

/// A record as a line of the file.
pub(super) fn line_of(record: &Record) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}

/// Lines that make no sense: their numbers and what is wrong.
pub(super) type Faults = Vec<(usize, String)>;

/// Folds the lines of a journal; `path` is for messages only.
pub(super) fn read(path: &Path, mut file: impl BufRead) -> Result<(SavedState, Faults), StateError> {
    let io_error = |source| StateError::Io { path: path.to_owned(), source };
    let mut state = SavedState::default();
    let mut faults = Faults::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(io_error)? == 0 {
            break;
        }
        match serde_json::from_slice::<Record>(&line) {
            Ok(Record::Header { version, .. }) if version > VERSION => {
                return Err(StateError::Newer { path: path.to_owned(), version });
            }
            Ok(Record::Header { format, .. }) if format != FORMAT => {
                faults.push((number, format!("format is `{format}`, not `{FORMAT}`")));
            }
            Ok(Record::Header { .. }) if number == 1 => {}
            Ok(record) if number > 1 => state.fold(record),
            Ok(_) => faults.push((number, "the header is missing".to_owned())),
            Err(error) => faults.push((number, error.to_string())),
        }
    }
    Ok((state, faults))
}

/// Keeps a copy of a damaged file beside it and says so.
fn set_aside(path: &Path, line: usize, fault: &str, count: usize) -> io::Result<()> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    let aside = sibling(path, &format!("damaged-{seconds}"));
    fs::copy(path, &aside)?;
    warn!(
        file = %path.display(), copy = %aside.display(), first_line = line, lines = count, fault,
        "the state file is damaged: a copy was set aside, the lines that can be read are used"
    );
    Ok(())
}

/// Replaces the file in one step by one that holds just this state.
fn rewrite(path: &Path, state: &SavedState) -> io::Result<(File, u64)> {
    let length = write_temporary(path, |writer| {
        let mut length = 0;
        for record in state.records() {
            let line = line_of(&record)?;
            length += line.len() as u64;
            writer.write_all(&line)?;
        }
        Ok(length)
    })?;
    install(path)?;
    Ok((OpenOptions::new().append(true).open(path)?, length))
}

/// Writes the temporary file: the header, and what `write_records` writes, which gives the length of that. Gives the
/// length of the file in bytes.
fn write_temporary(
    path: &Path,
    write_records: impl FnOnce(&mut BufWriter<File>) -> io::Result<u64>,
) -> io::Result<u64> {
    let mut writer = BufWriter::new(File::create(sibling(path, TEMPORARY))?);
    let header = header_line()?;
    writer.write_all(&header)?;
    let length = header.len() as u64 + write_records(&mut writer)?;
    writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(length)
}

/// Puts the temporary file in the place of the journal.
fn install(path: &Path) -> io::Result<()> {
    fs::rename(sibling(path, TEMPORARY), path)?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
