//! Files of FIB entries: text for people, snapshots for speed.
//!
//! Both are read as a stream of [`Part`]s, on any thread, and added to a FIB on the thread that owns its writer. Faces
//! stand in a file as words, a number or a URI, which only a router can make sense of: a part with new words comes before
//! the first prefixes that use them, and these use them by their position among all words of the file so far.

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
/// Read from the file at once.
const READ_BYTES: usize = 1 << 20;

/// What comes next in a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// Words for faces that were not used before.
    Faces(Vec<FaceWord>),
    /// Prefixes and their next hops.
    Prefixes(PrefixBlock),
    /// Wrong lines, which are ignored.
    Faults(Vec<LineFault>),
}

/// How a file names a face: by number or URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceWord {
    /// The word; in snapshots, that of a multicast face is followed by a space and its local URI.
    pub word: String,
    /// Line on which it stands first, from 1; `None` in a snapshot.
    pub line: Option<u64>,
}

/// What is wrong with a line of a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineFault {
    /// From 1.
    pub line: u64,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Why a file cannot be read on. What came before is good.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system cannot read it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is a snapshot that does not read as it was written.
    #[error("{what} at byte {offset}; get another copy, or take another snapshot with `namehop fib save`")]
    Damaged {
        /// Where the damaged part starts.
        offset: u64,
        /// In what way.
        what: &'static str,
    },
    /// A newer Namehop wrote it.
    #[error(
        "this is a snapshot of version {version}, and this Namehop knows {}; use a newer Namehop, or a text file",
        snapshot::VERSION
    )]
    Newer {
        /// Its version.
        version: u32,
    },
}

/// A file being read.
#[derive(Debug)]
pub enum FibFile<R> {
    /// Lines of text.
    Text(Box<TextReader<R>>),
    /// A snapshot.
    Snapshot(SnapshotReader<R>),
}

impl FibFile<BufReader<File>> {
    /// Opens a file; its first bytes say what it is.
    ///
    /// # Errors
    /// It cannot be read, or is a snapshot with a wrong header.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        FibFile::with_length(BufReader::with_capacity(READ_BYTES, file), Some(bytes))
    }
}

impl<R: BufRead> FibFile<R> {
    /// Reads from anywhere.
    ///
    /// # Errors
    /// It cannot be read, or is a snapshot with a wrong header.
    pub fn new(input: R) -> Result<Self, FileError> {
        Self::with_length(input, None)
    }

    /// `bytes` is the length of the file.
    fn with_length(mut input: R, bytes: Option<u64>) -> Result<Self, FileError> {
        let start = input.fill_buf()?;
        if snapshot::is_magic(start) {
            SnapshotReader::new(input).map(FibFile::Snapshot)
        } else {
            let expected = bytes.map(|bytes| text::estimate_prefixes(start, bytes));
            Ok(FibFile::Text(Box::new(TextReader::new(input, expected))))
        }
    }

    /// About how many prefixes it holds: from the header of a snapshot, or estimated from the start of a text file.
    pub fn expected_prefixes(&self) -> Option<u64> {
        match self {
            FibFile::Text(reader) => reader.expected_prefixes(),
            FibFile::Snapshot(reader) => Some(reader.expected_prefixes()),
        }
    }

    /// The next part; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read on. There is nothing more then.
    pub fn next_part(&mut self) -> Result<Option<Part>, FileError> {
        match self {
            FibFile::Text(reader) => reader.next_part(),
            FibFile::Snapshot(reader) => reader.next_part(),
        }
    }
}
