//! Bytes waiting to be written to a stream: one contiguous buffer, so that any number of packets leave in one call.

use std::io;

/// Storage kept by an idle face; what a burst needed beyond it is given back. Enough for a usual burst of large packets:
/// growing and shrinking with each would cost two calls to the kernel.
const KEPT_BYTES: usize = 256 * 1024;

/// What a flush achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    /// Nothing is left.
    Empty,
    /// The kernel takes no more for now.
    Blocked,
}

/// A bounded byte queue in front of a stream.
#[derive(Debug)]
pub(super) struct SendBuffer {
    bytes: Vec<u8>,
    /// Bytes at the front that were written already.
    written: usize,
    limit_bytes: usize,
}

impl SendBuffer {
    /// An empty queue for at most `limit_bytes`.
    pub(super) fn new(limit_bytes: usize) -> Self {
        SendBuffer { bytes: Vec::new(), written: 0, limit_bytes }
    }

    /// Bytes waiting.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Appends a packet; `false` when it does not fit.
    pub(super) fn push(&mut self, packet: &[u8]) -> bool {
        if self.len() + packet.len() > self.limit_bytes {
            return false;
        }
        // Moving the rest to the front is cheaper than growing, and happens at most once per written half.
        if self.written > 0 && (self.written >= self.len() || self.bytes.len() + packet.len() > self.bytes.capacity()) {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
        self.bytes.extend_from_slice(packet);
        true
    }

    /// Writes as much as `write` takes. A short write counts as [`Flush::Blocked`]: the kernel buffer is full.
    pub(super) fn flush(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<Flush> {
        while self.len() > 0 {
            match write(&self.bytes[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count;
                    if self.len() > 0 {
                        return Ok(Flush::Blocked);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Flush::Blocked),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.clear();
        Ok(Flush::Empty)
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.written = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_writes_keep_order_and_the_limit_counts_waiting_bytes_only() {
        let mut buffer = SendBuffer::new(10);
        assert!(buffer.push(b"abcdef"));
        assert!(!buffer.push(b"ghijk"));
        let mut out = Vec::new();
        let flushed = buffer.flush(|bytes| {
            out.extend_from_slice(&bytes[..4]);
            Ok(4)
        });
        assert_eq!(flushed.expect("flush"), Flush::Blocked);
        assert_eq!(buffer.len(), 2);
        assert!(buffer.push(b"ghijklmn"));
        let flushed = buffer.flush(|bytes| {
            out.extend_from_slice(bytes);
            Ok(bytes.len())
        });
        assert_eq!(flushed.expect("flush"), Flush::Empty);
        assert_eq!(out, b"abcdefghijklmn");
    }

    #[test]
    fn a_blocked_kernel_is_not_an_error_and_a_broken_one_is() {
        let mut buffer = SendBuffer::new(10);
        buffer.push(b"ab");
        assert_eq!(buffer.flush(|_| Err(io::ErrorKind::WouldBlock.into())).expect("flush"), Flush::Blocked);
        assert!(buffer.flush(|_| Err(io::ErrorKind::BrokenPipe.into())).is_err());
        assert_eq!(buffer.len(), 2);
    }

    #[test]
    fn a_burst_gives_its_memory_back() {
        let mut buffer = SendBuffer::new(1 << 20);
        assert!(buffer.push(&vec![0; 1 << 20]));
        buffer.flush(|bytes| Ok(bytes.len())).expect("flush");
        assert!(buffer.bytes.capacity() <= KEPT_BYTES);
    }
}
