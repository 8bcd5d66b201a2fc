//! Ports that read a capture of frames from a file and write one (libpcap's format, draft-ietf-opsawg-pcap, for Ethernet).
//!
//! A file is read as fast as its frames are taken; nothing of it is dropped. It begins a moment after the port was started, so that there
//! are faces and routes by then. What is sent is written as it comes. A disk that is slow or full keeps no worker waiting:
//! frames are lost and counted.

mod format;
mod writer;

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use namehop_packet::BufferPool;
use namehop_packet::pool::LARGE_BYTES;

use crate::BURST;
use crate::error::DpdkError;
use crate::relay::{Again, Inlet, Line, RelayPort, RelayQueue};
use format::{Reader, Record};
use writer::Writer;

/// From the start of a port to its first frame.
const START_PAUSE: Duration = Duration::from_secs(1);
/// How long to wait until the worker has taken frames, or there is memory again.
const FULL_PAUSE: Duration = Duration::from_millis(1);
/// Longest frame, in bytes, Ethernet header included.
pub const MAX_FRAME_BYTES: usize = LARGE_BYTES;

/// Opens a port that reads from the file `input` and writes to the file `output`, whose content is replaced.
///
/// # Errors
/// When a file cannot be opened, or the first is no capture of Ethernet frames.
pub fn open(
    input: Option<&Path>,
    output: Option<&Path>,
    pool: &BufferPool,
) -> Result<(RelayPort, RelayQueue), DpdkError> {
    let input = input.map(|path| {
        // Pipes would keep who opens them waiting.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).and_then(ordinary);
        let reader = file.and_then(|file| Reader::new(BufReader::new(file)));
        reader.map_err(|error| DpdkError::Unusable(format!("cannot read the capture {}: {error}", path.display())))
    });
    let output = output.map(|path| {
        let mut options = OpenOptions::new();
        // Not through a link to another file.
        options.write(true).create(true).truncate(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        options
            .open(path)
            .and_then(ordinary)
            .and_then(Writer::new)
            .map_err(|error| DpdkError::Unusable(format!("cannot write the capture {}: {error}", path.display())))
    });
    let scratch = vec![0; MAX_FRAME_BYTES].into_boxed_slice();
    let line = Files { input: input.transpose()?, output: output.transpose()?, first_at: None, scratch, read: None };
    RelayPort::open(line, "pcap", pool)
}

/// The file, if it is one on a disk.
fn ordinary(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no ordinary file")) }
}

struct Files {
    /// Absent once it has been read.
    input: Option<Reader<BufReader<File>>>,
    output: Option<Writer>,
    /// When the first frame is read.
    first_at: Option<Instant>,
    /// The frame that was read last, and its length while there is no place for it.
    scratch: Box<[u8]>,
    read: Option<usize>,
}

impl Line for Files {
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn receive(&mut self, inlet: &mut Inlet<'_>) -> io::Result<Again> {
        let Some(input) = &mut self.input else { return Ok(Again::Never) };
        if !inlet.is_started() {
            return Ok(Again::Never);
        }
        let first_at = *self.first_at.get_or_insert_with(|| Instant::now() + START_PAUSE);
        let pause = first_at.saturating_duration_since(Instant::now());
        if !pause.is_zero() {
            return Ok(Again::After(pause));
        }
        for _ in 0..BURST {
            if let Some(length) = self.read {
                if inlet.room() == 0 {
                    return Ok(Again::After(FULL_PAUSE));
                }
                let Some(frame) = inlet.pool().copy_of(&self.scratch[..length]) else {
                    return Ok(Again::After(FULL_PAUSE));
                };
                inlet.push(frame);
                self.read = None;
            }
            match input.next(&mut self.scratch) {
                Ok(Some(Record::Frame(length))) => self.read = Some(length),
                Ok(Some(Record::Incomplete)) => inlet.lost_malformed(),
                Ok(None) => {
                    tracing::info!("the capture has been read to its end");
                    self.input = None;
                    return Ok(Again::Never);
                }
                Err(error) => {
                    tracing::warn!(%error, "the capture cannot be read any further");
                    self.input = None;
                    return Ok(Again::Never);
                }
            }
        }
        Ok(Again::AtOnce)
    }

    fn send(&mut self, frame: &[u8]) -> usize {
        self.output.as_mut().map_or(0, |output| output.push(SystemTime::now(), frame))
    }

    fn flush(&mut self) -> usize {
        self.output.as_mut().map_or(0, Writer::flush)
    }
}
