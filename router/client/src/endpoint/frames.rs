//! Splits a byte stream into TLV elements, and batches elements for writing.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use namehop_wire::MAX_PACKET_SIZE;
use namehop_wire::tlv::{Writer, frame_length};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;

/// Size of the read buffer: some thirty packets of maximum size.
const READ_BUFFER_BYTES: usize = 32 * MAX_PACKET_SIZE;
/// Queued bytes from which a write is worthwhile.
const WRITE_BYTES: usize = 128 << 10;
/// Queued bytes from which the reader pauses, so that a peer that does not read cannot make the queue of answers grow
/// without bound.
const OUTGOING_LIMIT_BYTES: usize = 8 << 20;

/// A stream of TLV elements.
pub(crate) struct FrameReader<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; READ_BUFFER_BYTES], start: 0, end: 0 }
    }

    /// Reads once. Returns false at the end of the stream.
    pub(crate) async fn fill(&mut self) -> io::Result<bool> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.buffer.len() - self.end < MAX_PACKET_SIZE {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let count = self.reader.read(&mut self.buffer[self.end..]).await?;
        self.end += count;
        Ok(count > 0)
    }

    /// Returns the next complete element that has been read.
    ///
    /// # Errors
    /// Fails on bytes that cannot start an element; nothing after them can be framed.
    pub(crate) fn next_frame(&mut self) -> io::Result<Option<&[u8]>> {
        let available = &self.buffer[self.start..self.end];
        let length = match frame_length(available) {
            Ok(Some(length)) if length <= available.len() => length,
            Ok(_) => return Ok(None),
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error.name())),
        };
        self.start += length;
        Ok(Some(&self.buffer[self.start - length..self.start]))
    }
}

/// Packets waiting to be written.
#[derive(Default)]
pub(crate) struct Batch {
    /// The packets, concatenated.
    pub(crate) bytes: Vec<u8>,
    /// End offset of each packet.
    pub(crate) ends: Vec<usize>,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Returns the packets, for links that preserve boundaries.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().filter_map(move |&end| {
            let packet = self.bytes.get(start..end);
            start = end;
            packet
        })
    }
}

#[derive(Default)]
struct OutgoingState {
    batch: Batch,
    closed: bool,
}

/// Queue between senders and the writing task. Everything queued since the last write is written at once.
#[derive(Default)]
pub(crate) struct Outgoing {
    state: Mutex<OutgoingState>,
    filled: Notify,
    drained: Notify,
}

impl Outgoing {
    fn lock(&self) -> MutexGuard<'_, OutgoingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if enough bytes are queued for a write.
    pub(crate) fn has_much(&self) -> bool {
        self.lock().batch.bytes.len() >= WRITE_BYTES
    }

    /// Queues the packet that `write` encodes.
    pub(crate) fn push(&self, write: impl FnOnce(&mut Writer)) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let was_empty = state.batch.bytes.is_empty();
        let mut writer = Writer::from(std::mem::take(&mut state.batch.bytes));
        write(&mut writer);
        state.batch.bytes = writer.into_vec();
        let end = state.batch.bytes.len();
        state.batch.ends.push(end);
        drop(state);
        if was_empty {
            self.filled.notify_one();
        }
    }

    /// Closes the queue: further packets are dropped, queued ones are still written.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
        self.drained.notify_waiters();
    }

    /// Waits for packets and exchanges them for the empty `batch`. Returns false if the queue is closed and empty.
    pub(crate) async fn take(&self, batch: &mut Batch) -> bool {
        loop {
            {
                let mut state = self.lock();
                if !state.batch.bytes.is_empty() {
                    std::mem::swap(&mut state.batch, batch);
                    drop(state);
                    self.drained.notify_waiters();
                    return true;
                }
                if state.closed {
                    return false;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Waits until the queue is below the limit, so that more requests can be read.
    pub(crate) async fn wait_for_room(&self) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            // Registered before the check, so that a drain in between is not missed.
            drained.as_mut().enable();
            {
                let state = self.lock();
                if state.closed || state.batch.bytes.len() < OUTGOING_LIMIT_BYTES {
                    return;
                }
            }
            drained.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stream_is_cut_at_element_boundaries_wherever_the_reads_fall() {
        let mut bytes = Vec::new();
        for size in [0usize, 1, 252, 253, 8000] {
            let mut writer = Writer::new();
            writer.element(6, &vec![7; size]);
            bytes.extend(writer.into_vec());
        }
        for chunk in [1usize, 2, 3, 255, 100_000] {
            let (near, far) = tokio::io::duplex(chunk);
            let copy = bytes.clone();
            let writer = tokio::spawn(async move {
                let mut near = near;
                tokio::io::AsyncWriteExt::write_all(&mut near, &copy).await
            });
            let mut reader = FrameReader::new(far);
            let mut sizes = Vec::new();
            while reader.fill().await.unwrap() {
                while let Some(frame) = reader.next_frame().unwrap() {
                    sizes.push(frame.len());
                }
            }
            writer.await.unwrap().unwrap();
            assert_eq!(sizes, [2, 3, 254, 257, 8004]);
        }
    }

    #[tokio::test]
    async fn garbage_is_an_error() {
        let mut reader = FrameReader::new(&[0u8, 0, 0][..]);
        assert!(reader.fill().await.unwrap());
        assert!(reader.next_frame().is_err());
    }

    #[tokio::test]
    async fn packets_queued_between_writes_leave_together() {
        let outgoing = Outgoing::default();
        for value in [b"a".as_slice(), b"bc", b"def"] {
            outgoing.push(|writer| {
                writer.raw(value);
            });
        }
        let mut batch = Batch::default();
        assert!(outgoing.take(&mut batch).await);
        assert_eq!(batch.packets().collect::<Vec<_>>(), [b"a".as_slice(), b"bc", b"def"]);
        outgoing.close();
        batch.clear();
        assert!(!outgoing.take(&mut batch).await);
    }
}
