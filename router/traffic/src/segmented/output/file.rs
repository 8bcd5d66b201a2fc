//! A file output that writes each segment at its offset on arrival, so that segments do not wait in memory for a
//! missing one.
//!
//! All segments except the last must have the same size. The content goes to a temporary file in the same folder, which
//! replaces the destination when it is complete: readers see the old file or the whole new one. Another thread writes,
//! a megabyte at a time, so that a slow disk does not delay Data.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};
use tokio::task::{JoinHandle, spawn_blocking};

use super::{Output, OutputError};

/// Bytes gathered before they are written: a switch of threads costs more than a segment.
const BATCH_BYTES: usize = 1 << 20;
/// Mode of new files, which the process's umask reduces as usual.
const NEW_FILE_MODE: u32 = 0o666;
/// Maximum file size in bytes.
const MAX_FILE_BYTES: u64 = i64::MAX as u64;

/// The offset of a segment in the file is unknown. Fetching in order, as `namehop cat` does, needs no offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Segments before the last differ in size.
    #[error(
        "segment {segment} has {bytes} bytes and is not the last, but the first has {first}: its offset in the file is \
         unknown; fetch this object with 'namehop cat'"
    )]
    Size {
        /// Number of the segment.
        segment: u64,
        /// Content size of the segment in bytes.
        bytes: u64,
        /// Content size of the first segment in bytes.
        first: u64,
    },
    /// The last segment is larger than the others.
    #[error(
        "segment {segment} has {bytes} bytes, more than the {first} of the first: its offset in the file is unknown; \
         fetch this object with 'namehop cat'"
    )]
    Larger {
        /// Number of the segment.
        segment: u64,
        /// Content size of the segment in bytes.
        bytes: u64,
        /// Content size of the first segment in bytes.
        first: u64,
    },
    /// The segment lies beyond the maximum file size.
    #[error("segment {segment} is beyond the maximum file size of {MAX_FILE_BYTES} bytes")]
    TooFar {
        /// Number of the segment.
        segment: u64,
    },
}

/// Contiguous bytes of the file.
struct Run {
    offset: u64,
    bytes: Vec<u8>,
}

/// A file being fetched. If dropped before the end, it leaves nothing behind.
pub struct FileOutput {
    path: PathBuf,
    unfinished: Option<NamedTempFile>,
    /// Content size of all segments except the last.
    segment_bytes: Option<u64>,
    /// Number and size of a smaller segment, which must be the last.
    smaller: Option<(u64, u64)>,
    runs: Vec<Run>,
    gathered_bytes: usize,
    /// The write in progress on another thread.
    writing: Option<JoinHandle<io::Result<()>>>,
}

impl FileOutput {
    /// Creates a temporary file, which replaces `path` when it is complete.
    ///
    /// # Errors
    /// Returns the operating system's error, or an error if `path` exists and is not a regular file.
    pub fn create(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "exists and is not a regular file"));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut unfinished = Builder::new();
        unfinished.prefix(".namehop-").suffix(".part").permissions(Permissions::from_mode(NEW_FILE_MODE));
        Ok(Self {
            path: path.to_owned(),
            unfinished: Some(unfinished.tempfile_in(folder)?),
            segment_bytes: None,
            smaller: None,
            runs: Vec::new(),
            gathered_bytes: 0,
            writing: None,
        })
    }

    fn offset(&mut self, segment: u64, bytes: u64) -> Result<u64, LayoutError> {
        let first = *self.segment_bytes.get_or_insert(bytes);
        if bytes > first {
            return Err(LayoutError::Larger { segment, bytes, first });
        }
        // Two smaller segments cannot both be the last: the one with the smaller number is wrong.
        let is_behind = self.smaller.is_some_and(|(smaller, _)| smaller < segment);
        if let Some((smaller, bytes)) = self.smaller.filter(|_| is_behind) {
            return Err(LayoutError::Size { segment: smaller, bytes, first });
        }
        if bytes < first {
            if self.smaller.is_some() {
                return Err(LayoutError::Size { segment, bytes, first });
            }
            self.smaller = Some((segment, bytes));
        }
        let offset = segment.checked_mul(first);
        let end = offset.and_then(|offset| offset.checked_add(bytes)).filter(|end| *end <= MAX_FILE_BYTES);
        offset.filter(|_| end.is_some()).ok_or(LayoutError::TooFar { segment })
    }

    async fn wait(&mut self) -> io::Result<()> {
        match self.writing.take() {
            Some(writing) => writing.await.map_err(io::Error::other)?,
            None => Ok(()),
        }
    }

    /// Starts writing the gathered content, after the previous write.
    async fn start_writing(&mut self) -> io::Result<()> {
        self.wait().await?;
        if let Some(unfinished) = self.unfinished.as_ref().filter(|_| !self.runs.is_empty()) {
            let file = unfinished.as_file().try_clone()?;
            let runs = std::mem::take(&mut self.runs);
            self.gathered_bytes = 0;
            self.writing = Some(spawn_blocking(move || write_all(&file, &runs)));
        }
        Ok(())
    }
}

fn write_all(file: &File, runs: &[Run]) -> io::Result<()> {
    runs.iter().try_for_each(|run| file.write_all_at(&run.bytes, run.offset))
}

impl Output for FileOutput {
    fn take(&mut self, segment: u64, content: &[u8]) -> Result<(), OutputError> {
        let offset = self.offset(segment, content.len() as u64)?;
        self.gathered_bytes += content.len();
        match self.runs.last_mut() {
            Some(run) if run.offset + run.bytes.len() as u64 == offset => run.bytes.extend_from_slice(content),
            _ => self.runs.push(Run { offset, bytes: content.to_vec() }),
        }
        Ok(())
    }

    async fn write(&mut self) -> io::Result<()> {
        if self.gathered_bytes >= BATCH_BYTES { self.start_writing().await } else { Ok(()) }
    }

    async fn finish(&mut self, last: u64) -> Result<(), OutputError> {
        if let Some((segment, bytes)) = self.smaller.filter(|(segment, _)| *segment != last) {
            return Err(LayoutError::Size { segment, bytes, first: self.segment_bytes.unwrap_or_default() }.into());
        }
        self.start_writing().await?;
        self.wait().await?;
        if let Some(unfinished) = self.unfinished.take() {
            unfinished.persist(&self.path).map_err(|error| error.error)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
