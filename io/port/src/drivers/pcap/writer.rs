//! Writes a capture. Frames are buffered and written with one system call. The file holds only whole records, even if
//! the disk rejects a write.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::SystemTime;

use super::format::{RECORD_BYTES, write_header, write_record};

/// Maximum number of buffered bytes, unless a single frame is longer.
const GATHERED_BYTES: usize = 64 << 10;

/// A capture that is being written.
pub(super) struct Writer {
    file: File,
    /// Buffered records, and their number.
    gathered: Vec<u8>,
    frames: usize,
    /// Offset in the file where they will be written.
    end: u64,
    is_refused: bool,
}

impl Writer {
    /// Writes the header into an empty file.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let mut gathered = Vec::with_capacity(GATHERED_BYTES);
        write_header(&mut gathered)?;
        file.write_all_at(&gathered, 0)?;
        let end = gathered.len() as u64;
        gathered.clear();
        Ok(Writer { file, gathered, frames: 0, end, is_refused: false })
    }

    /// Buffers a frame that was sent at this time. Returns how many frames were dropped: the buffered ones, if they had
    /// to be written to make room and the write failed.
    pub(super) fn push(&mut self, now: SystemTime, frame: &[u8]) -> usize {
        let lost = if self.gathered.len() + RECORD_BYTES + frame.len() > GATHERED_BYTES { self.flush() } else { 0 };
        let before = self.gathered.len();
        if write_record(&mut self.gathered, now, frame).is_err() {
            self.gathered.truncate(before);
            return lost + 1;
        }
        self.frames += 1;
        lost
    }

    /// Writes the buffered frames. Returns how many were dropped because the write failed.
    pub(super) fn flush(&mut self) -> usize {
        let frames = std::mem::take(&mut self.frames);
        if frames == 0 {
            return 0;
        }
        let result = self.file.write_all_at(&self.gathered, self.end);
        let bytes = self.gathered.len() as u64;
        self.gathered.clear();
        let Err(error) = result else {
            self.end += bytes;
            self.is_refused = false;
            return 0;
        };
        // A failed write may leave a partial record: cut it off. If that fails too, the next records overwrite it.
        let _ = self.file.set_len(self.end);
        if !std::mem::replace(&mut self.is_refused, true) {
            tracing::warn!(%error, "cannot write frames to a capture; they are dropped");
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::super::format::{Reader, Record};
    use super::*;

    fn frames_in(file: File) -> Vec<usize> {
        let mut reader = Reader::new(file).expect("a header");
        let mut place = vec![0; 100_000];
        std::iter::from_fn(|| reader.next(&mut place).expect("complete records"))
            .map(|record| match record {
                Record::Frame(length) => length,
                Record::Incomplete => panic!("a record is incomplete"),
            })
            .collect()
    }

    #[test]
    fn frames_of_all_lengths_are_written_in_order() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut writer = Writer::new(file.reopen().expect("opened")).expect("a header");
        let lengths = [0, 60, 1514, GATHERED_BYTES - RECORD_BYTES, 1, GATHERED_BYTES, 60];
        for length in lengths {
            assert_eq!(writer.push(SystemTime::now(), &vec![1; length]), 0);
        }
        assert_eq!(writer.flush(), 0);
        assert_eq!(frames_in(file.reopen().expect("opened")), lengths);
    }

    #[test]
    fn what_the_disk_refuses_is_counted_and_leaves_no_half_records() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut writer = Writer::new(file.reopen().expect("opened")).expect("a header");
        writer.push(SystemTime::now(), &[1; 60]);
        assert_eq!(writer.flush(), 0);
        let writable = std::mem::replace(
            &mut writer.file,
            OpenOptions::new().read(true).open(file.path()).expect("the file can be opened for reading"),
        );
        for _ in 0..3 {
            assert_eq!(writer.push(SystemTime::now(), &[2; 70]), 0);
        }
        assert_eq!(writer.flush(), 3);
        assert_eq!(writer.push(SystemTime::now(), &[2; 70]), 0);
        assert_eq!(writer.push(SystemTime::now(), &[2; GATHERED_BYTES]), 1, "the buffered frame is lost");
        // The disk has room again, and a part of the rejected write is still in the file.
        writable.write_all_at(&[9; 40], writer.end).expect("written");
        writer.file = writable;
        assert_eq!(writer.push(SystemTime::now(), &[3; 80]), 0);
        assert_eq!(writer.flush(), 0);
        assert_eq!(frames_in(file.reopen().expect("opened")), [60, GATHERED_BYTES, 80]);
    }
}
