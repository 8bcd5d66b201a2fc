//! Files of FIB entries: text files for people, snapshots for speed.
//!
//! Both are read as a stream of [`FibFilePart`]s on any thread, and added to a FIB on the thread that owns its writer.
//! A file denotes faces by words (a number or a URI), which only a router can resolve. A part with new words precedes
//! the first prefixes that use them. Prefixes refer to a word by its index among all words of the file so far.

mod block;
mod snapshot;
mod text;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

pub use block::{Added, PrefixBlock, Refused};
pub use snapshot::{SnapshotReader, SnapshotWriter};
pub use text::{LineWords, TextReader, parse_line};

/// Bytes of records in a full block, which takes a fraction of a millisecond to add to a FIB.
const BLOCK_BYTES: usize = 64 << 10;
/// Bytes read from the file at once.
const READ_BYTES: usize = 1 << 20;

/// The next part of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum FibFilePart {
    /// New words for faces.
    Faces(Vec<FaceWord>),
    /// Prefixes and their next hops.
    Prefixes(PrefixBlock),
    /// Faulty lines, which are ignored.
    Faults(Vec<LineFault>),
}

/// A word for a face: number or URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceWord {
    /// The word. In snapshots, the word for a multicast face is followed by a space and its local URI.
    pub word: String,
    /// First line that contains the word, from 1; `None` in a snapshot.
    pub line: Option<u64>,
}

/// A fault in a line of a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineFault {
    /// Line number, from 1.
    pub line: u64,
    /// The fault and its remedy.
    pub message: String,
}

/// Why a file cannot be read further. The parts read so far are valid.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Reading fails in the operating system.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The snapshot is damaged.
    #[error("{what} at byte {offset}; get another copy, or take another snapshot with `namehop fib save`")]
    Damaged {
        /// Offset of the damaged part, in bytes.
        offset: u64,
        /// The kind of damage.
        what: &'static str,
    },
    /// A newer version of Namehop wrote the snapshot.
    #[error(
        "this is a snapshot of version {version}, but this Namehop reads version {}; use a newer Namehop, or a text \
         file",
        snapshot::VERSION
    )]
    Newer {
        /// Version of the snapshot.
        version: u32,
    },
}

/// A FIB file being read.
#[derive(Debug)]
pub enum FibFile<R> {
    /// Text file.
    Text(Box<TextReader<R>>),
    /// A snapshot.
    Snapshot(SnapshotReader<R>),
}

impl FibFile<BufReader<File>> {
    /// Opens a file. Its first bytes determine the format.
    ///
    /// # Errors
    /// When it cannot be read, or is a snapshot with an invalid header.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        FibFile::with_length(BufReader::with_capacity(READ_BYTES, file), Some(bytes))
    }
}

impl<R: BufRead> FibFile<R> {
    /// Reads from any source.
    ///
    /// # Errors
    /// When it cannot be read, or is a snapshot with an invalid header.
    pub fn new(input: R) -> Result<Self, FileError> {
        Self::with_length(input, None)
    }

    /// Reads from any source. `bytes` is the length of the file, if known.
    fn with_length(mut input: R, bytes: Option<u64>) -> Result<Self, FileError> {
        let start = input.fill_buf()?;
        if snapshot::is_magic(start) {
            SnapshotReader::new(input).map(FibFile::Snapshot)
        } else {
            let expected = bytes.map(|bytes| text::estimate_prefixes(start, bytes));
            Ok(FibFile::Text(Box::new(TextReader::new(input, expected))))
        }
    }

    /// Returns the approximate number of prefixes: from the header of a snapshot, or estimated from the start of a text
    /// file.
    pub fn expected_prefixes(&self) -> Option<u64> {
        match self {
            FibFile::Text(reader) => reader.expected_prefixes(),
            FibFile::Snapshot(reader) => Some(reader.expected_prefixes()),
        }
    }

    /// Returns the next part; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read further. No parts follow then.
    pub fn next_part(&mut self) -> Result<Option<FibFilePart>, FileError> {
        match self {
            FibFile::Text(reader) => reader.next_part(),
            FibFile::Snapshot(reader) => reader.next_part(),
        }
    }
}
