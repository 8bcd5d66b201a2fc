//! Writes the log on a separate thread. Logging never blocks the router.
//!
//! Standard error may be a pipe without a reader, or a stopped terminal. Lines are queued up to a limit. Further lines
//! are dropped and counted, and the count is written as soon as there is room again.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tracing_subscriber::fmt::MakeWriter;

/// Most bytes of queued lines.
const QUEUE_BYTES: usize = 1 << 20;

/// The writing end of the queue.
#[derive(Debug, Clone)]
pub struct LogWriter {
    shared: Arc<LogShared>,
}

#[derive(Debug, Default)]
struct LogShared {
    queue: Mutex<Queue>,
    /// Signalled when there are lines to write.
    filled: Condvar,
    /// Signalled when all lines are written.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    left_out: u64,
    /// Whether the thread is writing lines that it has dequeued.
    is_writing: bool,
}

impl LogShared {
    /// Locks the queue. The lock is held for a few instructions only, never while writing.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogWriter {
    /// Starts the thread that writes to `output`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(output: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(LogShared::default());
        let writer = LogWriter { shared: Arc::clone(&shared) };
        thread::Builder::new().name("log".to_owned()).spawn(move || write_lines(&shared, output))?;
        Ok(writer)
    }

    /// Enqueues a line, or drops and counts it if the queue is full.
    fn push(&self, line: &[u8]) {
        let mut queue = self.shared.queue();
        if queue.bytes + line.len() > QUEUE_BYTES {
            queue.left_out += 1;
            return;
        }
        queue.bytes += line.len();
        queue.lines.push_back(line.to_vec());
        self.shared.filled.notify_one();
    }

    /// Waits until all lines are written, at most for `timeout`. Returns whether they are.
    pub fn flush(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut queue = self.shared.queue();
        while queue.is_writing || !queue.lines.is_empty() || queue.left_out > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            queue = self.shared.emptied.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = &'a LogWriter;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// The log layer calls `write` once for each line.
impl Write for &LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_lines(shared: &LogShared, mut output: impl Write) {
    let mut queue = shared.queue();
    loop {
        let lines = std::mem::take(&mut queue.lines);
        let left_out = std::mem::take(&mut queue.left_out);
        queue.is_writing = !lines.is_empty() || left_out > 0;
        if !queue.is_writing {
            shared.emptied.notify_all();
            queue = shared.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        drop(queue);
        for line in &lines {
            // If standard error is closed, the lines are lost, and the router goes on.
            let _ = output.write_all(line);
            // Frees room line by line, because writing to a full pipe may take long.
            shared.queue().bytes -= line.len();
        }
        if left_out > 0 {
            let _ = writeln!(output, "{left_out} log lines dropped: standard error was not read in time");
        }
        queue = shared.queue();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Writes a line each time it is allowed to.
    struct Slow {
        allowed: Receiver<()>,
        written: Sender<Vec<u8>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.allowed.recv();
            let _ = self.written.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn writing_never_blocks_and_dropped_lines_are_counted() {
        let (allow, allowed) = channel();
        let (written, lines) = channel();
        let log = LogWriter::start(Slow { allowed, written }).expect("thread");
        let line = [b'x'; 1024];
        let sent = 3 * QUEUE_BYTES / line.len();
        for _ in 0..sent {
            (&log).write_all(&line).expect("writing never fails");
        }
        assert!(!log.flush(Duration::from_millis(10)), "no line has been written yet");
        // From here on all lines are written.
        drop(allow);
        assert!(log.flush(Duration::from_secs(60)));
        let whole: Vec<u8> = lines.try_iter().flatten().collect();
        let text = String::from_utf8(whole).expect("text");
        let kept = text.matches('x').count() / line.len();
        // There are two counts if the thread dequeued its first lines after some had been dropped.
        let counts: Vec<&str> =
            text.lines().filter_map(|line| line.split_once(" log lines dropped")).map(|(count, _)| count).collect();
        assert!(matches!(counts.len(), 1 | 2), "{counts:?}");
        let left_out: usize =
            counts.iter().map(|count| count.trim_matches('x').parse::<usize>().expect("number")).sum();
        assert_eq!(kept + left_out, sent);
        assert!(kept * line.len() <= QUEUE_BYTES + line.len(), "{kept}");
    }

    #[test]
    fn lines_come_in_their_order_and_flush_waits_for_them() {
        let (allow, allowed) = channel();
        let (written, lines) = channel();
        drop(allow);
        let log = LogWriter::start(Slow { allowed, written }).expect("thread");
        for number in 0..1000 {
            (&log).write_all(format!("{number}\n").as_bytes()).expect("writing never fails");
        }
        assert!(log.flush(Duration::from_secs(60)));
        let text: Vec<u8> = lines.try_iter().flatten().collect();
        let expected: String = (0..1000).map(|number| format!("{number}\n")).collect();
        assert_eq!(String::from_utf8(text).expect("text"), expected);
    }
}
