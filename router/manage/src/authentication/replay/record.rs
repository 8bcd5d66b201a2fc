//! Keeps the newest time of an accepted command in a file, so that the next process refuses commands that this one has
//! accepted.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Number of digits of the time in the file; fixed, so that each write replaces the whole earlier time.
const DIGITS: usize = 20;
/// A recorded time further in the future shows that the clock was set back since, in milliseconds.
const MAX_AHEAD_MS: u64 = 600_000;

/// A file that holds the newest time of an accepted command. Writes do not wait for the disk, because the record only
/// has to survive the end of the process. Times lost in a power failure are earlier than the next start, so their
/// commands are refused anyway.
#[derive(Debug)]
pub struct TimeRecord {
    file: File,
    pub(super) newest_ms: u64,
    is_failing: bool,
}

impl TimeRecord {
    /// Reads the record of an earlier process from a file that is open for reading and writing. An empty or malformed
    /// file gives time 0.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(file: File) -> io::Result<Self> {
        let mut text = [0; DIGITS];
        let length = file.read_at(&mut text, 0)?;
        let newest_ms = std::str::from_utf8(&text[..length]).ok().and_then(|text| text.trim().parse().ok());
        Ok(TimeRecord { file, newest_ms: newest_ms.unwrap_or_default(), is_failing: false })
    }

    /// Returns the earliest signature time that is accepted after the start.
    pub(super) fn start_ms(&self, now_ms: u64) -> u64 {
        let ahead_ms = self.newest_ms.saturating_sub(now_ms);
        if ahead_ms > MAX_AHEAD_MS {
            tracing::warn!(
                seconds = ahead_ms / 1000,
                "the clock was set back since the last run: signed commands accepted then can be replayed now"
            );
            return 0;
        }
        self.newest_ms.saturating_add(1)
    }

    /// Records the time of an accepted command.
    pub(super) fn note(&mut self, time_ms: u64) {
        if time_ms <= self.newest_ms && self.newest_ms - time_ms <= MAX_AHEAD_MS {
            return;
        }
        self.newest_ms = time_ms;
        match self.file.write_all_at(format!("{time_ms:>DIGITS$}").as_bytes(), 0) {
            Ok(()) => self.is_failing = false,
            Err(error) if !self.is_failing => {
                tracing::warn!(%error, "cannot save the time of the newest signed command");
                self.is_failing = true;
            }
            Err(_) => {}
        }
    }
}
