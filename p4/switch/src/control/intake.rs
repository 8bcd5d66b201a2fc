//! Reads the request lines of all clients of the control socket. The memory that they take is bounded, and a client
//! that sends slowly does not keep others from their answers.
//!
//! A request of at most [`MIDDLE_REQUEST`] bytes is read without a lock. Only one longer request is read at a time, and
//! for a limited time. Only one request of more than [`SHORT_REQUEST`] bytes is answered at a time.

use std::io::{self, BufRead, Read};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum length of a request, in bytes: a file of some millions of entries.
const LONGEST_REQUEST: usize = 256 << 20;
/// Longer requests are read one at a time. Each client may have so much memory while it sends a request.
const MIDDLE_REQUEST: usize = 1 << 20;
/// Longer requests are answered one at a time, because parsing copies them.
const SHORT_REQUEST: usize = 64 << 10;
/// Maximum time from the first byte beyond [`MIDDLE_REQUEST`] to the end of a request.
const BODY_TIME: Duration = Duration::from_secs(60);

/// The locks for long requests.
pub(super) struct Intake {
    /// Held while a request of more than [`MIDDLE_REQUEST`] bytes is read and answered.
    reading: Mutex<()>,
    /// Held while a request of more than [`SHORT_REQUEST`] bytes is answered. Taken after `reading`.
    answering: Mutex<()>,
    longest_request: usize,
    body_time: Duration,
}

/// A request line; empty at the end of the connection.
pub(super) struct Line<'i> {
    pub(super) bytes: Vec<u8>,
    _reading: Option<MutexGuard<'i, ()>>,
}

impl Line<'_> {
    /// True if the line has its end, so it is neither too long nor too late.
    pub(super) fn is_whole(&self) -> bool {
        self.bytes.last() == Some(&b'\n')
    }
}

impl Intake {
    /// Makes the locks of a control socket.
    pub(super) fn new() -> Intake {
        let (reading, answering) = (Mutex::default(), Mutex::default());
        Intake { reading, answering, longest_request: LONGEST_REQUEST, body_time: BODY_TIME }
    }

    /// Reads a request line.
    ///
    /// # Errors
    /// Fails if the connection fails, or if its read timeout expires.
    pub(super) fn read(&self, reader: &mut impl BufRead) -> io::Result<Line<'_>> {
        let mut line = Line { bytes: Vec::new(), _reading: None };
        reader.by_ref().take(MIDDLE_REQUEST as u64).read_until(b'\n', &mut line.bytes)?;
        if line.bytes.len() < MIDDLE_REQUEST || line.is_whole() {
            return Ok(line);
        }
        line._reading = Some(lock(&self.reading));
        let began = Instant::now();
        while !line.is_whole() && line.bytes.len() < self.longest_request && began.elapsed() < self.body_time {
            let available = reader.fill_buf()?;
            if available.is_empty() {
                break;
            }
            let end = available.iter().position(|byte| *byte == b'\n').map_or(available.len(), |end| end + 1);
            let taken = end.min(self.longest_request - line.bytes.len());
            line.bytes.extend_from_slice(&available[..taken]);
            reader.consume(taken);
        }
        Ok(line)
    }

    /// Waits until the request may be answered. Keep the guard until then.
    pub(super) fn turn(&self, line: &Line<'_>) -> Option<MutexGuard<'_, ()>> {
        (line.bytes.len() > SHORT_REQUEST).then(|| lock(&self.answering))
    }
}

fn lock(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    /// A request of `length` bytes with its end.
    fn request(length: usize) -> Vec<u8> {
        let mut bytes = vec![b' '; length];
        bytes[length - 1] = b'\n';
        bytes
    }

    #[test]
    fn a_client_that_does_not_finish_a_long_request_delays_no_other() {
        let intake = Intake::new();
        for (unfinished, other) in [(SHORT_REQUEST * 2, MIDDLE_REQUEST * 2), (MIDDLE_REQUEST + 1, MIDDLE_REQUEST)] {
            let (mut slow, served) = UnixStream::pair().expect("a pair of sockets");
            thread::scope(|scope| {
                let reading = scope.spawn(|| intake.read(&mut BufReader::new(served)).expect("a line").bytes.len());
                slow.write_all(&vec![b' '; unfinished]).expect("the other end is open");
                let line = intake.read(&mut &*request(other)).expect("a line");
                assert!(line.is_whole() && line.bytes.len() == other && intake.turn(&line).is_some());
                drop(line);
                slow.write_all(b"\n").expect("the other end is open");
                assert_eq!(reading.join().expect("no panic"), unfinished + 1);
            });
        }
    }

    #[test]
    fn lines_end_by_their_end_their_length_or_their_time() {
        let intake = Intake { body_time: Duration::ZERO, ..Intake::new() };
        let lines = [&*request(3), &request(MIDDLE_REQUEST), &request(2)].concat();
        let mut reader = &*lines;
        for length in [3, MIDDLE_REQUEST, 2] {
            let line = intake.read(&mut reader).expect("a line");
            assert!(line.is_whole() && line.bytes.len() == length);
        }
        assert!(intake.read(&mut reader).expect("the end").bytes.is_empty());
        let late = request(MIDDLE_REQUEST + 1);
        assert!(!intake.read(&mut &*late).expect("a late line").is_whole());
        let short = Intake { longest_request: MIDDLE_REQUEST + 5, ..Intake::new() };
        let line = short.read(&mut &*request(MIDDLE_REQUEST + 6)).map(|line| (line.is_whole(), line.bytes.len()));
        assert_eq!(line.expect("a long line"), (false, MIDDLE_REQUEST + 5));
    }
}
