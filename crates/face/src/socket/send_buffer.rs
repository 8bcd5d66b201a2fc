//! Bytes waiting to be written to a stream: one contiguous buffer, so that any number of packets leave in one call.

use std::io;

use super::framing::packet_ends;
use super::send_budget::{Account, FLOOR_BYTES};

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
    /// Where some packet begins that was perhaps not written as a whole; all before it were.
    packet: usize,
    limit_bytes: usize,
    /// Holds the storage, which may be more than what waits.
    account: Account,
}

impl SendBuffer {
    /// An empty queue for at most `limit_bytes`, whose storage `account` holds.
    pub(super) fn new(limit_bytes: usize, account: Account) -> Self {
        SendBuffer { bytes: Vec::new(), written: 0, packet: 0, limit_bytes, account }
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
            self.move_to_front();
        }
        if self.bytes.len() + packet.len() > self.bytes.capacity() && !self.grow(self.bytes.len() + packet.len()) {
            return false;
        }
        self.bytes.extend_from_slice(packet);
        true
    }

    /// Forgets what was written already, but for the beginning of a packet of which only that was.
    #[cold]
    fn move_to_front(&mut self) {
        self.packet = self.unfinished_packet();
        let done = self.packet.min(self.written);
        self.bytes.drain(..done);
        self.written -= done;
        self.packet -= done;
    }

    /// Where the first packet begins that was not written as a whole.
    fn unfinished_packet(&self) -> usize {
        let ends = packet_ends(&self.bytes[self.packet..]).map(|end| self.packet + end);
        ends.take_while(|&end| end <= self.written).last().unwrap_or(self.packet)
    }

    /// Makes room for `needed` bytes altogether, in steps that keep the cost of moving small; `false` when the budget
    /// does not allow it.
    #[cold]
    fn grow(&mut self, needed: usize) -> bool {
        let present = self.bytes.capacity();
        let steps = [present * 2, present + present / 4].map(|size| size.max(needed).max(FLOOR_BYTES));
        for size in steps {
            if self.account.hold(size) {
                self.bytes.reserve_exact(size - self.bytes.len());
                return true;
            }
        }
        false
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

    /// Forgets everything. Returns how many packets were not written as a whole.
    pub(super) fn give_up(&mut self) -> usize {
        let lost = packet_ends(&self.bytes[self.unfinished_packet()..]).count();
        self.clear();
        lost
    }

    /// Forgets everything; storage for a usual burst stays unless memory is scarce.
    fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
        self.packet = 0;
        let kept = if self.bytes.capacity() > 0 && self.account.is_scarce() { 0 } else { KEPT_BYTES };
        if self.bytes.capacity() > kept {
            self.bytes.shrink_to(kept);
            self.account.hold(self.bytes.capacity());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::send_budget::SendBudget;
    use super::*;

    fn buffer(limit_bytes: usize) -> SendBuffer {
        SendBuffer::new(limit_bytes, SendBudget::new(1 << 30).account(false))
    }

    #[test]
    fn short_writes_keep_order_and_the_limit_counts_waiting_bytes_only() {
        let mut buffer = buffer(10);
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

    /// A bare Data of this length.
    fn packet(length: usize) -> Vec<u8> {
        let mut packet = vec![0; length];
        packet[..2].copy_from_slice(&[6, length as u8 - 2]);
        packet
    }

    proptest! {
        /// Whatever the kernel takes at a time: those packets are lost of which it has not taken all.
        #[test]
        fn packets_that_were_not_written_as_a_whole_are_counted(
            steps in prop::collection::vec((2..60_usize, 0..100_usize), 1..60),
        ) {
            let mut buffer = buffer(150);
            let (mut ends, mut queued, mut taken, mut out) = (Vec::new(), Vec::new(), 0, Vec::new());
            for (length, takes) in steps {
                if buffer.push(&packet(length)) {
                    queued.extend(packet(length));
                    ends.push(queued.len());
                }
                let mut left = takes;
                buffer
                    .flush(|bytes| {
                        if left == 0 {
                            return Err(io::ErrorKind::WouldBlock.into());
                        }
                        let count = bytes.len().min(left);
                        out.extend_from_slice(&bytes[..count]);
                        (left, taken) = (left - count, taken + count);
                        Ok(count)
                    })
                    .expect("flush");
            }
            prop_assert_eq!(&out[..], &queued[..taken]);
            prop_assert_eq!(buffer.give_up(), ends.iter().filter(|&&end| end > taken).count());
            prop_assert_eq!((buffer.len(), buffer.give_up()), (0, 0));
        }
    }

    #[test]
    fn a_blocked_kernel_is_not_an_error_and_a_broken_one_is() {
        let mut buffer = buffer(10);
        buffer.push(b"ab");
        assert_eq!(buffer.flush(|_| Err(io::ErrorKind::WouldBlock.into())).expect("flush"), Flush::Blocked);
        assert!(buffer.flush(|_| Err(io::ErrorKind::BrokenPipe.into())).is_err());
        assert_eq!(buffer.len(), 2);
    }

    #[test]
    fn a_burst_gives_its_memory_back() {
        let mut buffer = buffer(1 << 20);
        assert!(buffer.push(&vec![0; 1 << 20]));
        buffer.flush(|bytes| Ok(bytes.len())).expect("flush");
        assert!(buffer.bytes.capacity() <= KEPT_BYTES);
    }

    #[test]
    fn many_buffers_take_no_more_storage_than_the_budget_and_keep_none_when_it_is_scarce() {
        const LIMIT_BYTES: usize = 32 << 20;
        let budget = SendBudget::new(LIMIT_BYTES);
        let mut buffers: Vec<SendBuffer> =
            (0..300).map(|number| SendBuffer::new(4 << 20, budget.account(number % 2 == 0))).collect();
        let packet = [0; 8000];
        for _ in 0..100 {
            for buffer in &mut buffers {
                buffer.push(&packet);
            }
        }
        let storage: usize = buffers.iter().map(|buffer| buffer.bytes.capacity()).sum();
        assert!(storage > LIMIT_BYTES / 2 && storage <= LIMIT_BYTES + 300 * FLOOR_BYTES, "{storage} bytes");
        assert!(buffers.iter().all(|buffer| buffer.len() >= packet.len()), "everybody has something");
        for buffer in &mut buffers {
            buffer.flush(|bytes| Ok(bytes.len())).expect("flush");
        }
        let storage: usize = buffers.iter().map(|buffer| buffer.bytes.capacity()).sum();
        assert!(storage <= LIMIT_BYTES / 2, "{storage} bytes are kept");
        // Growing and shrinking does not lose any of the budget.
        drop(buffers);
        assert!(SendBuffer::new(LIMIT_BYTES, budget.account(false)).push(&vec![0; LIMIT_BYTES / 2]));
    }
}
