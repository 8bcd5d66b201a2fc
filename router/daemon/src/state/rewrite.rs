//! Rewriting the journal: at opening, and on a separate thread once it has grown long.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;
use std::thread::{self, JoinHandle};

use tracing::{info, warn};

use super::files::{Span, Temporary};
use super::format::{header_line, line_of};
use super::journal::Journal;
use super::record::SavedState;
use super::shorten::copy_counting;

/// The journal is rewritten while running once it is this many times longer than after the last rewrite …
const REWRITE_FACTOR: u64 = 4;
/// … and at least this long, in bytes.
const REWRITE_MIN_BYTES: u64 = 16 << 20;

/// A running rewrite on a separate thread, because a long journal takes seconds and commands must not wait.
#[derive(Debug)]
pub(super) struct Rewriting {
    /// Writes the current records to a temporary file; returns the file and its length in bytes.
    pub(super) thread: JoinHandle<io::Result<(Temporary, u64)>>,
    /// The temporary file covers the journal up to this offset, in bytes; later records are missing.
    covers: u64,
}

impl Journal {
    /// Starts rewriting a journal that has grown long.
    pub(super) fn shorten_when_long(&mut self) {
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
            // No record is lost; the file only stays long.
            Err(error) => warn!(file = %self.path.display(), %error, "cannot shorten the state file"),
        }
    }

    /// Appends the records written since the start of the rewrite, and replaces the journal by the rewritten file.
    pub(super) fn finish_rewrite(&mut self, rewriting: Rewriting) -> io::Result<()> {
        let joined = rewriting.thread.join();
        let (temporary, length) =
            joined.map_err(|_| io::Error::other("the thread that rewrites the state file failed"))??;
        let mut rest = Span::new(&self.file, rewriting.covers, self.length);
        let added = io::copy(&mut rest, &mut temporary.file()?)?;
        let before = self.length;
        self.adopt(temporary, length + added)?;
        info!(from_bytes = before, to_bytes = self.length, "state file shortened");
        self.length_after_rewrite = self.length;
        Ok(())
    }
}

/// Atomically replaces the file by one with exactly this state. Returns the new file and its length in bytes.
pub(super) fn rewrite(path: &Path, state: &SavedState) -> io::Result<(File, u64)> {
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

/// Writes a temporary file: the header, and the output of `write_records`, which returns its length. Returns the file
/// and its total length in bytes.
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
